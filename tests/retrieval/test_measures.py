"""Measures by hand: the worked example, every convention, counts, means and intervals."""

from __future__ import annotations

import math

import pytest

from judge.errors import InputError, UsageError
from judge.retrieval import evaluate, prepare

# Three questions: one answered at rank 1, one at rank 2 with a better document (grade 2) missed, one not at all.
RANKINGS = {"Q1": ["D2", "D5", "D4"], "Q2": ["D5", "D3", "D7"], "Q3": ["D5", "D7", "D10"]}
LABELS = {"Q1": {"D2": 1}, "Q2": {"D1": 2, "D3": 1, "D5": 0, "D7": 0}, "Q3": {"D6": 1, "D8": 1}}


def one(ranking: list[str], labels: object, k: int = 3, **options: object) -> dict[str, float | None]:
    return evaluate({"q": ranking}, {"q": labels}, k=k, **options).per_query["q"]


def test_the_worked_example_gives_the_published_numbers() -> None:
    result = evaluate(RANKINGS, LABELS, k=3)
    # P@3 (1/3 + 1/3 + 0)/3, R@3 (1 + 1/2 + 0)/3, hit (1 + 1 + 0)/3, MRR (1 + 1/2 + 0)/3, NDCG of Q2 .6309/2.6309
    means = [result.measures[name].value for name in ("precision@3", "recall@3", "hit_rate@3", "mrr")]
    assert [round(value or 0, 2) for value in means] == [0.22, 0.5, 0.67, 0.5]
    assert result.per_query["Q2"]["ndcg@3"] == pytest.approx(0.24, abs=0.005)


def test_naive_code_breaks_on_duplicates_where_this_does_not() -> None:
    ranking, relevant = ["a", "a", "a"], {"a", "b"}
    naive_recall = sum(item in relevant for item in ranking) / len(relevant)
    assert naive_recall == 1.5
    values = one(ranking, relevant)
    assert values["recall@3"] == 0.5
    assert values["precision@3"] == pytest.approx(1 / 3)
    assert values["ndcg@3"] == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_repeated_labels_count_once() -> None:
    assert one(["A", "A", "X"], ["A", "A"])["recall@3"] == 1.0
    assert one(["A", "A", "X"], ["A", "A"]) == one(["A", "A", "X"], {"A"})


@pytest.mark.parametrize("duplicates", ["first", "credit_once"])
def test_nothing_exceeds_one_with_duplicates(duplicates: str) -> None:
    values = one(["a", "b", "a", "b", "a"], {"a": 2, "b": 1}, k=5, duplicates=duplicates)
    assert all(value is None or 0 <= value <= 1 for name, value in values.items() if not name.startswith("dcg"))


def test_duplicates_error_names_query_and_id() -> None:
    with pytest.raises(InputError, match=r"(?s)duplicates is error.*query 'q': id 'a' comes 2 times"):
        one(["a", "b", "a"], ["a"], duplicates="error")


def test_context_measures_look_at_the_whole_list() -> None:
    # relevant at ranks 2 and 4 of 5; three labels: AP over retrieved (1/2 + 2/4)/2, recall 2/3, set precision 2/5
    values = one(["x", "a", "y", "b", "z"], ["a", "b", "c"])
    assert values["context_precision"] == pytest.approx(0.5)
    assert values["context_recall"] == pytest.approx(2 / 3)
    assert values["context_precision_set"] == pytest.approx(2 / 5)


def test_judged_is_the_share_of_labelled_items_among_those_there() -> None:
    # a (1), n (0) labelled; m has a negative grade, which TREC uses for "in the pool, not judged"
    values = evaluate({"q": ["a", "x", "n", "m"]}, {"q": {"a": 1, "n": 0, "m": -1}}, k=(2, 3, 10)).per_query["q"]
    assert (values["judged@2"], values["judged@3"], values["judged@10"]) == (1 / 2, 2 / 3, 2 / 4)


def test_counts_are_of_queries_and_missing_ones_score_zero() -> None:
    labels = {"found": ["a"], "missing": ["a"], "unanswerable": [], "both": {"z": 0}}
    result = evaluate({"found": ["a", "a"], "unanswerable": ["a"], "extra": ["a"]}, labels)
    counts = (result.n_queries, result.n_scored, result.n_undefined, result.n_missing, result.n_extra)
    assert counts == (4, 2, 2, 2, 1)
    assert result.n_duplicates == 1
    assert result.measures["mrr"].value == 0.5
    assert (result.measures["mrr"].n, result.measures["mrr"].n_dropped) == (2, 2)
    assert set(result.per_query["both"].values()) == {None}
    assert result.per_query["missing"]["recall@5"] == 0.0
    assert "extra" not in result.per_query


def test_zero_convention_scores_every_query() -> None:
    result = evaluate({"q": ["a"]}, {"q": {"a": 0}, "r": []}, empty_labels="zero")
    assert (result.n_scored, result.n_undefined) == (2, 0)
    values = result.per_query["q"]
    assert {values[name] for name in ("precision@1", "recall@1", "rr", "ap", "ndcg", "dcg@1", "context_recall")} == {
        0.0
    }
    assert values["judged@1"] == 1.0


def test_error_conventions_name_the_queries() -> None:
    with pytest.raises(InputError, match=r"(?s)without relevant labels: 1.*query 'empty'"):
        evaluate({"empty": ["a"]}, {"empty": []}, empty_labels="error")
    with pytest.raises(InputError, match=r"(?s)without ranking: 1.*query 'q'"):
        evaluate({}, {"q": ["a"]}, missing_queries="error")
    with pytest.raises(InputError, match=r"(?s)but no labels: 1.*query 'z'"):
        evaluate({"z": ["a"], "q": ["a"]}, {"q": ["a"]}, extra_queries="error")


def test_a_level_above_every_grade_leaves_ndcg_alone() -> None:
    values = one(["a"], {"a": 1}, k=1, rel_level=2)
    assert (values["recall@1"], values["ndcg@1"], values["dcg@1"], values["judged@1"]) == (None, 1.0, 1.0, 1.0)
    assert one(["a"], {"a": 1}, k=1, rel_level=2, empty_labels="zero")["recall@1"] == 0.0


def test_macro_mean_has_the_t_interval_of_the_column() -> None:
    # values 1, .5, 0: mean .5, variance .25, se sqrt(.25/3), t(2) 97.5% 4.302653
    estimate = evaluate(RANKINGS, LABELS, k=3).measures["recall@3"]
    half = 4.302653 * math.sqrt(0.25 / 3)
    assert (estimate.value, estimate.n, estimate.method) == (0.5, 3, "t")
    assert estimate.ci_low == pytest.approx(0.5 - half, abs=1e-5)
    assert estimate.ci_high == pytest.approx(0.5 + half, abs=1e-5)


def test_micro_mean_is_the_ratio_of_sums_with_linearised_interval() -> None:
    # recall: hits 1 + 1 + 0, labels 1 + 2 + 2: 2/5; residuals (hits - .4 labels)/(5/3) = .36, .12, -.48
    estimate = evaluate(RANKINGS, LABELS, k=3, mean="micro").measures["recall@3"]
    variance = (0.36**2 + 0.12**2 + 0.48**2) / 2
    assert estimate.value == pytest.approx(0.4)
    assert estimate.se == pytest.approx(math.sqrt(variance / 3))
    assert estimate.method == "ratio_linearised"


def test_no_query_scored_has_a_reason_instead_of_a_number() -> None:
    estimate = evaluate({"q": ["a"]}, {"q": []}).measures["ndcg@5"]
    assert (estimate.value, estimate.status, estimate.reason) == (None, "undefined", "no_values")


def test_measures_at_other_cut_offs_reuse_the_matching() -> None:
    prepared = prepare(RANKINGS, LABELS)
    for k in (1, 2, 3):
        assert dict(prepared.at(k).per_query) == dict(evaluate(RANKINGS, LABELS, k=k).per_query)


def test_names_are_those_of_the_contract() -> None:
    result = evaluate(RANKINGS, LABELS, k=(5,))
    at_5 = {f"{name}@5" for name in ("precision", "recall", "hit_rate", "rr", "ap", "dcg", "ndcg", "judged")}
    whole = {"rr", "ap", "ndcg", "context_precision", "context_recall", "context_precision_set"}
    assert set(result.per_query["Q1"]) == at_5 | whole
    assert set(result.measures) == at_5 | whole | {"mrr", "map"}
    assert result.measures["map"] == result.measures["ap"]
    with pytest.raises(KeyError):
        result.measures["f1@5"]


def test_conventions_echo_every_option() -> None:
    shown = evaluate(RANKINGS, LABELS, profile="trec", rel_level=2).conventions
    assert (shown["empty_labels"], shown["ties"], shown["duplicates"], shown["rel_level"]) == (
        "zero", "docid_desc", "error", 2,
    )  # fmt: skip
    assert shown["profile"] == "trec"
    assert shown["tau"] == 0.8


def test_the_frame_has_one_row_a_query() -> None:
    frame = evaluate(RANKINGS, LABELS | {"Q4": []}, k=3).to_frame()
    assert list(frame.index) == ["Q1", "Q2", "Q3", "Q4"]
    assert frame.loc["Q2", "recall@3"] == 0.5
    assert frame.loc["Q4"].isna().all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gain": "log"}, "gain is 'log': choose one of linear, exponential"),
        ({"duplicate": "first"}, "did you mean 'duplicates'"),
        ({"profile": "beir"}, "profile is 'beir'"),
        ({"tau": 0}, "tau is 0"),
        ({"rel_level": math.nan}, "rel_level is nan"),
        ({"judged_only": "yes"}, "judged_only is 'yes'"),
        ({"doc_pattern": "^.*$"}, "has no group"),
        ({"doc_pattern": "("}, "no regular expression"),
    ],
)
def test_a_wrong_option_is_told_with_its_choices(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        evaluate(RANKINGS, LABELS, **options)


@pytest.mark.parametrize("k", [0, -1, None, 2.5, "5", True, [], [5, 0]])
def test_a_cut_off_is_a_whole_number_from_1(k: object) -> None:
    with pytest.raises(UsageError, match=r"^k is "):
        evaluate(RANKINGS, LABELS, k=k)


def test_exponential_gain_refuses_grades_that_overflow() -> None:
    with pytest.raises(InputError, match="too large for gain=exponential"):
        one(["a"], {"a": 5000}, gain="exponential")


def test_the_precision_ceiling_is_what_few_labels_allow() -> None:
    # R = 1, 2, 2 at k = 5: mean of 1/5, 2/5, 2/5
    assert evaluate(RANKINGS, LABELS, k=5).precision_ceiling == {5: pytest.approx(1 / 3)}
