"""Calibration artefacts: what an audit found, bound to the rubric, the prompt and the judge that it was found for."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import orjson

from calibration.guards import stale_fields
from judge.lines import write_json
from judge.verdicts import Verdict, headline_weights

DEFAULT = Path("calibrations")
IDENTITY = ("model", "model_returned", "params", "mode", "layout", "output")
KEPT = ("rubric", "rubric_hash", "prompt_hash", "judge_fingerprint", "judge", "verdict", "because", "thresholds", "n",
        "raters", "label_design", "compared_on", "kappa", "pass_fail")  # fmt: skip
NOT_TRUSTED = ("not_usable", "too_few_labels")
CALIBRATED, UNCALIBRATED, STALE, MIXED = "calibrated", "uncalibrated", "stale", "uncalibrated: mixed versions"


@dataclass(frozen=True, slots=True)
class State:
    """Whether an audit covers a rubric of a run: the word shown beside its mean, the audit's verdict, and why."""

    word: str
    verdict: str | None = None
    detail: str | None = None


def in_short(state: str, verdict: str | None) -> str:
    """The state for people: "uncalibrated", "calibrated: trusted", "audited: not usable"."""
    if state != CALIBRATED or verdict is None:
        return state
    return f"{'audited' if verdict in NOT_TRUSTED else CALIBRATED}: {verdict.replace('_', ' ')}"


def identity(judge: Mapping[str, Any]) -> dict[str, Any]:
    """What makes a judge the same judge: model, returned version, parameters, mode, layout, output."""
    return {name: judge.get(name) for name in IDENTITY}


def fingerprint(judge: Mapping[str, Any]) -> str:
    """SHA-256 of `identity`; `judge` is the entry of run.json."""
    return hashlib.sha256(orjson.dumps(identity(judge), option=orjson.OPT_SORT_KEYS)).hexdigest()


def artefact(audit: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an audit (CONTRACTS 6) that a later run is compared with."""
    kappa = audit["agreement"]["kappa"][headline_weights(len(audit["agreement"]["scale"]))]
    return {name: kappa if name == "kappa" else audit[name] for name in KEPT}


def save(folder: Path, audit: Mapping[str, Any]) -> Path:
    """Writes the artefact of an audit as RUBRIC-FINGERPRINT.json; the same judge and rubric replace the old one."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{audit['rubric']}-{audit['judge_fingerprint'][:12]}.json"
    write_json(path, artefact(audit) | {"made": time.strftime("%Y-%m-%d", time.gmtime())})
    return path


def load(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The artefacts of a folder (none when it does not exist), and a warning for each file that is none."""
    found, warnings = [], []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            made = orjson.loads(path.read_bytes())
        except (orjson.JSONDecodeError, OSError):
            made = None
        if isinstance(made, dict) and set(KEPT) <= set(made) and _sound(made):
            found.append(made)
        else:
            warnings.append(f"{path} is no calibration and is not used; `judge audit --save` writes one")
    return found, warnings


def _sound(made: Mapping[str, Any]) -> bool:
    return isinstance(made["judge"], dict) and made["verdict"] in get_args(Verdict)


def state_of(
    rubric: str,
    rubric_hash: str,
    prompt_hashes: Sequence[str],
    judge: Mapping[str, Any],
    artefacts: Sequence[Mapping[str, Any]],
) -> State:
    """The state of one rubric of a run.

    Several returned model versions: mixed versions, no audit can apply. An artefact bound to this rubric, prompt and
    judge: calibrated. Only artefacts of this model and mode that differ in one of these: stale. Else uncalibrated. A
    run without any sent prompt (code decided everything) is held against rubric and judge alone.
    """
    versions = judge.get("model_returned") or []
    if len(versions) > 1:
        return State(MIXED, detail=f"{', '.join(versions)} answered in one run")
    current = {"rubric_hash": rubric_hash, "judge_fingerprint": fingerprint(judge)}
    stale: State | None = None
    for made in artefacts:
        if made["rubric"] != rubric:
            continue
        sent = "+".join(prompt_hashes) or made["prompt_hash"]
        changed = stale_fields(made, current | {"prompt_hash": sent})
        if not changed:
            return State(CALIBRATED, made["verdict"])
        if (made["judge"].get("model"), made["judge"].get("mode")) == (judge.get("model"), judge.get("mode")):
            stale = State(STALE, made["verdict"], f"changed since the audit: {', '.join(_told(made, judge, changed))}")
    return stale or State(UNCALIBRATED)


def note(summary: dict[str, Any], judge: Mapping[str, Any], folder: Path | None) -> list[str]:
    """Adds `calibration`, `calibration_verdict` and `calibration_detail` to each rubric of a summary.

    `folder` None means ./calibrations, which need not exist. Returns warnings about files that could not be read.
    """
    artefacts, warnings = load(folder or DEFAULT)
    for name, found in summary["rubrics"].items():
        state = state_of(name, found["rubric_hash"], found["prompt_hashes"], judge, artefacts)
        found |= {
            "calibration": state.word,
            "calibration_verdict": state.verdict,
            "calibration_detail": state.detail,
        }
    return warnings


def _told(made: Mapping[str, Any], judge: Mapping[str, Any], changed: Sequence[str]) -> list[str]:
    words = [name.replace("_", " ").removesuffix(" hash") for name in changed if name != "judge_fingerprint"]
    differing = [name for name in IDENTITY if made["judge"].get(name) != judge.get(name)]
    return words + [f"{name} of the judge" for name in differing]
