"""What a diagnosis can come to: the stage to look at, the next experiment, and the replay that makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stage = Literal["retrieval", "generation", "corpus_or_labels", "labels"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """An outcome in words. `good`: nothing to fix. `stage` None: no stage is blamed. `second`: the stage after it."""

    next_experiment: str | None
    stage: Stage | None = None
    second: Stage | None = None
    replays: tuple[str, ...] = ()
    good: bool = False


OUTCOMES: dict[str, Meaning] = {
    "pass": Meaning(None, good=True),
    "correct_refusal": Meaning(None, good=True),
    "retrieval_miss_abstained": Meaning(
        "raise recall@k: larger k, hybrid search, query rewriting; then re-ask the same case", "retrieval"
    ),
    "retrieval_miss_hallucination": Meaning(
        "raise recall@k first; second, add a refuse-when-unsupported instruction and re-measure refusals on the same "
        "cases",
        "retrieval",
        "generation",
    ),
    "retrieval_miss_wrong_context": Meaning(
        "raise recall@k; the generator obeyed the context it was given", "retrieval", "generation"
    ),
    "retrieval_miss_memory": Meaning(
        "replay with the context removed: if still correct, the model answers from memory; fix recall before trusting "
        "it",
        "retrieval",
        "generation",
        ("no-context",),
    ),
    "label_gap_suspected": Meaning(
        "judge the retrieved contexts for relevance; add the ones that support the answer to the labels, rescore",
        "labels",
    ),
    "over_refusal": Meaning(
        "replay with only the labelled passages as context (oracle context): if it answers, reduce noise or loosen the "
        "refusal instruction",
        "generation",
        replays=("oracle-context", "cut-k", "rerank"),
    ),
    "generation_hallucination": Meaning(
        "oracle-context replay; if fixed: rerank or cut k (noise); if not: grounding instruction or stronger model",
        "generation",
        replays=("oracle-context", "cut-k", "rerank"),
    ),
    "correct_but_unfaithful": Meaning(
        "replay with the context removed; if still correct it is memory: require citations, tighten grounding",
        "generation",
        replays=("no-context",),
    ),
    "faithful_but_wrong": Meaning(
        "check the source against the reference: outdated or wrong document -> fix corpus; right document -> fix "
        "reference or label",
        "corpus_or_labels",
    ),
    "faithful_but_incomplete": Meaning(
        "oracle-context replay; if still incomplete: ask for every part, raise the output limit; if fixed: rerank or "
        "reorder contexts",
        "generation",
        replays=("oracle-context", "cut-k", "rerank"),
    ),
    "citation_error": Meaning(
        "check citation attachment: does the cited context support the claim, does another retrieved one?", "generation"
    ),
    "unanswerable_hallucination": Meaning(
        "add refusal instruction; measure refusal rate on unanswerable and over-refusal on answerable together",
        "generation",
    ),
    "unanswerable_but_grounded": Meaning(
        "have a person re-check the 'unanswerable' label: the context supports an answer", "labels"
    ),
    "empty_answer": Meaning(
        "look at the pipeline's log of this case: nothing came out (limit, filter, timeout); then re-ask it",
        "generation",
    ),
    "human_review": Meaning("send to a person: the intervals do not decide"),
    "unlabelled": Meaning("supply labels (recall) or a judge score (faithfulness)"),
}
UNDECIDED = frozenset({"human_review", "unlabelled"})
