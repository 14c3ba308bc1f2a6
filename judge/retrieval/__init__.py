"""Retrieval measures: exact, fast, and robust to re-chunking. Importing loads numpy, not pandas or scipy."""

from __future__ import annotations

from judge.retrieval.comparing import RetrievalComparison, compare_rankings
from judge.retrieval.evaluating import evaluate, prepare
from judge.retrieval.inputs import Ranked, from_cases
from judge.retrieval.relabel import relabel_cases
from judge.retrieval.result import Prepared, RetrievalResult
from judge.retrieval.sweeping import Sweep, k_sweep
from judge.retrieval.trec import read_qrels, read_ranking

__all__ = [
    "Prepared",
    "Ranked",
    "RetrievalComparison",
    "RetrievalResult",
    "Sweep",
    "compare_rankings",
    "evaluate",
    "from_cases",
    "k_sweep",
    "prepare",
    "read_qrels",
    "read_ranking",
    "relabel_cases",
]
