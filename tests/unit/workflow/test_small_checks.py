"""Checks around a release, one by one: repeated keys, margins and their policy, nodes, larger classes, registers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import noren as nr
from noren.errors import DataError, ReleaseError
from noren.release.manifest import PublishedMargin
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from noren.secret import ClassSets
from noren.workflow import republish
from noren.workflow.republish import _of_people, demand_unique, publication
from noren.workflow.settling import larger
from noren.workflow.verify import _unlike, asked_margins, declared_noise, demand_signed, other_nodes, reach_of_noise

# ---------------------------------------------------------------- keys

TOP = 1 << 64


@pytest.mark.parametrize(
    ("digests", "repeated"),
    [
        ([0, 0, TOP // 2 - 1, TOP // 2 - 1, TOP // 2, TOP // 2, TOP - 1, TOP - 1], 4),
        ([0, TOP // 2, TOP // 2 - 1, TOP - 1, 0, TOP // 2, TOP // 2 - 1, TOP - 1], 4),
        ([7, 7, 7], 2),
        ([1, 2, 3, TOP - 1], 0),
        ([], 0),
    ],
)
def test_repeated_keys_are_counted(digests: list[int], repeated: int) -> None:
    found = np.array(digests, np.uint64)
    if repeated:
        with pytest.raises(DataError, match=f"'id' is not unique: {repeated} records repeat"):
            demand_unique(found, "id")
    else:
        demand_unique(found, "id")


# ---------------------------------------------------------------- margins


def margin(of: tuple[str, ...], counts: tuple[int, ...], epsilon: float = 1.0) -> PublishedMargin:
    return PublishedMargin(of=of, epsilon=epsilon, sensitivity=2, counts=counts)


def spending(*margins: PublishedMargin) -> Any:
    manifest = SimpleNamespace(margins=margins, spent=sum(one.epsilon for one in margins))
    return SimpleNamespace(manifest=manifest, records=9, spent=manifest.spent, margins=margins)


JOB, TOWN = margin(("job",), (1, 2)), margin(("town", "job"), (1, 2, 3, 4), 0.5)


@pytest.mark.parametrize(
    ("published", "asked", "holds", "said"),
    [
        ((JOB,), (JOB,), True, ""),
        ((), (JOB,), True, ""),
        ((JOB, JOB), (JOB,), False, ""),
        ((TOWN,), (JOB,), False, "the margin town x job of the release differs from the policy"),
        ((JOB,), (), False, "the margin job of the release differs from the policy"),
    ],
)
def test_margins_are_those_that_the_policy_asks_for(published: Any, asked: Any, holds: bool, said: str) -> None:
    (found,) = asked_margins(spending(*published), spending(*asked))
    assert (found.holds, found.breaches, found.statement) == (holds, 0 if holds else 9, said)
    assert (found.required, found.achieved, found.records) == (spending(*asked).spent, spending(*published).spent, 9)
    assert asked_margins(spending(), spending()) == []


def counted(counts: tuple[int, ...], values: tuple[str, ...] = ("cook", "clerk")) -> Any:
    """The verdict on a margin of two jobs in two towns; three cooks are in Ulm, two clerks in Hof."""
    columns = {"town": Domain(("Ulm", "Hof")), "job": Domain(("cook", "clerk"))}
    release = spending(margin(("town", "job"), counts))
    release.column = lambda name: SimpleNamespace(d=2, domain=columns[name])
    own = {"town": Domain(("Hof", "Ulm")), "job": Domain(values)}
    table: Any = SimpleNamespace(
        histogram=lambda of: (np.array([[1, 0], [0, 1]]), np.array([3, 2])),
        columns={name: Column(role=Role.PLAIN).over(name, domain) for name, domain in own.items()},
    )
    (found,) = declared_noise(release, table)
    return found


def test_counts_lie_as_far_from_the_original_as_the_noise_they_declare() -> None:
    low, high = reach_of_noise(4, 2.0)
    near = counted((4, 1, -1, 1))
    assert (near.holds, near.achieved, near.breaches) == (True, 4 / 4, 0)
    assert low <= 4 <= high
    far = counted((3 + int(high) + 1, 0, 0, 2))
    assert (far.holds, far.breaches, far.column) == (False, 9, "town, job")
    assert far.achieved == pytest.approx((int(high) + 1) / 4)
    other = counted((3, 0, 0, 2), ("cook", "smith"))
    assert (other.holds, other.breaches) == (None, 0)
    assert other.statement.startswith("the margin does not count some values of the original")


@pytest.mark.parametrize(("cells", "scale"), [(1, 2.0), (40, 1.0), (300, 5.0)])
def test_noise_reaches_as_far_as_its_moments_say(cells: int, scale: float) -> None:
    """Chernoff's bound from the chances of discrete Laplace noise, added up one by one."""
    q, size = np.exp(-1 / scale), np.arange(4000)
    share = np.where(size == 0, 1.0, 2.0) * (1 - q) / (1 + q)

    def moment(s: float) -> float:
        return float((share * np.exp((s - 1 / scale) * size)).sum())

    def bound(s: float) -> float:
        return float((np.log(1e9) + cells * np.log(moment(s))) / s)

    assert moment(0) == pytest.approx(1)
    low, high = reach_of_noise(cells, scale)
    assert high == pytest.approx(min(bound(s / scale) for s in np.linspace(0.01, 0.98, 1000)), rel=1e-3)
    assert low == pytest.approx(max(0.0, *(bound(-s) for s in np.geomspace(1e-3, 50, 1000))), rel=1e-3, abs=1e-3)


# ---------------------------------------------------------------- what a release says of itself


def test_a_release_in_memory_has_no_signature() -> None:
    with pytest.raises(ReleaseError, match="a release in memory has no signature"):
        demand_signed(SimpleNamespace(path=None), "key.pub")  # type: ignore[arg-type]


TREE = Hierarchy((("ash", "elm", "fir"), ("leaf", "leaf", "pine"), ("*", "*", "*")))


def general(name: str, values: tuple[str, ...], wrong: list[str]) -> Any:
    return SimpleNamespace(
        name=name,
        domain=Domain(values),
        nodes="some",
        find_misnamed=lambda known: wrong if known.leaves == values else ["?"],
    )


def test_general_values_are_those_of_the_policy() -> None:
    assert _unlike(general("tree", ("ash", "elm"), []), TREE) == []
    assert _unlike(general("tree", ("ash", "elm"), ["leaf"]), TREE) == ["leaf"]
    assert _unlike(general("tree", ("ash", "oak"), []), TREE) == ["oak"]
    exact = SimpleNamespace(name="tree", nodes=None)
    statements = [general("tree", ("ash", "fir"), ["leaf", "pine"]), general("free", ("x",), ["x"]), exact]
    policy: Any = SimpleNamespace(hierarchies={"tree": TREE})
    (found,) = other_nodes(SimpleNamespace(statements=statements, records=7), policy)  # type: ignore[arg-type]
    assert (found.column, found.holds, found.achieved, found.breaches) == ("tree", False, 2.0, 7)


# ---------------------------------------------------------------- classes that grow


def test_classes_grow_by_their_size_or_by_a_size_that_is_added() -> None:
    two, close = nr.models.KAnonymity(k=2), nr.models.TCloseness(on="job", t=0.4)
    diverse = nr.models.DistinctLDiversity(on="job", l=3)
    assert [model.k for model in larger([two], 1.5)] == [3]
    assert larger([two, diverse], 2)[1:] == [diverse]
    assert larger([close], 1) == [close]
    grown = larger([close], 2)
    assert (grown[0].t < 0.4, grown[1]) == (True, nr.models.KAnonymity(k=4))


# ---------------------------------------------------------------- registers

SETS = ClassSets(("a", "b", "c"), np.array([0, 1, 1]), np.array([0, 2, 3]), np.array([0, 1, 2]))
"""The first of three records may have a or b, the others have c."""


def lists(sets: ClassSets) -> list[list[str]]:
    return [[sets.values[c] for c in sets.codes[sets.bounds[w] : sets.bounds[w + 1]]] for w in sets.which]


def test_people_have_what_any_of_their_records_leaves_possible() -> None:
    assert lists(_of_people(SETS, np.array([2, 0, 1]), 3)) == [["c"], ["c"], ["a", "b"]]
    assert lists(_of_people(SETS, np.array([1, 0, 1]), 2)) == [["c"], ["a", "b", "c"]]


@pytest.mark.parametrize(("size", "least"), [(1, 2), (2, 2), (3, 3)])
def test_a_register_is_told_of_the_classes_of_secrets(size: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def statement(name: str, needs: bool = True) -> Any:
        return SimpleNamespace(name=name, role=SimpleNamespace(needs_requirement=needs))

    monkeypatch.setattr(republish, "class_sets", lambda draft, one: None if one.name == "open" else SETS)
    statements = [statement("job"), statement("town", False), statement("drawn"), statement("plain"), statement("open")]
    draft: Any = SimpleNamespace(
        keep=np.array([True, True, False, True]),
        designs={"drawn": SimpleNamespace(title="t", eta=2, p=1.0)},
        by_name={"drawn": SimpleNamespace(column=Column(role=Role.SENSITIVE).over("drawn", Domain(("x",))))},
        statements=statements,
        cells=dict.fromkeys(["job", "town", "drawn", "open"]),
    )
    options = SimpleNamespace(columns={"job": "work"}, repeat="refuse", budget=None)
    asked = [
        SimpleNamespace(on=("job",), least_set_size=size, invariant=False),
        SimpleNamespace(on=("town",), least_set_size=9, invariant=True),
    ]
    policy: Any = SimpleNamespace(randomness=options, require=asked, spent=0.0)
    found = publication(draft, policy, np.array([7, 3, 9, 5], np.uint64), None, True)  # type: ignore[arg-type]
    assert (list(found.classes), list(found.drawn), found.people.tolist()) == (["work"], ["drawn"], [3, 5, 7])
    told = found.classes["work"]
    assert lists(told.sets) == [["c"], ["c"], ["a", "b"]]
    assert (told.least, told.invariant) == (least, False)
