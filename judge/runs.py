"""Run directories: the archive of a batch, safe to kill, resume, tail and read without any cache or model.

run.json            who judged what with which settings; invocations and totals
cases.jsonl         normalised copy of the cases
judgments.jsonl     one line per (case, rubric, repeat); append-only while running, later line wins
replies.jsonl       every reply with its messages, raw text, usage and HTTP calls; never rewritten
"""

from __future__ import annotations

import errno
import fcntl
import filecmp
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import orjson
from pydantic import ValidationError

from judge.cases import Case, load_normalised
from judge.errors import InputError, UsageError
from judge.imports import shown
from judge.llm.request import Reply, Request, legible
from rubrics.model import Rubric

FINISHED = frozenset({"scored", "undefined", "not_applicable", "cannot_judge"})
MANIFEST = frozenset({"judge", "rubrics"})
JUDGMENTS = "judgments.jsonl"
STATUSES = FINISHED | {"error"}
_MARKS = frozenset({"case_id", "key", "question"})  # of a comparison, a reply, a case
_NUMBER, _MAYBE = (float, int, type(None)), (str, type(None))
_LINE: Mapping[str, tuple[type, ...]] = {
    "case_id": (str,), "rubric": (str,), "rubric_hash": (str,), "prompt_hash": _MAYBE, "judge": (str,), "mode": (str,),
    "repeat": (int,), "status": (str,), "score": _NUMBER, "normalized": _NUMBER, "passed": (bool, type(None)),
    "errors": (list,), "flags": (list,), "details": (dict,), "quotes": (dict,), "rationale": _MAYBE, "reason": _MAYBE,
    "error_kind": _MAYBE, "key": (str,),
}  # fmt: skip
_RESTORE = "Restore it from a copy, or judge into another --out: the cache makes that free where it is kept"
FIXED = ("model", "endpoint", "params", "mode", "layout", "output")


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every complete JSON line of a file with its byte offset; nothing when the file does not exist.

    Raises InputError at a damaged line: passing over it would silently change every number made from the file.
    """
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n") and line.strip():
                yield offset, _object(path, number, line)
            offset += len(line)


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = orjson.loads(line)
    except orjson.JSONDecodeError:
        found = {}
    wrong = _wrong(found, path.name)
    if wrong is None:
        return found
    raise InputError(
        f"{path}:{number}: damaged line {shown(line[:60])} ({wrong}). Delete that line and run the command that made "
        "the run again: what is missing is judged again, and paid for again only where its reply is lost too"
    )


def _wrong(row: Any, file: str) -> str | None:
    """What a line lacks that its readers rely on: in a judgment each field of its kind, numbers where it is scored."""
    if not isinstance(row, dict) or not row.keys() & _MARKS:
        return "no line of a run"
    if file != JUDGMENTS:
        return None
    for name, kinds in _LINE.items():
        if type(row.get(name)) not in kinds:
            return f"{name}: {shown(row.get(name))}"
    if row["status"] not in STATUSES:
        return f"status: {shown(row['status'])}"
    without = [name for name in ("score", "normalized", "passed") if row[name] is None]
    return f"scored without {without[0]}" if row["status"] == "scored" and without else None


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file in one step: readers see the old one or the new one, never half."""
    temporary = path.with_suffix(path.suffix + ".part")
    try:
        content = orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except TypeError:  # a lone surrogate, as in the name of a folder that is not UTF-8
        content = legible(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)).encode()
    temporary.write_bytes(content + b"\n")
    temporary.replace(path)


def manifest(run: Path) -> dict[str, Any]:
    """The content of run.json; UsageError when the directory is no run."""
    path = run / "run.json"
    if not path.exists():
        raise UsageError(f"{run} is not a run directory: it has no run.json. Give the --out of a `judge score` command")
    try:
        loaded = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: damaged ({error.msg}). {_RESTORE}") from None
    if not isinstance(loaded, dict) or any(not isinstance(loaded.get(name), dict) for name in MANIFEST):
        raise InputError(f"{path}: damaged (it needs {', '.join(sorted(MANIFEST))}). {_RESTORE}")
    return loaded


def rubrics_of(run: Path) -> dict[str, Rubric]:
    """The rubrics of a run as they were when they judged."""
    found = {}
    for name, dump in manifest(run)["rubrics"].items():
        try:
            found[name] = Rubric.model_validate(dump)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(
                f"{run / 'run.json'}: rubric {name!r} cannot be read ({'.'.join(map(str, first['loc']))}: "
                f"{first['msg']}); a newer version may have made the run: read it with that one. Else: {_RESTORE}"
            ) from None
    return found


def rows(run: Path, lines: str = JUDGMENTS) -> Iterator[dict[str, Any]]:
    """The lines that stand: for each (case, rubric, repeat) the last one, in file order.

    Raises InputError for a judgment by a rubric, judge or mode that is not of this run.
    """
    path, made = run / lines, manifest(run)
    last = {_identity(row): offset for offset, row in read_lines(path)}
    for number, (offset, row) in enumerate(read_lines(path), 1):
        if lines == JUDGMENTS:
            _refuse_foreign(row, made, f"{path}:{number}")
        if last[_identity(row)] == offset:
            yield row


def _refuse_foreign(row: Mapping[str, Any], made: Mapping[str, Any], place: str) -> None:
    judge = made["judge"]
    if row["rubric"] in made["rubrics"] and (row["judge"], row["mode"]) == (judge.get("model"), judge.get("mode")):
        return
    raise InputError(
        f"{place}: a line of another run: {row['case_id']} on {row['rubric']} by {row['judge']} ({row['mode']}), "
        f"this run has {', '.join(made['rubrics'])} by {judge.get('model')} ({judge.get('mode')}). Delete that line"
    )


def to_frame(run: Path, lines: str = JUDGMENTS) -> Any:
    """The lines that stand as a pandas DataFrame, one row each; nested values stay objects."""
    import pandas as pd

    return pd.DataFrame(list(rows(run, lines)))


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
                f"{len(there)} of this file. Give another --out (or delete {self.path} if it is not needed)"
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
        entry = self._done.get(_identity(identity))
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
        offsets = {_identity(row): offset for offset, row in read_lines(self.lines)}
        wanted = [name for name in map(_identity, order) if name in offsets]
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
        name = _identity(row)
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


def questions_of(run: Path) -> dict[str, str]:
    """Case id -> question, in file order."""
    with (run / "cases.jsonl").open("rb") as file:
        return {row["id"]: row["question"] for row in map(orjson.loads, file)}


def cases_of(run: Path) -> Iterator[Case]:
    """The cases of a run, streamed."""
    return load_normalised(run / "cases.jsonl")


def work_key(row: Mapping[str, Any]) -> str:
    """The key of the work behind a line: its own, or for a comparison that of its calls in order."""
    if "calls" not in row:
        return str(row["key"])
    twins = row.get("pointwise") or {}
    keys = [*(call["key"] for call in row["calls"]), *(twins.get("keys") or ())]
    return hashlib.sha256("\n".join(keys).encode()).hexdigest()


def _identity(row: Mapping[str, Any]) -> bytes:
    systems = f"\x1f{row['a']}\x1f{row['b']}" if "a" in row else ""
    name = f"{row['case_id']}\x1f{row['rubric']}\x1f{row['repeat']}{systems}"
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


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
