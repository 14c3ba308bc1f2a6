"""The retrieval measures: matched slots become sums at every cut-off in one pass, sums become measures.

Every measure of a query is numerator / denominator, so that the macro mean (of the ratios) and the micro mean (ratio
of the sums) come from the same two numbers. Arrays have shape (m + 1, n): m cut-offs, then the whole list; n queries.
Definitions: trec_eval (Buckley and Voorhees); NDCG: Jarvelin and Kekalainen 2002, discount log2(rank + 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from judge.errors import InputError
from judge.retrieval.options import Options
from judge.retrieval.slots import BoolArray, FloatArray, IntArray, Matched, Slots, places


@dataclass(slots=True)
class Sums:
    """What the lists hold up to each cut-off; all but the last four have shape (m + 1, n).

    found: labels. relevant: relevant items. hit, reciprocal: 1 and 1/rank of the first found label. steps: items
    that found something new. precision_sum: sum of precision at the steps; precision_mean: the same per step.
    dcg, ideal_dcg, judged, covered, redundant: see `Matched`. limit: slots available, min(k, n).
    cut: (m + 1, 1) the cut-offs, the last one infinite. total, units: (n,) labels and ideal units that count as
    relevant. positive: (n,) whether any grade is above 0.
    """

    found: FloatArray
    relevant: FloatArray
    hit: FloatArray
    reciprocal: FloatArray
    steps: FloatArray
    precision_sum: FloatArray
    precision_mean: FloatArray
    dcg: FloatArray
    ideal_dcg: FloatArray
    judged: FloatArray
    covered: FloatArray
    redundant: FloatArray
    limit: FloatArray
    cut: FloatArray
    total: FloatArray
    units: FloatArray
    positive: BoolArray


def gains(grade: FloatArray, gain: str) -> FloatArray:
    """Gain of a grade: the grade itself or 2^grade - 1; 0 for grades below 0."""
    grade = np.maximum(grade, 0.0)
    if gain == "linear":
        return grade
    with np.errstate(over="ignore"):
        grown = np.exp2(grade) - 1
    if not np.isfinite(grown).all():
        raise InputError(f"grade {grade.max():g} is too large for gain=exponential (2^grade - 1): use gain=linear")
    return grown


def sums(matched: Matched, k: tuple[int, ...], options: Options) -> Sums:
    """All sums of all queries at all cut-offs."""
    n, m = matched.n, len(k)
    bounds: IntArray = np.array(k, dtype=np.int64)

    placed: list[tuple[Slots, IntArray]] = []

    def cells(events: Slots) -> IntArray:
        for known, places_of_known in placed:
            if known is events:
                return places_of_known
        placed.append((events, np.searchsorted(bounds, events.rank) * n + events.row))
        return placed[-1][1]

    def upto(events: Slots, weights: FloatArray | None = None) -> FloatArray:
        counts = np.bincount(cells(events), weights=weights, minlength=n * (m + 1))
        return counts.reshape(m + 1, n).cumsum(axis=0, dtype=np.float64)

    def binary(events: Slots) -> Slots:
        return events.where(events.grade >= options.rel_level)

    def discounted(events: Slots) -> FloatArray:
        return upto(events, gains(events.grade, options.gain) / np.log2(events.rank + 1.0))

    found = binary(matched.found)
    first = found.where(places(found.row, n) == 0)
    steps = found if matched.gains is matched.found else binary(matched.gains)
    found_sum = upto(found)
    step_sum = found_sum if steps is found else upto(steps)
    precision_sum = upto(steps, (places(steps.row, n) + 1.0) / steps.rank)
    labels, ideal = binary(matched.labels), binary(matched.ideal)
    cut = np.append(bounds.astype(np.float64), np.inf)[:, None]
    covered = np.zeros((m + 1, n))
    if matched.covered is not None:
        events, shares = matched.covered
        covered = upto(events.where(events.grade >= options.rel_level), shares[events.grade >= options.rel_level])
    redundant = upto(binary(matched.redundant)) if matched.redundant is not None else covered
    return Sums(
        found=found_sum,
        relevant=found_sum if matched.relevant is matched.found else upto(binary(matched.relevant)),
        hit=upto(first),
        reciprocal=upto(first, 1.0 / first.rank),
        steps=step_sum,
        precision_sum=precision_sum,
        precision_mean=ratio(precision_sum, step_sum, empty=0.0),
        dcg=discounted(matched.gains),
        ideal_dcg=discounted(matched.ideal),
        judged=upto(matched.judged),
        covered=covered,
        redundant=redundant,
        limit=np.minimum(cut, matched.lengths),
        cut=cut,
        total=np.bincount(labels.row, minlength=n).astype(np.float64),
        units=np.bincount(ideal.row, minlength=n).astype(np.float64),
        positive=np.bincount(matched.labels.row[matched.labels.grade > 0], minlength=n) > 0,
    )


def ratio(numerator: FloatArray, denominator: FloatArray, empty: float = np.nan) -> FloatArray:
    """numerator / denominator, `empty` where the denominator is 0; NaN stays inside this package."""
    result = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), empty)
    np.divide(numerator, denominator, out=result, where=np.broadcast_to(denominator, result.shape) > 0)
    return result


Parts = tuple[FloatArray, FloatArray]


def precision(s: Sums, options: Options) -> Parts:
    """Relevant items among the first k slots / k; missing slots count as not relevant."""
    return s.relevant, s.limit if options.precision_denominator == "retrieved" else s.cut


def recall(s: Sums, options: Options) -> Parts:
    """Labels found in the first k slots / all relevant labels."""
    return s.found, np.minimum(s.total, s.cut) if options.recall_denominator == "min_relevant_k" else s.total


def hit_rate(s: Sums, options: Options) -> Parts:
    """1 when the first k slots find any label."""
    return s.hit, np.ones(1)


def rr(s: Sums, options: Options) -> Parts:
    """1 / rank of the first found label; 0 beyond the cut."""
    return s.reciprocal, np.ones(1)


def ap(s: Sums, options: Options) -> Parts:
    """Sum of the precision at each slot that finds something new / what could be found."""
    if options.ap_denominator == "retrieved_relevant":
        return context_precision(s, options)
    return s.precision_sum, np.minimum(s.units, s.cut) if options.ap_denominator == "min_relevant_k" else s.units


def dcg(s: Sums, options: Options) -> Parts:
    """Sum of gain / log2(rank + 1): not bounded by 1."""
    return s.dcg, np.ones(1)


def ndcg(s: Sums, options: Options) -> Parts:
    """DCG / DCG of the best possible list, both cut at k."""
    return s.dcg, s.ideal_dcg


def judged(s: Sums, options: Options) -> Parts:
    """Items with a label of grade 0 or more among the first min(k, n) / min(k, n)."""
    return s.judged, s.limit


def coverage(s: Sums, options: Options) -> Parts:
    """Mean share of each relevant label that the first k items cover together."""
    return s.covered, s.total


def redundancy(s: Sums, options: Options) -> Parts:
    """Relevant items that add no new part of any label / k."""
    return s.redundant, precision(s, options)[1]


def context_recall(s: Sums, options: Options) -> Parts:
    """Labels found in the whole list / all relevant labels."""
    return s.found, s.total


def context_precision(s: Sums, options: Options) -> Parts:
    """AP over what was retrieved: divided by the relevant items of the list, blind to what is missing."""
    return s.precision_mean * s.steps, s.steps


def context_precision_set(s: Sums, options: Options) -> Parts:
    """Relevant items of the list / items of the list."""
    return s.relevant, s.limit


Family = Callable[[Sums, Options], Parts]

AT_K: dict[str, Family] = {
    "precision": precision, "recall": recall, "hit_rate": hit_rate, "rr": rr, "ap": ap, "dcg": dcg, "ndcg": ndcg,
    "judged": judged,
}  # fmt: skip
AT_K_PASSAGES: dict[str, Family] = {"coverage": coverage, "redundancy": redundancy}
WHOLE_LIST: dict[str, Family] = {
    "rr": rr, "ap": ap, "ndcg": ndcg, "context_precision": context_precision, "context_recall": context_recall,
    "context_precision_set": context_precision_set,
}  # fmt: skip
FAMILIES = AT_K | AT_K_PASSAGES | WHOLE_LIST
GRADED = {"dcg", "ndcg"}
UNBOUNDED = {"dcg"}
MEAN_NAMES = {"mrr": "rr", "map": "ap"}


def blank_rows(name: str, s: Sums) -> BoolArray:
    """The queries for which a measure has nothing to find, shape (n,)."""
    nothing: BoolArray = s.total == 0
    if name == "ndcg":
        return ~s.positive
    return nothing & ~s.positive if name in ("dcg", "judged") else nothing


def column_values(name: str, s: Sums, options: Options) -> FloatArray:
    """Values of a measure, (m + 1, n); NaN where undefined."""
    to_zero = name == "context_precision" or (name == "ap" and options.ap_denominator == "retrieved_relevant")
    values = ratio(*FAMILIES[name](s, options), empty=0.0 if to_zero else np.nan)
    if options.empty_labels != "zero":
        values[:, blank_rows(name, s)] = np.nan
    elif name != "judged":
        values[:, blank_rows(name, s)] = 0.0
    return values
