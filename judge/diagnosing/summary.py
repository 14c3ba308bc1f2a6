"""Over all cases: the matrix, the cells apart from it, the error budget, and slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from judge.diagnosing.examined import Examined
from judge.diagnosing.outcomes import OUTCOMES
from judge.diagnosing.scenario import Diagnosed
from judge.diagnosing.scenarios import answered, is_low
from judge.diagnosing.verdicts import share

SIDES = ("high", "low", "uncertain", "missing")


def matrix(run: Diagnosed) -> dict[str, Any]:
    """Recall x faithfulness of the answered, answerable cases: counts, and shares of those with both known."""
    base = [case for case in run.cases if answered(case)]
    counts = Counter((case.side("recall"), case.side("faithfulness")) for case in base)
    known = [case for case in base if {case.side("recall"), case.side("faithfulness")} <= {"high", "low"}]
    clusters = [run.cluster(case) for case in known]
    cells = {
        f"{recall}_{faith}": {
            "recall": recall, "faithfulness": faith, "n": counts[recall, faith],
            "share": share([(c.side("recall"), c.side("faithfulness")) == (recall, faith) for c in known],
                           clusters).to_dict(),
        }
        for recall in ("high", "low") for faith in ("high", "low")
    }  # fmt: skip
    rows = {recall: {faith: counts[recall, faith] for faith in SIDES} for recall in SIDES}
    return {"n": len(base), "n_known": len(known), "cells": cells, "counts": rows}


def apart(run: Diagnosed) -> dict[str, int]:
    """The cells of refusals, unanswerable questions and empty answers."""
    made: Counter[str] = Counter()
    for case in run.cases:
        if case.side("empty") == "yes":
            made["empty"] += 1
        elif case.side("answerable") == "no":
            made[f"unanswerable_{_refusal(case)}"] += 1
        elif case.side("refused") != "no":
            made[f"answerable_{_refusal(case)}_recall_{case.side('recall')}"] += 1
    return dict(sorted(made.items()))


def _refusal(case: Examined) -> str:
    return {"yes": "refused", "no": "answered"}.get(case.side("refused"), "refusal_uncertain")


def outcomes(run: Diagnosed) -> dict[str, Any]:
    """Outcome -> count, share of all cases, stage and next experiment; only those that occur, most frequent first."""
    counts = Counter(case.outcome for case in run.cases)
    clusters = [run.cluster(case) for case in run.cases]
    return {
        name: {
            "n": n, "share": share([case.outcome == name for case in run.cases], clusters).to_dict(),
            "stage": OUTCOMES[name].stage, "next_experiment": OUTCOMES[name].next_experiment,
            "cases": [case.case.id for case in run.cases if case.outcome == name][:20],
        }
        for name, n in counts.most_common()
    }  # fmt: skip


def is_failed(case: Examined) -> bool | None:
    """Whether the user got no right answer to an answerable question; None when that is not known.

    Wrong against the reference; without correctness, not supported; a refusal or an empty answer.
    """
    if case.side("answerable") == "no":
        return None
    if case.side("refused") == "yes" or case.side("empty") == "yes":
        return True
    if "uncertain" in (case.side("refused"), case.side("empty"), case.side("correct")):
        return None
    return is_low(case, "correct") if case.side("correct") != "missing" else is_low(case, "faithfulness")


def error_budget(run: Diagnosed) -> dict[str, Any]:
    """Where the failures are, and the most that fixing one stage could win: upper bounds, no forecasts.

    `by_stage`: decided cases by the stage blamed. Headroom: among answerable cases where failure and recall are known,
    the share that failed with recall low (retrieval) and with recall high (generation).
    """
    decided = [case for case in run.cases if case.decided]
    clusters = [run.cluster(case) for case in decided]
    stages = {stage: [OUTCOMES[case.outcome].stage == stage for case in decided]
              for stage in ("retrieval", "generation", "corpus_or_labels", "labels")}  # fmt: skip
    known = [c for c in run.cases if is_failed(c) is not None and c.side("recall") in ("high", "low")]
    groups = [run.cluster(case) for case in known]
    return {
        "n_decided": len(decided),
        "n_undecided": len(run.cases) - len(decided),
        "passed": share([OUTCOMES[case.outcome].good for case in decided], clusters).to_dict(),
        "by_stage": {stage: share(found, clusters).to_dict() for stage, found in stages.items()},
        "headroom": {
            stage: share([bool(is_failed(c)) and c.side("recall") == side for c in known], groups).to_dict()
            for stage, side in (("retrieval", "low"), ("generation", "high"))
        },
    }


def slices(run: Diagnosed) -> list[dict[str, Any]]:
    """By system, split, language, tag and number of labels: shares passed and blamed on each stage, of decided cases.

    A field with a single value over the whole run makes no slice.
    """
    made = []
    for field, values in SLICED.items():
        groups: dict[str, list[Examined]] = {}
        for case in run.cases:
            for value in values(case):
                groups.setdefault(value, []).append(case)
        if len(groups) > 1:
            made += [_slice(run, field, value, groups[value]) for value in sorted(groups)]
    return made


SLICED: dict[str, Callable[[Examined], Iterable[str]]] = {
    "system": lambda case: [case.case.system or "(none)"],
    "split": lambda case: [case.case.split or "(none)"],
    "lang": lambda case: [case.case.lang or "(none)"],
    "tag": lambda case: case.case.tags or ["(none)"],
    "labels": lambda case: [_labels(case)],
}


def _labels(case: Examined) -> str:
    n = sum(label.grade >= 1 for label in case.case.relevant or ())
    return "none" if case.case.relevant is None else str(n) if n < 3 else "3 or more"


def _slice(run: Diagnosed, field: str, value: str, cases: Sequence[Examined]) -> dict[str, Any]:
    decided = [case for case in cases if case.decided]
    clusters = [run.cluster(case) for case in decided]

    def of(stage: str) -> dict[str, Any]:
        return share([OUTCOMES[case.outcome].stage == stage for case in decided], clusters).to_dict()

    return {
        "slice": field, "value": value, "n": len(cases), "n_decided": len(decided),
        "passed": share([OUTCOMES[case.outcome].good for case in decided], clusters).to_dict(),
        "retrieval": of("retrieval"), "generation": of("generation"),
    }  # fmt: skip
