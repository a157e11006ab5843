"""`measure`: figures counted by hand, what is skipped and why, and releases of every form."""

from __future__ import annotations

from math import exp, inf, log
from typing import Any

import polars as pl
import pytest

import noren as nr
from noren.workflow.foreign import verify_table
from noren.workflow.measure import Measures, measure

ROWS = pl.DataFrame(
    {
        "age": ["20-29"] * 4 + ["30-39"] * 4,
        "illness": ["flu", "flu", "cold", "ulcer", "flu", "cold", "cold", "ulcer"],
        "pay": [1, 2, 3, 4, 1, 1, 4, 4],
        "name": list("abcdefgh"),
    }
)
"""Two classes of four: flu 2 : cold 1 : ulcer 1, and 1 : 2 : 1; overall 3 : 3 : 2."""

LEVELS = ["1", "2", "3", "4", "5"]


def figures(found: Measures, column: str) -> dict[tuple[str, tuple[Any, ...]], float]:
    return {(one.model, tuple(one.given.values())): one.achieved for one in found.found if one.column == column}


def test_every_model_by_hand() -> None:
    found = measure(ROWS, quasi=["age"], sensitive=["illness"])
    assert (found.records, found.suppressed, found.quasi, found.sensitive) == (8, 0, ("age",), ("illness",))
    assert figures(found, "quasi-identifiers") == {("k-anonymity", ()): 4}
    assert figures(found, "illness") == pytest.approx(
        {
            ("alpha-k-anonymity", ()): 0.5,
            ("distinct-l-diversity", ()): 3,
            ("frequency-l-diversity", ()): 2,
            ("entropy-l-diversity", ()): exp(log(2) / 2 + log(4) / 2),
            ("recursive-cl-diversity", (2,)): 1.0,
            ("recursive-cl-diversity", (3,)): 2.0,
            ("tau-l-diversity", (2,)): 0.5,
            ("tau-l-diversity", (3,)): 0.5,
            ("p-sensitive-k-anonymity", ()): 3,
            ("t-closeness", ("equal",)): 1 / 8,
            ("beta-likeness", ("basic",)): 1 / 3,
            ("beta-likeness", ("enhanced",)): 1 / 3,
            ("delta-disclosure", ()): log(1.5),
        }
    )
    assert found.skipped == {
        "t-closeness (ordered) on illness": "the values have no declared order.",
        "t-closeness (tree) on illness": found.skipped["t-closeness (tree) on illness"],
        "expanded-k on illness": found.skipped["expanded-k on illness"],
    }
    assert "needs a hierarchy" in found.skipped["t-closeness (tree) on illness"]


def test_numbers_have_an_order() -> None:
    """Classes 1:1:1:1 and 2:0:0:2 over 1, 2, 3, 4; overall 3:1:1:3. Cumulated differences 1/8, 0, 1/8."""
    found = measure(ROWS, quasi=["age"], sensitive=["pay"])
    assert found.value("t-closeness", distance="ordered") == pytest.approx((1 / 8 + 0 + 1 / 8) / 3)
    assert found.value("t-closeness", distance="equal") == pytest.approx(1 / 4)
    assert found.value("delta-disclosure") == inf
    assert found.value("recursive-cl-diversity", l=2) == 1.0
    assert found.value("recursive-cl-diversity", l=3) == inf
    with pytest.raises(nr.errors.QueryError, match="no figure"):
        found.value("recursive-cl-diversity", l=4)  # nothing is left to say once no c is enough


def test_columns_on_their_own() -> None:
    found = measure(ROWS, quasi=["age"], sensitive=["illness", "pay"])
    assert figures(found, "pay") == figures(measure(ROWS, quasi=["age"], sensitive=["pay"]), "pay")
    assert found.value("distinct-l-diversity", "illness") == 3
    assert found.value("distinct-l-diversity", "pay") == 2


def test_a_column_that_is_both_is_left_out_of_its_own_classes() -> None:
    found = measure(ROWS, quasi=["age", "illness"], sensitive=["illness"])
    assert found.value("k-anonymity") == 1
    assert found.value("distinct-l-diversity") == 3
    assert found.quasi == ("age", "illness")


def test_a_constant_secret() -> None:
    table = pl.DataFrame({"q": ["a", "a", "b"], "x": [5, 5, 5]})
    found = measure(table, quasi=["q"], sensitive=["x"])
    assert found.value("distinct-l-diversity") == found.value("entropy-l-diversity") == 1
    assert found.value("t-closeness", distance="ordered") == found.value("t-closeness", distance="equal") == 0
    assert found.value("beta-likeness") == found.value("delta-disclosure") == 0
    assert not [one for one in found.found if one.model in ("recursive-cl-diversity", "tau-l-diversity")]


def test_only_keys_or_only_secrets() -> None:
    found = measure(ROWS, quasi=["age"])
    assert [(one.model, one.achieved) for one in found.found] == [("k-anonymity", 4)]
    found = measure(ROWS, sensitive=["illness"])
    assert not found.found
    assert "beside no quasi-identifier" in found.skipped["distinct-l-diversity on illness"]


def test_a_policy_gives_roles_orders_and_trees() -> None:
    tree = {"lungs": ["flu", "cold"], "gut": ["ulcer"]}
    roles = {
        "age": nr.quasi_identifier(),
        "illness": nr.sensitive(hierarchy={"tree": tree}),
        "pay": nr.sensitive(values=("4", "3", "2", "1")),
        "name": nr.identifier(),
    }
    rules = [nr.models.DistinctLDiversity(on=("illness", "pay"), l=2)]
    found = measure(ROWS, nr.Policy(attributes=roles, require=rules, method=nr.methods.Mondrian()))
    assert found.sensitive == ("illness", "pay")
    assert found.value("le-diversity", "illness", e=1) == pytest.approx(4 / 3)
    assert found.value("t-closeness", "illness", distance="tree") == pytest.approx(1 / 16)
    assert found.value("t-closeness", "pay", distance="ordered") == pytest.approx(1 / 12)
    named = measure(ROWS, nr.Policy(attributes=roles, require=rules, method=nr.methods.Mondrian()), quasi=["name"])
    assert (named.quasi, named.sensitive, named.value("k-anonymity")) == (("name",), (), 1)


def test_what_is_not_known_is_asked_for() -> None:
    with pytest.raises(nr.errors.QueryError, match="not known"):
        measure(ROWS)
    with pytest.raises(nr.errors.QueryError, match="'size', 'hue'"):
        measure(ROWS, quasi=["hue", "age"], sensitive=["size"])
    with pytest.raises(nr.errors.QueryError, match="no figure for k-map"):
        measure(ROWS, quasi=["age"]).value("k-map")


def test_a_release_and_its_directory(tmp_path: Any) -> None:
    """A generalised release, measured as itself, from its directory and as the CSV that a stranger would see."""
    roles = {"age": nr.quasi_identifier(), "illness": nr.sensitive(), "pay": nr.plain(), "name": nr.identifier()}
    rules = [nr.models.KAnonymity(k=2), nr.models.DistinctLDiversity(on="illness", l=2)]
    release = nr.anonymize(ROWS, nr.Policy(attributes=roles, require=rules, method=nr.methods.Mondrian()))
    itself = measure(release)
    saved = measure(release.save(tmp_path / "release", "csv"))
    table = measure(tmp_path / "release" / "data.csv", quasi=["age"], sensitive=["illness"], suppressed=None)
    assert itself.value("k-anonymity") >= 2
    assert figures(itself, "illness") == figures(saved, "illness")
    assert figures(table, "illness") == pytest.approx(figures(itself, "illness"))
    keys = measure(release, quasi=["age", "pay"], sensitive=["illness"])
    assert keys.value("k-anonymity") <= itself.value("k-anonymity")


def test_sets_of_decoys() -> None:
    roles = {"age": nr.quasi_identifier(), "illness": nr.sensitive(), "pay": nr.plain(), "name": nr.identifier()}
    rules = [nr.models.FrequencyLDiversity(on="illness", l=2)]
    found = measure(nr.anonymize(ROWS, nr.Policy(attributes=roles, require=rules)))
    assert found.value("frequency-l-diversity", "illness") == found.value("expanded-k", "illness") == 2
    assert "alpha-k-anonymity on illness" in found.skipped


def test_the_distance_of_shuffled_members() -> None:
    """Paper 003's Table 7 in small: the two rows of each age are 2 and 3 apart, so 2 is reached."""
    policy = nr.Policy(
        attributes={"age": "quasi-identifier", "level": {"role": "sensitive", "distance": "ordinal", "values": LEVELS}},
        require=[{"model": "semantic-diversity", "on": "level", "l": 2, "d": 2, "most": 0.9}],
        method={"name": "decoys", "design": "simple", "form": "records"},
    )
    table = pl.DataFrame({"age": [20, 20, 30, 30], "level": ["1", "3", "5", "2"]})
    found = measure(table, policy)
    assert found.records == 2
    assert [(one.given, one.achieved) for one in found.found if one.model == "semantic-diversity"] == [({"l": 2}, 2.0)]
    near = table.with_columns(level=pl.Series(["1", "3", "5", "4"]))
    assert measure(near, policy).value("semantic-diversity", l=2) == 1.0
    twice = table.with_columns(level=pl.Series(["1", "1", "5", "2"]))
    assert measure(twice, policy).value("semantic-diversity", l=2) == 0.0, "no two different values in the class of 20"


def test_as_data() -> None:
    told = measure(ROWS, quasi=["age"], sensitive=["pay"]).to_dict()
    said = {"table", "records", "suppressed", "quasi_identifiers", "sensitive", "cells", "counted", "measures"}
    assert told.keys() == {*said, "skipped"}
    assert told["measures"][0]["model"] == "k-anonymity"
    assert {"column", "model", "parameter", "given", "achieved", "higher_is_safer", "basis", "statement"} == set(
        told["measures"][0]
    )


VISITS = pl.DataFrame(
    {
        "who": [1, 1, 1, 2, 3, 4],
        "town": ["Ulm"] * 4 + ["Bonn"] * 2,
        "ill": ["a", "b", "a", "a", "b", "c"],
    }
)
"""Ulm: two people, both have a, one has b too; four rows. Bonn: two people, two illnesses."""


def of_visits(k: int = 2, **people: str) -> nr.Policy:
    roles = {"who": "identifier", "town": "quasi-identifier", "ill": "sensitive"}
    asked = [nr.models.KAnonymity(k=k), nr.models.DistinctLDiversity(on="ill", l=2)]
    return nr.Policy(attributes=roles, require=asked, method="mondrian", people=people)


def test_people_are_counted_where_the_table_says_whose_row_each_is() -> None:
    policy = of_visits(key="who")
    found = measure(VISITS, policy)
    assert found.counted == "people"
    assert found.value("k-anonymity") == 2
    assert found.value("frequency-l-diversity", "ill") == 1
    assert found.value("distinct-l-diversity", "ill") == 2
    of_rows = measure(VISITS, of_visits(rows="independent"))
    assert of_rows.value("frequency-l-diversity", "ill") == pytest.approx(4 / 3)


def test_figures_of_rows_say_that_people_may_have_fewer() -> None:
    """A release has no key, and neither has a table from which it was rightly taken out."""
    policy = of_visits(key="who")
    for found in (measure(VISITS.drop("who"), policy), measure(VISITS.drop("who"), policy, quasi=["town"])):
        assert found.counted == "rows"
        assert found.to_dict()["counted"] == "rows"
        assert "(rows, not people)" in repr(found)
        assert all("rows were counted" in one.statement for one in found)


def test_a_table_made_elsewhere_is_judged_by_its_people() -> None:
    rows = pl.DataFrame({"town": ["Ulm"] * 6, "ill": list("abcabc")})
    whose = pl.Series([1, 1, 1, 1, 2, 2])
    _, verdicts = verify_table(rows.with_columns(who=whose), of_visits(3, key="who"))
    assert [(one.model, one.achieved) for one in verdicts][:2] == [("k-anonymity", 2), ("distinct-l-diversity", 3)]
    assert verdicts[0].holds is False
    assert [one.holds for one in verify_table(rows, of_visits(3, key="who"))[1]] == [None, None]
    assert nr.check(rows, of_visits(3, rows="independent")) is True


def test_a_release_is_measured_in_the_roles_that_a_policy_gives(tmp_path) -> None:
    """The names given beside it come first, then the policy's roles, then its own."""
    people = pl.DataFrame({"town": ["Ulm"] * 4 + ["Bonn"] * 4, "sex": ["f", "m"] * 4, "ill": list("abcaabca")})
    roles = {"town": "quasi-identifier", "sex": "plain", "ill": "sensitive"}
    asked = [nr.models.KAnonymity(k=4), nr.models.DistinctLDiversity(on="ill", l=2)]
    rules = nr.Policy(
        attributes=roles,
        require=asked,
        method={"name": "mondrian", "blind": False},
        mechanism="ignored",  # a table of few people
    )
    made = nr.anonymize(people, rules, to=tmp_path / "release")
    assert measure(made).value("k-anonymity") == 4
    other = nr.Policy(attributes=roles | {"sex": "quasi-identifier"}, require=asked, method="mondrian")
    assert measure(tmp_path / "release", other).value("k-anonymity") == 2
    assert measure(tmp_path / "release", other, quasi=["town"], sensitive=["ill"]).value("k-anonymity") == 4
