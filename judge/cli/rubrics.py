"""`judge rubrics`: list, show, check and start rubric files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge.cli.common import Json, RubricsDir, choice, console, emit_json, listed, say
from judge.errors import UsageError

if TYPE_CHECKING:
    from rubrics import Rubric

HAS = ("reference", "notes", "contexts", "nuggets", "history")


def list_rubrics(rubrics_dir: RubricsDir = None, as_json: Json = False) -> None:
    """List the rubrics: the bundled ones and those of --rubrics-dir.

    Example: judge rubrics list --rubrics-dir mine
    """
    import rubrics

    dirs = rubrics_dir or []
    found = rubrics.list_rubrics(dirs)
    say(f"note: {note}" for note in rubrics.overrides(dirs))
    if as_json:
        emit_json([_summary(rubric) for rubric in found])
        return
    from judge.report.page import Section, show

    rows = [
        [rubric.id, rubric.version, rubric.mode, f"{rubric.scale.min}-{rubric.scale.max}, pass {rubric.scale.pass_at}",
         ", ".join(rubric.requires), str(_summary(rubric)["quick"] or "-"), rubric.title]
        for rubric in found
    ]  # fmt: skip
    show([Section("Rubrics", ["id", "version", "mode", "scale", "needs", "quick form", "title"], rows)], console())


def show_rubric(
    rubric: Annotated[str, typer.Argument(help="Id of the rubric.")],
    has: Annotated[
        list[str] | None,
        typer.Option(
            help="Show it for a case that has this: reference, notes, contexts, nuggets, history (repeatable)."
        ),
    ] = None,
    rubrics_dir: RubricsDir = None,
    as_json: Json = False,
) -> None:
    """Show a rubric as the judge sees it. The instructions as sent, and the fields of the reply.

    Example: judge rubrics show answer_correctness --has reference
    """
    import rubrics
    from rubrics.outputs import output_model

    dirs = rubrics_dir or []
    found = rubrics.load(rubric, dirs)
    say(f"note: {note}" for note in rubrics.overrides(dirs) if note.startswith(f"{rubric}:"))
    given = listed(has) or ["contexts"]
    for name in given:
        choice(name, "--has", HAS)
    flags = frozenset(f"has_{name}" for name in given)
    text = rubrics.instructions_text(found, flags)
    model = output_model(found)
    if as_json:
        settings = found.model_dump(mode="json", exclude={"body", "examples"})
        emit_json({**settings, "instructions": text, "output_schema": model.model_json_schema()})
        return
    print(text)
    print(f"\nreply fields, in order: {', '.join(model.model_fields)}")
    if found.quick:
        blocks = ", ".join(f"[{block.head}] {' + '.join(block.of)}" for block in found.quick.blocks)
        print(f"quick form: per {found.quick.unit}: {blocks}; {found.quick.ask} ({found.quick.aggregate})")
    print(f"rubric_hash: {found.rubric_hash}")


def check_rubrics(
    files: Annotated[list[Path], typer.Argument(help="Rubric files.", show_default=False)],
    rubrics_dir: RubricsDir = None,
    as_json: Json = False,
) -> None:
    """Explain every mistake in rubric files, with its line. Exit 2 when there is an error.

    Example: judge rubrics check plain_words.md
    """
    import rubrics

    rows = [(path, problem) for path in files for problem in rubrics.check(path, rubrics_dir or [])]
    counts = Counter(problem.severity for _, problem in rows)
    if as_json:
        emit_json(
            {
                "problems": [
                    {"file": str(path), "line": p.line, "severity": p.severity, "what": p.what} for path, p in rows
                ],
                "errors": counts["error"],
                "warnings": counts["warning"],
            }
        )
    else:
        for path, problem in rows:
            print(f"{path}:{problem.line}: {problem.severity}: {problem.what}")
        print(f"{len(files)} checked: {counts['error']} errors, {counts['warning']} warnings")
    if counts["error"]:
        raise typer.Exit(2)


def new_rubric(
    rubric: Annotated[str, typer.Argument(help="Id of the new rubric; the file is called ID.md.")],
    mode: Annotated[
        str,
        typer.Option(
            help="What the judge returns: ordinal, binary, checklist, claims, sentences, nuggets, citations, passages, "
            "facts, matrix, pairwise."
        ),
    ],
    folder: Annotated[Path, typer.Option("--dir", help="Where to write it.")] = Path(),
    as_json: Json = False,
) -> None:
    """Write a commented first file for your own rubric.

    Example: judge rubrics new plain_words --mode ordinal
    """
    from rubrics.starting import starter

    text = starter(rubric, mode)
    path = folder / f"{rubric}.md"
    if path.exists():
        raise UsageError(f"{path} exists already: choose another id or --dir, nothing was written")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    if as_json:
        emit_json({"rubric": rubric, "mode": mode, "out": str(path)})
    else:
        print(f"wrote {path}; edit it, then: judge rubrics check {path}")


def _summary(rubric: Rubric) -> dict[str, object]:
    return {
        "id": rubric.id,
        "version": rubric.version,
        "title": rubric.title,
        "mode": rubric.mode,
        "scale": rubric.scale.model_dump(),
        "requires": list(rubric.requires),
        "quick": rubric.quick.local if rubric.quick else None,
        "extends": rubric.extends,
        "rubric_hash": rubric.rubric_hash,
    }
