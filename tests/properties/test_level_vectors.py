"""Incognito's list of level vectors, and those with fixed levels, against the whole lattice."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.errors import RequirementNotMet
from noren.methods.incognito.lattice import LOSSES
from noren.methods.incognito.search import best_levels, fixed_full_domain
from noren.methods.requirements import compiled
from tests.oracles import incognito as oracle
from tests.properties.test_incognito import models, told, worlds


def everything(world: dict[str, Any], loss: str, limit: int) -> dict[tuple[int, ...], float]:
    """Every level vector that can be published, with its loss."""
    table, trees = world["table"], world["trees"]
    rows, secrets, tests = told(world)
    numeric = [table.columns[name].domain.kind == "integer" for name in table.quasi]
    numbers = [list(map(float, tree.leaves)) if one else None for tree, one in zip(trees, numeric, strict=True)]
    out = {}
    for vector in product(*(range(tree.height + 1) for tree in trees)):
        classes = oracle.classes_at(vector, trees, rows)
        failing = [r for r in classes.values() if not all(test([secrets[m] for m in r]) for test in tests)]
        dropped = {record for records in failing for record in records}
        if len(dropped) <= limit:
            weights = [1.0] * len(trees)
            out[vector] = oracle.loss_at(loss, vector, trees, rows, classes, dropped, weights, numbers)
    return out


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=25)
@given(world=worlds(), suppression=st.sampled_from([0.0, 0.3]), count=st.integers(1, 6))
def test_the_best_are_listed_in_order(loss: str, world: dict[str, Any], suppression: float, count: int) -> None:
    table = world["table"]
    known = everything(world, loss, int(suppression * table.n + 1e-9))
    found = best_levels(table, compiled(table, models(world)), loss, suppression, count=count)
    assert len(found) == min(count, len(known))
    losses = sorted(known.values())[:count]
    assert [one.loss for one in found] == pytest.approx(losses, abs=2e-6)
    assert len({tuple(one.levels.values()) for one in found}) == len(found)
    for one in found:
        assert known[tuple(one.levels.values())] == pytest.approx(one.loss, abs=2e-6)


@settings(max_examples=60)
@given(world=worlds(), suppression=st.sampled_from([0.0, 0.3]), data=st.data())
def test_fixed_levels_hold_or_are_refused(world: dict[str, Any], suppression: float, data: st.DataObject) -> None:
    table, trees = world["table"], world["trees"]
    names = data.draw(st.lists(st.sampled_from(table.quasi), min_size=1, unique=True))
    fixed = {name: data.draw(st.integers(0, trees[table.quasi.index(name)].height)) for name in names}
    known = everything(world, "granularity", int(suppression * table.n + 1e-9))
    fit = {v: x for v, x in known.items() if all(v[table.quasi.index(name)] == fixed[name] for name in fixed)}
    need = compiled(table, models(world))
    if not fit:
        with pytest.raises(RequirementNotMet, match="do not meet"):
            fixed_full_domain(table, need, fixed, suppression=suppression)
        return
    found = fixed_full_domain(table, need, fixed, suppression=suppression)
    assert tuple(found.levels.values()) in fit
    assert found.loss == pytest.approx(min(fit.values()), abs=1e-9)
    assert found.dropped == int(np.sum(~found.keep)) <= int(suppression * table.n + 1e-9)
