"""Score RAG answers with a language model as judge, and learn how far every number can be trusted.

>>> import judge
>>> result = judge.score("cases.jsonl", rubrics=["faithfulness"], model="openai/gpt-4o-mini")  # doctest: +SKIP
>>> result.to_frame()  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judge.api import Options, Result, score, score_async
    from judge.audits import Audit, audit
    from judge.cases import Case, read_cases
    from judge.comparing import compare
    from judge.diagnosing.document import diagnose
    from judge.errors import InputError, JudgeError, ProviderStop, UsageError

__version__ = "0.1.0"
_HOME = {
    "score": "judge.api",
    "score_async": "judge.api",
    "compare": "judge.comparing",
    "diagnose": "judge.diagnosing.document",
    "Options": "judge.api",
    "Result": "judge.api",
    "audit": "judge.audits",
    "Audit": "judge.audits",
    "Case": "judge.cases",
    "read_cases": "judge.cases",
    "JudgeError": "judge.errors",
    "UsageError": "judge.errors",
    "InputError": "judge.errors",
    "ProviderStop": "judge.errors",
}
__all__ = [
    "Audit",
    "Case",
    "InputError",
    "JudgeError",
    "Options",
    "ProviderStop",
    "Result",
    "UsageError",
    "audit",
    "compare",
    "diagnose",
    "read_cases",
    "score",
    "score_async",
]


def __getattr__(name: str) -> Any:
    if name == "retrieval":
        return import_module("judge.retrieval")
    if name not in _HOME:
        raise AttributeError(f"module 'judge' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
