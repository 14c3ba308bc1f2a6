"""Equal scores: an order that does not depend on luck, or the expected value over all orders of the tied items.

Expected values: McSherry and Najork 2008 (Computing information retrieval performance measures efficiently in the
presence of tied scores), here also for hit rate, reciprocal rank and the AP denominators.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from judge.retrieval.inputs import Ranked
from judge.retrieval.measures import Sums, gains
from judge.retrieval.options import Options
from judge.retrieval.slots import FloatArray, TieGroup


def docid_desc(ranked: Ranked) -> Ranked:
    """From the highest score down, equal scores by id from the highest code point down (trec_eval)."""
    pairs = sorted(zip(ranked.ids, ranked.scores, strict=True), key=lambda p: (p[1], p[0]), reverse=True)
    return Ranked([i for i, _ in pairs], [s for _, s in pairs])


def expect(s: Sums, row: int, groups: Sequence[TieGroup], options: Options) -> None:
    """Replace the sums of one query by their expectation when every order of a tied group is equally likely."""
    depth = sum(group.size for group in groups)
    cuts = [int(min(cut, depth)) for cut in s.cut[:, 0]]
    step, precision, gained, judged, hit, mean = np.zeros((6, depth + 1))
    start = before = 0
    for group in groups:
        place = np.arange(1, group.size + 1)
        rank = start + place
        relevant = sum(grade >= options.rel_level for grade in group.grades)
        step[rank] = relevant / group.size
        precision[rank] = step[rank] * steps_so_far(before, relevant, group.size) / rank
        gained[rank] = gains(np.array(group.grades), options.gain).sum() / group.size / np.log2(rank + 1.0)
        judged[rank] = sum(grade >= 0 for grade in group.grades) / group.size
        if before == 0:
            misses = np.array([missing(relevant, group.size, drawn) for drawn in range(group.size + 1)])
            hit[rank] = misses[:-1] - misses[1:]
        for cut in {cut for cut in cuts if start < cut <= start + group.size}:
            sum_before = float(precision[: start + 1].sum())
            mean[cut] = mean_precision(start, before, sum_before, group.size, relevant, cut - start)
        before += relevant
        start += group.size
    ranks = np.maximum(np.arange(depth + 1), 1)
    s.found[:, row] = s.relevant[:, row] = s.steps[:, row] = step.cumsum()[cuts]
    s.precision_sum[:, row], s.precision_mean[:, row] = precision.cumsum()[cuts], mean[cuts]
    s.dcg[:, row], s.judged[:, row] = gained.cumsum()[cuts], judged.cumsum()[cuts]
    s.hit[:, row], s.reciprocal[:, row] = hit.cumsum()[cuts], (hit / ranks).cumsum()[cuts]


def steps_so_far(before: int, relevant: int, size: int) -> FloatArray:
    """Expected relevant items up to each place of a group, given that the place itself is relevant."""
    others = np.arange(size) * (relevant - 1) / (size - 1) if size > 1 else np.zeros(size)
    return before + 1 + others


def missing(relevant: int, size: int, drawn: int) -> float:
    """Probability that the first `drawn` of a shuffled group hold nothing relevant."""
    return comb(size - relevant, drawn) / comb(size, drawn)


def mean_precision(start: int, before: int, sum_before: float, size: int, relevant: int, drawn: int) -> float:
    """Expected mean precision over the relevant items up to the `drawn`-th place of a group.

    Sums over m, the relevant items among those places: hypergeometric, and given m every arrangement is equally
    likely, so the group looks like one of size `drawn` with m relevant items.
    """
    ranks = start + np.arange(1, drawn + 1)
    expected = 0.0
    for m in range(max(0, drawn - (size - relevant)), min(relevant, drawn) + 1):
        if before + m == 0:
            continue
        chance = comb(relevant, m) * comb(size - relevant, drawn - m) / comb(size, drawn)
        within = float((m / drawn * steps_so_far(before, m, drawn) / ranks).sum()) if m else 0.0
        expected += chance * (sum_before + within) / (before + m)
    return expected
