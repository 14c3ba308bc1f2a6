"""What changed between two scored runs: paired differences per rubric, the cases that moved most, cost and time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from calibration.compare import Comparison, holm, paired
from calibration.estimate import Estimate, mean
from judge.errors import UsageError
from judge.report.page import Section, estimated, figure
from judge.report.scores import weak_point
from judge.runs import FIXED, cases_of, manifest, rows, rubrics_of
from judge.summary import majority, totals
from rubrics.model import Rubric

MOVED = 10


@dataclass(frozen=True, slots=True)
class Scored:
    """One run by one rubric: mean score and majority verdict of each scored case, and its weakest point in words."""

    scores: Mapping[str, float]
    passed: Mapping[str, bool]
    weak: Mapping[str, str]
    quick: bool


def diff_runs(
    a: Path,
    b: Path,
    rubrics: Sequence[str] = (),
    *,
    allow_different: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """Compares two pointwise runs on the cases that both scored; every difference is a - b, on the rubric's scale.

    Repeats are averaged within a case first; intervals are clustered by question where several cases share one. Holm
    over the rubrics compared. Raises UsageError when the runs share no rubric or scored case, when one id stands for
    two questions, or, unless `allow_different`, when judge or rubric hashes differ.
    """
    made = {"a": manifest(a), "b": manifest(b)}
    for name, run in (("a", a), ("b", b)):
        if not (run / "judgments.jsonl").exists():
            raise UsageError(f"{name} = {run} has no judgments.jsonl: runs diff compares runs of `judge score`")
    known = rubrics_of(b) | rubrics_of(a)
    chosen = _common_rubrics(made, rubrics)
    differences = _judges(made["a"]["judge"], made["b"]["judge"]) + _hashes(made, chosen)
    if differences and not allow_different:
        raise UsageError(
            f"these runs do not measure with one ruler ({'; '.join(differences)}), so a difference of scores would "
            "mix the systems with the judges. Score both alike, or give --allow-different to compare all the same"
        )
    questions = _questions(a, b)
    found = {name: _rubric(a, b, known[name], questions, seed) for name in chosen}
    adjust(found)
    return {
        "a": str(a),
        "b": str(b),
        "judge": made["a"]["judge"]["model"],
        "differences_allowed": differences,
        "unmatched": {name: sorted(ids) for name, ids in _unmatched(a, b).items()},
        "rubrics": found,
        "pipelines": {name: _pipelines(a, b, name) for name in ("cost_usd", "latency_s")},
        "judging": {name: totals(run) for name, run in (("a", a), ("b", b))},
        "seed": seed,
    }


def _common_rubrics(made: Mapping[str, Mapping[str, Any]], asked: Sequence[str]) -> list[str]:
    common = [name for name in made["a"]["rubrics"] if name in made["b"]["rubrics"]]
    absent = [name for name in asked if name not in common]
    if absent or not common:
        listed = "; ".join(f"{side}: {', '.join(run['rubrics']) or 'none'}" for side, run in made.items())
        wrong = f"rubric {absent[0]!r} is not in both runs" if absent else "the runs have no rubric in common"
        raise UsageError(f"{wrong} ({listed})")
    return list(dict.fromkeys(asked)) or common


def _judges(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    names = (*FIXED, "model_returned")
    return [f"{name}: {a.get(name)!r} in a, {b.get(name)!r} in b" for name in names if a.get(name) != b.get(name)]


def _hashes(made: Mapping[str, Mapping[str, Any]], chosen: Sequence[str]) -> list[str]:
    hashes = {side: {name: run["rubrics"][name]["rubric_hash"] for name in chosen} for side, run in made.items()}
    return [
        f"rubric {name}: version {made['a']['rubrics'][name]['version']} ({hashes['a'][name][:8]}) in a, "
        f"{made['b']['rubrics'][name]['version']} ({hashes['b'][name][:8]}) in b"
        for name in chosen
        if hashes["a"][name] != hashes["b"][name]
    ]


def _questions(a: Path, b: Path) -> dict[str, str]:
    """The question of every case in both runs; an id that stands for two questions is refused."""
    left = {case.id: " ".join(case.question.split()) for case in cases_of(a)}
    right = {case.id: " ".join(case.question.split()) for case in cases_of(b)}
    common = [name for name in left if name in right]
    if not common:
        raise UsageError(f"{a} and {b} have no case id in common (first ids: {[*left][:3]} and {[*right][:3]})")
    other = [name for name in common if left[name] != right[name]]
    if other:
        raise UsageError(
            f"{len(other)} ids stand for different questions in the two runs, such as {other[0]!r}: "
            f"{left[other[0]][:60]!r} and {right[other[0]][:60]!r}. An id names one question; correct the files"
        )
    return {name: left[name] for name in common}


def _unmatched(a: Path, b: Path) -> dict[str, set[str]]:
    ids = {"a": {case.id for case in cases_of(a)}, "b": {case.id for case in cases_of(b)}}
    return {"a": ids["a"] - ids["b"], "b": ids["b"] - ids["a"]}


def _scored(run: Path, rubric: str, cases: Mapping[str, str]) -> Scored:
    lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows(run):
        if row["rubric"] == rubric and row["status"] == "scored" and row["case_id"] in cases:
            lines[row["case_id"]].append(row)
    return Scored(
        scores={case: fmean(row["score"] for row in group) for case, group in lines.items()},
        passed={case: majority(row["passed"] for row in group) for case, group in lines.items()},
        weak={case: weak_point(group[0]) for case, group in lines.items()},
        quick=any(row["mode"] == "quick" for group in lines.values() for row in group),
    )


def _rubric(a: Path, b: Path, rubric: Rubric, questions: Mapping[str, str], seed: int) -> dict[str, Any]:
    left, right = _scored(a, rubric.id, questions), _scored(b, rubric.id, questions)
    both = [case for case in questions if case in left.scores and case in right.scores]
    clusters = [questions[case] for case in both]
    groups = clusters if len(set(clusters)) < len(clusters) else None
    bounds = (float(rubric.scale.min), float(rubric.scale.max))

    def compared(one: Mapping[str, float], two: Mapping[str, float], ends: tuple[float, float]) -> Comparison:
        values = [[float(side[case]) for case in both] for side in (one, two)]
        return paired(*values, clusters=groups, bounds=ends, seed=seed)

    scores = compared(left.scores, right.scores, bounds)
    passes = compared(left.passed, right.passed, (0.0, 1.0))
    moved = sorted(both, key=lambda case: (-abs(left.scores[case] - right.scores[case]), case))
    return {
        "n_pairs": len(both),
        "n_scored": {"a": len(left.scores), "b": len(right.scores)},
        "n_dropped": len(questions) - len(both),
        "mean": {name: _plain(side, both) for name, side in (("a", left.scores), ("b", right.scores))},
        "difference": scores.difference.to_dict(),
        "p_sign_flip": scores.p_sign_flip,
        "p_holm": None,
        "mde": scores.mde,
        "pass_rate": {name: _plain(side, both) for name, side in (("a", left.passed), ("b", right.passed))},
        "pass_difference": passes.difference.to_dict(),
        "mcnemar": None if passes.mcnemar is None else {
            name: getattr(passes.mcnemar, name) for name in ("only_a", "only_b", "p_exact", "p_mid")
        },
        "moved": [
            {"case_id": case, "a": left.scores[case], "b": right.scores[case], "weak_a": left.weak[case],
             "weak_b": right.weak[case]}
            for case in moved[:MOVED] if left.scores[case] != right.scores[case]
        ],
        "n_moved": sum(left.scores[case] != right.scores[case] for case in both),
        "scale": [rubric.scale.min, rubric.scale.max],
    }  # fmt: skip


def _plain(values: Mapping[str, float], both: Sequence[str]) -> float | None:
    return fmean(float(values[case]) for case in both) if both else None


def adjust(found: Mapping[str, dict[str, Any]]) -> None:
    """Fills `p_holm` of every rubric that has a sign-flip p."""
    tested = [name for name, one in found.items() if one["p_sign_flip"] is not None]
    adjusted = holm([found[name]["p_sign_flip"] for name in tested])
    for name, p in zip(tested, adjusted, strict=True):
        found[name]["p_holm"] = p


def _pipelines(a: Path, b: Path, field: str) -> dict[str, Any]:
    """Cost or latency that the cases themselves recorded for the two pipelines, paired."""
    sides = [
        {case.id: value for case in cases_of(run) if (value := getattr(case, field)) is not None} for run in (a, b)
    ]
    both = [case for case in sides[0] if case in sides[1]]
    if not both:
        return {"a": None, "b": None, "difference": Estimate(status="undefined", reason="not_recorded").to_dict()}
    change = mean([sides[0][case] - sides[1][case] for case in both])
    return {"a": _plain(sides[0], both), "b": _plain(sides[1], both), "difference": change.to_dict()}


def sections(found: Mapping[str, Any]) -> list[Section]:
    """The page of `judge runs diff`: what may be said first, then the numbers, the cases, cost and time."""
    page = [Section("Conclusion", notes=[conclusion(name, one) for name, one in found["rubrics"].items()])]
    page.append(_table(found))
    page += [_moved_section(name, one) for name, one in found["rubrics"].items() if one["moved"]]
    return [*page, _cost(found)]


def conclusion(rubric: str, found: Mapping[str, Any]) -> str:
    """One rubric's result as a sentence; decided on the interval and on p after Holm."""
    change, p = found["difference"], found["p_holm"]
    if change["value"] is None:
        return f"{rubric}: nothing to compare, no case was scored in both runs"
    if change["ci_low"] is None:
        return f"{rubric}: {found['n_pairs']} pairs, too few to say ({change['reason']})"
    low, high = change["ci_low"], change["ci_high"]
    if p is not None and p < 0.05 and (low > 0 or high < 0):
        better = "A" if change["value"] > 0 else "B"
        return (
            f"{rubric}: {better} scores higher by {abs(change['value']):.2f} on average "
            f"(95% interval {_low(low, high):.2f} to {_high(low, high):.2f}), in this judge's opinion"
        )
    seen = f"; these {found['n_pairs']} pairs would show one of {found['mde']:.2f} (80% power)" if found["mde"] else ""
    return (
        f"{rubric}: no evidence of a difference larger than {max(abs(low), abs(high)):.2f}{seen}. "
        "That is no proof that they are equal"
    )


def _low(low: float, high: float) -> float:
    return min(abs(low), abs(high))


def _high(low: float, high: float) -> float:
    return max(abs(low), abs(high))


def _table(found: Mapping[str, Any]) -> Section:
    columns = [
        "rubric",
        "pairs",
        "mean A",
        "mean B",
        "A - B",
        "p (Holm)",
        "detectable",
        "passed A",
        "passed B",
        "p passed",
    ]
    lines = []
    for name, one in found["rubrics"].items():
        mcnemar = one["mcnemar"]
        lines.append(
            [
                name, str(one["n_pairs"]), figure(one["mean"]["a"]), figure(one["mean"]["b"]),
                estimated(one["difference"]), figure(one["p_holm"], 3), figure(one["mde"]),
                figure(one["pass_rate"]["a"], percent=True), figure(one["pass_rate"]["b"], percent=True),
                figure(mcnemar["p_mid"], 3) if mcnemar else "–",
            ]
        )  # fmt: skip
    notes = [f"A = {found['a']}, B = {found['b']}; A - B above 0: A is better. p: sign flips, Holm over the rubrics; "
             "the last column is McNemar's mid-p on passed or not"]  # fmt: skip
    for side, ids in found["unmatched"].items():
        if ids:
            more = f" and {len(ids) - 20} more" if len(ids) > 20 else ""
            notes.append(f"only in {side.upper()}: {len(ids)} cases, left out: {', '.join(ids[:20])}{more}")
    notes += [
        f"{name}: {one['n_dropped']} common cases left out, not scored on one side or both"
        for name, one in found["rubrics"].items()
        if one["n_dropped"]
    ]
    notes += [f"compared although they differ: {text}" for text in found["differences_allowed"]]
    return Section(f"Paired differences, judged by {found['judge']}", columns, lines, notes)


def _moved_section(rubric: str, found: Mapping[str, Any]) -> Section:
    lines = [
        [one["case_id"], figure(one["a"]), figure(one["b"]), f"{one['a'] - one['b']:+.2f}",
         one["weak_b"] if one["a"] > one["b"] else one["weak_a"]]
        for one in found["moved"]
    ]  # fmt: skip
    note = f"{found['n_moved']} of {found['n_pairs']} cases moved; look inside one: judge show RUN CASE"
    return Section(f"{rubric}: cases that moved most", ["case", "A", "B", "A - B", "the lower one"], lines, [note])


def _cost(found: Mapping[str, Any]) -> Section:
    lines = []
    for name, words, digits in (("cost_usd", "US dollars", 6), ("latency_s", "seconds", 3)):
        one = found["pipelines"][name]
        if one["a"] is not None:
            change = estimated(one["difference"], digits)
            lines.append([f"{words} per answer", figure(one["a"], digits), figure(one["b"], digits), change])
    judging = found["judging"]
    for name, words, digits in (("cost_usd", "US dollars to judge", 4), ("http_calls", "calls to judge", 0),
                                ("wall_s", "seconds to judge", 1)):  # fmt: skip
        a, b = (judging[side][name] for side in ("a", "b"))
        change = "–" if a is None or b is None else f"{a - b:+.{digits}f}"
        lines.append([words, figure(a, digits), figure(b, digits), change])
    recorded = any(found["pipelines"][name]["a"] is not None for name in found["pipelines"])
    notes = [] if recorded else ["the cases record no cost_usd or latency_s of the pipelines themselves"]
    return Section("Cost and time", ["", "A", "B", "A - B"], lines, notes)
