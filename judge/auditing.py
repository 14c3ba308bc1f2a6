"""The audit of one rubric: all that is known about how far this judge can be trusted, from pairs to a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibration.agreement import Agreement, agreement
from calibration.correction import REFUSED, VALID_WHEN, Correction, correct
from calibration.errors import CalibrationError
from calibration.guards import refuse_leakage
from calibration.ranking import clustered_auc, rank_correlation
from judge.biases import by_length, by_score_level, by_slice, leniency
from judge.pairing import Pairing, Rated, ratings
from judge.reviewing import review_list
from judge.rivals import Rival, compared, rivals_of
from judge.verdicts import rule, to_dict

SAMPLE_ONLY = "labels_are_no_random_sample: agreement and verdict describe the labelled cases, not the whole run"
SLICE_REPLICATES = 1999
DESIGNS = ("random", "stratified", "propensity", "external", "unknown")
VALID_IN_WORDS = {
    "random": "valid because, and only if, the labelled cases are a random sample of the judged ones; then it holds "
    "whatever errors the judge makes",
    "stratified": "valid because, and only if, the labelled cases are a random sample within each score of the judge, "
    "as `judge sheet --design stratified` draws them",
    "propensity": "valid because, and only if, every judged case could have been drawn, with the probability recorded",
    "external": "valid only if the judge errs on the unlabelled cases as often as on the labelled ones, among the "
    "truly good and among the truly bad",
}


def audit_rubric(
    pairing: Pairing,
    *,
    design: str,
    thresholds: Mapping[str, float],
    others: Mapping[str, Rival] | None = None,
    seed: int = 0,
    replicates: int = 9999,
) -> dict[str, Any]:
    """The audit of CONTRACTS 6 as plain JSON types, without the names of run and judge.

    `design` says how the labelled cases were chosen; with `unknown` there is no corrected mean. `others` are scores of
    another run for the same cases. Raises CalibrationError when labelled cases stand in the judge's own prompt.
    """
    _refuse_examples(pairing)
    options: dict[str, Any] = {"seed": seed, "replicates": replicates}
    page = _page(pairing, passes=pairing.on_passes, **options)
    passes = page if pairing.on_passes else _page(pairing, passes=True, **options)
    scores = [one.p for one in pairing.rated]
    truth = [pairing.people_pass(one) for one in pairing.rated]
    auc = clustered_auc(scores, truth, clusters=pairing.clusters, seed=seed, replicates=replicates)
    rank = rank_correlation(
        scores, [one.label for one in pairing.rated], clusters=pairing.clusters, seed=seed, replicates=replicates
    )
    ruling = rule(page, passes, thresholds, auc=auc, spearman=rank)
    corrected, why_not = correction_of(pairing, design)
    rivals = rivals_of(pairing) | dict(others or {})
    return {
        "rubric": pairing.rubric.id,
        "rubric_hash": pairing.rubric.rubric_hash,
        "prompt_hash": pairing.prompt_hash,
        "scale": [pairing.rubric.scale.min, pairing.rubric.scale.max],
        "pass_at": pairing.rubric.scale.pass_at,
        "labels_are": pairing.form,
        "compared_on": "pass_fail" if pairing.on_passes else "scale",
        "n": len(pairing.rated),
        "n_judged": len(pairing.judged),
        "raters": dict(pairing.raters),
        "dropped": [{"case_id": name, "reason": reason} for name, reason in pairing.dropped],
        "verdict": ruling.verdict,
        "because": ruling.because,
        "thresholds": dict(thresholds),
        "checks": to_dict(ruling),
        "agreement": page.to_dict(),
        "pass_fail": passes.to_dict(),
        "auc": auc.to_dict(),
        "rank_correlation": rank.to_dict(),
        "by_score_level": by_score_level(pairing),
        "leniency": leniency(pairing),
        "by_length": by_length(pairing, **options),
        "by_slice": by_slice(pairing, seed=seed, replicates=min(replicates, SLICE_REPLICATES)),
        "scores_compared": compared(pairing, rivals, **options),
        "label_design": design,
        "corrected": corrected,
        "not_corrected_because": why_not,
        "review": review_list(pairing),
        "warnings": [*pairing.warnings, *([SAMPLE_ONLY] if design not in ("random", "unknown") else [])],
    }


def _page(pairing: Pairing, *, passes: bool, **options: Any) -> Agreement:
    rated, names = ratings(pairing, passes=passes)
    return agreement(rated, humans=[name for name in names if (rated.of(name) >= 0).any()], **options)


def correction_of(pairing: Pairing, design: str) -> tuple[dict[str, Any] | None, str | None]:
    """The corrected mean and pass rate with the condition they rest on, or None and why there is none.

    Graded labels correct the mean score, with the pass rate beside it; pass and fail labels, and design external,
    correct the pass rate alone. People count by their mean; for external by majority, split cases left out. Cases that
    share a question are a cluster.
    """
    if design not in VALID_WHEN:
        return None, REFUSED[design]
    judged = dict(sorted(pairing.judged.items(), key=lambda pair: (pair[1].stratum, pair[0])))
    try:
        rate = correct(
            {name: float(one.passed) for name, one in judged.items()},
            {one.case.id: _verdict_of(pairing, one, design) for one in pairing.rated},
            bounds=(0.0, 1.0), **_design(pairing, design),
        )  # fmt: skip
        if design == "external" or pairing.form == "pass_fail":
            return _told(rate, "pass_rate", design, None), None
        found = correct(
            {name: one.score for name, one in judged.items()},
            {one.case.id: one.label for one in pairing.rated},
            bounds=(float(pairing.rubric.scale.min), float(pairing.rubric.scale.max)), **_design(pairing, design),
        )  # fmt: skip
        return _told(found, "mean", design, rate), None
    except CalibrationError as error:
        return None, str(error)


def _design(pairing: Pairing, design: str) -> dict[str, Any]:
    strata = {name: one.stratum for name, one in pairing.judged.items()}
    questions = {name: one.question for name, one in pairing.judged.items()}
    return {"design": design, "strata": strata, "propensities": pairing.propensities, "clusters": questions}


def _verdict_of(pairing: Pairing, rated: Rated, design: str) -> float | None:
    """Share of people who pass the case; for external, where only 0 and 1 can be used, what most of them say."""
    if design != "external":
        return pairing.pass_share(rated)
    verdict = pairing.people_pass(rated)
    return None if verdict is None else float(verdict)


def _told(found: Correction, of: str, design: str, pass_rate: Correction | None) -> dict[str, Any]:
    plain = found.to_dict()
    more = {} if pass_rate is None else {"pass_rate": pass_rate.to_dict()}
    return {"of": of, "valid_when": VALID_IN_WORDS[design], **plain, **more}


def _refuse_examples(pairing: Pairing) -> None:
    """Cases whose question and answer stand in the rubric as examples are no evidence about the judge."""
    shown = {(str(one.get("question", "")).strip(), str(one.get("answer", "")).strip())
             for one in pairing.rubric.examples}  # fmt: skip
    used = [
        one.case.id for one in pairing.rated if (one.case.question.strip(), (one.case.answer or "").strip()) in shown
    ]
    refuse_leakage([one.case.id for one in pairing.rated], used, "the examples in the rubric")
