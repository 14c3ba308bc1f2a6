"""Which judge is chosen, and what judge.toml may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.config import JudgeSpec, find_judge
from judge.errors import UsageError

TOML = """
default = "main"
[judges.main]
model = "openai/gpt-4o-mini"
api_base = "http://127.0.0.1:8000/v1"
api_key_env = "MY_KEY"
params = { temperature = 0, seed = 7 }
output = "tools"
price = { input_per_million = 0.4, output_per_million = 1.6 }
limits = { concurrency = 8, rpm = 5000, tpm = 2000000 }
[judges.spare]
model = "anthropic/claude-sonnet-4-5"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_string_is_a_judge_of_its_own_with_temperature_zero(here: Path) -> None:
    judge = find_judge("openai/gpt-4o-mini")
    assert (judge.model, judge.params, judge.source, judge.timeout) == (
        "openai/gpt-4o-mini",
        {"temperature": 0},
        "option",
        60,
    )


def test_without_model_and_file_the_embedded_model_judges_and_says_it_was_not_chosen(here: Path) -> None:
    judge = find_judge(None)
    assert (judge.model, judge.source) == ("local", "fallback")


def test_the_default_of_judge_toml_is_used_and_its_judges_are_found_by_name(here: Path) -> None:
    (here / "judge.toml").write_text(TOML)
    main = find_judge(None)
    assert (main.name, main.source, main.limits.concurrency, main.host) == ("main", "default", 8, "127.0.0.1:8000")
    assert find_judge("spare").model == "anthropic/claude-sonnet-4-5"
    assert find_judge("openai/other").source == "option"


def test_the_embedded_model_runs_alone_is_free_and_gets_ten_minutes() -> None:
    for model in ("local", "local:/models/own.gguf"):
        judge = JudgeSpec(name="x", model=model, limits={"concurrency": 8})
        assert judge.is_local
        assert (judge.limits.concurrency, judge.timeout) == (1, 600)
        assert judge.price is not None
        assert judge.price.input_per_million == 0


def test_command_line_values_override_the_file_and_are_checked(here: Path) -> None:
    (here / "judge.toml").write_text(TOML)
    judge = find_judge("main").override(concurrency=2, timeout=5, api_base=None)
    assert (judge.limits.concurrency, judge.limits.rpm, judge.timeout, judge.host) == (2, 5000, 5, "127.0.0.1:8000")
    with pytest.raises(UsageError, match="api_base"):
        judge.override(api_base="file:///etc/passwd")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("defalt = 'x'", "unknown key 'defalt'; did you mean 'default'"),
        ("default = 'x'", "default = 'x' is not a judge of this file"),
        ("[judges.a]\nmodle = 'openai/x'", "modle: unknown key; did you mean 'model'"),
        ("[judges.a]\nmodel = 'openai/x'\nlimits = { rmp = 3 }", "limits.rmp: unknown key; did you mean 'rpm'"),
        ("[judges.a]\nmodel = 'openai/x'\napi_key = 'sk-1'", "keys come only from the environment"),
        ("[judges.a]\nmodel = 'openai/x'\nparams = { max_retries = 3 }", "max_retries: set by the judge itself"),
        ("[judges.a]\nmodel = 'openai/x'\noutput = 'xml'", "output"),
        ("[judges.a]\nmodel = 'openai/x'\nprice = { input_per_million = nan, output_per_million = 1 }", "price.input"),
        ("[judges.a]\ntimeout = 3", "model"),
        ("judges = 3", "judges must be tables"),
        ("= broken", "not readable as TOML"),
    ],
)
def test_what_judge_toml_may_not_say_is_named(here: Path, text: str, said: str) -> None:
    (here / "judge.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        find_judge("openai/x")


def test_a_config_file_that_is_named_must_exist(here: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        find_judge("x", Path("nowhere.toml"))


def test_a_server_named_by_the_environment_is_part_of_who_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_BASE", raising=False)
    assert find_judge("openai/m").host is None
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    assert find_judge("openai/m").host == "127.0.0.1:9"
    assert find_judge("mistral/m").host is None
    assert find_judge("openai/m").override(api_base="http://127.0.0.1:8/v1").host == "127.0.0.1:8"
