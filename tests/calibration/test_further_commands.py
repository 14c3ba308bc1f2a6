"""`python -m calibration alt-test|reliability|drift|panel` and the further label designs of `correct`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from calibration_vectors import VECTORS, near

from calibration.__main__ import main


def write(tmp_path, name, rows):
    path = tmp_path / name
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


def document(capsys, *arguments):
    assert main([str(argument) for argument in (*arguments, "--json")]) == 0
    return json.loads(capsys.readouterr().out)


def alt_ratings(tmp_path):
    inputs = VECTORS["alttest_neg_rmse_eps0.2"]["inputs"]
    columns = {"judge": inputs["llm"], **inputs["humans"]}
    return write(
        tmp_path,
        "alt.csv",
        [
            "item,rater,label",
            *(f"{i},{rater},{label}" for rater, given in columns.items() for i, label in given.items()),
        ],
    )


def test_alt_test_prints_the_contract_keys_and_the_vector(tmp_path, capsys):
    found = document(capsys, "alt-test", alt_ratings(tmp_path), "--epsilon", ".2", "--scale", "1,2,3,4,5")
    assert {"winning_rate", "advantage_probability", "per_rater"} <= set(found)
    assert (found["winning_rate"]["value"], found["passed"], found["scoring"]) == (1.0, True, "neg_rmse")
    vector = VECTORS["alttest_neg_rmse_eps0.2"]
    assert found["advantage_probability"]["value"] == near(vector["expected"]["avg_advantage_prob"], vector)
    assert [row["rater"] for row in found["per_rater"]] == ["h0", "h1", "h2"]


def test_people_without_enough_items_fill_one_line_of_the_terminal(tmp_path, capsys):
    rows = [f"q{i},{rater},{1 + i % 2}" for i in range(12) for rater in ("judge", "ann", "bob")]
    assert main(["alt-test", write(tmp_path, "few.csv", ["item,rater,label", *rows]), "--epsilon", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "undefined (nobody labelled 30 items" in out
    assert "2 people not tested, with at most 12 items (ann)" in out


def test_reliability_reads_one_row_per_repeat(tmp_path, capsys):
    vector = VECTORS["repeat_reliability_10x3"]
    table = vector["inputs"]["scores_items_x_repeats"]
    path = write(
        tmp_path,
        "r.csv",
        ["item,repeat,label", *(f"q{i},{r},{score:g}" for i, row in enumerate(table) for r, score in enumerate(row))],
    )
    found = document(capsys, "reliability", path, "--pass-at", "3.5")
    assert found["icc"]["value"] == near(vector["expected"]["icc1_1"], vector)
    assert (found["flip_rate"]["value"], found["repeats_needed"], found["pass_flip_rate"]["value"]) == (0.5, 3, 0.2)
    assert main(["reliability", alt_ratings(tmp_path)]) == 2
    assert "no column 'repeat'" in capsys.readouterr().err


def test_drift_compares_old_and_new_on_the_anchor(tmp_path, capsys):
    table = VECTORS["drift_5x5_v1_v2"]["inputs"]["table_rows_old_cols_new"]
    pairs = [(i + 1, j + 1) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    old = write(tmp_path, "old.csv", ["item,score", *(f"{k},{a}" for k, (a, _) in enumerate(pairs))])
    new = write(tmp_path, "new.csv", ["item,score", *(f"{k},{b}" for k, (_, b) in enumerate(pairs))])
    anchor = write(tmp_path, "anchor.csv", ["item,label", *(f"{k},{a}" for k, (a, _) in enumerate(pairs))])
    found = document(capsys, "drift", old, new, "--anchor", anchor, "--scale", "1,2,3,4,5")
    assert (found["verdict"], found["difference"]["value"]) == ("changed", pytest.approx(0.15))
    same = document(capsys, "drift", old, old, "--anchor", anchor, "--scale", "1,2,3,4,5")
    assert same["verdict"] == "equivalent"


def test_panel_names_each_item_and_says_what_dawid_skene_assumes(tmp_path, capsys):
    codes = VECTORS["dawid_skene_60x4"]["inputs"]["labels_items_x_judges"]
    rows = [f"{i}," + ",".join(map(str, row)) + f",{row[0]}" for i, row in enumerate(codes)]
    path = write(tmp_path, "panel.csv", ["item,a,b,c,d,human", *rows])
    found = document(
        capsys, "panel", path, "--judges", "a,b,c,d", "--human", "human", "--scale", "0,1", "--dawid-skene"
    )
    assert (found["ties"], len(found["items"])) == (VECTORS["dawid_skene_60x4"]["expected"]["majority_ties"], 60)
    assert found["members"][0]["kappa"]["value"] == 1.0
    assert "independently" in found["dawid_skene"]["assumes"]
    assert found["dawid_skene"]["prior"]["1"] == pytest.approx(0.566667, abs=1e-4)


def test_correct_takes_a_stratum_or_a_propensity_column(tmp_path, capsys):
    rng = np.random.default_rng(1)
    scores = rng.integers(1, 6, size=120)
    judged = write(
        tmp_path,
        "judged.csv",
        ["item,score,stratum", *(f"q{i},{s},{'high' if s > 3 else 'low'}" for i, s in enumerate(scores))],
    )
    people = [int(np.clip(s + rng.integers(-1, 2), 1, 5)) for s in scores[:40]]
    labels = write(
        tmp_path, "labels.csv", ["item,label,propensity", *(f"q{i},{y},0.333" for i, y in enumerate(people))]
    )
    for design, method in (("stratified", "ppi++_stratified"), ("propensity", "ppi++_weighted")):
        found = document(capsys, "correct", "--judged", judged, "--labels", labels, "--label-design", design)
        assert found["method"] == method
        assert found["corrected"]["ci_low"] < found["human_only"]["value"] < found["corrected"]["ci_high"]
    plain = write(tmp_path, "plain.csv", ["item,score", *(f"q{i},{s}" for i, s in enumerate(scores))])
    assert main(["correct", "--judged", plain, "--labels", labels, "--label-design", "stratified"]) == 2
    assert "stratum" in capsys.readouterr().err


def test_correct_takes_clusters_of_the_judged_items(tmp_path, capsys):
    rng = np.random.default_rng(2)
    scores = np.repeat(rng.integers(1, 6, size=80), 3)
    judged = ["item,score,cluster", *(f"q{i},{s},c{i // 3}" for i, s in enumerate(scores))]
    people = np.clip(np.repeat(scores[:120:3] + rng.integers(-1, 2, size=40), 3), 1, 5)
    labels = write(tmp_path, "labels.csv", ["item,label", *(f"q{i},{y}" for i, y in enumerate(people))])
    path = write(tmp_path, "judged.csv", judged)
    options = ["--labels", labels, "--label-design", "random", "--scale", "1,2,3,4,5"]
    found = document(capsys, "correct", "--judged", path, *options)
    plain = write(tmp_path, "plain.csv", [row.rpartition(",")[0] for row in judged])
    rows = document(capsys, "correct", "--judged", plain, *options)
    assert (found["corrected"]["n_clusters"], found["naive"]["n_clusters"]) == (40, 80)
    # three copies of 40 answers: 40 units, not 120
    assert found["corrected"]["se"] == pytest.approx(rows["corrected"]["se"] * 3**0.5, rel=0.05)
    moved = write(tmp_path, "moved.csv", ["item,label,cluster", "q0,3,other", "q1,4,c0"])
    assert main(["correct", "--judged", path, "--labels", moved, "--label-design", "random"]) == 2
    assert "item q0 is in cluster 'c0'" in capsys.readouterr().err
    assert main(["correct", "--judged", plain, "--labels", moved, "--label-design", "random"]) == 2
    assert "give it for every judged item" in capsys.readouterr().err


def test_drift_takes_the_p_of_earlier_looks(tmp_path, capsys):
    table = VECTORS["drift_5x5_v1_v2"]["inputs"]["table_rows_old_cols_new"]
    pairs = [(i + 1, j + 1) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    old, new = (
        write(tmp_path, f"{side}.csv", ["item,score", *(f"{k},{pair[side]}" for k, pair in enumerate(pairs))])
        for side in (0, 1)
    )
    options = ["drift", old, new, "--anchor", old, "--scale", "1,2,3,4,5", "--looks", "12"]
    first, second = document(capsys, *options), document(capsys, *options, "--earlier", "1e-12")
    assert second["p"] == first["p"]
    assert second["checks"][0]["p_adjusted"] == pytest.approx(11 / 12 * first["checks"][0]["p_adjusted"])
    assert main([*options, "--earlier", "soon"]) == 2
    assert "--earlier 'soon': give p values" in capsys.readouterr().err


def test_correct_can_reweight_the_labels_to_the_levels_of_the_judge(tmp_path, capsys):
    vector = VECTORS["poststrat_binary_30_120"]
    inputs, expected = vector["inputs"], vector["expected"]
    # twice the data: 60 labels, above the 50 that are asked for; the estimate stays
    f, y, rest = (inputs[name] * 2 for name in ("f_labeled", "y_labeled", "f_unlabeled"))
    judged = write(tmp_path, "j.csv", ["item,score", *(f"l{i},{v}" for i, v in enumerate(f)),
                                       *(f"u{i},{v}" for i, v in enumerate(rest))])  # fmt: skip
    labels = write(tmp_path, "l.csv", ["item,label", *(f"l{i},{v}" for i, v in enumerate(y))])
    options = ["correct", "--judged", judged, "--labels", labels, "--method", "post-stratified", "--label-design"]
    found = document(capsys, *options, "random")
    assert (found["method"], found["lambda"]) == ("post_stratified", None)
    assert found["corrected"]["value"] == near(expected["estimate"], vector)
    assert main([*options, "external"]) == 2
    assert "'external' has its own method" in capsys.readouterr().err
    few = write(tmp_path, "few.csv", ["item,label", *(f"l{i},{v}" for i, v in enumerate(y[:49]))])
    assert main(["correct", "--judged", judged, "--labels", few, "--label-design", "random", "--method",
                 "post-stratified"]) == 2  # fmt: skip
    assert "needs 50 or more" in capsys.readouterr().err


def test_recalibrate_gives_expected_scores_and_tests_them_on_each_system_of_a_target(tmp_path, capsys):
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 6, size=300)
    kind = np.minimum(truth + 1, 5)
    judged = write(tmp_path, "j.csv", ["item,score", *(f"q{i},{s}" for i, s in enumerate(kind))])
    labels = write(tmp_path, "l.csv", ["item,label", *(f"q{i},{y}" for i, y in enumerate(truth[:100]))])
    others = rng.integers(1, 6, size=160)
    rows = [f"p{i},{min(y + 1, 5)},{y},alike" if i < 80 else f"p{i},{y},{y},stricter" for i, y in enumerate(others)]
    target = write(tmp_path, "t.csv", ["item,score,label,system", *rows])
    options = ["recalibrate", "--judged", judged, "--labels", labels, "--scale", "1,2,3,4,5"]
    found = document(capsys, *options, "--target", target)
    assert found["corrected"]["ci_low"] < truth.mean() < found["corrected"]["ci_high"]
    assert len(found["items"]) == 300
    assert {one["expected_human_score"] for one in found["items"] if one["score"] == 3} == {2}
    assert {one["system"]: one["verdict"] for one in found["transport"]} == {"alike": "pass", "stricter": "fail"}
    assert found["transport"][0]["delta"] == pytest.approx(0.2)
    assert "transport" not in document(capsys, *options)
    again = write(tmp_path, "again.csv", ["item,score,label", "q1,3,2", "x,3,2"])
    assert main([*options, "--target", again]) == 2
    assert "used for fitting the curve: q1" in capsys.readouterr().err
    assert main([*options[:5], "--target", target]) == 2
    assert "--target needs --margin" in capsys.readouterr().err


def test_agreement_gives_intraclass_correlations_when_asked(tmp_path, capsys):
    vector = VECTORS["icc_ord24"]
    pairs = zip(vector["inputs"]["judge"], vector["inputs"]["human"], strict=True)
    path = write(tmp_path, "r.csv", ["item,judge,human", *(f"{i},{j:g},{h:g}" for i, (j, h) in enumerate(pairs))])
    options = ["agreement", path, "--scale", "1,2,3,4,5"]
    found = document(capsys, *options, "--intraclass")["intraclass"]
    assert {form: one["value"] for form, one in found.items()} == near(
        {form: vector["expected"][form] for form in found}, vector
    )
    assert "intraclass" not in document(capsys, *options)
