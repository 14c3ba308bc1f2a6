"""The page of a diagnosis, from its JSON document: every sentence with its number of cases and the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.calibrations import in_short
from judge.lines import write_json
from judge.report.page import Section, brief, estimated, figure, markdown

Document = Mapping[str, Any]
SLICE_FROM = 5
CASES_SHOWN = 10


def write(run: Path, document: Document) -> None:
    """Writes diagnosis.json and diagnosis.md into the run directory."""
    write_json(run / "diagnosis.json", document)
    page = markdown(f"Diagnosis: {run.name}", sections(document))
    (run / "diagnosis.md").write_text(page, encoding="utf-8")


def sections(document: Document) -> list[Section]:
    """The page as values."""
    pages = [
        _first(document), _inputs(document), _matrix(document), _scenarios(document), _outcomes(document),
        _budget(document), *_slices(document), *_beside(document), *_estimates(document), *_cases(document),
        *_replays(document), _thresholds(document),
    ]  # fmt: skip
    return [page for page in pages if page.rows or page.notes]


def _percent(estimate: Mapping[str, Any]) -> str:
    return estimated(estimate, percent=True)


def _first(document: Document) -> Section:
    """What to do first: the established and suspected scenarios, else the largest part of the error budget."""
    order = ("established", "suspected")
    held = sorted((s for s in document["scenarios"] if s["verdict"] in order), key=lambda s: order.index(s["verdict"]))
    notes = [f"{s['id']} {s['title']} [{s['stage']}]: {s['sentence']}" for s in held]
    if not notes:
        notes = [f"no scenario is established or suspected on {document['n_cases']} cases; see the error budget below"]
    judge = document["judge"]
    return Section(f"Diagnosis of {document['n_cases']} cases by {judge['model']} ({judge['mode']} mode)", notes=notes)


def _inputs(document: Document) -> Section:
    rows = []
    for name, found in document["inputs"].items():
        why = "; ".join(f"{reason} ({n})" for reason, n in list(found["missing_because"].items())[:3])
        limits = ", ".join(f"{figure(value)} ({origin})" for value, origin in found["thresholds"])
        judged = in_short(found["calibration"], found["calibration_verdict"]) if found["rubric"] else "no judge"
        trust = "labels" if name == "recall" else judged
        known, unsure = str(found["n_known"]), str(found["n_uncertain"])
        rows.append([name, known, unsure, str(found["n_missing"]), limits or "–", trust, brief(why, 80)])
    columns = ["input", "known", "uncertain", "missing", "high from", "trust", "missing because"]
    return Section("What the diagnosis rests on", columns, rows)


def _matrix(document: Document) -> Section:
    found = document["matrix"]
    cells = found["cells"]

    def cell(recall: str, faith: str) -> str:
        one = cells[f"{recall}_{faith}"]
        return f"{one['n']}: {_percent(one['share'])}"

    rows = [[f"recall {recall}", cell(recall, "high"), cell(recall, "low")] for recall in ("high", "low")]
    blurred = found["n"] - found["n_known"]
    notes = [f"{found['n_known']} answered, answerable cases with both known; {blurred} with one uncertain or missing"]
    if document["apart"]:
        counted = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in document["apart"].items())
        notes.append(f"apart from these: {counted}")
    return Section("Recall x faithfulness", ["", "supported", "not supported"], rows, notes)


def _scenarios(document: Document) -> Section:
    rows = []
    for one in document["scenarios"]:
        numbers = "; ".join(f"{_percent(c['estimate'])} of {c['estimate']['n']}" for c in one["conditions"]) or "–"
        rows.append([one["id"], one["title"], one["verdict"].replace("_", " "), numbers, figure(one["p_holm"], 3)])
    notes = [f"{document['n_tested']} scenarios had enough cases to be tested; Holm allows for that many"]
    notes += [f"{one['id']}: {one['sentence']}{_because(one)}" for one in document["scenarios"]]
    return Section("Scenarios", ["", "scenario", "verdict", "shares [95%]", "p (Holm)"], rows, notes)


def _because(scenario: Mapping[str, Any]) -> str:
    return f". ({'; '.join(scenario['notes'])})" if scenario["conditions"] and scenario["notes"] else ""


def _outcomes(document: Document) -> Section:
    rows = [
        [name.replace("_", " "), str(one["n"]), _percent(one["share"]), one["stage"] or "–",
         one["next_experiment"] or "–"]
        for name, one in document["outcomes"].items()
    ]  # fmt: skip
    return Section("Outcomes", ["outcome", "cases", "share [95%]", "stage", "next experiment"], rows)


def _budget(document: Document) -> Section:
    found = document["error_budget"]
    n, room = found["n_decided"], found["headroom"]
    stages = ", ".join(f"{stage.replace('_', ' ')} {_percent(e)}" for stage, e in found["by_stage"].items())
    known = room["retrieval"]["n"]
    notes = [
        f"passed: {_percent(found['passed'])} of {n} decided cases; {found['n_undecided']} undecided",
        f"blamed, of {n} decided cases: {stages}. Next: start with the largest",
        f"fixing retrieval could win at most {_percent(room['retrieval'])} of {known} cases where failure and recall "
        f"are known, fixing generation at most {_percent(room['generation'])}: upper bounds, no forecasts",
    ]
    return Section("Error budget", notes=notes)


def _slices(document: Document) -> list[Section]:
    kept = [one for one in document["slices"] if one["n"] >= SLICE_FROM]
    rows = [
        [f"{s['slice']} {s['value']}", f"{s['n_decided']} of {s['n']}", *(_percent(s[name]) for name in COLUMNS)]
        for s in kept
    ]
    small = len(document["slices"]) - len(kept)
    notes = [f"{small} slices with fewer than {SLICE_FROM} cases are in diagnosis.json"] if small else []
    return [Section("Slices", ["slice", "decided", "passed", "blamed: retrieval", "generation"], rows, notes)]


COLUMNS = ("passed", "retrieval", "generation")


def _beside(document: Document) -> list[Section]:
    return [_feedback(document), _pipeline(document), _ages(document), _citations(document)]


def _feedback(document: Document) -> Section:
    found = document["feedback"]
    if found["satisfaction"] is None:
        return Section("Users", notes=[f"{found['reason']}. Next: add it to the cases to test scenario 6"])
    parts = [f"{name} {_percent(found[name])} of {found[name]['n']}" for name in ("passed", "failed") if found[name]]
    everyone = found["satisfaction"]
    note = f"satisfied: {_percent(everyone)} of {everyone['n']} cases with feedback; by outcome: {', '.join(parts)}"
    return Section("Users", notes=[f"{note}. Next: read cases that pass here and displeased users"])


def _pipeline(document: Document) -> Section:
    rows = [
        [
            one["system"],
            f"{_percent(one['passed'])} of {one['passed']['n']}",
            _spread(one["latency_s"]),
            _spread(one["cost_usd"], 4),
            figure(one["cost_per_pass"], 4),
        ]
        for one in document["pipeline"]
    ]
    columns = ["pipeline", "passed", "latency s: mean, median, p95", "cost $: mean, median, p95", "cost per pass"]
    return Section("Quality beside cost and latency", columns, rows)


def _spread(found: Mapping[str, Any], digits: int = 2) -> str:
    mean = found["mean"]
    if not mean["n"]:
        return "not recorded"
    others = f"{figure(found['median'], digits)}, {figure(found['p95'], digits)}"
    return f"{estimated(mean, digits)}, {others} of {mean['n']}"


def _ages(document: Document) -> Section:
    found = document["age"]
    rows = [
        [g["age"], str(g["n"]), f"{_percent(g['failed'])} of {g['failed']['n']}", str(g["wrong_source"])]
        for g in found["groups"]
    ]
    note = f"age of as_of on {found['reference']}. Next: if failures grow with age, refresh the corpus"
    notes = [note] if rows else []
    return Section("Failures by age of the source", ["age", "cases", "failed", "supported but wrong"], rows, notes)


def _citations(document: Document) -> Section:
    found = document["citations"]
    if not found["n"]:
        return Section("Expected citations")
    missed = f"; not all cited in {', '.join(found['missed'])}" if found["missed"] else ""
    note = f"{_percent(found['recall'])} of the expected citations are there, on {found['n']} cases{missed}"
    return Section("Expected citations", notes=[f"{note}. Next: look at those cases with judge show"])


def _estimates(document: Document) -> list[Section]:
    found = document["estimates_without_labels"]
    if not found["n"]:
        return []
    notes = [f"estimates by the judge of context_relevance on {found['n']} cases without recall, no measurements:"]
    for name, words in (("precision_estimate", "passages that help"), ("sufficiency_estimate", "passages suffice"),
                        ("any_useful_estimate", "at least one passage helps")):  # fmt: skip
        if found[name]["n"]:
            notes.append(f"{words}: about {_percent(found[name])} of {found[name]['n']} cases")
    suggested = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in found["outcomes_estimate"].items())
    notes.append(f"with these in place of recall the cases would be: {suggested}. Next: label `relevant` to know")
    return [Section("Without labels: estimates", notes=notes)]


def _cases(document: Document) -> list[Section]:
    told = [case for case in document["cases"] if case["next_experiment"] and case["outcome"] != "unlabelled"]
    told.sort(key=lambda case: case["outcome"] == "human_review")
    rows = [[brief(case["case_id"], 40), _outcome(case), case["stage"] or "–", _sides(case["inputs"])] for case in told]
    shown = rows[:CASES_SHOWN]
    notes = [f"{len(rows) - len(shown)} more in diagnosis.json"] if len(rows) > len(shown) else []
    if rows:
        notes.append(f"look inside one: judge show {document['run']} {told[0]['case_id']}")
    columns = ["case", "outcome", "stage", "inputs"]
    return [Section(f"Cases to look at ({len(rows)} of {document['n_cases']})", columns, shown, notes)]


def _outcome(case: Mapping[str, Any]) -> str:
    between = f" ({' or '.join(case['possible'])})" if case["possible"] else ""
    candidates = f" (unlabelled but useful: {', '.join(case['candidates'])})" if case.get("candidates") else ""
    return f"{case['outcome']}{between}{candidates}".replace("_", " ")


def _sides(inputs: Mapping[str, Mapping[str, Any]]) -> str:
    """The inputs that have a value, as "recall 1.00 high"."""
    shown: Sequence[str] = [
        f"{name} {figure(reading['value'])} {reading['side']}"
        for name, reading in inputs.items()
        if reading["value"] is not None and reading["threshold"] is not None
    ]
    return ", ".join(shown)


def _replays(document: Document) -> list[Section]:
    made = []
    written = document["counterfactuals"]
    if written:
        notes = []
        for name, one in written.items():
            left = "; ".join(f"{n} left out: {why}" for why, n in one["left_out"].items())
            parts = [f"{one['n']} cases", *([one["file"]] if one["file"] else []), *([left] if left else [])]
            notes.append(f"{name}: {', '.join(parts)}")
        notes.append("next: let your pipeline answer each file with the contexts given there (fill `answer`), score it "
                     f"by the same rubrics, then judge diagnose {document['run']} --replay NAME=RUN2")  # fmt: skip
        made.append(Section("Replays to run", notes=notes))
    if document["replays"]:
        notes = [f"{one['replay']}: {one['sentence']}" for one in document["replays"]]
        made.append(Section("What the replays settle", notes=notes))
    return made


def _thresholds(document: Document) -> Section:
    own = [f"{name} {t['value']:g}" for name, t in document["thresholds"].items() if t["origin"] != "default"]
    usual = [f"{name} {t['value']:g}" for name, t in document["thresholds"].items() if t["origin"] == "default"]
    notes = [f"default: {', '.join(usual)}"] + ([f"given: {', '.join(own)}"] if own else [])
    options = document["options"]
    notes.append(
        f"evidence {options['evidence']} where a case says nothing; intervals clustered by {options['cluster']}"
    )
    return Section("Thresholds (change one with --threshold NAME=VALUE)", notes=notes)
