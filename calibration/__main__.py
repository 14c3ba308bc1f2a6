"""Statistics on spreadsheets of labels: how far judges and people agree, and what follows. No model, no network."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from calibration.errors import CalibrationError
from calibration.verbs import LEVELS, LEVELS_HELP, add_commands, seed_number


def agreement(options: argparse.Namespace) -> dict[str, Any]:
    from calibration.agreement import agreement as page
    from calibration.ratings import read_ratings
    from calibration.slices import by_slice

    humans = [name.strip() for name in options.human.split(",")] if options.human else None
    raters = [options.judge or "judge", *humans] if humans else None
    ratings = read_ratings(options.ratings, scale=_scale(options), raters=raters, item=options.item)
    document = page(ratings, judge=options.judge, humans=humans, seed=options.seed).to_dict()
    if ratings.slices is not None:
        document["by_slice"] = by_slice(ratings, judge=options.judge, humans=humans, seed=options.seed)
    return document | (_intraclass(ratings, options.judge, humans) if options.intraclass else {})


def _intraclass(ratings: Any, judge: str | None, humans: list[str] | None) -> dict[str, Any]:
    from calibration.agreement import as_json
    from calibration.intraclass import intraclass_of
    from calibration.ratings import choose_raters

    name, people = choose_raters(ratings, judge, humans)
    return {"intraclass": as_json(intraclass_of(ratings, [name, *people]))}


def correct(options: argparse.Namespace) -> dict[str, Any]:
    from calibration.correction import correct as corrected
    from calibration.values import clusters_of_both, read_labels, read_values

    scale, design = _scale(options), options.label_design
    judged = read_values(options.judged, "score", scale=scale)
    labels = read_values(options.labels, "label", scale=scale)
    bounds = None if scale is None else (float(scale.values[0]), float(scale.values[-1]))
    strata = propensities = None
    if design == "stratified":
        strata = {item: name or "" for item, name in read_labels(options.judged, ("stratum",))[0].items()}
    if design == "propensity":
        propensities = read_values(options.labels, "propensity").numbers
    found = corrected(
        judged.numbers, labels.numbers, design=design, strata=strata, propensities=propensities, bounds=bounds,
        clusters=clusters_of_both(judged, labels), method=options.method,
    )  # fmt: skip
    return found.to_dict()


def compare(options: argparse.Namespace) -> dict[str, Any]:
    from calibration.agreement import as_json
    from calibration.compare import paired_values
    from calibration.values import read_values

    scale = _scale(options)
    bounds = None if scale is None else (float(scale.values[0]), float(scale.values[-1]))
    a, b = (read_values(path, "value", scale=scale) for path in (options.a, options.b))
    comparison, unmatched = paired_values(a, b, bounds=bounds, seed=options.seed)
    document: dict[str, Any] = as_json(comparison)
    return document | {"unmatched": unmatched}


def pairwise(options: argparse.Namespace) -> dict[str, Any]:
    from calibration.agreement import as_json
    from calibration.pairwise import agreement_with_humans, summarize
    from calibration.strength import ratings
    from calibration.verdicts import read_comparisons

    verdicts, humans = read_comparisons(options.comparisons)
    document: dict[str, Any] = as_json(summarize(verdicts))
    if humans is not None:
        document["human_agreement"] = as_json(agreement_with_humans(verdicts.names(), humans, seed=options.seed))
    if len({name for pair in verdicts.systems or () for name in pair}) > 2:
        document["ratings"] = as_json(ratings(verdicts, seed=options.seed))
    return document


def budget(options: argparse.Namespace) -> dict[str, Any]:
    from calibration.budget import labels_for_kappa

    return {"labels_needed": labels_for_kappa(options.kappa, options.half_width, options.prevalence)}


def _scale(options: argparse.Namespace) -> Any:
    from calibration.ratings import declare_scale

    return declare_scale(options.scale, getattr(options, "level", "ordinal")) if options.scale else None


EXAMPLES = {
    "agreement": "ratings.csv --judge gpt --scale 1,2,3,4,5",
    "correct": "--judged scores.csv --labels labels.csv --label-design random --scale 1,2,3,4,5",
    "compare": "old.csv new.csv",
    "budget": "--kappa .6 --half-width .1 --prevalence .3",
    "pairwise": "comparisons.csv",
    "alt-test": "ratings.csv --epsilon .2 --judge gpt --scale 1,2,3,4,5",
    "reliability": "repeats.csv --pass-at 4 --scale 1,2,3,4,5",
    "drift": "old.csv new.csv --anchor gold.csv --scale 1,2,3,4,5",
    "recalibrate": "--judged scores.csv --labels labels.csv --target probe.csv --scale 1,2,3,4,5",
    "panel": "ratings.csv --judges gpt,claude --human ann --scale 1,2,3,4,5",
}


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(
        prog="python -m calibration",
        description=__doc__,
        epilog="how a command is called: python -m calibration COMMAND --help",
    )
    verbs = root.add_subparsers(dest="verb", required=True, metavar="COMMAND")

    one = verbs.add_parser("agreement", help="does the judge agree with people, and how sure is that")
    one.add_argument("ratings", help="CSV: item,rater,label[,cluster][,slice], or one column per rater")
    one.add_argument("--judge", help="the judge's rater or column (default: judge)")
    one.add_argument("--human", help="the humans, comma-separated (default: all others)")
    one.add_argument("--item", default="item", help="the id column of a wide table")
    one.add_argument("--level", default="ordinal", choices=LEVELS, help=LEVELS_HELP)
    one.add_argument("--intraclass", action="store_true", help="also the six intraclass correlations of all raters")

    two = verbs.add_parser("correct", help="the mean that people would have given")
    two.add_argument("--judged", required=True, help="CSV: item,score[,stratum][,cluster]")
    two.add_argument("--labels", required=True, help="CSV: item,label[,propensity] on the same scale")
    designs = ("random", "stratified", "propensity", "external", "unknown")
    two.add_argument(
        "--label-design", required=True, choices=designs,
        help="how the labelled items were chosen: random (of those judged), stratified (column stratum), propensity "
        "(column propensity), external (they stand for others), unknown (no corrected mean)",
    )  # fmt: skip

    two.add_argument(
        "--method", default="ppi++", choices=("ppi++", "post-stratified"),
        help="with design random; post-stratified reweights 50 labels or more to the judge's levels (default ppi++)",
    )  # fmt: skip

    three = verbs.add_parser("compare", help="two systems on the same items, a minus b")
    three.add_argument("a", help="CSV: item,value[,cluster]")
    three.add_argument("b", help="CSV: item,value[,cluster]")

    four = verbs.add_parser("budget", help="labels needed for a kappa interval of a given width")
    four.add_argument("--kappa", type=float, required=True, help="the kappa expected")
    four.add_argument("--half-width", type=float, required=True, help="half the width of the interval wanted")
    four.add_argument("--prevalence", type=float, required=True, help="share of the positive label, from 0 to 1")

    five = verbs.add_parser("pairwise", help="two or more systems judged in both orders")
    five.add_argument(
        "comparisons",
        help="CSV: item,a,b,order1,order2[,human]; order1 shows a first, order2 b; unasked: left out by a draw",
    )

    for verb in (one, two, three):
        verb.add_argument("--scale", help="ordered labels, lowest first: 1,2,3,4,5 or a JSON array")
    for verb in (one, two, three, five):
        verb.add_argument("--seed", type=seed_number, default=0, help="seed of the resampling (default 0)")
    for verb, run in ((one, agreement), (two, correct), (three, compare), (four, budget), (five, pairwise)):
        verb.add_argument("--json", action="store_true", help="one JSON document on standard output")
        verb.set_defaults(run=run)
    add_commands(verbs, _scale)
    for name, verb in verbs.choices.items():
        verb.epilog = f"example: python -m calibration {name} {EXAMPLES[name]}"
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 done, 2 bad input or usage."""
    options = parser().parse_args(arguments)
    try:
        document = options.run(options)
    except CalibrationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.json:
        text = json.dumps(document, allow_nan=False, ensure_ascii=False)
    else:
        from calibration.display import lines

        text = "\n".join(lines(document))
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
