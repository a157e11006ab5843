"""Mondrian on small random tables, against definitions written down record by record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.engines import Plan, Recode, Records
from noren.errors import RequirementNotMet
from noren.methods.mondrian import Mondrian
from noren.methods.mondrian.classes import Exchange, classes_of, divide_table
from noren.methods.mondrian.kernels.exchange import Reserve
from noren.models import MODELS
from noren.models.base import Model
from tests.oracles.mondrian import cuts, published_loss, satisfies, small_table

CHOICES: tuple[tuple[str, dict[str, float | str]], ...] = (
    ("distinct-l-diversity", {"l": 2}),
    ("frequency-l-diversity", {"l": 2}),
    ("entropy-l-diversity", {"l": 1.7}),
    ("recursive-cl-diversity", {"c": 2.0, "l": 2}),
    ("alpha-k-anonymity", {"alpha": 0.7, "k": 3}),
    ("tau-l-diversity", {"tau": 0.8, "l": 2}),
    ("beta-likeness", {"beta": 1.5, "form": "basic"}),
    ("beta-likeness", {"beta": 2.0, "form": "enhanced"}),
    ("delta-disclosure", {"delta": 1.2}),
    ("t-closeness", {"t": 0.3}),
    ("t-closeness", {"t": 0.25, "distance": "ordered"}),
    ("t-closeness", {"t": 0.2, "distance": "tree"}),
    ("p-sensitive-k-anonymity", {"p": 2, "k": 4}),
)


@st.composite
def requirement_lists(draw: st.DrawFn) -> list[Model]:
    found: list[Model] = [MODELS["k-anonymity"](k=draw(st.integers(2, 4)))] if draw(st.booleans()) else []
    for name, given_ in draw(st.lists(st.sampled_from(CHOICES), min_size=not found, max_size=2)):
        on = draw(st.sampled_from([("s0",), ("s1",), ("s0", "s1")]))
        found.append(MODELS[name](on=on, **given_))
    return found


def order(n: int) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)


def members_of(keys: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(keys == key).tolist() for key in np.unique(keys) if key >= 0]


def published(recoding: Plan, keep: np.ndarray) -> np.ndarray:
    """Records that publish the same nodes share a number; dropped ones have -1."""
    nodes = np.stack([column.data for column in recoding.recoded.values()], axis=1)
    return np.where(keep, np.unique(nodes, axis=0, return_inverse=True)[1].ravel(), -1)


def loss(table: Records, classes: Sequence[Sequence[int]]) -> float:
    """Summed over records; a dropped record loses as much as possible."""
    kept = sum(len(members) for members in classes)
    inside = sum(len(members) * published_loss(table, name, members) for members in classes for name in table.quasi)
    return inside + (table.n - kept) * len(table.quasi)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    requirements=requirement_lists(),
    strict=st.booleans(),
    refinement=st.integers(0, 3),
    suppression=st.sampled_from([0.0, 0.3]),
    blind=st.sampled_from([False, True]),
)
def test_every_class_meets_every_requirement_and_covers_its_records(
    seed: int, n: int, requirements: list[Model], strict: bool, refinement: int, suppression: float, blind: bool
) -> None:
    if any(model.relative for model in requirements):
        suppression = 0.0
    table = small_table(seed, n)
    method = Mondrian(strict=strict, refinement=refinement, suppression=suppression, blind=blind)
    if not satisfies(table, range(n), requirements):
        with pytest.raises(RequirementNotMet):
            method.recode(table, requirements, order)
        return
    recoding = method.recode(table, requirements, order)
    keep = np.ones(n, bool) if recoding.keep is None else recoding.keep
    assert (~keep).sum() <= suppression * n
    for members in members_of(published(recoding, keep)):
        assert satisfies(table, members, requirements)
    for name, column in recoding.recoded.items():
        assert isinstance(column, Recode)
        assert column.nodes.covers(column.data[keep], table.codes[name][keep]).all()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 60),
    requirements=requirement_lists(),
    refinement=st.integers(0, 2),
    used=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_cuts_that_leave_records_behind_leave_classes_that_hold(
    seed: int, n: int, requirements: list[Model], refinement: int, used: float
) -> None:
    """Whether or not they lose less than the cuts alone, and however much the first cuts keep in reserve."""
    table = small_table(seed, n)
    if not satisfies(table, range(n), requirements):
        return
    bench = Exchange(table, requirements, order, {})
    bench.reserve = Reserve(used, 5.0)
    begins = divide_table(bench, n, Mondrian(refinement=refinement))
    parts = [part.tolist() for part in np.split(bench.records.who, begins[1:-1])]
    assert sorted(record for part in parts for record in part) == list(range(n))
    for members in parts:
        assert satisfies(table, members, requirements)
        for first, rest in cuts(table, members):
            assert not (satisfies(table, first, requirements) and satisfies(table, rest, requirements))
    assert bench.loss(begins) == pytest.approx(loss(table, parts))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), requirements=requirement_lists())
def test_no_permitted_cut_is_left(seed: int, n: int, requirements: list[Model]) -> None:
    table = small_table(seed, n)
    if not satisfies(table, range(n), requirements):
        return
    classes, count = classes_of(table, requirements, order, Mondrian(refinement=0))
    parts = members_of(classes)
    assert len(parts) == count
    for members in parts:
        for first, rest in cuts(table, members):
            assert not (satisfies(table, first, requirements) and satisfies(table, rest, requirements))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 60), k=st.integers(2, 5), l=st.integers(1, 2))
def test_every_step_lowers_the_loss(seed: int, n: int, k: int, l: int) -> None:  # noqa: E741
    table = small_table(seed, n)
    requirements: list[Model] = [MODELS["k-anonymity"](k=k)]
    requirements += [MODELS["distinct-l-diversity"](l=l, on=("s0",))] if l > 1 else []
    if not satisfies(table, range(n), requirements):
        return
    steps = [Mondrian(refinement=0), Mondrian(refinement=1), Mondrian(refinement=4)]
    losses = [loss(table, members_of(classes_of(table, requirements, order, step)[0])) for step in steps]
    assert losses[0] <= loss(table, [range(n)]) + 1e-9
    assert losses[1] <= losses[0] + 1e-9
    assert losses[2] <= losses[1] + 1e-9
    dropping = Mondrian(refinement=1, suppression=0.5)
    assert loss(table, members_of(classes_of(table, requirements, order, dropping)[0])) <= losses[1] + 1e-9


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), k=st.integers(2, 4))
def test_the_first_cut_is_the_best_one(seed: int, n: int, k: int) -> None:
    """A table that one cut finishes shows which cut was chosen."""
    table = small_table(seed, n)
    requirements = [MODELS["k-anonymity"](k=max(k, n // 2 - 1))]
    if n < 2 * requirements[0].parameters()["k"]:
        return
    classes, count = classes_of(table, requirements, order, Mondrian(refinement=0))
    allowed = [
        loss(table, sides) for sides in cuts(table, range(n)) if all(satisfies(table, s, requirements) for s in sides)
    ]
    if count == 2:
        assert loss(table, members_of(classes)) == pytest.approx(min(allowed))
    elif count == 1:
        assert not allowed
