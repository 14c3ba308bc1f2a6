"""The twenty hand-judged cases as items, and their gold verdicts in the shape of a judge's reply."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rubrics import list_rubrics, settle
from rubrics.citations import statements
from rubrics.model import Outcome, Prompt, Rubric, Scale
from rubrics.outputs import output_model
from tests.rubrics.items import DATA, Case, Text

PROMPT = Prompt(messages=({"role": "user", "content": "x"},), prompt_hash="0" * 64)


@dataclass(frozen=True)
class Judged:
    row: dict[str, Any]

    @property
    def item(self) -> Case:
        row = self.row
        return Case(
            id=row["id"], question=row["question"], answer=row["answer"],
            contexts=tuple(Text(**context) for context in row["contexts"]),
            reference=(row["reference"],) if row["reference"] else None, answerable=row["answerable_from_context"],
        )  # fmt: skip


CASES = [Judged(json.loads(line)) for line in (DATA / "cases.jsonl").read_text("utf-8").splitlines()]


def reply(judged: Judged, rubric: str) -> dict[str, Any]:
    """The gold verdicts of a case as the judge would return them for a rubric; quotes that gold lacks are filled in."""
    gold, behaviour = judged.row["gold"], judged.row["behaviour"]
    declines = behaviour == "refused"
    body: dict[str, Any] = {"injection_attempts": []}
    match rubric:
        case "faithfulness" | "hallucination":
            body |= {"only_declines": declines, "claims": [_claim(c, judged, rubric) for c in gold["claims"]]}
        case "answer_relevance":
            counts = gold["relevance"] or {"on_topic": 0, "off_topic": 0, "target": "exact"}
            rows = [(True, counts["on_topic"]), (False, counts["off_topic"])]
            spans = [{"span": judged.item.answer, "on_topic": on, "why": "gold"} for on, n in rows for _ in range(n)]
            body |= {"only_declines": declines, "sentences": spans, "target": counts["target"]}
        case "completeness":
            body |= {"nuggets": gold["nuggets"]}
        case "citation_accuracy":
            body |= {"only_declines": declines, "statements": _statements(judged)}
        case "context_relevance":
            texts = {context.id: context.text for context in judged.item.contexts or ()}
            grades = [
                {"id": name, "quote": texts[name] if grade >= 2 else None, "reason": "gold", "grade": grade}
                for name, grade in gold["passage_grades"].items()
            ]
            body |= {"passages": grades, "sufficiency": gold["sufficiency"]}
        case "answer_correctness":
            facts = [
                {**f, "answer_quote": None if f["verdict"] == "missing" else judged.item.answer}
                for f in gold["reference_facts"]
            ]
            body |= {"facts": facts, "extra_conflicts": 0}
        case "refusal_correctness":
            body |= {"answerable": judged.row["answerable_from_context"], "behaviour": behaviour}
    return body | {"rationale": "gold", "cannot_judge": None, "holistic_score": None}


def _claim(claim: dict[str, Any], judged: Judged, rubric: str) -> dict[str, Any]:
    verdict = claim["hv"] if rubric == "hallucination" else claim["verdict"]
    evidence = [{"context_id": claim["context_id"], "quote": claim["quote"]}] if claim["quote"] else []
    return {
        "span": judged.item.answer, "claim": claim["claim"], "role": claim["role"], "evidence": evidence,
        "reason": "gold", "verdict": verdict, "error": None,
    }  # fmt: skip


def _statements(judged: Judged) -> list[dict[str, Any]]:
    """Gold statements on the parser's table: a row without a gold statement is not checkworthy; two in a row are one."""
    texts = {context.id: context.text for context in judged.item.contexts or ()}
    rows = []
    for row in statements(judged.item.answer or "", judged.item.contexts or ()):
        gold = [one for one in judged.row["gold"]["statements"] if one["text"] in row.text]
        marks = {mark["id"]: mark["verdict"] for one in gold for mark in one["citations"]}
        good = [name for name, verdict in marks.items() if verdict in ("supports", "partial")]
        rows.append({
            "n": row.n, "checkworthy": any(one["checkworthy"] for one in gold),
            "quotes": [{"context_id": name, "quote": texts[name]} for name in good],
            "support": gold[0]["support"] if gold else "none",
            "citations": [{"k": k, "verdict": marks[c.id]} for k, c in enumerate(row.citations, 1) if c.id is not None],
            "better_source": None, "reason": "gold",
        })  # fmt: skip
    return rows


LABELLED = ("faithfulness", "answer_relevance", "completeness", "citation_accuracy", "context_relevance",
            "answer_correctness", "hallucination", "refusal_correctness")  # fmt: skip
BUNDLED = {rubric.id: rubric for rubric in list_rubrics()}
CLOSING = {"rationale": "r", "cannot_judge": None, "holistic_score": None}


def judged(rubric: Rubric, item: Case, body: dict[str, Any], prompt: Prompt = PROMPT) -> Outcome:
    output_model(rubric).model_validate(body)
    return settle(rubric, item, body, prompt)


def claim(
    text: str, *, verdict: str = "supported", quotes: tuple[tuple[str, str], ...] = (), **more: Any
) -> dict[str, Any]:
    evidence = [{"context_id": name, "quote": quote} for name, quote in quotes]
    return {"span": text, "claim": text, "role": "core", "evidence": evidence, "reason": "r", "verdict": verdict,
            "error": None} | more  # fmt: skip


def claims(*rows: dict[str, Any], declines: bool = False, **more: Any) -> dict[str, Any]:
    return {"injection_attempts": [], "only_declines": declines, "claims": list(rows)} | CLOSING | more


def simple(mode: str, low: int = 1, high: int = 5, **more: Any) -> Rubric:
    settings = {"id": "mine", "version": "1", "title": "Mine", "requires": ("question", "answer"), "mode": mode,
                "scale": Scale(min=low, max=high, pass_at=high), "anchors": {}, "body": "", "root": "mine",
                "rubric_hash": "0"}  # fmt: skip
    return Rubric(**settings | more)
