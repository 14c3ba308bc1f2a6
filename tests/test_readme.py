"""Every command and Python block of the README runs as printed, against the fake provider where it names a model."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHELL = re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S)
COMMANDS = [
    line for block in SHELL for line in block.splitlines() if line.startswith(("judge ", "python -m calibration"))
]
PYTHON = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
NEEDS_MODEL = re.compile(r"^judge (demo|model pull)|--model local\b|-m local\b")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder that looks like a clone to the commands: only the example files are there."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "judge" / "examples", folder / "judge" / "examples", ignore=shutil.ignore_patterns("*.py*"))
    return folder


@pytest.fixture
def as_printed(provider, clone, monkeypatch):
    monkeypatch.chdir(clone)
    monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url)
    monkeypatch.setenv("OPENAI_API_BASE", provider.base_url)
    monkeypatch.setenv("JUDGE_CACHE", str(clone / "cache"))


def test_the_first_commands_are_the_demo_and_the_tests():
    first = SHELL[0].splitlines()
    assert first[0].endswith("&& .venv/bin/judge demo")
    assert first[1].endswith("&& .venv/bin/python -m pytest")
    assert all(line.startswith("python3 -m venv .venv && .venv/bin/pip install '.[local") for line in first)


def test_every_command_of_the_readme_runs_in_order(as_printed, monkeypatch, capsys):
    from judge.cli import main

    assert COMMANDS
    for line in COMMANDS:
        if NEEDS_MODEL.search(line):
            continue
        program, *arguments = shlex.split(line, comments=True)
        if program == "python":
            command = [sys.executable, *arguments]
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
            assert done.returncode == 0, f"{line}\n{done.stderr}"
            continue
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        _, err = capsys.readouterr()
        assert end.value.code in (0, None), f"{line}\nexit {end.value.code}\n{err}"


def test_every_python_block_of_the_readme_runs(as_printed, capsys):
    assert PYTHON
    for block in PYTHON:
        exec(compile(block, "README.md", "exec"), {})
