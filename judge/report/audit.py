"""The page of an audit: the verdict in plain words first, then the numbers it rests on, then what to read and do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibration.display import in_words
from judge.report import stability
from judge.report.page import Section, brief, estimated, figure, markdown
from judge.verdicts import headline_weights

SHOWN = 5
DROPPED_SHOWN = 8
ID = 40
LEAST_FOR_GROUPS = 10
WORDS = {
    "trusted": "can be trusted here",
    "usable_with_correction": "usable with correction",
    "not_usable": "not usable",
    "too_few_labels": "too few labels to tell",
}
ADVICE = {
    "trusted": "its scores may stand in for people's on cases like these, as long as judge, prompt and rubric stay",
    "usable_with_correction": "do not take a single score for what a person would say; report the corrected mean, "
    "and read the disagreements below",
    "not_usable": "do not report its scores for this rubric; change the judge or the rubric, or let people label",
    "too_few_labels": "nothing is decided; draw more cases with `judge sheet`, have them labelled, and audit again",
}
STATISTICS = {
    "kappa": "agreement beyond chance (kappa)", "ceiling": "kappa with people, minus kappa among people",
    "percent_agreement": "same label as a person", "within_1": "at most one level apart",
    "spearman": "rank correlation", "auc": "AUC", "sensitivity": "good cases it passes",
    "specificity": "bad cases it fails",
}  # fmt: skip


def write(path: Path, audits: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes audit.md: the same sections as on the terminal, for every rubric."""
    made = [*across(audits), *(section for audit in audits.values() for section in sections(audit))]
    path.write_text(markdown("Audit: can this judge be trusted?", made), encoding="utf-8")


def across(audits: Mapping[str, Mapping[str, Any]]) -> list[Section]:
    """What is said of all rubrics together: the overview, and whether errors in one go with errors in another."""
    return [overview(audits), *_halo(audits)]


def overview(audits: Mapping[str, Mapping[str, Any]]) -> Section:
    """One line per rubric: the verdict and the few numbers it is best read with."""
    rows = []
    for name, audit in audits.items():
        page = audit["agreement"]
        rows.append([
            name, WORDS[audit["verdict"]], str(audit["n"]), estimated(page["percent_agreement"], percent=True),
            figure(page["constant_judge_accuracy"], percent=True),
            _short(page["kappa"][_weights(audit)]), _short(audit["auc"]),
        ])  # fmt: skip
    columns = ["rubric", "verdict", "cases", "same label as a person", "always the commonest", "kappa", "AUC"]
    return Section("Can this judge be trusted?", columns, rows)


def _halo(audits: Mapping[str, Mapping[str, Any]]) -> list[Section]:
    names = list(audits)
    rows = [
        [name, one["rubric"], str(one["n"]), *(estimated(one[of]) for of in ("residuals", "judge", "people"))]
        for name, audit in audits.items() for one in audit["halo"] if names.index(one["rubric"]) > names.index(name)
    ]  # fmt: skip
    if not rows:
        return []
    notes = [
        "halo: where the judge is too kind in the one rubric, is it in the other one too? 0 is none; rank correlations",
        "people who err in both rubrics at once raise it as well; the last two columns: do the judge's own scores go "
        "together more than people's?",
    ]
    columns = ["rubric", "and", "cases", "judge minus people", "judge's scores", "people's marks"]
    return [Section("Do its errors go together?", columns, rows, notes)]


def sections(audit: Mapping[str, Any]) -> list[Section]:
    """The page of one rubric's audit."""
    return [
        _verdict(audit),
        _numbers(audit),
        _levels(audit),
        _confusion(audit),
        *_groups(audit),
        *_rivals(audit),
        _corrected(audit),
        *stability.sections(audit),
        *_review(audit),
    ]


def _verdict(audit: Mapping[str, Any]) -> Section:
    people = ", ".join(f"{name} {n}" for name, n in list(audit["raters"].items())[:6])
    more = len(audit["raters"]) - 6
    notes = [
        _in_short(audit),
        ADVICE[audit["verdict"]],
        f"why: {audit['because']}",
        f"{audit['n']} of {audit['n_judged']} judged cases have labels (labels by {people}"
        f"{f' and {more} others' if more > 0 else ''}); compared on {_compared_on(audit)}",
    ]
    notes += [
        f"asked for beforehand: {STATISTICS[check['name']]} "
        f"{'no more than ' if check['name'] == 'ceiling' else 'at least '}"
        f"{check['threshold']:g}{' below' if check['name'] == 'ceiling' else ''}: {_reached(check)}"
        for check in audit["checks"]
    ]
    notes += [f"note: {in_words(warning)}" for warning in _warnings(audit)]
    if audit["dropped"]:
        listed = "; ".join(f"{brief(one['case_id'], ID)} ({one['reason']})" for one in audit["dropped"][:DROPPED_SHOWN])
        rest = len(audit["dropped"]) - DROPPED_SHOWN
        notes.append(
            f"left out, no score to compare: {len(audit['dropped'])} labelled cases: {listed}"
            f"{f' and {rest} more, all in the JSON' if rest > 0 else ''}"
        )
    judge = audit["judge"]
    return Section(f"{audit['rubric']} by {judge['model']} ({judge['mode']}): {WORDS[audit['verdict']]}", notes=notes)


def _in_short(audit: Mapping[str, Any]) -> str:
    """The first sentence: how often judge and people say the same, beside what a judge without eyes would reach."""
    page = audit["agreement"]
    same, words = page["percent_agreement"], "verdict" if audit["compared_on"] == "pass_fail" else "mark"
    often = f"judge and people gave the same {words} in {figure(same['value'], percent=True)} of cases"
    if same["ci_low"] is not None:
        low, high = (figure(same[bound], percent=True) for bound in ("ci_low", "ci_high"))
        often += f" (in the long run between {low} and {high})"
    constant = figure(page["constant_judge_accuracy"], percent=True)
    return f"{often}; always giving the commonest {words} would be right in {constant}"


def _reached(check: Mapping[str, Any]) -> str:
    if check["reached"] is None:
        return f"cannot be told ({in_words(check['measured']['reason'] or 'no_data')})"
    return f"{'shown' if check['reached'] else 'not shown'} (lower bound {check['measured']['ci_low']:z.2f})"


def _compared_on(audit: Mapping[str, Any]) -> str:
    if audit["compared_on"] == "scale":
        return f"marks {audit['scale'][0]} to {audit['scale'][1]}"
    return "pass or fail" + (
        f" (a mark of {audit['pass_at']} or more passes)" if audit["labels_are"] == "scale" else ""
    )


def _warnings(audit: Mapping[str, Any]) -> list[str]:
    found = dict.fromkeys([*audit["warnings"], *audit["agreement"]["warnings"]])
    return [warning for warning in found if warning != "word_scale_counted_in_steps"]


def _numbers(audit: Mapping[str, Any]) -> Section:
    page, passes = audit["agreement"], audit["pass_fail"]
    graded = audit["compared_on"] == "scale"
    weights = _weights(audit)
    constant = figure(page["constant_judge_accuracy"], percent=True)
    rows = [
        ["same label as a person", estimated(page["percent_agreement"], percent=True),
         f"a judge that always gives the commonest label reaches {constant}"],
        [f"kappa{' (near misses count)' if weights == 'quadratic' else ''}", estimated(page["kappa"][weights]),
         "1 all, 0 chance"],
    ]  # fmt: skip
    if graded:
        rows += [
            ["kappa on exact marks", estimated(page["kappa"]["none"]), "a near miss counts as a miss"],
            ["at most one level apart", estimated(page["within_1"], percent=True), ""],
            ["judge minus people", estimated(page["mean_bias"]), "above 0: lenient"],
            ["kappa on pass and fail", estimated(passes["kappa"]["none"]),
             f"{figure(passes['base_rate'], percent=True)} of labels pass"],
        ]  # fmt: skip
    top = audit["leniency"]
    given = "passes" if top["top"] == "pass" else f"marks of {top['top']}"
    rows += [
        [f"{given}, by the judge", estimated(top["judge"], percent=True), "lenient where far above people's"],
        [f"{given}, by people", estimated(top["people"], percent=True), ""],
    ]
    if passes["binary"]:
        rows += [
            ["good cases it passes", estimated(passes["binary"]["sensitivity"], percent=True), "sensitivity"],
            ["bad cases it fails", estimated(passes["binary"]["specificity"], percent=True), "specificity"],
        ]
    rows += [
        ["good above bad (AUC)", estimated(audit["auc"]), "0.5 is a coin, 1 perfect; needs no pass mark"],
        ["rank correlation", estimated(audit["rank_correlation"]), "Spearman, with the people's mean"],
    ]
    ceiling = page["human_ceiling"]
    if ceiling["delta"]["reason"] == "one_human":
        note = "people among themselves: one person labelled, so nobody knows how far people agree; ask a second one"
    else:
        rows += [
            ["people among themselves", estimated(ceiling["human_human"]), "kappa: the ceiling"],
            ["judge with people", estimated(ceiling["judge_human"]), "the same kappa"],
            ["the difference", estimated(ceiling["delta"]), "below 0: worse than people are to each other"],
        ]
        note = "each person counts alone; agreement with a majority vote would look higher"
    return Section("How well it agrees", ["what", "value [95% interval]", "read it as"], rows, [note])


def _levels(audit: Mapping[str, Any]) -> Section:
    percent = audit["compared_on"] == "pass_fail"
    rows = [
        [row["level"], str(row["n"]), figure(row["judge"]), estimated(row["people"], percent=percent)]
        for row in audit["by_score_level"]
    ]
    said = "people pass" if percent else "people say"
    return Section("When the judge says ...", ["score", "cases", "judge, mean", said], rows)


def _confusion(audit: Mapping[str, Any]) -> Section:
    found = audit["agreement"]["confusion"]
    rows = [[f"judge {label}", *map(str, row)] for label, row in zip(found["labels"], found["table"], strict=True)]
    return Section("All pairs of labels", ["", *(f"people {label}" for label in found["labels"])], rows)


def _weights(audit: Mapping[str, Any]) -> str:
    """The kappa that the verdict rests on."""
    return headline_weights(len(audit["agreement"]["scale"]))


def _groups(audit: Mapping[str, Any]) -> list[Section]:
    if audit["n"] < LEAST_FOR_GROUPS:
        return []
    percent = audit["compared_on"] == "pass_fail"
    unit = "share of passes" if percent else "marks"
    lengths, (low, high) = audit["by_length"], audit["by_length"]["characters"]
    bounds = {"short": f"short (to {low} characters)", "middle": "middle", "long": f"long (over {high})"}
    rows = [[bounds[row["group"]], str(row["n"]), estimated(row["lean"], percent=percent)] for row in lengths["groups"]]
    trend = f"longer answers, more lenient? rank correlation {estimated(lengths['trend'])}; above 0 means yes"
    made = [Section(f"Judge minus people ({unit}), by answer length", ["answers", "cases", "lean"], rows, [trend])]
    if audit["by_slice"]:
        slices = [
            [row["slice"], str(row["n"]), estimated(row["percent_agreement"], percent=True), estimated(row["kappa"]),
             estimated(row["lean"], percent=percent)]
            for row in audit["by_slice"]
        ]  # fmt: skip
        note = "small groups have wide intervals, and of twenty groups one misses by chance alone"
        made.append(Section("By slice", ["slice", "cases", "same label", "kappa", "lean"], slices, [note]))
    return [*made, *_generators(audit, percent, unit)]


def _generators(audit: Mapping[str, Any], percent: bool, unit: str) -> list[Section]:
    found = audit["by_generator"]
    if found is None:
        return []
    rows = [
        [f"{one['family']}{' (the judge is one)' if one['own'] else ''}", str(one["n"]),
         estimated(one["lean"], percent=percent), estimated(one["against_others"], percent=percent),
         figure(one["p_adjusted"], 3), "favoured" if one["favoured"] else "not shown"]
        for one in found["families"]
    ]  # fmt: skip
    notes = [
        "kinder than to others: where people gave the same mark; a judge that pulls marks to the middle would "
        "otherwise seem harsh to the best",
        "families are read from metadata.generator or model, else the system's name; p after Holm over the families",
    ]
    if any(one["own"] and one["favoured"] for one in found["families"]):
        notes.insert(0, "self-preference: this judge is kinder to answers of its own family than to others as good")
    if found["left_out"] or found["unnamed"]:
        notes.append(f"left out: {found['left_out']} cases of smaller families, {found['unnamed']} without a name")
    columns = ["answers by", "cases", "lean", "kinder than to others", "p (Holm)", "favoured?"]
    return [Section(f"Judge minus people ({unit}), by who wrote the answer", columns, rows, notes)]


def _rivals(audit: Mapping[str, Any]) -> list[Section]:
    if not audit["scores_compared"]:
        return []
    rows = [_rival(name, one) for name, one in audit["scores_compared"].items()]
    notes = [
        "the same cases for all, pass and fail by most people; overlap is word overlap, without a model: a judge that "
        "does not beat it earns nothing",
        "fitted mark: chosen on these labels, its kappa measured on cases it was not chosen on",
    ]
    columns = ["score", "cases", "AUC", "rank correlation", "mark", "kappa at it", "kappa, fitted mark"]
    return [Section("Scores as competing judges", columns, rows, notes)]


def _rival(name: str, one: Mapping[str, Any]) -> list[str]:
    mark = "none" if one["mark"] is None else f"{one['mark']:g}"
    fitted = _short(one["kappa_out_of_fold"])
    if one["fitted_mark"] is not None:
        fitted += f" at {one['fitted_mark']:.2f}"
    return [name, str(one["n"]), estimated(one["auc"]), estimated(one["spearman"]), mark, _short(one["kappa"]), fitted]


def _short(estimate: Mapping[str, Any]) -> str:
    return "–" if estimate["value"] is None else estimated(estimate)


def _corrected(audit: Mapping[str, Any]) -> Section:
    found = audit["corrected"]
    if found is None:
        return Section("Corrected mean: none", notes=[
            str(audit["not_corrected_because"]),
            "how labelled cases were chosen decides it: a random draw (`judge sheet --design random`) allows "
            "--label-design random",
        ])  # fmt: skip
    percent = found["of"] == "pass_rate"
    rows = _correction_rows(found, percent)
    if "pass_rate" in found:
        rows += [[f"pass rate, {row[0]}", row[1]] for row in _correction_rows(found["pass_rate"], True)]
    notes = [found["valid_when"]]
    if found["effective_n"] is not None:
        notes.append(
            f"with the judge's help {audit['n']} labels are worth {found['effective_n']:.0f} labels without a judge"
        )
    if found["labels_to_halve_ci"] is not None:
        more = "" if found["labels_to_halve_ci"] <= audit["n_judged"] else ", more than there are judged cases"
        notes.append(f"labels in all that would halve the interval: {found['labels_to_halve_ci']}{more}")
    notes += [f"note: {in_words(warning)}" for warning in found["warnings"]]
    title = "Corrected pass rate" if percent else "Corrected mean"
    return Section(f"{title} (method {found['method']})", ["of all judged cases", "value [95% interval]"], rows, notes)


def _correction_rows(found: Mapping[str, Any], percent: bool) -> list[list[str]]:
    return [
        ["as the judge says", estimated(found["naive"], percent=percent)],
        ["corrected", estimated(found["corrected"], percent=percent)],
        ["labels alone", estimated(found["human_only"], percent=percent)],
    ]


def _review(audit: Mapping[str, Any]) -> list[Section]:
    review: Sequence[Mapping[str, Any]] = audit["review"]
    if not review:
        return [Section("Disagreements", notes=["none: judge and people never part on these cases"])]
    rows = [
        [brief(one["case_id"], ID), f"{figure(one['judge'])} {'pass' if one['judge_passed'] else 'fail'}",
         ", ".join(f"{name} {label}" for name, label in one["people"].items()),
         brief(one["answer"], 60), brief(one["evidence"]["weakest"], 60)]
        for one in review[:SHOWN]
    ]  # fmt: skip
    notes = [
        f"{len(review)} in all, in {audit['rubric']}-review.csv, ready to be labelled again: read both sides, the "
        "label is often the wrong one",
        "labels corrected only where the judge disagreed can only raise the agreement: report the number before, too",
    ]
    return [Section("Disagreements to read first", ["case", "judge", "people", "answer", "evidence"], rows, notes)]
