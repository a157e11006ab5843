"""QS diversity and closeness: groups counted by hand, what verdicts rest on, and what is refused."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from noren.errors import ModelDoesNotApply
from noren.models import Evidence, QSCloseness, QSDiversity, Verdict
from noren.models.base import Overall
from noren.models.term_check import TermModel
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.statements import CellBatch, CodeCells, OpenCells, SetCells, Statement, TermCells
from tests.statements import exact_column, node_column, open_column, set_column, term_column

QUASI, TERMS = Role.QUASI_IDENTIFIER, Role.QUASI_SENSITIVE
KNOWN = Knowledge.from_pairs([("A", "x"), ("A", "y"), ("B", "x"), ("C", "y"), ("C", "z")], labels=["A", "B", "C", "D"])
"""x says A or B, y says A or C, z says C; x and y together say A, x and z nothing; no sign says D."""
WHERE = exact_column("where", 9, role=QUASI)


def column(
    name: str = "signs", knowledge: Knowledge | None = KNOWN, terms: str = "xyzw", role: Role = TERMS
) -> Statement:
    return term_column(name, tuple(terms), knowledge, role)


def sets(words: list[str], terms: str = "xyzw") -> TermCells:
    record = np.repeat(np.arange(len(words)), [len(word) for word in words])
    codes = np.array([terms.index(letter) for word in words for letter in word], np.int64)
    return TermCells.from_entries(len(terms), len(words), record, codes)


def batch(*groups: str) -> CellBatch:
    """One group per text, its records' terms separated by spaces; "-" has none."""
    words = [word.replace("-", "") for group in groups for word in group.split()]
    places = np.repeat(np.arange(len(groups)), [len(group.split()) for group in groups])
    return {"where": CodeCells(9, places.astype(np.uint8)), "signs": sets(words)}


def judged(
    model: TermModel, *groups: str, knowledge: Knowledge = KNOWN, overall: list[float] | None = None, parts: int = 1
) -> Verdict:
    told = {} if overall is None else {"signs": Overall(np.array(overall), "the original")}
    signs = column(knowledge=knowledge)
    (check,) = model.checks(Evidence({"where": WHERE, "signs": signs}, told))
    whole = batch(*groups)
    rows = len(whole["where"])
    for part in np.array_split(np.arange(rows), parts):
        check.observe({name: cells.take(part) for name, cells in whole.items()})
    return check.verdict()


# ---------------------------------------------------------------- diversity


@pytest.mark.parametrize(
    ("group", "c", "l", "ratio"),
    [
        ("x", 1, 2, 1),
        ("x x", 1, 2, 1),
        ("xy", 1, 2, inf),
        ("x y", 2, 2, 1),
        ("x y", 2, 3, 2),
        ("x y", 2, 4, inf),
        ("-", 1, 2, 1 / 3),
        ("-", 1, 4, 1),
        ("xy z", 1, 2, 1),
        ("xy xy z", 2, 2, 2),
        ("x xz", 1, 2, 1),
        ("xz", 1, 2, 0),
        ("w", 1, 2, 0),
        ("xw - ", 1, 2, 1 / 3),
    ],
)
def test_diversity_by_hand(group: str, c: float, l: int, ratio: float) -> None:  # noqa: E741
    verdict = judged(QSDiversity(on="signs", c=c, l=l), group)
    assert verdict.achieved == pytest.approx(ratio)
    assert verdict.holds is (ratio <= c)
    assert (verdict.required, verdict.basis) == (c, "the release alone")
    assert verdict.breaches == (0 if ratio <= c else len(group.split()))


def test_the_bound_is_not_strict_and_is_told() -> None:
    verdict = judged(QSDiversity(on="signs", c=1, l=2), "xy z", "- -")
    assert (verdict.holds, verdict.records, verdict.breaches) == (True, 4, 0)
    assert "no label of a group is believed with more than 0.5 (bound 0.5)" in verdict.statement
    failed = judged(QSDiversity(on="signs", c=0.9, l=2), "xy z", "- -")
    assert (failed.holds, failed.records, failed.breaches) == (False, 4, 2)


def test_weights_shift_beliefs() -> None:
    heavy = Knowledge.from_pairs(
        [("A", "x"), ("B", "x"), ("C", "y")], weights={"A": 3.0}, labels=["A", "B", "C"]
    )  # fmt: skip
    assert judged(QSDiversity(on="signs", c=3, l=2), "x", knowledge=heavy).achieved == pytest.approx(3)
    assert judged(QSDiversity(on="signs", c=3, l=2), "-", knowledge=heavy).achieved == pytest.approx(3 / 2)


def test_unlinked_records_dilute_or_believe_the_prior() -> None:
    prior = Knowledge.from_pairs([("A", "x"), ("B", "y"), ("C", "y")], priors={"A": 0.2, "B": 0.4, "C": 0.4})
    ignoring = judged(QSDiversity(on="signs", c=9, l=2), "x z", knowledge=prior)
    assert (ignoring.achieved, ignoring.holds) == (inf, False)
    believing = judged(QSDiversity(on="signs", c=9, l=2, unlinked="prior"), "x z", knowledge=prior)
    assert believing.achieved == pytest.approx(0.6 / 0.4)
    assert (believing.holds, believing.basis) == (True, "the release alone")
    for verdict in (ignoring, believing):
        assert "1 records are linked to no label" in verdict.statement


# ---------------------------------------------------------------- closeness

GIVEN = Knowledge.from_pairs([("A", "x"), ("B", "x"), ("B", "y")], priors={"A": 0.5, "B": 0.5})


@pytest.mark.parametrize(
    ("group", "euclidean", "moved"),
    [
        ("x x", 0, 0),
        ("y", sqrt(0.5), 0.5),
        ("x y", sqrt(2) / 4, 0.25),
        ("x w", sqrt(2) / 4, 0.5),
        ("w", sqrt(0.5), 1),
    ],
)
def test_closeness_by_hand(group: str, euclidean: float, moved: float) -> None:
    for distance, wanted in (("l2", euclidean), ("emd", moved)):
        model = QSCloseness(on="signs", t=0.3, distance=distance)
        verdict = judged(model, group, knowledge=GIVEN)
        assert verdict.achieved == pytest.approx(wanted, abs=1e-12)
        assert (verdict.holds, verdict.basis) == (wanted <= 0.3, "the release alone")
        assert judged(QSCloseness(on="signs", t=max(wanted, 1e-6), distance=distance), group, knowledge=GIVEN).holds


def test_the_rise_and_the_linked_records_alone_are_told() -> None:
    verdict = judged(QSCloseness(on="signs", t=0.4), "y w", knowledge=GIVEN)
    assert "no belief rises by more than 0;" in verdict.statement
    assert "among linked records only, the distance is at most 0.7071" in verdict.statement
    rising = judged(QSCloseness(on="signs", t=0.8), "y", "x", knowledge=GIVEN)
    assert "no belief rises by more than 0.5" in rising.statement
    assert "linked records alone" not in rising.statement


def test_where_the_prior_comes_from() -> None:
    model = QSCloseness(on="signs", t=0.5)
    estimated = judged(model, "x", "y", "-", "-")
    assert (estimated.holds, estimated.basis) == (None, "an estimate from the release")
    assert "give the original, or priors in the knowledge table" in estimated.statement
    told = judged(model, "x", "y", overall=[0.5, 0.25, 0.25, 0.0])
    assert (told.holds, told.basis) == (True, "the original")
    assert told.achieved == pytest.approx(sqrt(1 / 16 + 1 / 16))
    given = judged(model, "x", knowledge=GIVEN, overall=[0.9, 0.1])
    assert (given.achieved, given.basis) == (0, "the release alone")
    unsure = judged(QSDiversity(on="signs", c=1, l=2, unlinked="prior"), "x", "xz")
    assert (unsure.holds, unsure.basis) == (None, "an estimate from the release")


# ---------------------------------------------------------------- gathering


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_groups_may_stretch_over_batches(parts: int) -> None:
    verdict = judged(QSDiversity(on="signs", c=1, l=2), "xy z xy z", "x", "xy xy", parts=parts)
    assert (verdict.records, verdict.breaches) == (7, 2)


def test_columns_with_one_knowledge_are_read_together() -> None:
    cells = {"where": CodeCells(9, np.zeros(1, np.uint8)), "signs": sets(["x"]), "more": sets(["y"])}
    for other, holds in ((KNOWN, False), (Knowledge.from_pairs([("P", "y"), ("Q", "y")]), True)):
        columns = {"where": WHERE, "signs": column(), "more": column("more", other)}
        for check in QSDiversity(on=("signs", "more"), c=1, l=2).checks(Evidence(columns, {})):
            assert set(check.needs) == {"where", check.column} | ({"signs", "more"} if other is KNOWN else set())
            check.observe(cells)
            assert check.verdict().holds is holds


def test_columns_may_list_terms_in_different_orders() -> None:
    columns = {"where": WHERE, "signs": column(terms="zyx"), "more": column("more", terms="xyz")}
    cells = {
        "where": CodeCells(9, np.zeros(1, np.uint8)), "signs": sets(["x"], "zyx"), "more": sets(["y"], "xyz")
    }  # fmt: skip
    (check, _) = QSDiversity(on=("signs", "more"), c=1, l=2).checks(Evidence(columns, {}))
    check.observe(cells)
    assert check.verdict().holds is False


def test_groups_by_general_and_open_values() -> None:
    nodes = Nodes.from_runs(3, ["low", "rest"], [[(0, 1)], [(1, 3)]])
    model = QSDiversity(on="signs", c=1, l=2)
    general = node_column("where", 3, role=QUASI, nodes=nodes)
    loose = open_column("name", 0, role=QUASI)
    (check,) = model.checks(Evidence({"where": general, "name": loose, "signs": column()}, {}))
    check.observe(
        {
            "where": CodeCells(2, np.array([0, 0, 1])),
            "name": OpenCells(pa.array(["a", "b", "a"])),
            "signs": sets(["xy", "z", "z"]),
        }
    )
    assert check.verdict().breaches == 3


# ---------------------------------------------------------------- refusals


def refused(columns: list[Statement], match: str) -> None:
    with pytest.raises(ModelDoesNotApply, match=match):
        QSDiversity(on="signs", c=1, l=2).checks(Evidence({one.name: one for one in columns}, {}))


def test_columns_that_say_nothing_about_labels() -> None:
    refused([WHERE, column(knowledge=None)], "needs the knowledge table")
    refused([column()], "beside no quasi-identifier")
    refused([WHERE, exact_column("signs", 3, role=TERMS)], "makes no statement about column 'signs'")
    refused([set_column("where", 4, role=QUASI), column()], "equivalence classes cannot be formed")
    refused([column("other", role=QUASI), column()], "equivalence classes cannot be formed")


@pytest.mark.parametrize(
    "cells",
    [
        TermCells(4, np.array([0, 1]), np.array([4], np.int32)),
        TermCells(4, np.array([0, 1]), np.array([-1], np.int32)),
        TermCells(3, np.array([0, 1]), np.array([0], np.int32)),
        TermCells(4, np.array([0, 2]), np.array([0], np.int32)),
        TermCells(4, np.array([0, 0]), np.array([0], np.int32)),
        TermCells(4, np.array([1, 1]), np.array([0], np.int32)),
        CodeCells(4, np.zeros(1, np.uint8)),
        SetCells.from_codes(4, np.array([[0, 1]])),
    ],
    ids=["too high", "below 0", "another width", "too few", "too many", "a late start", "values", "sets"],
)
def test_cells_are_not_taken_on_trust(cells: Any) -> None:
    (check,) = QSDiversity(on="signs", c=1, l=2).checks(Evidence({"where": WHERE, "signs": column()}, {}))
    with pytest.raises(ModelDoesNotApply, match="column 'signs'"):
        check.observe({"where": CodeCells(9, np.zeros(1, np.uint8)), "signs": cells})


def test_a_check_needs_the_quasi_identifiers() -> None:
    (check,) = QSDiversity(on="signs", c=1, l=2).checks(Evidence({"where": WHERE, "signs": column()}, {}))
    assert set(check.needs) == {"where", "signs"}
    with pytest.raises(KeyError, match="where"):
        check.observe({"signs": sets(["x"])})


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": QSDiversity, "c": 0, "l": 2},
        {"model": QSDiversity, "c": inf, "l": 2},
        {"model": QSDiversity, "c": 1, "l": 1},
        {"model": QSCloseness, "t": 0},
        {"model": QSCloseness, "t": 2.1},
        {"model": QSCloseness, "t": 0.1, "distance": "l1"},
        {"model": QSCloseness, "t": 0.1, "unlinked": "skip"},
    ],
)
def test_parameters_have_bounds(wrong: dict[str, Any]) -> None:
    kind = wrong.pop("model")
    with pytest.raises(ValidationError):
        kind(on="signs", **wrong)
