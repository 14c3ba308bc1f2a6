"""The other modes: levels as given, checklists, sentences, nuggets, facts, passages and the refusal table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rubrics.blocks import nugget_source
from rubrics.evidence import normalise
from rubrics.inventory import nothing_listed, refused, spans_stand_in, uncovered
from rubrics.model import Item, Prompt, Rubric
from rubrics.prechecks import REFUSAL_TABLE, has_passages
from rubrics.quoting import ANSWER, Quotes
from rubrics.scoring import Draft, band, capped, known_errors, of_five, ratio
from rubrics.screening import degenerate, refusal_hint

Settled = tuple[Draft, Quotes]


def _unparsable(reason: str, quotes: Quotes) -> Settled:
    return Draft(status="error", error_kind="unparsable", reason=reason), quotes


def _set(**flags: bool) -> tuple[str, ...]:
    return tuple(name for name, applies in flags.items() if applies)


def settle_level(rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt) -> Settled:
    """ordinal and binary: the judge's level is the score (score_source holistic)."""
    return Draft(level=parsed["level"], source="holistic"), Quotes.of({})


def settle_checklist(rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt) -> Settled:
    """Weighted share of checks that are met, through bands; an unmet core check caps at `core_no_caps_at`.

    Every check of the rubric exactly once. A quote may be absent (some checks are decided by an absence), but a check
    that rests on a quote that is not in the material does not count as met.
    """
    texts = {passage.id: passage.text for passage in item.contexts or ()} | {
        f"reference {n}": text for n, text in enumerate(item.reference or (), start=1)
    }
    quotes = Quotes.of({ANSWER: item.answer or "", "question": item.question, **texts}, shortest=2)
    wanted, given = [check.id for check in rubric.checks], [entry["id"] for entry in parsed["checks"]]
    if sorted(wanted) != sorted(given):
        return _unparsable(f"the reply has checks {given}, the rubric has {wanted}: each exactly once", quotes)
    met = {}
    for entry in parsed["checks"]:
        sound = not entry["quote"] or quotes.check(entry["quote"], ANSWER).verified
        met[entry["id"]] = entry["met"] and sound
    share = ratio(sum(c.weight for c in rubric.checks if met[c.id]), sum(c.weight for c in rubric.checks))
    if share is None:
        return _unparsable("all checks of the rubric have weight 0: give at least one a weight", quotes)
    level = band(rubric, share)
    if rubric.core_no_caps_at is not None and any(check.core and not met[check.id] for check in rubric.checks):
        level = min(level, rubric.core_no_caps_at)
    return Draft(level=level, details={"met_share": share, "checks": met}), quotes


_TARGET = {"unrelated": 1, "adjacent": 2}
_SHARE_LEVELS = ((0.0, 5), (0.25, 4), (0.60, 3))


def settle_sentences(rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt) -> Settled:
    """Answer relevance: what the answer replies to, and the share of its sentences that do not help (a table)."""
    answer, rows, target = item.answer or "", parsed["sentences"], parsed["target"]
    quotes = Quotes.of({})
    if parsed["only_declines"] and rubric.on_refusal != "score":
        draft = refused(rubric)
        flags = _set(refusal_mismatch=refusal_hint(answer) != "refused")
        return Draft(
            status=draft.status, level=draft.level, details=draft.details, reason=draft.reason, flags=flags
        ), quotes
    if not rows:
        return nothing_listed(rubric, answer, parsed["only_declines"], "no_claims"), quotes
    share = sum(not row["on_topic"] for row in rows) / len(rows)
    if target == "exact":
        level = next((level for most, level in _SHARE_LEVELS if share <= most), 2)
    else:
        level = _TARGET.get(target, 3 if share <= 0.5 else 2)
    spans = [normalise(row["span"]) for row in rows]
    left = uncovered(answer, spans)
    labels, _ = known_errors(rubric, {
        "off_topic": target == "unrelated", "adjacent_question": target == "adjacent",
        "padding": share > 0 and target in ("exact", "loose"), "evasive": target == "loose",
    })  # fmt: skip
    repeated = len(set(spans)) < len(spans)
    flags = _set(
        span_failed=not spans_stand_in(answer, spans), uncovered_spans=bool(left), duplicate_spans=repeated,
        refusal_mismatch=parsed["only_declines"],
    )  # fmt: skip
    details = {"off_topic_share": share, "target": target, "n_sentences": len(rows)}
    details |= {"uncovered_spans": left} if left else {}
    level = of_five(rubric.scale, level)
    return Draft(level=level, details=details, errors=labels if level < rubric.scale.max else (), flags=flags), quotes


_NUGGET = {"full": 1.0, "partial": 0.5, "missing": 0.0}
_WEIGHT = {"vital": 1.0, "okay": 0.5}


def settle_nuggets(rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt) -> Settled:
    """Completeness: weighted coverage through bands; a missing vital nugget caps at 3.

    full and partial need a quote that stands in the answer, else the nugget counts as missing. Nuggets given with the
    case keep their importance and must all be judged, once each.
    """
    quotes = Quotes.of({ANSWER: item.answer or ""}, shortest=1)
    rows: Sequence[Mapping[str, Any]] = parsed["nuggets"]
    given = list(item.nuggets or ())
    if given and len(rows) != len(given):
        return _unparsable(f"the reply judges {len(rows)} nuggets, the case gives {len(given)}: each once", quotes)
    if not rows:
        return Draft(status="undefined", reason="no_nuggets"), quotes
    importance = _importances(rows, given)
    verdicts = [_if_quoted(row, quotes, good=("full", "partial"), otherwise="missing") for row in rows]
    weights = [_WEIGHT[name] for name in importance]
    cover = sum(w * _NUGGET[v] for w, v in zip(weights, verdicts, strict=True)) / sum(weights)
    vital = [verdict for verdict, name in zip(verdicts, importance, strict=True) if name == "vital"]
    okay = [verdict for verdict, name in zip(verdicts, importance, strict=True) if name == "okay"]
    labels, _ = known_errors(rubric, {
        "missing_vital_point": "missing" in vital, "missing_minor_point": "missing" in okay,
        "partial_point": "partial" in verdicts,
    })  # fmt: skip
    details = {
        "coverage": cover,
        "vital_strict": ratio(sum(verdict == "full" for verdict in vital), len(vital)),
        "nugget_source": nugget_source(item),
        "checks": _checks(rows, verdicts, "nugget"),
    }
    level = capped(rubric, band(rubric, cover), ("missing" in vital, 3))
    return Draft(level=level, details=details, errors=labels, flags=_downgraded(rows, verdicts)), quotes


def _importances(rows: Sequence[Mapping[str, Any]], given: Sequence[Any]) -> list[str]:
    """The case's own importances where it gave nuggets, matched by text, else by place; the judge's otherwise."""
    if not given:
        return [row["importance"] for row in rows]
    known = {normalise(nugget.nugget): nugget.importance for nugget in given}
    texts = [normalise(row["nugget"]) for row in rows]
    if set(texts) == set(known) and len(set(texts)) == len(texts):
        return [known[text] for text in texts]
    return [nugget.importance for nugget in given]


def _if_quoted(row: Mapping[str, Any], quotes: Quotes, *, good: Sequence[str], otherwise: str) -> str:
    """The verdict, or the one that counts instead when a good verdict has no quote that stands in the answer."""
    verdict: str = row["verdict"]
    if verdict in good:
        return verdict if quotes.holds(row["answer_quote"]) else otherwise
    if row["answer_quote"]:
        quotes.check(row["answer_quote"], ANSWER)
    return verdict


def _downgraded(rows: Sequence[Mapping[str, Any]], verdicts: Sequence[str]) -> tuple[str, ...]:
    return _set(unbacked_verdict=any(row["verdict"] != v for row, v in zip(rows, verdicts, strict=True)))


def _checks(rows: Sequence[Mapping[str, Any]], verdicts: Sequence[str], name: str) -> list[dict[str, Any]]:
    return [
        {name: row[name], "verdict": row["verdict"], "counted": verdict}
        for row, verdict in zip(rows, verdicts, strict=True)
    ]


_FACT = {"matched": 1.0, "partly": 0.5, "missing": 0.0, "conflict": 0.0}


def settle_facts(rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt) -> Settled:
    """Answer correctness: mean match with the facts of the reference, through bands; conflicts cap the level.

    matched and partly need a quote that stands in the answer, else the fact counts as missing. With several accepted
    answers the judge lists the facts of the one that fits best.
    """
    quotes = Quotes.of({ANSWER: item.answer or ""}, shortest=1)
    rows: Sequence[Mapping[str, Any]] = parsed["facts"]
    if not rows:
        reason = "the judge listed no fact of a reference that has text"
        return Draft(status="error", error_kind="no_inventory", reason=reason), quotes
    verdicts = [_if_quoted(row, quotes, good=("matched", "partly"), otherwise="missing") for row in rows]
    match = sum(_FACT[verdict] for verdict in verdicts) / len(rows)
    core_conflict = any(r["role"] == "core" and v == "conflict" for r, v in zip(rows, verdicts, strict=True))
    extra = parsed["extra_conflicts"]
    level = capped(rubric, band(rubric, match), (core_conflict, 2), ("conflict" in verdicts or extra > 0, 3))
    labels, _ = known_errors(rubric, {
        "wrong_fact": "conflict" in verdicts, "missing_fact": "missing" in verdicts,
        "partial_fact": "partly" in verdicts, "extra_conflict": extra > 0,
        "refused_known_answer": level == rubric.scale.min and refusal_hint(item.answer or "") == "refused",
    })  # fmt: skip
    details = {"fact_match": match, "extra_conflicts": extra, "checks": _checks(rows, verdicts, "fact")}
    return Draft(level=level, details=details, errors=labels, flags=_downgraded(rows, verdicts)), quotes


def settle_passages(rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt) -> Settled:
    """Context relevance: share of passages with grade 2 or 3, and whether the set suffices (a table).

    Every passage exactly once. Grades 2 and 3 need a quote from that very passage, else they count as 1; without any
    such passage the set cannot suffice.
    """
    contexts = item.contexts or ()
    quotes = Quotes.of({passage.id: passage.text for passage in contexts}, prompt.aliases)
    rows: Sequence[Mapping[str, Any]] = parsed["passages"]
    given = Counter(prompt.aliases.get(row["id"], row["id"]) for row in rows)
    if given != Counter(passage.id for passage in contexts):
        seen = [row["id"] for row in rows]
        return _unparsable(f"the reply grades passages {seen}, the case has {len(contexts)}: each exactly once", quotes)
    if not contexts:
        return Draft(status="undefined", reason="no_contexts"), quotes
    grades = {}
    for row in rows:
        backed = row["grade"] < 2 or quotes.holds(row["quote"], row["id"])
        grades[prompt.aliases.get(row["id"], row["id"])] = row["grade"] if backed else 1
    useful = [grade for grade in grades.values() if grade >= 2]
    precision = len(useful) / len(grades)
    sufficiency = parsed["sufficiency"] if useful else "none"
    if sufficiency == "full":
        level = 5 if precision >= 0.75 else 4 if precision >= 0.34 else 3
    else:
        level = {"partial": 3 if precision >= 0.5 else 2, "none": 1}[sufficiency]
    texts = [" ".join(passage.text.casefold().split()) for passage in contexts if passage.text.strip()]
    labels, _ = known_errors(rubric, {
        "irrelevant_passage": len(useful) < len(grades), "duplicate_passage": len(set(texts)) < len(texts),
        "insufficient_context": sufficiency != "full",
    })  # fmt: skip
    details = {"passage_precision": precision, "sufficiency": sufficiency, "grades": grades}
    flags = _set(unbacked_verdict=sufficiency != parsed["sufficiency"] or any(
        grades[prompt.aliases.get(row["id"], row["id"])] != row["grade"] for row in rows
    ))  # fmt: skip
    return Draft(level=of_five(rubric.scale, level), details=details, errors=labels, flags=flags), quotes


def settle_matrix(rubric: Rubric, item: Item, parsed: Mapping[str, Any], prompt: Prompt) -> Settled:
    """Refusal correctness: what the passages allow against what the answer did (a table of 3 x 5).

    The case's own `answerable` overrides the judge's; without passages it is no. An empty answer is `empty` whatever
    the judge says. With `memory_allowed` answering from memory earns 4.
    """
    judged: str = parsed["answerable"]
    if item.answerable:
        answerable, source = item.answerable, "gold"
    elif item.contexts is not None and not has_passages(item):
        answerable, source = "no", "no_contexts"
    else:
        answerable, source = judged, "judge"
    behaviour: str = "empty" if degenerate(item.answer) else parsed["behaviour"]
    level, label = REFUSAL_TABLE[answerable][behaviour]
    if rubric.memory_allowed and (answerable, behaviour) == ("no", "answered"):
        level, label = 4, "answered_from_memory"
    hint = refusal_hint(item.answer or "")
    flags = _set(
        answerable_mismatch=answerable != judged,
        refusal_mismatch=(hint == "refused") != (behaviour == "refused") and behaviour != "empty",
    )
    details = {
        "answerable": answerable, "behaviour": behaviour, "label": label, "answerable_source": source,
        "answerable_judged": judged, "behaviour_hint": hint, "binary": level >= 4,
    }  # fmt: skip
    errors, _ = known_errors(rubric, {label: True})
    return Draft(level=of_five(rubric.scale, level), details=details, errors=errors, flags=flags), Quotes.of({})
