"""Three hundred requests to a provider that fails in every way: each one is accounted for."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.llm.conftest import Asker, request


@pytest.mark.slow
def test_each_of_300_requests_to_a_bad_provider_is_accounted_for(asker: Asker) -> None:
    asker.provider.config(
        p429=0.05, retry_after=0.5, p500=0.02, p_reset=0.01, p_malformed=0.02, p_truncated=0.01, p_refusal=0.01,
        p_hang=0.01, latency_ms=5, seed=3,
    )  # fmt: skip
    replies = asker.ask(
        *(request(f"case {number} [[q=0.7]]") for number in range(300)), timeout=2, limits={"concurrency": 12}
    )
    stats = asker.provider.stats()
    rows = [row for reply in replies for row in reply.http_calls]
    outcomes = Counter(row["outcome"] for row in rows)
    kinds = Counter(reply.error_kind for reply in replies)

    assert len(replies) == 300
    assert len(rows) == stats["requests"]
    assert Counter(row["status"] for row in rows if row["status"]) == {
        int(name.removeprefix("status_")): count
        for name, count in stats.items()
        if name.startswith("status_") and (name != "status_200")
    } | {200: stats["requests"] - sum(row["status"] != 200 for row in rows)}
    assert outcomes["timeout"] == stats["hangs"] > 0
    assert outcomes["truncated"] == stats["fault_truncated"] > 0
    assert outcomes["unparsable"] == stats["fault_malformed"] > 0
    assert kinds["refused"] == stats["fault_refusal"] > 0
    assert set(kinds) == {None, "refused"}
    assert sum(row["kind"] == "first" for row in rows) == 300
    assert sum(row["kind"] == "reask" for row in rows) == stats["fault_malformed"]
    assert sum(reply.usage["output_tokens"] for reply in replies) == stats["completion_tokens"]
    assert sum(reply.usage["input_tokens"] for reply in replies) == stats["prompt_tokens"]
    assert all((reply.parsed is None) == (reply.error_kind is not None) for reply in replies)
