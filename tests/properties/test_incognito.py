"""Incognito against the whole lattice: no level vector that meets the requirements has a smaller loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.engines import Records
from noren.errors import RequirementNotMet
from noren.methods.incognito import Incognito
from noren.methods.incognito.lattice import LOSSES
from noren.methods.incognito.search import best_full_domain
from noren.methods.requirements import compiled
from noren.models import MODELS
from noren.models.base import Model
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from tests.oracles import incognito as oracle


@dataclass(frozen=True)
class Asked:
    """A requirement, and what the oracle must know of it."""

    name: str
    column: int
    given: dict[str, float]

    @property
    def model(self) -> Model:
        """Unchecked: strengths between those that a policy can ask for are searched for as well."""
        on = () if self.name == "k-anonymity" else (f"s{self.column}",)
        return MODELS[self.name].model_construct(on=on, **self.given)


@st.composite
def hierarchies(draw: st.DrawFn) -> Hierarchy:
    d = draw(st.integers(1, 5))
    levels = [tuple(str(value) for value in range(d))]
    groups = list(range(d))
    for height in range(draw(st.integers(0, 2))):
        merge = draw(st.lists(st.integers(0, 2), min_size=5, max_size=5))
        groups = [merge[group] for group in groups]
        levels.append(tuple(f"{height}:{group}" for group in groups))
    return Hierarchy(tuple(levels))


@st.composite
def requirements(draw: st.DrawFn, columns: int) -> Asked:
    on = draw(st.integers(0, columns - 1))
    names = {
        "k-anonymity": {"k": st.integers(2, 5)},
        "distinct-l-diversity": {"l": st.integers(2, 3)},
        "frequency-l-diversity": {"l": st.sampled_from([1.5, 2, 3])},
        "entropy-l-diversity": {"l": st.sampled_from([1.5, 2, 2.5])},
        "recursive-cl-diversity": {"c": st.sampled_from([0.5, 1, 2, 3]), "l": st.integers(2, 3)},
        "alpha-k-anonymity": {"alpha": st.sampled_from([0.4, 0.5, 0.7]), "k": st.integers(2, 3)},
        "p-sensitive-k-anonymity": {"p": st.integers(2, 3), "k": st.integers(2, 4)},
    }
    model = draw(st.sampled_from(sorted(names)))
    return Asked(model, on, {name: draw(values) for name, values in names[model].items()})


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, Any]:
    n = draw(st.integers(1, 24))
    trees = draw(st.lists(hierarchies(), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    spread = draw(st.sampled_from([0.3, 1.0, 4.0]))
    columns, codes = {}, {}
    for i, tree in enumerate(trees):
        d = len(tree.leaves)
        codes[f"q{i}"] = np.minimum(rng.exponential(spread, n).astype(int), d - 1)
        domain = Domain(tree.leaves, draw(st.sampled_from(["integer", "string"])), "data")
        columns[f"q{i}"] = Column(role=Role.QUASI_IDENTIFIER).over(f"q{i}", domain, hierarchy=tree)
    sensitive = draw(st.integers(1, 2))
    for j in range(sensitive):
        values, codes[f"s{j}"] = np.unique(rng.integers(0, 4, n), return_inverse=True)
        domain = Domain(tuple(map(str, values.tolist())))
        columns[f"s{j}"] = Column(role=Role.SENSITIVE).over(f"s{j}", domain)
    asked = draw(st.lists(requirements(sensitive), min_size=1, max_size=2))
    return {"table": Records(n, columns, codes), "trees": trees, "asked": asked, "sensitive": sensitive}


def models(world: dict[str, Any]) -> list[Model]:
    return [one.model for one in world["asked"]]


def told(world: dict[str, Any]) -> tuple[list[list[int]], list[list[int]], list[oracle.Test]]:
    table = world["table"]
    rows = np.stack([table.codes[name] for name in table.quasi], axis=1).tolist()
    secrets = np.stack([table.codes[name] for name in table.sensitive], axis=1).tolist()
    tests = [oracle.requirement(one.name, one.column, **one.given) for one in world["asked"]]
    return rows, secrets, tests


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=40)
@given(world=worlds(), suppression=st.sampled_from([0.0, 0.0, 0.1, 0.3, 0.6]), weight=st.sampled_from([1.0, 3.0]))
def test_no_level_vector_is_better(loss: str, world: dict[str, Any], suppression: float, weight: float) -> None:
    table, trees = world["table"], world["trees"]
    rows, secrets, tests = told(world)
    weights = [weight] + [1.0] * (len(trees) - 1)
    numeric = [table.columns[name].domain.kind == "integer" for name in table.quasi]
    numbers = [
        list(map(float, tree.leaves)) if is_number else None for tree, is_number in zip(trees, numeric, strict=True)
    ]
    limit = int(suppression * table.n + 1e-9)
    expected = oracle.best(loss, trees, rows, secrets, tests, limit, weights, numbers)
    try:
        found = best_full_domain(table, compiled(table, models(world)), loss, suppression, {"q0": weight})
    except RequirementNotMet:
        assert expected is None
        return
    assert expected is not None
    vector = list(found.levels.values())
    classes = oracle.classes_at(vector, trees, rows)
    dropped = set(np.flatnonzero(~found.keep).tolist())
    for records in classes.values():
        holds = all(test([secrets[record] for record in records]) for test in tests)
        assert {record in dropped for record in records} == {not holds}
    assert len(dropped) == found.dropped <= limit
    here = oracle.loss_at(loss, vector, trees, rows, classes, dropped, weights, numbers)
    assert here == pytest.approx(expected, abs=1.1e-6 if loss == "height" else 1e-9)
    assert found.loss == pytest.approx(here, abs=1.1e-6 if loss == "height" else 1e-9)


@settings(max_examples=40)
@given(world=worlds(), suppression=st.sampled_from([0.0, 0.3]))
def test_a_recoding_publishes_nodes_that_cover_and_classes_that_hold(world: dict[str, Any], suppression: float) -> None:
    table = world["table"]
    _, secrets, tests = told(world)
    try:
        recoding = Incognito(suppression=suppression).recode(table, models(world), np.arange)
    except RequirementNotMet:
        return
    keep = np.ones(table.n, bool) if recoding.keep is None else recoding.keep
    assert set(recoding.treatments) == set(table.quasi)
    for name, column in recoding.recoded.items():
        assert column.nodes.covers(column.data, table.codes[name]).all()
    published: dict[tuple[int, ...], list[list[int]]] = {}
    for record in np.flatnonzero(keep).tolist():
        key = tuple(int(recoding.treatments[name].data[record]) for name in table.quasi)
        published.setdefault(key, []).append(secrets[record])
    assert published
    assert all(test(members) for members in published.values() for test in tests)
