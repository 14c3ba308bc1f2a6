"""Whose answers meet: case files of two or more systems joined on the question id, and the pairs drawn from them.

files --normalise--> cases of each system --join on id--> RUN/cases.jsonl (grouped by id) --> Pair
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import orjson

from judge.cases import Case, Context, load_normalised, normalise
from judge.errors import InputError, UsageError
from judge.pairwise import Pair

SHARED = ("reference", "notes", "nuggets", "answerable", "history", "lang")
Names = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What was joined. `pairs` are system pairs; `chosen` limits each to some ids (None: all). Lists name every id.

    `unmatched`: per system, the ids that no other system answered. `differing`: ids where a shared field (reference,
    notes ...) differs between systems, so that the first system's is shown.
    """

    systems: tuple[str, ...]
    pairs: tuple[Names, ...]
    chosen: Mapping[Names, frozenset[str]] | None
    n_questions: int
    n_pairs: int
    unmatched: Mapping[str, list[str]]
    differing: list[str]
    fingerprint: str
    notes: list[str]
    has_contexts: bool
    has_reference: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which of the joined answers to compare: systems by name, pairs of systems, a share of the questions or pairs."""

    systems: tuple[str, ...] = ()
    all_pairs: bool = False
    baseline: str | None = None
    pairs: int | None = None
    limit: int | None = None
    sample: int | None = None
    seed: int = 0


def join(
    sources: Sequence[Any],
    destination: Path,
    selection: Selection,
    *,
    format: str | None = None,
    map: Mapping[str, str] | None = None,
) -> Joined:
    """Reads all sources, joins them on `id`, and writes the joined cases to `destination`, grouped by id.

    One source holds several systems (field `system`); of several sources each is one system, named by its `system`
    field, else by its file stem, or by `selection.systems` in their order. Raises InputError for rows that cannot be
    used, one id with two questions, or no id in common; UsageError for names that do not settle who is compared.
    """
    parts = [destination.with_name(f"{destination.name}.{n}") for n in range(len(sources))]
    try:
        made = [
            normalise(source, part, format, map, per_system=len(sources) == 1)
            for source, part in zip(sources, parts, strict=True)
        ]
        index = _one_file(parts[0], selection) if len(parts) == 1 else _many_files(sources, parts, selection)
        notes = [text for data in made for text in (*([data.note] if data.note else ()), *data.warnings)]
        return _write(index, destination, selection, notes)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def pairs_of(
    cases: Path, pairs: Sequence[Names], chosen: Mapping[Names, frozenset[str]] | None = None
) -> Iterator[Pair]:
    """The pairs of a joined file, question by question; the stream never sits in memory."""
    for case_id, group in groupby(load_normalised(cases), key=lambda case: case.id):
        by_system = {case.system or "": case for case in group}
        for a, b in pairs:
            if a in by_system and b in by_system and (chosen is None or case_id in chosen[a, b]):
                yield paired(by_system[a], by_system[b], a, b)


def paired(one: Case, two: Case, a: str, b: str) -> Pair:
    """Two cases of one question as a Pair. What both share is taken from the first that has it.

    Where the systems retrieved different passages the judge sees both sets, merged in turns and in an order that does
    not depend on who is a; flag `contexts_differ`.
    """
    shared = {name: getattr(one, name) or getattr(two, name) for name in SHARED}
    contexts, differ = _merged(one.contexts, two.contexts)
    tags = tuple(tag for tag in one.tags if tag in two.tags)
    case = one.model_copy(update={**shared, "answer": None, "contexts": contexts, "system": None, "tags": tags})
    return Pair(case, a, b, one.answer or "", two.answer or "", ("contexts_differ",) if differ else ())


Index = dict[str, dict[str, tuple[Path, int]]]


def _lines(path: Path) -> Iterator[tuple[str, str | None, int]]:
    offset = 0
    with path.open("rb") as file:
        for line in file:
            row = orjson.loads(line)
            yield row["id"], row.get("system"), offset
            offset += len(line)


def _one_file(part: Path, selection: Selection) -> Index:
    index: Index = {}
    for case_id, system, offset in _lines(part):
        index.setdefault(system or "", {})[case_id] = (part, offset)
    nameless = index.pop("", None)
    known = ", ".join(index) or "none"
    if nameless and not index:
        raise UsageError("one case file without `system` fields: give two files, or name the system of every row")
    if nameless:
        raise InputError(
            f"{len(nameless)} rows have no `system` although others do: name it, or take them out", [*nameless]
        )
    wanted = tuple(dict.fromkeys(selection.systems or index))
    absent = [name for name in wanted if name not in index]
    if absent:
        raise UsageError(f"--systems {absent[0]!r}: no such system in the file (it has: {known})")
    if len(wanted) < 2:
        raise UsageError(f"only one system to compare ({wanted[0]}; the file has {known}): two are needed")
    return {name: index[name] for name in wanted}


def _many_files(sources: Sequence[Any], parts: Sequence[Path], selection: Selection) -> Index:
    if selection.systems and len(selection.systems) != len(sources):
        raise UsageError(f"--systems names {len(selection.systems)} systems for {len(sources)} files: one name a file")
    index: Index = {}
    for n, (source, part) in enumerate(zip(sources, parts, strict=True)):
        found = {case_id: (part, offset) for case_id, _, offset in _lines(part)}
        name = selection.systems[n] if selection.systems else _named(source, part, n)
        if name in index:
            raise UsageError(f"two files are both called {name!r}: tell them apart with --systems, such as old,new")
        index[name] = found
    return index


def _named(source: Any, part: Path, n: int) -> str:
    systems = {system for _, system, _ in _lines(part)}
    if len(systems) > 1:
        listed = ", ".join(sorted(str(system) for system in systems))
        raise UsageError(f"{_shown(source, n)} holds several systems ({listed}): give it alone with --systems a,b")
    return next(iter(systems)) or _shown(source, n)


def _shown(source: Any, n: int) -> str:
    return Path(source).stem if isinstance(source, str | Path) else "abcdefghijklmnopqrstuvwxyz"[n % 26]


def system_pairs(systems: Sequence[str], selection: Selection) -> tuple[Names, ...]:
    """Which systems meet: the two there are, all pairs, or each against the baseline (which is then b)."""
    if selection.baseline is not None:
        if selection.baseline not in systems:
            raise UsageError(f"--baseline {selection.baseline!r}: no such system (there are: {', '.join(systems)})")
        return tuple((name, selection.baseline) for name in systems if name != selection.baseline)
    if len(systems) > 2 and not selection.all_pairs:
        raise UsageError(
            f"{len(systems)} systems ({', '.join(systems)}): choose two with --systems, or give --all-pairs, "
            "or --baseline NAME to compare each with one"
        )
    return tuple(combinations(systems, 2))


def drawn(pairs: Sequence[Names], ids: Mapping[Names, Sequence[str]], n: int, seed: int) -> dict[Names, frozenset[str]]:
    """`n` comparisons, spread evenly over system pairs and questions: windows around one shuffled ring of questions."""
    rng = random.Random(seed)
    ring = list(dict.fromkeys(case_id for pair in pairs for case_id in ids[pair]))
    rng.shuffle(ring)
    order = list(pairs)
    rng.shuffle(order)
    chosen: dict[Names, frozenset[str]] = {}
    start = left = 0
    for done, pair in enumerate(order):
        share = -(-(n - left) // (len(order) - done))
        able = set(ids[pair])
        turn = [case_id for case_id in (*ring[start:], *ring[:start]) if case_id in able][:share]
        chosen[pair] = frozenset(turn)
        left += len(turn)
        start = (start + share) % len(ring) if ring else 0
    return chosen


def _write(index: Index, destination: Path, selection: Selection, notes: list[str]) -> Joined:
    systems = tuple(index)
    pairs = system_pairs(systems, selection)
    every = list(dict.fromkeys(case_id for found in index.values() for case_id in found))
    answered = {case_id: [name for name in systems if case_id in index[name]] for case_id in every}
    partners = {name: {other for pair in pairs if name in pair for other in pair if other != name} for name in systems}
    unmatched = {
        name: [case_id for case_id in index[name] if partners[name].isdisjoint(answered[case_id])] for name in systems
    }
    alone = {(name, case_id) for name, ids in unmatched.items() for case_id in ids}
    matched = _limited([i for i in every if any((name, i) not in alone for name in answered[i])], selection)
    if not matched:
        counts = ", ".join(f"{name} {len(found)}" for name, found in index.items())
        samples = "; ".join(f"{name}: {', '.join(list(found)[:3])}" for name, found in index.items())
        raise InputError(
            f"no id occurs in two systems (cases: {counts}; first ids: {samples}). Answers are joined on `id`: "
            "give the same question the same id in both files"
        )
    ids = {(a, b): [i for i in matched if i in index[a] and i in index[b]] for a, b in pairs}
    chosen = None
    if selection.pairs is not None and selection.pairs < sum(map(len, ids.values())):
        chosen = drawn(pairs, ids, selection.pairs, selection.seed)
    facts = _copied(index, matched, destination)
    return Joined(
        systems=systems, pairs=pairs, chosen=chosen, n_questions=len(matched),
        n_pairs=sum(map(len, (chosen or ids).values())), unmatched=unmatched, notes=notes, **facts,
    )  # fmt: skip


def _limited(matched: list[str], selection: Selection) -> list[str]:
    for name in ("pairs", "limit", "sample"):
        value = getattr(selection, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name} {value}: must be 1 or more")
    if selection.sample is not None and selection.sample < len(matched):
        kept = set(random.Random(selection.seed).sample(range(len(matched)), selection.sample))
        matched = [case_id for n, case_id in enumerate(matched) if n in kept]
    return matched if selection.limit is None else matched[: selection.limit]


def _copied(index: Index, matched: Sequence[str], destination: Path) -> dict[str, Any]:
    """Writes the cases of the matched ids, and tells what they hold; one id with two questions is refused."""
    digest, differing, problems = hashlib.sha256(), [], []
    has_contexts = has_reference = True
    files = {path: path.open("rb") for path in {path for found in index.values() for path, _ in found.values()}}
    try:
        with destination.open("wb") as target:
            for case_id in matched:
                rows = []
                for name, found in index.items():
                    if case_id in found:
                        path, offset = found[case_id]
                        files[path].seek(offset)
                        rows.append(orjson.loads(files[path].readline()) | {"system": name})
                questions = {" ".join(row["question"].split()): row for row in rows}
                if len(questions) > 1:
                    said = "; ".join(f"{row['system']}: {row['question'][:60]!r}" for row in questions.values())
                    problems.append(f"id {case_id!r}: {said}")
                    continue
                if any(len({orjson.dumps(row[name]) for row in rows if row.get(name)}) > 1 for name in SHARED):
                    differing.append(case_id)
                has_contexts &= any(row.get("contexts") for row in rows)
                has_reference &= any(row.get("reference") for row in rows)
                for row in rows:
                    line = orjson.dumps(row) + b"\n"
                    digest.update(line)
                    target.write(line)
    finally:
        for file in files.values():
            file.close()
    if problems:
        raise InputError(f"{len(problems)} ids stand for different questions; an id names one question", problems)
    return {
        "fingerprint": digest.hexdigest(), "differing": differing, "has_contexts": has_contexts,
        "has_reference": has_reference,
    }  # fmt: skip


def _merged(
    one: tuple[Context, ...] | None, two: tuple[Context, ...] | None
) -> tuple[tuple[Context, ...] | None, bool]:
    if not one or not two:
        return one or two or one, bool(one) != bool(two)
    first, second = sorted((one, two), key=lambda contexts: [(c.text, c.id) for c in contexts])
    if {(c.id, c.text) for c in one} == {(c.id, c.text) for c in two}:
        return first, False
    sets, longest = (first, second), max(len(one), len(two))
    turns = [contexts[n] for n in range(longest) for contexts in sets if n < len(contexts)]
    kept: dict[str, Context] = {}
    seen: set[str] = set()
    for context in turns:
        if context.text in seen:
            continue
        seen.add(context.text)
        name, copy = context.id, 1
        while name in kept:
            copy += 1
            name = f"{context.id}#{copy}"
        kept[name] = context.model_copy(update={"id": name})
    return tuple(kept.values()), True
