"""The seven scenarios and refusal, each with its conditions over the cases that it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from judge.diagnosing.examined import Examined
from judge.diagnosing.feedback import satisfaction
from judge.diagnosing.retrieval_scenarios import needless_context, poor_order
from judge.diagnosing.scenario import Diagnosed, Scenario
from judge.diagnosing.thresholds import Threshold
from judge.diagnosing.trust import corrected
from judge.diagnosing.verdicts import Condition, allow_for_many, share, together

Fails = Callable[[Examined], bool | None]


def scenarios(run: Diagnosed) -> list[Scenario]:
    """All scenarios with their verdicts; Holm counts those that had enough cases."""
    made = [
        needless_context(run), _unfaithful(run), _faithful_but_wrong(run), poor_order(run), _incomplete(run),
        _offline_online(run), _citations(run), *_refusals(run),
    ]  # fmt: skip
    min_n = int(run.limits["min_n"].value)
    alone = [together(scenario.conditions, min_n) if scenario.conditions else None for scenario in made]
    settled = iter(allow_for_many([verdict for verdict in alone if verdict is not None]))
    return [
        scenario if verdict is None else scenario.decided(*next(settled), before=verdict[0], needed=min_n)
        for scenario, verdict in zip(made, alone, strict=True)
    ]


def answered(case: Examined) -> bool:
    """Answerable, with an answer that does not decline."""
    return case.side("answerable") == "yes" and case.side("refused") == "no" and case.side("empty") == "no"


def well_retrieved(cases: Sequence[Examined]) -> list[Examined]:
    """Answered cases whose evidence was found."""
    return [case for case in cases if answered(case) and case.side("recall") == "high"]


def is_low(case: Examined, name: str) -> bool | None:
    """True low, False high, None when it is uncertain or missing."""
    return {"low": True, "high": False}.get(case.side(name))


def is_wrong(case: Examined) -> bool | None:
    """Whether the answer is wrong and not merely incomplete."""
    parts = case.side("complete") == "low" and case.side("contradicts_reference") == "no"
    low = is_low(case, "correct")
    return False if low and parts else low


def _judged(
    run: Diagnosed,
    what: str,
    base: Sequence[Examined],
    name: str,
    limit: Threshold,
    fails: Fails,
    *,
    selected_by: Sequence[str] = (),
) -> tuple[Condition, list[str]]:
    """A share of `base` that a judge decides, corrected where its calibration allows, and why it was not."""
    outcomes = [fails(case) for case in base]
    clusters = [run.cluster(case) for case in base]
    points = [_point(case, name) for case in base]
    found = corrected(share(outcomes, clusters), points, [case.passed.get(name) for case in base], run.trusts[name])
    doubtful = [run.trusts[other] for other in selected_by if not run.trusts[other].calibrated]
    notes = [found.reason] if found.reason else [f"corrected by the audit of {run.trusts[name].rubric}"]
    notes += [f"selected by {trust.said}" for trust in doubtful]
    unsure = sum(case.side(name) == "uncertain" for case in base)
    if unsure:
        known, bad = sum(outcome is not None for outcome in outcomes), sum(map(bool, outcomes))
        low, high = bad / (known + unsure), (bad + unsure) / (known + unsure)
        notes.append(f"{unsure} uncertain ones left out: with them between {100 * low:.0f}% and {100 * high:.0f}%")
    condition = Condition(
        what=what, estimate=found.estimate, threshold=limit.value, trusted=found.trusted and not doubtful,
        naive=found.naive, rejected=any(run.trusts[one].rejected for one in (name, *selected_by)),
    )  # fmt: skip
    return condition, notes


def _point(case: Examined, name: str) -> bool | None:
    """Whether the value itself, interval and margin aside, is below its threshold."""
    reading = case.inputs.get(name)
    if reading is None or reading.value is None or reading.threshold is None:
        return None
    return reading.value < reading.threshold


def _unfaithful(run: Diagnosed) -> Scenario:
    base = well_retrieved(run.cases)
    condition, notes = _judged(
        run, "answers not supported by their passages", base, "faithfulness", run.limits["S2"],
        lambda case: is_low(case, "faithfulness"),
    )  # fmt: skip
    return Scenario(
        "S2", "evidence found, answer not supported", "generation", (condition,),
        "replay these cases with only the labelled passages (--counterfactuals): if that fixes them, rerank or cut k; "
        "if not, tighten the grounding instruction or take a stronger model",
        base="answers whose evidence was found", notes=notes,
    )  # fmt: skip


def _faithful_but_wrong(run: Diagnosed) -> Scenario:
    grounded = [case for case in run.cases if answered(case) and case.side("faithfulness") == "high"]
    base = [case for case in grounded if case.side("recall") == "high"]
    condition, notes = _judged(
        run, "supported answers that contradict the reference", base, "correct", run.limits["S3"], is_wrong,
        selected_by=("faithfulness",),
    )  # fmt: skip
    missed = [case for case in grounded if case.side("recall") == "low" and is_low(case, "correct") is not None]
    wrong = sum(bool(is_low(case, "correct")) for case in missed)
    notes.append(f"{wrong} of {len(missed)} supported answers on missed evidence are wrong, which is retrieval")
    return Scenario(
        "S3", "supported but wrong", "corpus or labels", (condition,),
        "check source against reference: outdated or wrong document, fix the corpus; right document, fix the reference",
        base="supported answers whose evidence was found", notes=notes,
    )  # fmt: skip


def _incomplete(run: Diagnosed) -> Scenario:
    base = well_retrieved(run.cases)
    condition, notes = _judged(
        run, "answers that leave out needed points", base, "complete", run.limits["S5"],
        lambda case: is_low(case, "complete"),
    )  # fmt: skip
    for words, many in (("one label", False), ("several labels", True)):
        group = [c for c in base if (len(c.case.relevant or ()) > 1) == many and is_low(c, "complete") is not None]
        short = sum(bool(is_low(case, "complete")) for case in group)
        notes.append(f"with {words}: {short} of {len(group)} incomplete")
    return Scenario(
        "S5", "evidence found, answer incomplete", "generation", (condition,),
        "ask for every part, raise the output limit; if only cases with several labels fail, look at order and number "
        "of passages",
        base="answers whose evidence was found", notes=notes,
    )  # fmt: skip


def _citations(run: Diagnosed) -> Scenario:
    base = [case for case in run.cases if answered(case) and case.side("correct") == "high"]
    condition, notes = _judged(
        run, "right answers with wrong citations", base, "citation", run.limits["S7"],
        lambda case: is_low(case, "citation"), selected_by=("correct",),
    )  # fmt: skip
    return Scenario(
        "S7", "right, wrongly cited", "generation", (condition,),
        "check how citations are attached: does another retrieved passage support the claim?",
        base="right answers", notes=notes,
    )  # fmt: skip


def _refusals(run: Diagnosed) -> list[Scenario]:
    """The pair: declining where nothing answers, and declining where the evidence was found."""
    unanswerable = [case for case in run.cases if case.side("answerable") == "no"]
    findable = [case for case in run.cases if case.side("answerable") == "yes" and case.side("recall") == "high"]
    pair = (
        ("S8_refusal", "unanswerable questions that are declined", unanswerable, False),
        ("S8_over_refusal", "answerable questions with evidence found that are declined", findable, True),
    )
    made = []
    for name, what, base, above in pair:
        outcomes = [{"yes": True, "no": False}.get(case.side("refused")) for case in base]
        passed = [case.passed.get("refused") for case in base]
        naive = share(outcomes, [run.cluster(case) for case in base])
        # The audit's pass is the right behaviour: declining in the first group, answering in the second.
        fails = [None if out is None else out is above for out in outcomes]
        found = corrected(naive, fails, passed, run.trusts["refused"], of_passes=not above)
        condition = Condition(
            what=what, estimate=found.estimate, threshold=run.limits[name].value, above=above, trusted=found.trusted,
            naive=found.naive, rejected=run.trusts["refused"].rejected,
        )  # fmt: skip
        made.append(
            Scenario(
                name,
                "answers the unanswerable" if not above else "declines the answerable",
                "generation",
                (condition,),
                ("loosen" if above else "tighten")
                + " the refusal instruction, and measure both shares of the pair again",
                base="unanswerable questions" if not above else "answerable questions with evidence found",
                notes=[found.reason] if found.reason else [],
            )
        )
    return made


def _offline_online(run: Diagnosed) -> Scenario:
    title = "good offline, unhappy users"
    online = satisfaction(run)
    following = "compare the questions users ask with the test set; add complaints to it"
    if online.estimate is None:
        return Scenario("S6", title, "test set", (), following, base="cases with feedback", notes=[str(online.reason)])
    judged = [case for case in run.cases if case.decided]
    good = share([case.diagnosis.outcome in ("pass", "correct_refusal") for case in judged],
                 [run.cluster(case) for case in judged])  # fmt: skip
    conditions = (
        Condition(what="cases that pass offline", estimate=good, threshold=run.limits["S6_offline"].value,
                  reached=True, trusted=False),
        Condition(what="satisfaction of users", estimate=online.estimate, threshold=run.limits["S6_online"].value,
                  above=False),
    )  # fmt: skip
    notes = ["the offline share rests on several judges together, which no audit covers: at most suspected"]
    return Scenario("S6", title, "test set", conditions, following, base="cases",
                    notes=notes)  # fmt: skip
