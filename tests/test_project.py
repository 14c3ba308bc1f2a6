"""Promises of the project as a whole: quiet imports, layers, lock file, README."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"litellm", "instructor", "pandas", "scipy", "matplotlib", "openai"}


def loaded_by(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has after running `code`."""
    script = (
        f"{code}\nimport sys\nprint('\\n'.join({{name.partition('.')[0] for name in sys.modules}}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "code",
    [
        "import judge, rubrics, calibration",
        "import sys; sys.argv = ['judge', 'score', '--help']\nfrom judge.cli import main\ntry: main()\nexcept SystemExit: pass",
        "import judge\njudge.retrieval.evaluate({'q': ['a']}, {'q': ['a']})",
    ],
)
def test_imports_and_help_load_nothing_heavy(code):
    assert not loaded_by(code) & HEAVY


def test_calibration_imports_neither_the_judge_nor_the_rubrics():
    assert not loaded_by("import calibration, calibration.agreement, calibration.correction") & {"judge", "rubrics"}


def test_the_language_model_libraries_are_imported_only_in_judge_llm():
    pattern = re.compile(r"^\s*(?:from|import) (?:litellm|instructor)\b", re.M)
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("judge", "rubrics", "calibration")
        for path in (ROOT / folder).rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    }
    assert found
    assert all(name.startswith("judge/llm/") for name in found)


def test_every_requirement_is_locked_with_hashes_and_no_index_address():
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    assert "--index" not in text
    assert "--extra-index" not in text
    entries = re.findall(
        r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)((?:.*\\\n)?(?:\s+--hash=sha256:[0-9a-f]{64}.*\n?)+)", text, re.M
    )
    locked = {canonicalize_name(name): version for name, version, _ in entries}
    assert len(locked) == len(re.findall(r"^[A-Za-z0-9._-]+(?:\[[^\]]*\])?==", text, re.M)), "a line without a hash"
    for requirement in map(Requirement, wanted):
        version = locked.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement} is not locked"
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement} is locked at {version}"
