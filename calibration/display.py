"""Statistics as lines for a terminal: value, interval and n together, codes in words."""

from __future__ import annotations

from typing import Any

WORDS = {
    "single_class": "both raters used one and the same label",
    "constant_input": "a rater gave everything the same label",
    "n_below_10": "fewer than 10 items: a point, no interval and no verdict",
    "no_data": "no item with both labels",
    "scale_not_declared": "needs the ordered scale: declare it with --scale",
    "nominal_scale": "needs an ordered scale",
    "empty_denominator": "no item of that kind",
    "empty_margin": "a label that one side never used",
    "zero_variance": "every value is the same: no interval can be computed",
    "small_sample": "fewer than 30 items: wide and rough intervals",
    "perfect_agreement_small_sample": "perfect agreement on fewer than 100 items is weak evidence",
    "judge_constant": "the judge gave everything the same label",
    "human_constant": "the people gave everything the same label",
    "prevalence_paradox": "one label dominates: kappa is low although agreement is high; label more of the rare one",
    "word_scale_counted_in_steps": "the scale is words: distances count steps",
    "degenerate_resamples": "over 5% of resamples had no value: distrust the interval",
    "zero_residual_variance": "judge and labels never differ (or by a constant): the labels alone are reported",
    "judge_not_better_than_chance": "the judge is not surely better than chance: nothing to correct with",
    "no_interval_for_clusters": "items share clusters, for which this method has no interval: take one per cluster, or "
    "label a random sample of the judged items",
    "one_cluster": "all in one cluster: no interval can be computed",
    "one_cluster_of_labels": "all labels are in one cluster: label items of others",
    "few_clusters": "fewer than 15 clusters: intervals cover less than they say",
    "too_few_clusters_to_tune": "fewer than 20 clusters with labels: the judge is not used",
    "one_class_labels": "labels of both classes are needed",
    "out_of_range": "the corrected rate leaves 0..1: the judge errs differently here than on the labelled items",
    "no_unlabelled_items": "every judged item is labelled: nothing to correct",
    "no_eligible_rater": "nobody labelled 30 items that the judge and another person labelled too",
    "one_human": "needs two people on the same items",
    "fewer_than_3_raters": "fewer than three people could be tested: weak evidence",
    "low_human_agreement": "people agree little among themselves, so they are easy to replace: lower epsilon",
    "deterministic": "the repeats never differ (temperature 0, or a cache): this is no evidence of reliability",
    "icc_not_positive": "the repeats of an item differ as much as items do",
    "no_repeats": "no item has two repeats",
    "no_human_label": "name the person to compare with",
    "no_pass_mark": "give a pass mark",
    "few_anchors": "fewer than 100 anchor items: most verdicts will be inconclusive",
    "more_judged_items_needed": "more labels alone cannot halve the interval: judge more items too",
}


def lines(document: dict[str, Any]) -> list[str]:
    """One line per number of a JSON document of this package, names joined by dots, indented under their heading."""
    found: list[str] = []
    for name, value in document.items():
        _add(found, name, value)
    return found


def _add(found: list[str], name: str, value: Any) -> None:
    if isinstance(value, dict) and {"value", "ci_low", "status"} <= set(value):
        found.append(f"{name:<34} {estimate_text(value)}")
    elif isinstance(value, dict) and {"labels", "table"} == set(value):
        width = max(len(label) for label in value["labels"]) + 2
        found.append(f"{name} (rows judge, columns human)")
        found.append(" " * width + "".join(f"{label:>8}" for label in value["labels"]))
        for label, row in zip(value["labels"], value["table"], strict=True):
            found.append(f"{label:<{width}}" + "".join(f"{cell:>8}" for cell in row))
    elif name == "items" and isinstance(value, list):
        found.append(f"{name:<34} {len(value)}, each in the document of --json")
    elif name == "too_few_items":
        most = max(value, key=lambda rater: value[rater], default=None)
        if most is not None:
            found.append(f"{name:<34} {len(value)} people not tested, with at most {value[most]} items ({most})")
    elif isinstance(value, dict):
        for key, item in value.items():
            _add(found, f"{name}.{key}", item)
    elif name == "warnings":
        found.extend(f"warning: {in_words(code)}" for code in value)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for item in value:
            _add(found, f"{name}.{next(iter(item.values()))}", dict(list(item.items())[1:]))
    elif value != []:
        found.append(f"{name:<34} {_plain(value)}")


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value + 0.0:.4g}"  # -0.0 is 0
    return ", ".join(map(_plain, value)) if isinstance(value, list) else "-" if value is None else str(value)


def estimate_text(estimate: dict[str, Any]) -> str:
    """`0.478 [0.146, 0.809] on 40`, with what was dropped and why something is missing."""
    dropped = f", {estimate['n_dropped']} dropped" if estimate["n_dropped"] else ""
    if estimate["value"] is None:
        return f"undefined ({in_words(estimate['reason'])})"
    interval = "" if estimate["ci_low"] is None else f" [{estimate['ci_low']:.3f}, {estimate['ci_high']:.3f}]"
    why = f" ({in_words(estimate['reason'])})" if estimate["reason"] else ""
    return f"{estimate['value']:.3f}{interval} on {estimate['n']}{dropped}{why}"


def in_words(code: str) -> str:
    """A reason or warning code as a phrase; details after a colon are kept."""
    head, _, detail = code.partition(":")
    return WORDS.get(head, head.replace("_", " ")) + (f":{detail}" if detail else "")
