"""Planning labels before collecting them."""

from __future__ import annotations

import pytest
from calibration_vectors import VECTORS, named, near

from calibration import CalibrationError
from calibration.budget import (
    allocate_labels,
    labels_for_kappa,
    labels_for_proportion,
    labels_for_variance,
    plan_correction,
)


def test_labels_for_kappa_match_the_vector():
    for key, expected in VECTORS["kappa_sample_size_binary"]["expected"].items():
        kappa, prevalence, width = (float(part.lstrip("kphw")) for part in key.split("_"))
        assert labels_for_kappa(kappa, width, prevalence) == expected["n"]


def test_labels_for_a_share_match_the_vector():
    vector = VECTORS["proportion_n"]
    counts = [labels_for_proportion(p, vector["inputs"]["hw"]) for p in vector["inputs"]["p"]]
    assert counts == vector["expected"]["n"]


@pytest.mark.parametrize("name", named("ppi_planning_"))
def test_the_correction_plan_matches_the_vectors(name):
    vector = VECTORS[name]
    inputs, expected = vector["inputs"], vector["expected"]
    plan = plan_correction(inputs["sd_y"], inputs["rho"], inputs["n"], inputs["N"])
    assert plan.variance == near(expected["var"], vector)
    assert plan.half_width == near(expected["half_width"], vector)
    assert plan.effective_n == near(expected["effective_n"], vector)
    assert plan.human_only_half_width == near(expected["human_only_half_width"], vector)


def test_labels_for_a_variance_invert_the_plan():
    plan = plan_correction(0.5, 0.8, 120, 2000)
    assert labels_for_variance(plan.variance, 0.5, 0.8, 2000) == 120
    # without a judge: sd^2 / n = .25 / n
    assert labels_for_variance(0.0025, 0.5, 0.0, 2000) == 100


def test_labels_are_allocated_to_the_classes_as_in_the_vector():
    vector = VECTORS["lee_allocation"]
    inputs = vector["inputs"]
    assert allocate_labels(inputs["m"], inputs["p"], inputs["q0_pilot"], inputs["q1_pilot"], inputs["m_pilot"]) == (
        vector["expected"]["m0"],
        vector["expected"]["m1"],
    )


def test_plans_that_cannot_be_are_refused():
    for arguments in ((1.0, 0.1, 0.5), (0.6, 0.0, 0.5), (0.6, 0.1, 1.0), (-0.9, 0.1, 0.9), (0.6, float("nan"), 0.5)):
        with pytest.raises(CalibrationError):
            labels_for_kappa(*arguments)
    with pytest.raises(CalibrationError, match="n is 0"):
        plan_correction(0.5, 0.5, 0, 10)
