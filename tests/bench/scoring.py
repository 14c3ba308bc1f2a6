"""Speed and memory of `judge score`, as ratios in one interleaved run over the fake provider.

    python -m tests.bench.scoring            # everything, about 8 minutes on 2 cores
    python -m tests.bench.scoring --quick    # smaller numbers, about 2 minutes

Reports: client CPU per finished judgment against bare litellm.acompletion with the same payload; CPU of everything
around the call; a finished run read again; memory from 1,000 to 20,000 cases.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MODEL = "openai/gpt-4o-mini"
IN_FLIGHT = 128
LATENCY_MS = 200


def make_cases(n: int) -> list[dict[str, Any]]:
    filler = "The ferry crosses the Orme in forty minutes and carries 120 cars in summer. "
    return [
        {
            "id": f"c{i}",
            "question": f"How long does crossing {i} take?",
            "answer": f"Crossing {i} takes forty minutes [d1]. " + filler * 3,
            "contexts": [{"id": "d1", "text": f"Crossing {i}. " + filler * 18}],
        }
        for i in range(n)
    ]


def make_rubric(folder: Path) -> Path:
    anchors = "\n".join(f"  {level}: Level {level} of five." for level in (5, 4, 3, 2, 1))
    (folder / "plain.md").write_text(
        "---\nid: plain\nversion: 1.0.0\ntitle: Plain\nlanguage: en\nrequires: [question, answer, contexts]\n"
        "mode: ordinal\nscale: {min: 1, max: 5, pass_at: 4, higher_is_better: true}\n"
        f"anchors:\n{anchors}\n---\nRate the answer.\n"
    )
    return folder


def options_of(folder: Path, base: str, **more: Any) -> Any:
    from judge.api import Options

    given = {
        "rubrics": ("plain",),
        "rubrics_dir": (folder,),
        "model": MODEL,
        "api_base": base,
        "concurrency": IN_FLIGHT,
    }
    return Options(**{**given, "cache": folder / "cache", "out": folder / "run", **more})


def score(cases: Any, options: Any) -> float:
    """CPU seconds of one `judge score` in this process."""
    from judge.api import score_options
    from judge.background import Stop, run

    started = time.process_time()
    stop = Stop()
    run(score_options(cases, options, stop=stop), stop)
    return time.process_time() - started


def bare_litellm(cases: list[dict[str, Any]], folder: Path, base: str) -> float:
    """CPU seconds of litellm.acompletion alone with the payloads that `judge score` sends."""
    import rubrics
    from judge.background import Stop, run
    from judge.cases import Case
    from judge.llm.library import litellm
    from judge.llm.structured import sent_schema

    rubric = rubrics.load("plain", (folder,))
    prompts = [rubrics.render(rubric, Case.from_row(case), secret=b"x" * 32) for case in cases]
    schema = {
        "type": "json_schema",
        "json_schema": {"name": "Reply", "schema": sent_schema(prompts[0].output), "strict": True},
    }
    library = litellm()

    async def worker(queue: Any) -> None:
        for prompt in queue:
            await library.acompletion(
                model=MODEL, api_base=base, messages=list(prompt.messages), response_format=schema, temperature=0,
                max_tokens=prompt.max_tokens, num_retries=0, max_retries=0,
            )  # fmt: skip

    async def every() -> None:
        queue = iter(prompts)
        await asyncio.gather(*(worker(queue) for _ in range(IN_FLIGHT)))

    started = time.process_time()
    run(every(), Stop())
    return time.process_time() - started


def around_the_call(cases: list[dict[str, Any]], folder: Path, rubric_id: str) -> float:
    """CPU milliseconds per judgment of render, key, cache miss, cache write, settle and append; no call is made."""
    import rubrics
    from judge.archive import Run
    from judge.cases import Case
    from judge.config import find_judge
    from judge.llm.cache import ReplyCache
    from judge.llm.client import Client, _to_keep
    from judge.llm.request import Reply
    from judge.pointwise import Task, plan, settle

    rubric = rubrics.load(rubric_id, (folder,))
    parsed = SAMPLE[rubric.mode]
    with tempfile.TemporaryDirectory() as scratch, Run(Path(scratch) / "run") as archive:
        cache = ReplyCache(Path(scratch) / "cache")
        client = Client(find_judge(MODEL), cache=cache)
        made = [Case.from_row(case) for case in cases]
        plan(Task(made[0], rubric), client, mode="full", secret=b"x" * 32)
        started = time.process_time()
        for case in made:
            planned = plan(Task(case, rubric), client, mode="full", secret=b"x" * 32)
            archive.finished({"case_id": case.id, "rubric": rubric.id, "repeat": 0})
            archive.reply(planned.key)
            cache.get(planned.key)
            reply = Reply(key=planned.key, text=json.dumps(parsed), parsed=parsed, cost_usd=0.0)
            cache.set(planned.key, _to_keep(reply))
            archive.append_reply(planned.requests[0], reply)
            archive.append(settle(planned, [reply], judge=MODEL, mode="full").to_row())
        return 1000 * (time.process_time() - started) / len(made)


CLAIM = {
    "span": "takes forty minutes", "claim": "The crossing takes forty minutes", "role": "core",
    "evidence": [{"context_id": "d1", "quote": "crosses the Orme in forty minutes"}], "reason": "d1 says so.",
    "verdict": "supported", "error": None,
}  # fmt: skip
SAMPLE: dict[str, dict[str, Any]] = {
    "ordinal": {"injection_attempts": [], "rationale": "Good.", "cannot_judge": None, "level": 4},
    "claims": {
        "injection_attempts": [], "only_declines": False, "claims": [CLAIM] * 3, "rationale": "Good.",
        "cannot_judge": None, "holistic_score": 5,
    },
}  # fmt: skip


def memory(n: int, base: str) -> float:
    """Peak resident megabytes of a process that scores n cases (run in a process of its own)."""
    command = [sys.executable, "-m", "tests.bench.scoring", "--memory", str(n), "--base", base]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--memory", type=int)
    parser.add_argument("--base")
    given = parser.parse_args()
    os.environ.setdefault("OPENAI_API_KEY", "x")
    if given.memory:
        with tempfile.TemporaryDirectory() as scratch:
            folder = make_rubric(Path(scratch))
            file = folder / "cases.jsonl"
            file.write_text("".join(json.dumps(case) + "\n" for case in make_cases(given.memory)))
            score(file, options_of(folder, given.base, cache=False))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "fake_provider.py"), "--port", "0", "--latency-ms", str(LATENCY_MS)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    base = server.stdout.readline().split()[-1]
    try:
        report(base, quick=given.quick)
    finally:
        server.terminate()


def report(base: str, *, quick: bool) -> None:
    n, rounds = (400, 2) if quick else (1500, 3)
    cases = make_cases(n)
    with tempfile.TemporaryDirectory() as warm:
        folder = make_rubric(Path(warm))
        score(cases[:IN_FLIGHT], options_of(folder, base))
        bare_litellm(cases[:IN_FLIGHT], folder, base)
    ours, bare = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as scratch:
            folder = make_rubric(Path(scratch))
            bare.append(1000 * bare_litellm(cases, folder, base) / n)
            ours.append(1000 * score(cases, options_of(folder, base)) / n)
    ratios = [a / b for a, b in zip(ours, bare, strict=True)]
    print(f"client CPU per judgment, {LATENCY_MS} ms, {IN_FLIGHT} in flight, n={n}, {rounds} interleaved rounds:")
    print(f"  bare litellm {statistics.median(bare):.2f} ms, judge score {statistics.median(ours):.2f} ms")
    print(f"  ratio {statistics.median(ratios):.2f} (rounds: {', '.join(f'{r:.2f}' for r in ratios)}); bound 1.6")
    with tempfile.TemporaryDirectory() as scratch:
        folder = make_rubric(Path(scratch))
        for rubric in ("plain", "faithfulness"):
            spent = statistics.median(around_the_call(cases[:400], folder, rubric) for _ in range(3))
            print(
                f"around the call, {rubric}: {spent:.3f} ms CPU a judgment"
                + ("; bound 0.3" if rubric == "plain" else "")
            )
        many = make_cases(2000 if quick else 10_000)
        score(many, options_of(folder, base))
        for name, options in (("same run", {}), ("new run from cache", {"out": folder / "second"})):
            started = time.perf_counter()
            score(many, options_of(folder, base, **options))
            rate = len(many) / (time.perf_counter() - started)
            print(f"{len(many)} finished judgments again, {name}: {rate:.0f} a second; bound 2000")
    few, lots = (200, 2000) if quick else (1000, 20_000)
    small, large = memory(few, base), memory(lots, base)
    print(f"peak memory: {small:.0f} MB at {few} cases, {large:.0f} MB at {lots}: +{large - small:.0f} MB; bound 60")


if __name__ == "__main__":
    main()
