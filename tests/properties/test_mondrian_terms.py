"""Mondrian under requirements on terms, on small random tables, against beliefs in fractions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.errors import RequirementNotMet
from noren.methods.mondrian import Mondrian
from noren.methods.mondrian.classes import classes_of
from noren.methods.mondrian.kernels.term_rules import terms_hold
from noren.methods.mondrian.terms import term_rules
from noren.models import MODELS
from noren.models.base import Model
from tests.oracles.mondrian import cuts
from tests.oracles.mondrian_terms import all_satisfied, random_table, terms_satisfy


@st.composite
def term_models(draw: st.DrawFn) -> Model:
    on = draw(st.sampled_from([("a",), ("a", "b"), ("c",), ("b", "c")]))
    unlinked = draw(st.sampled_from(["ignore", "prior"]))
    if draw(st.booleans()):
        c, l = draw(st.sampled_from([0.5, 1.0, 2.0, 5.0])), draw(st.integers(2, 5))  # noqa: E741
        return MODELS["qs-diversity"](c=c, l=l, on=on, unlinked=unlinked)
    distance = draw(st.sampled_from(["l2", "emd"]))
    return MODELS["qs-closeness"](t=draw(st.sampled_from([0.1, 0.25, 0.4, 0.7])), distance=distance, on=on,
                                  unlinked=unlinked)  # fmt: skip


@st.composite
def requirement_lists(draw: st.DrawFn) -> list[Model]:
    found = draw(st.lists(term_models(), min_size=1, max_size=2))
    if draw(st.booleans()):
        found.append(MODELS["k-anonymity"](k=2))
    if draw(st.booleans()):
        found.append(MODELS["distinct-l-diversity"](l=2, on=("s0",)))
    return found


def order(n: int) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)


def members_of(classes: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(classes == c).tolist() for c in np.unique(classes) if c >= 0]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), model=term_models(), data=st.data())
def test_a_class_is_judged_as_the_formulas_say(seed: int, n: int, model: Model, data: st.DataObject) -> None:
    table = random_table(seed, n)
    terms = term_rules(table, [model])
    for _ in range(4):
        members = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
        terms.members[: len(members)] = members
        assert terms_hold(terms, len(members)) == terms_satisfy(table, members, model)
        assert not terms.belief.any()


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 30),
    requirements=requirement_lists(),
    strict=st.booleans(),
    refinement=st.integers(0, 3),
    suppression=st.sampled_from([0.0, 0.3]),
)
def test_every_class_meets_every_requirement(
    seed: int, n: int, requirements: list[Model], strict: bool, refinement: int, suppression: float
) -> None:
    table = random_table(seed, n)
    method = Mondrian(strict=strict, refinement=refinement, suppression=suppression)
    reachable = all_satisfied(table, range(n), requirements)
    if not reachable:
        with pytest.raises(RequirementNotMet):
            method.recode(table, requirements, order)
        return
    recoding = method.recode(table, requirements, order)
    assert not recoding.omitted
    keep = np.ones(n, bool) if recoding.keep is None else recoding.keep
    nodes = np.stack([column.data for column in recoding.recoded.values()], axis=1)
    published = np.where(keep, np.unique(nodes, axis=0, return_inverse=True)[1].ravel(), -1)
    for members in members_of(published):
        assert all_satisfied(table, members, requirements)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 14), requirements=requirement_lists())
def test_no_permitted_cut_is_left(seed: int, n: int, requirements: list[Model]) -> None:
    table = random_table(seed, n)
    if not all_satisfied(table, range(n), requirements):
        return
    for members in members_of(classes_of(table, requirements, order, Mondrian(refinement=0))[0]):
        for sides in cuts(table, members):
            assert not all(all_satisfied(table, side, requirements) for side in sides)
