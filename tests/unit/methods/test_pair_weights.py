"""Methods under knowledge that weighs pairs: what every one of them publishes holds by beliefs in fractions."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.audit import attack
from noren.methods.mechanism.omissions import PublishedTerms
from noren.statements import TermCells
from noren.workflow.anonymize import run
from tests.oracles.terms import Demand, World, groups
from tests.unit.release.test_term_release import rewrite, signed
from tests.unit.term_world import DIVERSE, ENOUGH, WORLD, check, known, policy, table

PAIRS = {
    ("Flu", "cough"): Fraction(9, 10),
    ("Cold", "cough"): Fraction(3, 10),
    ("Measles", "cough"): Fraction(1, 2),
    ("Flu", "ache"): Fraction(1, 5),
    ("Allergy", "sneeze"): Fraction(4),
    ("Measles", "rash"): Fraction(3),
}
PAIRED = World(WORLD.labels, pair_weights=PAIRS)
BOTH = World(WORLD.labels, {"Cold": Fraction(3)}, dict.fromkeys(WORLD.labels, Fraction(1, 6)), PAIRS)
CLOSE = {"model": "qs-closeness", "on": "signs", "t": 0.5}
MOVED = CLOSE | {"t": 0.6, "distance": "emd", "unlinked": "prior"}


@pytest.mark.parametrize("world", [PAIRED, BOTH], ids=["pairs", "pairs and labels"])
@pytest.mark.parametrize(
    ("require", "demand"),
    [
        (DIVERSE, ENOUGH),
        (CLOSE, Demand("l2", t=Fraction(1, 2))),
        (MOVED, Demand("emd", t=Fraction(3, 5), prior=True)),
    ],
    ids=["diversity", "l2", "emd"],
)
@pytest.mark.parametrize(
    "method",
    [
        {"k": 3},
        {"k": 3, "cost": "terms", "term_weights": {"cough": 4.0}},
        {"k": 2, "balance": {"generalisation": 0.4}},
        {"name": "mondrian"},
    ],
    ids=["suppress", "prices", "balance", "mondrian"],
)
def test_what_is_published_holds(world: World, require: dict, demand: Demand, method: dict[str, Any]) -> None:
    original = table()
    asked = policy(known(world), [require], nodes=10**6)
    if method.get("name") != "mondrian":
        method = {"name": "suppress", "nodes": 10**6} | method
    asked = nr.Policy(attributes=asked.attributes, require=asked.require, method=method)
    outcome = run(original, asked)
    check(outcome.release, original, demand, world)
    assert all(verdict.holds for verdict in outcome.facts.verdicts)
    for figures in outcome.facts.terms:
        assert figures.optimal.all()


def test_without_the_weights_it_would_not_hold() -> None:
    """The weights matter in this world: what a plain table lets stay breaks the requirement under them."""
    original = table()
    release = nr.anonymize(original, policy(k=3))
    found = {verdict.model: verdict.holds for verdict in nr.verify(release, policy(known(PAIRED), k=3))}
    assert found.pop("published-domain") is False, "it has another knowledge table than the policy"
    assert list(found.values()) == [False]
    assert [verdict.holds for verdict in nr.verify(release, policy(k=3))] == [True]


def test_weights_of_1_are_no_weights_but_published(tmp_path: Path) -> None:
    """Ties are broken at random, costs are not; that every single removal is the same is tested of the search."""
    original, ones = table(), dict.fromkeys([pair for pair in WORLD.pairs if pair[1]], Fraction(1))
    plain, same = (
        run(original, policy(known(world), nodes=10**6)) for world in (WORLD, World(WORLD.labels, pair_weights=ones))
    )
    costs = [sorted(outcome.facts.terms[0].cost.tolist()) for outcome in (plain, same)]
    assert costs[0] == pytest.approx(costs[1], abs=1e-12)
    assert all(outcome.facts.terms[0].optimal.all() for outcome in (plain, same))
    check(same.release, original, ENOUGH)
    same.release.save(tmp_path / "r")
    assert set(pq.read_table(tmp_path / "r" / "knowledge-1.parquet")["pair_weight"].to_pylist()) == {1.0, None}


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_weights_are_published_and_read_again(form: str, tmp_path: Path) -> None:
    """`Idiopathic` has no terms, so its line has no weight of a pair."""
    nr.anonymize(table(), policy(known(BOTH), k=3), to=tmp_path / "r", file_format=form)  # type: ignore[arg-type]
    told, given = nr.open_release(tmp_path / "r").column("signs").column.known, known(BOTH)
    assert (told.labels, told.terms) == (given.labels, given.terms)
    for name in ("bounds", "codes", "weights", "priors", "pair_weights"):
        assert getattr(told, name).tolist() == pytest.approx(getattr(given, name).tolist(), rel=1e-15)
    assert told.pairs is not None
    assert given.pairs is not None
    assert told.pairs.logs.tolist() == given.pairs.logs.tolist()
    assert all(verdict.holds for verdict in nr.verify(nr.open_release(tmp_path / "r")))


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), None])
def test_a_weight_that_cannot_be_is_no_release(wrong: float | None, tmp_path: Path) -> None:
    """A forger who fits the checksums to it gains nothing."""
    nr.anonymize(table(), policy(known(PAIRED), k=3), to=tmp_path / "r")

    def forge(columns: dict[str, list[Any]]) -> None:
        columns["pair_weight"][0] = wrong

    rewrite(tmp_path / "r", "knowledge-1", forge)
    with pytest.raises(nr.errors.ReleaseError, match="not the table that 'signs' needs"):
        signed(tmp_path / "r")


def test_forged_weights_are_found_out_by_the_verdict(tmp_path: Path) -> None:
    nr.anonymize(table(), policy(known(PAIRED), k=3), to=tmp_path / "r")
    rewrite(tmp_path / "r", "knowledge-1", lambda columns: columns["pair_weight"].__setitem__(0, 1e6))
    assert [verdict.holds for verdict in nr.verify(signed(tmp_path / "r"))] == [False]


def test_a_term_put_back_is_weighed_as_the_definition_says() -> None:
    """What the mechanism believes of every row with each further term, in fractions."""
    world, knowledge = BOTH, known(BOTH)
    rows = [["cough"], [], ["fever", "cough"], ["rash", "nausea"]]
    owner = np.repeat(np.arange(4), [len(own) for own in rows])
    cells = TermCells.from_entries(len(knowledge.terms), 4, owner, np.concatenate([knowledge.encode(r) for r in rows]))
    model = nr.models.QSDiversity(on=("signs",), c=1.0, l=2)
    shown = PublishedTerms(cells, knowledge, model, np.full(6, 1 / 6))
    could, _, with_it = shown.put_back(np.arange(4))
    for r, own in enumerate(rows):
        for t, term in enumerate(knowledge.terms):
            beliefs = world.believes([*own, term])
            assert could[r, t] == (bool(beliefs) and term not in own)
            if not could[r, t]:
                continue
            wanted = [float(beliefs.get(label, 0)) for label in knowledge.labels]
            assert with_it[r, t].tolist() == pytest.approx(wanted, abs=1e-12)


def test_an_attack_sees_the_weights() -> None:
    """The largest belief of all groups of the raw table, by the attack, in fractions."""
    original, world = table(), PAIRED
    asked = policy(known(world), k=3)
    release = nr.anonymize(original, asked)
    (found,) = attack(release, "linking", original=original, policy=asked)
    rows = original.to_pylist()
    raw = max(max(world.mean([set(row["signs"]) for row in group]).values()) for group in groups(rows, ["age", "town"]))
    assert found.scenario("raw").summary["max_belief"] == pytest.approx(float(raw))
