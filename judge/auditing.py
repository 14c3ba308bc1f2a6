"""The audit of one rubric: all that is known about how far this judge can be trusted, from pairs to a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibration.agreement import Agreement, agreement
from calibration.correction import REFUSED, VALID_WHEN, Correction, correct
from calibration.errors import CalibrationError
from calibration.guards import refuse_leakage
from calibration.ranking import clustered_auc, rank_correlation
from judge.biases import by_length, by_score_level, by_slice
from judge.pairing import Pairing, ratings
from judge.reviewing import review_list
from judge.rivals import Rival, compared, rivals_of
from judge.verdicts import rule, to_dict

DESIGNS = ("random", "stratified", "propensity", "external", "unknown")
VALID_IN_WORDS = {
    "random": "valid because, and only if, the labelled cases are a random sample of the judged ones; then it holds "
    "whatever errors the judge makes",
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
        "n_judged": len(pairing.rated) + len(pairing.unlabelled),
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
        "by_length": by_length(pairing, seed=seed),
        "by_slice": by_slice(pairing, **options),
        "scores_compared": compared(pairing, rivals, seed=seed),
        "label_design": design,
        "corrected": corrected,
        "not_corrected_because": why_not,
        "review": review_list(pairing),
        "warnings": list(pairing.warnings),
    }


def _page(pairing: Pairing, *, passes: bool, **options: Any) -> Agreement:
    rated, names = ratings(pairing, passes=passes)
    return agreement(rated, humans=[name for name in names if (rated.of(name) >= 0).any()], **options)


def correction_of(pairing: Pairing, design: str) -> tuple[dict[str, Any] | None, str | None]:
    """The corrected mean and pass rate with the condition they rest on, or None and why there is none.

    Graded labels under design random correct the mean score, with the pass rate beside it; pass and fail labels, and
    design external, correct the pass rate alone. People count by their mean, by majority for external.
    """
    if design not in VALID_WHEN:
        return None, REFUSED[design]
    try:
        if design == "external":
            found = _pass_rate(pairing, design)
            return _told(pairing, found, "pass_rate", design, None), None
        share = _pass_rate(pairing, design)
        if pairing.form == "pass_fail":
            return _told(pairing, share, "pass_rate", design, None), None
        judged = {one.case.id: one.score for one in pairing.rated}
        found = correct(
            judged | {name: score for name, (score, _) in pairing.unlabelled.items()},
            {one.case.id: one.label for one in pairing.rated},
            design=design,
            bounds=(float(pairing.rubric.scale.min), float(pairing.rubric.scale.max)),
        )
        return _told(pairing, found, "mean", design, share), None
    except CalibrationError as error:
        return None, str(error)


def _pass_rate(pairing: Pairing, design: str) -> Correction:
    judged = {one.case.id: float(one.passed) for one in pairing.rated}
    judged |= {name: float(passed) for name, (_, passed) in pairing.unlabelled.items()}
    people: dict[str, float | None] = {}
    for one in pairing.rated:
        verdict = pairing.people_pass(one)
        share = pairing.pass_share(one)
        people[one.case.id] = share if design == "random" else None if verdict is None else float(verdict)
    return correct(judged, people, design=design, bounds=(0.0, 1.0))


def _told(pairing: Pairing, found: Correction, of: str, design: str, pass_rate: Correction | None) -> dict[str, Any]:
    plain = found.to_dict()
    if pairing.clusters:
        plain["warnings"].append("cases_share_questions: the interval of the correction takes cases as independent")
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
