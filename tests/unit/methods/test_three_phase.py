"""The three-phase method: which groups stay exact, and what becomes of the residue."""

from __future__ import annotations

import numpy as np
import pytest

from noren.engines import Plan, Recode, Records
from noren.errors import RequirementNotMet
from noren.methods.three_phase import SecretCounts, Task, ThreePhase
from noren.models.base import Model
from noren.models.distinct_l_diversity import DistinctLDiversity
from noren.models.frequency_l_diversity import FrequencyLDiversity
from noren.models.k_anonymity import KAnonymity
from noren.models.tau_l_diversity import TauLDiversity
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from tests.oracles.grouping import eligible, table_of, tau_l

TOWNS = Hierarchy.from_tree({"north": ["a", "b", "c"], "süd": ["d", "é", "漢"]})


def order(n: int) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)


def town(recoding: Plan) -> Recode:
    column = recoding.treatments["town"]
    assert isinstance(column, Recode)
    return column


def groups_of(table: Records, recoding: Plan) -> dict[str, list[int]]:
    """Secrets by published town."""
    column = town(recoding)
    keep = np.ones(table.n, bool) if recoding.keep is None else recoding.keep
    out: dict[str, list[int]] = {}
    for node, secret in zip(column.data[keep], table.codes["secret"][keep], strict=True):
        out.setdefault(column.nodes.labels[node], []).append(int(secret))
    return out


def small() -> Records:
    """Town a is diverse, b has two of one secret too many, d is thin."""
    towns = [0] * 4 + [1] * 6 + [3] * 4
    secrets = [0, 0, 1, 2, 0, 0, 0, 0, 1, 2, 1, 1, 2, 2]
    return table_of({"town": towns}, {"secret": secrets}, {"town": TOWNS})


def test_eligible_groups_stay_and_the_residue_is_a_class() -> None:
    table = small()
    recoding = ThreePhase(refine=False).recode(table, [FrequencyLDiversity(on="secret", l=2)], order)
    found = groups_of(table, recoding)
    assert sorted(found["a"]) == [0, 0, 1, 2]
    assert all(eligible(secrets, 2) for secrets in found.values())
    assert sum(map(len, found.values())) == table.n
    residue = sum(len(found.get(label, [])) for label in ("*", "north"))
    assert residue == 4  # two of b's pillar, and a pair that makes them diverse


def test_a_residue_that_fits_the_limit_is_dropped_without_growing() -> None:
    table = small()
    recoding = ThreePhase(suppression=0.2).recode(table, [FrequencyLDiversity(on="secret", l=2)], order)
    assert recoding.keep is not None
    assert table.codes["secret"][~recoding.keep].tolist() == [0, 0]
    assert (town(recoding).nodes.sizes[town(recoding).data[recoding.keep]] == 1).all()
    kept = ThreePhase(suppression=0.1).recode(table, [FrequencyLDiversity(on="secret", l=2)], order)
    assert kept.keep is None


def world(n: int = 600) -> Records:
    rng = np.random.default_rng(8)
    quasi = {"town": rng.integers(0, 6, n), "age": rng.integers(0, 30, n)}
    return table_of(quasi, {"secret": np.minimum(rng.geometric(0.3, n) - 1, 7)}, {"town": TOWNS})


def test_entries_count_and_choose_by_chance() -> None:
    table = world()
    task = Task.of(table, [FrequencyLDiversity(on="secret", l=2)], 0.0, order(table.n))
    entries = SecretCounts.of(task, order)
    assert entries.counts.sum() == table.n
    values = np.repeat(np.arange(entries.groups), np.diff(entries.bounds)) * task.m + entries.values
    assert (np.diff(values) > 0).all()
    assert (values[entries.entry] == entries.group * task.m + table.codes["secret"]).all()
    half = entries.counts // 2
    staying = entries.staying(half)
    assert np.bincount(entries.entry[staying >= 0], minlength=len(half)).tolist() == half.tolist()
    other = SecretCounts.of(Task.of(table, [FrequencyLDiversity(on="secret", l=2)], 0.0, order(table.n)[::-1]), order)
    assert (other.staying(half) != staying).any()


@pytest.mark.parametrize("refine", [True, False])
def test_other_requirements_dissolve_small_groups(refine: bool) -> None:
    table = world()
    required: list[Model] = [FrequencyLDiversity(on="secret", l=2), KAnonymity(k=7)]
    recoding = ThreePhase(refine=refine).recode(table, required, order)
    parts = [column for column in recoding.recoded.values() if isinstance(column, Recode)]
    key = parts[0].data * 10_000 + parts[1].data
    for c in np.unique(key):
        secrets = table.codes["secret"][key == c].tolist()
        assert len(secrets) >= 7
        assert eligible(secrets, 2)


def test_refining_the_residue_loses_less() -> None:
    table = world()
    loss = []
    for refine in (True, False):
        recoding = ThreePhase(refine=refine).recode(table, [TauLDiversity(on="secret", tau=0.6, l=3)], order)
        parts = [column for column in recoding.recoded.values() if isinstance(column, Recode)]
        key = parts[0].data * 10_000 + parts[1].data
        assert all(tau_l(table.codes["secret"][key == c].tolist(), 0.6, 3) for c in np.unique(key))
        loss.append(np.mean([part.nodes.sizes[part.data].mean() for part in parts]))
    assert loss[0] < loss[1]


def test_out_of_reach() -> None:
    table = world()
    with pytest.raises(RequirementNotMet, match=r"l = 5 cannot be reached for 'secret'.*\n.*largest l is 3"):
        ThreePhase().recode(table, [FrequencyLDiversity(on="secret", l=5)], order)
    with pytest.raises(RequirementNotMet, match="k = 601"):
        ThreePhase().recode(table, [FrequencyLDiversity(on="secret", l=2), KAnonymity(k=601)], order)
    alone = table_of({"town": [0, 1, 2]}, {"secret": [0, 0, 0]}, {"town": TOWNS})
    with pytest.raises(RequirementNotMet, match="can be reached"):
        ThreePhase().recode(alone, [DistinctLDiversity(on="secret", l=2)], order)


def test_equal_records() -> None:
    table = table_of({"town": [4] * 9}, {"secret": [0, 1, 2] * 3}, {"town": TOWNS})
    recoding = ThreePhase().recode(table, [FrequencyLDiversity(on="secret", l=3)], order)
    assert groups_of(table, recoding).keys() == {"é"}


def test_problems() -> None:
    roles = {"town": Role.QUASI_IDENTIFIER, "secret": Role.SENSITIVE}
    assert ThreePhase().problems(roles, [FrequencyLDiversity(on="secret", l=2)]) == []
    assert "needs a requirement" in ThreePhase().problems(roles, [KAnonymity(k=2)])[0].message
