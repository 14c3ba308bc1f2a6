"""TruLens records with feedback. They hold no contexts; a missing answer is written as empty text."""

from __future__ import annotations

from typing import Any

from judge.imports.foreign import Options, filled, number, with_foreign

_LEFT_OUT = ("record_json", "app_json", "cost_json", "perf_json")


def record(data: dict[str, Any], options: Options) -> dict[str, Any]:
    """One record; feedback columns are those with a `<name>_calls` twin, a score that is missing stays null."""
    row = filled(data, options)
    feedback = [name for name in row if f"{name}_calls" in row]
    used = {"record_id", "input", "output", "latency", "app_name", "app_version", *feedback, *_LEFT_OUT}
    used |= {f"{name}_calls" for name in feedback}
    system = " ".join(str(row[name]) for name in ("app_name", "app_version") if row.get(name))
    return {
        "id": row.get("record_id"),
        "question": row.get("input"),
        "answer": row.get("output") or None,
        "latency_s": number(row.get("latency")),
        "system": system or None,
        "metadata": with_foreign(
            None,
            scores={name: number(row[name]) for name in feedback},
            fields={k: v for k, v in row.items() if k not in used},
        ),
    }
