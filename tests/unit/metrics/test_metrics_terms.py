"""What left-out terms cost, what they leave to believe, and count queries with a condition on terms."""

from __future__ import annotations

import numpy as np
import pytest

from noren.engines import Recode
from noren.errors import QueryError
from noren.metrics.general import GeneralColumn, GeneralTable
from noren.metrics.queries import Workload, random_workload
from noren.metrics.term_losses import (
    TermWorkload,
    belief_change,
    estimated_term_counts,
    joint_terms,
    term_loss,
    term_workload,
    true_term_counts,
)
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.statements import TermCells
from tests.oracles.term_error import term_query_error


def cells(d: int, *sets: list[int]) -> TermCells:
    record = np.repeat(np.arange(len(sets)), [len(own) for own in sets])
    return TermCells.from_entries(d, len(sets), record, np.array([t for own in sets for t in own], np.int64))


def groups(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


# ---------------------------------------------------------------- cost


@pytest.mark.parametrize(
    ("sizes", "removed", "cost"),
    [
        ([9] * 5, [8, 8, 0, 0, 0], 0.25860569504839387),
        ([9] * 5, [9, 8, 0, 0, 0], 0.3293028475241969),
        ([3, 2], [1, 0], 0.1),
    ],
)
def test_the_cost_of_one_group_by_hand(sizes, removed, cost):
    had = cells(9, *(list(range(size)) for size in sizes))
    left = cells(9, *(list(range(gone, size)) for size, gone in zip(sizes, removed, strict=True)))
    loss = term_loss(had, left, groups(*[0] * len(sizes)))
    assert loss.cost.tolist() == pytest.approx([cost])
    assert loss.removed == sum(removed)
    assert loss.entries == sum(sizes)
    assert loss.average_group_size == len(sizes)


def test_means_weigh_groups_or_records():
    had = cells(2, [0], [0, 1], [0, 1], [1])
    left = cells(2, [], [0, 1], [0, 1], [1])
    loss = term_loss(had, left, groups(0, 1, 1, 1))
    assert loss.cost.tolist() == [1, 0]
    assert loss.mean_over_groups == 0.5
    assert loss.mean_over_records == 0.25
    assert loss.share == pytest.approx(1 / 6)
    assert loss.average_group_size == 2


def test_a_dropped_record_loses_everything():
    had = cells(2, [0, 1], [0], [1])
    loss = term_loss(had, had, groups(-1, 0, 0))
    assert loss.cost.tolist() == [0]
    assert loss.dropped == 1
    assert loss.mean_over_groups == 0
    assert loss.mean_over_records == pytest.approx(1 / 3)
    assert loss.share == 0.5


def test_no_terms_no_records_no_cost():
    loss = term_loss(cells(3, [], []), cells(3, [], []), groups(0, 0))
    assert (loss.cost.tolist(), loss.share, loss.mean_over_records) == ([0], 0, 0)
    loss = term_loss(cells(3, [1]), cells(3, [1]), groups(-1))
    assert (loss.mean_over_groups, loss.mean_over_records, loss.share, loss.average_group_size) == (0, 1, 1, 0)


def test_sets_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="differ in their number of records"):
        term_loss(cells(1, [0]), cells(1, [0]), groups(0, 0))
    with pytest.raises(ValueError, match="more terms after"):
        term_loss(cells(1, []), cells(1, [0]), groups(0))


def test_columns_read_together_share_known_terms_and_keep_unknown_ones_apart():
    first, second = cells(4, [0, 2], [3]), cells(3, [0, 1], [2])
    both = joint_terms([first, second], known=2)
    assert [both.data[a:b].tolist() for a, b in zip(both.offsets, both.offsets[1:], strict=False)] == [
        [0, 1, 2],
        [3, 4],
    ]
    assert joint_terms([first], known=2) is first


# ---------------------------------------------------------------- beliefs

KNOWLEDGE = Knowledge.from_pairs([("flu", "cough"), ("flu", "fever"), ("cold", "cough"), ("gout", "pain")])
COUGH, FEVER, PAIN = KNOWLEDGE.encode(["cough", "fever", "pain"]).tolist()
FLU, COLD, GOUT = (KNOWLEDGE.labels.index(name) for name in ("flu", "cold", "gout"))


def test_beliefs_of_groups_by_hand():
    alpha = np.array([0.5, 0.25, 0.25])[[("flu", "cold", "gout").index(label) for label in KNOWLEDGE.labels]]
    found = belief_change(cells(3, [COUGH], [FEVER], [PAIN]), groups(0, 0, 1), KNOWLEDGE, alpha)
    assert found.peak.tolist() == pytest.approx([0.75, 1.0])  # flu by cough and by fever, gout by pain
    assert found.rise.tolist() == pytest.approx([0.25, 0.75])
    assert found.records.tolist() == [2, 1]
    assert found.mean_over_groups == pytest.approx(0.5)
    assert found.mean_over_records == pytest.approx((0.25 * 2 + 0.75) / 3)
    assert found.highest == pytest.approx(0.75)
    assert found.highest_belief == pytest.approx(1.0)


def test_an_unknown_term_links_to_nothing_and_may_leave_the_prior():
    alpha = np.full(3, 1 / 3)
    sets = cells(5, [FEVER], [FEVER, 4])
    assert belief_change(sets, groups(0, 0), KNOWLEDGE, alpha).peak.tolist() == pytest.approx([0.5])
    found = belief_change(sets, groups(0, 0), KNOWLEDGE, alpha, "prior")
    assert found.peak.tolist() == pytest.approx([0.5 + 1 / 6])


def test_dropped_records_teach_nothing():
    alpha = np.full(3, 1 / 3)
    sets = cells(3, [FEVER], [], [PAIN])
    found = belief_change(sets, groups(-1, 0, -1), KNOWLEDGE, alpha)
    assert found.records.tolist() == [1]
    assert found.highest == pytest.approx(0)
    nobody = belief_change(sets, groups(-1, -1, -1), KNOWLEDGE, alpha)
    assert (nobody.highest, nobody.mean_over_groups, nobody.mean_over_records, nobody.highest_belief) == (0, 0, 0, 0)


def test_groups_in_parts_give_the_same(monkeypatch):
    alpha = np.full(3, 1 / 3)
    sets = cells(3, *([[COUGH], [FEVER], [PAIN], []] * 10))
    group = np.arange(40) // 3
    whole = belief_change(sets, group, KNOWLEDGE, alpha)
    monkeypatch.setattr("noren.models.kernels.AT_ONCE", 15)
    parts = belief_change(sets, group, KNOWLEDGE, alpha)
    assert (whole.rise == parts.rise).all()
    assert (whole.peak == parts.peak).all()


# ---------------------------------------------------------------- queries


def view(keep: list[bool] | None = None, secret: bool = False) -> GeneralTable:
    """Four people of towns a, a, b, b; all publish "a or b"."""
    nodes = Nodes.from_members(3, ["ab", "c"], [(0, 1), (2,)])
    town = GeneralColumn(
        Column(role=Role.QUASI_IDENTIFIER).over("town", Domain(("a", "b", "c"))),
        np.array([0, 0, 1, 1]),
        Recode(nodes, np.zeros(4, int)),
    )
    job = GeneralColumn(Column(role=Role.SENSITIVE).over("job", Domain(("x", "y"))), np.array([0, 1, 0, 1]))
    columns = {"town": town} | ({"job": job} if secret else {})
    return GeneralTable(columns, np.array(keep or [True] * 4))


def asking(town: list[int], **terms: list[int]) -> TermWorkload:
    """One query per set-valued column, all with the same condition on the town."""
    chosen = np.zeros((len(terms), 3), bool)
    chosen[:, town] = True
    values = Workload({"town": chosen}, {"town": np.ones(len(terms), bool)})
    wanted = {name: np.isin(np.arange(4), own)[None].repeat(len(terms), 0) for name, own in terms.items()}
    return TermWorkload(values, wanted, {name: np.arange(len(terms)) == i for i, name in enumerate(terms)})


SIGNS = cells(4, [0, 1], [1], [], [0, 3])


def test_counts_by_hand():
    asked = asking([0], signs=[0, 3])
    assert len(asked) == 1
    assert true_term_counts(view(), {"signs": SIGNS}, asked).tolist() == [1]
    assert estimated_term_counts(view(), {"signs": SIGNS}, asked).tolist() == [1]  # two of them, each half in a
    left = cells(4, [1], [1], [], [3])
    assert estimated_term_counts(view(), {"signs": left}, asked).tolist() == [0.5]
    assert estimated_term_counts(view([True, True, True, False]), {"signs": SIGNS}, asked).tolist() == [0.5]
    assert estimated_term_counts(view([False] * 4), {"signs": SIGNS}, asked).tolist() == [0]
    assert true_term_counts(view([False] * 4), {"signs": SIGNS}, asked).tolist() == [1]
    assert true_term_counts(view(), {"signs": SIGNS}, asking([0], signs=[])).tolist() == [0]


def test_each_query_asks_about_its_own_column():
    more = cells(4, [2], [2], [2], [2])
    asked = asking([0, 1, 2], signs=[3], more=[2])
    assert true_term_counts(view(), {"signs": SIGNS, "more": more}, asked).tolist() == [1, 4]


def test_how_many_values_a_query_asks_for():
    terms = cells(100, *([i, i + 1] for i in range(0, 50, 2)), [])
    town = GeneralColumn(Column(role=Role.QUASI_IDENTIFIER).over("town", Domain(tuple("abcdefgh"))), np.zeros(26, int))
    age = GeneralColumn(
        Column(role=Role.QUASI_IDENTIFIER).over("age", Domain(tuple("12345678"), "integer")), np.zeros(26, int)
    )
    table = GeneralTable({"town": town, "age": age}, np.ones(26, bool))
    asked = term_workload(table, {"signs": terms}, dimensions=1, queries=300, selectivity=0.25)
    assert set(asked.wanted["signs"].sum(axis=1).tolist()) == {25}, "half of the 50 terms that occur"
    assert not asked.wanted["signs"][:, 50:].any()
    assert asked.wanted["signs"][:, :50].any(axis=0).all()
    for name in ("town", "age"):
        assert set(asked.values.chosen[name].sum(axis=1).tolist()) == {4}
    assert (asked.values.asked["town"] ^ asked.values.asked["age"]).all()
    gaps = np.diff(asked.values.chosen["age"].astype(int), axis=1)
    assert ((gaps != 0).sum(axis=1) > 2).any(), "ordered columns are asked for single values, not for a range"
    both = term_workload(table, {"signs": terms}, dimensions=2, queries=20, selectivity=0.125)
    assert set(both.wanted["signs"].sum(axis=1).tolist()) == {25}
    assert both.values.asked["town"].all()
    assert both.values.asked["age"].all()


def test_equal_seeds_give_equal_queries_and_only_quasi_identifiers_are_asked_for():
    one, two, other = (term_workload(view(secret=True), {"signs": SIGNS}, 1, 50, 0.1, s) for s in (3, 3, 4))
    assert one.values.chosen.keys() == {"town"}
    assert (one.wanted["signs"] == two.wanted["signs"]).all()
    assert (one.values.chosen["town"] == two.values.chosen["town"]).all()
    assert (one.wanted["signs"] != other.wanted["signs"]).any()


def test_intervals_stay_the_default_of_other_workloads():
    age = GeneralColumn(
        Column(role=Role.QUASI_IDENTIFIER).over("age", Domain(tuple("12345678"), "integer")), np.zeros(3, int)
    )
    table = GeneralTable({"age": age}, np.ones(3, bool))
    for intervals, most in ((True, 2), (False, 8)):
        chosen = random_workload(table, {}, None, 1, 200, 0.5, intervals=intervals).chosen["age"]
        changes = (np.diff(chosen.astype(int), axis=1) != 0).sum(axis=1).max()
        assert changes <= most
        assert intervals or changes > 2


def test_the_error_of_a_release_without_loss_is_0():
    table = GeneralTable(
        {
            "town": GeneralColumn(
                Column(role=Role.QUASI_IDENTIFIER).over("town", Domain(("a", "b", "c"))), np.array([0, 0, 1, 2])
            )
        },
        np.ones(4, bool),
    )
    found = term_query_error(table, {"signs": SIGNS}, {"signs": SIGNS}, queries=200, selectivity=0.1)
    assert found.mean == 0
    assert found.answered + found.empty == 200
    assert found.empty > 0, "queries that nobody meets are told, not counted"
    gone = term_query_error(table, {"signs": SIGNS}, {"signs": cells(4, [], [], [], [])}, queries=200)
    assert gone.mean == 1


def test_queries_that_make_no_sense_are_refused():
    for options in ({"dimensions": 0}, {"dimensions": 2}, {"selectivity": 0.0}, {"selectivity": 1.5}, {"queries": 0}):
        with pytest.raises(QueryError):
            term_query_error(view(), {"signs": SIGNS}, {"signs": SIGNS}, **options)
    empty = cells(4, [], [], [], [])
    with pytest.raises(QueryError, match="no record meets any"):
        term_query_error(view(), {"signs": empty}, {"signs": empty})
    secret = GeneralTable({"job": view(secret=True).columns["job"]}, np.ones(4, bool))
    with pytest.raises(QueryError, match="no quasi-identifier"):
        term_query_error(secret, {"signs": SIGNS}, {"signs": SIGNS})
