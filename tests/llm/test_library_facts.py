"""What the libraries do behind one's back, and that it does not reach us (spec/stack.md 0)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judge.llm.budget import Budget, OverBudget, TokenPrice
from judge.llm.structured import answer_model
from tests.llm.conftest import GOOD, Asker, Verdict, request

ROOT = Path(__file__).parents[2]


def python(program: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    clean = {name: value for name, value in os.environ.items() if not name.startswith("LITELLM")}
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        env={**clean, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_instructor_builds_no_class_per_call() -> None:
    from instructor.utils.core import prepare_response_model

    assert answer_model(Verdict) is answer_model(Verdict)
    assert prepare_response_model(answer_model(Verdict)) is answer_model(Verdict)
    first, second = answer_model(Verdict).model_json_schema(), answer_model(Verdict).model_json_schema()
    assert first["properties"] is second["properties"]


def test_sixty_four_concurrent_calls_with_failures_all_succeed(asker: Asker) -> None:
    asker.provider.config(p500=0.2, p_schema=0.03)
    replies = asker.ask(*(request(f"case {number}") for number in range(64)))
    assert {reply.error_kind for reply in replies} == {None}


def test_one_attempt_is_one_http_request(asker: Asker) -> None:
    asker.provider.script({"match": [], "replies": [{"status": 500}, {"status": 503}, {"content": GOOD}]})
    reply = asker.ask_one(request())
    assert len(reply.http_calls) == asker.provider.stats()["requests"] == 3


@pytest.mark.parametrize("output", ["json_schema", "tools", "json", "md_json"])
def test_untrusted_text_is_not_rendered_as_a_template(asker: Asker, output: str) -> None:
    text = "{{ 7*7 }} {% for x in y %} {0} {x} ${HOME} %s"
    asker.ask_one(request(text), output=output)
    (sent,) = asker.provider.requests()
    assert text in sent["messages"][-1]["content"]


def test_importing_the_client_loads_no_llm_library() -> None:
    program = (
        "import sys, judge.llm.client; "
        "print([m for m in ('litellm', 'instructor', 'openai', 'pandas', 'scipy', 'aiohttp') if m in sys.modules])"
    )
    done = python(program)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.slow
def test_a_dotenv_file_of_the_working_directory_is_not_loaded_and_nothing_is_printed(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("SMUGGLED=1\nOPENAI_API_KEY=stolen\n")
    done = python(
        "import os; from judge.llm.library import litellm; litellm();"
        "print(os.environ.get('SMUGGLED'), os.environ.get('OPENAI_API_KEY'))",
        cwd=tmp_path,
        OPENAI_API_KEY="",
    )
    assert (done.stdout.split(), done.stderr) == (["None"], "")


@pytest.mark.slow
def test_a_process_that_asked_ends_without_a_word_about_unclosed_sessions(asker: Asker) -> None:
    program = f"""
import asyncio
from judge.config import JudgeSpec
from judge.llm.client import Client
from tests.llm.conftest import request
async def main():
    for model, base in (("openai/gpt-4o-mini", {asker.provider.base_url!r}), ("hosted_vllm/own", {asker.provider.base_url!r}),
                        ("anthropic/claude-sonnet-4-5", {asker.provider.root!r})):
        async with Client(JudgeSpec(name="x", model=model, api_base=base)) as one:
            async with Client(JudgeSpec(name="x", model=model, api_base=base)) as two:
                await one.ask(request())
            replies = await asyncio.gather(*(one.ask(request(f"case {{n}}")) for n in range(20)))
            assert not any(reply.error_kind for reply in replies), replies
asyncio.run(main())
"""
    done = python(program, OPENAI_API_KEY="x", ANTHROPIC_API_KEY="x")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_money_is_not_spent_beyond_the_budget(asker: Asker) -> None:
    async def work(client: Any) -> Any:
        price = client.price()
        client.budget = Budget(0.001, price)
        replies = await asyncio.gather(
            *(client.ask(request(f"case {number}")) for number in range(100)), return_exceptions=True
        )
        return client.budget, replies

    budget, replies = asker.run(work)
    stopped = [reply for reply in replies if isinstance(reply, OverBudget)]
    paid = [reply for reply in replies if not isinstance(reply, BaseException)]
    assert len(stopped) + len(paid) == 100
    assert stopped
    assert sum(reply.cost_usd for reply in paid) == pytest.approx(budget.spent)
    assert budget.spent <= 0.001
    assert budget.reserved == pytest.approx(0)


def test_a_reask_that_the_budget_does_not_allow_ends_the_item_and_keeps_its_cost(asker: Asker) -> None:
    asker.provider.script({"match": [], "replies": [{"content": "?"}]})

    async def work(client: Any) -> Any:
        client.budget = Budget(0.001, TokenPrice(0, 1 / 400_000))  # one call reserves 400 tokens = 0.001
        return await client.ask(request())

    reply = asker.run(work, price={"input_per_million": 0, "output_per_million": 2.5})
    assert (reply.error_kind, len(reply.http_calls)) == ("unparsable", 1)
    assert "--max-cost" in (reply.error or "")
    assert reply.cost_usd > 0
