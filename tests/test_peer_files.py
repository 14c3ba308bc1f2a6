"""Files, runs and values that broke other judges or may break this one: spec/peers.md section 5, groups 9 to 11."""

# ruff: noqa: F811
from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import judge
from judge.errors import InputError, UsageError
from tests.hostile import LEVEL_2, only, own_rubric
from tests.test_score import MODEL, arguments_of, cases, command, rubric_dir, score  # noqa: F401

# 9, 10: caches and runs that have a past


def test_9_a_changed_case_leaves_no_old_number_of_another_rubric_or_repeat(score, tmp_path):
    score(cases(3), rubrics=["plain", "answer_relevance"], repeats=2)
    changed = cases(3)
    changed[1]["answer"] = "It takes two days."
    found = score(changed, rubrics=["plain"]).summary["rubrics"]
    assert found["plain"]["by_status"] == {"scored": 5}
    assert sum(found["answer_relevance"]["by_status"].values()) == 4
    assert (
        score(changed, rubrics=["answer_relevance"], repeats=2).summary["rubrics"]["answer_relevance"]["n_cases"] == 3
    )


def test_9_a_changed_rubric_is_never_averaged_with_its_old_version(score, provider, tmp_path):
    own_rubric(tmp_path, "Rate the answer.")
    first = score(cases(20), rubrics="own")
    spent, before = first.summary["totals"]["cost_usd"], set(first.to_frame()["rubric_hash"])
    own_rubric(tmp_path, "Rate the answer. Be strict.")
    stopped = score(cases(20), rubrics="own", max_cost=2 * spent, concurrency=1)
    assert stopped.summary["stopped"] == "max_cost"
    lines = stopped.to_frame()
    assert len(lines) < 20
    assert not set(lines.get("rubric_hash", ())) & before
    whole = score(cases(20), rubrics="own").summary["rubrics"]["own"]
    assert (whole["n_cases"], len(whole["prompt_hashes"])) == (20, 1)


def test_10_a_damaged_line_is_named_and_never_passed_over(score, command, tmp_path):
    result = score(cases(3))
    path = result.run / "judgments.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:40] + b"\xff\n" + lines[2])
    with pytest.raises(InputError, match=r"judgments\.jsonl:2: damaged line"):
        score(cases(3))
    code, _, err = command("export", str(result.run))
    assert (code, "judgments.jsonl:2" in err) == (2, True)
    path.write_bytes(lines[0] + lines[2])
    assert len(score(cases(3)).to_frame()) == 3


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"judge": {}', b"\xff\xfe"])
def test_10_a_damaged_run_json_is_named(score, command, content):
    result = score(cases(1))
    (result.run / "run.json").write_bytes(content)
    with pytest.raises(InputError, match=r"run\.json.*damaged"):
        score(cases(1))
    code, _, err = command("show", str(result.run), "c0")
    assert (code, "run.json" in err) == (2, True)


def test_10_a_disk_that_is_full_is_told_and_the_run_resumes(score, provider, tmp_path):
    import resource

    score(cases(2))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    room = (tmp_path / "run" / "replies.jsonl").stat().st_size + 3000
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(UsageError, match=r"(No space left|File too large).*same command goes on"):
            score(cases(30), cache=False, concurrency=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(score(cases(30), cache=False).to_frame()) == 30
    assert provider.stats()["requests"] <= 31


def test_10_an_out_that_can_be_no_directory_is_a_plain_error(score, command, provider, tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "run", tmp_path / ("x" * 300)):
        with pytest.raises(UsageError, match=str(out)[:40]):
            score(cases(1), out=out)
    code, _, err = command(*arguments_of(tmp_path, provider, 1, "--out", str(tmp_path / "file")))
    assert (code, "Traceback" in err) == (2, False)


# 11: files and their texts


def test_11_text_of_every_kind_is_judged_as_it_stands_in_the_csv(score, provider, tmp_path):
    answer = 'Line one\nline "two", | a | b |; cat log | grep x 🚢 Zażółć 中文 \u0645\u0631\u062d\u0628\u0627'
    path = tmp_path / "cases.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file, lineterminator="\r\n")
        table.writerow(["id", "question", "answer", "contexts"])
        table.writerow(["1", 'How; long, "really"?', answer, json.dumps(["a; b | c", "d"])])
        table.writerow(["2", 'How; long, "really"?', "yes", "[]"])
    result = score(path)
    assert result.summary["n_cases"] == 2
    [first] = [r for r in provider.requests() if "grep" in r["messages"][1]["content"]]
    assert answer in first["messages"][1]["content"]


HOSTILE = "\x1b[31mred\x1b[0m \u202egnp.exe [bold]b[/bold] | `tick` <script>x</script> :smile:"


def test_11_terminal_page_markdown_and_csv_stay_inert(score, command, provider):
    provider.script({"match": "CASE", "replies": [{"content": {**LEVEL_2, "rationale": HOSTILE}}]})
    name = f"=1+1 {HOSTILE}\n$(touch x)"
    result = score([{**cases(1)[0], "id": name, "answer": HOSTILE, "system": HOSTILE}])
    page = (result.run / "summary.md").read_text()
    shown = command("show", str(result.run), name)[1]
    for text in (page, shown):
        assert not {"\x1b", "\u202e"} & set(text)
    assert "<script>" not in page
    assert "[bold]b[/bold]" in shown
    assert ":smile:" in shown
    assert str(result.run.parent) not in page
    assert "\\`tick\\`" in page
    command("export", str(result.run))
    with (result.run / "export.csv").open(newline="", encoding="utf-8") as file:
        assert next(csv.DictReader(file))["case_id"] == f"'{name}"


def test_11_an_error_message_carries_no_terminal_codes(command, tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({"question": "q", "answer": "a", "\x1b[31mfield": 1, "contexts": "\x1b[2J"}) + "\n")
    code, out, err = command("score", str(path), "--model", MODEL, "--out", str(tmp_path / "run"))
    assert (code, "\x1b" in out + err) == (2, False)


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, b"\xff", "half \ud83d"], ids=["object", "set", "bytes", "surrogate"]
)
def test_11_a_value_that_json_cannot_hold_is_refused_with_its_row(score, provider, value):
    with pytest.raises(InputError, match="item 2 metadata"):
        score([*cases(1), {**cases(2)[1], "metadata": {"x": [value]}}])
    assert provider.stats().get("requests", 0) == 0


def test_11_a_surrogate_in_a_python_list_of_a_csv_cell_is_refused(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text("id,question,answer,contexts\n1,q,a,\"['a\\ud800']\"\n")
    with pytest.raises(InputError, match="contexts"):
        list(judge.read_cases(path))


# values that a caller gets wrong


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "Full"}, {"layout": "item"}, {"rubrics": []}, {"limit": 0}, {"limit": "3"}, {"repeats": 0},
        {"max_cost": float("nan")}, {"max_cost": -1.0}, {"max_cost": 0.0}, {"timeout": 0}, {"concurrency": 0},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_value_is_refused_before_anything_is_sent(score, provider, wrong):
    with pytest.raises(UsageError):
        score(cases(1), **{"rubrics": ["plain"]} | wrong)
    assert provider.stats().get("requests", 0) == 0


@pytest.mark.parametrize("gate", ["plain=nan", "plain=inf", "plain", "=4", "plain=four"])
def test_a_gate_that_is_no_number_is_refused(command, provider, tmp_path, gate):
    code, _, err = command(*arguments_of(tmp_path, provider, 1, "--fail-under", gate))
    assert code == 2, err


@pytest.mark.parametrize("rate", ["nan", "-0.1", "2"])
def test_an_error_rate_that_is_no_share_is_refused_before_anything_is_spent(command, provider, tmp_path, rate):
    assert command(*arguments_of(tmp_path, provider, 1, "--max-error-rate", rate))[0] == 2
    assert provider.stats().get("requests", 0) == 0


def test_a_rubric_folder_may_hold_folders_and_dead_links(score, tmp_path):
    folder = rubric_dir(tmp_path)
    (folder / "notes.md").mkdir()
    (folder / "dead.md").symlink_to(Path("/nowhere"))
    (folder / "other.md").write_bytes(b"---\nid: other\ntitle: \xff\n---\n")
    assert only(score(cases(1)))["status"] == "scored"


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 3), (-1, 0), (10, 13)])
def test_scales_keep_their_ends(score, provider, tmp_path, low, high):
    own_rubric(tmp_path, "Rate.", low, high)
    for n, level in enumerate((low, high)):
        provider.script({"match": "CASE", "replies": [{"content": {**LEVEL_2, "level": level}}]})
        result = score(cases(1), rubrics="own", out=tmp_path / f"run{n}", cache=False)
        row = only(result)
        assert (row["score"], row["normalized"], row["passed"]) == (float(level), float(n), bool(n))
        assert result.summary["rubrics"]["own"]["histogram"][str(level)] == 1


def test_closed_and_empty_standard_input_are_plain_errors(command, provider, tmp_path, monkeypatch):
    import io
    import sys

    arguments = ["score", "-", *arguments_of(tmp_path, provider, 1)[2:]]
    for stream, said in ((None, "standard input is closed"), (io.TextIOWrapper(io.BytesIO(b"")), "no cases in it")):
        monkeypatch.setattr(sys, "stdin", stream)
        code, _, err = command(*arguments)
        assert (code, said in err) == (2, True), err
