"""Memory of a long run against the fake provider: resident size after 1,000 asks and after N (default 20,000).

    python -m tests.bench.memory [--asks 20000] [--faults] [--bare] [--cached]

Prints one line per thousand asks and the growth per ask between the first thousand and the end. `--bare` calls litellm
alone, for comparison.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from judge.config import JudgeSpec
from judge.llm.cache import ReplyCache
from judge.llm.client import Client
from judge.llm.library import litellm
from judge.llm.request import Request
from judge.llm.structured import sent_schema
from tests.llm.conftest import Verdict

IN_FLIGHT = 32
FAULTS = ["--p429", "0.01", "--retry-after", "0.01", "--p500", "0.01", "--p-malformed", "0.02", "--p-refusal", "0.01"]


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def case(number: int) -> Request:
    text = f"case {number} [[q=0.8]] " + "a passage of some length " * 60
    messages = ({"role": "system", "content": "You are a judge. " * 20}, {"role": "user", "content": text})
    return Request(messages=messages, output=Verdict, max_tokens=400)


async def thousands(ask: Callable[[int], Awaitable[object]], asks: int) -> None:
    numbers, started, first = iter(range(asks)), time.monotonic(), 0.0
    done = 0

    async def worker() -> None:
        nonlocal done, first
        for number in numbers:
            await ask(number)
            done += 1
            if done % 1000 == 0:
                first = first or resident_mb()
                print(
                    f"{done:6} asks  {resident_mb():7.1f} MB  {done / (time.monotonic() - started):6.1f}/s", flush=True
                )

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    grown = (resident_mb() - first) * 1e3 / max(1, asks - 1000)
    print(f"{grown:.2f} kB per ask between 1,000 and {asks:,}")


async def measure(base_url: str, options: argparse.Namespace, folder: str) -> None:
    spec = JudgeSpec(name="bench", model="openai/gpt-4o-mini", api_base=base_url, limits={"concurrency": IN_FLIGHT})
    cache = ReplyCache(folder) if options.cached else None

    async def bare(number: int) -> object:
        schema = {"name": "Verdict", "schema": sent_schema(Verdict), "strict": True}
        return await litellm().acompletion(
            model=spec.model,
            api_base=base_url,
            messages=list(case(number).messages),
            max_tokens=400,
            temperature=0,
            num_retries=0,
            max_retries=0,
            response_format={"type": "json_schema", "json_schema": schema},
        )

    async with Client(spec, cache=cache) as client:
        await thousands(bare if options.bare else lambda number: client.ask(case(number)), options.asks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asks", type=int, default=20_000)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--cached", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("OPENAI_API_KEY", "bench")
    script = Path(__file__).parents[1] / "fake_provider.py"
    command = [sys.executable, str(script), "--port", "0", "--latency-ms", "1", *(FAULTS if options.faults else [])]
    provider = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert provider.stdout is not None
    try:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(provider.stdout.readline().split()[-1], options, folder))
    finally:
        provider.terminate()


if __name__ == "__main__":
    main()
