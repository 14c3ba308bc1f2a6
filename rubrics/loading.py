"""Find, read and merge rubric files: the only place in this package that touches the disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from re import fullmatch
from typing import Any

from rubrics.checking import problems
from rubrics.frontmatter import Document, Problem, did_you_mean, has_front_matter, split
from rubrics.model import Rubric, RubricError
from rubrics.prompting import digest
from rubrics.rules import ID

BUNDLED = Path(__file__).parent
MAX_BYTES = 200_000


def load(id: str, dirs: Sequence[str | Path] = ()) -> Rubric:
    """The rubric of this id: from `dirs` (the later one wins), else the bundled one.

    Errors: RubricError for an unknown id (the known ones are listed) or a file with mistakes (all listed with lines).
    """
    files = rubric_files(dirs)
    if id not in files:
        raise RubricError([f'unknown rubric "{id}"; known: {", ".join(files)}{did_you_mean(id, files)}'])
    rubric, found = read(files[id], files)
    if rubric is None:
        raise RubricError(_lines(files[id], found))
    return rubric


def list_rubrics(dirs: Sequence[str | Path] = ()) -> list[Rubric]:
    """All rubrics, bundled and of `dirs`, by id. RubricError lists the mistakes of all files that have some."""
    files = rubric_files(dirs)
    rubrics, broken = [], []
    for path in files.values():
        rubric, found = read(path, files)
        if rubric is None:
            broken += _lines(path, found)
        else:
            rubrics.append(rubric)
    if broken:
        raise RubricError(broken)
    return rubrics


def overrides(dirs: Sequence[str | Path] = ()) -> list[str]:
    """One sentence for each rubric of `dirs` that takes the place of another with the same id."""
    notes = []
    files = rubric_files()
    for folder in dirs:
        for id, path in _folder(Path(folder)).items():
            if id in files:
                other = "the bundled rubric" if files[id].parent == BUNDLED else str(files[id])
                notes.append(f"{id}: {path} is used instead of {other}")
            files[id] = path
    return notes


def check(path: str | Path, dirs: Sequence[str | Path] = ()) -> list[Problem]:
    """Every mistake in a rubric file, with its line; empty when it is fine.

    `extends` is looked up among the bundled rubrics, `dirs` and the file's own folder.
    """
    path = Path(path)
    if not path.is_file():
        return [Problem(1, f"{path} is not a file")]
    return read(path, {**rubric_files((path.parent, *dirs)), path.stem: path})[1]


def rubric_files(dirs: Sequence[str | Path] = ()) -> dict[str, Path]:
    """Rubric files by id (the stem), bundled and of `dirs`, sorted. Files without front matter are left out."""
    files = _folder(BUNDLED)
    for folder in dirs:
        if not Path(folder).is_dir():
            raise RubricError([f"{folder} is not a folder: --rubrics-dir names a folder with rubric files"])
        files |= _folder(Path(folder))
    return dict(sorted(files.items()))


def read(path: Path, files: Mapping[str, Path], above: tuple[str, ...] = ()) -> tuple[Rubric | None, list[Problem]]:
    """One rubric file, merged with what it extends; `above` are the ids that extend it, to refuse circles."""
    document = _document(path)
    if not document.settings:
        return None, document.problems or [Problem(2, "the front matter is empty")]
    settings, body, root = dict(document.settings), document.body, path.stem
    stem_ok = settings.get("id") == path.stem
    if not stem_ok and isinstance(settings.get("id"), str):
        what = f'id is "{settings["id"]}" but the file is called {path.name}: the two must agree'
        document.problems.append(Problem(document.line(("id",)), what))
    if not fullmatch(ID, path.stem):
        document.problems.append(Problem(1, f'the file name "{path.name}" cannot be an id (a-z, 0-9 and _ before .md)'))
    if "extends" in settings:
        parent, what = _parent(settings["extends"], path, files, above)
        if parent is None:
            document.problems.append(Problem(document.line(("extends",)), what))
            return None, document.problems
        root = parent.root
        settings = _settings_of(parent, document) | settings
        body = body if body.strip() else parent.body
    return problems(document, settings, body, root, digest({"settings": settings, "body": body}))


def _parent(id: Any, path: Path, files: Mapping[str, Path], above: tuple[str, ...]) -> tuple[Rubric | None, str]:
    if not isinstance(id, str) or id not in files:
        return None, f'extends "{id}", which is not known; known: {", ".join(files)}{did_you_mean(str(id), files)}'
    circle = (*above, path.stem)
    if id in circle:
        return None, f"extends runs in a circle: {' -> '.join((*circle, id))}"
    parent, found = read(files[id], files, circle)
    errors = [problem for problem in found if problem.severity == "error"]
    if parent is None:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return None, f'extends "{id}", which has a mistake: {files[id]}:{errors[0].line}: {errors[0].what}{more}'
    return parent, ""


def _settings_of(parent: Rubric, document: Document) -> dict[str, Any]:
    """The parent's settings as plain values; examples go where the verdicts they show have changed."""
    plain = parent.model_dump(mode="json", exclude={"body", "root", "rubric_hash", "extends"}, exclude_unset=True)
    own = document.settings
    if any(key in own and own[key] != plain.get(key) for key in ("mode", "checks", "scale", "errors")):
        plain.pop("examples", None)
    return plain


def _document(path: Path) -> Document:
    raw = path.read_bytes()
    if len(raw) > MAX_BYTES:
        return Document(problems=[Problem(1, f"the file has {len(raw)} bytes; at most {MAX_BYTES} are allowed")])
    return split(raw)


def _folder(folder: Path) -> dict[str, Path]:
    files = {}
    for path in filter(Path.is_file, sorted(folder.glob("*.md"))):
        with path.open("rb") as stream:
            start = stream.read(64).decode("utf-8-sig", "replace")
        if has_front_matter(start):
            files[path.stem] = path
    return files


def _lines(path: Path, found: Sequence[Problem]) -> list[str]:
    return [f"{path}:{problem.line}: {problem.what}" for problem in found if problem.severity == "error"]
