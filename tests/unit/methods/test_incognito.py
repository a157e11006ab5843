"""Incognito's edges: what cannot be met, columns that say nothing, domains whose product leaves 64 bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from noren.engines import Records
from noren.errors import PolicyError, RequirementNotMet
from noren.methods.incognito import Incognito
from noren.methods.incognito.search import best_full_domain
from noren.methods.requirements import compiled
from noren.models import MODELS
from noren.models.base import Model
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role


def asked(model: str, *on: str, **given: Any) -> Model:
    return MODELS[model](**({"on": on} if on else {}), **given)


def table_of(
    quasi: Mapping[str, tuple[Hierarchy, list[str]]], sensitive: Mapping[str, list[str]] | None = None
) -> Records:
    columns: dict[str, Column] = {}
    codes: dict[str, NDArray[np.int64]] = {}
    for name, (tree, cells) in quasi.items():
        codes[name] = np.array([tree.leaves.index(cell) for cell in cells])
        columns[name] = Column(role=Role.QUASI_IDENTIFIER).over(name, Domain(tree.leaves), hierarchy=tree)
    for name, cells in (sensitive or {}).items():
        values = tuple(sorted(set(cells)))
        codes[name] = np.array([values.index(cell) for cell in cells])
        columns[name] = Column(role=Role.SENSITIVE).over(name, Domain(values), hierarchy=Hierarchy((values,)))
    return Records(len(next(iter(codes.values()))), columns, codes)


def numbers(d: int) -> Hierarchy:
    return Hierarchy((tuple(str(value) for value in range(d)),))


ZIP = Hierarchy.from_prefixes(["11", "12", "21", "22"], [1])
SEX = Hierarchy((("f", "m"),))


def test_the_least_loss_wins_not_the_least_height() -> None:
    cells = {"zip": (ZIP, ["11", "12", "11", "12"]), "sex": (SEX, ["f", "f", "m", "m"])}
    found = best_full_domain(table_of(cells), compiled(table_of(cells), [asked("k-anonymity", k=2)]))
    assert found.levels == {"zip": 1, "sex": 0}
    assert found.loss == pytest.approx((1 / 3 + 0) / 2)
    assert (found.classes, found.dropped) == (2, 0)


def test_a_weight_moves_the_choice() -> None:
    cells = {"zip": (ZIP, ["11", "12", "21", "22"] * 2), "sex": (SEX, list("ffmmmmff"))}
    table = table_of(cells)
    need = compiled(table, [asked("k-anonymity", k=2)])
    assert best_full_domain(table, need).levels == {"zip": 1, "sex": 0}
    assert best_full_domain(table, need, weights={"zip": 9.0}).levels == {"zip": 0, "sex": 1}


def test_dropped_records_are_dropped_and_not_published_as_a_class() -> None:
    table = table_of({"zip": (ZIP, ["11"] * 5 + ["12"] * 4 + ["22"])})
    recoding = Incognito(suppression=0.1).recode(table, [asked("k-anonymity", k=4)], np.arange)
    assert recoding.keep is not None
    assert recoding.keep.tolist() == [True] * 9 + [False]
    assert recoding.treatments["zip"].data[:9].tolist() == [0] * 5 + [1] * 4


def test_dropping_can_meet_what_the_whole_table_cannot() -> None:
    ill = ["flu"] * 6 + ["flu", "cold"] * 2
    table = table_of({"zip": (ZIP, ["11"] * 6 + ["22"] * 4)}, {"ill": ill})
    need = [asked("frequency-l-diversity", "ill", l=2)]
    with pytest.raises(RequirementNotMet, match=r"l = 1\.25 is reached, and 2 is asked"):
        Incognito(suppression=0.5).recode(table, need, np.arange)
    recoding = Incognito(suppression=0.6).recode(table, need, np.arange)
    assert recoding.keep is not None
    assert recoding.keep.sum() == 4


@pytest.mark.parametrize(
    ("need", "says"),
    [
        (asked("k-anonymity", k=7), "k = 7 is more than the 6 records"),
        (asked("distinct-l-diversity", "ill", l=4), "l = 3 is reached, and 4 is asked"),
        (asked("frequency-l-diversity", "ill", l=3), "l = 2 is reached, and 3 is asked"),
        (asked("entropy-l-diversity", "ill", l=2.9), r"l = 2\.749 is reached, and 2\.9 is asked.*\n.*at most 2\.7494"),
        (asked("recursive-cl-diversity", "ill", c=1, l=3), r"c = 3 is reached, and 1 is asked.*\n.*at least 3\.0001"),
        (asked("recursive-cl-diversity", "ill", c=9, l=4), "some class has fewer than 4 values"),
        (asked("alpha-k-anonymity", "ill", alpha=0.4, k=2), r"alpha = 0\.5 is reached, and 0\.4 is asked"),
        (
            asked("tau-l-diversity", "ill", tau=0.4, l=3),
            r"tau = 0\.6667 is reached.*\n.*at least 0\.6667",
        ),
        (asked("p-sensitive-k-anonymity", "ill", p=2, k=8), "k = 8 is more than the 6 records"),
        (asked("le-diversity", "ill", l=3, e=1), "l = 2 is reached, and 3 is asked"),
    ],
)
def test_what_cannot_be_met_says_what_can(need: Model, says: str) -> None:
    ill = ["flu"] * 3 + ["cold"] * 2 + ["gout"]
    table = table_of({"zip": (ZIP, ["11", "12", "21", "22", "11", "12"])}, {"ill": ill})
    with pytest.raises(RequirementNotMet, match=says):
        Incognito().recode(table, [need], np.arange)


@pytest.mark.parametrize("loss", ["granularity", "ncp", "entropy", "height", "discernibility", "class-size"])
def test_columns_without_a_choice(loss: Any) -> None:
    """One column with one value in its domain, one whose records all agree: nothing needs to move."""
    one = Hierarchy((("only",),))
    table = table_of({"one": (one, ["only"] * 4), "zip": (ZIP, ["21"] * 4)})
    found = best_full_domain(table, compiled(table, [asked("k-anonymity", k=4)]), loss)
    assert found.levels == {"one": 0, "zip": 0}
    assert found.classes == 1


def test_leaves_that_do_not_occur_count_in_granularity_and_not_in_classes() -> None:
    wide = Hierarchy((tuple("abcdefgh"), ("x",) * 7 + ("y",)))
    table = table_of({"letter": (wide, list("aabh"))})
    found = best_full_domain(table, compiled(table, []), "granularity")
    assert found.loss == 0
    found = best_full_domain(table, compiled(table, [asked("k-anonymity", k=3)]), "granularity", 0.25)
    assert (found.levels, found.dropped) == ({"letter": 1}, 1)
    assert found.loss == pytest.approx((3 * 6 / 7 + 1) / 4)


def test_every_sensitive_column_is_protected() -> None:
    cells = {"zip": (ZIP, ["11", "11", "12", "12", "21", "21", "22", "22"])}
    secrets = {"ill": list("abababab"), "job": list("aabbaabb")}
    table = table_of(cells, secrets)
    by_illness = compiled(table, [asked("distinct-l-diversity", "ill", l=2)])
    by_both = compiled(table, [asked("distinct-l-diversity", "ill", "job", l=2)])
    assert best_full_domain(table, by_illness).levels == {"zip": 0}
    assert best_full_domain(table, by_both).levels == {"zip": 1}


def test_products_of_domains_beyond_64_bits() -> None:
    """Twelve columns of 1,000 values span 120 bits; keys are folded and classes stay exact."""
    rng = np.random.default_rng(5)
    people = rng.integers(0, 1000, (40, 12))
    rows = np.repeat(people, rng.integers(1, 4, 40), axis=0)
    rows[0, 11] = (rows[0, 11] + 1) % 1000
    tree = numbers(1000)
    cells = {f"c{i:02}": (tree, [str(value) for value in rows[:, i]]) for i in range(12)}
    distinct, expected = np.unique(rows, axis=0, return_inverse=True)
    table = table_of(cells)
    alone = int((np.bincount(expected.ravel()) == 1).sum())
    found_best = best_full_domain(table, compiled(table, [asked("k-anonymity", k=2)]), suppression=0.9)
    assert found_best.dropped == alone
    assert found_best.classes == len(distinct) - alone
    assert set(found_best.levels.values()) == {0}


def test_a_quasi_identifier_without_a_hierarchy_gets_one() -> None:
    codes = np.arange(40) % 40
    domain = Domain(tuple(str(value) for value in range(40)), "integer")
    facts = Column(role=Role.QUASI_IDENTIFIER).over("age", domain)
    found = best_full_domain(
        table := Records(40, {"age": facts}, {"age": codes}), compiled(table, [asked("k-anonymity", k=5)])
    )
    assert 0 < found.levels["age"] < found.trees["age"].height


def test_a_lattice_that_is_too_large_is_refused() -> None:
    cells = {f"c{i:02}": (SEX, ["f", "m"]) for i in range(23)}
    table = table_of(cells)
    with pytest.raises(PolicyError, match="8,388,608 combinations of levels"):
        best_full_domain(table, compiled(table, [asked("k-anonymity", k=2)]))


def test_problems_before_any_data_is_seen() -> None:
    roles = {"zip": Role.QUASI_IDENTIFIER, "ill": Role.SENSITIVE}
    need = [asked("k-anonymity", k=2)]
    assert Incognito().problems(roles, need) == []
    wrong = Incognito(loss="class-size", weights={"zip": 2.0, "ill": 1.0}).problems(roles, need)
    assert [problem.where for problem in wrong] == ["method.weights", "method.weights.ill"]
    assert Incognito(suppression=0.1).problems(roles, [asked("t-closeness", "ill", t=0.2, distance="equal")])
    with pytest.raises(ValidationError):
        Incognito(weights={"zip": 0})
    with pytest.raises(ValidationError):
        Incognito(loss="beauty")  # type: ignore[arg-type]


def test_fixed_levels_are_published_and_said() -> None:
    cells = {"zip": (ZIP, ["11", "12", "21", "22"] * 2), "sex": (SEX, list("ffmmmmff"))}
    table, need = table_of(cells), [asked("k-anonymity", k=2)]
    plan = Incognito(levels={"zip": 0, "sex": 1}).recode(table, need, np.arange)
    assert "zip 0 of 2, sex 1 of 1 (fixed: zip, sex)" in plan.notes[0]
    with pytest.raises(RequirementNotMet, match=r"zip 0, sex 0 do not meet the requirements: 8 of 8 records") as failed:
        Incognito(levels={"zip": 0, "sex": 0}).recode(table, need, np.arange)
    assert "--levels" in str(failed.value)


def test_a_level_that_is_not_there_is_named() -> None:
    table = table_of({"zip": (ZIP, ["11", "12"])})
    with pytest.raises(PolicyError, match="level 3 is above the highest, 2"):
        Incognito(levels={"zip": 3}).recode(table, [asked("k-anonymity", k=2)], np.arange)
    roles = {"zip": Role.QUASI_IDENTIFIER}
    assert "not a quasi-identifier" in str(Incognito(levels={"town": 1}).problems(roles, [asked("k-anonymity", k=2)]))
    with pytest.raises(ValidationError):
        Incognito(levels={"zip": -1})
