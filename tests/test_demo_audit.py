"""The end of the demo: its examples against the authors' marks, named as an illustration; over a written run."""

from __future__ import annotations

import judge
from judge.demo import RUBRICS, audit_sections, demo_cases
from tests.audited_runs import bundled, quick_line, write_run


def test_the_demo_ends_with_an_audit_that_says_what_it_is_and_gives_no_verdict_on_a_dozen(tmp_path):
    rubrics = [bundled(name) for name in RUBRICS]
    cases = demo_cases()
    lines = [
        quick_line(case["id"], rubric, 0.2 + 0.6 * (n % 2))
        for n, case in enumerate(cases)
        for rubric in rubrics
        if rubric.id in case["labels"]
    ]
    run = write_run(tmp_path / "demo", cases, lines, rubrics, model="local", mode="quick")
    audits = judge.audit(run, rater="author", replicates=100).rubrics
    (section,) = audit_sections(audits)
    assert "illustration" in section.title
    assert [row[0] for row in section.rows] == [name for name in RUBRICS if name in audits]
    assert any("marks are those of the authors" in note for note in section.notes)
    for audit in audits.values():
        assert audit["raters"] == {"author": audit["n"]}
        assert audit["verdict"] == "too_few_labels" or audit["n"] >= 10
