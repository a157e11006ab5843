"""Corrections on the mistakes page that no golden test holds: small enough to be worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from noren.designs import DecoyDesign
from noren.methods.suppress.beliefs import estimated_prior, removal_cost
from noren.schema.knowledge import Knowledge

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers" / "mistakes.md"


def test_removing_a_term_can_raise_the_largest_belief() -> None:
    """Two people, two labels: each fits one of them. Without its second term the first fits both, and the group leans
    to the second label."""
    knowledge = Knowledge.from_sets([[0, 1], [0, 2]], terms=["fever", "rash", "cough"])
    before = estimated_prior(np.array([0, 2, 4]), np.array([0, 1, 0, 2]), knowledge)
    after = estimated_prior(np.array([0, 1, 3]), np.array([0, 0, 2]), knowledge)
    np.testing.assert_allclose(before, [0.5, 0.5])
    np.testing.assert_allclose(after, [0.25, 0.75])


def test_the_cost_of_equation_2_divides_by_all_terms_of_all_records() -> None:
    """The inner index runs over the terms of a record: 1/3 + 1/2 lost of (1/3 + 1/2 + 1) + (1/2 + 1)."""
    assert removal_cost(np.array([3, 2]), np.array([2, 0])) == pytest.approx((1 / 3 + 1 / 2) / (11 / 6 + 3 / 2))


def test_the_rule_for_small_domains_publishes_two_values_in_clear() -> None:
    design = DecoyDesign(d=2, eta=1)
    assert design.p_true == 1
    assert design.p_other == 0


def test_the_page_names_tests_that_exist() -> None:
    named = re.findall(r"\b((?:\w+/)*\w+)/(test_\w+)", PAGE.read_text(encoding="utf-8"))
    assert {folder for folder, _ in named} >= {"golden", "papers/tests"}
    for folder, name in named:
        home = ROOT / folder if folder == "papers/tests" else ROOT / "tests" / folder
        assert (home / f"{name}.py").is_file(), name


def test_the_page_names_figures_that_exist() -> None:
    from noren_papers.registry import find_paper

    parts = re.split(r"\(\[summary\]\(([\w-]+)/summary\.md\)\)", PAGE.read_text(encoding="utf-8"))
    assert len(parts) == 11, "five papers"
    for key, section in zip(parts[1::2], parts[2::2], strict=True):
        cells = [line.rsplit("|", 2)[1] for line in section.splitlines() if line.startswith("|")]
        for cell in cells:
            if "its own" in cell:  # a place in the paper itself
                continue
            for number in re.findall(r"figures? (\d+)|(?:to|and) (\d+)", cell) if "figure" in cell else []:
                assert find_paper(key).figure("".join(number)), (key, cell)


def test_the_index_counts_the_verdicts_of_the_records_beside_it() -> None:
    import json

    from noren_papers.claims import VERDICTS
    from noren_papers.registry import HOMES, find_paper

    text = (PAGE.parent / "README.md").read_text(encoding="utf-8")
    for key in HOMES:
        folder = PAGE.parent / key
        records = [json.loads((folder / f"{f.name}.json").read_text(encoding="utf-8")) for f in find_paper(key).figures]
        assert not any(record["quick"] for record in records), "the page shows full runs"
        for record, figure in zip(records, find_paper(key).figures, strict=True):
            assert [answer["claim"] for answer in record["answers"]] == list(figure.claims.values()), (key, figure.key)
        found = [answer["verdict"] for record in records for answer in record["answers"]]
        counts = " | ".join(str(number) for number in (len(found), *map(found.count, VERDICTS)))
        assert f"]({key}/summary.md)" in text
        (line,) = [line for line in text.splitlines() if f"]({key}/summary.md)" in line]
        assert line.endswith(f"| {counts} |"), key


def test_the_page_of_gains_is_what_the_records_say() -> None:
    from noren_papers.gains import gains

    page = (PAGE.parent / "gains.md").read_text(encoding="utf-8")
    assert page == gains(PAGE.parent)
    for line in page.splitlines()[6:]:
        *_, worst, reason = line.strip("| ").rsplit(" | ", 2) if not line.endswith("|  |") else (line, "", "")
        if worst and float(worst.split(" ")[0]) > 1.005:
            assert len(reason) > 20, line


def test_summaries_are_what_the_records_say_and_short() -> None:
    from noren_papers.registry import papers
    from noren_papers.summary import markdown
    from noren_papers.write import read_records

    for paper in papers():
        folder = PAGE.parent / paper.key
        text = (folder / "summary.md").read_text(encoding="utf-8")
        assert text == markdown(paper, read_records(paper, folder)), paper.key
        assert len(text.split()) <= 3000, paper.key
