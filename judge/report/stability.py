"""Pages of an audit beyond agreement: drift, transport, panel, calibrated scores, probabilities, fitted bands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibration.display import in_words
from judge.report.page import Section, estimated, figure

VERDICTS = {
    "equivalent": "nothing that matters has changed",
    "changed": "the judge has changed: label again before its numbers are compared with older ones",
    "inconclusive": "cannot be told: label more anchor cases, or allow a wider --margin",
}
TRANSPORT = {"pass": "they hold", "fail": "they do not: label there", "inconclusive": "cannot be told: label more"}
CHECKS = {"mean_shift": "mean score", "accuracy": "same label as people", "kappa": "kappa with people"}


def sections(audit: Mapping[str, Any]) -> list[Section]:
    """Those sections that the audit has anything for."""
    makers = {
        "drift": _drift, "transport": _transport, "panel": _panel, "recalibrated": _recalibrated,
        "confidence": _confidence, "bands": _bands,
    }  # fmt: skip
    return [make(audit[name], audit) for name, make in makers.items() if audit.get(name)]


def _drift(found: Mapping[str, Any], audit: Mapping[str, Any]) -> Section:
    rows = [
        [CHECKS[one["name"]], estimated(one["difference"], 3), f"{one['margin']:g}", figure(one["p_adjusted"], 3),
         one["verdict"]]
        for one in found["checks"]
    ]  # fmt: skip
    changed = ", ".join(found["changed"]) or "nothing that is recorded"
    notes = [
        VERDICTS[found["verdict"]],
        f"between the runs changed: {changed}; {found['n']} anchor cases, same label in "
        f"{estimated(found['exact_agreement'], percent=True)}",
        *(
            [f"left out: {found['n_dropped']} cases, not scored in both runs on the same content, or people are split"]
            if found["n_dropped"]
            else []
        ),
        f"shift of the normalised score: {estimated(found['p_shift'], 3)}",
    ]
    if found["looks"] > 1:
        p = "–" if found["p"] is None else f"{found['p']:.3g}"
        notes.append(f"one of {found['looks']} planned looks; its own p, for --earlier at the next look: {p}")
    notes += [f"note: {in_words(warning)}" for warning in found["warnings"]]
    columns = ["new minus old", "value [interval]", "harmless up to", "p (Holm)", "verdict"]
    return Section(f"Against {found['against']}: {found['verdict']}", columns, rows, notes)


def _transport(found: Mapping[str, Any], audit: Mapping[str, Any]) -> Section:
    rows = [
        [
            one["system"],
            str(one["residual"]["n"]),
            estimated(one["residual"]),
            f"{one['delta']:g}",
            TRANSPORT[one["verdict"]],
        ]
        for one in found["systems"]
    ]
    notes = ["people minus calibrated score, on labelled cases that the curve has not seen; a random sample of them"]
    if len(rows) > 1:
        notes.append(f"intervals allow for {len(rows)} systems (Bonferroni)")
    if found["left_out"]:
        notes.append(f"left out: {found['left_out']} cases that the curve was fitted to")
    if found["changed"]:
        notes.append(f"between the runs changed: {', '.join(found['changed'])}")
    warnings = dict.fromkeys(warning for one in found["systems"] for warning in one["residual"]["warnings"])
    notes += [f"note: {in_words(warning)}" for warning in warnings]
    columns = ["system", "cases", "error of the mean", "harmless up to", "verdict"]
    return Section(f"Do the calibrated scores hold in {found['target']}?", columns, rows, notes)


def _panel(found: Mapping[str, Any], audit: Mapping[str, Any]) -> Section:
    rows = [[one["judge"], estimated(one["kappa"]), estimated(one["mean_bias"])] for one in found["members"]]
    rows.append(["majority (mean for the lean)", estimated(found["majority_kappa"]), estimated(found["mean_bias"])])
    notes = [
        f"all say the same in {estimated(found['unanimous'], percent=True)} of cases; {found['ties']} ties have no "
        "majority and are left out of its kappa, which flatters it",
        f"correlation of their errors {estimated(found['error_correlation'])}: {len(found['judges'])} judges are worth "
        f"{figure(found['effective_judges'], 1)} with independent errors",
    ]
    latent = found.get("dawid_skene")
    if latent:
        notes.append(f"Dawid-Skene labels with people: kappa {estimated(latent['kappa'])}; assumes {latent['assumes']}")
    return Section("Panel", ["judge", "kappa with people", "judge minus people"], rows, notes)


def _recalibrated(found: Mapping[str, Any], audit: Mapping[str, Any]) -> Section:
    curve = found["curve"]
    rows = [
        [f"{level:g}", f"{value:.2f}", str(n)]
        for level, value, n in zip(curve["levels"], curve["fitted"], curve["counts"], strict=True)
    ]
    shown = rows if len(rows) <= 11 else rows[:: -(-len(rows) // 11)]
    notes = [
        f"mean through this curve, out of fold: {estimated(found['corrected'])}",
        f"every case, raw and calibrated: {audit['rubric']}-calibrated.csv; the raw scores stay as they are",
    ]
    notes += [f"note: {in_words(warning)}" for warning in found["corrected"]["warnings"]]
    return Section("Calibrated scores", ["judge says", "people would say", "labels"], shown, notes)


def _confidence(found: Mapping[str, Any], audit: Mapping[str, Any]) -> Section:
    rows = [
        [f"{one['low']:.1f} to {one['high']:.1f}", str(one["n"]), figure(one["predicted"], percent=True),
         "too few" if one["observed"] is None else estimated(one["observed"], percent=True)]
        for one in found["bins"] if one["n"]
    ]  # fmt: skip
    base = figure(found["brier_of_base_rate"], 3)
    notes = [f"Brier score {estimated(found['brier'], 3)}; always saying the base rate would give {base}"]
    if found["ece"]["value"] is None:
        notes.append(f"calibration error: {estimated(found['ece'])}; in small samples it is mostly chance")
    else:
        notes.append(
            f"calibration error {estimated(found['ece'], 3)}; perfect probabilities would show "
            f"{figure(found['ece_if_calibrated'], 3)} on as many cases"
        )
    return Section("Do its probabilities hold?", ["p", "cases", "mean p", "people pass"], rows, notes)


def _bands(found: Mapping[str, Any], audit: Mapping[str, Any]) -> Section:
    rows = [
        [str(level), figure(found["before"].get(level)), figure(found["after"][level])]
        for level in sorted(found["after"], reverse=True)
    ]
    notes = [
        f"kappa with people: {estimated(found['kappa_before'])} now, {estimated(found['kappa_out_of_fold'])} with "
        f"fitted bands, out of fold; difference {estimated(found['difference'])}",
        f"written to {found['rubric_file']}; {found['advice']}",
    ]
    return Section("Fitted bands (lowest rate for each level)", ["level", "now", "fitted"], rows, notes)
