"""Weights of pairs, worked out by hand, from the knowledge file to the release and what is read out of it.

Three illnesses, equally common. Of 10 people with flu 9 cough and 8 have a fever, of 10 with a cold 6 cough and 1 has a
fever, of 10 with measles 3 cough and all have a fever:

    terms          Flu               Cold              Measles
    none           1/3               1/3               1/3
    cough          9/18 = 1/2        6/18 = 1/3        3/18 = 1/6
    fever          8/19              1/19              10/19
    cough, fever   72/108 = 2/3      6/108 = 1/18      30/108 = 5/18

All three have both terms, so without weights nothing would be told by any of them.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.methods.suppress.beliefs import TermRequirement, estimated_prior, measure_groups
from noren.methods.suppress.search import search_group
from noren.models.kernels import PEAK, group_beliefs, mean_beliefs
from noren.workflow.anonymize import run
from tests.oracles.terms import World

FILE = """label,term,pair_weight
Flu,cough,0.9
Flu,fever,0.8
Cold,cough,0.6
Cold,fever,0.1
Measles,cough,0.3
Measles,fever,1
"""
BELIEFS = {
    (): ("1/3", "1/3", "1/3"),
    ("cough",): ("1/2", "1/3", "1/6"),
    ("fever",): ("8/19", "1/19", "10/19"),
    ("cough", "fever"): ("2/3", "1/18", "5/18"),
}


@pytest.fixture
def known(tmp_path: Path) -> nr.Knowledge:
    (tmp_path / "k.csv").write_text(FILE)
    return nr.Knowledge.read_csv(tmp_path / "k.csv")


@pytest.mark.parametrize("terms", BELIEFS)
def test_beliefs_of_one_record(terms: tuple[str, ...], known: nr.Knowledge) -> None:
    wanted = [float(Fraction(part)) for part in BELIEFS[terms]]
    codes, bounds = known.encode(terms), np.array([0, len(terms)])
    assert mean_beliefs(bounds, codes, *known.links) == pytest.approx(wanted, abs=1e-15)
    assert estimated_prior(bounds, codes, known) == pytest.approx(wanted, abs=1e-15)
    world = World(
        dict.fromkeys(["Flu", "Cold", "Measles"], frozenset({"cough", "fever"})),
        pair_weights={
            (line.split(",")[0], line.split(",")[1]): Fraction(line.split(",")[2]) for line in FILE.split()[1:]
        },
    )
    assert [world.believes(terms)[label] for label in known.labels] == [Fraction(part) for part in BELIEFS[terms]]


def test_a_group_is_the_mean_of_its_records(known: nr.Knowledge) -> None:
    """(2/3 + 1/2) / 2 in flu; with the weights of labels 1, 4, 1 a cough alone gives 9 : 24 : 3."""
    codes, bounds = np.concatenate([known.encode(["cough", "fever"]), known.encode(["cough"])]), np.array([0, 2, 3])
    found = group_beliefs(np.arange(2), np.array([0, 2]), bounds, codes, *known.links, np.zeros(3), False, 1)
    assert found[0, PEAK] == pytest.approx(7 / 12, abs=1e-15)
    heavier = nr.Knowledge.from_sets(
        [[0, 1]] * 3, terms=known.terms, weights=np.array([1.0, 4, 1]), pair_weights=known.pair_weights
    )
    alone = mean_beliefs(np.array([0, 1]), known.encode(["cough"]), *heavier.links)
    assert alone == pytest.approx([9 / 36, 24 / 36, 3 / 36], abs=1e-15)


def test_the_cheapest_removal(known: nr.Knowledge) -> None:
    """p1 <= p2 + p3: 2/3 is too much for both terms, and 10/19 for fever alone; a cough alone has 1/2 <= 1/2."""
    both = known.encode(["cough", "fever"])
    found = search_group(np.array([0, 2]), both, known, TermRequirement("cl", c=1.0, l=2), seconds=None, nodes=100)
    assert found.removed.tolist() == [False, True]
    assert found.optimal
    assert found.cost == pytest.approx((1 / 2) / (1 + 1 / 2))
    assert measure_groups(np.arange(1), np.array([0, 1]), np.array([0, 2]), both, known)[0, 1] == pytest.approx(2 / 3)


def test_products_of_many_small_numbers_do_not_vanish() -> None:
    """Forty terms of 1e-200 and 2e-200: odds of 2^40 to 1, and of 1 to 1 between equals; logarithms of 1e300 too."""
    terms = [f"t{i}" for i in range(40)]
    small, wide = ({(label, term): w for label, w in own.items() for term in terms} for own in (
        {"a": 1e-200, "b": 2e-200, "c": 2e-200}, {"a": 1e-300, "b": 1e300, "c": 1e300},
    ))  # fmt: skip
    for weights, odds in ((small, 2.0**40), (wide, np.inf)):
        known = nr.Knowledge.from_pairs(weights, pair_weights=weights)
        codes, bounds = known.encode(terms), np.array([0, 40])
        wanted = [1 / (1 + 2 * odds), 1 / (1 / odds + 2), 1 / (1 / odds + 2)]
        for found in (mean_beliefs(bounds, codes, *known.links), estimated_prior(bounds, codes, known)):
            assert found == pytest.approx(wanted, rel=1e-9, abs=1e-300)
        found = search_group(bounds, codes, known, TermRequirement("cl", c=1.0, l=3), seconds=None, nodes=1000)
        assert found.feasible
        assert found.removed.all(), "whichever term stays, it speaks against a, and p1 <= p3 asks for all three alike"


def policy(known: nr.Knowledge, **method: object) -> nr.Policy:
    return nr.Policy(
        attributes={"age": "quasi-identifier", "signs": {"role": "quasi-sensitive", "knowledge": known}},
        require=[{"model": "qs-diversity", "on": "signs", "c": 1.0, "l": 2}],
        method={"name": "suppress", "nodes": 100} | method,
    )


def people(*signs: list[str]) -> pa.Table:
    return pa.table({"age": list(range(len(signs))), "signs": pa.array(signs, pa.list_(pa.string()))})


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_release_loses_what_must_go_and_says_what_it_was_judged_by(
    form: str, known: nr.Knowledge, tmp_path: Path
) -> None:
    """Three people of different ages: both terms, fever alone, cough alone. Only coughs may stay."""
    outcome = run(people(["cough", "fever"], ["fever"], ["cough"]), policy(known), to=tmp_path / "r", file_format=form)  # type: ignore[arg-type]
    release = nr.open_release(tmp_path / "r")
    assert release.frame().sort("age")["signs"].to_list() == [["cough"], [], ["cough"]]
    (figures,) = outcome.facts.terms
    assert figures.optimal.all()
    assert figures.note.endswith("2 of these suppressions are proven to be the cheapest")
    told = release.column("signs").column.known
    assert told.pair_weights is not None
    assert known.pair_weights is not None
    assert told.pair_weights.tolist() == known.pair_weights.tolist() == [0.9, 0.8, 0.6, 0.1, 0.3, 1.0]
    (verdict,) = nr.verify(release)
    assert verdict.holds
    assert verdict.achieved == pytest.approx(1.0)
    assert "more than 0.5 " in verdict.statement


def test_another_table_of_pairs_is_another_verdict(known: nr.Knowledge, tmp_path: Path) -> None:
    """What is published meets its own weights; by an auditor's, of whom all with flu cough, it does not."""
    release = nr.anonymize(people(["cough", "fever"], ["cough"]), policy(known))
    sharper = nr.Knowledge.from_pairs(
        [(label, term) for label in known.labels for term in known.terms], pair_weights={("Flu", "cough"): 9.0}
    )
    assert [verdict.holds for verdict in nr.verify(release, policy(known))] == [True]
    verdict, domain = nr.verify(release, policy(sharper))
    assert (domain.model, domain.holds) == ("published-domain", False), "it has another knowledge table than the policy"
    assert not verdict.holds
    assert verdict.achieved == pytest.approx(9 / 2)
