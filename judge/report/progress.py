"""Progress of long work: a bar on a terminal, a plain line now and then elsewhere. Always on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from judge.report.page import visible

PLAIN_EVERY_S = 10.0
TELLING = 5  # judgments before the time left is guessed


class Progress:
    """Shows how many judgments are done, how fast, what they cost, and when they will end."""

    def __init__(self, quiet: bool = False) -> None:
        self.total = self.done = self.kept = self.errors = 0
        self.cost = 0.0
        self.quiet = quiet
        self.started = self.said = time.monotonic()
        self.bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def say(self, lines: Sequence[str]) -> None:
        for line in map(visible, lines):
            if self.bar is not None:
                self.bar.console.print(line, markup=False, highlight=False)
            else:
                print(line, file=sys.stderr)

    def start(self, total: int) -> None:
        self.total, self.done, self.kept, self.errors = total, 0, 0, 0
        self.started = self.said = time.monotonic()
        if self.bar is not None:
            self.bar.stop()
        if self.quiet or not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self.bar = Bar(
            TextColumn("judging"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self.bar.start()
        self.bar.add_task("judging", total=total, note="")

    def judged(self, row: dict[str, Any], *, kept: bool) -> None:
        self.done += 1
        self.kept += kept
        if not kept:
            self.errors += row["status"] == "error"
            self.cost += row["cost_usd"] or 0.0
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=self.done, note=self._note())
            return
        now = time.monotonic()
        if not self.quiet and (now - self.said >= PLAIN_EVERY_S or self.done == self.total):
            self.said = now
            print(f"judged {self.done} of {self.total}  {self._note()}{self._left()}", file=sys.stderr, flush=True)

    def _note(self) -> str:
        rate = (self.done - self.kept) / max(time.monotonic() - self.started, 1e-9)
        parts = [f"{rate:.1f}/s" if self.done > self.kept else "finished before"]
        if self.cost:
            parts.append(f"${self.cost:.4f}")
        if self.errors:
            parts.append(f"{self.errors} errors")
        return "  ".join(parts)

    def _left(self) -> str:
        made = self.done - self.kept
        if made < TELLING or self.done == self.total:
            return ""
        return f"  about {(self.total - self.done) * (time.monotonic() - self.started) / made:.0f} s left"
