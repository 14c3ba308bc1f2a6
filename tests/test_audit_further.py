"""judge audit beyond agreement: drift, panels, calibrated scores, probabilities, fitted bands; over written runs."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import judge
import rubrics as rubric_files
from calibration.compare import normal_p
from calibration.estimate import Estimate
from judge.errors import UsageError
from judge.report.audit import across, sections
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
    with pytest.raises(UsageError, match="its cases carry no plain labels; give --transport-labels"):
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


def leaning_run(tmp_path, first, second):
    """Two rubrics on the same 60 cases; the judge adds `first` and `second` (functions of n) to what people say."""
    one, two = ordinal(name="plain"), ordinal(name="clear")
    said = [(2 + n % 3, 2 + n // 3 % 3) for n in range(60)]
    lines = [line(f"c{n}", one, float(a + first(n))) for n, (a, _) in enumerate(said)]
    lines += [line(f"c{n}", two, float(b + second(n))) for n, (_, b) in enumerate(said)]
    run = write_run(tmp_path / "run", [case(n) for n in range(60)], lines, [one, two])
    rows = [f"c{n},ann,{name},{marks[place]}" for n, marks in enumerate(said)
            for place, name in enumerate(("plain", "clear"))]  # fmt: skip
    (tmp_path / "l.csv").write_text("\n".join(["case_id,rater,rubric,label", *rows]) + "\n")
    return judge.audit(run, tmp_path / "l.csv", **FAST).rubrics


def test_errors_that_go_together_over_rubrics_are_halo_with_interval_and_n(tmp_path):
    found = leaning_run(tmp_path, lambda n: (-1, 1)[n // 9 % 2], lambda n: (-1, 1)[n // 9 % 2])
    (together,) = found["plain"]["halo"]
    assert (together["rubric"], together["n"], together["residuals"]["n"]) == ("clear", 60, 60)
    assert together["residuals"]["value"] == pytest.approx(1)
    assert together["judge"]["value"] > together["people"]["value"] == pytest.approx(0, abs=1e-9)
    assert found["clear"]["halo"] == [{**together, "rubric": "plain"}]
    page = markdown("Audit", across(found))
    assert "Do its errors go together?" in page
    assert page.count("| plain | clear | 60 |") == 1


def test_errors_of_their_own_are_no_halo_and_one_rubric_alone_has_none(tmp_path):
    found = leaning_run(tmp_path, lambda n: (-1, 1)[n % 2], lambda n: (-1, 1)[n // 2 % 2])
    residuals = found["plain"]["halo"][0]["residuals"]
    assert residuals["value"] == pytest.approx(0, abs=1e-9)
    assert residuals["ci_low"] < 0 < residuals["ci_high"]
    alone = judge.audit(tmp_path / "run", tmp_path / "l.csv", rubrics="plain", **FAST).rubrics
    assert (alone["plain"]["halo"], len(across(alone))) == ([], 1)


def written_by(tmp_path, kinder, names, *, people_of=lambda n: 2 + n % 3, system=False):
    """120 cases by turns of the named generators; the judge adds `kinder(name, mark)` to what people say."""
    rubric, rows = ordinal(), []
    for n in range(120):
        name, mark = names[n % len(names)], people_of(n)
        more = {"system": name} if system else {"metadata": {"generator": name}}
        rows.append((case(n, **more), line(f"c{n}", rubric, float(mark + kinder(name, mark))), (f"c{n}", "ann", mark)))
    cases, lines, marks = (list(column) for column in zip(*rows, strict=True))
    run = write_run(tmp_path / "run", cases, lines, [rubric])
    audited = judge.audit(run, write_labels(tmp_path / "l.csv", marks), **FAST).rubrics["plain"]
    return audited, {one["family"]: one for one in (audited["by_generator"] or {"families": []})["families"]}


def test_a_judge_that_is_kinder_to_its_own_family_is_found_at_equal_marks_by_people(tmp_path):
    # 120 cases, marks 2 to 4 in blocks of two, so that both families get each of them equally often
    audited, found = written_by(
        tmp_path, lambda name, mark: 1.0 if "gpt" in name else 0.0, ("openai/gpt-4o", "claude-3"),
        people_of=lambda n: 2 + n // 2 % 3,
    )  # fmt: skip
    assert audited["by_generator"]["judge_family"] == "gpt"
    assert (found["gpt"]["own"], found["gpt"]["n"], found["gpt"]["lean"]["value"]) == (True, 60, 1.0)
    assert (found["gpt"]["against_others"]["value"], found["claude"]["lean"]["value"]) == (1.0, 0.0)
    page = markdown("Audit", sections(audited))
    assert "gpt (the judge is one)" in page


def test_a_real_preference_among_noise_has_an_interval_and_a_p_adjusted_over_the_families(tmp_path):
    rng = np.random.default_rng(9)

    def kinder(name, mark):
        return float(rng.choice([-1, 0, 1])) + (1.0 if name == "gpt-4o" else 0.0)

    audited, found = written_by(tmp_path, kinder, ("gpt-4o", "claude-3", "gemini"), people_of=lambda n: 2 + n // 3 % 2)
    own = found["gpt"]
    assert "self-preference: this judge is kinder" in markdown("Audit", sections(audited))
    assert own["favoured"]
    assert 0 < own["against_others"]["ci_low"] < 1 < own["against_others"]["ci_high"]
    assert own["against_others"]["method"] == "bootstrap_percentile"
    assert not found["claude"]["favoured"]
    raw = normal_p(Estimate(value=own["against_others"]["value"], se=own["against_others"]["se"]))
    assert own["p_adjusted"] == pytest.approx(3 * raw)


def test_a_judge_that_pulls_marks_to_the_middle_has_no_preference_where_its_own_family_is_worse(tmp_path):
    # its own family gets 2 or 3 from people, the other 3 or 4; every 2 becomes 3 and every 4 becomes 3, whoever wrote it
    _, found = written_by(
        tmp_path, lambda name, mark: float(3 - mark), ("gpt-4o", "claude-3"),
        people_of=lambda n: (2 + n // 2 % 2) if n % 2 == 0 else (3 + n // 2 % 2),
    )  # fmt: skip
    assert found["gpt"]["lean"]["value"] == 0.5
    assert found["claude"]["lean"]["value"] == -0.5
    assert (found["gpt"]["against_others"]["value"], found["gpt"]["favoured"]) == (0.0, False)
    # matched on the mark 3 only: 30 of each
    assert (found["gpt"]["against_others"]["n"], found["gpt"]["against_others"]["n_dropped"]) == (60, 60)


def test_systems_stand_in_for_generators_and_one_family_alone_is_not_compared(tmp_path):
    _, found = written_by(tmp_path, lambda name, mark: 0.0, ("rag-gpt-4o", "rag-mixtral"), system=True)
    assert list(found) == ["gpt", "rag-mixtral"]
    audited, none = written_by(tmp_path / "b", lambda name, mark: 0.0, ("gpt-4o", "gpt-4.1"))
    assert (none, audited["by_generator"]) == ({}, None)


def test_leniency_shows_how_often_the_top_mark_is_given(tmp_path):
    run = scored_run(tmp_path / "run", [5.0] * 18 + [3.0] * 12)
    labels = write_labels(tmp_path / "l.csv", [(f"c{n}", "ann", 5 if n < 6 else 3) for n in range(30)])
    found = judge.audit(run, labels, **FAST).rubrics["plain"]
    assert found["leniency"]["top"] == "5"
    assert (found["leniency"]["judge"]["value"], found["leniency"]["people"]["value"]) == (0.6, 0.2)
    assert (found["leniency"]["judge"]["method"], found["leniency"]["judge"]["n"]) == ("wilson", 30)
    assert "marks of 5, by the judge" in markdown("Audit", sections(found))
