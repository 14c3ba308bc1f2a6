"""judge audit: what people said against what the judge said, and whether it may be trusted; over written runs."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest

import judge
from calibration.errors import CalibrationError
from calibration.ranking import rank_correlation
from judge.errors import InputError, UsageError
from judge.report.audit import overview, sections
from judge.report.page import markdown
from tests.audited_runs import bundled, case, line, ordinal, quick_line, scored_run, write_labels, write_run

FAST = {"replicates": 200}
KEYS = {
    "rubric", "judge_fingerprint", "prompt_hash", "n", "agreement", "by_slice", "by_score_level", "scores_compared",
    "corrected", "verdict", "thresholds", "review",
}  # fmt: skip


def audit(run, labels=None, **options):
    return judge.audit(run, labels, **FAST | options)


def same(scores, rater="ann"):
    """The judge's own scores as labels."""
    return [(f"c{n}", rater, f"{score:g}") for n, score in enumerate(scores) if score is not None]


def finite(value):
    """Whether a JSON document holds neither NaN nor infinity."""
    json.dumps(value, allow_nan=False)
    return True


LEVELS = [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_judge_that_agrees_on_sixty_cases_is_trusted_and_the_json_has_the_keys_of_the_contract(tmp_path):
    scores = LEVELS * 12
    run = scored_run(tmp_path / "run", scores)
    found = audit(run, write_labels(tmp_path / "l.csv", same(scores))).rubrics["plain"]
    assert set(found) >= KEYS
    assert found["verdict"] == "trusted"
    assert found["agreement"]["kappa"]["quadratic"]["value"] == 1
    assert found["agreement"]["kappa"]["quadratic"]["ci_low"] < 1
    assert found["agreement"]["constant_judge_accuracy"] == pytest.approx(0.2)
    assert found["review"] == []
    assert json.loads((run / "audit" / "plain.json").read_text()) == found
    assert finite(found)


def test_the_same_labels_give_the_same_bytes(tmp_path):
    scores = LEVELS * 8
    run = scored_run(tmp_path / "run", scores)
    labels = write_labels(tmp_path / "l.csv", same(scores[1:]))
    written = []
    for _ in range(2):
        audit(run, labels)
        written.append([(run / "audit" / name).read_bytes() for name in ("plain.json", "audit.md", "plain-review.csv")])
    assert written[0] == written[1]


def test_the_verdict_stands_on_the_lower_bound_not_on_the_value(tmp_path):
    # 24 cases, 4 far misses: kappa is above .6 while its lower bound is not
    scores = LEVELS * 4 + [1.0, 1.0, 5.0, 5.0]
    marks = [*same(LEVELS * 4), ("c20", "ann", 4), ("c21", "ann", 3), ("c22", "ann", 2), ("c23", "ann", 3)]
    run = scored_run(tmp_path / "run", scores)
    found = audit(run, write_labels(tmp_path / "l.csv", marks)).rubrics["plain"]
    kappa = found["agreement"]["kappa"]["quadratic"]
    assert kappa["value"] > 0.6 > kappa["ci_low"] > 0
    assert found["verdict"] == "usable_with_correction"
    assert audit(run, tmp_path / "l.csv", thresholds={"kappa": 0.2}).rubrics["plain"]["verdict"] == "trusted"


def test_a_judge_without_any_relation_to_people_is_not_usable(tmp_path):
    scores = LEVELS * 20
    marks = [(f"c{n}", "ann", LEVELS[n // 20]) for n in range(100)]
    found = audit(scored_run(tmp_path / "run", scores), write_labels(tmp_path / "l.csv", marks)).rubrics["plain"]
    assert found["verdict"] == "not_usable"


def test_a_constant_judge_agrees_often_and_is_not_usable(tmp_path):
    # nine of ten answers are good: always 5 is right in 90% and worth nothing
    run = scored_run(tmp_path / "run", [5.0] * 100)
    marks = [(f"c{n}", "ann", 5 if n % 10 else 1) for n in range(100)]
    found = audit(run, write_labels(tmp_path / "l.csv", marks)).rubrics["plain"]
    assert found["agreement"]["percent_agreement"]["value"] == found["agreement"]["constant_judge_accuracy"] == 0.9
    assert found["agreement"]["kappa"]["quadratic"]["value"] == 0
    assert "judge_constant" in found["agreement"]["warnings"]
    assert found["rank_correlation"]["reason"] == "constant_input"
    assert found["verdict"] == "not_usable"


def test_constant_people_and_three_labels_give_no_verdict_and_no_nan(tmp_path):
    run = scored_run(tmp_path / "run", [5.0] * 40)
    constant = audit(run, write_labels(tmp_path / "l.csv", [(f"c{n}", "ann", 5) for n in range(40)])).rubrics["plain"]
    assert constant["verdict"] == "too_few_labels"
    assert constant["agreement"]["kappa"]["none"]["reason"] == "single_class"
    assert "would notice" in constant["because"]
    three = audit(run, write_labels(tmp_path / "m.csv", [("c0", "ann", 5), ("c1", "ann", 1), ("c2", "ann", 3)]))
    assert three.rubrics["plain"]["verdict"] == "too_few_labels"
    assert finite(constant)
    assert finite(three.rubrics)


def test_labelled_cases_without_a_score_are_listed_with_the_reason(tmp_path):
    scores = [*LEVELS * 3, None]
    run = scored_run(tmp_path / "run", scores)
    marks = [*same(scores), ("c15", "ann", 2), ("c99", "ann", 3)]
    found = audit(run, write_labels(tmp_path / "l.csv", marks)).rubrics["plain"]
    assert found["dropped"] == [
        {"case_id": "c15", "reason": "undefined: refusal"}, {"case_id": "c99", "reason": "not_judged"}
    ]  # fmt: skip
    assert found["n"] == 15


def test_two_people_give_a_ceiling_and_the_judge_is_held_against_it(tmp_path):
    scores = LEVELS * 12
    marks = same(scores) + same(scores, "bob")
    found = audit(scored_run(tmp_path / "run", scores), write_labels(tmp_path / "l.csv", marks)).rubrics["plain"]
    assert found["raters"] == {"ann": 60, "bob": 60}
    assert found["agreement"]["human_ceiling"]["delta"]["value"] == 0
    assert [check["name"] for check in found["checks"]] == ["kappa", "ceiling"]
    alone = audit(tmp_path / "run", tmp_path / "l.csv", rater="bob").rubrics["plain"]
    assert alone["raters"] == {"bob": 60}
    assert [check["name"] for check in alone["checks"]] == ["kappa"]


def test_a_lenient_judge_shows_its_lean_by_level_length_and_slice(tmp_path):
    # short answers: judged as people do; long ones: one level too high
    rubric = ordinal()
    cases, lines, marks = [], [], []
    for n in range(60):
        level, long = 1 + n % 4, n >= 30
        cases.append(case(n, answer="word " * (n % 30 + (40 if long else 2)), tags=["long"] if long else []))
        lines.append(line(f"c{n}", rubric, float(level + long)))
        marks.append((f"c{n}", "ann", level))
    run = write_run(tmp_path / "run", cases, lines, [rubric])
    found = audit(run, write_labels(tmp_path / "l.csv", marks)).rubrics["plain"]
    assert found["agreement"]["mean_bias"]["value"] == pytest.approx(0.5)
    leans = {row["group"]: row["lean"]["value"] for row in found["by_length"]["groups"]}
    assert (leans["short"], leans["middle"], leans["long"]) == (0, 0.5, 1)
    assert found["by_length"]["trend"]["ci_low"] > 0
    (tagged,) = [row for row in found["by_slice"] if row["slice"] == "tag long"]
    assert (tagged["n"], tagged["lean"]["value"]) == (30, 1)
    assert {row["level"]: row["people"]["value"] for row in found["by_score_level"]}["5"] == 4


def test_longer_answers_that_people_like_better_too_are_no_bias_towards_length(tmp_path):
    # judge-kappa takes Spearman of length and score for verbosity bias: here it is 1, and the judge leans nowhere
    rubric = ordinal()
    cases = [case(n, answer="word " * (10 * (n // 15) + 5)) for n in range(60)]
    lines = [line(f"c{n}", rubric, float(2 + n // 15)) for n in range(60)]
    marks = [(f"c{n}", "ann", 2 + n // 15 + (-1, 0, 1)[n % 3] * (n // 15 < 3)) for n in range(60)]
    run = write_run(tmp_path / "run", cases, lines, [rubric])
    found = audit(run, write_labels(tmp_path / "l.csv", marks)).rubrics["plain"]
    assert rank_correlation([len(one["answer"]) for one in cases], [one["score"] for one in lines]).value == 1
    assert found["by_length"]["trend"]["value"] == pytest.approx(0, abs=1e-9)
    assert {row["lean"]["value"] for row in found["by_length"]["groups"]} == {0}


def test_without_a_stated_design_there_is_no_corrected_mean_and_random_has_one_with_its_condition(tmp_path):
    scores = [min(level + 1, 5.0) for level in LEVELS * 40]
    run = scored_run(tmp_path / "run", scores)
    marks = [(f"c{n}", "ann", LEVELS[n % 5] if n % 7 else LEVELS[(n + 1) % 5]) for n in range(80)]
    labels = write_labels(tmp_path / "l.csv", marks)
    plain = audit(run, labels).rubrics["plain"]
    assert plain["corrected"] is None
    assert "not stated" in plain["not_corrected_because"]
    found = audit(run, labels, label_design="random").rubrics["plain"]["corrected"]
    assert found["method"] == "ppi++"
    assert found["naive"]["value"] == pytest.approx(3.8)
    assert found["corrected"]["ci_low"] < 3.1 < found["corrected"]["ci_high"]
    assert found["effective_n"] > 80
    assert found["labels_to_halve_ci"] > 80
    assert "random sample" in found["valid_when"]
    assert found["pass_rate"]["method"] == "ppi++"


def test_cases_that_share_a_question_are_one_unit_of_the_corrected_mean(tmp_path):
    # 50 questions with 4 answers each that fare alike; 20 questions are labelled
    rubric, levels = ordinal(), [LEVELS[(q * 7 + q // 5) % 5] for q in range(50) for _ in range(4)]
    marks = [(f"c{n}", "ann", min(5, max(1, levels[n] + (-1, 0, 0, 1)[n // 4 % 4]))) for n in range(80)]
    labels, found = write_labels(tmp_path / "l.csv", marks), {}
    for name, shared in (("shared", 4), ("apart", 1)):
        cases = [case(n, question=f"Question {n // shared}?") for n in range(200)]
        run = write_run(tmp_path / name, cases, [line(f"c{n}", rubric, s) for n, s in enumerate(levels)], [rubric])
        page = audit(run, labels, label_design="random").rubrics["plain"]
        found[name] = page["corrected"]["corrected"], page["recalibrated"]["corrected"]
    for shared, apart in zip(found["shared"], found["apart"], strict=True):
        assert (shared["n_clusters"], apart["n_clusters"]) == (20, None)
        assert shared["se"] > 1.7 * apart["se"]


def test_labels_drawn_by_score_or_with_known_chances_are_weighted_back(tmp_path):
    # 20 ones and 180 fives, 20 of each labelled; people say 2 for every one: mean (20 x 2 + 180 x 5) / 200 = 4.7
    scores = [1.0 if n < 20 else 5.0 for n in range(200)]
    run = scored_run(tmp_path / "run", scores)
    rows = [f"c{n},ann,{2 if n < 20 else 5 - (n == 39)},{1 if n < 20 else 20 / 180}" for n in range(40)]
    labels = tmp_path / "l.csv"
    labels.write_text("\n".join(["case_id,rater,label,propensity", *rows]) + "\n")
    for design, method in (("stratified", "ppi++_stratified"), ("propensity", "ppi++_weighted")):
        found = audit(run, labels, label_design=design).rubrics["plain"]
        assert found["corrected"]["method"] == method
        assert found["corrected"]["corrected"]["value"] == pytest.approx(4.7, abs=0.1)
        assert any("no_random_sample" in warning for warning in found["warnings"])
    with pytest.raises(UsageError, match=r"drawn with different chances .* give stratified"):
        audit(run, labels, label_design="random")
    plain = write_labels(tmp_path / "plain.csv", [(f"c{n}", "ann", 2 if n < 20 else 5) for n in range(40)])
    missing = audit(run, plain, label_design="propensity").rubrics["plain"]
    assert missing["corrected"] is None
    assert "propensity column" in missing["not_corrected_because"]


def test_labels_of_other_cases_correct_the_pass_rate_only(tmp_path):
    run = scored_run(tmp_path / "run", [5.0 if n % 3 else 1.0 for n in range(300)])
    marks = [(f"c{n}", "ann", "pass" if (n % 3 and n % 11) else "fail") for n in range(120)]
    found = audit(run, write_labels(tmp_path / "l.csv", marks), label_design="external").rubrics["plain"]["corrected"]
    assert (found["of"], found["method"]) == ("pass_rate", "rogan_gladen")
    assert found["naive"]["n"] == 180


def test_pass_and_fail_words_are_compared_with_the_pass_mark(tmp_path):
    scores = [5.0, 4.0, 3.0, 1.0] * 15
    words = [(f"c{n}", "ann", "pass" if score >= 4 else "FAIL") for n, score in enumerate(scores)]
    found = audit(scored_run(tmp_path / "run", scores), write_labels(tmp_path / "l.csv", words)).rubrics["plain"]
    assert (found["labels_are"], found["compared_on"]) == ("pass_fail", "pass_fail")
    assert found["agreement"]["scale"] == ["fail", "pass"]
    assert found["verdict"] == "trusted"


@pytest.fixture
def quick_run(tmp_path):
    """80 quick judgments: p is high for good cases but the mark of .5 is far too high; overlap is noise."""
    rubric = bundled("faithfulness")
    cases, lines, marks = [], [], []
    for n in range(80):
        good = n % 2 == 0
        p = 0.3 + (n % 7) / 100 if good else 0.05 + (n % 5) / 100
        cases.append(case(n))
        lines.append(quick_line(f"c{n}", rubric, 0.9 if n == 0 else p, overlap=(n % 13) / 13))
        marks.append((f"c{n}", "ann", 5 if good else 2))
    run = write_run(tmp_path / "run", cases, lines, [rubric], mode="quick")
    return run, write_labels(tmp_path / "l.csv", marks, "faithfulness")


def test_quick_scores_are_audited_on_pass_fail_auc_and_rank(quick_run):
    found = audit(*quick_run).rubrics["faithfulness"]
    assert found["compared_on"] == "pass_fail"
    assert found["auc"]["value"] == 1
    assert found["rank_correlation"]["value"] > 0.8
    assert found["agreement"]["kappa"]["none"]["value"] < 0.1
    assert [row["level"] for row in found["by_score_level"]] == ["p 0.0-0.2", "p 0.2-0.4", "p 0.8-1.0"]


def test_a_mark_is_fitted_out_of_fold_and_the_free_overlap_competes(quick_run):
    compared = audit(*quick_run).rubrics["faithfulness"]["scores_compared"]
    assert list(compared) == ["quick", "overlap"]
    assert 0.09 < compared["quick"]["fitted_mark"] < 0.3
    assert compared["quick"]["kappa_out_of_fold"]["value"] == 1
    assert compared["quick"]["kappa"]["value"] < 0.1
    assert compared["overlap"]["mark"] is None
    assert compared["overlap"]["kappa"]["reason"] == "no_declared_mark"
    assert compared["overlap"]["auc"]["value"] == pytest.approx(0.5, abs=0.1)
    assert compared["overlap"]["kappa_out_of_fold"]["ci_low"] < 0.1


def test_another_run_on_the_same_cases_competes_and_changed_cases_do_not_count(quick_run, tmp_path):
    run, labels = quick_run
    rubric = bundled("faithfulness")
    lines = [line(f"c{n}", rubric, 5.0 if n % 2 == 0 else 2.0) for n in range(80)]
    other = write_run(tmp_path / "full", [case(n) for n in range(80)], lines, [rubric])
    found = audit(run, labels, also=[other]).rubrics["faithfulness"]["scores_compared"]
    assert found["computed of full"]["kappa"]["value"] == 1
    assert found["computed of full"]["difference"]["ci_low"] > 0
    changed = write_run(tmp_path / "new", [case(n, answer="Another.") for n in range(80)], lines, [rubric])
    told = audit(run, labels, also=[changed])
    assert set(told.rubrics["faithfulness"]["scores_compared"]) == {"quick", "overlap"}
    assert any("shares too few" in note for note in told.notes)


def test_repeats_are_clustered_by_case_and_do_not_pose_as_labels(tmp_path):
    rubric, cases = ordinal(), [case(n) for n in range(40)]
    lines = [line(f"c{n}", rubric, LEVELS[n % 5], repeat=r) for n in range(40) for r in range(3)]
    run = write_run(tmp_path / "run", cases, lines, [rubric])
    marks = [(f"c{n}", "ann", LEVELS[(n + (n % 8 == 0)) % 5]) for n in range(40)]
    found = audit(run, write_labels(tmp_path / "l.csv", marks)).rubrics["plain"]
    assert found["n"] == 40
    assert found["agreement"]["kappa"]["quadratic"]["n"] == 120
    assert found["agreement"]["kappa"]["quadratic"]["n_clusters"] == 40
    assert found["auc"]["n"] == 40


def test_cases_that_share_a_question_are_resampled_together(tmp_path):
    scores = LEVELS * 12
    run = scored_run(tmp_path / "run", scores, question="One of many?")
    found = audit(run, write_labels(tmp_path / "l.csv", same(scores))).rubrics["plain"]
    assert found["agreement"]["kappa"]["quadratic"]["reason"] == "fewer_than_5_clusters"
    assert found["verdict"] == "too_few_labels"


def test_a_crowd_is_taken_as_votes_per_case(tmp_path):
    scores = LEVELS * 10
    marks = [(f"c{n}", f"w{(n + k) % 20}", f"{scores[n]:g}") for n in range(50) for k in range(3)]
    found = audit(scored_run(tmp_path / "run", scores), write_labels(tmp_path / "l.csv", marks)).rubrics["plain"]
    assert len(found["raters"]) == 20
    assert found["warnings"] == ["crowd: 20 raters are taken as 3 votes per case"]
    assert len(found["agreement"]["per_human"]) == 3


def test_the_review_list_starts_with_flipped_verdicts_and_its_csv_is_a_labels_file(tmp_path):
    rubric = ordinal()
    cases = [case(n, answer="=1+1" if n == 3 else f"Answer {n}.") for n in range(20)]
    lines = [line(f"c{n}", rubric, LEVELS[n % 5]) for n in range(20)]
    lines[3] |= {"rationale": "The number is wrong."}
    run = write_run(tmp_path / "run", cases, lines, [rubric])
    marks = [(f"c{n}", "ann", LEVELS[n % 5]) for n in range(20)]
    marks[3], marks[4], marks[0] = ("c3", "ann", 3), ("c4", "ann", 2), ("c0", "ann", 3)
    found = audit(run, write_labels(tmp_path / "l.csv", marks)).rubrics["plain"]
    assert [one["case_id"] for one in found["review"]] == ["c4", "c3", "c0"]
    assert found["review"][1]["evidence"]["weakest"] == "The number is wrong."
    sheet = list(csv.DictReader((run / "audit" / "plain-review.csv").open()))
    assert sheet[1]["answer"] == "'=1+1"
    for row in sheet:
        row |= {"rater": "carol", "label": "4"}
    with (tmp_path / "again.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(sheet[0]))
        writer.writeheader()
        writer.writerows(sheet)
    assert audit(run, tmp_path / "again.csv").rubrics["plain"]["raters"] == {"carol": 3}


def test_the_page_says_the_verdict_first_and_no_answer_can_break_it(tmp_path):
    rubric = ordinal()
    lines = [line(f"c{n}", rubric, LEVELS[n % 5]) for n in range(20)]
    run = write_run(tmp_path / "run", [case(n, answer="<b>| x\x1b[31m") for n in range(20)], lines, [rubric])
    found = audit(run, write_labels(tmp_path / "l.csv", [(f"c{n}", "ann", 3) for n in range(20)]))
    page = (run / "audit" / "audit.md").read_text()
    first = sections(found.rubrics["plain"])[0]
    assert first.title.endswith("too few labels to tell") or first.title.endswith("not usable")
    assert page.index("Can this judge be trusted?") < page.index("How well it agrees")
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "nan" not in page.lower()
    assert markdown("x", [overview(found.rubrics)])


@pytest.mark.parametrize("text, words", [
    ("case_id,rater,rubric,label\nc0,ann,plain,7\nc1,ann,plain,x\n", ["2 labels for 'plain'", "1..5", "l.csv:2", "'7'"]),
    ("case_id,rater,rubric,label\nc0,ann,plain,pass\nc1,ann,plain,3\n", ["marks and words are mixed"]),
    ("case_id,rater,rubric,label\nc0,ann,plain,nan\n", ["not on its scale"]),
    ("case_id,rater,rubric,label\nc0,ann,plain,4\nc0,ann,plain,5\n", ["given twice", "l.csv:3", "l.csv:2"]),
    ("case_id,rater,rubric,label\n,ann,plain,4\n", ["case_id: empty"]),
    ("id,label\nc0,4\n", ["case_id: no such column"]),
    ("case_id,mark\nc0,4\n", ["one column per rubric: plain"]),
    ("case_id,rater,rubric,label\nc0,ann,plane,4\n", ["did you mean `plain`?"]),
    ("case_id,rater,rubric,label\nc0,ann,plain,\n", ["no label for plain"]),
    ("case_id,rater,rubric,label\nx1,ann,plain,4\n", ["none of the 1 labelled cases is in the run", "'x1'", "'c0'"]),
    ("case_id,rater,rubric,label\nc0,judge,plain,4\n", ["'judge'", "rename"]),
    ("", ["no label for plain"]),
])  # fmt: skip
def test_bad_labels_are_plain_messages(tmp_path, text, words):
    run = scored_run(tmp_path / "run", LEVELS)
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises((UsageError, InputError)) as error:
        audit(run, tmp_path / "l.csv")
    for word in words:
        assert word in str(error.value)
    assert not (run / "audit").exists()


def test_bad_options_are_plain_messages(tmp_path):
    run = scored_run(tmp_path / "run", LEVELS)
    labels = write_labels(tmp_path / "l.csv", same(LEVELS))
    for options, words in (
        ({"rater": "bob"}, "there are: ann"),
        ({"rubrics": "faith"}, "it has: plain"),
        ({"thresholds": {"kapa": 0.5}}, "there are: kappa"),
        ({"thresholds": {"kappa": 6}}, "between -1 and 1"),
        ({"label_design": "randm"}, "choose random"),
    ):
        with pytest.raises(UsageError, match=words):
            audit(run, labels, **options)
    with pytest.raises(UsageError, match="carry no labels"):
        audit(run)
    with pytest.raises(UsageError, match="no such labels file"):
        audit(run, tmp_path / "none.csv")
    with pytest.raises(UsageError, match="not a run directory"):
        audit(tmp_path, labels)


def test_cases_of_the_rubrics_own_examples_are_refused_as_labels(tmp_path):
    shown = {"question": "Question 0?", "answer": "Answer 0."}
    rubric = ordinal().model_copy(update={"examples": (shown,)})
    run = scored_run(tmp_path / "run", LEVELS, rubric)
    with pytest.raises(CalibrationError, match="1 labelled items were used for the examples in the rubric: c0"):
        audit(run, write_labels(tmp_path / "l.csv", same(LEVELS)))


def test_labels_come_wide_from_json_lines_or_with_the_cases(tmp_path):
    scores = LEVELS * 4
    wide = tmp_path / "wide.csv"
    wide.write_text("case_id,plain\n" + "".join(f"c{n},{score:.1f}\n" for n, score in enumerate(scores)))
    run = scored_run(tmp_path / "run", scores, labels={"plain": {"author": 3}})
    assert audit(run, wide, rater="ann").rubrics["plain"]["raters"] == {"ann": 20}
    lines = tmp_path / "l.jsonl"
    lines.write_text("".join(json.dumps({"case_id": f"c{n}", "label": int(s)}) + "\n" for n, s in enumerate(scores)))
    assert audit(run, lines).rubrics["plain"]["raters"] == {"human": 20}
    assert audit(run).rubrics["plain"]["raters"] == {"author": 20}


def test_the_command_prints_json_alone_and_errors_without_traceback(tmp_path):
    scores = LEVELS * 3
    run = scored_run(tmp_path / "run", scores)
    labels = write_labels(tmp_path / "l.csv", same(scores))
    script = [sys.executable, "-m", "judge", "audit", str(run)]
    done = subprocess.run([*script, str(labels), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == {"plain"}
    bad = subprocess.run([*script, str(tmp_path / "gone.csv")], capture_output=True, text=True)
    assert bad.returncode == 2
    assert bad.stderr.startswith("error: ")
    assert "Traceback" not in bad.stderr


def test_a_missing_label_in_the_middle_shifts_no_pair_and_1_is_1_point_0(tmp_path):
    import pandas as pd

    run = scored_run(tmp_path / "run", LEVELS * 4)
    marks = ["1", 2, 3.0, "4.0", None] * 4
    table = pd.DataFrame({"case_id": [f"c{n}" for n in range(20)], "label": marks, "rater": "ann"})
    found = audit(run, table).rubrics["plain"]
    assert found["n"] == 16
    assert found["agreement"]["percent_agreement"]["value"] == 1
