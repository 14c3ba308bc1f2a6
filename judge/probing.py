"""Probing a finished run: its own cases, edited by code, judged again by the same judge; each arm is a run directory.

RUN/audit/probes/NAME   one arm per probe, and `null`: the same cases once more, unchanged
RUN/audit/probes.json   what came of it; probes.md for people
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judge.api import Options, Resolved, forecast_resolved, open_client, score_resolved
from judge.background import Stop, run, submit
from judge.cases import Case, read_cases
from judge.config import find_judge
from judge.errors import UsageError
from judge.imports.native import did_you_mean
from judge.lines import write_json
from judge.probes import OWN_EDITS, PROBES, VARIANTS, expected_of, reworded
from judge.report import probes as page
from judge.runs import FIXED, cases_of, manifest, rows, rubrics_of
from judge.scoring import Forecast, Watcher
from judge.swaying import measured
from rubrics.model import Rubric

NULL = "null"
DEFAULT_N = 80


@dataclass(frozen=True, slots=True)
class Arm:
    """One run to make: the cases of one probe, edited, and the rubrics that it says something about."""

    name: str
    cases: tuple[Case, ...]
    rubrics: tuple[Rubric, ...]
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class Probed:
    """What the probes found (the content of probes.json), and what was worth saying."""

    found: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    out: Path | None = None


def probe(
    run_path: str | Path,
    names: str | Sequence[str],
    *,
    rubrics: Sequence[str] = (),
    variants: str | Path | None = None,
    n: int = DEFAULT_N,
    seed: int = 0,
    watcher: Watcher | None = None,
    stop: Stop | None = None,
    **options: Any,
) -> Probed:
    """Probes the judge of a finished run on n of its cases, by name (or `all`); asking again resumes.

    `variants`: a case file with ids of the run whose edits, made by the user, must not change any score.
    `options`: concurrency, timeout, max_cost (of all arms), cache, config, api_base as in `judge.score`. Raises
    UsageError before anything is spent: unknown probes, no scored case, a judge that is no longer the one of the run.
    """
    path = Path(run_path)
    arms = arms_of(path, names, rubrics=rubrics, variants=variants, n=n, seed=seed)
    stop, notes, spent = stop or Stop(), [], 0.0
    for arm in arms:
        chosen, resolved = _settings(path, arm, options)
        if chosen.max_cost is not None:
            chosen = replace(chosen, max_cost=max(0.0, chosen.max_cost - spent))
        result = run(score_resolved(_rows(arm), chosen, resolved, stop=stop, watcher=watcher), stop)
        spent += result.summary["totals"]["cost_usd"] or 0.0
        notes += [note for note in result.notes if note not in notes]
        if stop.why is not None:
            return Probed({}, [*notes, f"stopped ({stop.why}) in arm {arm.name}; the same command resumes"])
    found = findings(path, arms, seed) | {"n": n, "seed": seed}
    write_json(path / "audit" / "probes.json", found)
    page.write(path / "audit" / "probes.md", found)
    return Probed(found, notes, path / "audit")


def forecast_probes(
    run_path: str | Path, names: str | Sequence[str], *, rubrics: Sequence[str] = (),
    variants: str | Path | None = None, n: int = DEFAULT_N, seed: int = 0, **options: Any,
) -> Forecast:  # fmt: skip
    """What `probe` would send, over all arms; nothing is sent."""
    path = Path(run_path)
    parts = []
    for arm in arms_of(path, names, rubrics=rubrics, variants=variants, n=n, seed=seed):
        chosen, resolved = _settings(path, arm, options)
        parts.append(forecast_resolved(_rows(arm), chosen, resolved))
    columns = {name: [getattr(part, name) for part in parts] for name in Forecast.__dataclass_fields__}
    totals: dict[str, Any] = {name: None if None in column else sum(column) for name, column in columns.items()}
    return Forecast(**totals)


def arms_of(
    path: Path, names: str | Sequence[str], *, rubrics: Sequence[str], n: int, seed: int,
    variants: str | Path | None = None,
) -> list[Arm]:  # fmt: skip
    """The null arm and one per probe: n scored cases to which it applies, drawn with the seed, the same for all."""
    if n < 1:
        raise UsageError(f"--probe-n {n}: probe one case or more")
    wanted = [part.strip() for part in names.split(",") if part.strip()] if isinstance(names, str) else list(names)
    wanted = list(PROBES) if wanted == ["all"] else list(dict.fromkeys(wanted))
    for name in wanted:
        if name not in PROBES:
            hint = did_you_mean(name, list(PROBES))
            raise UsageError(f"--probe {name!r}: no such probe{hint} (there are: {', '.join(PROBES)}, or all)")
    known = rubrics_of(path)
    for name in rubrics:
        if name not in known:
            raise UsageError(f"--rubrics {name!r}: not in this run (it has: {', '.join(known)})")
    chosen = tuple(known[name] for name in rubrics or known)
    scored = {row["case_id"] for row in rows(path) if row["status"] == "scored" and row["rubric"] in
              {one.id for one in chosen}}  # fmt: skip
    cases = [case for case in cases_of(path) if case.id in scored]
    if not cases:
        raise UsageError(f"{path}: no case has a score, so there is nothing to probe")
    order = random.Random(seed).sample(range(len(cases)), len(cases))
    arms = []
    for name in wanted:
        said = tuple(one for one in chosen if PROBES[name].expected(one) is not None)
        edited = [found for at in order if (found := _applied(name, cases[at])) is not None][:n] if said else []
        worded = tuple(reworded(one) for one in said) if name == "prompt_wording" else said
        arms.append(Arm(name, tuple(edited), worded))
    if variants is not None:
        edited = _variants(variants, [cases[at] for at in order])[:n]
        arms.append(Arm(VARIANTS, tuple(edited), chosen))
    used = {case.id for arm in arms for case in arm.cases}
    if not used:
        raise UsageError(f"--probe {','.join(wanted)}: applies to none of the {len(cases)} scored cases")
    null = Arm(NULL, tuple(case for case in cases if case.id in used), chosen, repeats=2)
    return [null, *(arm for arm in arms if arm.cases)]


def _variants(source: str | Path, cases: Sequence[Case]) -> list[Case]:
    """The user's edits of scored cases, in the order of these; an id that is not among them is refused."""
    given = {case.id: case for case in read_cases(source, notes=[])}
    known = {case.id: case.content_hash() for case in cases}
    foreign = [name for name in given if name not in known]
    if foreign:
        raise UsageError(
            f"--probe-variants {source}: {len(foreign)} cases are not among the {len(known)} scored ones of the run, "
            f"such as {foreign[0]!r}: an edited case keeps its id"
        )
    changed = [given[name] for name in known if name in given and given[name].content_hash() != known[name]]
    if not changed:
        raise UsageError(f"--probe-variants {source}: no case in it differs from that of the run")
    return changed


def _applied(name: str, case: Case) -> Case | None:
    return case if name == "prompt_wording" else PROBES[name].applied(case)


def _rows(arm: Arm) -> list[dict[str, Any]]:
    return [case.to_row() for case in arm.cases]


def _settings(path: Path, arm: Arm, options: Mapping[str, Any]) -> tuple[Options, Resolved]:
    """The options and the judge of the run for one arm; refused when the judge has become another one."""
    made = manifest(path)
    before = made["options"]
    config = options.get("config") or (Path(before["config"]) if before.get("config") else None)
    chosen = Options(
        rubrics=[one.id for one in arm.rubrics], model=before.get("model") or made["judge"]["model"], config=config,
        out=path / "audit" / "probes" / arm.name, mode=made["judge"]["mode"], repeats=arm.repeats,
        layout=made["judge"]["layout"], concurrency=options.get("concurrency"),
        api_base=options.get("api_base") or before.get("api_base"), timeout=options.get("timeout"),
        max_cost=options.get("max_cost"), cache=options.get("cache"),
    )  # fmt: skip
    spec = find_judge(chosen.model, config).override(
        concurrency=chosen.concurrency, api_base=chosen.api_base, timeout=chosen.timeout
    )
    client, _ = open_client(spec, chosen, made.get("resolved"))
    now = client.identity(made["judge"]["mode"], made["judge"]["layout"])
    submit(client.aclose()).result()
    differing = [name for name in FIXED if now.get(name) != made["judge"].get(name)]
    if differing:
        seen = "; ".join(f"{name}: {made['judge'].get(name)!r} then, {now.get(name)!r} now" for name in differing)
        raise UsageError(f"{path} was made by another judge ({seen}); score the cases again with this one, then probe")
    return chosen, Resolved(spec, made["judge"]["mode"], arm.rubrics, [])


def findings(path: Path, arms: Sequence[Arm], seed: int) -> dict[str, Any]:
    """probes -> rubric -> what was measured, from the lines of the run and of its arms."""
    cases = {case.id: case.question for case in cases_of(path)}
    shared = len(set(cases.values())) < len(cases)
    questions = {name: hashlib.blake2b(text.encode(), digest_size=12).hexdigest() for name, text in cases.items()}
    folder = path / "audit" / "probes"
    found: dict[str, Any] = {}
    for arm in arms:
        if arm.name == NULL:
            continue
        inside = {case.id for case in arm.cases}
        per_rubric = {}
        for rubric in arm.rubrics:
            expected = expected_of(arm.name, rubric)
            assert expected is not None
            lines = {name: line for name, line in _lines(folder / arm.name, rubric.id).items() if name in inside}
            before, rerun = _lines(path, rubric.id), _lines(folder / NULL, rubric.id, repeat=1)
            per_rubric[rubric.id] = measured(
                rubric, expected, before, lines, rerun, questions if shared else None, seed=seed
            )
        why = OWN_EDITS if arm.name == VARIANTS else PROBES[arm.name].why
        found[arm.name] = {"why": why, "rubrics": per_rubric}
    return {"run": path.name, "probes": found}


def _lines(path: Path, rubric: str, repeat: int = 0) -> dict[str, Mapping[str, Any]]:
    return {row["case_id"]: row for row in rows(path) if row["rubric"] == rubric and row["repeat"] == repeat}
