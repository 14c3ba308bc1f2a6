"""Estimate, means, proportions and the bootstrap of sums."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from calibration import CalibrationError
from calibration.estimate import (
    Estimate,
    bootstrap,
    bootstrap_mean,
    clustered_proportion,
    mean,
    proportion,
    undefined,
)

KEYS = ["value", "se", "ci_low", "ci_high", "level", "method", "n", "n_clusters", "n_dropped", "status", "reason",
        "warnings", "seed", "replicates"]  # fmt: skip


def test_to_dict_has_exactly_the_keys_of_the_contract_and_is_json():
    estimate = mean([1, 2, 4])
    assert list(estimate.to_dict()) == KEYS
    assert json.loads(json.dumps(estimate.to_dict(), allow_nan=False))["value"] == pytest.approx(7 / 3)


def test_an_estimate_refuses_nan_and_a_missing_reason():
    with pytest.raises(CalibrationError, match="value is nan"):
        Estimate(value=math.nan)
    with pytest.raises(CalibrationError, match="without a reason"):
        Estimate(status="undefined")
    assert undefined("no_labels", n=3).to_dict()["value"] is None


def test_mean_of_four_values_has_the_textbook_t_interval():
    # 1,2,3,6: mean 3, sd sqrt(14/3) = 2.160247, se 1.080123, t(.975, 3) = 3.182446 -> 3 +- 3.437434
    estimate = mean([1, 2, 3, 6])
    assert estimate.value == 3
    assert estimate.se == pytest.approx(1.0801234497, abs=1e-9)
    assert (estimate.ci_low, estimate.ci_high) == pytest.approx((-0.437434, 6.437434), abs=1e-5)
    assert (estimate.n, estimate.method, estimate.status) == (4, "t", "ok")


def test_mean_of_nothing_is_undefined_and_of_one_value_has_no_interval():
    assert mean([]).reason == "no_values"
    assert mean([None, None]).n_dropped == 2
    one = mean([3.5, None])
    assert (one.value, one.ci_low, one.status, one.reason, one.n_dropped) == (3.5, None, "insufficient", "one_value", 1)


def test_mean_of_equal_values_never_has_an_interval_of_width_zero():
    bare = mean([4, 4, 4])
    assert (bare.value, bare.ci_low, bare.reason) == (4.0, None, "zero_variance")
    # all ones on 0..1 is 10 successes of 10: Wilson lower 10 / (10 + 1.96^2) = .7224672
    bounded = mean([1.0] * 10, bounds=(0, 1))
    assert bounded.ci_low == pytest.approx(0.7224672, abs=1e-7)
    assert bounded.ci_high == 1.0


def test_clustered_mean_uses_cr1_and_t_of_clusters_minus_one():
    # clusters (1,1), (3,5), (2): mean 2.4; error sums -2.8, 3.2, -.4; sum of squares 18.24; /25 * 3/2 = 1.0944
    estimate = mean([1, 1, 3, 5, 2], clusters=["a", "a", "b", "b", "c"])
    assert estimate.se == pytest.approx(math.sqrt(1.0944))
    # t(.975, 2) = 4.302652730
    assert estimate.ci_high - estimate.value == pytest.approx(4.302652730 * math.sqrt(1.0944))
    assert (estimate.n, estimate.n_clusters, estimate.method) == (5, 3, "t_cr1")
    assert estimate.warnings == ("few_clusters: 3",)
    assert mean([1, 2], clusters=["a", "a"]).reason == "one_cluster"


def test_values_that_are_not_finite_are_named_by_position():
    with pytest.raises(CalibrationError, match=r"values\[2\] is nan"):
        mean([1, None, float("nan")])
    with pytest.raises(CalibrationError, match="could not convert"):
        mean(["high"])  # type: ignore[list-item]
    with pytest.raises(CalibrationError, match="2 labels for 3 values"):
        mean([1, 2, 3], clusters=["a", "b"])


def test_proportion_has_the_wilson_interval():
    # 28 of 31: spec/calibration.md binary_bin40 sensitivity
    estimate = proportion(28, 31)
    assert (estimate.ci_low, estimate.ci_high) == pytest.approx((0.751001, 0.966535), abs=1e-6)
    assert proportion(0, 5).ci_low == 0.0
    assert proportion(5, 5).ci_high == 1.0
    assert proportion(0, 0).reason == "no_values"
    with pytest.raises(CalibrationError, match="successes is 6 of n 5"):
        proportion(6, 5)


def test_clustered_proportion_is_wider_when_clusters_agree_with_themselves():
    outcomes = [1] * 40 + [0] * 40
    alone = proportion(40, 80)
    clustered = clustered_proportion(outcomes, clusters=[i // 4 for i in range(80)])
    assert clustered.value == 0.5
    assert clustered.ci_high - clustered.ci_low > 1.8 * (alone.ci_high - alone.ci_low)
    same = clustered_proportion([1] * 80, clusters=[i // 4 for i in range(80)])
    assert same.ci_low == pytest.approx(proportion(20, 20).ci_low)


def test_bootstrap_of_a_mean_agrees_with_the_t_interval_and_repeats_with_its_seed():
    values = np.random.default_rng(3).normal(size=400)
    sums = np.column_stack([values, np.ones(400)])
    first = bootstrap(lambda s: s[:, 0] / s[:, 1], sums, seed=11, replicates=1999)
    assert first == bootstrap(lambda s: s[:, 0] / s[:, 1], sums, seed=11, replicates=1999)
    assert first != bootstrap(lambda s: s[:, 0] / s[:, 1], sums, seed=12, replicates=1999)
    reference = mean(values)
    assert first.se == pytest.approx(reference.se, rel=0.08)
    assert (first.ci_low, first.ci_high) == pytest.approx((reference.ci_low, reference.ci_high), abs=0.02)


def test_bootstrap_over_clusters_draws_whole_clusters():
    values = np.repeat(np.random.default_rng(3).normal(size=60), 5)
    sums = np.column_stack([values, np.ones(300)])
    rows = bootstrap(lambda s: s[:, 0] / s[:, 1], sums, seed=1, replicates=1999)
    clusters = bootstrap(
        lambda s: s[:, 0] / s[:, 1], sums, seed=1, replicates=1999, clusters=[i // 5 for i in range(300)]
    )
    assert clusters.n_clusters == 60
    assert clusters.se == pytest.approx(rows.se * math.sqrt(5), rel=0.1)
    few = bootstrap(lambda s: s[:, 0], [1.0, 2.0, 3.0, 4.0], seed=1, clusters=[1, 1, 2, 2])
    assert (few.value, few.reason) == (10.0, "fewer_than_5_clusters")


def test_a_mean_full_of_zeros_is_resampled_and_one_without_spread_keeps_the_wilson_bound():
    # 2 ones in 40: the count of a resample is binomial(40, .05), whose 2.5% and 97.5% points are 0 and 5
    found = bootstrap_mean([1.0, 1.0, None] + [0.0] * 38, seed=4)
    assert (found.value, found.ci_low, found.ci_high) == (0.05, 0.0, 5 / 40)
    assert (found.n, found.n_dropped) == (40, 1)
    assert (found.method, found.seed, found.replicates) == ("bootstrap_percentile", 4, 9999)
    assert bootstrap_mean([0.0] * 40, seed=4, bounds=(-4, 4)) == mean([0.0] * 40, bounds=(-4, 4))
    assert bootstrap_mean([], seed=4).reason == "no_values"


def test_a_mean_of_nine_values_or_four_clusters_is_too_few_to_resample():
    nine = bootstrap_mean([0.0, 1.0, 0.0] * 3, seed=1)
    assert (nine.value, nine.ci_low, nine.reason) == (pytest.approx(1 / 3), None, "n_below_10")
    four = bootstrap_mean([0.0, 1.0, 2.0] * 4, seed=1, clusters=[i // 3 for i in range(12)])
    assert (four.ci_low, four.reason) == (None, "fewer_than_5_clusters")


def test_bootstrap_counts_replicates_without_a_value():
    # 1 positive in 4 items: a resample misses it with probability (3/4)^4 = .316, and 1/0 is undefined
    estimate = bootstrap(lambda s: s[:, 1] / s[:, 0], [[1, 2], [0, 3], [0, 1], [0, 0]], seed=5, replicates=2000)
    counted = [w for w in estimate.warnings if w.startswith("undefined_replicates")]
    assert 560 < int(counted[0].split()[1]) < 710
    assert "degenerate_resamples" in estimate.warnings
    assert bootstrap(lambda s: s[:, 0] / 0, [0.0, 0.0], seed=1).reason == "statistic_undefined"


def test_importing_the_estimate_loads_neither_scipy_nor_pandas():
    code = (
        "import sys, calibration, calibration.estimate; print(sorted({'scipy', 'pandas', 'judge'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
