"""The commands about replacing people, repeating a judge, changing, recalibrating and joining judges."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from typing import Any

from calibration.errors import CalibrationError

Declared = Callable[[argparse.Namespace], Any]
LEVELS = ("nominal", "ordinal", "interval")
LEVELS_HELP = "what the labels of --scale are: names, an order, or numbers with distances (default ordinal)"


def seed_number(text: str) -> int:
    """A seed: a whole number from 0."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 0")
    return int(text)


def add_commands(verbs: Any, scale_of: Declared) -> None:
    """Add the parsers; each sets `run`, a function from options to a JSON document."""
    one = verbs.add_parser("alt-test", help="may the judge stand in for one of the people")
    one.add_argument("ratings", help="CSV: item,rater,label[,cluster], or one column per rater")
    one.add_argument(
        "--epsilon",
        type=float,
        required=True,
        help="what a person costs more than the judge, in win rate: experts .2, skilled .15, crowd .1",
    )
    one.add_argument("--judge", help="the judge's rater or column (default: judge)")
    one.add_argument("--human", help="the humans, comma-separated (default: all others)")
    one.add_argument("--item", default="item", help="the id column of a wide table")
    one.add_argument(
        "--scoring",
        choices=("accuracy", "neg_rmse"),
        help="same label, or nearness of marks (default: neg_rmse on a declared scale of three labels or more)",
    )
    one.add_argument("--q", type=float, default=0.05, help="false discovery rate over the people (default 0.05)")
    one.set_defaults(run=lambda options: alt_test(options, scale_of(options)))

    two = verbs.add_parser("reliability", help="does the judge agree with itself over repeats")
    two.add_argument("repeats", help="CSV: item,repeat,label")
    two.add_argument("--pass-at", type=float, help="pass mark, such as 4: adds the share of items that flip across it")
    two.add_argument("--target", type=float, default=0.95, help="reliability wanted (default 0.95)")
    two.set_defaults(run=lambda options: reliability(options, scale_of(options)))

    three = verbs.add_parser("drift", help="has the judge changed on a frozen anchor set")
    three.add_argument("old", help="CSV: item,score[,cluster]")
    three.add_argument("new", help="CSV: item,score")
    three.add_argument("--anchor", required=True, help="CSV: item,label, given by people")
    three.add_argument("--margin", type=float, help="harmless mean shift (default 5%% of the scale's range)")
    three.add_argument("--kappa-margin", type=float, default=0.1, help="harmless change of kappa (default 0.1)")
    three.add_argument("--looks", type=int, default=1, help="looks planned in all; each spends its share of the error")
    three.add_argument("--earlier", help="p of the looks before this one, comma-separated, as each of them printed it")
    three.set_defaults(run=lambda options: drift(options, scale_of(options)))

    four = verbs.add_parser("panel", help="several judges on the same items: what they are worth together")
    four.add_argument("ratings", help="CSV: item,rater,label[,cluster], or one column per rater")
    four.add_argument("--judges", required=True, help="two raters or more, comma-separated")
    four.add_argument("--human", help="the person or gold label to compare with")
    four.add_argument("--item", default="item", help="the id column of a wide table")
    four.add_argument("--dawid-skene", action="store_true", help="also latent labels; assumes independent errors")
    four.set_defaults(run=lambda options: panel(options, scale_of(options)))

    five = verbs.add_parser("recalibrate", help="what people would say to each item, and whether that holds elsewhere")
    five.add_argument("--judged", required=True, help="CSV: item,score[,cluster]")
    five.add_argument("--labels", required=True, help="CSV: item,label of a random sample of the judged items")
    five.add_argument("--target", help="CSV: item,score,label[,cluster][,system], a random sample from elsewhere")
    five.add_argument("--margin", type=float, help="harmless mean error on the target (default 5%% of the scale)")
    five.set_defaults(run=lambda options: recalibrate(options, scale_of(options)))

    for verb in (one, two, three, four, five):
        verb.add_argument("--level", default="ordinal", choices=LEVELS, help=LEVELS_HELP)
        verb.add_argument("--scale", help="ordered labels, lowest first: 1,2,3,4,5 or a JSON array")
        verb.add_argument("--seed", type=seed_number, default=0, help="seed of the resampling (default 0)")
        verb.add_argument("--json", action="store_true", help="one JSON document on standard output")


def alt_test(options: argparse.Namespace, scale: Any) -> dict[str, Any]:
    from calibration.agreement import as_json
    from calibration.ratings import read_ratings
    from calibration.replacement import alt_test as tested

    humans = [name.strip() for name in options.human.split(",")] if options.human else None
    raters = [options.judge or "judge", *humans] if humans else None
    ratings = read_ratings(options.ratings, scale=scale, raters=raters, item=options.item)
    choice: dict[str, Any] = {"judge": options.judge, "humans": humans, "scoring": options.scoring, "q": options.q}
    document: dict[str, Any] = as_json(tested(ratings, epsilon=options.epsilon, seed=options.seed, **choice))
    return document


def reliability(options: argparse.Namespace, scale: Any) -> dict[str, Any]:
    from calibration.agreement import as_json
    from calibration.ratings import ratings_of, read_table
    from calibration.reliability import repeats_of

    frame = read_table(options.repeats)
    missing = [name for name in ("item", "repeat", "label") if name not in frame.columns]
    if missing:
        raise CalibrationError(
            f"{options.repeats}: no column {missing[0]!r} among {', '.join(frame.columns)}; "
            "give one row per judgment: item,repeat,label"
        )
    ratings = ratings_of(list(frame["item"]), list(frame["repeat"]), list(frame["label"]), scale=scale)
    document: dict[str, Any] = as_json(repeats_of(ratings, pass_mark=options.pass_at, target=options.target))
    return document


def drift(options: argparse.Namespace, scale: Any) -> dict[str, Any]:
    from calibration.agreement import as_json
    from calibration.drift import drift as compared
    from calibration.values import read_labels

    old, clusters = read_labels(options.old, ("score", "label", "value"))
    new, _ = read_labels(options.new, ("score", "label", "value"))
    anchor, _ = read_labels(options.anchor, ("label", "score", "value"))
    margins: dict[str, Any] = {"margin": options.margin, "kappa_margin": options.kappa_margin}
    found = compared(
        old, new, anchor, scale=scale, clusters=clusters, looks=options.looks, earlier=p_values(options.earlier),
        seed=options.seed, **margins,
    )  # fmt: skip
    document: dict[str, Any] = as_json(found)
    return document


def p_values(text: str | None) -> list[float]:
    """Comma-separated p values."""
    try:
        return [float(part) for part in text.split(",")] if text else []
    except ValueError:
        raise CalibrationError(f"--earlier {text!r}: give p values separated by commas, such as .2,.04") from None


def recalibrate(options: argparse.Namespace, scale: Any) -> dict[str, Any]:
    from calibration.agreement import as_json
    from calibration.recalibration import recalibrate as fitted
    from calibration.values import clusters_of_both, read_values

    judged, labels = (
        read_values(options.judged, "score", scale=scale),
        read_values(options.labels, "label", scale=scale),
    )
    scores = {item: score for item, score in judged.numbers.items() if score is not None}
    given = {item: label for item, label in labels.numbers.items() if label is not None and item in scores}
    rest = [item for item in scores if item not in labels.numbers or labels.numbers[item] is None]
    if not given:
        raise CalibrationError(f"no item has both a score and a label ({len(scores)} scores): check the ids")
    clusters = clusters_of_both(judged, labels)
    groups = None if clusters is None else ([clusters[item] for item in given], [clusters[item] for item in rest])
    found = fitted(
        list(given.values()), [scores[item] for item in given], [scores[item] for item in rest], clusters=groups,
        seed=options.seed,
    )  # fmt: skip
    expected = dict(zip((*given, *rest), (*found.out_of_fold, *found.expected), strict=True))
    items = [
        {"item": item, "score": score, "expected_human_score": expected[item], "labelled": item in given}
        for item, score in scores.items()
    ]
    document = {"curve": as_json(found.curve), "corrected": as_json(found.corrected), "n": len(given)}
    if options.target:
        document["transport"] = _transport(options, scale, found.curve, given)
    return document | {"items": items, "warnings": list(found.warnings)}


def _transport(options: argparse.Namespace, scale: Any, curve: Any, fitted: Collection[str]) -> list[dict[str, Any]]:
    """Whether the curve holds on a target, per system where the file names systems."""
    from calibration.agreement import as_json
    from calibration.drift import MARGIN_SHARE
    from calibration.guards import refuse_leakage
    from calibration.ratings import read_table
    from calibration.recalibration import transport_audits
    from calibration.values import read_values

    scores, labels = (read_values(options.target, name, scale=scale) for name in ("score", "label"))
    refuse_leakage(labels.numbers, fitted, "fitting the curve")
    if options.margin is None and scale is None:
        raise CalibrationError("--target needs --margin, the mean error that is harmless, or --scale for 5% of it")
    harmless = MARGIN_SHARE * float(scale.values[-1] - scale.values[0]) if options.margin is None else options.margin
    pairs = [(item, score, labels.numbers[item]) for item, score in scores.numbers.items()]
    there = [(item, score, label) for item, score, label in pairs if score is not None and label is not None]
    if not there:
        raise CalibrationError(f"{options.target}: no item has both a score and a label")
    items, f, y = zip(*there, strict=True)
    frame = read_table(options.target)
    systems = (
        dict(zip(frame["item"].str.strip(), frame["system"].str.strip(), strict=True)) if "system" in frame else {}
    )
    clusters = None if labels.clusters is None else [labels.clusters[item] for item in items]
    found = transport_audits(
        curve, f, y, [systems.get(item) or "target" for item in items], delta=harmless, clusters=clusters
    )
    return [{"system": name} | as_json(audit) for name, audit in found.items()]


def panel(options: argparse.Namespace, scale: Any) -> dict[str, Any]:
    from calibration.agreement import as_json
    from calibration.latent import latent_truth
    from calibration.panel import panel as together
    from calibration.ratings import read_ratings

    judges = [name.strip() for name in options.judges.split(",")]
    raters = [*judges, *([options.human] if options.human else [])]
    ratings = read_ratings(options.ratings, scale=scale, raters=raters, item=options.item)
    document: dict[str, Any] = as_json(together(ratings, judges, options.human, seed=options.seed))
    each = [document.pop(name) for name in ("majority", "panel_mean")]
    if options.dawid_skene:
        document["dawid_skene"] = as_json(latent_truth(ratings, judges, options.human))
    rows = zip(ratings.items, *each, strict=True)
    return document | {"items": [{"item": item, "majority": most, "mean": average} for item, most, average in rows]}
