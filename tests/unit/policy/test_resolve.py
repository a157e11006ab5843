"""The policy meets the table: domains, and messages that name no rare cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import noren as nr
from noren.engines import engine_for
from noren.engines.engine import Counting
from noren.errors import PolicyError
from noren.policy.policy import Policy
from noren.policy.resolve import Met, named, resolve
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER
from noren.schema.hierarchy import Hierarchy
from noren.sources.source import open_source


def resolved(columns: dict[str, list], attributes: dict[str, Column], **options: Any) -> dict[str, Met]:
    policy = Policy(attributes=attributes, source="rules.toml", **{"require": [], **options})
    source = open_source(pa.table(columns))
    known = [name for name in source.columns if name in attributes]
    bins = {name: a.bins for name, a in attributes.items() if a.bins is not None}
    profile = engine_for(source).profile(source, Counting(known, bins=bins))
    return resolve(policy, source.name, source.columns, profile)


def refused(columns: dict[str, list], attributes: dict[str, Column], **options: Any) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        resolved(columns, attributes, **options)
    return caught.value


TOWNS = ["Ulm"] * 6 + ["Bonn"] * 5 + ["Zyx-Tippfehler"] * 2 + ["Grönwohld"]


def test_columns_that_only_one_side_knows_are_one_error() -> None:
    error = refused({"age": [1], "jbo": ["a"]}, {"age": nr.plain(), "job": nr.plain()})
    assert [problem.where for problem in error.problems] == ["attributes.jbo", "attributes.job"]
    text = str(error)
    assert text.startswith("rules.toml: 2 problems")
    assert "has the column 'jbo', which is not in the policy" in text
    assert "has no column 'job'" in text
    assert "Did you mean 'jbo'?" in text


def test_column_and_value_problems_come_together() -> None:
    error = refused({"a": ["x", None], "new": [1, 2]}, {"a": nr.plain(missing="reject"), "gone": nr.plain()})
    assert {problem.where for problem in error.problems} == {
        "attributes.new",
        "attributes.gone",
        "attributes.a.missing",
    }


def test_values_outside_a_declared_domain_are_named_only_if_five_records_share_them() -> None:
    text = str(refused({"town": TOWNS}, {"town": nr.plain(values=["Bonn"])}))
    assert "attributes.town.values: misses 'Ulm' and 2 rare values (not shown: fewer than 5 records each)" in text
    assert "Tippfehler" not in text
    assert "Grönwohld" not in text


def test_values_missing_from_a_hierarchy_are_named_only_if_five_records_share_them() -> None:
    tree = Hierarchy.from_tree({"south": ["Ulm"]})
    text = str(refused({"town": TOWNS}, {"town": nr.plain(hierarchy=tree)}))
    assert "misses 'Bonn' and 2 rare values" in text
    assert "Tippfehler" not in text
    assert "Grönwohld" not in text


def test_naming_lists_ten_and_counts_the_rest() -> None:
    text = named({f"value {i:02}": 5 for i in range(12)} | {"slip": 1})
    assert text == ", ".join(f"'value {i:02}'" for i in range(10)) + " and 2 more and 1 rare value " + (
        "(not shown: fewer than 5 records each)"
    )


def test_values_that_the_policy_declares_may_be_named() -> None:
    attribute = nr.plain(bins=[0, 18, 30], hierarchy={"tree": {"young": ["[0, 18)"]}})
    assert "misses '[18, 30]' of 'age'" in str(refused({"age": [3, 20]}, {"age": attribute}))


def test_domains_are_sorted_or_as_declared() -> None:
    table = {"n": ["10", "9", "1"], "s": ["b", "a", "a"], "z": ["01", "2", "10"], "d": ["b", "a", "b"]}
    columns = resolved(
        table, {"n": nr.plain(), "s": nr.plain(), "z": nr.plain(), "d": nr.plain(values=["b", "a", "c"])}
    )
    domains = {name: met.column.domain for name, met in columns.items()}
    assert [domains["n"].values, domains["n"].kind] == [("1", "9", "10"), "integer"]
    assert domains["s"].values == ("a", "b")
    assert [domains["z"].values, domains["z"].kind] == [("01", "10", "2"), "string"]
    assert [domains["d"].values, domains["d"].source] == [("b", "a", "c"), "policy"]
    assert columns["d"].counts.tolist() == [2, 1, 0]


def test_missing_cells_are_a_category_unless_the_policy_says_otherwise() -> None:
    table = {"a": ["x", None, "", "y"]}
    met = resolved(table, {"a": nr.plain()})["a"]
    assert met.column.domain.values == ("x", "y", MISSING)
    assert met.counts.tolist() == [1, 1, 2]
    error = refused(table, {"a": nr.plain(missing="reject")})
    assert "2 cells are missing, and the policy rejects them" in str(error)


def test_a_column_without_any_value_has_the_missing_category_alone() -> None:
    assert resolved({"a": [None, None]}, {"a": nr.plain()})["a"].column.domain.values == (MISSING,)


def test_rare_values_are_refused_by_number_or_merged() -> None:
    error = refused({"town": TOWNS}, {"town": nr.plain(min_count=5)})
    assert "2 values occur in fewer than 5 records" in str(error)
    assert "Tippfehler" not in str(error)
    towns = TOWNS + ["Ulm"] * 20
    met = resolved({"town": towns}, {"town": nr.plain(min_count=5, rare="merge")})["town"]
    assert met.column.domain.values == ("Bonn", "Ulm", OTHER)
    assert met.column.domain.merged == 2
    assert met.counts.tolist() == [5, 26, 3]


def test_merging_that_leaves_no_value_is_refused() -> None:
    error = refused({"a": list(range(100))}, {"a": nr.plain(min_count=5, rare="merge")})
    assert "every value occurs in fewer than 5 records, so merging would leave only '(other)'" in str(error)
    assert "quantiles:8" in str(error)


def test_merging_many_records_is_the_choice_of_the_holder() -> None:
    met = resolved({"town": TOWNS}, {"town": nr.plain(min_count=5, rare="merge")})["town"]
    assert met.column.domain.values == ("Bonn", "Ulm", OTHER)
    assert met.counts.tolist() == [5, 6, 3]


def test_a_value_that_is_itself_called_other_joins_the_merged_ones() -> None:
    met = resolved({"a": ["x"] * 30 + ["z"] * 9 + [OTHER, "y"]}, {"a": nr.plain(min_count=3, rare="merge")})["a"]
    assert met.column.domain.values == ("x", "z", OTHER)
    assert met.counts.tolist() == [30, 9, 2]


def test_bins_must_hold_every_number() -> None:
    ages = {"age": [0, 5, 17, 18, 30, None]}
    met = resolved(ages, {"age": nr.plain(bins=[0, 18, 30])})["age"]
    assert met.column.domain.values == ("[0, 18)", "[18, 30]", MISSING)
    assert met.counts.tolist() == [3, 2, 1]
    assert "2 cells lie outside 0..17" in str(refused(ages, {"age": nr.plain(bins=[0, 17])}))
    error = refused({"age": ["5", "secret"]}, {"age": nr.plain(bins=[0, 17])})
    assert "'age' has bins but holds values that are not numbers" in str(error)
    assert "secret" not in str(error).replace("attributes", "")


@pytest.mark.parametrize(
    ("cells", "hierarchy", "message"),
    [
        (["a", "b"], {"widths": [5]}, "needs numbers"),
        (["1", "7"], {"widths": [5, 7]}, "7 is not a multiple of 5"),
        (["1", "7"], {"intervals": [[0, 5]]}, "do not cover all values"),
        (["12", "13"], {"prefix": [1, 2]}, "in descending order"),
    ],
)
def test_hierarchies_that_do_not_fit_the_values(cells: list, hierarchy: dict, message: str) -> None:
    error = refused({"a": cells}, {"a": nr.plain(hierarchy=hierarchy)})
    assert [problem.where for problem in error.problems] == ["attributes.a.hierarchy"]
    assert message in error.problems[0].message


def test_distances_that_do_not_fit_the_values(tmp_path: Path) -> None:
    error = refused({"a": ["x", "y"]}, {"a": nr.plain(distance="numeric")})
    assert "attributes.a.distance: distance 'numeric' needs a domain of numbers" in str(error)
    assert resolved({"a": ["1", "2", None]}, {"a": nr.plain(distance="numeric")})["a"].column.domain.has_missing
    (tmp_path / "far.csv").write_text(",x\nx,0\n")
    columns, attributes = {"a": ["x"] + ["y"] * 5}, {"a": nr.plain(distance={"matrix": "far.csv"})}
    assert "no line or column for 'y'" in str(refused(columns, attributes, base=tmp_path))
    (tmp_path / "far.csv").write_text(",x,y\nx,0,1\ny,1,0\n")
    assert resolved(columns, attributes, base=tmp_path)["a"].column.domain.values == ("x", "y")


def test_missing_cells_have_no_place_in_an_order() -> None:
    attributes = {"a": nr.sensitive(values=["x", "y"], distance="ordinal")}
    require = [nr.models.TCloseness(on="a", t=0.3, distance="ordered")]
    error = refused({"a": ["x", None, "y"]}, attributes, require=require)
    assert [problem.where for problem in error.problems] == ["attributes.a.missing"]
    assert resolved({"a": ["x", "y"]}, attributes, require=require)["a"].counts.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("require", "where"),
    [
        (nr.models.TCloseness(on="a", t=0.3, distance="ordered"), "attributes.a.rare"),
        (nr.models.SemanticDiversity(on="a", l=2, d=3), "attributes.a.distance"),
    ],
)
def test_merged_values_have_no_place_in_an_order(require: Any, where: str) -> None:
    """They may come from anywhere in it, and with them the numbers would be sorted as texts."""
    table = {"a": [str(i) for i in range(1, 13) if i != 7] * 5 + ["7"]}
    attribute = {"role": "sensitive", "distance": "ordinal", "min_count": 5, "rare": "merge"}
    error = refused(table, {"a": Column.model_validate(attribute)}, require=[require])
    assert [problem.where for problem in error.problems] == [where]
    assert "'(other)' has no position" in str(error) or "does not define '(other)'" in str(error)


@pytest.mark.parametrize(
    "require",
    [nr.models.LEDiversity(on="a", l=2, e=1), nr.models.SemanticDiversity(on="a", l=2, d=2)],
    ids=["le", "semantic"],
)
def test_merged_values_have_a_place_in_a_tree_only_where_it_names_them(require: Any) -> None:
    """HIV-2, merged, would else count as far from HIV-1."""
    table = {"a": ["hiv1", "leg", "arm", "flu"] * 5 + ["hiv2"]}
    tree = {"virus": ["hiv1", "hiv2"], "bone": ["leg", "arm"], "lung": ["flu"]}
    options: dict[str, Any] = {"min_count": 5, "rare": "merge", "distance": "tree"}
    error = refused(table, {"a": nr.sensitive(hierarchy={"tree": tree}, **options)}, require=[require])
    assert [problem.where for problem in error.problems] == ["attributes.a.hierarchy"]
    tree["virus"].append(OTHER)
    met = resolved(table, {"a": nr.sensitive(hierarchy={"tree": tree}, **options)}, require=[require])["a"]
    assert met.column.tree.levels[1] == ("bone", "lung", "virus", "bone", "virus")


def test_a_column_with_too_many_values_cannot_keep_min_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 3)
    for rare in ("refuse", "merge"):
        error = refused({"a": ["p", "q", "r", "s"]}, {"a": nr.plain(min_count=2, rare=rare)})
        assert [problem.where for problem in error.problems] == ["attributes.a.min_count"]


def test_a_column_with_too_many_values_cannot_hide_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 3)
    table = {"a": ["p", "q", "r", "s"]}
    assert resolved(table, {"a": nr.plain()})["a"].column.is_open
    require = [nr.models.FrequencyLDiversity(on="a", l=2)]
    assert "too many to protect" in str(refused(table, {"a": nr.sensitive()}, require=require))
    error = refused(table, {"a": nr.plain(values=["p", "q", "r", "s"])})
    assert "too many for a hierarchy or declared domain" in str(error)


def test_missing_cells_of_a_column_with_too_many_values_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.engines.engine.OPEN_LIMIT", 1)
    monkeypatch.setattr("noren.sources.arrow.BATCH_ROWS", 2)
    error = refused({"a": ["p", "q", "r", "", None, "t"]}, {"a": nr.plain(missing="reject")})
    assert "2 cells are missing" in str(error)


def test_a_requirement_beyond_the_values_found_is_refused_with_the_number() -> None:
    policy = Policy(
        attributes={"a": nr.sensitive()}, require=[nr.models.FrequencyLDiversity(on="a", l=4)], source="rules.toml"
    )
    with pytest.raises(PolicyError, match=r"rules.toml: 1 problem\n.*l exceeds the 3 values of the domain"):
        nr.anonymize(pa.table({"a": ["x", "y", "z"]}), policy)
    with pytest.raises(PolicyError, match="would be the whole domain of 4 values"):
        nr.anonymize(pa.table({"a": ["x", "y", "z", "w"]}), policy)
    with pytest.raises(PolicyError, match="a single value, so nothing can protect it"):
        nr.anonymize(pa.table({"a": ["x", "x"]}), policy)


def test_a_distance_table_that_misses_values_names_only_common_ones(tmp_path):
    (tmp_path / "far.csv").write_text(",a,b\na,0,1\nb,1,0\n", encoding="utf-8")
    text = '[attributes]\nx = { role = "sensitive", distance = { matrix = "far.csv" } }\n'
    text += '[[require]]\nmodel = "frequency-l-diversity"\non = "x"\nl = 2\n'
    rules = nr.Policy.parse(text, base=tmp_path)
    values = ["a", "b"] * 10 + ["common"] * 7 + ["lonely"]
    with pytest.raises(nr.errors.PolicyError) as caught:
        nr.anonymize(pa.table({"x": values}), rules)
    assert "'common'" in str(caught.value)
    assert "1 rare value" in str(caught.value)
    assert "lonely" not in str(caught.value)
