"""The page of a comparison: what may be said, the counts, how the judge behaved under swapping, slices, examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.lines import read_lines
from judge.report.page import Section, brief, counted, estimated, figure, markdown
from judge.report.scores import STOPPED, totals_section
from judge.report.swapping import second_order, swapping
from judge.runs import manifest, rows

EXAMPLES = 5
COUNTS = {
    "n": "pairs", "a_wins": "A wins", "b_wins": "B wins", "ties": "ties", "both_fail": "both fail",
    "inconsistent": "contradicted", "incomplete": "incomplete",
}  # fmt: skip
NEVER = {"score": ("both_fail", "inconsistent")}
DECIDED = {
    "full": "contradicted: the two orders name different winners; it counts half a win for each, as a tie does",
    "quick": "each pair is decided by the mean probability over both orders",
    "score": "each pair is decided by its ratings averaged over both orders and all repeats: half a level or more is "
    "a win, less is a tie; orders that contradict each other are weighed in that mean",
}


def sections(run: Path, summary: Mapping[str, Any]) -> list[Section]:
    """The page as values; `summary` is the content of summary.json."""
    made = manifest(run)
    several = summary.get("comparisons")
    comparisons = several or [summary]
    return [
        Section("Conclusion", notes=[note for one in comparisons for note in _concluded(one, several)]),
        _results(comparisons, summary, made),
        *([_ratings(summary["ratings"])] if several else []),
        *(section for one in comparisons for section in _details(one, several)),
        *_examples(run, made["judge"]["mode"]),
        *_warnings(summary),
        totals_section(summary, made, "comparisons"),
    ]


def write(run: Path, summary: Mapping[str, Any]) -> None:
    """Writes summary.md beside summary.json."""
    (run / "summary.md").write_text(markdown(f"Comparison: {run.name}", sections(run, summary)), encoding="utf-8")


def _concluded(one: Mapping[str, Any], several: object) -> list[str]:
    name = f"{one['a']} against {one['b']}: " if several else ""
    return [name + one["conclusion"]["text"], *one["conclusion"]["cautions"]]


def _results(comparisons: list[Mapping[str, Any]], summary: Mapping[str, Any], made: Mapping[str, Any]) -> Section:
    judge = made["judge"]
    counts = {name: words for name, words in COUNTS.items() if name not in NEVER.get(judge["mode"], ())}
    columns = ["A", "B", *counts.values(), "win rate of A", "p"]
    lines = [
        [one["a"], one["b"], *(str(one[name]) for name in counts), estimated(one["win_rate_a"], percent=True),
         figure(one["p_value"], 3)]
        for one in comparisons
    ]  # fmt: skip
    rubric = made["rubrics"][summary["rubric"]]
    notes = [
        f"criterion: {rubric['id']} {rubric['version']}, {rubric['title']}",
        DECIDED[judge["mode"]],
        "p: sign test on the wins; the interval is clustered by question",
    ]
    for one in comparisons:
        if judge["mode"] == "score":
            notes.append(_short(one) + _ratings_of(one))
        if one["identical"]:
            notes.append(f"{_short(one)}{one['identical']} pairs with the same answer are ties without a call")
        if one["reasons"]:
            notes.append(f"{_short(one)}incomplete because: {counted(one['reasons'])}")
    if summary["n_lines_gone"]:
        notes.append(f"{summary['n_lines_gone']} comparisons of earlier invocations are not part of this one: left out")
    once = sum(one["second_order"]["saved_calls"] for one in comparisons if one.get("second_order"))
    orders = f"both orders, {once} pairs in one" if once else "both orders"
    return Section(f"Result, judged by {judge['model']} ({judge['mode']} mode), {orders}", columns, lines, notes)


def _ratings_of(one: Mapping[str, Any]) -> str:
    low, high = one["scale"]
    return (
        f"mean rating ({low}-{high}): {one['a']} {estimated(one['mean_rating_a'])}, {one['b']} "
        f"{estimated(one['mean_rating_b'])}; {one['a']} minus {one['b']}: {estimated(one['mean_difference'])} on "
        f"{one['mean_difference']['n']} of {one['n']} pairs"
    )


def _short(one: Mapping[str, Any]) -> str:
    return f"{one['a']}/{one['b']}: "


def _details(one: Mapping[str, Any], several: object) -> Iterator[Section]:
    name = f" ({one['a']} against {one['b']})" if several else ""
    yield Section(f"The judge under swapping{name}", notes=list(swapping(one)))
    if one.get("second_order"):
        yield Section(f"The second order{name}", notes=list(second_order(one)))
    if one["length"]["coefficient"]["value"] is not None:
        yield Section(f"Length{name}", notes=list(_length(one)))
    if one["slices"]:
        yield _slices(one, name)
    if one["human"]:
        yield Section(f"Against people{name}", notes=list(_human(one)))


def _length(one: Mapping[str, Any]) -> Iterator[str]:
    found = one["length"]
    yield f"the longer answer wins {estimated(found['longer_wins'], percent=True)} of the decided pairs"
    yield f"coefficient of length (logit per standard deviation of the difference): {estimated(found['coefficient'])}"
    yield f"win rate of {one['a']} at equal length: {estimated(found['win_rate_a'], percent=True)}"
    yield "a longer answer may also be a better one: this is an association, not proof of a bias"


def _slices(one: Mapping[str, Any], name: str) -> Section:
    lines = [
        [part["slice"], *(str(part[count]) for count in ("n", "a_wins", "b_wins", "ties")),
         estimated(part["win_rate_a"], percent=True), figure(part["p_holm"], 3)]
        for part in one["slices"]
    ]  # fmt: skip
    columns = ["slice", "pairs", "A wins", "B wins", "ties", "win rate of A", "p (Holm)"]
    return Section(f"By slice{name}", columns, lines, ["p after Holm over the slices shown"])


def _human(one: Mapping[str, Any]) -> Iterator[str]:
    found = one["human"]
    kept, decided = found["with_ties"], found["without_ties"]
    yield f"agreement, ties kept: {estimated(kept, percent=True)} of {kept['n']} pairs"
    yield (
        f"agreement where neither says tie: {estimated(decided, percent=True)} of {decided['n']} pairs "
        "(the easier ones, so higher)"
    )
    yield f"kappa, linear on a < tie < b: {estimated(found['kappa_linear'])}"
    yield f"ties, judge minus people: {estimated(found['tie_rate_difference'], percent=True)}"
    if one["corrected"] and "reason" in one["corrected"]:
        yield f"no corrected win rate: {one['corrected']['reason']}"
    elif one["corrected"]:
        yield (
            f"win rate of {one['a']} that people would give ({one['corrected']['method']}): "
            f"{estimated(one['corrected']['corrected'], percent=True)}"
        )
    else:
        yield "no corrected win rate: say --label-design random if the labelled pairs are a random sample of these"


def _ratings(ratings: list[Mapping[str, Any]]) -> Section:
    lines = [[one["system"], estimated(one["rating"]), _rank(one)] for one in ratings]
    warnings = dict.fromkeys(text for one in ratings for text in one["rating"]["warnings"])
    notes = ["logit around the mean of all systems, ties by Davidson's model, intervals clustered by question"]
    return Section("Ratings", ["system", "rating", "rank"], lines, [*notes, *(w.replace("_", " ") for w in warnings)])


def _rank(one: Mapping[str, Any]) -> str:
    low, high = one["rank_low"], one["rank_high"]
    return figure(one["rank"], 0) if low is None else f"{one['rank']} [{low}-{high}]"


def _examples(run: Path, mode: str) -> list[Section]:
    """Pairs to look at: contradictions first, then clear wins, with the judge's decisive difference (not quick)."""
    wanted = [row for row in rows(run, "comparisons.jsonl") if row["outcome"] in ("a", "b") or _contradicts(row, mode)]
    wanted.sort(key=lambda row: (not _contradicts(row, mode), -_clear(row)))
    first: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for row in wanted:
        first.setdefault((row["case_id"], row["a"], row["b"]), row)
    some = [row for row in first.values() if _contradicts(row, mode)][:EXAMPLES]
    some += [row for row in first.values() if not _contradicts(row, mode)][:EXAMPLES]
    if not some:
        return []
    keys = {row["calls"][0]["key"] for row in some}
    said = {row["key"]: (row["parsed"] or {}).get("decisive_difference") for _, row in read_lines(run / "replies.jsonl")
            if row["key"] in keys}  # fmt: skip
    lines = [
        [row["case_id"], row[row["outcome"]] if row["outcome"] in ("a", "b") else "contradicted",
         " / ".join(_verdict(row, call) for call in row["calls"]) + (", one order" if "second_order" in row else ""),
         brief(said.get(row["calls"][0]["key"]), 70)]
        for row in some
    ]  # fmt: skip
    columns = ["case", "winner", "order 1 / order 2", "decisive, says the first call"]
    if mode == "quick":
        columns, lines = columns[:3], [line[:3] for line in lines]
    hint = f"look inside one: judge show {run} {some[0]['case_id']}"
    return [Section("Pairs to look at", columns, lines, [hint])]


def _contradicts(row: Mapping[str, Any], mode: str) -> bool:
    """Whether the orders name different winners; where ratings are averaged the outcome alone does not tell."""
    return row["outcome"] == "inconsistent" or (mode == "score" and {c["winner"] for c in row["calls"]} == {"a", "b"})


def _clear(row: Mapping[str, Any]) -> float:
    """How clear a win is: the rating difference, or whether every order calls it clear."""
    if row.get("difference") is not None:
        return abs(float(row["difference"]))
    return float(all(call["margin"] == "clear" for call in row["calls"]))


def _verdict(row: Mapping[str, Any], call: Mapping[str, Any]) -> str:
    name = row[call["winner"]] if call["winner"] in ("a", "b") else call["winner"]
    if call.get("ratings"):
        return f"{name} ({call['ratings']['a']} to {call['ratings']['b']})"
    return f"{name} ({call['margin']})" if call["p_first"] is None else f"{name} ({call['p_first']:.2f} first)"


def _warnings(summary: Mapping[str, Any]) -> list[Section]:
    notes = [*([STOPPED] if summary.get("stopped") else []), *summary.get("warnings", [])]
    return [Section("Mind", notes=notes)] if notes else []
