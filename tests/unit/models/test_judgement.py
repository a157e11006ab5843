"""Judgements of the parts of a table merge: whatever the cut, the verdicts are those of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.designs.decoys import DecoyDesign
from noren.errors import ModelDoesNotApply, ReleaseError
from noren.models import MODELS, Evidence, Model, Overall, Verdict
from noren.models.base import Judgement
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import tree_of
from noren.schema.roles import Role
from noren.statements import CellBatch, CodeCells, GroupTable, OpenCells, SetCells, Statement, TermCells, take
from noren.statements.batch import PERSON
from tests.statements import (
    exact_column,
    group_column,
    member_column,
    node_column,
    open_column,
    set_column,
    term_column,
)

D = 6
TREE = Hierarchy((tuple("abcdef"), ("ab", "ab", "cd", "cd", "ef", "ef"), ("*",) * D))
FAR = np.abs(np.subtract.outer(np.arange(D), np.arange(D))).astype(float)
SIGNS = Knowledge.from_pairs([("A", "x"), ("A", "y"), ("B", "x"), ("C", "y"), ("C", "z"), ("D", "z")])
MEANING: dict[str, Any] = {"role": Role.SENSITIVE, "hierarchy": TREE, "distances": FAR}

OPTIONS: dict[str, dict[str, Any]] = {
    "belief": {"most": 0.5},
    "k-anonymity": {"k": 4},
    "distinct-l-diversity": {"l": 3},
    "frequency-l-diversity": {"l": 2},
    "entropy-l-diversity": {"l": 2.5},
    "recursive-cl-diversity": {"c": 2.0, "l": 2},
    "alpha-k-anonymity": {"alpha": 0.5, "k": 3},
    "p-sensitive-k-anonymity": {"p": 2, "k": 4},
    "tau-l-diversity": {"tau": 0.5, "l": 3},
    "t-closeness": {"t": 0.3},
    "beta-likeness": {"beta": 1.0},
    "delta-disclosure": {"delta": 1.0},
    "informed-belief": {"most": 0.5, "prior": dict(zip("abcdef", (30, 20, 20, 10, 10, 10), strict=True))},
    "expanded-k": {"k": 3},
    "local-privacy": {"epsilon": 1.0},
    "semantic-diversity": {"l": 2, "d": 2.0},
    "le-diversity": {"l": 2, "e": 1},
    "qs-diversity": {"c": 1.0, "l": 2},
    "qs-closeness": {"t": 0.4},
    "mechanism": {"most": 0.5},
    "m-invariance": {"m": 2},
}


@dataclass(frozen=True)
class World:
    """A published table with a secret x in one form."""

    columns: Mapping[str, Statement]
    cells: CellBatch
    overall: Mapping[str, Overall]
    ground: str
    """Which of its judges a model is asked for."""


def quasi(n: int, rng: np.random.Generator) -> tuple[dict[str, Statement], dict[str, Any]]:
    """A number and a free text, by which people can be found."""
    columns: dict[str, Statement] = {
        "number": exact_column("number", 3, role=Role.QUASI_IDENTIFIER),
        "text": open_column("text", role=Role.QUASI_IDENTIFIER),
    }
    texts = [["u", "v", None][code] for code in rng.integers(0, 3, n)]
    return columns, {"number": CodeCells(3, rng.integers(0, 3, n)), "text": OpenCells(pa.array(texts, pa.string()))}


def exact(n: int, rng: np.random.Generator) -> World:
    columns, cells = quasi(n, rng)
    secret = {"x": CodeCells(D, rng.integers(0, D, n))}
    return World({**columns, "x": exact_column("x", D, **MEANING)}, cells | secret, {}, "judge_classes")


def general(n: int, rng: np.random.Generator) -> World:
    columns, cells = quasi(n, rng)
    nodes = tree_of(TREE).nodes
    secret = {"x": CodeCells(len(nodes), rng.integers(0, len(nodes), n))}
    return World({**columns, "x": node_column("x", D, **MEANING)}, cells | secret, {}, "judge_classes")


def groups(n: int, rng: np.random.Generator) -> World:
    columns, cells = quasi(n, rng)
    ids = rng.integers(0, 4, n)
    table = GroupTable.from_codes(4, D, ids, rng.integers(0, D, n))
    secret = {"x": CodeCells(4, ids)}
    return World({**columns, "x": group_column("x", D, groups=table, **MEANING)}, cells | secret, {}, "judge_classes")


def sets(n: int, rng: np.random.Generator) -> World:
    columns, cells = quasi(n, rng)
    some = np.array([rng.choice(D, 3, replace=False) for _ in range(n)])
    shares = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    statement = set_column("x", D, DecoyDesign(d=D, eta=3, p=0.7), **MEANING)
    told = {"x": Overall(shares, "the original")}
    return World({**columns, "x": statement}, cells | {"x": SetCells.from_codes(D, some)}, told, "judge_sets")


def members(n: int, rng: np.random.Generator) -> World:
    columns, cells = quasi(n, rng)
    secret = {"x": CodeCells(D, rng.integers(0, D, n))}
    return World({**columns, "x": member_column("x", D, **MEANING)}, cells | secret, {}, "judge_members")


def terms(n: int, rng: np.random.Generator) -> World:
    columns, cells = quasi(n, rng)
    known = (*SIGNS.terms, "unknown")
    has = rng.random((n, len(known))) < 0.4
    secret = {"x": TermCells.from_entries(len(known), n, *np.nonzero(has))}
    told = {"x": Overall(np.full(len(SIGNS.labels), 1 / len(SIGNS.labels)), "the original")}
    return World({**columns, "x": term_column("x", known, SIGNS)}, cells | secret, told, "judge_terms")


WORLDS = {make.__name__: make for make in (exact, general, groups, sets, members, terms)}


def model_of(name: str) -> Model:
    on = {} if name == "k-anonymity" else {"on": "x"}
    return MODELS[name](**on, **OPTIONS[name])


def judges() -> list[tuple[str, str]]:
    """Every model with every kind of cell that it judges."""
    out = []
    for name in MODELS:
        for form, make in WORLDS.items():
            world = make(5, np.random.default_rng(0))
            try:
                Judgement.of(world.columns, [model_of(name)], world.overall)
            except ModelDoesNotApply:
                continue
            out.append((name, form))
    return out


JUDGES = judges()


def judged(world: World, models: list[Model], bounds: list[int], order: list[int]) -> list[Verdict]:
    """Verdicts of the parts between the bounds, each judged in two batches, and merged in some order."""
    parts = []
    for begin, end in pairwise(bounds):
        judgement = Judgement.of(world.columns, models, world.overall, show=3)
        middle = (begin + end) // 2
        for low, high in ((begin, middle), (middle, end)):
            judgement.observe(take(world.cells, slice(low, high)))
        parts.append(judgement)
    whole = Judgement.of(world.columns, models, world.overall, show=3)
    for number in order:
        whole.merge(parts[number])
    return whole.verdicts()


def alike(found: list[Verdict], wanted: list[Verdict]) -> None:
    """Equal but for the last digits of sums of beliefs."""
    assert [one.achieved for one in found] == pytest.approx([one.achieved for one in wanted], rel=1e-9)
    same = [replace(one, achieved=0.0, shortfalls=()) for one in found]
    assert same == [replace(one, achieved=0.0, shortfalls=()) for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert [(s.keys, s.records) for s in one.shortfalls] == [(s.keys, s.records) for s in other.shortfalls]
        assert [s.achieved for s in one.shortfalls] == pytest.approx([s.achieved for s in other.shortfalls], rel=1e-9)


def test_every_model_is_judged_on_every_ground_it_has() -> None:
    assert OPTIONS.keys() == MODELS.keys()
    assert {name for name, _ in JUDGES} == MODELS.keys()
    grounds = {form: make(5, np.random.default_rng(0)).ground for form, make in WORLDS.items()}
    for name, kind in MODELS.items():
        has = {way for way in set(grounds.values()) if getattr(kind, way) is not getattr(Model, way)}
        assert has <= {grounds[form] for other, form in JUDGES if other == name}


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize(("name", "form"), JUDGES)
@settings(max_examples=8)
@given(data=st.data(), n=st.integers(1, 60), seed=st.integers(0, 2**32 - 1))
def test_the_verdicts_of_parts_are_those_of_the_whole(
    name: str, form: str, parts: int, data: st.DataObject, n: int, seed: int
) -> None:
    world = WORLDS[form](n, np.random.default_rng(seed))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), min_size=parts - 1, max_size=parts - 1)))
    order = data.draw(st.permutations(range(parts)))
    models = [model_of(name)]
    whole = Judgement.of(world.columns, models, world.overall, show=3)
    whole.observe(world.cells)
    alike(judged(world, models, [0, *cuts, n], order), whole.verdicts())


@settings(max_examples=10)
@given(data=st.data(), n=st.integers(1, 60), seed=st.integers(0, 2**32 - 1), form=st.sampled_from(list(WORLDS)))
def test_all_requirements_of_a_table_merge_together(data: st.DataObject, n: int, seed: int, form: str) -> None:
    """Models that ask for the same classes share them, also after merging."""
    world = WORLDS[form](n, np.random.default_rng(seed))
    models = [model_of(name) for name, other in JUDGES if other == form]
    cuts = sorted(data.draw(st.lists(st.integers(0, n), min_size=4, max_size=4)))
    whole = Judgement.of(world.columns, models, world.overall, show=3)
    whole.observe(world.cells)
    alike(judged(world, models, [0, *cuts, n], data.draw(st.permutations(range(5)))), whole.verdicts())
    alone = [judged(world, [model], [0, n], [0])[0] for model in models]
    alike(whole.verdicts(), alone)


@pytest.mark.parametrize(("name", "form"), JUDGES)
def test_asking_for_verdicts_changes_nothing_and_more_may_follow(name: str, form: str) -> None:
    world = WORLDS[form](40, np.random.default_rng(3))
    models = [model_of(name)]
    asked, silent = (Judgement.of(world.columns, models, world.overall) for _ in range(2))
    for begin in range(0, 40, 10):
        for judgement in (asked, silent):
            judgement.observe(take(world.cells, slice(begin, begin + 10)))
        asked.verdicts()
    alike(asked.verdicts(), silent.verdicts())
    later = Judgement.of(world.columns, models, world.overall)
    asked.merge(later)
    later.merge(asked)
    alike(later.verdicts(), silent.verdicts())


@pytest.mark.parametrize(("name", "form"), JUDGES)
def test_the_columns_it_needs_are_enough(name: str, form: str) -> None:
    world = WORLDS[form](40, np.random.default_rng(4))
    judgement, other = (Judgement.of(world.columns, [model_of(name)], world.overall) for _ in range(2))
    judgement.observe({column: world.cells[column] for column in judgement.needs})
    other.observe(world.cells)
    alike(judgement.verdicts(), other.verdicts())


def test_a_requirement_on_a_column_that_is_not_there_is_refused() -> None:
    world = exact(5, np.random.default_rng(0))
    with pytest.raises(ReleaseError, match="columns that the release does not have: 'y'"):
        Judgement.of(world.columns, [MODELS["distinct-l-diversity"](on=["x", "y"], l=2)])


def measured(world: World, probe: Model, bounds: list[int]) -> Verdict:
    """What `measure` would report, gathered part by part."""
    checks = []
    for begin, end in pairwise(bounds):
        check = probe.measuring(Evidence(world.columns, world.overall))
        check.observe(take(world.cells, slice(begin, end)))
        checks.append(check)
    for other in checks[1:]:
        checks[0].merge(other)
    return checks[0].verdict()


@pytest.mark.parametrize("parts", [2, 5])
@pytest.mark.parametrize("form", WORLDS)
@settings(max_examples=8)
@given(data=st.data(), n=st.integers(1, 60), seed=st.integers(0, 2**32 - 1))
def test_what_a_table_achieves_can_be_measured_part_by_part(
    form: str, parts: int, data: st.DataObject, n: int, seed: int
) -> None:
    world = WORLDS[form](n, np.random.default_rng(seed))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), min_size=parts - 1, max_size=parts - 1)))
    probes = [p for kind in MODELS.values() for one in (None, world.columns["x"]) for p in kind.probes(one)]
    found, wanted = [], []
    for probe in probes:
        try:
            wanted.append(measured(world, probe, [0, n]))
        except ModelDoesNotApply:
            continue
        found.append(measured(world, probe, [0, *cuts, n]))
    assert found
    alike(found, wanted)


@pytest.mark.parametrize("name", ["k-anonymity", "frequency-l-diversity", "t-closeness", "beta-likeness"])
@pytest.mark.parametrize("batches", [0, 1])
def test_nobody_proves_nothing_where_people_are_counted(name: str, batches: int) -> None:
    columns = {"key": exact_column("key", 3, role=Role.QUASI_IDENTIFIER), "x": exact_column("x", D, **MEANING)}
    model = MODELS[name](**OPTIONS[name], **({} if name == "k-anonymity" else {"on": "x"}))
    nobody = {who: CodeCells(size, np.zeros(0, np.int64)) for who, size in (("key", 3), ("x", D), (PERSON, 0))}
    whole = Judgement.of(columns, [model], people=True)
    for _ in range(batches):
        whole.observe(nobody)
    (verdict,) = whole.verdicts()
    assert (verdict.holds, verdict.achieved, verdict.records, verdict.breaches) == (False, 0, 0, 0)


@pytest.mark.parametrize("people", [False, True])
def test_records_are_grouped_once_for_a_secret_and_for_the_classes_alone(people: bool) -> None:
    """In whatever order both are asked, and with the verdicts that each has by itself."""
    columns = {"key": exact_column("key", 4, role=Role.QUASI_IDENTIFIER), "x": exact_column("x", D, **MEANING)}
    rng = np.random.default_rng(4)
    batch = {"key": CodeCells(4, rng.integers(0, 4, 30)), "x": CodeCells(D, rng.integers(0, D, 30))}
    batch |= {PERSON: CodeCells(12, rng.integers(0, 12, 30))} if people else {}
    asked = [MODELS["k-anonymity"](k=5), MODELS["frequency-l-diversity"](on="x", l=2)]

    def judged(*models: Any) -> Judgement:
        judgement = Judgement.of(columns, models, people=people)
        judgement.observe(batch)
        return judgement

    alone = [judged(model).verdicts()[0] for model in asked]
    both = judged(*asked)
    assert len(both.parts) == 1
    assert both.verdicts() == alone
    assert judged(*asked[::-1]).verdicts() == alone[::-1]
