"""A person with several rows is the intersection of everything that their rows leave possible together."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import NorenError
from noren.methods import METHODS
from noren.methods.base import ClassMethod
from noren.models import DistinctLDiversity, FrequencyLDiversity, KAnonymity
from noren.release.release import Release
from noren.schema.nodes import tree_of
from noren.engines.finding import exact_nodes
from tests.oracles.people_over_rows import Told, told

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


def rules(method: Any, l: int = L, **more: Any) -> nr.Policy:
    asked = [KAnonymity(k=K), DistinctLDiversity(on="ill", l=l), FrequencyLDiversity(on="ill", l=l)]
    if method in ("sweep", "anatomy", "rating", "m-invariance"):
        asked = asked[2:] if method != "sweep" else [asked[0], asked[2]]
    if method in ("decoys",):
        asked = asked[2:]
    made: dict[str, Any] = {"attributes": ROLES, "require": asked, "method": method, "people": {"key": "who"}}
    return nr.Policy(**(made | more))


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
