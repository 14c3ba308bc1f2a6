"""A run directory open for writing: lines and replies appended as they come, and the same command resumes from them."""

from __future__ import annotations

import errno
import fcntl
import filecmp
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import orjson

from judge.cases import load_normalised
from judge.errors import InputError, UsageError
from judge.lines import FINISHED, JUDGMENTS, identity_of, read_lines, work_key, write_json
from judge.llm.request import Reply, Request
from judge.runs import FIXED, manifest


class Run:
    """An open run directory with one writer. Use as a context manager; a second writer is refused."""

    def __init__(self, path: Path, lines: str = JUDGMENTS) -> None:
        self.path = path
        self.lines = path / lines
        self.manifest: dict[str, Any] = {}
        self._done: dict[bytes, tuple[bytes, str, int]] = {}
        self._replies: dict[bytes, int] = {}
        self._files: dict[Path, IO[bytes]] = {}
        self._lock: IO[str] | None = None

    def __enter__(self) -> Run:
        try:
            self._open()
        except BaseException as error:
            self._close()
            raise self._in_words(error) from error
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        late = self._close()
        if error is None and late is not None:
            raise self._in_words(late) from late
        if isinstance(error, OSError):
            raise self._in_words(error) from error

    def _open(self) -> None:
        self._refuse_own_files()
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = (self.path / ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{self.path} is being written by another process: wait for it, or use another --out"
            ) from None
        if (self.path / "run.json").exists():
            self.manifest = manifest(self.path)
        if self.lines.name == JUDGMENTS and (self.path / "comparisons.jsonl").exists():
            raise UsageError(f"{self.path} is a run of `judge compare`: give another --out for scores")
        for path in (self.lines, self.path / "replies.jsonl"):
            _mend(path)
            self._files[path] = path.open("ab", buffering=0)
        for offset, row in read_lines(self.lines):
            self._note(row, offset)
        for offset, row in read_lines(self.path / "replies.jsonl"):
            if row["error_kind"] is None:
                self._replies[bytes.fromhex(row["key"])] = offset

    def _refuse_own_files(self) -> None:
        """A folder that is no run is not made one over files that a run would write there."""
        if (self.path / "run.json").exists():
            return
        written = [self.path / name for name in ("cases.jsonl", "summary.json", "summary.md")]
        found = [path for path in written if path.exists()]
        found += [path for path in (self.lines, self.path / "replies.jsonl") if path.exists() and path.stat().st_size]
        if found:
            raise UsageError(
                f"{found[0]} exists in a folder that is no run directory (it has no run.json) and would be written "
                "over. Give another --out"
            )

    def _close(self) -> OSError | None:
        """Closes all files; what went wrong on the way is returned, not raised, so that the rest is closed too."""
        failed = None
        for file in self._files.values():
            try:
                os.fsync(file.fileno())
                file.close()
            except OSError as error:
                failed = error
        if self._lock is not None:
            self._lock.close()
        return failed

    def _in_words(self, error: BaseException) -> BaseException:
        if not isinstance(error, OSError):
            return error
        where = error.filename or self.path
        return UsageError(
            f"{where}: {error.strerror or error}. What was written there stays; once this is mended, the same "
            "command goes on from it"
        )

    def begin(self, judge: Mapping[str, Any], **settings: Any) -> None:
        """Takes the settings of this invocation into run.json; a different judge, mode or parameter is refused."""
        before = self.manifest.get("judge")
        if before is not None:
            differing = [name for name in FIXED if before.get(name) != judge.get(name)]
            if differing:
                fields = "; ".join(
                    f"{name}: {before.get(name)!r} in the run, now {judge.get(name)!r}" for name in differing
                )
                raise UsageError(
                    f"{self.path} was made by another judge ({fields}). Use another --out for these settings"
                )
            judge = {**before, **judge, "model_returned": before.get("model_returned", [])}
        self.manifest |= {"judge": dict(judge), **settings}
        self.manifest.setdefault("invocations", [])
        self.save()

    def refuse_other_cases(self, fresh: Path) -> None:
        """Raises UsageError when not one question of the run is asked in the new copy: that is another case file.

        Nothing is refused before the run has a finished line.
        """
        before = self.path / "cases.jsonl"
        if not self._done or not before.exists():
            return
        try:
            here = {hash(case.question) for case in load_normalised(before)}
        except InputError:  # a damaged copy is replaced by the new one
            return
        there = {hash(case.question) for case in load_normalised(fresh)}
        if here.isdisjoint(there):
            raise UsageError(
                f"{self.path} is about other cases: none of the {len(here)} questions in it is among the "
                f"{len(there)} of this file. Give --out: another directory, or this one to add the cases to it"
            )

    def renew(self, fresh: Path, rubric_hashes: Mapping[str, str]) -> int:
        """Puts the new copy of the cases in place and takes out the lines that are about something else than it.

        Those are of a case whose content has changed, or by another version of one of `rubric_hashes`. Their replies
        stay archived. Cases that are gone from the file keep their lines. Returns the number of lines taken out.
        """
        changed = _changed(self.path / "cases.jsonl", fresh)
        kept = self.lines.with_suffix(".part")
        now = dict(rubric_hashes)
        taken = 0
        with kept.open("wb") as target:
            for _, row in read_lines(self.lines):
                if row["case_id"] in changed or now.get(row["rubric"], row["rubric_hash"]) != row["rubric_hash"]:
                    taken += 1
                else:
                    target.write(orjson.dumps(row) + b"\n")
        if taken:
            self._replace_lines(kept)
            self._done = {}
            for offset, row in read_lines(self.lines):
                self._note(row, offset)
        else:
            kept.unlink()
        fresh.replace(self.path / "cases.jsonl")
        return taken

    def save(self) -> None:
        write_json(self.path / "run.json", self.manifest)

    def finished(self, identity: Mapping[str, Any]) -> tuple[bytes, str] | None:
        """(key, rubric_hash) of the finished line for this (case_id, rubric, repeat; a, b), else None."""
        entry = self._done.get(identity_of(identity))
        return entry[:2] if entry is not None else None

    def reply(self, key: str) -> Reply | None:
        """An archived good reply, as cached: it costs nothing and makes no call."""
        offset = self._replies.get(bytes.fromhex(key))
        if offset is None:
            return None
        with (self.path / "replies.jsonl").open("rb") as file:
            file.seek(offset)
            return reply_from_row(orjson.loads(file.readline()))

    def append_reply(self, request: Request, reply: Reply) -> None:
        path = self.path / "replies.jsonl"
        offset = self._append(path, reply_to_row(request, reply))
        if reply.error_kind is None:
            self._replies[bytes.fromhex(reply.key)] = offset

    def append(self, row: Mapping[str, Any]) -> None:
        self._note(row, self._append(self.lines, row))

    def compact(self, order: Iterable[Mapping[str, Any]]) -> int:
        """Rewrites the lines to one per identity, in the given order; returns how many lines are of cases now gone."""
        offsets = {identity_of(row): offset for offset, row in read_lines(self.lines)}
        wanted = [name for name in map(identity_of, order) if name in offsets]
        known = set(wanted)
        gone = [name for name in offsets if name not in known]
        temporary = self.lines.with_suffix(".part")
        with self.lines.open("rb") as source, temporary.open("wb") as target:
            for name in (*wanted, *gone):
                source.seek(offsets[name])
                target.write(source.readline())
            target.flush()
            os.fsync(target.fileno())
        self._replace_lines(temporary)
        return len(gone)

    def _replace_lines(self, other: Path) -> None:
        self._files.pop(self.lines).close()
        other.replace(self.lines)
        self._files[self.lines] = self.lines.open("ab", buffering=0)

    def _append(self, path: Path, row: Mapping[str, Any]) -> int:
        file = self._files[path]
        offset = file.seek(0, os.SEEK_END)
        line = orjson.dumps(row) + b"\n"
        written = file.write(line)
        if written != len(line):  # a disk that is full takes a part; without it the next line starts clean
            file.truncate(offset)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return offset

    def _note(self, row: Mapping[str, Any], offset: int) -> None:
        name = identity_of(row)
        if all(part["status"] in FINISHED for part in row.get("calls", (row,))):
            self._done[name] = (bytes.fromhex(work_key(row)), row["rubric_hash"], offset)
        else:
            self._done.pop(name, None)


def _changed(before: Path, now: Path) -> frozenset[str]:
    """Ids of the cases that stand in both copies with differing content; of all cases when `before` is damaged."""
    if not before.exists() or filecmp.cmp(before, now, shallow=False):
        return frozenset()
    try:
        known = _contents(before)
    except InputError:
        return frozenset(_contents(now))
    return frozenset(name for name, content in _contents(now).items() if known.get(name, content) != content)


def _contents(cases: Path) -> dict[str, int]:
    """A hash of the content of each case by id, over all its systems."""
    found: dict[str, int] = {}
    for case in load_normalised(cases):
        found[case.id] = found.get(case.id, 0) ^ hash((case.system, case.content_hash()))
    return found


def reply_to_row(request: Request, reply: Reply) -> dict[str, Any]:
    """One line of replies.jsonl."""
    return {
        "key": reply.key,
        "messages": list(request.messages),
        "text": reply.text,
        "parsed": reply.parsed,
        "finish_reason": reply.finish_reason,
        "model_returned": reply.model_returned,
        "usage": reply.usage,
        "cost_usd": reply.cost_usd,
        "cached": reply.cached,
        "http_calls": reply.http_calls,
        "latency_s": reply.latency_s,
        "token_logprobs": reply.token_logprobs,
        "error_kind": reply.error_kind,
        "error": reply.error,
    }


def reply_from_row(row: Mapping[str, Any]) -> Reply:
    """A reply read back: marked cached, at no cost and without HTTP calls."""
    kept = ("key", "text", "parsed", "finish_reason", "model_returned", "usage", "token_logprobs")
    return Reply(
        **{name: row[name] for name in kept},
        cost_usd=0.0,
        cached=True,
        http_calls=[],
        latency_s=0.0,
        error_kind=None,
        error=None,
    )


def _mend(path: Path) -> None:
    """Cuts a torn last line (a process died while writing it)."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        start = end
        tail = b""
        while start > 0 and b"\n" not in tail:
            start = max(0, start - 65536)
            file.seek(start)
            tail = file.read(end - start)
        file.truncate(start + tail.rfind(b"\n") + 1)
