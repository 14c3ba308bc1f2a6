"""Retrieval measures: exact, fast, and robust to re-chunking. Importing loads numpy, not pandas or scipy."""

from __future__ import annotations

from judge.retrieval.evaluating import evaluate, prepare
from judge.retrieval.inputs import Ranked, from_cases
from judge.retrieval.result import Prepared, RetrievalResult

__all__ = ["Prepared", "Ranked", "RetrievalResult", "evaluate", "from_cases", "prepare"]
