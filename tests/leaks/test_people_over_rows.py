"""A person with several rows is the intersection of everything that their rows leave possible together."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.engines.finding import exact_nodes
from noren.errors import NorenError
from noren.methods import METHODS
from noren.methods.base import ClassMethod
from noren.models import DistinctLDiversity, FrequencyLDiversity, KAnonymity
from noren.release.release import Release
from noren.schema.nodes import tree_of
from noren.workflow.anonymize import run
from noren.workflow.over_rows import possible_by_counts
from tests.oracles.people_over_rows import Told, by_counts, told

PEOPLE, VISITS, K, L = 800, 4, 5, 3
QUASI = ("age", "weight", "region")
ROLES: dict[str, Any] = {
    "who": "identifier",
    "age": "quasi-identifier",
    "weight": "quasi-identifier",
    "region": "quasi-identifier",
    "ill": "sensitive",
}
CLASSES = [name for name, kind in METHODS.items() if issubclass(kind, ClassMethod)]
OTHER = {"suppress": "terms", "m-invariance": "one row a person"}
"""Methods of classes that serve other tables, and of what."""


def panel(people: int = PEOPLE, visits: Any = VISITS, seed: int = 7) -> pl.DataFrame:
    """People who are seen several times, a little older and heavier each time, with one chronic illness."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), visits)
    nth = np.arange(len(who)) - np.searchsorted(who, who)
    age, weight = rng.integers(20, 80, people), rng.integers(45, 110, people)
    region = rng.integers(0, 8, people)[who]
    moved = rng.random(len(who)) < 0.1
    shares = np.arange(18, 4, -1) / np.arange(18, 4, -1).sum()
    return pl.DataFrame(
        {
            "who": [f"p{i:04}" for i in who],
            "age": age[who] + nth,
            "weight": weight[who] + rng.integers(-3, 4, len(who)),
            "region": [f"r{x}" for x in np.where(moved, rng.integers(0, 8, len(who)), region)],
            "ill": [f"i{x}" for x in rng.choice(14, people, p=shares)[who]],
        }
    ).sample(fraction=1, shuffle=True, seed=seed)


def rules(method: Any, least: int = L, **more: Any) -> nr.Policy:
    asked: list[Any] = [KAnonymity(k=K), DistinctLDiversity(on="ill", l=least), FrequencyLDiversity(on="ill", l=least)]
    if method in ("sweep", "anatomy", "rating", "decoys"):
        asked = asked[2:] if method != "sweep" else [asked[0], asked[2]]
    made: dict[str, Any] = {"attributes": ROLES, "require": asked, "method": method, "people": {"key": "who"}}
    return nr.Policy(mechanism="ignored", **(made | more))


def attacked(release: Release, data: pl.DataFrame) -> dict[Any, Told]:
    """What somebody concludes who knows the quasi-identifiers of all rows of everybody."""
    quasi = [one for one in release.statements if one.name in QUASI]
    cells = release.cells([*QUASI, "ill"])
    secret = release.column("ill")
    keys = [np.asarray(cells[one.name].data) for one in quasi]
    classes: dict[tuple[int, ...], Counter[Any]] = {}
    ill = cells["ill"].data.tolist()
    for key, code in zip(zip(*(part.tolist() for part in keys), strict=True), ill, strict=True):
        held = classes.setdefault(key, Counter())
        if secret.table is not None:
            place = secret.table.group == code
            held.update(dict(zip(secret.table.value[place].tolist(), secret.table.count[place].tolist(), strict=True)))
        elif secret.nodes is not None:
            held.update(_leaves(secret, code))
        else:
            held[code] += 1
    covers = []
    for key in classes:
        cover = {}
        for one, code in zip(quasi, key, strict=True):
            if getattr(one, "numbers", None) is None:  # the mean of a class says nobody's value
                cover[one.name] = frozenset(_leaves(one, code))
        covers.append(cover)
    places = {one.name: _places(one, data[one.name]) for one in quasi if getattr(one, "numbers", None) is None}
    rows: dict[Any, list[dict[str, int]]] = {}
    for row in data.iter_rows(named=True):
        rows.setdefault(row["who"], []).append({name: place[row[name]] for name, place in places.items()})
    return told(covers, list(classes.values()), rows)


def _leaves(statement: Any, code: int) -> list[int]:
    nodes = statement.nodes
    if nodes is None and statement.column.tree is not None and not statement.is_exact:
        nodes = tree_of(statement.column.tree).nodes
    nodes = exact_nodes(statement.d) if nodes is None else nodes
    runs = range(nodes.bounds[code], nodes.bounds[code + 1])
    return [v for run in runs for v in range(nodes.starts[run], nodes.stops[run])]


def _places(statement: Any, values: pl.Series) -> dict[Any, int]:
    """Where values stand in a published domain, which may not name them."""
    distinct = values.unique().to_list()
    found = statement.domain.find([str(value) for value in distinct]) if statement.d > 1 else [0] * len(distinct)
    return dict(zip(distinct, found, strict=True))


@pytest.mark.parametrize("method", [*(name for name in CLASSES if name not in OTHER), "decoys"])
def test_nobody_is_told_by_all_their_visits_together(method: str) -> None:
    data = panel()
    release = nr.anonymize(data, rules(method))
    assert all(verdict.holds for verdict in release.verdicts)
    if method == "decoys":  # one set a person and value: all rows of a person say the same
        sets = release.frame().select(pl.col("ill").list.len())
        assert sets["ill"].min() >= L
        return
    found = attacked(release, data)
    assert min(len(one.possible) for one in found.values()) >= L
    if METHODS[method].hides_quasi:  # type: ignore[attr-defined]
        assert min(one.owners for one in found.values()) >= K
    truth = dict(data.select("who", "ill").iter_rows())
    guesses = [max(one.belief, key=lambda v: one.belief[v]) for one in found.values()]
    values = release.column("ill").domain.values
    right = np.mean([values[guess] == truth[who] for guess, who in zip(guesses, found, strict=True)])
    assert right <= 1 / L + 5 * np.sqrt(1 / L / PEOPLE)


def classes_of_people(method: str, data: pl.DataFrame, least: int) -> list[list[tuple[Any, int]]]:
    """The illness and the number of rows of everybody, class by class, as the holder knows it."""
    facts = run(data, rules(method, least)).facts
    people, plan = facts.table.people, facts.plan
    assert people is not None
    shown = ["ill"] if method in ("anatomy", "rating") else QUASI
    keys = list(zip(*(plan.treatments[name].data.tolist() for name in shown), strict=True))  # type: ignore[union-attr]
    held: dict[Any, dict[int, Any]] = {}
    rows = Counter(people.tolist())
    for key, person, ill in zip(keys, people.tolist(), data["ill"].to_list(), strict=True):
        held.setdefault(key, {})[person] = ill
    return [[(ill, rows[person]) for person, ill in own.items()] for own in held.values()]


@pytest.mark.parametrize("method", ["mondrian", "hilbert", "three-phase", "microaggregation", "anatomy", "rating"])
def test_the_number_of_visits_beside_the_rows_of_every_illness_tells_nobody(method: str) -> None:
    """A class shows how many rows have every illness, and how often somebody came is known."""
    data = panel(300, np.random.default_rng(1).integers(1, 6, 300))
    found = [by_counts(own) for own in classes_of_people(method, data, 2) if len(own) <= 8]
    assert found
    assert min(min(one) for one in found) >= 2


def test_values_that_sums_of_rows_leave_possible_are_never_too_many() -> None:
    """What is counted as possible is possible, by trying all ways; where all have as many rows, everything is."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        rows, values = rng.integers(1, 5, 6), rng.integers(0, 4, 6)
        exact = by_counts(list(zip(values.tolist(), rows.tolist(), strict=True)))
        found = possible_by_counts(np.zeros(6, np.int64), rows, values)
        assert (found <= exact).all()
        assert (found >= 1).all()
        alike = possible_by_counts(np.zeros(6, np.int64), np.full(6, 3), values)
        assert (alike == len(set(values.tolist()))).all()
    alone = possible_by_counts(np.zeros(3, np.int64), np.array([1, 2, 3]), np.array([0, 1, 2]))
    assert alone.tolist() == [1, 1, 1]
    summed = possible_by_counts(np.zeros(4, np.int64), np.array([1, 1, 2, 2]), np.array([0, 0, 1, 2]))
    assert summed.tolist() == [1, 1, 3, 3]


@pytest.mark.parametrize("method", ["mondrian", "hilbert"])
def test_verification_with_the_original_sees_what_visits_tell_together(method: str) -> None:
    """A release in which every visit was taken for a person of its own."""
    data, policy = panel(), rules(method)
    release = nr.anonymize(data, rules(method, people={"rows": "independent"}))
    found = attacked(release, data)
    worst = min(len(one.possible) for one in found.values())
    assert worst < L
    verdicts = {one.model: one for one in nr.verify(release, policy, original=data)}
    assert verdicts["distinct-l-diversity"].achieved == worst
    assert verdicts["distinct-l-diversity"].breaches == sum(len(one.possible) < L for one in found.values())
    most = max(max(one.belief.values()) for one in found.values())
    assert verdicts["frequency-l-diversity"].achieved == pytest.approx(1 / most)
    assert verdicts["k-anonymity"].achieved == min(one.owners for one in found.values())
    assert verdicts["k-anonymity"].breaches == sum(one.owners < K for one in found.values())
    for name in ("k-anonymity", "distinct-l-diversity", "frequency-l-diversity"):
        assert (verdicts[name].holds, verdicts[name].basis) == (False, "the original")


@pytest.mark.parametrize("method", ["mondrian", "three-phase", "sweep", "incognito", "microaggregation"])
def test_verification_with_the_original_settles_what_the_release_cannot(method: str) -> None:
    data, policy = panel(), rules(method)
    release = nr.anonymize(data, policy)
    alone = nr.verify(release, policy)
    assert alone.undecided
    assert not alone.failed
    assert nr.verify(release, policy, original=data).hold


def test_illnesses_that_change_from_visit_to_visit_are_judged_row_by_row() -> None:
    data = panel().with_columns(ill=pl.col("ill").shuffle(seed=3))
    policy = rules("mondrian", 2)
    assert nr.verify(nr.anonymize(data, policy), policy, original=data).hold


def test_a_release_that_falls_short_is_refused_with_a_way_that_works() -> None:
    """Three people who came once, twice and three times: whatever class they are in, its rows say whose is which."""
    who = np.repeat(np.arange(3), [1, 2, 3])
    data = pl.DataFrame({"who": who, "age": 30 + who, "weight": 60, "region": "r0", "ill": [f"i{x}" for x in who]})
    asked = [KAnonymity(k=3), DistinctLDiversity(on="ill", l=2)]
    with pytest.raises(NorenError, match="fall short") as caught:
        nr.anonymize(data, rules("mondrian", require=asked))
    assert "many rows of everybody" in str(caught.value)
    twice = pl.concat([data.unique("who", keep="first", maintain_order=True)] * 2)
    assert nr.anonymize(twice, rules("mondrian", require=asked)).records == 6


def test_a_class_of_one_value_that_the_requirement_allows_is_no_breach_of_its_people() -> None:
    """Beta-likeness permits classes of one common value; `verify` with the original asks no more of rows together."""
    data = pl.DataFrame(
        {
            "who": [f"p{i // 2}" for i in range(80)],
            "age": [i // 2 // 10 for i in range(80)],
            "ill": ["a"] * 40 + ["a", "b"] * 20,
        }
    ).sample(fraction=1, shuffle=True, seed=1)
    roles = {"who": "identifier", "age": "quasi-identifier", "ill": "sensitive"}
    policy = nr.Policy(
        attributes=roles, require=[{"model": "beta-likeness", "on": "ill", "beta": 3.0, "form": "basic"}],
        method="mondrian", people={"key": "who"}, dependence={"most": 1.0},
    )  # fmt: skip
    release = nr.anonymize(data, policy)
    shares = release.frame().group_by("age").agg(several=pl.col("ill").n_unique())
    assert 1 in shares["several"].to_list(), "there is a class of one value"
    assert all(one.holds for one in nr.verify(release, policy, original=data))
