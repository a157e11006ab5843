"""1-D l-diversity and k-anonymity along the Hilbert curve."""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

import numpy as np
import pytest

from noren.engines import Plan, Recode
from noren.errors import RequirementNotMet
from noren.methods.curve_kernels import best_cuts
from noren.methods.hilbert import Hilbert, along_curve, walk_ranks
from noren.models.base import Model
from noren.models.distinct_l_diversity import DistinctLDiversity
from noren.models.entropy_l_diversity import EntropyLDiversity
from noren.models.frequency_l_diversity import FrequencyLDiversity
from noren.models.k_anonymity import KAnonymity
from noren.models.semantic_diversity import SemanticDiversity
from noren.models.t_closeness import TCloseness
from noren.models.tau_l_diversity import TauLDiversity
from noren.ragged import row_numbers
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from tests.oracles.grouping import table_of

AGES = Hierarchy.from_widths([str(age) for age in range(20, 60)], [5, 10, 20])
PAPER = Hilbert(blind=False)
ROLES = {"age": Role.QUASI_IDENTIFIER, "illness": Role.SENSITIVE}


def order(n: int) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)


def people(n: int = 200, m: int = 6, seed: int = 1):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    quasi = {"age": rng.integers(0, 40, n), "town": rng.integers(0, 5, n)}
    return table_of(quasi, {"illness": rng.integers(0, m, n)}, {"age": AGES})


def classes(recoding: Plan) -> np.ndarray:
    columns = [column for column in recoding.recoded.values() if isinstance(column, Recode)]
    sizes = [len(column.nodes) for column in columns]
    return row_numbers([column.data for column in columns], sizes, len(columns[0].data))


def utility(recoding: Plan) -> float:
    columns = [column for column in recoding.recoded.values() if isinstance(column, Recode)]
    return float(np.mean([(1 / column.nodes.sizes[column.data]).mean() for column in columns]))


def test_leaves_are_ranked_by_a_walk_of_their_tree() -> None:
    tree = Hierarchy.from_rows([["a", "x", "*"], ["b", "y", "*"], ["c", "x", "*"], ["d", "z", "*"], ["e", "y", "*"]])
    assert walk_ranks(tree).tolist() == [0, 2, 1, 4, 3]


def test_the_curve_visits_equal_records_together() -> None:
    table = people()
    curve = along_curve(table, order(table.n))
    assert sorted(curve.tolist()) == list(range(table.n))
    key = table.codes["age"][curve] * 5 + table.codes["town"][curve]
    assert np.count_nonzero(np.diff(key)) + 1 == len(np.unique(key))


@pytest.mark.parametrize("l", [2, 4])
def test_every_class_is_diverse(l: int) -> None:
    table = people()
    recoding = PAPER.recode(table, [FrequencyLDiversity(on="illness", l=l)], order)
    assert recoding.keep is None
    assert recoding.notes == (f"illness: groups of l = {l}",)
    key = classes(recoding)
    for c in np.unique(key):
        counts = np.bincount(table.codes["illness"][key == c])
        assert counts.max() * l <= counts.sum()


def test_a_larger_l_costs_more() -> None:
    table = people()
    found = [
        utility(Hilbert(l=l, blind=False).recode(table, [EntropyLDiversity(on="illness", l=1.5)], order))
        for l in (2, 3, 4)
    ]
    assert found[0] > found[1] > found[2]


def test_k_joins_neighbouring_groups_instead_of_raising_l() -> None:
    table = people()
    required: list[Model] = [FrequencyLDiversity(on="illness", l=2), KAnonymity(k=20)]
    recoding = PAPER.recode(table, required, order)
    assert np.unique(classes(recoding), return_counts=True)[1].min() >= 20
    assert recoding.notes == ("illness: groups of l = 2",)


def test_requirements_that_no_l_reaches_join_groups() -> None:
    """5% of one secret: no l is eligible, but large classes hold both."""
    rng = np.random.default_rng(2)
    table = table_of({"age": rng.integers(0, 40, 400)}, {"illness": np.arange(400) % 20 == 0}, {"age": AGES})
    recoding = PAPER.recode(table, [DistinctLDiversity(on="illness", l=2)], order)
    key = classes(recoding)
    assert len(np.unique(key)) > 1
    assert all(len(np.unique(table.codes["illness"][key == c])) == 2 for c in np.unique(key))
    close = PAPER.recode(table, [TCloseness(on="illness", t=0.05)], order)
    key = classes(close)
    assert all(abs(table.codes["illness"][key == c].mean() - 0.05) <= 0.05 + 1e-9 for c in np.unique(key))


def test_not_eligible() -> None:
    table = table_of({"age": range(8)}, {"illness": [0, 0, 0, 0, 1, 2, 3, 4]}, {"age": AGES})
    with pytest.raises(RequirementNotMet, match=r"l = 3 cannot be reached for 'illness'.*\n.*largest l is 2"):
        PAPER.recode(table, [FrequencyLDiversity(on="illness", l=3)], order)
    with pytest.raises(RequirementNotMet, match="l = 2 was tried"):
        PAPER.recode(table, [TauLDiversity(on="illness", tau=0.3, l=5)], order)
    recoding = Hilbert(suppression=0.25, blind=False).recode(table, [FrequencyLDiversity(on="illness", l=3)], order)
    assert recoding.keep is not None
    assert table.codes["illness"][~recoding.keep].tolist() == [0, 0]


def test_one_secret_for_everybody() -> None:
    table = table_of({"age": range(10)}, {"illness": [0] * 10}, {"age": AGES})
    with pytest.raises(RequirementNotMet, match="No l of 2 or more"):
        PAPER.recode(table, [FrequencyLDiversity(on="illness", l=2)], order)
    with pytest.raises(RequirementNotMet, match="no l of 2 or more can be reached"):
        PAPER.recode(table, [DistinctLDiversity(on="illness", l=2)], order)


def test_k_beyond_the_table() -> None:
    table = people(9)
    for required in ([KAnonymity(k=10)], [KAnonymity(k=10), FrequencyLDiversity(on="illness", l=2)]):
        with pytest.raises(RequirementNotMet, match=r"k = 10 needs at least 10 records.*\n.*largest k is 9"):
            PAPER.recode(table, required, order)
    assert len(np.unique(classes(PAPER.recode(table, [KAnonymity(k=9)], order)))) == 1


def test_equal_records_lose_nothing() -> None:
    labels = {"illness": ["grippe", "病", "ж", "flu"]}
    table = table_of({"age": [3] * 12}, {"illness": list(range(4)) * 3}, {"age": AGES}, labels)
    for required in ([KAnonymity(k=5)], [FrequencyLDiversity(on="illness", l=4)]):
        assert utility(PAPER.recode(table, required, order)) == 1.0


@pytest.mark.parametrize("k", [2, 7, 40, 100])
def test_cuts_keep_k_and_lose_less_than_even_chunks(k: int) -> None:
    table = people(1000)
    recoding = PAPER.recode(table, [KAnonymity(k=k)], order)
    assert np.unique(classes(recoding), return_counts=True)[1].min() >= k
    codes = np.sort(table.codes["age"])[:, None]
    at, share = np.zeros((1, 1, 40), np.int64), np.arange(40.0)[None, None] / 39
    runs, count = best_cuts(codes, np.array([1]), at, share, k)
    lengths = np.bincount(runs)
    assert count == len(lengths)
    assert lengths.min() >= k

    def loss(run: np.ndarray) -> float:
        return sum(np.ptp(codes[run == r]) * (run == r).sum() for r in np.unique(run))

    assert loss(runs) <= loss(np.minimum(np.arange(1000) // k, 1000 // k - 1))


def test_problems() -> None:
    method = PAPER
    assert method.problems(ROLES, [FrequencyLDiversity(on="illness", l=2), KAnonymity(k=3)]) == []
    assert method.problems(ROLES, [KAnonymity(k=3)]) == []
    assert "needs a requirement" in method.problems(ROLES, [])[0].message
    two = [FrequencyLDiversity(on=("illness", "income"), l=2)]
    assert Hilbert().problems({**ROLES, "income": Role.SENSITIVE}, two) == []
    assert "l has no effect" in Hilbert(l=2).problems(ROLES, two[:0])[0].message
    assert "protects one sensitive column" in method.problems({**ROLES, "income": Role.SENSITIVE}, two)[0].message
    assert "cannot meet" in method.problems(ROLES, [SemanticDiversity(on="illness", l=2, d=0.5)])[0].message
    none = method.problems({"illness": Role.SENSITIVE}, [FrequencyLDiversity(on="illness", l=2)])
    assert "generalises quasi-identifiers" in none[0].message


@pytest.mark.parametrize("l", [2, 3])
def test_blind_runs_are_dealt_to_groups_that_hold(l: int) -> None:
    table = people(600)
    required: list[Model] = [FrequencyLDiversity(on="illness", l=l), KAnonymity(k=4)]
    found = Hilbert().recode(table, required, order)
    key = classes(found)
    sizes = np.unique(key, return_counts=True)[1]
    assert sizes.min() >= 4
    assert np.median(sizes) < found.facts["class_size"], "runs are dealt to smaller groups"
    for c in np.unique(key):
        counts = np.bincount(table.codes["illness"][key == c])
        assert counts.max() * l <= counts.sum()


def test_a_coin_decides_whether_a_size_that_holds_is_taken() -> None:
    """So no size proves that a smaller one failed."""
    table = people(600)
    asked: list[Model] = [FrequencyLDiversity(on="illness", l=2)]
    found = {
        Hilbert().recode(table, asked, np.random.default_rng(seed).permutation).facts["class_size"]
        for seed in range(30)
    }
    assert len(found) > 3
