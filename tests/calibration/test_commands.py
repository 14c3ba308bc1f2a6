"""`python -m calibration` on spreadsheets: JSON keys, exit codes, plain messages, no LLM library needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from calibration_vectors import VECTORS, near

from calibration.__main__ import main
from calibration.estimate import Estimate

ROOT = Path(__file__).parents[2]


def write(tmp_path, name, rows):
    path = tmp_path / name
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def ratings(tmp_path, name="corr_ord24"):
    inputs = VECTORS[name]["inputs"]
    pairs = zip(inputs["judge"], inputs["human"], strict=True)
    return write(
        tmp_path, "ratings.csv", ["item,judge,human", *(f"q{i},{j:g},{h:g}" for i, (j, h) in enumerate(pairs))]
    )


def test_agreement_prints_the_vector_values_as_one_json_document(tmp_path, capsys):
    found = document(capsys, "agreement", ratings(tmp_path), "--scale", "1,2,3,4,5")
    vector = VECTORS["cohen_kappa_ord24_5x5_quadratic"]
    assert found["kappa"]["quadratic"]["value"] == near(vector["expected"]["kappa"], vector)
    assert found["kappa"]["quadratic"]["se"] == near(vector["expected"]["se"], vector)
    assert found["confusion"]["table"] == vector["inputs"]["table"]
    assert set(found["spearman"]) == set(Estimate().to_dict())


def test_agreement_of_long_form_takes_named_raters(tmp_path, capsys):
    rows = [
        f"q{i},{rater},{1 + (i + shift) % 2}"
        for i in range(12)
        for rater, shift in (("gpt", 0), ("ann", 0), ("bob", 1))
    ]
    path = write(tmp_path, "long.csv", ["item,rater,label", *rows])
    found = document(capsys, "agreement", path, "--judge", "gpt", "--human", "ann,bob", "--scale", "1,2")
    assert [human["rater"] for human in found["per_human"]] == ["ann", "bob"]
    assert [human["kappa"]["none"]["value"] for human in found["per_human"]] == [1.0, -1.0]
    assert found["kappa"]["none"]["value"] == 0.0
    assert found["human_ceiling"]["human_human"]["value"] == -1.0


def test_a_slice_column_gives_the_agreement_of_each_slice(tmp_path, capsys):
    # long: judge and human agree on all 12 items; short: on 6 of 12; odd: one item that no human labelled
    rows = [f"l{i},{rater},{i % 2},long" for i in range(12) for rater in ("judge", "ann")]
    rows += [
        f"s{i},{rater},{i % 2 if rater == 'judge' else i // 6},short" for i in range(12) for rater in ("judge", "ann")
    ]
    path = write(tmp_path, "sliced.csv", ["item,rater,label,slice", *rows, "o1,judge,1,odd"])
    found = document(capsys, "agreement", path, "--scale", "0,1")
    assert found["percent_agreement"]["value"] == 18 / 24
    long, odd, short = found["by_slice"]
    assert (long["slice"], long["n"], long["percent_agreement"]["value"], long["kappa"]["none"]["value"]) == (
        "long",
        12,
        1,
        1,
    )
    assert (short["slice"], short["n"], short["percent_agreement"]["value"], short["kappa"]["none"]["value"]) == (
        "short",
        12,
        0.5,
        0,
    )
    assert odd == {"slice": "odd", "n": 0, "n_dropped": 1}


def test_the_terminal_page_shows_value_interval_and_n_together(tmp_path, capsys):
    code, out, _ = run(capsys, "agreement", ratings(tmp_path), "--scale", "1,2,3,4,5")
    assert code == 0
    assert "percent_agreement                  0.625 [0.427, 0.788] on 24" in out
    assert "warning: fewer than 30 items" in out
    assert "nan" not in out.lower()


def test_correct_reports_method_naive_corrected_and_lambda(tmp_path, capsys):
    inputs = VECTORS["correction_all_30_120b"]["inputs"]
    scores = [f"l{i},{v:g}" for i, v in enumerate(inputs["f_labeled"])] + [
        f"u{i},{v:g}" for i, v in enumerate(inputs["f_unlabeled"])
    ]
    judged = write(tmp_path, "judged.csv", ["item,score", *scores])
    labels = write(tmp_path, "labels.csv", ["item,label", *(f"l{i},{v:g}" for i, v in enumerate(inputs["y_labeled"]))])
    found = document(capsys, "correct", "--judged", judged, "--labels", labels, "--label-design", "random")
    assert list(found) == [
        "method",
        "naive",
        "corrected",
        "human_only",
        "lambda",
        "effective_n",
        "labels_to_halve_ci",
        "warnings",
    ]
    vector = VECTORS["correction_all_30_120b"]
    assert found["lambda"] == near(vector["expected"]["ppi_pp_tuned"]["lam"], vector)
    assert found["corrected"]["value"] == near(vector["expected"]["ppi_pp_tuned"]["estimate"], vector)
    external = document(capsys, "correct", "--judged", judged, "--labels", labels, "--label-design", "external")
    assert external["corrected"]["value"] == near(vector["expected"]["rogan_gladen"]["theta"], vector)
    code, _, err = run(capsys, "correct", "--judged", judged, "--labels", labels, "--label-design", "unknown")
    assert code == 2
    assert "a corrected mean cannot" in err


def test_correct_reads_labels_in_words_on_a_declared_scale(tmp_path, capsys):
    judged = write(tmp_path, "f.csv", ["item,score", *(f"q{i},{'pass' if i % 3 else 'fail'}" for i in range(90))])
    labels = write(tmp_path, "l.csv", ["item,label", *(f"q{i},{'pass' if i % 4 else 'fail'}" for i in range(40))])
    found = document(
        capsys, "correct", "--judged", judged, "--labels", labels, "--label-design", "random", "--scale", "fail,pass"
    )
    assert found["naive"]["value"] == pytest.approx(60 / 90)
    code, _, err = run(capsys, "correct", "--judged", judged, "--labels", labels, "--label-design", "random")
    assert code == 2
    assert "line 2 (item q0): 'fail'" in err


def test_compare_joins_on_item_and_lists_the_unmatched(tmp_path, capsys):
    inputs = VECTORS["paired_compare_20"]["inputs"]
    a = write(tmp_path, "a.csv", ["item,value", *(f"q{i},{v:g}" for i, v in enumerate(inputs["a"])), "only_a,1"])
    b = write(tmp_path, "b.csv", ["item,value", *reversed([f"q{i},{v:g}" for i, v in enumerate(inputs["b"])])])
    found = document(capsys, "compare", a, b)
    vector = VECTORS["paired_compare_20"]
    assert list(found) == ["difference", "p_sign_flip", "mcnemar", "mde", "n_pairs", "unmatched"]
    assert found["p_sign_flip"] == near(vector["expected"]["p_signflip_exact"], vector)
    assert found["difference"]["se"] == near(vector["expected"]["se_paired"], vector)
    assert (found["n_pairs"], found["unmatched"]) == (20, {"a": ["only_a"], "b": []})
    code, _, err = run(capsys, "compare", a, write(tmp_path, "c.csv", ["item,value", "zzz,1"]))
    assert (code, "no item is in both files" in err) == (2, True)


def test_compare_uses_clusters_and_refuses_conflicting_ones(tmp_path, capsys):
    a = write(tmp_path, "a.csv", ["item,value,cluster", *(f"q{i},{i % 3},c{i // 2}" for i in range(20))])
    b = write(tmp_path, "b.csv", ["item,value", *(f"q{i},{i % 2}" for i in range(20))])
    assert document(capsys, "compare", a, b)["difference"]["n_clusters"] == 10
    c = write(tmp_path, "c.csv", ["item,value,cluster", *(f"q{i},1,x{i}" for i in range(20))])
    code, _, err = run(capsys, "compare", a, c)
    assert (code, "item q0 is in cluster" in err) == (2, True)


def test_budget_prints_labels_needed(capsys):
    assert document(capsys, "budget", "--kappa", ".6", "--half-width", ".1", "--prevalence", ".5") == {
        "labels_needed": 246
    }
    code, _, err = run(capsys, "budget", "--kappa", "2", "--half-width", ".1", "--prevalence", ".5")
    assert (code, err) == (2, "error: kappa is 2.0: it must lie between -1 and 1\n")
    code, _, err = run(capsys, "budget", "--kappa", ".6", "--half-width", "1e-300", "--prevalence", ".5")
    assert (code, "1e-300: a width" in err) == (2, True)


def test_rows_that_a_spreadsheet_pads_at_the_end_are_no_items(tmp_path, capsys):
    rows = ["item,judge,human", *(f"q{n},{n % 2 + 1},{n % 2 + 1}" for n in range(12))]
    plain = document(capsys, "agreement", write(tmp_path, "a.csv", rows), "--scale", "1,2")
    assert document(capsys, "agreement", write(tmp_path, "b.csv", [*rows, ",,", " ,,"]), "--scale", "1,2") == plain


@pytest.mark.parametrize(
    "rows, options, message",
    [
        (["item,judge,human", "q1,1,6"], ["--scale", "1,2,3,4,5"], "line 2 (item q1): '6'"),
        (["item,rater,label", "q1,judge,1", "q1,judge,1"], ["--scale", "1,2"], "line 3: (q1, judge)"),
        (["item,judge,human", "q1,1,nan"], ["--scale", "1,2"], "'nan'"),
        (["item,judge", "q1,1"], ["--scale", "1,2"], "the only rater"),
        (["item,rater,label", "q1,judge,1", "q2,ann,1"], ["--scale", "1,2"], "no item has a label from both"),
        (["item,judge,human", "q1,1,1"], ["--scale", "2,1"], "numbers must ascend"),
        (["item,judge,human", "q1,1,1"], ["--scale", "1"], "two labels or more"),
        (["item,judge,human", "q1,1,1"], ["--human", "ann", "--scale", "1,2"], "no column 'ann'"),
        (["item,judge,human", "q1,1,1"], [], "declare the scale"),
        (["item,judge,human"], ["--scale", "1,2"], "no rows"),
    ],
)
def test_bad_input_is_a_plain_message_and_exit_two(tmp_path, capsys, rows, options, message):
    code, out, err = run(capsys, "agreement", write(tmp_path, "bad.csv", rows), *options)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_unknown_verbs_and_designs_exit_two(capsys):
    seeds = (["compare", "a.csv", "b.csv", "--seed", "-1"], ["reliability", "r.csv", "--seed", "1.5"])
    for arguments in (["nonsense"], ["correct", "--label-design", "guess"], [], *seeds):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
    capsys.readouterr()


def test_the_command_works_where_no_llm_library_can_be_imported(tmp_path):
    for name in ("litellm", "instructor", "judge", "rubrics", "typer"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-m", "calibration", "agreement", ratings(tmp_path), "--scale", "1,2,3,4,5", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
    assert json.loads(done.stdout)["n"] == 24


def test_importing_the_package_and_its_commands_is_quiet():
    code = (
        "import sys, calibration, calibration.__main__ as m; m.parser();"
        "print([n for n in ('numpy', 'scipy', 'pandas', 'judge', 'rubrics', 'litellm') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_same_seed_same_bytes(tmp_path, capsys):
    first = run(capsys, "agreement", ratings(tmp_path), "--scale", "1,2,3,4,5", "--seed", "7", "--json")
    assert first == run(capsys, "agreement", ratings(tmp_path), "--scale", "1,2,3,4,5", "--seed", "7", "--json")
    assert first != run(capsys, "agreement", ratings(tmp_path), "--scale", "1,2,3,4,5", "--seed", "8", "--json")


def test_a_reader_that_has_seen_enough_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    command = [
        sys.executable,
        "-m",
        "calibration",
        "budget",
        "--kappa",
        ".6",
        "--half-width",
        ".1",
        "--prevalence",
        ".3",
    ]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
