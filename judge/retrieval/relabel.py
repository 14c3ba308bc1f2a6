"""Labels that survive a re-chunking: chunk labels become offsets, texts or documents through the old chunk map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from judge.errors import InputError, UsageError
from judge.retrieval.chunks import Chunk, ChunkMap, chunk_map_of

if TYPE_CHECKING:
    from judge.cases import Case, Label

FORMS = ("offset", "text", "doc")


def relabel_cases(
    cases: Iterable[Case], chunk_map: Any, *, to: str = "offset", plain_ids_are_chunks: bool = False
) -> tuple[list[Case], int]:
    """The cases with their chunk labels in another form, and how many labels were rewritten.

    `chunk_map` is the map of the chunks that the labels name, from before the re-chunking: id -> {doc, start, end,
    text}, or the path of such a file. `to`: `offset` gives {doc, start, end}, `text` the chunk's text (with its doc
    when known; also from the case's own contexts), `doc` the document. Grades are kept; labels of other forms stay.
    With `plain_ids_are_chunks` a plain id in `relevant` is read as a chunk id. Raises InputError with every label
    whose chunk is unknown or lacks what the form needs.
    """
    if to not in FORMS:
        raise UsageError(f"to is {to!r}: choose one of {', '.join(FORMS)}")
    chunks = chunk_map_of(chunk_map)
    problems: list[str] = []
    made = []
    changed = 0
    for case in cases:
        texts = {context.id: context.text for context in case.contexts or ()}
        relevant = []
        for label in case.relevant or ():
            name = label.chunk or (label.doc if plain_ids_are_chunks and label.kind == "doc" else None)
            if name is None:
                relevant.append(label)
                continue
            fields = _fields(name, to, chunks, texts)
            if isinstance(fields, str):
                problems.append(f"case {case.id!r}: {fields}")
            else:
                relevant.append(_label(fields, label))
                changed += 1
        made.append(case if case.relevant is None else case.model_copy(update={"relevant": tuple(relevant)}))
    if problems:
        raise InputError(
            f"{len(problems)} chunk labels cannot be turned into {to} labels; nothing was written", problems
        )
    return made, changed


def _fields(name: str, to: str, chunks: ChunkMap, texts: Mapping[str, str]) -> dict[str, Any] | str:
    """The fields of the new label, or what is missing."""
    chunk = chunks.get(name, Chunk())
    if to == "text":
        text = chunk.text or texts.get(name)
        if text is None:
            return f"chunk {name!r} has no text in the chunk map or the contexts"
        return {"text": text} if chunk.doc is None else {"text": text, "doc": chunk.doc}
    if name not in chunks:
        return f"chunk {name!r} is not in the chunk map: is it the map that the labels were made with?"
    if chunk.doc is None:
        return f"chunk {name!r} has no doc in the chunk map"
    if to == "doc":
        return {"doc": chunk.doc}
    if chunk.start is None:
        return f"chunk {name!r} has no start and end in the chunk map"
    return {"doc": chunk.doc, "start": chunk.start, "end": chunk.end}


def _label(fields: Mapping[str, Any], old: Label) -> Label:
    from judge.cases import Label

    return Label(**fields, grade=old.grade)
