"""The embedded model behind litellm. Tests marked slow run the real weights and are skipped where those are absent."""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from judge.errors import UsageError
from judge.llm import llama, local, weights
from judge.llm.library import instructor, litellm

ROOT = Path(__file__).parents[2]
PASSAGE = "The bridge was opened in 1931 and is 504 metres long. It carries four lanes of road and two railway tracks."


def yes_or_no(sentence: str) -> list[dict[str, str]]:
    material = f"[PASSAGE]\n{PASSAGE}\n\n[SENTENCE]\n{sentence}\n\n[CHECK]\n"
    check = "Does the PASSAGE say what the SENTENCE says? Reply with one word: yes or no."
    return [
        {"role": "system", "content": "You check the work of a question-answering system."},
        {"role": "user", "content": material + check},
    ]


def quick(model: str, sentence: str, **more: Any) -> Any:
    asked = {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": 40, **more}
    return asyncio.run(litellm().acompletion(model=model, messages=yes_or_no(sentence), **asked))


def p_yes(response: Any) -> float:
    mass = {"yes": 0.0, "no": 0.0}
    for entry in response.choices[0].logprobs.content[0].top_logprobs:
        if (word := entry.token.strip().lower()) in mass:
            mass[word] += math.exp(entry.logprob)
    return mass["yes"] / (mass["yes"] + mass["no"])


# -- without weights --------------------------------------------------------------------------------------------------


def test_importing_the_provider_loads_neither_litellm_nor_the_runtime() -> None:
    script = "import sys; import judge.llm.local; print(sorted({'litellm', 'xllamacpp'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_without_the_runtime_the_install_line_is_named() -> None:
    # -S leaves site-packages out, so xllamacpp cannot be found
    script = "from judge.llm import llama; llama.runtime()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-S", "-c", script], env=environment, capture_output=True, text=True)
    assert "UsageError: --model local needs xllamacpp" in done.stderr
    assert "pip install 'calibrated-judge[local]'" in done.stderr


TOKEN = {"token": "yes", "logprob": -0.1, "bytes": [121], "top_logprobs": []}
CHUNKS: list[dict[str, Any]] = [
    {"choices": [{"finish_reason": None, "delta": {"role": "assistant", "content": None}}], "prompt_progress": {}},
    {"choices": [{"finish_reason": None, "delta": {"content": "y"}, "logprobs": {"content": [TOKEN]}}]},
    {"choices": [{"finish_reason": None, "delta": {"content": "es"}}]},
    {"choices": [{"finish_reason": "length", "delta": {}}]},
    {
        "choices": [],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
    },
]


def test_the_chunks_of_a_stream_become_one_answer() -> None:
    assert llama._answer(CHUNKS) == llama.Answer(
        text="yes", finish_reason="length", token_logprobs=[TOKEN], input_tokens=9, cached_tokens=4, output_tokens=2
    )


class Clock:
    """Time that passes only when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """Stands in for a loaded model: streams `chunks` and lets `seconds` pass before each."""

    def __init__(self, clock: Clock, chunks: list[dict[str, Any]], seconds: float = 0.0) -> None:
        self.clock, self.chunks, self.seconds = clock, chunks, seconds

    def handle_chat_completions(self, body: dict[str, Any], take: Any) -> None:
        for chunk in self.chunks:
            self.clock.now += self.seconds
            if take(chunk):
                return


def scripted_slot(chunks: list[dict[str, Any]], seconds: float = 0.0) -> tuple[llama.Slot, Clock]:
    clock = Clock()
    return llama.Slot(Path("x.gguf"), load=lambda path: Scripted(clock, chunks, seconds), clock=clock), clock


def test_waiting_in_the_queue_and_loading_do_not_count_against_the_timeout() -> None:
    slot, clock = scripted_slot(CHUNKS)
    entered, leave = threading.Event(), threading.Event()
    slot._queue.submit(lambda: (entered.set(), leave.wait()))
    entered.wait()
    second = slot.submit({}, 10.0, threading.Event())
    clock.now += 3600
    leave.set()
    assert second.result().text == "yes"


def test_a_call_that_takes_longer_than_its_timeout_is_ended_at_the_next_chunk() -> None:
    slot, clock = scripted_slot(CHUNKS, seconds=6.0)
    with pytest.raises(llama.SlotError, match="within 10 s") as late:
        slot.submit({}, 10.0, threading.Event()).result()
    assert (late.value.kind, clock.now) == ("timeout", 12.0)  # second chunk of five


def test_a_stopped_call_says_so() -> None:
    slot, _ = scripted_slot(CHUNKS)
    stop = threading.Event()
    stop.set()
    with pytest.raises(llama.SlotError) as stopped:
        slot.submit({}, 10.0, stop).result()
    assert stopped.value.kind == "stopped"


def test_an_error_of_the_runtime_is_sorted() -> None:
    overflow = {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 9001, "n_ctx": 8192, "message": ""}
    for error, kind in (
        (overflow, "context_window"),
        ({"code": 400, "message": "m"}, "bad_request"),
        ({"code": 500, "message": "m"}, "failed"),
    ):
        slot, _ = scripted_slot([{"error": error}])
        with pytest.raises(llama.SlotError) as raised:
            slot.submit({}, 10.0, threading.Event()).result()
        assert raised.value.kind == kind


def test_absent_weights_are_told_with_the_pull_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="extra `local` is not installed")
    monkeypatch.setenv("JUDGE_MODELS", str(tmp_path))
    with pytest.raises(UsageError, match="judge model pull"):
        local.register("local")


@pytest.mark.parametrize("name, reason", [("nowhere.gguf", "there is no file"), ("text.gguf", "not a GGUF file")])
def test_a_file_that_is_no_gguf_is_refused_before_any_call(tmp_path: Path, name: str, reason: str) -> None:
    pytest.importorskip("xllamacpp", reason="extra `local` is not installed")
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(UsageError, match=reason):
        local.register(f"local:{tmp_path / name}")


def test_a_damaged_gguf_is_an_unknown_model_with_its_path(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("xllamacpp", reason="extra `local` is not installed")
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + bytes(60))
    model = local.register(f"local:{damaged}")
    with pytest.raises(litellm().NotFoundError, match=r"damaged\.gguf could not be loaded"):
        quick(model, "The bridge is 504 metres long.")
    assert "gguf_init" not in capfd.readouterr().err  # llama.cpp itself says nothing


def test_two_files_of_one_name_are_two_models(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="extra `local` is not installed")
    names = []
    for folder, last in (("a", b"1"), ("b", b"2")):
        file = tmp_path / folder / "same.gguf"
        file.parent.mkdir()
        file.write_bytes(b"GGUF" + last)
        names.append(local.register(f"local:{file}"))
    assert len(set(names)) == 2
    assert all(name.startswith("local/same@") for name in names)


# -- with the real model ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    pytest.importorskip("xllamacpp", reason="extra `local` is not installed")
    if not weights.installed():
        pytest.skip("the embedded model is not on this machine (judge model pull); tests never fetch it")
    yield local.register("local")
    local.unload()


@pytest.mark.slow
def test_one_token_carries_the_probability_that_the_passage_says_it(model: str) -> None:
    response = quick(model, "The bridge is 504 metres long.")
    assert response.choices[0].message.content == "yes"
    assert response.choices[0].finish_reason == "length"
    assert len(response.choices[0].logprobs.content[0].top_logprobs) == 40
    assert response.model == "qwen2.5-coder-1.5b@cc324af070c2"
    assert (response.usage.completion_tokens, response._hidden_params["response_cost"]) == (1, 0.0)
    assert p_yes(response) > 0.5 > p_yes(quick(model, "The bridge is a tunnel for pedestrians opened in 1999."))


@pytest.mark.slow
def test_a_score_does_not_depend_on_the_calls_before_it_though_the_shared_prefix_is_reused(model: str) -> None:
    quick(model, "word")
    first = quick(model, "It has two railway tracks.")
    repeated = quick(model, "It has two railway tracks.")
    quick(model, "The bridge was opened in 1931 and is 600 metres long.")
    after_another = quick(model, "It has two railway tracks.")
    assert p_yes(first) == p_yes(repeated) == p_yes(after_another)
    assert after_another.usage.prompt_tokens_details.cached_tokens > 40


@pytest.mark.slow
def test_a_json_schema_is_enforced_by_grammar(model: str) -> None:
    class Verdict(BaseModel):
        rationale: str = Field(max_length=80)
        level: Literal["supported", "unsupported"]

    client = instructor().from_litellm(litellm().acompletion, mode=instructor().Mode.JSON_SCHEMA)
    asked = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "Write a poem about rain. Do not use JSON."}],
        response_model=Verdict,
        max_tokens=150,
        max_retries=0,
    )
    assert asyncio.run(asked).level in ("supported", "unsupported")


@pytest.mark.slow
def test_a_prompt_beyond_the_context_is_a_context_window_error(model: str) -> None:
    with pytest.raises(litellm().ContextWindowExceededError, match="reads 8192"):
        quick(model, "word " * 9000)


@pytest.mark.slow
def test_unknown_parameters_and_bad_schemas_are_refused_by_name(model: str) -> None:
    with pytest.raises(litellm().UnsupportedParamsError, match="takes no tools"):
        quick(model, "x", tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}])
    schema = {"type": "json_schema", "json_schema": {"schema": {"type": "fuzz"}}}
    with pytest.raises(litellm().BadRequestError, match="unrecognized type fuzz"):
        quick(model, "x", response_format=schema)


@pytest.mark.slow
def test_a_late_call_times_out_and_leaves_the_slot_free(model: str) -> None:
    with pytest.raises(litellm().Timeout, match=r"within 0\.01 s"):
        quick(model, "word " * 700, timeout=0.01)
    assert quick(model, "It has two railway tracks.").choices[0].message.content in ("yes", "no")


@pytest.mark.slow
def test_a_cancelled_call_frees_the_slot_for_the_next(model: str) -> None:
    async def give_up() -> str:
        long = [{"role": "user", "content": "word " * 7000}]  # read for many seconds on any processor
        call = asyncio.create_task(litellm().acompletion(model=model, messages=long, max_tokens=1))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(call, timeout=2)
        reply = await litellm().acompletion(model=model, messages=yes_or_no("It is in 1931."), max_tokens=1, timeout=60)
        return str(reply.choices[0].message.content)

    assert asyncio.run(give_up())


@pytest.mark.slow
def test_the_port_that_the_runtime_opens_answers_nobody(model: str) -> None:
    quick(model, "It has two railway tracks.")
    address = local._models[weights.NAME].slot._server.listening_address
    assert address.startswith("http://127.0.0.1:")
    for page in ("/v1/models", "/props", "/slots"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(address + page, timeout=10)


@pytest.mark.slow
def test_the_model_describes_itself(model: str) -> None:
    quick(model, "It has two railway tracks.")
    described = local.describe(model)
    assert (described["sha256"], described["size_bytes"]) == (weights.pinned().sha256, 1_117_320_768)
    assert (described["context_tokens"], described["loaded"]) == (8192, True)
    assert described["runtime"].startswith("xllamacpp 20")
