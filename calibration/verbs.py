"""The commands about replacing people, repeating a judge, changing it and joining several of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from calibration.errors import CalibrationError

Declared = Callable[[argparse.Namespace], Any]


def add_commands(verbs: Any, scale_of: Declared) -> None:
    """Add the parsers; each sets `run`, a function from options to a JSON document."""
    one = verbs.add_parser("alt-test", help="may the judge stand in for one of the people")
    one.add_argument("ratings", help="CSV: item,rater,label[,cluster], or one column per rater")
    one.add_argument("--epsilon", type=float, required=True, help="what a person costs more: experts .2, crowd .1")
    one.add_argument("--judge", help="the judge's rater or column (default: judge)")
    one.add_argument("--human", help="the humans, comma-separated (default: all others)")
    one.add_argument("--item", default="item", help="the id column of a wide table")
    one.add_argument("--scoring", choices=("accuracy", "neg_rmse"), help="default: neg_rmse on a declared scale")
    one.add_argument("--q", type=float, default=0.05, help="false discovery rate over the people (default 0.05)")
    one.set_defaults(run=lambda options: alt_test(options, scale_of(options)))

    two = verbs.add_parser("reliability", help="does the judge agree with itself over repeats")
    two.add_argument("repeats", help="CSV: item,repeat,label")
    two.add_argument("--pass-at", type=float, help="pass mark: adds the share of items that flip across it")
    two.add_argument("--target", type=float, default=0.95, help="reliability wanted (default 0.95)")
    two.set_defaults(run=lambda options: reliability(options, scale_of(options)))

    three = verbs.add_parser("drift", help="has the judge changed on a frozen anchor set")
    three.add_argument("old", help="CSV: item,score[,cluster]")
    three.add_argument("new", help="CSV: item,score")
    three.add_argument("--anchor", required=True, help="CSV: item,label, given by people")
    three.add_argument("--margin", type=float, help="harmless mean shift (default 5%% of the scale's range)")
    three.add_argument("--kappa-margin", type=float, default=0.1, help="harmless change of kappa (default 0.1)")
    three.add_argument("--looks", type=int, default=1, help="looks planned in all; each spends its share of the error")
    three.set_defaults(run=lambda options: drift(options, scale_of(options)))

    four = verbs.add_parser("panel", help="several judges on the same items: what they are worth together")
    four.add_argument("ratings", help="CSV: item,rater,label[,cluster], or one column per rater")
    four.add_argument("--judges", required=True, help="two raters or more, comma-separated")
    four.add_argument("--human", help="the person or gold label to compare with")
    four.add_argument("--item", default="item", help="the id column of a wide table")
    four.add_argument("--dawid-skene", action="store_true", help="also latent labels; assumes independent errors")
    four.set_defaults(run=lambda options: panel(options, scale_of(options)))

    for verb in (one, two, three, four):
        verb.add_argument("--level", default="ordinal", choices=("nominal", "ordinal", "interval"))
        verb.add_argument("--scale", help="ordered labels, lowest first: 1,2,3,4,5 or a JSON array")
        verb.add_argument("--seed", type=int, default=0, help="seed of the resampling (default 0)")
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
        old, new, anchor, scale=scale, clusters=clusters, looks=options.looks, seed=options.seed, **margins
    )
    document: dict[str, Any] = as_json(found)
    return document


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
