"""General values and groups beside decoys: both statements of a record count, and the bounds hold the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.designs.semantic.design import SemanticDesign
from noren.errors import QueryError
from noren.estimates.counts.axes import Axis, numbered_column
from noren.estimates.counts.estimate import ASSUMES
from noren.estimates.counts.grid import prepare_rows
from noren.estimates.counts.rows import Reading
from noren.estimates.counts.tabulate import tabulate, tabulate_bounded
from noren.release.manifest import Manifest
from noren.release.release import Release
from noren.release.store import MemoryStore
from noren.schema.column import plain, quasi_identifier, sensitive
from noren.schema.domain import Domain
from noren.schema.nodes import Nodes
from noren.secret import Keystream
from noren.statements import CodeCells, Design, ExactStatement, GroupStatement, GroupTable, NodeStatement, SetStatement

N, AGES, ILLS = 6000, 20, 9
STEPS = (1, 4, 20)
NODES = Nodes.from_members(
    AGES,
    [f"{step} from {a}" for step in STEPS for a in range(0, AGES, step)],
    [list(range(a, a + step)) for step in STEPS for a in range(0, AGES, step)],
)
DESIGNS: dict[str, Design] = {
    "sets": DecoyDesign(d=ILLS, eta=3),
    "uncertain sets": DecoyDesign(d=ILLS, eta=2, p=0.7),
    "distant values": SemanticDesign.make("simple", np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0))), 3, 2),
    "nothing said": DecoyDesign(d=ILLS, eta=ILLS),
}


class World:
    """Ages that go with illnesses; ages generalised at random, illnesses drawn."""

    def __init__(self, seed: int = 2) -> None:
        rng = np.random.default_rng(seed)
        z = rng.normal(size=N)
        self.age = np.clip(z * 4 + 10, 0, AGES - 1).astype(int)
        self.ill = np.clip((z + 0.5 * rng.normal(size=N)) * 2 + 4, 0, ILLS - 1).astype(int)
        self.sex = (rng.random(N) < 0.3 + 0.02 * self.age).astype(int)
        first = np.cumsum([0, *(AGES // step for step in STEPS)])
        level = rng.choice(3, N, p=[0.4, 0.4, 0.2])
        self.nodes = first[level] + self.age // np.array(STEPS)[level]
        self.rng = rng

    def general(self, groups: Any = None, nodes: Any = None) -> Axis:
        cells = CodeCells(len(NODES), self.nodes if nodes is None else nodes)
        return Axis("age", NodeStatement(numbered_column("age", AGES), NODES), cells, groups)

    def drawn(self, design: Design, groups: Any = None) -> Axis:
        return Axis.drawn("ill", design.draw(self.ill, Keystream(), attribute="ill"), design, groups)

    def truth(self, *columns: np.ndarray) -> np.ndarray:
        out = np.zeros([int(column.max()) + 1 for column in columns])
        np.add.at(out, columns, 1)
        return out


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def dense(axis: Axis) -> np.ndarray:
    """(records, values): every record's likelihood."""
    return axis.rows.dense(axis.d)[axis.distinct[1]]


@pytest.mark.parametrize("name", ["sets", "uncertain sets", "distant values"])
def test_a_step_is_the_step_over_dense_likelihoods(world: World, name: str) -> None:
    """x_c <- sum_i x_c L_i(c) / sum_g x_g L_i(g), written out."""
    axes = [world.general(), world.drawn(DESIGNS[name])]
    grid = prepare_rows([Reading.of(axis) for axis in axes], None, None, 200)
    value_of = [grid.axes[j].report.indices for j in grid.hidden]  # atoms are single values, in some order
    assert [len(values) for values in value_of] == [axes[j].d for j in grid.hidden]
    x = np.random.default_rng(0).gamma(1.0, 1.0, grid.shape)
    rows = [dense(axes[j])[:, values] for j, values in zip(grid.hidden, value_of, strict=True)]
    weight = np.einsum("ia,ib->iab", *rows) * x
    expected = (weight / weight.sum(axis=(1, 2), keepdims=True)).sum(axis=0)
    found = x * grid.tuples.em_pass(x)[0]
    np.testing.assert_allclose(found[0], expected, rtol=1e-9)


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("estimator", ["likelihood", "spread"])
def test_bounds_hold_the_truth(world: World, name: str, estimator: str) -> None:
    sex = Axis.exact("sex", world.sex, 2)
    for axes, truth in (
        ([world.general(), world.drawn(DESIGNS[name])], world.truth(world.age, world.ill)),
        ([world.drawn(DESIGNS[name]), sex, world.general(np.arange(AGES) // 5)],
         world.truth(world.ill, world.sex, world.age // 5)),
    ):  # fmt: skip
        found = tabulate(axes, estimator)
        assert found.is_hard
        assert np.isnan(found.std_error).all()
        assert (found.low <= truth).all()
        assert (truth <= found.high).all()
        assert (found.low <= found.counts).all()
        assert (found.counts <= found.high).all()
        np.testing.assert_allclose(found.counts.sum(), N, rtol=1e-3)


def test_sets_that_may_miss_the_truth_leave_everything_possible(world: World) -> None:
    found = tabulate([world.general(), world.drawn(DESIGNS["uncertain sets"])])
    assert not found.low.any()
    np.testing.assert_array_equal(found.high, np.repeat(found.high[:, :1], ILLS, axis=1))


@pytest.mark.parametrize("name", ["sets", "uncertain sets", "distant values"])
def test_both_statements_of_a_record_count(world: World, name: str) -> None:
    """Closer to the truth than spreading, and than the columns' own estimates taken as independent."""
    axes = [world.general(np.arange(AGES) // 2), world.drawn(DESIGNS[name])]
    truth = world.truth(world.age // 2, world.ill)
    found, spread = tabulate(axes), tabulate(axes, "spread")
    alone = [tabulate_bounded([axis]).counts for axis in axes]
    error = np.abs(found.counts - truth).sum()
    assert error < 0.6 * np.abs(spread.counts - truth).sum()
    assert error < 0.6 * np.abs(np.outer(*alone) / N - truth).sum()
    assert found.diagnostics["stopping"] == "held-out likelihood"
    assert found.iterations is not None
    assert found.iterations > 1


def test_groups_beside_sets(world: World) -> None:
    group = np.random.default_rng(4).permutation(N) // 5
    table = GroupTable.from_codes(N // 5, AGES, group, world.age)
    statement = GroupStatement(numbered_column("age", AGES), N // 5, held=table)
    axes = [Axis("age", statement, CodeCells(N // 5, group)), world.drawn(DESIGNS["sets"])]
    truth = world.truth(world.age, world.ill)
    for estimator in ("likelihood", "spread"):
        found = tabulate(axes, estimator)
        assert ((found.low <= truth) & (truth <= found.high)).all()
    assert "the group of a record depends" in tabulate(axes).assumes


def test_general_values_inside_the_groups_asked_for_are_as_good_as_exact(world: World) -> None:
    """Beside drawn columns that gives intervals, the same as if the groups themselves had been published."""
    nodes = AGES + world.age // STEPS[1]
    drawn = world.drawn(DESIGNS["sets"])
    found = tabulate([world.general(np.arange(AGES) // 4, nodes), drawn])
    same = tabulate([Axis.exact("age", world.age // 4, 5), drawn])
    np.testing.assert_array_equal(found.counts, same.counts)
    np.testing.assert_array_equal(found.std_error, same.std_error)
    assert not found.is_hard
    some = np.where(np.arange(AGES) < 8, np.arange(AGES) // 4, -1)
    part = tabulate([world.general(some, nodes), drawn])
    assert part.counts.shape == (2, ILLS)
    np.testing.assert_allclose(part.counts.sum(), (world.age < 8).sum())
    assert not part.is_hard


def test_what_it_rests_on_is_said(world: World) -> None:
    axes = [world.general(), world.drawn(DESIGNS["sets"])]
    found = tabulate(axes, max_steps=5)
    assert "coarsening at random" in found.assumes
    assert ASSUMES in found.assumes
    assert found.assumes.endswith("low and high are hard bounds")
    assert "spread by their likelihood" in tabulate(axes, "spread").assumes
    for estimator in ("linear", "bayes"):
        with pytest.raises(QueryError, match="no estimator"):
            tabulate(axes, estimator)
    with pytest.raises(QueryError, match="no interval for the population"):
        tabulate(axes, population=True)


def test_no_records_and_one(world: World) -> None:
    for rows in (slice(0, 0), slice(0, 1)):
        general = Axis("age", world.general().statement, world.general().cells.take(rows))
        drawn = Axis.drawn("ill", world.drawn(DESIGNS["sets"]).cells.take(rows), DESIGNS["sets"])
        found = tabulate([general, drawn], suppressed=3)
        assert found.counts.sum() == pytest.approx(len(range(N)[rows]))
        assert found.high.max() == len(range(N)[rows]) + 3


# ------------------------------------------------------------------ asked of a release


@pytest.fixture(scope="module")
def release(world: World) -> Release:
    ages, ills = Domain(tuple(str(20 + a) for a in range(AGES)), "integer"), Domain(tuple("abcdefghi"))
    columns = (
        NodeStatement(quasi_identifier().over("age", ages), NODES),
        SetStatement(sensitive().over("ill", ills), DESIGNS["sets"]),
        ExactStatement(plain().over("sex", Domain(("f", "m")))),
    )
    manifest = Manifest(
        noren="1", records=N, suppressed=7, columns=columns, requirements=(), randomness="fresh", verdicts=(),
        methods=({"name": "mondrian", "on": ("age",)}, {"name": "decoys", "on": ("ill",)}),
    )  # fmt: skip
    cells = {
        "age": world.general().cells,
        "ill": world.drawn(DESIGNS["sets"]).cells,
        "sex": CodeCells(2, world.sex),
    }
    return Release(manifest, MemoryStore(cells))


def test_a_release_of_general_values_beside_sets_answers(release: Release, world: World) -> None:
    both = release.estimate(["age/5", "ill"])
    truth = world.truth(world.age // 5, world.ill).ravel()
    assert both.error_bars == "hard bounds"
    assert both.frame["std_error"].null_count() == len(both.frame)
    assert (both.frame["low"].to_numpy() <= truth).all()
    assert (truth <= both.frame["high"].to_numpy()).all()
    one = release.count({"age": [25, 26, 27], "ill": ["c", "d"], "sex": "f"})
    hits = np.isin(world.age, [5, 6, 7]) & np.isin(world.ill, [2, 3]) & (world.sex == 0)
    assert one.low <= hits.sum() <= one.high
    assert one.std_error is None


def test_drawn_columns_alone_keep_their_intervals(release: Release, world: World) -> None:
    """Seven people were left out and may have any illness."""
    found = release.estimate("ill")
    assert found.error_bars == "95% intervals"
    assert found.frame["std_error"].null_count() == 0
    assert "7 people were suppressed" in found.assumes
    per_sex = release.estimate(["sex", "ill"]).frame
    assert per_sex["count"].sum() == pytest.approx(N)


def test_exact_columns_alone_are_bounded_by_who_was_left_out(release: Release, world: World) -> None:
    found = release.estimate("sex").frame
    assert found["count"].to_list() == found["low"].to_list() == np.bincount(world.sex).tolist()
    assert found["high"].to_list() == (np.bincount(world.sex) + 7).tolist()
    one = release.count({"sex": "f"})
    assert (one.count, one.high, one.std_error) == (one.low, one.low + 7, None)
