"""What must not be mixed: labels that the judge has seen, and calibrations of another judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from calibration.errors import CalibrationError

BOUND_TO = ("rubric_hash", "prompt_hash", "judge_fingerprint")


def refuse_leakage(label_items: Iterable[str], used_items: Iterable[str], use: str = "the judge's prompt") -> None:
    """Refuse labels of items that were used to build the judge: examples in its prompt, or tuning of the rubric."""
    leaked = sorted(set(label_items) & set(used_items))
    if leaked:
        shown = ", ".join(leaked[:20]) + (f" and {len(leaked) - 20} more" if len(leaked) > 20 else "")
        raise CalibrationError(
            f"{len(leaked)} labelled items were used for {use}: {shown}; a judge agrees with what it has seen, "
            "so leave them out of the labels"
        )


def stale_fields(artefact: Mapping[str, object], current: Mapping[str, object]) -> tuple[str, ...]:
    """Which of rubric_hash, prompt_hash and judge_fingerprint differ between a calibration and the present judge.

    Empty: the calibration holds. A field that either side lacks counts as different.
    """
    return tuple(name for name in BOUND_TO if artefact.get(name) is None or artefact.get(name) != current.get(name))


def refuse_stale(artefact: Mapping[str, object], current: Mapping[str, object]) -> None:
    """Refuse a calibration that was made for another rubric, prompt or judge."""
    changed = stale_fields(artefact, current)
    if changed:
        seen = "; ".join(f"{name} was {artefact.get(name)}, is {current.get(name)}" for name in changed)
        raise CalibrationError(f"the calibration is stale ({seen}): label a new sample and audit again")
