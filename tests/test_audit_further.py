"""judge audit beyond agreement: drift, panels, calibrated scores, probabilities, fitted bands; over written runs."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import judge
import rubrics as rubric_files
from judge.errors import UsageError
from judge.report.audit import sections
from judge.report.page import markdown
from tests.audited_runs import bundled, case, line, ordinal, quick_line, scored_run, write_labels, write_run

FAST = {"replicates": 200}


def noisy(rng, truth, spread=1):
    return [float(v) for v in np.clip(np.array(truth) + rng.integers(-spread, spread + 1, size=len(truth)), 1, 5)]


def people(scores):
    return [(f"c{n}", "ann", f"{score:g}") for n, score in enumerate(scores)]


@pytest.fixture
def truth():
    return [float(v) for v in np.random.default_rng(1).integers(1, 6, size=150)]


def test_a_new_version_that_scores_the_same_is_equivalent_and_one_that_is_kinder_has_changed(tmp_path, truth):
    rng = np.random.default_rng(2)
    old = noisy(rng, truth)
    labels = write_labels(tmp_path / "l.csv", people(truth))
    before = scored_run(tmp_path / "before", old)
    same = judge.audit(scored_run(tmp_path / "same", old), labels, against=before, **FAST).rubrics["plain"]["drift"]
    assert (same["verdict"], same["n"], same["changed"]) == ("equivalent", 150, [])
    kinder = [min(5.0, score + 1) for score in old]
    found = judge.audit(scored_run(tmp_path / "kinder", kinder), labels, against=before, **FAST)
    drift = found.rubrics["plain"]["drift"]
    assert (drift["verdict"], drift["difference"]["ci_low"] > 0, drift["p_shift"]["value"] > 0) == (
        "changed",
        True,
        True,
    )
    page = markdown("Audit", sections(found.rubrics["plain"]))
    assert "Against before: changed" in page
    assert json.loads((tmp_path / "kinder" / "audit" / "plain.json").read_text())["drift"]["verdict"] == "changed"


def test_only_cases_with_the_same_content_are_anchors(tmp_path, truth):
    labels = write_labels(tmp_path / "l.csv", people(truth))
    before = scored_run(tmp_path / "before", truth)
    cases = [case(n, answer="Rewritten.") if n < 30 else case(n) for n in range(len(truth))]
    rubric = ordinal()
    after = write_run(tmp_path / "after", cases, [line(f"c{n}", rubric, s) for n, s in enumerate(truth)], [rubric])
    assert judge.audit(after, labels, against=before, **FAST).rubrics["plain"]["drift"]["n"] == 120
    strangers = scored_run(tmp_path / "strangers", truth, question="Something else?")
    with pytest.raises(UsageError, match="check the ids"):
        judge.audit(after, labels, against=strangers, **FAST)


def test_looks_before_this_one_take_part_and_the_page_tells_its_own_p(tmp_path, truth):
    labels = write_labels(tmp_path / "l.csv", people(truth))
    before = scored_run(tmp_path / "before", truth)
    after = scored_run(tmp_path / "after", [min(5.0, s + (n % 12 == 0)) for n, s in enumerate(truth)])
    once, later = (
        judge.audit(after, labels, against=before, looks=6, earlier=p, **FAST).rubrics["plain"] for p in ((), (1e-9,))
    )
    one, two = (found["drift"]["checks"][0]["p_adjusted"] for found in (once, later))
    assert two < 1
    assert two == pytest.approx(5 / 6 * one)
    assert f"one of 6 planned looks; its own p, for --earlier at the next look: {once['drift']['p']:.3g}" in "\n".join(
        note for section in sections(once) for note in section.notes
    )
    with pytest.raises(UsageError, match="an extra look needs a new plan"):
        judge.audit(after, labels, against=before, earlier=(0.2,), **FAST)


def transported(tmp_path, truth, systems):
    """A run with labels, and another one on other cases by two systems, with their own labels."""
    kind = [min(5.0, score + 1) for score in truth]
    run = scored_run(tmp_path / "run", kind)
    labels, rubric = write_labels(tmp_path / "l.csv", people(truth)), ordinal()
    cases, lines, marks = [], [], []
    for n in range(120):
        said = truth[n]
        cases.append(case(n, question=f"Other question {n}?", system=systems[n % 2]))
        lines.append(line(f"c{n}", rubric, min(5.0, said + 1) if n % 2 else said))
        marks.append((f"c{n}", "bob", f"{said:g}"))
    return run, labels, write_run(tmp_path / "target", cases, lines, [rubric]), write_labels(tmp_path / "t.csv", marks)


def test_calibrated_scores_are_tested_on_another_run_and_each_of_its_systems(tmp_path, truth):
    run, labels, target, held = transported(tmp_path, truth, ("harsh", "alike"))
    options = {"label_design": "random", "transport": target, "transport_labels": held, **FAST}
    found = judge.audit(run, labels, **options).rubrics["plain"]
    verdicts = {one["system"]: one["verdict"] for one in found["transport"]["systems"]}
    assert verdicts == {"harsh": "fail", "alike": "pass"}
    assert (found["transport"]["left_out"], found["transport"]["changed"]) == (0, [])
    page = markdown("Audit", sections(found))
    assert "Do the calibrated scores hold in target?" in page
    assert "they do not: label there" in page
    with pytest.raises(UsageError, match="they need --label-design random"):
        judge.audit(run, labels, **options | {"label_design": "unknown"})
    with pytest.raises(UsageError, match="the cases carry no labels"):
        judge.audit(run, labels, **options | {"transport_labels": None})


def test_a_curve_is_not_tested_on_the_cases_that_it_was_fitted_to(tmp_path, truth):
    run, labels = scored_run(tmp_path / "run", truth), write_labels(tmp_path / "l.csv", people(truth))
    again = scored_run(tmp_path / "again", truth)
    with pytest.raises(UsageError, match="those that the curve was fitted to"):
        judge.audit(run, labels, label_design="random", transport=again, transport_labels=labels, **FAST)


def test_a_panel_reports_each_judge_the_majority_and_how_alike_they_err(tmp_path, truth):
    rng = np.random.default_rng(3)
    labels = write_labels(tmp_path / "l.csv", people(truth))
    runs = [scored_run(tmp_path / name, noisy(rng, truth)) for name in ("one", "two", "three")]
    found = judge.audit(runs[0], labels, panel=runs[1:], dawid_skene=True, **FAST).rubrics["plain"]
    panel = found["panel"]
    assert [member["judge"] for member in panel["members"]] == ["one", "two", "three"]
    assert 2 < panel["effective_judges"] < 4
    assert len(panel["cases"]) == 150
    assert "independently" in panel["dawid_skene"]["assumes"]
    assert "worth" in markdown("Audit", sections(found))
    with pytest.raises(UsageError, match="two runs are called 'one'"):
        judge.audit(runs[0], labels, panel=[runs[0]], **FAST)
    with pytest.raises(UsageError, match="3 judges or more"):
        judge.audit(runs[0], labels, panel=[runs[1]], dawid_skene=True, **FAST)


def test_calibrated_scores_stand_beside_the_raw_ones_for_every_case(tmp_path, truth):
    kind = [min(5.0, score + 1) for score in truth]
    run = scored_run(tmp_path / "run", kind)
    found = judge.audit(run, write_labels(tmp_path / "l.csv", people(truth)[:100]), label_design="random", **FAST)
    calibrated = found.rubrics["plain"]["recalibrated"]
    assert calibrated["corrected"]["ci_low"] < np.mean(truth) < calibrated["corrected"]["ci_high"]
    assert "cases" not in calibrated
    with (run / "audit" / "plain-calibrated.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 150
    assert sum(row["labelled"] == "no" for row in rows) == 50
    assert all(float(row["expected_human_score"]) < 2.5 for row in rows if row["score"] == "2")
    unknown = judge.audit(run, tmp_path / "l.csv", **FAST).rubrics["plain"]
    assert unknown["recalibrated"] is None


def test_a_quick_judge_shows_whether_its_probabilities_hold(tmp_path):
    rng = np.random.default_rng(4)
    rubric = bundled("faithfulness")
    p = rng.random(120)
    run = write_run(tmp_path / "run", [case(n) for n in range(120)],
                    [quick_line(f"c{n}", rubric, float(v)) for n, v in enumerate(p)], [rubric], mode="quick")  # fmt: skip
    labels = write_labels(
        tmp_path / "l.csv",
        [(f"c{n}", "ann", "pass" if rng.random() < v else "fail") for n, v in enumerate(p)],
        "faithfulness",
    )
    found = judge.audit(run, labels, **FAST).rubrics["faithfulness"]
    assert found["confidence"]["ece"]["value"] < 2 * found["confidence"]["ece_if_calibrated"]
    assert "Do its probabilities hold?" in markdown("Audit", sections(found))


def banded_run(tmp_path, n=160):
    """Faithfulness by its own strict bands, and people to whom half of the claims is worth a 4."""
    rng, rubric = np.random.default_rng(5), bundled("faithfulness")
    rates = np.round(rng.random(n) * 8) / 8
    scores = [
        next((level for level, cut in sorted(rubric.bands.items(), reverse=True) if rate >= cut), 1) for rate in rates
    ]
    lines = [
        line(f"c{i}", rubric, float(s), details={"support_rate": float(r)})
        for i, (s, r) in enumerate(zip(scores, rates, strict=True))
    ]
    run = write_run(tmp_path / "run", [case(i) for i in range(n)], lines, [rubric])
    marks = np.clip(np.round(2 + 4 * rates + rng.normal(size=n) * 0.3), 1, 5)
    return run, write_labels(tmp_path / "l.csv", people(marks), "faithfulness")


def test_fitted_bands_make_a_rubric_that_extends_the_old_one_and_asks_the_same(tmp_path):
    run, labels = banded_run(tmp_path)
    found = judge.audit(run, labels, fit_bands=tmp_path / "mine", **FAST).rubrics["faithfulness"]
    assert found["bands"]["better"]
    fitted, old = rubric_files.load("faithfulness_fitted", [tmp_path / "mine"]), bundled("faithfulness")
    assert fitted.bands[4] < 0.6 < old.bands[4]
    assert (fitted.body, fitted.root, fitted.anchors) == (old.body, old.root, old.anchors)
    with pytest.raises(UsageError, match="is there already"):
        judge.audit(run, labels, fit_bands=tmp_path / "mine", **FAST)


def test_bands_are_not_fitted_to_few_labels_or_to_a_rubric_without_bands(tmp_path, truth):
    run, labels = banded_run(tmp_path, n=60)
    with pytest.raises(UsageError, match="100 are needed"):
        judge.audit(run, labels, fit_bands=tmp_path / "mine", **FAST)
    plain = scored_run(tmp_path / "plain", truth)
    with pytest.raises(UsageError, match="has no bands"):
        judge.audit(plain, write_labels(tmp_path / "p.csv", people(truth)), fit_bands=tmp_path / "mine", **FAST)


def test_repeats_show_reliability_and_the_flips_across_the_pass_mark(tmp_path):
    from judge.summary import summarize

    rubric = ordinal()
    given = {"c0": (4.0, 4.0, 5.0), "c1": (3.0, 4.0, 3.0), "c2": (1.0, 1.0, 1.0), "c3": (5.0, 5.0, 5.0)}
    lines = [line(name, rubric, score, repeat=at) for name, scores in given.items() for at, score in enumerate(scores)]
    run = write_run(tmp_path / "run", [case(n) for n in range(4)], lines, [rubric])
    repeats = summarize(run)["rubrics"]["plain"]["repeats"]
    # c1 crosses 4; c0 and c1 change; item means 13/3, 10/3, 1, 5: MSW = (2/3 + 2/3) / 8
    assert (repeats["flip_rate"]["value"], repeats["changed_rate"]["value"]) == (0.25, 0.5)
    means = np.array([13 / 3, 10 / 3, 1, 5])
    msb, msw = 3 * means.var(ddof=1), (4 / 3) / 8
    assert repeats["icc"]["value"] == pytest.approx((msb - msw) / (msb + 2 * msw))
    # ICC .949: .95 x .051 / (.05 x .949) = 1.02, two runs to average
    assert repeats["repeats_needed"] == 2
