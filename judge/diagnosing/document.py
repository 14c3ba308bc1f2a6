"""The diagnosis of a run as one JSON document: everything computed here, shown and written elsewhere."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judge.diagnosing import beside, counterfactuals, replays, summary
from judge.diagnosing.examined import examine
from judge.diagnosing.scenario import Diagnosed, clusters_of
from judge.diagnosing.scenarios import scenarios
from judge.diagnosing.thresholds import choose
from judge.diagnosing.trust import trusts
from judge.errors import UsageError
from judge.retrieval.chunks import chunk_map_of
from judge.runs import manifest, rubrics_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `judge diagnose`, by their names there.

    `evidence` (all, any): what cases need that do not say. `cluster` (question, document): what makes cases depend on
    each other. `calibration`: folder of audits, None for ./calibrations. `retrieval`: options of
    `judge.retrieval.evaluate` (doc_pattern, chunk_map, tau). `replay`: replay name -> run directory.
    """

    thresholds: Mapping[str, float] = field(default_factory=dict)
    evidence: str = "all"
    cluster: str = "question"
    feedback_scale: tuple[float, float] = (0.0, 1.0)
    retrieval: Mapping[str, Any] = field(default_factory=dict)
    calibration: Path | None = None
    counterfactuals: Path | None = None
    replay: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, allowed in (("evidence", ("all", "any")), ("cluster", ("question", "document"))):
            if (given := getattr(self, name)) not in allowed:
                raise UsageError(f"{name} is {given!r}: choose {' or '.join(allowed)}")


def diagnose(run: str | Path, **options: Any) -> dict[str, Any]:
    """The diagnosis of a scored run as plain JSON values; `options` are the fields of `Options`.

    Nothing is written but, with `counterfactuals`, the case files of the replays. Raises UsageError for a directory
    that is no run and for options that cannot be.
    """
    run, chosen = Path(run), Options(**options)
    limits = choose(chosen.thresholds)
    low, high = chosen.feedback_scale
    if not -math.inf < low < high < math.inf:
        raise UsageError(f"feedback scale is {low:g},{high:g}: give the lowest and the highest value, such as 1,5")
    made = manifest(run)
    if not (run / "judgments.jsonl").exists():
        raise UsageError(f"{run} has no judgments.jsonl: give the --out of a judge score command")
    matching = dict(chosen.retrieval)
    if "chunk_map" in matching:
        matching["chunk_map"] = chunk_map_of(matching["chunk_map"])
    cases, found = examine(run, limits, evidence=chosen.evidence, retrieval=matching)
    diagnosed = Diagnosed(
        cases=cases, found=found, limits=limits, trusts=trusts(run, made, rubrics_of(run), chosen.calibration),
        clusters=clusters_of([case.case for case in cases], chosen.cluster), feedback_scale=(low, high),
    )  # fmt: skip
    tested = scenarios(diagnosed)
    cut = counterfactuals.best_cut(tested[0].details)
    written = counterfactuals.write(cases, chosen.counterfactuals, cut) if chosen.counterfactuals else None
    return {
        "run": str(run),
        "judge": {name: made["judge"].get(name) for name in ("model", "mode")},
        "n_cases": len(cases),
        "thresholds": {name: {"value": t.value, "origin": t.origin} for name, t in limits.items()},
        "options": {"evidence": chosen.evidence, "cluster": chosen.cluster, "feedback_scale": [low, high],
                    "retrieval": {name: str(value) for name, value in chosen.retrieval.items()}},
        "inputs": _inputs(diagnosed),
        "outcomes": summary.outcomes(diagnosed),
        "matrix": summary.matrix(diagnosed),
        "apart": summary.apart(diagnosed),
        "scenarios": [scenario.to_dict() for scenario in tested],
        "n_tested": sum(scenario.p_holm is not None for scenario in tested),
        "error_budget": summary.error_budget(diagnosed),
        "slices": summary.slices(diagnosed),
        "feedback": beside.feedback(diagnosed),
        "pipeline": beside.pipeline(diagnosed),
        "age": _ages(diagnosed, made),
        "citations": beside.citations(diagnosed),
        "estimates_without_labels": beside.estimates(diagnosed),
        "counterfactuals": written,
        "replays": [_replay(name, Path(path), diagnosed, replace(chosen, retrieval=matching), cut)
                    for name, path in chosen.replay.items()],
        "cases": [case.to_dict() for case in cases],
    }  # fmt: skip


def _inputs(run: Diagnosed) -> dict[str, Any]:
    """Per input: on how many cases it is known, why not on the others, and the trust in its judge."""
    made: dict[str, Any] = {}
    for name in ("recall", "faithfulness", "correct", "complete", "citation", "refused"):
        readings = [case.inputs[name] for case in run.cases]
        reasons: dict[str, int] = {}
        for reading in readings:
            if reading.reason:
                reasons[reading.reason] = reasons.get(reading.reason, 0) + 1
        trust = run.trusts.get(name)
        made[name] = {
            "n_known": sum(reading.side in ("high", "low", "yes", "no") for reading in readings),
            "n_uncertain": sum(reading.side == "uncertain" for reading in readings),
            "n_missing": sum(reading.side == "missing" for reading in readings),
            "missing_because": dict(sorted(reasons.items(), key=lambda pair: -pair[1])),
            "thresholds": sorted({(r.threshold, r.threshold_origin) for r in readings if r.threshold is not None}),
            "rubric": trust.rubric if trust else None,
            "calibration": trust.state if trust else None,
            "calibration_verdict": trust.verdict if trust else None,
        }
    return made


def _ages(run: Diagnosed, made: Mapping[str, Any]) -> dict[str, Any]:
    """Ages on the day the run was last worked on; without a date there, on the day of the newest source."""
    started = [call["started"] for call in made.get("invocations", []) if call.get("started")]
    dates = [case.case.as_of for case in run.cases if case.case.as_of is not None]
    if started:
        day = datetime.datetime.fromtimestamp(max(started), datetime.UTC).date()
    elif dates:
        day = max(dates)
    else:
        return {"reference": None, "groups": []}
    return {"reference": day.isoformat(), "groups": beside.ages(run, day)}


def _replay(name: str, path: Path, before: Diagnosed, options: Options, best_k: int | None) -> dict[str, Any]:
    manifest(path)
    after, _ = examine(path, before.limits, evidence=options.evidence, retrieval=options.retrieval)
    return {"run": str(path), **replays.read_back(name, before.cases, after, best_k)}
