"""Faults of other packages in correction, replacement, reliability, panels and recalibration (spec section 10).

Shown elsewhere: judgy, evalproof, ppi-python and LLM-judge-reporting in `test_peer_faults` and `test_correction`; linear
kappa on a gappy scale in `test_tables`; one-sided position flips and AlpacaEval's missing coefficient error in
`test_pairwise_statistics`; AltTest's division by zero and printed drops in `test_replacement`; gaps filled in an
intraclass correlation in `test_reliability`; irrCAC's "ordinal" in `test_multirater`; length taken for bias in
`tests/test_audit`.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from calibration_vectors import VECTORS
from scipy.stats import wilcoxon

import calibration.latent
from calibration import CalibrationError
from calibration.correction import ppi
from calibration.estimate import bootstrap
from calibration.latent import dawid_skene
from calibration.panel import panel
from calibration.ratings import declare_scale, ratings_of
from calibration.recalibration import isotonic, recalibrate
from calibration.replacement import alt_test
from calibration.rogan_gladen import rogan_gladen
from calibration.stratified import post_stratified, weighted_ppi


def test_bounds_of_a_rare_corrected_rate_leave_the_scale_instead_of_being_clipped():
    # judgy and LLM-judge-reporting return clipped bounds only: (.12 + .9 - 1) / .8 = .025
    found = rogan_gladen(0.12, 100, specificity=0.9, m0=50, sensitivity=0.9, m1=50)
    assert found.value == pytest.approx(0.025)
    assert found.ci_low < 0


def test_bootstrap_replicates_are_not_clipped_to_the_scale():
    # evalproof clips each replicate to 0..1: eight corrections up and eight down around .98 then average below it
    values = np.array([0.98 + d for d in [1.0] * 8 + [-1.0] * 8 + [0.0] * 24])
    found = bootstrap(lambda s: s[:, 0] / 40, values, seed=1)
    assert found.value == pytest.approx(0.98)
    assert found.ci_high > 1.1
    assert found.ci_high - 0.98 == pytest.approx(0.98 - found.ci_low, abs=0.03)


def test_a_useless_judge_does_not_widen_the_interval():
    # evalproof has no lambda: with noise as judge its correction is worse than the labels alone
    rng = np.random.default_rng(1)
    y, f, rest = rng.normal(size=50), rng.normal(size=50) * 3, rng.normal(size=500) * 3
    tuned, fixed = ppi(y, f, rest), ppi(y, f, rest, lam=1.0)
    assert fixed.corrected.se > 2 * tuned.human_only.se
    assert tuned.corrected.se <= tuned.human_only.se * 1.01


def test_an_option_that_does_not_exist_is_an_error_and_not_the_two_sided_interval():
    # ppi-python takes alternative="larger" and returns the two-sided interval
    with pytest.raises(TypeError, match="alternative"):
        ppi([1.0, 0.0], [1.0, 0.0], [1.0, 0.0], alternative="larger")


def test_residuals_without_variance_are_guarded_in_every_estimator_with_a_design():
    # fewhumans divides by a variance of zero
    same, rest = np.tile([1.0, 2, 3, 4], 6), np.tile([1.0, 2, 3, 4], 30)
    weighted = weighted_ppi(same, same, np.full(24, 0.2), rest, lam=1.0)
    for found in (weighted.corrected, post_stratified(same, same, rest)):
        assert (found.value, found.ci_low, found.reason) == (2.5, None, "zero_residual_variance")


def test_labels_need_no_rescaling_and_no_learning_library(monkeypatch):
    # cje wants labels on 0..1 and brings scikit-learn
    for name in ("sklearn", "statsmodels", "sklearn.isotonic"):
        monkeypatch.setitem(sys.modules, name, None)
    rng = np.random.default_rng(2)
    y = rng.integers(1, 6, size=60) * 1.0
    f, rest = np.clip(y + rng.integers(0, 2, size=60), 1, 5), rng.integers(1, 6, size=300) * 1.0
    marks = recalibrate(y, f, rest).corrected
    shares = recalibrate((y - 1) / 4, (f - 1) / 4, (rest - 1) / 4).corrected
    for name in ("value", "ci_low", "ci_high"):
        assert getattr(marks, name) == pytest.approx(1 + 4 * getattr(shares, name))


def test_a_score_between_the_levels_is_refused_and_not_put_into_one_of_five_bins():
    # judge-kappa bins everything into fifths of 0..1
    with pytest.raises(CalibrationError, match=r"'0\.37'"):
        ratings_of(["q", "q"], ["judge", "human"], ["0.37", "1"], scale=declare_scale("1,2,3,4,5"))


def test_judges_that_agree_with_each_other_only_have_no_agreement_with_people():
    # judge-kappa averages kappa over pairs of judges: 1 here, although both are at chance, and gives no interval
    human, judged = [1, 1, 2, 2] * 20, [1, 2, 1, 2] * 20
    rows = [(str(i), name, label) for name, labels in (("h", human), ("a", judged), ("b", judged))
            for i, label in enumerate(labels)]  # fmt: skip
    found = panel(ratings_of(*zip(*rows, strict=True), scale=declare_scale("1,2")), ["a", "b"], "h", replicates=499)
    for estimate in (found.majority_kappa, *(member.kappa for member in found.members)):
        assert estimate.value == pytest.approx(0)
        assert estimate.ci_low < 0 < estimate.ci_high
    assert found.effective_judges == pytest.approx(1)


def test_the_likelihood_of_dawid_skene_never_falls_and_three_steps_are_not_the_end(monkeypatch):
    # crowd-kit stops on a quantity that is not monotone: after 3 steps, posteriors off by up to .62
    codes = np.array(VECTORS["dawid_skene_60x4"]["inputs"]["labels_items_x_judges"])
    end, reached, posteriors = dawid_skene(codes, 2), [], []
    for steps in range(1, 13):
        monkeypatch.setattr(calibration.latent, "STEPS", steps)
        found = dawid_skene(codes, 2)
        assert not found.converged
        reached.append(found.log_likelihood)
        posteriors.append(found.posterior)
    assert (np.diff(reached) > 0).all()
    assert end.converged
    assert np.abs(posteriors[2] - end.posterior).max() > 0.05


def duel(rng, n):
    """Two people and a judge on n items: the person alone agrees with the other on 30%, the judge alone on 10%."""
    other = rng.integers(0, 2, size=n)
    alone = rng.choice([0, 1, 2], size=n, p=[0.6, 0.3, 0.1])
    person, judge = np.where(alone == 2, 1 - other, other), np.where(alone == 1, 1 - other, other)
    rows = [(str(i), name, int(label)) for name, labels in (("judge", judge), ("person", person), ("other", other))
            for i, label in enumerate(labels)]  # fmt: skip
    return ratings_of(*zip(*rows, strict=True)), np.where(alone == 1, 1.0, np.where(alone == 2, -1.0, 0.0))


def test_at_the_boundary_the_t_test_keeps_its_level_and_the_signed_rank_test_of_the_faq_does_not():
    # mean d = .3 - .1 = .2 = epsilon: a valid test rejects in 5%; AltTest's FAQ offers Wilcoxon below 30 items
    rng, ours, ranks = np.random.default_rng(3), 0, 0
    for _ in range(200):
        ratings, d = duel(rng, 40)
        (test,) = [t for t in alt_test(ratings, epsilon=0.2, replicates=20).per_rater if t.rater == "person"]
        ours += test.p < 0.05
        ranks += wilcoxon(d - 0.2, alternative="less").pvalue < 0.05
    assert ours <= 0.1 * 200
    assert ranks > 0.15 * 200


def test_the_curve_is_a_step_per_level_and_not_the_order_of_the_rows():
    # scipy's isotonic_regression knows no x: rows of one level must be averaged before
    assert isotonic([1, 1, 2, 2], [5, 1, 1, 5]).fitted == (3.0, 3.0)
    assert isotonic([2, 1, 2, 1], [4, 1, 2, 3]).fitted == (2.0, 3.0)
