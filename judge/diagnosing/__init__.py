"""Which stage to fix, and how sure: retrieval and generation read together, case by case and over a run."""

from __future__ import annotations

from judge.diagnosing.outcomes import OUTCOMES
from judge.diagnosing.rules import RULES, Diagnosis, Reading, diagnose, diagnose_values

__all__ = ["OUTCOMES", "RULES", "Diagnosis", "Reading", "diagnose", "diagnose_values"]
