"""Replies kept on disk, so that a judgment is paid for once. JSON text only: nothing is ever pickled or unpickled.

diskcache unpickles whatever a row says is a pickle (CVE-2025-69872), whichever Disk class is used; SafeDisk refuses. A
cache that cannot be used is no cache: one warning, and the call is made.
"""

from __future__ import annotations

import logging
import os
import secrets
import sqlite3
from pathlib import Path
from typing import Any

import diskcache
import orjson

LOG = logging.getLogger("judge")
BROKEN = (sqlite3.Error, OSError, diskcache.Timeout, ValueError, TypeError)
LOCK_TIMEOUT_S = 5
MARKER_FILE = "marker.secret"
MARKER_BYTES = 32


class SafeDisk(diskcache.Disk):  # type: ignore[misc]
    """Text keys and JSON values inside the database; no pickle and no side files, whatever a row claims."""

    def put(self, key: Any) -> tuple[str, bool]:
        if type(key) is not str:
            raise TypeError("cache keys are text")
        return key, True

    def get(self, key: Any, raw: Any) -> str:
        if type(key) is not str or not raw:
            raise ValueError("cache row without a text key")
        return key

    def store(self, value: Any, read: bool, key: Any = diskcache.UNKNOWN) -> tuple[int, int, None, str]:
        return 0, diskcache.core.MODE_RAW, None, orjson.dumps(value).decode()

    def fetch(self, mode: int, filename: Any, value: Any, read: bool) -> Any:
        if mode != diskcache.core.MODE_RAW or filename is not None or type(value) is not str:
            raise ValueError("cache row is not JSON text")
        return orjson.loads(value)

    def remove(self, file_path: str) -> None:
        """Nothing: this cache has no side files, so a row that names one names somebody else's."""


def default_directory() -> Path:
    """JUDGE_CACHE, else calibrated-judge under the user's cache directory."""
    if given := os.environ.get("JUDGE_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "calibrated-judge"


class ReplyCache:
    """A directory (0700) with one SQLite file; nothing is evicted; several processes may share it.

    What goes wrong is said once in `warnings` and on the `judge` logger; from then on that half (reading, writing) is
    off, except that a single damaged row is only a miss.
    """

    def __init__(self, directory: Path | str | None = None) -> None:
        self.directory = Path(directory) if directory is not None else default_directory()
        self.warnings: list[str] = []
        self._reads = self._writes = True
        self._store: Any = None
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._store = diskcache.Cache(
                str(self.directory),
                disk=SafeDisk,
                timeout=LOCK_TIMEOUT_S,
                eviction_policy="none",
                size_limit=2**50,
                cull_limit=0,
                sqlite_mmap_size=0,  # the defaults map 64 MB and keep 32 MB of pages, which a long run fills
                sqlite_cache_size=512,
            )
        except BROKEN as error:
            self._off("cannot be opened", error)

    def get(self, key: str) -> Any:
        """The value stored under `key`, or None: absent, damaged or unreadable."""
        if not self._reads:
            return None
        try:
            return self._store.get(key)
        except (ValueError, TypeError) as error:
            self._warn(f"cache {self.directory}: a damaged row was ignored ({error})")
        except BROKEN as error:
            self._reads = False
            self._warn(f"cache {self.directory}: cannot be read ({_words(error)}); going on without it")
        return None

    def set(self, key: str, value: Any) -> None:
        """Keeps a JSON value under `key`; a failure is a warning."""
        if not self._writes:
            return
        try:
            self._store.set(key, value)
        except BROKEN as error:
            self._writes = False
            self._warn(f"cache {self.directory}: cannot be written ({_words(error)}); new replies are not kept")

    def secret(self) -> bytes:
        """32 random bytes of this cache directory, in a 0600 file that the first caller creates."""
        path = self.directory / MARKER_FILE
        fresh = secrets.token_bytes(MARKER_BYTES)
        mine = path.with_name(f"{MARKER_FILE}.{secrets.token_hex(8)}")
        try:
            if not path.exists():
                with os.fdopen(os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(fresh)
                try:
                    os.link(mine, path)  # atomic, and fails when another process was first
                except FileExistsError:
                    pass
                finally:
                    mine.unlink()
            kept = path.read_bytes()
        except OSError as error:
            self._warn(
                f"cache {self.directory}: no secret kept ({_words(error)}); cached replies will not be found again"
            )
            return fresh
        if len(kept) != MARKER_BYTES:
            self._warn(
                f"cache {self.directory}: {MARKER_FILE} has {len(kept)} bytes instead of {MARKER_BYTES}; ignored"
            )
            return fresh
        return kept

    def describe(self) -> dict[str, Any]:
        """Directory, whether it can be read and written, how many entries, size in bytes (None when unknown)."""
        entries: int | None = None
        size: int | None = None
        try:
            if self._store is not None:
                entries, size = len(self._store), self._store.volume()
        except BROKEN as error:
            self._off("cannot be read", error)
        return {
            "directory": str(self.directory),
            "readable": self._reads,
            "writable": self._writes,
            "entries": entries,
            "bytes": size,
        }

    def close(self) -> None:
        """Closes the database; the cache is not used after that."""
        self._reads = self._writes = False
        if self._store is not None:
            self._store.close()

    def _off(self, what: str, error: Exception) -> None:
        self._reads = self._writes = False
        self._warn(f"cache {self.directory}: {what} ({_words(error)}); going on without it")

    def _warn(self, message: str) -> None:
        if not self.warnings:
            LOG.warning(message)
        self.warnings.append(message) if message not in self.warnings else None


def _words(error: Exception) -> str:
    return str(error) or ("locked by another process" if isinstance(error, diskcache.Timeout) else type(error).__name__)
