"""Attacks on classes, groups and sets against plain Python in fractions, one row and one person at a time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noren as nr
from noren.audit import attack
from noren.audit import targets as room
from noren.release.release import Release
from tests.oracles import audit as oracle
from tests.oracles.audit import Shares
from tests.oracles.posterior import posterior
from tests.unit.audit.world import LETTERS, of_groups, of_nodes, of_sets, of_values

D = 4
TREE = (tuple("abcd"), ("ab", "ab", "c", "d"), ("ab", "ab", "cd", "cd"), ("*",) * 4)
NODES = [[0], [1], [2], [3], [0, 1], [2, 3], [0, 1, 2, 3]]
Made = tuple[Release, list[list[int]], list[Shares], Shares]
"""A release, the rows of every class, what every row tells, and the prior."""


def words(least: int = 1, most: int = 6) -> st.SearchStrategy[list[str]]:
    return st.lists(st.text(LETTERS[:D], min_size=least, max_size=most), min_size=1, max_size=5)


def one_hot(value: int) -> Shares:
    return oracle.spread([value], D)


@st.composite
def releases(draw: st.DrawFn, form: str) -> Made:
    if form == "node":
        where = draw(st.lists(st.integers(0, 3), min_size=1, max_size=14))
        nodes = [draw(st.integers(0, len(NODES) - 1)) for _ in where]
        told = [oracle.spread(NODES[node], D) for node in nodes]
        classes = [[i for i, own in enumerate(where) if own == w] for w in sorted(set(where))]
        return of_nodes(NODES, where, nodes, D), classes, told, oracle.mean(told)
    if form == "set":
        p = draw(st.sampled_from([1.0, 0.5]))
        sets = draw(st.lists(st.sampled_from(["ab", "ac", "ad", "bc", "bd", "cd"]), min_size=1, max_size=12))
        release = of_sets(sets, d=D, p=p)
        counts = release.estimate("x").frame["count"].to_numpy().clip(0)
        prior = counts / counts.sum()
        told = []
        for word in sets:
            members = [LETTERS.index(letter) for letter in word]
            if p == 1 and not prior[members].sum() > 0:
                told.append(oracle.spread(members, D))
            else:
                told.append([Fraction(share) for share in posterior(prior, members, release.designs["x"])])
        return release, [[i] for i in range(len(sets))], told, [Fraction(share) for share in prior]
    held = draw(words())
    told = [one_hot(LETTERS.index(letter)) for word in held for letter in word]
    bounds = [sum(map(len, held[:i])) for i in range(len(held) + 1)]
    classes = [list(range(bounds[i], bounds[i + 1])) for i in range(len(held))]
    release = of_values(*held, d=D, hierarchy=TREE) if form == "value" else of_groups(*held, d=D)
    return release, classes, told, oracle.mean(told)


FORMS = ("value", "node", "group", "set")


def lines(release: Release, name: str, **options: Any) -> list[dict[str, Any]]:
    (found,) = attack(release, name, **options)
    return found.scenario("release-rows").frame.to_dicts()


def same(line: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, figure in wanted.items():
        found = line[name]
        if figure is None or isinstance(figure, str):
            assert found == figure, name
        else:
            assert found == pytest.approx(float(figure), abs=1e-9), name


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60)
@given(data=st.data())
def test_homogeneity(form: str, data: st.DataObject) -> None:
    release, classes, told, prior = data.draw(releases(form))
    found = lines(release, "homogeneity")
    for rows in classes:
        wanted = oracle.homogeneity(oracle.mean([told[i] for i in rows]), prior)
        if form == "set":
            # floats: values that tie in one way of rounding differ in the other
            wanted = {name: wanted[name] for name in ("belief", "values", "gain")}
        else:
            wanted["value"] = LETTERS[wanted["value"]]
        for row in rows:
            same(found[row], wanted)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60)
@given(data=st.data(), rho1=st.sampled_from([0.1, 0.25, 0.3]), rho2=st.sampled_from([0.5, 0.7, 0.75]))
def test_disclosure(form: str, data: st.DataObject, rho1: float, rho2: float) -> None:
    release, classes, told, prior = data.draw(releases(form))
    found = lines(release, "disclosure", rho1=rho1, rho2=rho2)
    low, high = Fraction(str(rho1)), Fraction(str(rho2))
    for rows in classes:
        after = oracle.mean([told[i] for i in rows])
        for row in rows:
            same(found[row], oracle.disclosure(after, prior, low, high))


@settings(max_examples=60)
@given(data=st.data(), level=st.integers(0, 2))
def test_similarity_by_levels(data: st.DataObject, level: int) -> None:
    release, classes, told, prior = data.draw(releases("value"))
    found = lines(release, "similarity", level=level)
    before = oracle.levels(prior, TREE)
    for rows in classes:
        beliefs = oracle.levels(oracle.mean([told[i] for i in rows]), TREE)
        sure = [height for height, belief in enumerate(beliefs) if belief == 1]
        wanted = {f"belief_{height}": belief for height, belief in enumerate(beliefs)}
        wanted |= {"belief": beliefs[level], "gain": beliefs[level] - before[level]}
        wanted["level"] = sure[0] if sure else len(beliefs)
        for row in rows:
            same(found[row], wanted)


@settings(max_examples=60)
@given(held=words())
def test_similarity_by_intervals(held: Sequence[str]) -> None:
    release = of_values(*held, d=D, domain_source="policy")
    found = lines(release, "similarity", widths=(0.34, 0.67))
    row = 0
    for word in held:
        after = oracle.mean([one_hot(LETTERS.index(letter)) for letter in word])
        for _ in word:
            same(found[row], {f"belief_{width}": oracle.interval(after, width) for width in range(3)})
            row += 1


@pytest.mark.parametrize("form", ["value", "node", "group"])
@settings(max_examples=60)
@given(data=st.data(), known=st.none() | st.integers(0, 6))
def test_known_records(form: str, data: st.DataObject, known: int | None) -> None:
    release, classes, told, _ = data.draw(releases(form))
    found = lines(release, "known-records", **({} if known is None else {"known": known}))
    for rows in classes:
        left = 1 if known is None else max(1, len(rows) - known)
        wanted = oracle.known_records([told[i] for i in rows], left)
        fewest = wanted.pop("worst_values")
        for row in rows:
            same(found[row], wanted)
            assert found[row]["worst_values"] <= fewest, "a bound for general values"
            assert form == "node" or found[row]["worst_values"] == fewest


# ---------------------------------------------------------------------- people


@st.composite
def tables(draw: st.DrawFn) -> pl.DataFrame:
    n = draw(st.integers(4, 14))
    age = draw(st.lists(st.integers(20, 25), min_size=n, max_size=n))
    town = draw(st.lists(st.sampled_from("nse"), min_size=n, max_size=n))
    ill = draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    ill[:2] = ["a", "b"]
    return pl.DataFrame({"age": age, "town": town, "ill": ill})


def policy(method: Any, **sensitive: Any) -> nr.Policy:
    return nr.Policy(
        attributes={"age": nr.quasi_identifier(), "town": nr.quasi_identifier(), "ill": nr.sensitive(**sensitive)},
        require=[nr.models.KAnonymity(k=2)] * isinstance(method, nr.methods.Mondrian)
        + [nr.models.DistinctLDiversity(on="ill", l=2)],
        method=method,
    )


def covers(release: Release, person: dict[str, Any]) -> list[int]:
    """The published rows that could be a person's: every quasi-identifier's node covers the person's value."""
    frame = release.frame()
    out = []
    for i, row in enumerate(frame.to_dicts()):
        fits = True
        for name in ("age", "town"):
            one = release.column(name)
            code = one.domain.index[str(person[name])]
            if one.nodes is not None:
                fits &= code in one.nodes.members(one.nodes.labels.index(str(row[name])))
            else:
                fits &= str(row[name]) == str(person[name])
        if fits:
            out.append(i)
    return out


@pytest.mark.parametrize("method", [nr.methods.Mondrian(), nr.methods.Anatomy()])
@settings(max_examples=30)
@given(table=tables())
def test_people_in_the_raw_table_and_in_the_release(method: Any, table: pl.DataFrame) -> None:
    asked = policy(method)
    try:
        release = nr.anonymize(table, asked)
    except nr.errors.NorenError:
        return
    labels = release.column("ill").domain.values
    people = table.to_dicts()
    truth = [labels.index(person["ill"]) for person in people]
    d = len(labels)
    prior = oracle.mean([oracle.spread([v], d) for v in truth])
    told: list[Shares] = []
    cells = release.cells(["ill"])["ill"]
    for code in cells.data.tolist():  # type: ignore[union-attr]
        held = release.column("ill").table
        if held is not None:
            own = held.group == code
            size = int(held.count[own].sum())
            shares = [Fraction(0)] * d
            for value, count in zip(held.value[own].tolist(), held.count[own].tolist(), strict=True):
                shares[value] = Fraction(count, size)
            told.append(shares)
        else:
            told.append(oracle.spread([code], d))
    (found,) = attack(release, "homogeneity", original=table, policy=asked)
    (risks,) = attack(release, "reidentification", original=table, policy=asked)
    raw, inside = found.scenario("raw").frame.to_dicts(), found.scenario("release").frame.to_dicts()
    risk = {name: risks.scenario(name).frame["risk"].to_list() for name in ("raw", "release")}
    for i, person in enumerate(people):
        alike = [j for j, other in enumerate(people) if all(other[q] == person[q] for q in ("age", "town"))]
        after = oracle.mean([oracle.spread([truth[j]], d) for j in alike])
        wanted = oracle.homogeneity(after, prior) | oracle.guess(after, truth[i]) | {"candidates": len(alike)}
        same(raw[i], wanted | {"value": labels[wanted["value"]]})
        assert risk["raw"][i] == pytest.approx(1 / len(alike))
        rows = covers(release, person)
        assert risk["release"][i] == pytest.approx(1 / len(rows) if rows else 0.0)
        after = oracle.mean([told[j] for j in rows]) if rows else prior
        wanted = oracle.homogeneity(after, prior) | oracle.guess(after, truth[i]) | {"candidates": len(rows)}
        same(inside[i], wanted | {"value": labels[wanted["value"]]})


@settings(max_examples=30)
@given(held=words(), data=st.data())
def test_portions_change_nothing(held: Sequence[str], data: st.DataObject) -> None:
    release = of_values(*held, d=D, hierarchy=TREE)
    whole = lines(release, "homogeneity")
    before = room.ENTRIES_AT_ONCE
    try:
        room.ENTRIES_AT_ONCE = data.draw(st.integers(1, 6))
        assert lines(release, "homogeneity") == whole
    finally:
        room.ENTRIES_AT_ONCE = before
