"""What a comparison lets one say, in plain words: who is preferred, no evidence, or a judge too inconsistent to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ALPHA = 0.05
TOO_INCONSISTENT = 0.5
NOTABLY_INCONSISTENT = 0.2


def conclusion(found: Mapping[str, Any], *, several: bool = False) -> dict[str, Any]:
    """`verdict` (prefers_a, prefers_b, no_evidence, inconsistent, too_few), `text` and `cautions` of a comparison.

    Preferred: p of the sign test (after Holm with several systems) below 0.05 and an interval that leaves out one half.
    More than half of the pairs with contradicting orders is too inconsistent to say. Quick mode averages probabilities
    over the orders instead, so there it is a warning; score mode averages ratings too, but a judge whose ratings follow
    the position that often has not been shown to say anything by their rest.
    """
    verdict = _verdict(found, several)
    text = {
        "too_few": _too_few, "inconsistent": _inconsistent, "no_evidence": _no_evidence
    }.get(verdict, _preferred)(found)  # fmt: skip
    return {"verdict": verdict, "text": text, "cautions": _cautions(found, verdict)}


def _verdict(found: Mapping[str, Any], several: bool) -> str:
    rate, clash = found["win_rate_a"], found["inconsistent_rate"]["value"]
    if found["mode"] != "quick" and clash is not None and clash > TOO_INCONSISTENT:
        return "inconsistent"
    if rate["ci_low"] is None:
        return "too_few"
    p = found["p_holm"] if several else found["p_value"]
    if p < ALPHA and not rate["ci_low"] <= 0.5 <= rate["ci_high"]:
        return "prefers_a" if rate["value"] > 0.5 else "prefers_b"
    return "no_evidence"


def _preferred(found: Mapping[str, Any]) -> str:
    rate = found["win_rate_a"]
    a_better = rate["value"] > 0.5
    name, loser = (found["a"], found["b"]) if a_better else (found["b"], found["a"])
    share, low, high = rate["value"], rate["ci_low"], rate["ci_high"]
    if not a_better:
        share, low, high = 1 - share, 1 - high, 1 - low
    return (
        f"The judge prefers {name}: win rate {share:.0%} against {loser} on {rate['n']} pairs "
        f"(95% interval {low:.0%} to {high:.0%}, p = {found['p_value']:.2g})."
    )


def _no_evidence(found: Mapping[str, Any]) -> str:
    rate = found["win_rate_a"]
    largest = max(abs(rate["ci_low"] - 0.5), abs(rate["ci_high"] - 0.5))
    seen = (
        f"; {rate['n']} pairs like these would show one of {100 * found['mde']:.0f} (80% power)" if found["mde"] else ""
    )
    return (
        f"No evidence of a difference larger than {100 * largest:.0f} points of win rate: {found['a']} wins "
        f"{rate['value']:.0%} on {rate['n']} pairs (95% interval {rate['ci_low']:.0%} to {rate['ci_high']:.0%}, "
        f"p = {found['p_value']:.2g}){seen}. That is no proof that they are equal."
    )


def _inconsistent(found: Mapping[str, Any]) -> str:
    rate, first = found["inconsistent_rate"], found["first_preference"]["value"]
    side = "" if first is None else f"; it picks the answer shown first in {first:.0%} of its choices"
    return (
        f"The judge is too inconsistent to say: in {rate['value']:.0%} of {rate['n']} pairs it names another winner "
        f"when the two answers change places{side}. Take a stronger judge, or label some pairs."
    )


def _too_few(found: Mapping[str, Any]) -> str:
    n, why = found["win_rate_a"]["n"], found["win_rate_a"]["reason"]
    return f"Too few complete pairs to say anything: {n} of {found['n']} ({(why or 'no_values').replace('_', ' ')})."


def _cautions(found: Mapping[str, Any], verdict: str) -> list[str]:
    said = []
    clash, first = found["inconsistent_rate"]["value"], found["first_preference"]["value"]
    if found["mode"] == "quick":
        agree = found["position_consistency"]["value"]
        shown = "" if agree is None or first is None else (
            f" it picks the first answer in {first:.0%} of its calls and names the same winner in both orders in "
            f"{agree:.0%} of the pairs;"
        )  # fmt: skip
        said.append(f"Calibrate first: this is a quick judge, decided by mean probability over both orders;{shown} "
                    "trust it no further than people have confirmed it.")  # fmt: skip
    elif verdict in ("prefers_a", "prefers_b", "no_evidence") and clash is not None and clash > NOTABLY_INCONSISTENT:
        said.append(
            f"Mind that in {clash:.0%} of the pairs the judge contradicted itself when the answers changed places."
        )
    rule = found.get("second_order")
    if rule and rule["saved_calls"]:
        said.append(
            f"{rule['saved_calls']} of {found['n']} pairs were judged in one order only, drawn at random: the win rate "
            "allows for that, a single pair does not."
        )
    if verdict in ("prefers_a", "prefers_b") and not found["human"]:
        said.append("This is the judge's opinion; whether people agree was not measured (--labels).")
    return said
