"""Replies on disk: kept, shared, found again; never unpickled, never a crash."""

from __future__ import annotations

import asyncio
import os
import pickle
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judge.llm.cache import ReplyCache
from tests.llm.conftest import GOOD, Asker, quick_request, request

ROOT = Path(__file__).parents[2]


class Bomb:
    """Would create the file `exploded` when unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("exploded"),)


def tamper(directory: Path, statement: str, *values: Any) -> None:
    with sqlite3.connect(directory / "cache.db") as database:
        database.execute(statement, values)
    database.close()


def test_a_cached_reply_costs_nothing_and_sends_nothing(asker: Asker, tmp_path: Path) -> None:
    first = asker.ask_one(request(), cache=ReplyCache(tmp_path))
    again = asker.ask_one(request(), cache=ReplyCache(tmp_path))
    assert (first.cached, again.cached) == (False, True)
    assert (again.cost_usd, again.http_calls) == (0, [])
    kept = ("key", "text", "parsed", "finish_reason", "model_returned", "usage")
    assert [getattr(again, name) for name in kept] == [getattr(first, name) for name in kept]
    assert asker.provider.stats()["requests"] == 1


def test_a_cached_quick_reply_keeps_its_token_probabilities(asker: Asker, tmp_path: Path) -> None:
    first = asker.ask_one(quick_request(), cache=ReplyCache(tmp_path))
    again = asker.ask_one(quick_request(), cache=ReplyCache(tmp_path))
    assert again.cached
    assert again.token_logprobs == first.token_logprobs


def test_another_model_on_the_same_cache_is_another_reply(asker: Asker, tmp_path: Path) -> None:
    replies = [
        asker.ask_one(request(), cache=ReplyCache(tmp_path), model=f"openai/{name}")
        for name in ("gpt-4o-mini", "gpt-4o")
    ]
    assert [reply.cached for reply in replies] == [False, False]


@pytest.mark.parametrize("scripted", [{"refusal": "no"}, {"content": "", "finish": "content_filter"}, {"content": "?"}])
def test_a_failure_is_never_cached(asker: Asker, tmp_path: Path, scripted: dict[str, Any]) -> None:
    asker.provider.script({"match": [], "replies": [scripted, scripted, scripted, {"content": GOOD}]})
    failed = asker.ask_one(request(), cache=ReplyCache(tmp_path))
    assert failed.error_kind is not None
    asker.provider.script({"match": [], "replies": [{"content": GOOD}]})
    assert asker.ask_one(request(), cache=ReplyCache(tmp_path)).cached is False


def test_identical_requests_under_way_are_sent_once_and_paid_by_the_first(asker: Asker) -> None:
    replies = asker.ask(*[request()] * 5)
    assert asker.provider.stats()["requests"] == 1
    assert [reply.cached for reply in replies] == [False, True, True, True, True]
    assert sum(len(reply.http_calls) for reply in replies) == 1
    assert all(reply.parsed == replies[0].parsed for reply in replies)


def test_a_waiter_that_is_cancelled_takes_nobody_with_it(asker: Asker) -> None:
    asker.provider.config(latency_ms=50)

    async def work(client: Any) -> Any:
        first, second = (asyncio.create_task(client.ask(request())) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asker.run(work).parsed is not None
    assert asker.provider.stats()["requests"] == 1


def test_a_row_that_is_a_pickle_is_not_unpickled(asker: Asker, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    reply = asker.ask_one(request(), cache=ReplyCache(tmp_path))
    tamper(tmp_path, "UPDATE Cache SET mode = 4, value = ? WHERE key = ?", pickle.dumps(Bomb()), reply.key)
    cache = ReplyCache(tmp_path)
    assert cache.get(reply.key) is None
    assert "damaged row" in cache.warnings[0]
    assert asker.ask_one(request(), cache=cache).cached is False
    assert not (tmp_path / "exploded").exists()


def test_a_key_that_is_a_pickle_is_not_unpickled(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    cache = ReplyCache(tmp_path)
    cache.set("a", 1)
    tamper(tmp_path, "UPDATE Cache SET raw = 0, key = ?", pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="without a text key"):
        list(cache._store)
    assert not (tmp_path / "exploded").exists()


def test_a_row_cannot_name_a_file_to_read_or_to_delete(tmp_path: Path) -> None:
    private = tmp_path / "private.txt"
    private.write_text('"secret"')
    cache = ReplyCache(tmp_path / "cache")
    for mode in (2, 3):
        cache.set("a", 1)
        tamper(cache.directory, "UPDATE Cache SET mode = ?, filename = '../private.txt', value = NULL", mode)
        assert cache.get("a") is None
        cache.set("a", 2)
        assert cache.get("a") == 2
    assert private.exists()


def test_nothing_is_ever_evicted_and_large_replies_stay_in_the_database(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    for number in range(200):
        cache.set(str(number), "x" * 50_000)
    cache.close()
    cache = ReplyCache(tmp_path)
    assert all(cache.get(str(number)) == "x" * 50_000 for number in range(200))
    assert (cache._store.eviction_policy, cache._store.cull_limit, cache._store.size_limit) == ("none", 0, 2**50)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} <= {".db", ".db-wal", ".db-shm"}
    assert cache.describe()["entries"] == 200


def test_the_directory_is_private(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "new" / "cache")
    assert stat.S_IMODE(cache.directory.stat().st_mode) == 0o700


def test_the_directory_is_judge_cache_else_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("JUDGE_CACHE", raising=False)
    assert ReplyCache().directory == tmp_path / "xdg" / "calibrated-judge"
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "mine"))
    assert ReplyCache().directory == tmp_path / "mine"


def test_a_damaged_database_is_no_cache_and_one_warning(asker: Asker, tmp_path: Path) -> None:
    (tmp_path / "cache.db").write_bytes(b"not a database" * 1000)
    cache = ReplyCache(tmp_path)
    assert asker.ask_one(request(), cache=cache).parsed is not None
    assert len(cache.warnings) == 1
    assert "going on without it" in cache.warnings[0]
    assert cache.describe() == {
        "directory": str(tmp_path), "readable": False, "writable": False, "entries": None, "bytes": None
    }  # fmt: skip


def test_a_truncated_database_is_no_cache(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    for number in range(500):
        cache.set(str(number), "x" * 900)
    cache.close()
    database = tmp_path / "cache.db"
    database.write_bytes(database.read_bytes()[:60_000])
    cache = ReplyCache(tmp_path)
    assert [cache.get(str(number)) for number in range(500)].count(None) > 0
    cache.set("new", 1)
    assert cache.warnings


def test_a_place_that_is_no_directory_is_no_cache(asker: Asker, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = ReplyCache(tmp_path / "file")
    assert asker.ask_one(request(), cache=cache).parsed is not None
    assert len(cache.warnings) == 1


def test_a_locked_cache_is_read_and_what_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    cache.set("a", 1)
    cache._store._timeout = 0
    cache._store.close()
    lock = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    cache.set("b", 2)
    assert cache.get("a") == 1
    assert cache.get("b") is None
    assert ["cannot be written" in warning for warning in cache.warnings] == [True]
    lock.close()


def test_two_processes_share_a_cache(tmp_path: Path) -> None:
    program = (
        "import sys; from judge.llm.cache import ReplyCache; c = ReplyCache(sys.argv[1]);"
        "[c.set(f'{sys.argv[2]}{n}', n) for n in range(300)]; print(len(c.warnings))"
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), name], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for name in "ab"
    ]
    assert [worker.communicate(timeout=30)[0].strip() for worker in workers] == ["0", "0"]
    cache = ReplyCache(tmp_path)
    assert [cache.get(f"{name}{n}") for name in "ab" for n in range(300)] == [n for _ in "ab" for n in range(300)]


def test_the_marker_secret_is_made_once_and_only_the_user_reads_it(tmp_path: Path) -> None:
    secret = ReplyCache(tmp_path).secret()
    assert len(secret) == 32
    assert ReplyCache(tmp_path).secret() == secret
    file = tmp_path / "marker.secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob("marker.secret*")] == ["marker.secret"]


def test_a_secret_that_cannot_be_kept_still_works_for_this_run(tmp_path: Path) -> None:
    (tmp_path / "marker.secret").write_bytes(b"short")
    cache = ReplyCache(tmp_path)
    assert len(cache.secret()) == 32
    assert "marker.secret has 5 bytes" in cache.warnings[0]
    assert os.path.getsize(tmp_path / "marker.secret") == 5


def test_what_the_model_supports_is_kept_with_the_replies(asker: Asker, tmp_path: Path) -> None:
    """A cached re-run imports no LLM library: seconds and 200 MB."""
    asker.ask_one(request(), cache=ReplyCache(tmp_path))
    program = f"""
import asyncio, sys
from judge.config import JudgeSpec
from judge.llm.cache import ReplyCache
from judge.llm.client import Client
from tests.llm.conftest import request
spec = JudgeSpec(name="test", model="openai/gpt-4o-mini", api_base={asker.provider.base_url!r})
async def main():
    async with Client(spec, cache=ReplyCache({str(tmp_path)!r})) as client:
        return await client.ask(request())
print(asyncio.run(main()).cached, "litellm" in sys.modules, "instructor" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True", "False", "False"], done.stderr
