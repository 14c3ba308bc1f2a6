"""ragchecker_meta (arXiv 2408.08067): correlations of Table 2 and human agreement, read in place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.agreement import agreement
from calibration.ratings import declare_scale, ratings_of
from calibration.tables import gwet_ac, kendall_tau_b, pearson, spearman, table_of

PUBLIC = Path(__file__).parents[2].parent / "shared" / "public"
FOLDER = PUBLIC / "ragchecker_meta"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the public data are not beside this repository")

DIMENSIONS = ("correctness", "completeness", "overall")
FIVE = declare_scale("-2,-1,0,1,2")


def statistics(page):
    return {
        "n": page.n, "pct": page.percent_agreement.value, "kappa": page.kappa["none"].value,
        "pi": page.scott_pi.value, "ac1": page.ac1.value, "alpha_nom": page.krippendorff_alpha["nominal"].value,
        "kappa_lin": page.kappa["linear"].value, "kappa_quad": page.kappa["quadratic"].value,
        "alpha_ord": page.krippendorff_alpha["ordinal"].value, "alpha_int": page.krippendorff_alpha["interval"].value,
        "pearson": page.pearson.value, "spearman": page.spearman.value, "kendall_b": page.kendall_tau_b.value,
    }  # fmt: skip


def rated(first, second, scale):
    items = [f"p{i}" for i in range(len(first))]
    raters = ["judge"] * len(items) + ["human"] * len(items)
    return ratings_of(items * 2, raters, [*first, *second], scale=scale)


def correlations(x, y):
    """Pearson, Spearman and tau-b of any numbers, through the table of their distinct values."""
    levels_x, left = np.unique(x, return_inverse=True)
    levels_y, right = np.unique(y, return_inverse=True)
    size = max(len(levels_x), len(levels_y))
    table = table_of(left, right, size)
    values = [np.append(levels, np.zeros(size - len(levels))) for levels in (levels_x, levels_y)]
    return {
        "pearson": float(pearson(table, *values)),
        "spearman": float(spearman(table)),
        "kendall_b": float(kendall_tau_b(table)),
    }


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_human_agreement_equals_the_expected_values_and_the_human_row(pairs, expected, published, dimension):
    first, second = ([pair[f"{name}_{dimension}"] for pair in pairs] for name in ("h1", "h2"))
    page = agreement(rated(first, second, FIVE), replicates=20)
    target = expected[dimension]
    found = statistics(page)
    assert found == pytest.approx({name: target["human_human"][name] for name in found}, abs=1e-9)
    assert page.within_1.value == pytest.approx(target["within1"], abs=1e-9)
    assert float(gwet_ac(np.array(page.confusion.table, float), "quadratic")) == pytest.approx(
        target["human_human"]["ac2_quad"], abs=1e-9
    )
    for name, value in (("Pearson", page.pearson.value), ("Spearman", page.spearman.value)):
        cell = published[f"{dimension} human {name}"]
        assert 100 * value == pytest.approx(cell["published"], abs=cell["tol"])


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_judge_correlations_equal_the_expected_values_and_the_judge_row(pairs, expected, published, dimension):
    d = np.array([pair[f"judge_B_{dimension}"] - pair[f"judge_A_{dimension}"] for pair in pairs])
    scaled = 4 * ((d - d.min()) / (d.max() - d.min()) - 0.5)
    labels = [pair[f"{name}_{dimension}"] for name in ("h1", "h2") for pair in pairs]
    found = correlations(np.tile(scaled, 2), np.array(labels, float))
    target = expected[dimension]["judge_human560"]
    assert found == pytest.approx({name: target[name] for name in found}, abs=1e-9)
    for name in ("Pearson", "Spearman"):
        cell = published[f"{dimension} judge {name}"]
        assert 100 * found[name.lower()] == pytest.approx(cell["published"], abs=cell["tol"])


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_signs_of_two_humans_as_a_three_label_scale(pairs, expected, dimension):
    signs = [np.sign([pair[f"{name}_{dimension}"] for pair in pairs]).astype(int) for name in ("h1", "h2")]
    found = statistics(agreement(rated(*signs, declare_scale("-1,0,1")), replicates=20))
    target = expected[dimension]["sign_h1_h2"]
    assert found == pytest.approx({name: target[name] for name in found}, abs=1e-9)


def test_the_pooled_share_within_one_step_is_the_printed_one(pairs, published):
    near = [abs(pair[f"h1_{d}"] - pair[f"h2_{d}"]) <= 1 for d in DIMENSIONS for pair in pairs]
    pages = [
        agreement(rated([p[f"h1_{d}"] for p in pairs], [p[f"h2_{d}"] for p in pairs], FIVE), replicates=20)
        for d in DIMENSIONS
    ]
    cell = published["share |h1-h2|<=1, 3 dims pooled"]
    pooled = 100 * sum(page.within_1.value for page in pages) / 3
    assert pooled == pytest.approx(100 * sum(near) / len(near))
    assert pooled == pytest.approx(cell["published"], abs=cell["tol"])
