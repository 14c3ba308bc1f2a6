"""The pairwise protocol without a model: combining orders, joining systems on their questions, human preferences."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from calibration.pairwise import summarize
from judge.cases import Case
from judge.combining import Call, by_difference, combine, mapped, mean_difference, mean_p_a
from judge.errors import InputError, UsageError
from judge.joining import Selection, drawn, join, paired, pairs_of
from judge.pairlines import Record, outcomes_of, verdicts
from judge.pairwise import same_text
from judge.preferences import preferences_of_cases, read_preferences


def call(first: str, winner: str | None, p_first: float | None = None, ratings: dict[str, int] | None = None) -> Call:
    return Call(first, "scored" if winner else "error", "00", winner=winner, p_first=p_first, ratings=ratings)


@pytest.mark.parametrize(
    "one, two, outcome, lean",
    [
        ("a", "a", "a", None),
        ("b", "b", "b", None),
        ("tie", "tie", "tie", None),
        ("both_fail", "both_fail", "both_fail", None),
        ("a", "tie", "tie", "a"),
        ("b", "tie", "tie", "b"),
        ("a", "b", "inconsistent", None),
        ("a", "both_fail", "inconsistent", "a"),
        ("b", "both_fail", "inconsistent", "b"),
        ("tie", "both_fail", "tie", None),
        (None, "a", "incomplete", None),
        (None, None, "incomplete", None),
    ],
)
def test_the_two_orders_combine_by_the_table_whichever_came_first(one, two, outcome, lean):
    assert combine((call("a", one), call("b", two))) == (outcome, lean)
    assert combine((call("a", two), call("b", one))) == (outcome, lean)


def test_positional_verdicts_are_mapped_back_by_code():
    assert [mapped(verdict, "a") for verdict in ("first", "second", "tie", "both_fail")] == [
        "a",
        "b",
        "tie",
        "both_fail",
    ]
    assert [mapped(verdict, "b") for verdict in ("first", "second", "tie", "both_fail")] == [
        "b",
        "a",
        "tie",
        "both_fail",
    ]


def test_the_quick_score_is_the_mean_probability_of_a_over_both_orders():
    # P(first) 0.8 with a first, 0.7 with b first: (0.8 + 1 - 0.7) / 2 = 0.55, though each order picks the first
    assert mean_p_a((call("a", "a", 0.8), call("b", "b", 0.7))) == pytest.approx(0.55)
    assert mean_p_a((call("a", "a", 0.8), call("b", None))) is None


@pytest.mark.parametrize(
    "one, two, outcome, lean",
    [
        ((4, 2), (5, 3), "a", None),
        ((2, 4), (3, 3), "b", None),  # one level on average
        ((3, 3), (4, 3), "a", None),  # half a level is enough
        ((4, 3), (3, 4), "tie", None),  # a contradiction that cancels
        ((4, 3), (1, 4), "b", None),  # a contradiction that does not: (1 - 3) / 2
        ((3, 3), (3, 3), "tie", None),
    ],
)
def test_ratings_of_both_orders_are_averaged_before_the_difference_decides(one, two, outcome, lean):
    calls = [
        call(first, "tie", ratings=dict(zip("ab", given, strict=True))) for first, given in (("a", one), ("b", two))
    ]
    assert by_difference(mean_difference(calls)) == (outcome, lean)


def test_less_than_half_a_level_is_a_tie_with_a_lean():
    # three repeats of two orders: differences 1, 0, 0, 0, 1, 0 are 2 / 6 on average
    assert by_difference(2 / 6) == ("tie", "a")
    assert by_difference(-2 / 6) == ("tie", "b")
    assert by_difference(3 / 6) == ("a", None)


def test_an_order_without_ratings_leaves_no_difference():
    assert mean_difference((call("a", "a", ratings={"a": 4, "b": 2}), call("b", None))) is None
    assert mean_difference(()) is None


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize("winner", ["a", "b", "tie", "both_fail"])
def test_a_single_order_is_taken_at_its_word(first, winner):
    assert combine((call(first, winner),)) == (winner, None)
    assert combine((call(first, None),)) == ("incomplete", None)


def test_answers_that_differ_in_white_space_or_composition_are_the_same():
    assert same_text("caf\u00e9  closes\nat 5", "cafe\u0301 closes at 5 ")
    assert not same_text("It closes at 5", "It closes at 6")


def vector(name: str) -> dict[str, Any]:
    vectors = json.loads((Path(__file__).parent / "data" / "calibration" / "vectors.json").read_text())["vectors"]
    return next(one for one in vectors if one["name"] == name)


def record(n: int, *winners: str, outcome: str | None = None) -> Record:
    said = list(zip("ab", winners, strict=True))
    calls = [{"first": first, "winner": winner} for first, winner in said]
    outcome = outcome or combine([call(first, winner) for first, winner in said])[0]
    line = {"calls": calls, "outcome": outcome, "reason": None, "mode": "full"}
    return Record("p", "q", f"c{n}", f"c{n}", [], 0, [line])


def test_lines_of_a_run_give_the_position_measures_of_the_vector():
    # displayed choices: A first, B second, C tie; system 1 is first in order 1 and second in order 2
    known = vector("position_swap_20")
    one, two = {"A": "a", "B": "b", "C": "tie"}, {"A": "b", "B": "a", "C": "tie"}
    records = [record(n, one[said[0]], two[said[1]]) for n, said in enumerate(known["inputs"]["choice_pairs"])]
    summary, want = summarize(verdicts(records)), known["expected"]
    assert (summary.a_wins, summary.b_wins) == (want["system1_strict"]["win"], want["system1_strict"]["loss"])
    assert summary.win_rate_a.value == pytest.approx(want["win_rate_ties_half_strict"])
    assert summary.position_consistency.value == pytest.approx(want["position_consistency"])
    assert summary.position_consistency.ci_low == pytest.approx(want["consistency_wilson"][0])
    assert summary.preference_fairness.value == pytest.approx(want["preference_fairness_shi"])
    assert summary.first_preference.value == pytest.approx(want["first_position_rate_decisive"])


def test_a_pair_over_its_repeats_is_what_most_complete_ones_say():
    said = record(0, "a", "a")
    for more in (record(0, "b", "b"), record(0, "a", "a"), record(0, "b", "error", outcome="incomplete")):
        said.lines += more.lines
    assert outcomes_of([said]) == ["a"]
    said.lines += record(0, "b", "b").lines
    assert outcomes_of([said]) == ["tie"]
    assert outcomes_of([record(1, "a", "error", outcome="incomplete")]) == ["incomplete"]


def rated(n: int, *differences: float | None) -> Record:
    """A pair in score mode: a line for each difference, its orders naming the winner by sign, None being incomplete."""
    lines = []
    for difference in differences:
        winner = None if difference is None else "a" if difference > 0 else "b" if difference < 0 else "tie"
        calls = [{"first": first, "winner": winner} for first in "ab"]
        outcome = "incomplete" if difference is None else by_difference(difference)[0]
        lines.append({"calls": calls, "outcome": outcome, "reason": None, "mode": "score", "difference": difference})
    return Record("p", "q", f"c{n}", f"c{n}", [], 0, lines)


def test_repeats_in_score_mode_pool_their_ratings_instead_of_voting():
    # two of three repeats are ties, and the six ratings together put a ahead by half a level
    assert outcomes_of([rated(0, 1.5, 0.0, 0.0)]) == ["a"]
    # two of three repeats are wins of b, and a is ahead over all
    assert outcomes_of([rated(0, -0.5, -0.5, 4.0)]) == ["a"]
    assert outcomes_of([rated(0, 0.5, 0.5, None), rated(1, None), rated(2, 0.5, 0.0, 0.0)]) == [
        "a",
        "incomplete",
        "tie",
    ]
    summary = summarize(verdicts([rated(0, -0.5, -0.5, 4.0), rated(1, None), rated(2, 0.5, 0.0, 0.0)]))
    assert (summary.n, summary.a_wins, summary.ties, summary.incomplete) == (3, 1, 1, 1)
    assert summary.win_rate_a.value == 0.75


def test_a_line_with_one_order_counts_with_what_that_order_said():
    lines = [record(n, "a", "a") for n in range(3)]
    single = record(3, "a", "a")
    single.lines[0] |= {"calls": [{"first": "b", "winner": "b"}], "outcome": "b", "second_order": "skipped"}
    summary = summarize(verdicts([*lines, single]))
    assert (summary.n, summary.a_wins, summary.b_wins) == (4, 3, 1)
    assert summary.win_rate_a.value == pytest.approx(0.75)
    assert summary.position_consistency.n == 3


def cases(system: str | None, answers: dict[str, str], **more: Any) -> list[dict[str, Any]]:
    named = {} if system is None else {"system": system}
    return [{"id": i, "question": f"What of {i}?", "answer": text, **named, **more} for i, text in answers.items()]


def joined(tmp_path: Path, *sources: Any, **selection: Any):
    return join(list(sources), tmp_path / "cases.jsonl", Selection(**selection))


def written(tmp_path: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_two_files_are_joined_on_id_in_any_order_and_every_lonely_id_is_named(tmp_path):
    old = written(tmp_path, "old.jsonl", cases(None, {"x": "1", "y": "2", "only-old": "3"}))
    new = written(tmp_path, "new.jsonl", cases(None, {"y": "22", "only-new": "4", "x": "11"}))
    found = joined(tmp_path, old, new)
    assert found.systems == ("old", "new")
    assert found.pairs == (("old", "new"),)
    assert found.unmatched == {"old": ["only-old"], "new": ["only-new"]}
    pairs = list(pairs_of(tmp_path / "cases.jsonl", found.pairs))
    assert [(p.case.id, p.answer_a, p.answer_b) for p in pairs] == [("x", "1", "11"), ("y", "2", "22")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases.jsonl", "new.jsonl", "old.jsonl"]


def test_one_file_with_a_system_field_may_repeat_an_id_once_per_system(tmp_path):
    both = cases("p", {"x": "1", "y": "2"}) + cases("q", {"x": "11", "y": "22"})
    assert joined(tmp_path, both).systems == ("p", "q")
    assert joined(tmp_path, both, systems=("q", "p")).pairs == (("q", "p"),)
    with pytest.raises(InputError, match="within system"):
        joined(tmp_path, both + cases("p", {"x": "again"}))


def test_the_system_field_names_a_file_before_its_stem_and_equal_names_are_refused(tmp_path):
    (tmp_path / "new").mkdir()
    one = written(tmp_path, "run.jsonl", cases(None, {"x": "1"}))
    two = written(tmp_path / "new", "run.jsonl", cases(None, {"x": "2"}))
    with pytest.raises(UsageError, match="both called 'run'"):
        joined(tmp_path, one, two)
    assert joined(tmp_path, one, two, systems=("old", "new")).systems == ("old", "new")
    assert joined(tmp_path, cases("p", {"x": "1"}), cases("q", {"x": "2"})).systems == ("p", "q")


@pytest.mark.parametrize(
    "rows, selection, message",
    [
        (cases("p", {"x": "1"}) + cases("q", {"x": "2"}) + cases("r", {"x": "3"}), {}, "--all-pairs"),
        (cases("p", {"x": "1"}) + cases("q", {"x": "2"}), {"systems": ("p", "z")}, "no such system"),
        (cases("p", {"x": "1"}), {}, "only one system"),
        (cases("p", {"x": "1"}) + cases("q", {"x": "2"}), {"systems": ("p", "p")}, "only one system"),
        (cases("p", {"x": "1"}) + cases("q", {"x": "2"}) + cases(None, {"y": "3"}), {}, "1 rows have no `system`"),
        (cases(None, {"x": "1"}), {}, "without `system`"),
        (cases("p", {"x": "1"}) + cases("q", {"x": "2"}), {"baseline": "z"}, "no such system"),
        (cases("p", {"x": "1"}) + cases("q", {"x": "2"}), {"pairs": 0}, "must be 1 or more"),
    ],
)
def test_names_that_do_not_settle_who_is_compared_are_refused(tmp_path, rows, selection, message):
    with pytest.raises(UsageError, match=message):
        joined(tmp_path, rows, **selection)


def test_no_common_id_is_an_error_that_shows_both_sides(tmp_path):
    with pytest.raises(InputError, match="p: x; q: y"):
        joined(tmp_path, cases("p", {"x": "1"}), cases("q", {"y": "2"}))


def test_duplicate_ids_in_one_of_two_files_are_refused_with_their_places(tmp_path):
    doubled = written(tmp_path, "a.jsonl", cases(None, {"x": "1"}) + cases(None, {"x": "2"}))
    with pytest.raises(InputError, match=r"a.jsonl:2 .*used before"):
        joined(tmp_path, doubled, cases("q", {"x": "2"}))
    assert not (tmp_path / "cases.jsonl").exists()


def test_one_id_with_two_questions_is_refused(tmp_path):
    other = [{"id": "x", "question": "Something else?", "answer": "2", "system": "q"}]
    with pytest.raises(InputError, match="different questions"):
        joined(tmp_path, cases("p", {"x": "1"}), other)


def test_a_baseline_meets_every_other_system_and_all_pairs_meet_all(tmp_path):
    rows = [row for name in "pqr" for row in cases(name, {"x": name})]
    assert joined(tmp_path, rows, baseline="p").pairs == (("q", "p"), ("r", "p"))
    assert joined(tmp_path, rows, all_pairs=True).pairs == (("p", "q"), ("p", "r"), ("q", "r"))


def test_sampled_pairs_are_seeded_and_spread_over_systems_and_questions():
    pairs = [("p", "q"), ("p", "r"), ("q", "r")]
    ids = {pair: [f"c{n}" for n in range(30)] for pair in pairs}
    chosen = drawn(pairs, ids, 30, seed=1)
    assert [len(chosen[pair]) for pair in pairs] == [10, 10, 10]
    assert set(Counter(case for found in chosen.values() for case in found).values()) == {1}
    assert chosen == drawn(pairs, ids, 30, seed=1) != drawn(pairs, ids, 30, seed=2)
    assert sum(len(found) for found in drawn(pairs, ids, 31, seed=1).values()) == 31


def test_what_the_judge_sees_does_not_depend_on_who_is_a():
    one = Case(id="x", question="Q?", answer="1", contexts=["left", "both"], reference="ref")
    two = Case(id="x", question="Q?", answer="2", contexts=["both", "right"])
    pair, turned = paired(one, two, "p", "q"), paired(two, one, "q", "p")
    assert pair.flags == ("contexts_differ",)
    assert pair.case.contexts == turned.case.contexts
    assert sorted(context.text for context in pair.case.contexts) == ["both", "left", "right"]
    assert len({context.id for context in pair.case.contexts}) == 3
    assert pair.case.reference == turned.case.reference == ("ref",)
    assert pair.case.answer is None


def test_equal_passages_are_shown_once_and_not_flagged():
    one = Case(id="x", question="Q?", answer="1", contexts=["left", "right"])
    pair = paired(one, one.model_copy(update={"answer": "2"}), "p", "q")
    assert pair.flags == ()
    assert [context.text for context in pair.case.contexts] == ["left", "right"]


def test_labels_name_a_system_a_tie_or_both_fail_and_raters_vote(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("case_id,label,rater\nx,new,r1\nx,new,r2\nx,tie,r3\ny,old,r1\ny,new,r2\nz,a,r1\nw,both_fail,r1\n")
    found = read_preferences(file, [("old", "new")])
    assert found == {("old", "new"): {"x": "b", "y": "tie", "z": "a", "w": "both_fail"}}


def test_with_several_systems_a_label_names_its_pair(tmp_path):
    pairs = [("p", "q"), ("p", "r")]
    file = written(tmp_path, "labels.jsonl", [{"case_id": "x", "label": "a", "a": "q", "b": "p"}])
    assert read_preferences(file, pairs) == {("p", "q"): {"x": "b"}, ("p", "r"): {}}
    with pytest.raises(InputError, match="`a` and `b`"):
        read_preferences(written(tmp_path, "bare.jsonl", [{"case_id": "x", "label": "p"}]), pairs)


def test_labels_that_fit_no_pair_are_all_listed(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("case_id,label\nx,newest\n,old\ny,old\n")
    with pytest.raises(InputError) as caught:
        read_preferences(file, [("old", "new")])
    assert len(caught.value.rows) == 2


def test_labels_travel_with_the_cases_under_the_rubric(tmp_path):
    rows = cases("p", {"x": "1"}) + cases("q", {"x": "2"}, labels={"preference": {"human": "q"}})
    joined(tmp_path, rows)
    assert preferences_of_cases(tmp_path / "cases.jsonl", "preference", [("p", "q")]) == {("p", "q"): {"x": "b"}}
