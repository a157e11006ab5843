"""The minimality attack: the example of Wong et al., classes that give nothing away, and where it does not apply."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit import attack, reasons
from noren.engines import Records
from noren.errors import QueryError
from noren.methods.mechanism.refusals import Cut, in_several_parts, learn, parts_for_size
from noren.methods.mondrian.classes import classes_of
from noren.models import BetaLikeness, FrequencyLDiversity
from noren.schema.domain import Domain
from tests.unit.audit.world import secret


class OnlyTheFirst(FrequencyLDiversity):
    """No more than half of a class may have value 0; the other values are harmless, as in the paper's example."""

    def judge_histograms(self, part, column, overall):
        of_first = np.bincount(part.owner[part.value == 0], part.mass[part.value == 0], minlength=len(part))
        share = of_first / part.n
        return 1 / np.maximum(share, 1e-9), share <= 0.5


COLUMN = secret("exact", 2)


def test_two_of_six_are_certain() -> None:
    """Two ill people in a class of six that k = 2 would have cut into two and four.

    Two ill among four are permitted, so the two who would stand alone must both be ill.
    """
    cut = Cut(np.zeros(6, int), np.array([0, 0, 1, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1]), 2)
    found = learn(cut, [OnlyTheFirst(on="ill", l=2)], COLUMN, np.zeros(0), 2_000)
    assert found.before.tolist() == pytest.approx([2 / 3, 2 / 3])
    assert found.top[0] == 0
    assert found.belief[0] == 1.0
    assert found.posterior[0].tolist() == [1.0, 0.0]
    assert found.posterior[1].tolist() == [0.0, 1.0]
    assert found.gains.all()
    assert 60 < found.violations[0] < 220, "1 of 15 ways"


def test_equal_parts_give_nothing_away() -> None:
    cut = Cut(np.zeros(4, int), np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), 2)
    found = learn(cut, [FrequencyLDiversity(on="ill", l=2)], COLUMN, np.zeros(0), 2_000)
    assert not found.gains.any()
    assert found.posterior.ravel() == pytest.approx([0.5] * 4, abs=0.1)


def test_a_cut_that_breaks_nothing_stays_undecided() -> None:
    """Then something else stood in the way, and nothing is believed that was not believed before."""
    cut = Cut(np.zeros(4, int), np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3]), 4)
    found = learn(cut, [FrequencyLDiversity(on="ill", l=2)], secret("exact", 4), np.zeros(0), 100)
    assert not found.settled.any()
    assert found.belief.tolist() == [0.25, 0.25]


def test_parts_lie_inside_classes() -> None:
    rng = np.random.default_rng(0)
    n = 600
    age, mine = rng.integers(0, 40, n), np.repeat(np.arange(20), 30)
    column = nr.quasi_identifier().over("age", Domain(tuple(map(str, range(40))), "integer"))
    table = Records(n, {"age": column}, {"age": age})
    parts = parts_for_size(table, np.arange(n), mine, 5)
    assert all(len(set(mine[parts == part])) == 1 for part in np.unique(parts))
    assert np.bincount(parts).min() >= 5
    assert len(np.unique(parts)) > 40
    assert in_several_parts(mine, parts).all()
    mixed = parts.copy()
    mixed[0] = parts[-1]
    assert not in_several_parts(mine, mixed)[[0, -1]].any()


def test_parts_are_those_of_each_class_alone() -> None:
    rng = np.random.default_rng(1)
    n = 2_000
    domains = {"age": Domain(tuple(map(str, range(60))), "integer"), "town": Domain(tuple(f"t{i}" for i in range(9)))}
    columns = {name: nr.quasi_identifier().over(name, domain) for name, domain in domains.items()}
    table = Records(n, columns, {name: rng.integers(0, len(domain), n) for name, domain in domains.items()})
    mine = rng.permutation(np.repeat(np.arange(25), 80)) * 3
    who = np.flatnonzero(rng.random(n) < 0.9)
    found = parts_for_size(table, who, mine[who], 6)
    first = 0
    for group in np.unique(mine):
        some = mine[who] == group
        alone = Records(int(some.sum()), columns, {name: codes[who][some] for name, codes in table.codes.items()})
        classes, count = classes_of(alone, [nr.models.KAnonymity(k=6)], np.arange, nr.methods.Mondrian(refinement=0))
        assert found[some].tolist() == (first + classes).tolist()
        first += count
    assert first > 100


def people(n: int = 3_000) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    age = rng.integers(20, 60, n)
    ill = np.where(rng.random(n) < 0.5, age // 10 - 2, rng.integers(0, 6, n))
    return pl.DataFrame({"age": age, "zip": rng.integers(0, 50, n), "ill": [f"ill {code}" for code in ill]})


def policy(*require, **method) -> nr.Policy:
    return nr.Policy(
        attributes={"age": "quasi-identifier", "zip": "quasi-identifier", "ill": "sensitive"},
        require=[nr.models.KAnonymity(k=4), *require],
        method=nr.methods.Mondrian(**method),
    )


def test_the_holder_and_an_outsider() -> None:
    table, rules = people(), policy(BetaLikeness(on="ill", beta=1.2), refinement=0, exchange=False)
    release = nr.anonymize(table, rules)
    (outside,) = attack(release, "minimality", draws=60)
    assert [one.name for one in outside.scenarios] == ["classes", "at-most"]
    assert not outside.holder_only
    assert outside.facts["k"] == 4
    assert outside.scenarios[1].summary["mean_belief"] >= outside.scenarios[0].summary["mean_belief"]
    (inside,) = attack(release, "minimality", original=table, policy=rules, draws=60)
    assert inside.holder_only
    assert inside.facts["classes_with_known_members"] == inside.facts["classes"]
    assert 0 < inside.facts["cut_by_k_alone"] <= inside.facts["classes"]
    assert inside.facts["gaining_classes"] <= inside.facts["cut_by_k_alone"]
    plain, told = inside.scenarios
    assert plain.summary["right"] == pytest.approx(plain.summary["mean_belief"], abs=0.03)
    low, high = told.bounds["mean_belief"]
    assert low < told.summary["mean_belief"] < high
    assert told.frame["record"].to_list() == list(range(1, table.height + 1))
    assert "hconcat" in inside.chart().to_dict()
    assert inside.notes[0].startswith(f"{inside.facts['gaining_classes']:,} of ")


def test_overlapping_classes_are_left_alone() -> None:
    table, rules = people(1_000), policy(FrequencyLDiversity(on="ill", l=3), refinement=3)
    release = nr.anonymize(table, rules)
    (found,) = attack(release, "minimality", original=table, policy=rules, draws=20)
    if found.facts["classes_with_known_members"] < found.facts["classes"]:
        assert any("overlap" in note for note in found.notes)
    assert found.scenarios[1].summary["max_belief"] <= 1


def test_it_does_not_apply_to_decoys_groups_or_k_alone() -> None:
    table = people(400)
    asked = [FrequencyLDiversity(on="ill", l=2)]
    roles = {"age": "plain", "zip": "plain", "ill": "sensitive"}
    anything = {"most": 1.0}  # what age tells by chance is not asked about here
    decoys = nr.anonymize(table, nr.Policy(attributes=roles, require=asked, dependence=anything))
    assert "decoys are drawn for each record independently" in str(reasons(decoys)["minimality"])
    quasi = {"age": "quasi-identifier", "zip": "quasi-identifier", "ill": "sensitive"}
    apart = nr.anonymize(table, nr.Policy(attributes=quasi, require=asked, method=nr.methods.Anatomy()))
    assert "drawn at random from the records of each secret" in str(reasons(apart)["minimality"])
    with pytest.raises(QueryError, match="the minimality attack does not apply"):
        attack(decoys, "minimality")
