"""Verdicts on the paper's Figure 1, on a tiny case, and on groups before and after their cheapest removals.
from tests.statements import exact_column, term_column

Source: an independent brute force and exact search (golden/quasi_sensitive.json of the project's definitions); the
instance is the one of test_term_search.py. Here the code of the checks judges, which shares nothing with the searches.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.models import Evidence, Verdict
from noren.models.base import Overall
from noren.models.term_check import TermModel
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role
from noren.statements import CodeCells, TermCells
from noren.workflow.anonymize import run
from tests.golden.test_term_search import ENGINEERS, GROUPS, PRIOR, STUDENTS, TERM_BITS, TINY, TINY_ALPHA
from tests.statements import exact_column, term_column

FLU = ("coughing", "headache", "sore throat")
HEPATITIS = ("loss of appetite", "vomiting", "body aches", "dark urine")
FIGURE_1 = Knowledge.from_pairs([*(("Flu", term) for term in FLU), *(("Hepatitis B", term) for term in HEPATITIS)])


def verdict(
    model: TermModel,
    groups: list[list[list[str]]],
    knowledge: Knowledge,
    alpha: Any = None,
    terms: tuple[str, ...] = (),
) -> Verdict:
    """What a check says about groups of records."""
    names = (*knowledge.terms, *terms)
    place = {term: code for code, term in enumerate(names)}
    rows = [own for group in groups for own in group]
    record = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
    cells = TermCells.from_entries(
        len(names), len(rows), record, np.array([place[t] for own in rows for t in own], int)
    )
    where = np.repeat(np.arange(len(groups)), [len(group) for group in groups]).astype(np.uint8)
    columns = {
        "job": exact_column("job", 9, role=Role.QUASI_IDENTIFIER),
        "x": term_column("x", names, knowledge),
    }
    overall = {} if alpha is None else {"x": Overall(np.asarray(alpha), "the original")}
    (check,) = model.checks(Evidence(columns, overall))
    check.observe({"job": CodeCells(9, where), "x": cells})
    return check.verdict()


def test_figure_1_is_k_anonymous_and_tells_everything() -> None:
    """Students: beliefs (1, 0). Engineers: one linked to flu, one to nothing, so (0.5, 0)."""
    two = nr.models.QSDiversity(on="x", c=1, l=2)
    students = verdict(two, [STUDENTS], FIGURE_1)
    assert (students.holds, students.achieved, students.breaches) == (False, inf, 3)
    assert "more than 1 (bound 0.5)" in students.statement
    engineers = verdict(two, [ENGINEERS], FIGURE_1)
    assert (engineers.holds, engineers.breaches) == (False, 2)
    assert "more than 0.5 (bound 0.5)" in engineers.statement
    assert "1 records are linked to no label" in engineers.statement
    both = verdict(two, [STUDENTS, ENGINEERS], FIGURE_1)
    assert (both.records, both.breaches) == (5, 5)


def test_figure_1_after_its_cheapest_removals() -> None:
    """All seven terms of the students, and the headache of the engineer who vomits: he alone then has hepatitis."""
    bare: list[list[str]] = [[], [], []]
    mended = [["vomiting"], ["headache", "sore throat"]]
    found = verdict(nr.models.QSDiversity(on="x", c=1, l=2), [bare, mended], FIGURE_1)
    assert (found.holds, found.achieved) == (True, 1)
    assert verdict(nr.models.QSDiversity(on="x", c=1, l=3), [bare], FIGURE_1).holds is False, (
        "there are two labels only"
    )
    unknown = verdict(
        nr.models.QSDiversity(on="x", c=1, l=2), [[["headache", "hiccups"]]], FIGURE_1, terms=("hiccups",)
    )
    assert (unknown.holds, unknown.achieved) == (True, 0), "linked to nothing, it tells nothing"


@pytest.mark.parametrize("binary", [False, True])
def test_figure_1_released(binary: bool) -> None:
    """Tables 1a and 1b of the paper: sets of terms, or a yes/no column for each."""
    signs = [*STUDENTS, *ENGINEERS]
    columns = ("coughing", "vomiting", "headache", "sore throat")
    flags = {term: ["Yes" if term in own else "No" for own in signs] for term in columns}
    table = pa.table({"job": ["student"] * 3 + ["engineer"] * 2, **(flags if binary else {"signs": signs})})
    sets = {"role": "quasi-sensitive", "knowledge": FIGURE_1} | ({"columns": columns} if binary else {})
    policy = nr.Policy(
        attributes={"job": "quasi-identifier", "signs": sets},
        require=[nr.models.QSDiversity(on="signs", c=1, l=2)],
        method={"name": "suppress", "nodes": 10_000},
    )
    made = run(table, policy)
    (figures,) = made.facts.terms
    assert sorted(figures.cost.tolist()) == pytest.approx([1 / 6, 1.0])
    assert figures.optimal.all()
    frame = made.release.frame()
    shown = {job: sorted(map(sorted, part["signs"].to_list())) for (job,), part in frame.group_by("job")}
    assert shown == {"student": [[], [], []], "engineer": [["headache", "sore throat"], ["vomiting"]]}


def test_the_tiny_case_is_judged() -> None:
    group = [["a", "b", "c"], ["a", "b"]]
    found = verdict(nr.models.QSCloseness(on="x", t=0.5), [group], TINY, TINY_ALPHA)
    assert (found.achieved, found.holds) == (pytest.approx(0.5448623679425842), False)
    assert (found.breaches, found.basis) == (2, "the original")
    assert verdict(nr.models.QSDiversity(on="x", c=1, l=2), [group], TINY).achieved == pytest.approx(3)
    kept = [["b", "c"], ["a", "b"]]
    assert verdict(nr.models.QSDiversity(on="x", c=1, l=2), [kept], TINY).holds is True
    assert verdict(nr.models.QSCloseness(on="x", t=0.3), [kept], TINY, TINY_ALPHA).holds is True
    assert verdict(nr.models.QSDiversity(on="x", c=1, l=3), [kept], TINY).holds is False
    assert verdict(nr.models.QSDiversity(on="x", c=1, l=3), [[["c"], ["b"]]], TINY).holds is True
    assert verdict(nr.models.QSDiversity(on="x", c=1, l=4), [[["c"], ["b"]]], TINY).holds is False
    assert verdict(nr.models.QSDiversity(on="x", c=1, l=4), [[[], []]], TINY).holds is True
    assert verdict(nr.models.QSCloseness(on="x", t=0.1), [[[], []]], TINY, TINY_ALPHA).holds is True


REMOVED: list[tuple[int, dict[str, Any], list[list[int]]]] = [
    (0, {"c": 1, "l": 5}, [[0, 26, 37], [0, 15, 33, 43]]),
    (0, {"c": 1, "l": 20}, [[0, 12, 15, 33], [0, 11, 15, 33, 43]]),
    (0, {"c": 2, "l": 10}, [[], [0, 11, 15, 33, 43]]),
    (0, {"t": 0.4}, [[0, 26, 37], [0, 15, 33, 43]]),
    (0, {"t": 0.25}, [[0, 12, 15, 33], [0, 11, 15, 33, 43]]),
    (1, {"c": 1, "l": 5}, [[23, 55], [26, 44], [5, 11]]),
    (1, {"c": 1, "l": 20}, [[1, 23, 55], [10, 26, 44], [5, 6, 10, 46, 54]]),
    (1, {"c": 2, "l": 10}, [[], [], [5, 6, 11, 12, 54]]),
    (1, {"t": 0.4}, [[23, 55], [26, 44], [5, 11, 46]]),
    (1, {"t": 0.25}, [[1, 23, 33, 55], [10, 26, 27, 44], [6, 11, 12, 54]]),
]


@pytest.fixture(scope="module")
def instance() -> Knowledge:
    masks = [int(TERM_BITS[k : k + 15], 16) for k in range(0, len(TERM_BITS), 15)]
    sets = [[t for t in range(59) if mask >> t & 1] for mask in masks]
    return Knowledge.from_sets(sets, terms=[f"term {t}" for t in range(59)])


@pytest.mark.parametrize(("which", "asked", "removed"), REMOVED)
def test_optimal_removals_suffice_and_each_is_needed(
    instance: Knowledge, which: int, asked: dict[str, Any], removed: list[list[int]]
) -> None:
    """An optimum that could take any one term back would not be one."""
    alpha = [int(digit, 16) / 1000 for digit in PRIOR]
    model: TermModel = (
        nr.models.QSDiversity(on="x", **asked) if "c" in asked else nr.models.QSCloseness(on="x", **asked)
    )

    def holds(gone: list[list[int]]) -> bool | None:
        kept = [
            [f"term {t}" for t in own if t not in lost] for own, lost in zip(GROUPS[which], gone, strict=True)
        ]  # fmt: skip
        return verdict(model, [kept], instance, alpha).holds

    assert holds(removed) is True
    assert holds([[] for _ in removed]) is False
    for record, lost in enumerate(removed):
        for term in lost:
            back = [[t for t in own if (r, t) != (record, term)] for r, own in enumerate(removed)]
            assert holds(back) is False
