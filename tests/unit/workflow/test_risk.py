"""The raw table's risk: small tables by hand, random ones by the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.audit.risk import _looks
from noren.audit.risk import raw as uniques
from noren.audit.risk.raw import RawColumn, RawTable, class_sizes, dis_scores, find_uniques, lonely, near, reach, weight
from noren.errors import DataError, PolicyError, QueryError
from noren.policy.proposal import propose, study
from noren.sources.source import open_source
from tests.oracles import risk as oracle
from tests.unit.drafted_tables import visits

SURVEY = pl.DataFrame(
    {
        "region": ["north", "north", "north", "south", "south", "south", "south", "south"],
        "sex": ["f", "f", "m", "f", "f", "m", "m", "m"],
        "age": [30, 30, 30, 30, 41, 41, 41, 41],
        "job": ["cook", "cook", "cook", "cook", "cook", "clerk", "clerk", "miner"],
    }
)
QUASI = ["region", "sex", "age", "job"]


def raw(rows: list[list[int]], people: list[int] | None = None, numbers: bool = False) -> RawTable:
    table = np.array(rows, np.int64)
    columns = tuple(
        RawColumn(
            f"c{i}",
            table[:, i].copy(),
            int(table[:, i].max()) + 1,
            0,
            "integer",
            table[:, i] * 1.0 if numbers else None,
        )
        for i in range(table.shape[1])
    )
    return RawTable("raw", len(table), columns, None if people is None else np.array(people))


class TestByHand:
    def test_uniques_and_k(self) -> None:
        # alone with everything: (north m 30 cook), (south f 30 cook), (south f 41 cook), (south m 41 miner)
        found = nr.risk(SURVEY, quasi=QUASI)
        assert (found.uniques, found.people, found.smallest) == (4, 8, 1)
        assert [(one.least, one.people) for one in found.looks][:2] == [(1, 4), (2, 4)]
        assert found.mean_risk == pytest.approx((4 * 1 + 4 / 2) / 8)
        assert found.records["k"].to_list() == [2, 2, 1, 1, 1, 2, 2, 1]

    def test_minimal_uniques_and_scores(self) -> None:
        # ATT = 4, M = 3: one column weighs 3*2*1 = 6, two 2*1 = 2, three 1.
        # row 3: {region, sex}, {sex, age}, {sex, job}: 2 + 2 + 2. row 4: {region, age}: 2.
        # row 5: {sex, age}, {age, job}: 2 + 2. row 8: {job}: 6.
        found = nr.risk(SURVEY, quasi=QUASI, size=3)
        assert found.records["suda"].to_list() == [0, 0, 6, 2, 4, 0, 0, 6]
        assert found.special.by_size == (1, 6, 0)
        assert found.special.rows == 4
        shares = {one.column: one.contribution for one in found.columns}
        assert shares == pytest.approx({"region": 4 / 18, "sex": 8 / 18, "age": 8 / 18, "job": 10 / 18})

    def test_the_weights_of_sdcmicro_where_all_sizes_are_looked_at(self) -> None:
        for columns in (3, 4, 7):
            for size in range(1, columns + 1):
                assert weight(size, columns, columns) == oracle.full_weight(size, columns)

    def test_what_a_column_adds(self) -> None:
        found = nr.risk(SURVEY, quasi=QUASI)
        left = {one.column: one.uniques_without for one in found.columns}
        # without job, (south m 41) is shared by three; without age, (south f cook) by two more
        assert left == {"region": 3, "sex": 3, "age": 2, "job": 3}
        assert next(one for one in found.columns if one.column == "job").alone == 1 / 8

    def test_dis_suda(self) -> None:
        # two uniques, one pair, half the people: mean chance 2*.5 / (2*.5 + 2*.5) = 1/2, which equal scores keep
        scores = np.array([3.0, 3.0, 0.0, 0.0])
        assert dis_scores(scores, np.array([1, 1, 2]), 8, 0.5) == pytest.approx([0.5, 0.5, 0, 0])
        # unequal scores, ATT = 8 so that Q = 1: 1 / (1 + 2 (1/.5 - 1) / (score * (1/1 + 1/3)))
        unequal = dis_scores(np.array([1.0, 3.0, 0.0, 0.0]), np.array([1, 1, 2]), 8, 0.5)
        assert unequal == pytest.approx([1 / (1 + 2 / (4 / 3)), 1 / (1 + 2 / 4), 0, 0])

    def test_near(self) -> None:
        # the standard deviation is 10.7: within a tenth of it, 0.5 and 1.5 are near, 10.5 and 11.5 too; 30.5 is alone
        table = pl.DataFrame({"x": [0.5, 1.5, 10.5, 11.5, 30.5], "code": [1, 2, 3, 4, 5]})
        found = nr.risk(table, quasi=["x", "code"], within=0.1)
        assert [(one.columns, one.alone) for one in found.near] == [(("x",), 1)], "few whole numbers are codes"
        assert found.uniques == 5

    def test_population(self) -> None:
        found = nr.risk(SURVEY, quasi=QUASI, fraction=1)
        assert [one.uniques for one in found.population] == [4]


class TestPeople:
    VISITS = pl.DataFrame(
        {
            "pid": [1, 1, 2, 3, 4, 4],
            "home": ["a", "a", "a", "b", "b", "b"],
            "sex": ["f", "f", "m", "m", "f", "f"],
            "ward": ["x", "y", "x", "x", "y", "y"],
            "dx": ["flu", "flu", "cold", "flu", "cold", "flu"],
        }
    )

    def policy(self, **people: Any) -> nr.Policy:
        return nr.Policy(
            attributes={
                "pid": "identifier",
                "home": "identifier",
                "sex": "quasi-identifier",
                "ward": "quasi-identifier",
                "dx": "sensitive",
            },
            require=[{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "on": "dx", "l": 2}],
            method={"name": "mondrian"},
            people=people,
        )

    def test_people_are_counted(self) -> None:
        # classes: (f, x) person 1; (f, y) persons 1, 4; (m, x) persons 2, 3. Person 1 is alone by one visit.
        found = nr.risk(self.VISITS, self.policy(key="pid"))
        assert (found.rows, found.people, found.uniques) == (6, 4, 1)
        assert found.records["k"].to_list() == [1, 2, 2, 2, 2, 2]
        broken = {verdict.model: (verdict.breaches, verdict.records) for verdict in found.verdicts}
        assert broken["k-anonymity"][0] == 1
        several = "among broken requirements, a person with rows in several classes counts once in each class"
        assert several in found.notes
        once = self.VISITS.unique("pid", keep="first", maintain_order=True)
        assert several not in nr.risk(once, self.policy(key="pid")).notes

    def test_households(self) -> None:
        # people's smallest k: 1, 2, 2, 2; homes a: 1 - 0 * .5 = 1, b: 1 - .5 * .5 = .75
        found = nr.risk(self.VISITS, self.policy(key="pid", household="home"))
        home = found.household
        assert home is not None
        assert (home.households, home.alone) == (2, 1)
        assert home.mean_person == pytest.approx((1 + 0.5 * 3) / 4)
        assert home.mean_household == pytest.approx((1 + 1 + 0.75 + 0.75) / 4)
        assert found.records["household_risk"].to_list() == pytest.approx([1, 1, 1, 0.75, 0.75, 0.75])
        assert home.below[:2] == ((2, 1), (3, 2))

    def test_a_household_that_is_no_column_is_named(self) -> None:
        with pytest.raises(PolicyError, match=r"people\.household"):
            self.policy(household="house")

    def test_a_household_that_repeats_is_no_person(self) -> None:
        """An identifier that repeats is refused, unless the policy says that it names households."""
        table = pl.DataFrame(
            {"home": [i // 2 for i in range(40)], "sex": ["f", "m"] * 20, "dx": ["flu", "flu", "cold", "cold"] * 10}
        )
        attributes = {"home": "identifier", "sex": "quasi-identifier", "dx": "sensitive"}
        rules = {"require": [{"model": "distinct-l-diversity", "on": "dx", "l": 2}], "method": {"name": "mondrian"}}
        with pytest.raises(PolicyError, match="identifier 'home'"):
            nr.anonymize(table, nr.Policy(attributes=attributes, **rules))
        assert (
            nr.anonymize(table, nr.Policy(attributes=attributes, people={"household": "home"}, **rules)).records == 40
        )


class TestOracle:
    @pytest.mark.parametrize("seed", range(12))
    def test_minimal_uniques(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 4, (40, 5)).tolist()
        people = np.unique(rng.integers(0, 25, 40), return_inverse=True)[1].tolist() if seed % 2 else list(range(40))
        most = 1 + seed % 5
        found = find_uniques(raw(rows, people if seed % 2 else None), most)
        msus = oracle.minimal_uniques(rows, people, most)
        assert found.scores.tolist() == oracle.scores(msus, 5, most)
        by_columns = {one.columns: one.minimal for one in found.combinations}
        for chosen in {one for many in msus for one in many}:
            assert by_columns[tuple(f"c{i}" for i in chosen)] == sum(chosen in many for many in msus)
        assert sum(found.by_size) == sum(map(len, msus))
        for one in found.combinations:
            chosen = [int(name[1:]) for name in one.columns]
            assert one.alone == len({p for at, p in enumerate(people) if oracle.alone(rows, people, at, chosen)})

    @pytest.mark.parametrize("seed", range(8))
    def test_nearness(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 60, (50, 1 + seed % 3)).tolist()
        several = np.unique(rng.integers(0, 20, 50), return_inverse=True)[1].tolist()
        people = several if seed % 2 else list(range(50))
        table = raw(rows, people if seed % 2 else None, numbers=True)
        spread = np.std(np.array(rows), axis=0)
        found = lonely(table, range(len(rows[0])), 0.13)
        assert found.tolist() == oracle.lonely(rows, people, (spread * 0.13).tolist())

    def test_wide_columns_are_told_apart(self) -> None:
        """More combinations than a number holds: keys are made dense on the way."""
        rng = np.random.default_rng(3)
        rows = rng.integers(0, 1 << 30, (60, 4)).tolist()
        rows[1] = list(rows[0])
        sizes, of = class_sizes(raw(rows), range(4))
        assert sorted(sizes.tolist()) == [1] * 58 + [2]
        assert of[0] == of[1]


class TestEdges:
    def test_what_is_cut_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(uniques, "MOST_COMBINATIONS", 10)
        found = nr.risk(SURVEY, quasi=QUASI)
        assert found.special.size == 2
        assert "instead of 4" in found.notes[0]

    def test_reach(self) -> None:
        assert (reach(8, 4), reach(20, 4), reach(3, 4)) == (4, 3, 3)

    def test_texts_that_write_one_value(self) -> None:
        found = nr.risk(pl.DataFrame({"x": ["160.0", "160", "161"]}), quasi=["x"])
        assert found.uniques == 1

    @pytest.mark.parametrize(("where", "uniques"), [(None, 0), ("data", 2), ("column", 2)])
    def test_texts_with_a_decimal_comma(self, where: str | None, uniques: int) -> None:
        """Said of the file or of the column, 1,500 is one and a half; otherwise it is 1500."""
        column = {"role": "quasi-identifier"} | ({"decimal": ","} if where == "column" else {})
        rules = nr.Policy(
            attributes={"x": column},
            require=[nr.models.KAnonymity(k=2)],
            method="mondrian",
            data={"decimal": ","} if where == "data" else {},
        )
        assert nr.risk(pl.DataFrame({"x": ["1,500", "1500"]}), rules).uniques == uniques

    def test_missing_cells_equal_each_other(self) -> None:
        found = nr.risk(pl.DataFrame({"x": [None, None, 1, 2]}), quasi=["x"])
        assert (found.uniques, found.columns[0].missing, found.columns[0].distinct) == (2, 2, 2)
        assert "missing cells" in found.notes[-1]

    def test_people_are_counted_where_the_draft_finds_their_key(self) -> None:
        """The share of unique people is that which `noren init` writes below its draft."""
        table = visits(300)
        found = nr.risk(table)
        assert (found.people, found.rows) == (300, table.height)
        made = propose(study(open_source(table)))
        assert made.people == {"key": "patient_id"}
        people = made.codes.columns["patient_id"]
        assert found.unique_share == made.codes.alone(found.quasi, people)

    def test_without_roles_the_draft_is_asked(self) -> None:
        table = pl.DataFrame(
            {"sex": ["f", "m"] * 10, "zip": [str(i % 7) for i in range(20)], "name": [f"n{i}" for i in range(20)]}
        )
        found = nr.risk(table)
        assert {"sex", "zip"} <= set(found.quasi)
        assert "name" not in found.quasi
        assert "noren init" in found.notes[0]

    @pytest.mark.parametrize(
        ("given", "error"),
        [
            ({"quasi": ["nothing"]}, DataError),
            ({"quasi": ["sex", "sex"]}, QueryError),
            ({"quasi": ["sex"], "fraction": 0.0}, QueryError),
            ({"quasi": ["sex"], "size": 0}, QueryError),
            ({"quasi": ["sex"], "within": 0.0}, QueryError),
        ],
    )
    def test_wrong_questions(self, given: dict[str, Any], error: type[Exception]) -> None:
        with pytest.raises(error):
            nr.risk(SURVEY, **given)

    def test_shows_itself(self) -> None:
        found = nr.risk(SURVEY, quasi=QUASI)
        assert repr(found) == "<Risk of the polars DataFrame: 4 of 8 people are unique (50.0%), smallest k 1>"
        assert "<table>" in found._repr_html_()
        assert found.frame.columns == ["columns", "size", "alone", "share", "minimal"]
        assert len(found.chart().to_dict()["vconcat"]) == 2
        told = found.to_dict()
        assert told["uniques"] == 4
        assert "records" not in told

    def test_bins_of_the_policy_do_not_hide_the_raw_table(self) -> None:
        policy = nr.Policy(
            attributes={"age": nr.quasi_identifier(bins=[0, 50, 100]), "job": nr.sensitive()},
            require=[nr.models.FrequencyLDiversity(on="job", l=2)],
            method=nr.methods.Mondrian(),
        )
        table = pl.DataFrame({"age": [10, 20, 30, 40], "job": ["a", "b", "a", "b"]})
        found = nr.risk(table, policy)
        assert found.uniques == 4
        assert found.verdicts[0].breaches == 4


def test_nearness_has_no_unit() -> None:
    """The same people in metres and in kilometres are as lonely."""
    metres = np.array([0.0, 10, 20, 30, 500, 5000])

    def far(numbers: np.ndarray) -> list[bool]:
        column = RawColumn("place", np.arange(6), 6, 0, "number", numbers)
        return lonely(RawTable("places", 6, (column,)), [0], 0.01).tolist()

    assert far(metres) == far(metres / 1000) == [False, False, False, False, True, True]


def test_single_columns_are_always_looked_at() -> None:
    assert reach(uniques.MOST_COMBINATIONS + 1, 2) == 1
    assert reach(3, 2) == 2


def test_classes_are_counted_up_to_these_sizes() -> None:
    found = [(one.least, one.most, one.people) for one in _looks(np.array([1, 2, 3, 4, 5, 9, 10, 60]))]
    assert found == [(1, 1, 1), (2, 2, 1), (3, 4, 2), (5, 9, 2), (10, 19, 1), (20, 49, 0), (50, None, 1)]


def test_combinations_are_followed_whatever_the_number_of_records() -> None:
    """Marks of records are packed in bytes: tables that fill the last one, and tables that do not."""
    rng = np.random.default_rng(5)
    for n in range(6, 19):
        rows = rng.integers(0, 3, (n, 4)).tolist()
        table = raw(rows)
        found = find_uniques(table, 4)
        for one in found.combinations:
            keys = [tuple(row[int(name[1:])] for name in one.columns) for row in rows]
            assert one.alone == sum(keys.count(key) == 1 for key in keys)


def test_single_columns_alone_may_be_asked_for() -> None:
    assert all(len(one.columns) == 1 for one in nr.risk(SURVEY, quasi=QUASI, size=1).top(10))
    with pytest.raises(QueryError, match="size = 0 is not a number of columns"):
        nr.risk(SURVEY, quasi=QUASI, size=0)


@pytest.mark.parametrize(("count", "asked"), [(1, 1), (2, 3), (3, 7), (5, 16), (6, 7)])
def test_numbers_are_known_singly_in_pairs_and_all_together(count: int, asked: int) -> None:
    """Pairs of up to five columns; of two columns the pair is all of them."""
    rng = np.random.default_rng(1)
    columns = tuple(RawColumn(f"c{i}", np.arange(30), 30, 0, "number", rng.random(30)) for i in range(count))
    found = near(RawTable("numbers", 30, columns))
    assert len(found) == asked
    assert len({one.columns for one in found}) == asked
    assert found[-1].columns == tuple(f"c{i}" for i in range(count))


@pytest.mark.parametrize(("kind", "d", "asked"), [("integer", 20, 0), ("integer", 21, 1), ("number", 20, 1)])
def test_few_whole_numbers_are_names(kind: Any, d: int, asked: int) -> None:
    column = RawColumn("c", np.arange(d), d, 0, kind, np.arange(d) * 1.0)
    assert len(near(RawTable("numbers", d, (column,)))) == asked


def test_whoever_is_the_only_one_is_alone() -> None:
    column = RawColumn("c", np.zeros(1, np.int64), 1, 0, "number", np.array([3.0]))
    assert lonely(RawTable("one", 1, (column,)), [0], 0.05).tolist() == [True]
