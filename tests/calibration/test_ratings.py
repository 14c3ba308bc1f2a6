"""Reading ratings: declared scales, long and wide CSV, and input that must be refused in plain words."""

from __future__ import annotations

import json

import pytest

from calibration import CalibrationError
from calibration.agreement import agreement
from calibration.ratings import choose_raters, declare_scale, ratings_of, read_ratings

FIVE = declare_scale("1,2,3,4,5")
PASS = declare_scale("fail,pass")


def write(tmp_path, text):
    path = tmp_path / "ratings.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_long_form_becomes_a_grid_of_codes(tmp_path):
    path = write(tmp_path, "item,rater,label,cluster\nq1,judge,5,x\nq1,ann,4,x\nq2,judge,1,y\nq3,ann,2,y\n")
    ratings = read_ratings(path, scale=FIVE)
    assert ratings.items == ("q1", "q2", "q3")
    assert ratings.raters == ("judge", "ann")
    assert ratings.codes.tolist() == [[4, 3], [0, -1], [-1, 1]]
    assert ratings.clusters == ("x", "y", "y")
    assert ratings.dropped("judge", ["ann"]) == [("q2", "no_human_label"), ("q3", "no_judge_label")]


def test_wide_form_reads_one_column_per_rater(tmp_path):
    path = write(tmp_path, "id,judge,ann,bob,slice\nq1,fail,pass,,easy\nq2,pass,pass,fail,hard\n")
    ratings = read_ratings(path, scale=PASS, item="id")
    assert ratings.raters == ("judge", "ann", "bob")
    assert ratings.codes.tolist() == [[0, 1, -1], [1, 1, 0]]
    assert ratings.slices == ("easy", "hard")
    assert choose_raters(ratings) == ("judge", ("ann", "bob"))
    kept = ratings.only(ratings.codes[:, 2] >= 0)
    assert (kept.items, kept.slices) == (("q2",), ("hard",))


def test_one_and_one_point_zero_are_one_label_on_a_numeric_scale(tmp_path):
    path = write(tmp_path, "item,judge,human\na,1,1.0\nb, 2 ,2\nc,3.00,+3\nd,6.0,4\n")
    with pytest.raises(CalibrationError, match=r"line 5 \(item d\): '6.0'"):
        read_ratings(path, scale=FIVE)
    path = write(tmp_path, "item,judge,human\na,1,1.0\nb, 2 ,2\nc,3.00,+3\nd,04,4\n")
    ratings = read_ratings(path, scale=FIVE)
    assert (ratings.of("judge") == ratings.of("human")).all()


def test_ids_stay_text_and_007_is_not_7(tmp_path):
    ratings = read_ratings(write(tmp_path, "item,judge,human\n007,1,1\n7,2,2\nNA,3,3\n"), scale=FIVE)
    assert ratings.items == ("007", "7", "NA")


def test_a_missing_label_in_the_middle_does_not_shift_the_pairs(tmp_path):
    rows = "".join(f"q{i},{1 + i % 2},{'' if i == 5 else 1 + i % 2}\n" for i in range(12))
    page = agreement(read_ratings(write(tmp_path, "item,judge,human\n" + rows), scale=declare_scale("1,2")))
    assert (page.n, page.n_dropped, page.percent_agreement.value) == (11, 1, 1.0)


@pytest.mark.parametrize(
    "scale, message",
    [
        ("5,4,3,2,1", "numbers must ascend; write 1,2,3,4,5"),
        ("pass", "two labels or more"),
        ("", "two labels or more"),
        ("1,2,,3", "two labels or more"),
        ("a,b,a", "only once"),
        ("1,1.0,2", "only once"),
        (["fail"], "two labels or more"),
    ],
)
def test_a_scale_that_cannot_be_meant_is_refused(scale, message):
    with pytest.raises(CalibrationError, match=message):
        declare_scale(scale)


def test_a_scale_may_be_a_json_array_of_labels_with_commas():
    assert declare_scale('["no, never", "yes"]').labels == ("no, never", "yes")
    with pytest.raises(CalibrationError, match="words have no distances"):
        declare_scale("low,high", "interval")
    with pytest.raises(CalibrationError, match="choose nominal, ordinal or interval"):
        declare_scale("1,2", "ratio")


@pytest.mark.parametrize(
    "text, message",
    [
        ("item,rater,label\nq1,judge,5\nq1,ann,6\nq2,judge,nan\n", r"2 labels in 'label' are not on the scale"),
        ("item,rater,label\nq1,judge,5\nq1,ann,6\n", r"line 3 \(item q1, ann\): '6'"),
        ("item,rater,label\nq1,judge,5\nq1,judge,5\n", r"line 3: \(q1, judge\)"),
        ("item,rater,label\n,judge,5\n", "line 2: item is empty"),
        ("item,rater,label\nq1,,5\n", "line 2: rater is empty"),
        ("item,rater,label,cluster\nq1,judge,5,x\nq1,ann,5,y\n", "item q1 has cluster 'x' and 'y'|'y' and 'x'"),
        ("item,rater,label,cluster\nq1,judge,5,x\nq2,ann,5,\n", "item q2 has no cluster"),
        ("item,judge,human\nq1,5,5\nq1,4,4\n", "line 3: q1"),
        ("item,judge,human\nq1,5,inf\n", "'inf'"),
        ("item,judge,judge\nq1,5,5\n", "'judge' occurs twice"),
        ("name,judge,human\nq1,5,5\n", "name the id column with --item"),
        ("item,judge,human\n", "has a header and no rows"),
        ("", "is empty"),
        ("item,judge,human\nq1,1,2,3\n", "every line needs the columns of the first"),
        ('item,judge,human\nq1,1,"2\nq2,1,2\n', "EOF inside string"),
        ("item,judge,human\nq1,1,2,3,4\nq2,1,2,3,4,5,6\n", "every line needs the columns of the first"),
    ],
)
def test_broken_rows_are_named_with_line_value_and_rule(tmp_path, text, message):
    with pytest.raises(CalibrationError, match=message):
        read_ratings(write(tmp_path, text), scale=FIVE)


def test_files_that_are_absent_or_no_text_are_refused(tmp_path):
    with pytest.raises(CalibrationError, match="cannot be read"):
        read_ratings(tmp_path / "none.csv", scale=FIVE)
    broken = tmp_path / "broken.csv"
    broken.write_bytes(b"item,judge\nq1,\xff\xfe\n")
    with pytest.raises(CalibrationError, match="UTF-8"):
        read_ratings(broken, scale=FIVE)
    with pytest.raises(CalibrationError, match="no column 'anne'"):
        read_ratings(write(tmp_path, "item,judge,ann\nq1,1,1\n"), scale=FIVE, raters=["judge", "anne"])


def test_wrongly_named_raters_get_the_list_and_a_guess(tmp_path):
    ratings = read_ratings(write(tmp_path, "item,gpt,ann,bob\nq1,1,1,1\n"), scale=FIVE)
    with pytest.raises(CalibrationError, match="name the judge with --judge: the raters are 'gpt', 'ann', 'bob'"):
        choose_raters(ratings)
    with pytest.raises(CalibrationError, match="Did you mean 'ann'"):
        choose_raters(ratings, "gpt", ["anna"])
    with pytest.raises(CalibrationError, match="agreement with oneself"):
        choose_raters(ratings, "gpt", ["gpt"])


def test_one_rater_only_and_raters_without_a_common_item_are_refused(tmp_path):
    alone = read_ratings(write(tmp_path, "item,judge\nq1,1\nq2,2\n"), scale=FIVE)
    with pytest.raises(CalibrationError, match="the only rater"):
        agreement(alone)
    apart = read_ratings(write(tmp_path, "item,rater,label\nq1,judge,1\nQ1,ann,1\n"), scale=FIVE)
    with pytest.raises(CalibrationError, match="1 items only from 'judge', 1 only from ann"):
        agreement(apart)


def test_without_a_declared_scale_only_nominal_statistics_are_given():
    ratings = ratings_of(["a", "a", "b", "b"], ["judge", "h"] * 2, [1, "1.0", 2, 3])
    assert ratings.scale.labels == ("1", "2", "3")
    page = agreement(ratings)
    assert page.kappa["none"].value is not None
    for estimate in (page.kappa["linear"], page.kappa["quadratic"], page.mae, page.ac1, page.pabak, page.spearman):
        assert (estimate.value, estimate.reason) == (None, "scale_not_declared")
    assert "scale_not_declared" in page.warnings
    with pytest.raises(CalibrationError, match="declare the scale"):
        ratings_of(["a", "a"], ["judge", "h"], ["pass", "pass"])


def test_parallel_columns_follow_the_same_rules_as_a_file():
    with pytest.raises(CalibrationError, match=r"'4\.5'"):
        ratings_of(["a"], ["judge"], [4.5], scale=FIVE)
    with pytest.raises(CalibrationError, match="differ in length"):
        ratings_of(["a", "b"], ["judge"], [4], scale=FIVE)
    assert ratings_of(["a", "a"], ["judge", "h"], [4, None], scale=FIVE).codes.tolist() == [[3, -1]]


def test_the_page_is_json_without_nan_whatever_the_input(tmp_path):
    for rows in (["q1,1,1"], ["q1,1,2"], [f"q{i},3,3" for i in range(30)], [f"q{i},3,{1 + i % 5}" for i in range(30)]):
        page = agreement(read_ratings(write(tmp_path, "item,judge,human\n" + "\n".join(rows) + "\n"), scale=FIVE))
        json.dumps(page.to_dict(), allow_nan=False)
