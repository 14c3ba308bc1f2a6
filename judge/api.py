"""The Python front door: the functions that `import judge` offers, and the steps they share with the command line."""

from __future__ import annotations

import asyncio
import hashlib
import random
import secrets
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import rubrics as rubric_files
from judge import calibrations
from judge.archive import Run
from judge.background import Stop, run, submit
from judge.cases import Normalised, normalise
from judge.config import JudgeSpec, find_judge, public_address
from judge.errors import UsageError
from judge.families import family
from judge.lines import write_json
from judge.llm.cache import ReplyCache
from judge.llm.client import Client
from judge.pointwise import PairMode
from judge.report import scores
from judge.scoring import Forecast, Job, Nobody, Watcher, forecast, make_budget, plans, score_run, suited
from rubrics.model import Layout, Rubric

_KINDS: tuple[tuple[str, tuple[type, ...], tuple[str, ...]], ...] = (
    ("a path", (Path,), ("out", "config", "calibration")),
    ("a whole number", (int,), ("seed", "concurrency")),
    ("a number", (int, float), ("max_cost", "timeout")),
    ("text", (str,), ("model", "api_base", "format", "generated_by")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of a scoring invocation; every field is an option of `judge score` of the same name.

    `cache` is a directory, None for the user's cache directory, False for none. `out` None means a new temporary
    directory. `out_by_name`: `out` was named after the cases file, so a run of wholly other questions is refused, since
    two files may share a name; else new cases join the run. `calibration` is the folder of audits to look in, None for
    ./calibrations. `mode` None means quick for the embedded judge and full for all others; score is for comparisons
    only. `allow_uncalibrated` lets the embedded judge answer quick forms that say `local: refuse`.
    """

    rubrics: Sequence[str] = ("faithfulness",)
    rubrics_dir: Sequence[Path] = ()
    model: str | None = None
    config: Path | None = None
    out: Path | None = None
    out_by_name: bool = False
    mode: PairMode | None = None
    repeats: int = 1
    layout: Layout = "rubric_first"
    concurrency: int | None = None
    api_base: str | None = None
    timeout: float | None = None
    max_cost: float | None = None
    cache: Path | bool | None = None
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    format: str | None = None
    map: dict[str, str] | None = None
    generated_by: str | None = None
    calibration: Path | None = None
    allow_uncalibrated: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """A finished (or stopped) run: its directory, its summary as in summary.json, and what was worth saying."""

    run: Path
    summary: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    def to_frame(self) -> Any:
        """One pandas row per judgment line."""
        from judge.runs import to_frame

        return to_frame(self.run)


@dataclass(frozen=True, slots=True)
class Resolved:
    """All names turned into values; nothing read, nothing spent."""

    spec: JudgeSpec
    mode: PairMode
    rubrics: tuple[Rubric, ...]
    notes: list[str]


def score(
    cases: Any, rubrics: str | Sequence[str] = ("faithfulness",), model: str | None = None, **options: Any
) -> Result:
    """Scores answers by rubrics and returns the finished run.

    `cases`: a path (JSONL, JSON, CSV, Parquet, a peer's export), a pandas DataFrame, or a list of dicts.
    `options`: the fields of `Options`. Works in notebooks and under a running event loop; Ctrl-C once finishes what is
    in flight. Raises UsageError or InputError before anything is spent, ProviderStop when the provider refuses all.
    """
    chosen = options_of(rubrics, model, options)
    stop = Stop()
    return run(score_options(cases, chosen, stop=stop), stop)


async def score_async(
    cases: Any, rubrics: str | Sequence[str] = ("faithfulness",), model: str | None = None, **options: Any
) -> Result:
    """`score` for programs that are asynchronous themselves; same core, same arguments."""
    work = submit(score_options(cases, options_of(rubrics, model, options), stop=Stop()))
    return await asyncio.wrap_future(work)


async def score_options(cases: Any, options: Options, *, stop: Stop, watcher: Watcher | None = None) -> Result:
    """Resolves names, reads the cases, judges what is missing, writes summary and page."""
    return await score_resolved(cases, options, resolve(options), stop=stop, watcher=watcher)


async def score_resolved(
    cases: Any,
    options: Options,
    resolved: Resolved,
    *,
    stop: Stop,
    watcher: Watcher | None = None,
) -> Result:
    """`score_options` with judge, mode and rubrics at hand."""
    out = options.out or Path(tempfile.mkdtemp(prefix="judge-run-"))
    watcher = watcher or Nobody()
    with Run(out) as archive:
        fresh = out / "cases.jsonl.new"
        data = take_cases(cases, options, fresh)
        if options.out_by_name:
            try:
                archive.refuse_other_cases(fresh)
            except UsageError:
                fresh.unlink()
                raise
        notes = [*_said(data), *resolved.notes]
        watcher.say(notes)
        client, secret = open_client(resolved.spec, options, archive.manifest.get("resolved"))
        try:
            client.budget = make_budget(options.max_cost, client, archive.path)
            job = _begin(archive, resolved, options, data, client, secret)
            if taken := archive.renew(fresh, {rubric.id: rubric.rubric_hash for rubric in resolved.rubrics}):
                notes.append(f"{taken} judgments are about an earlier version of their case or rubric: made again")
                watcher.say(notes[-1:])
            summary = await score_run(archive, job, client, n_cases=data.n, stop=stop, watcher=watcher)
        finally:
            fresh.unlink(missing_ok=True)
            freed = await client.aclose()
        closing = list(client.warnings)
        closing += calibrations.note(summary, archive.manifest["judge"], options.calibration)
        watcher.say([*closing, *freed])
        summary["warnings"] = [*resolved.notes, *closing]
        write_json(out / "summary.json", summary)
        scores.write(out, summary)
    return Result(out, summary, [*notes, *closing])


def forecast_options(cases: Any, options: Options, watcher: Watcher | None = None) -> Forecast:
    """What `score` would send, without sending anything; the run directory is left as it is."""
    return forecast_resolved(cases, options, resolve(options), watcher)


def forecast_resolved(cases: Any, options: Options, resolved: Resolved, watcher: Watcher | None = None) -> Forecast:
    """`forecast_options` with judge, mode and rubrics at hand."""
    with tempfile.TemporaryDirectory(prefix="judge-dry-") as scratch:
        copy = Path(scratch) / "cases.jsonl"
        data = take_cases(cases, options, copy)
        (watcher or Nobody()).say([*_said(data), *resolved.notes])
        if options.out is not None and (options.out / "run.json").exists():
            with Run(options.out) as archive:
                if options.out_by_name:
                    archive.refuse_other_cases(copy)
                client, _ = open_client(resolved.spec, options, archive.manifest.get("resolved"))
                job = _job(resolved, options, bytes.fromhex(archive.manifest["secret"]))
                return forecast((p.requests for p in plans(job, copy, client)), client, archive)
        client, secret = open_client(resolved.spec, options, None)
        job = _job(resolved, options, secret)
        return forecast((p.requests for p in plans(job, copy, client)), client)


def resolve(options: Options, suit: Callable[[Sequence[Rubric], PairMode, bool], None] = suited) -> Resolved:
    """Judge, mode and rubrics of an invocation; refuses what cannot work together (`suit`: the rubrics)."""
    _refuse_values(options)
    spec = find_judge(options.model, options.config).override(
        concurrency=options.concurrency, api_base=options.api_base, timeout=options.timeout
    )
    mode: PairMode = options.mode or ("quick" if spec.is_local else "full")
    try:
        chosen = tuple(rubric_files.load(name, options.rubrics_dir) for name in dict.fromkeys(options.rubrics))
    except rubric_files.RubricError as error:
        raise UsageError(str(error)) from error
    suit(chosen, mode, spec.is_local and not options.allow_uncalibrated)
    if options.calibration is not None and not options.calibration.is_dir():
        raise UsageError(f"--calibration {options.calibration}: no such folder; `judge audit --save` makes one")
    replaced = rubric_files.overrides(options.rubrics_dir)
    return Resolved(spec, mode, chosen, [*_choice(spec), *replaced, *self_preference(spec.model, options.generated_by)])


def _refuse_values(options: Options) -> None:
    """What the command line cannot give, or only as a mistake: callers from Python are told in the same words."""
    if not options.rubrics:
        raise UsageError("no rubric given: name at least one, such as faithfulness (judge rubrics list)")
    for words, kinds, names in _KINDS:
        for name in names:
            value = getattr(options, name)
            if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
                raise UsageError(f"--{name.replace('_', '-')} {value!r}: must be {words}")
    if options.seed < 0:
        raise UsageError(f"--seed {options.seed}: must be 0 or more")
    if not (options.cache is None or options.cache is False or isinstance(options.cache, Path)):
        raise UsageError(f"--cache {options.cache!r}: must be a path, or False for none")
    if options.map is not None and not _is_text_map(options.map):
        raise UsageError(f"--map {options.map!r}: must be fields and their columns, such as {{'answer': 'my_column'}}")
    for name, value in (("repeats", options.repeats), ("limit", options.limit), ("sample", options.sample)):
        if value is not None and (type(value) is not int or value < 1):
            raise UsageError(f"--{name} {value!r}: must be 1 or more, a whole number")
    for name, chosen, allowed in (
        ("mode", options.mode, (None, "full", "quick", "score")),
        ("layout", options.layout, ("rubric_first", "item_first")),
    ):
        if chosen not in allowed:
            raise UsageError(f"--{name} {chosen!r}: choose {' or '.join(filter(None, allowed))}")
    if options.max_cost is not None and not 0 < options.max_cost < float("inf"):
        raise UsageError(f"--max-cost {options.max_cost}: must be a number of US dollars above 0")


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)


def take_cases(cases: Any, options: Options, destination: Path) -> Normalised:
    """Reads and checks every case, then keeps the first `limit` of them or a seeded sample; order is kept."""
    data = normalise(cases, destination, format=options.format, map=options.map)
    if options.limit is None and options.sample is None:
        return data
    kept = set(range(data.n))
    if options.sample is not None and options.sample < data.n:
        kept = set(random.Random(options.seed).sample(range(data.n), options.sample))
    if options.limit is not None:
        kept = set(sorted(kept)[: options.limit])
    part = destination.with_name(destination.name + ".part")
    digest = hashlib.sha256()
    with destination.open("rb") as source, part.open("wb") as target:
        for n, line in enumerate(source):
            if n in kept:
                digest.update(line)
                target.write(line)
    part.replace(destination)
    return replace(data, n=len(kept), fingerprint=digest.hexdigest())


def self_preference(judge: str, generated_by: str | None) -> list[str]:
    """A warning when the judge rates answers of its own model or family (judges favour their own: arXiv 2404.13076)."""
    if generated_by is None:
        return []
    if family(judge) == family(generated_by):
        return [
            f"self-preference: the answers were written by {generated_by} and are judged by {judge}, the same family; "
            "judges rate their own family's answers higher. Use another family, or audit against people first"
        ]
    return []


def _begin(archive: Run, resolved: Resolved, options: Options, data: Normalised, client: Client, secret: bytes) -> Job:
    secret = begin(archive, resolved, options, client, secret, dataset={"n": data.n, "fingerprint": data.fingerprint})
    return _job(resolved, options, secret)


def begin(archive: Run, resolved: Resolved, options: Options, client: Client, secret: bytes, **more: Any) -> bytes:
    """Writes the settings of this invocation, and `more`, into run.json; returns the secret the run was begun with."""
    secret = bytes.fromhex(archive.manifest.get("secret", secret.hex()))
    archive.begin(
        client.identity(resolved.mode, options.layout),
        secret=secret.hex(),
        **more,
        rubrics={**archive.manifest.get("rubrics", {}), **{r.id: r.model_dump(mode="json") for r in resolved.rubrics}},
        repeats=max(options.repeats, archive.manifest.get("repeats", 1)),
        options=_plain(options),
        packages=_versions(),
    )
    return secret


def open_client(spec: JudgeSpec, options: Options, resolved: dict[str, Any] | None) -> tuple[Client, bytes]:
    """A client with its cache, and the secret that its block marks are made with."""
    if options.cache is False:
        return Client(spec, cache=None, resolved=resolved), secrets.token_bytes(32)
    cache = ReplyCache(options.cache if isinstance(options.cache, Path) else None)
    return Client(spec, cache=cache, resolved=resolved), cache.secret()


def _job(resolved: Resolved, options: Options, secret: bytes) -> Job:
    assert resolved.mode != "score"  # `suited` has refused it
    return Job(
        rubrics=resolved.rubrics,
        mode=resolved.mode,
        repeats=options.repeats,
        layout=options.layout,
        workers=resolved.spec.limits.concurrency,
        secret=secret,
        judge=resolved.spec.model,
    )


def _said(data: Normalised) -> list[str]:
    return [*([data.note] if data.note else []), *data.warnings]


def options_of(rubrics: str | Sequence[str], model: str | None, options: dict[str, Any]) -> Options:
    """Keyword arguments of a Python caller as Options; UsageError for a name that is none."""
    names = _texts("rubrics", rubrics.split(",") if isinstance(rubrics, str) else rubrics, (str,))
    for name in ("out", "config", "cache", "calibration"):
        if isinstance(options.get(name), str) and options[name]:
            options[name] = Path(options[name])
    folders = options.pop("rubrics_dir", ())
    folders = _texts("rubrics-dir", [folders] if isinstance(folders, str | Path) else folders, (str, Path))
    unknown = set(options) - set(Options.__dataclass_fields__)
    if unknown:
        raise UsageError(f"unknown option {sorted(unknown)[0]!r} (known: {', '.join(Options.__dataclass_fields__)})")
    return Options(
        rubrics=[n.strip() for n in names if n.strip()], model=model, rubrics_dir=[Path(f) for f in folders], **options
    )


def _texts(name: str, given: Any, kinds: tuple[type, ...]) -> list[Any]:
    if not isinstance(given, Sequence | set | frozenset) or not all(isinstance(one, kinds) for one in given):
        raise UsageError(f"--{name} {given!r}: must be one name or a list of names")
    return list(given)


def _choice(spec: JudgeSpec) -> list[str]:
    if spec.source == "fallback":
        return ["no --model and no default in judge.toml: judging with the small embedded model (local); calibrate it"]
    return []


def _plain(options: Options) -> dict[str, Any]:
    address = options.api_base and public_address(options.api_base)
    return {name: str(value) if isinstance(value, Path) else value
            for name in Options.__dataclass_fields__
            if not isinstance(value := getattr(options, name), Sequence) or isinstance(value, str)
            } | {"api_base": address}  # fmt: skip


def _versions() -> dict[str, str | None]:
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {}
    for package in ("calibrated-judge", "litellm", "instructor", "pydantic", "diskcache", "tenacity"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found
