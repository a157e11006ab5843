"""How far every field of a manifest may go, and what columns, margins and weights must be to stand in one."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

import noren as nr
from noren.errors import QueryError
from noren.release.gathered import _share
from noren.release.manifest import (
    MOST_COUNTERFEITS,
    MOST_MARGIN_CELLS,
    MOST_RECORDS,
    MOST_WHOLE,
    Manifest,
    PublishedMargin,
    PublishedMeaning,
    UsedMethod,
    read_column,
    write_column,
)
from noren.release.readme import _meaning
from noren.release.release import free_name
from noren.release.statistics import _title
from noren.release.store import are_known, list_files, sides

JUST = 1e-9
PEOPLE = pl.DataFrame(
    [
        {"town": town, "job": job, "note": note, "w": w}
        for town in ("Ulm", "Hof")
        for job in ("cook", "clerk", "miner", "nurse")
        for note in ("n0", "n1", "n2")
        for w in (1.5, 2.0)
        for _ in range(4)
    ]
)
"""No column tells another."""
ATTRIBUTES: dict[str, Any] = {
    "town": "quasi-identifier",
    "job": {"role": "sensitive", "values": ["cook", "clerk", "miner", "nurse"]},
    "note": "plain",
    "w": {"role": "plain", "weight": True},
}


@pytest.fixture(scope="module")
def drawn() -> nr.Release:
    """Sets beside exact columns."""
    asked = [nr.models.FrequencyLDiversity(on="job", l=2)]
    return nr.anonymize(PEOPLE, nr.Policy(attributes=ATTRIBUTES, require=asked))


@pytest.fixture(scope="module")
def general() -> nr.Release:
    """Classes of general values."""
    attributes = {name: ATTRIBUTES[name] for name in ("town", "job", "note")}
    asked = [nr.models.KAnonymity(k=150), nr.models.DistinctLDiversity(on="job", l=2)]
    return nr.anonymize(PEOPLE.drop("w"), nr.Policy(attributes=attributes, require=asked, method="mondrian"))


def block(release: nr.Release) -> dict[str, Any]:
    return release.manifest.model_dump(mode="json")


FIELDS: list[tuple[str, list[Any], list[Any]]] = [
    ("records", [0, MOST_RECORDS], [-1, MOST_RECORDS + 1]),
    ("suppressed", [0, MOST_RECORDS], [-1, MOST_RECORDS + 1]),
    ("sample", [None, JUST, 1 - JUST], [0, 1, nan]),
    ("noren", ["1", "0.2", "1.2.3", "1.2rc1", "1.2.dev3"], ["", "a", "1.2.3.4", "1.234", "1.2 x", "12345"]),
    ("randomness", ["fresh", "memoised"], ["other"]),
    ("format", [5], [4, 6]),
    ("weight", [None, "w"], ["job", "town", "nobody"]),
    ("margins", [[]], [[{"of": ["job"], "epsilon": 1, "sensitivity": 2, "counts": [1, 2, 3]}]]),
]


@pytest.mark.parametrize(("field", "taken", "beyond"), FIELDS)
def test_limits(field: str, taken: list[Any], beyond: list[Any], drawn: nr.Release) -> None:
    for value in taken:
        Manifest.model_validate(block(drawn) | {field: value})
    for value in beyond:
        with pytest.raises(ValidationError):
            Manifest.model_validate(block(drawn) | {field: value})


def test_a_manifest_says_nothing_else(drawn: nr.Release) -> None:
    with pytest.raises(ValidationError):
        Manifest.model_validate(block(drawn) | {"remark": "nothing"})
    with pytest.raises(ValidationError):
        drawn.manifest.records = 3  # type: ignore[misc]
    plain = block(drawn)
    defaults = Manifest.model_validate(
        {name: value for name, value in plain.items() if name not in ("suppressed", "rows_are_people")}
    )
    assert (defaults.suppressed, defaults.rows_are_people, defaults.margins, defaults.spent) == (0, True, (), 0)
    twice = plain | {"columns": [*plain["columns"], plain["columns"][0]]}
    with pytest.raises(ValidationError, match="two columns have the same name"):
        Manifest.model_validate(twice)


MARGIN = {"of": ["job"], "epsilon": 1.0, "sensitivity": 2, "counts": [1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("field", "taken", "beyond"),
    [
        ("epsilon", [JUST, 20], [0, 20 + JUST, inf, nan]),
        ("sensitivity", [2, 2000], [1, 2001]),
        ("of", [["a"], ["a", "b", "c", "d"]], [[], ["a", "b", "c", "d", "e"]]),
        ("counts", [[0] * MOST_MARGIN_CELLS], [[0] * (MOST_MARGIN_CELLS + 1), [0.5]]),
    ],
)
def test_limits_of_margins(field: str, taken: list[Any], beyond: list[Any]) -> None:
    for value in taken:
        PublishedMargin.model_validate(MARGIN | {field: value})
    for value in beyond:
        with pytest.raises(ValidationError):
            PublishedMargin.model_validate(MARGIN | {field: value})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"of": ["town"], "counts": [1, 2]}, None),
        ({"of": ["town", "job"], "counts": [0] * 8}, None),
        ({"of": ["town", "job", "note", "w"], "counts": [0] * 48}, None),
        ({"of": ["job", "job"], "counts": [0] * 16}, "each once"),
        ({"of": ["nobody"]}, "a margin is of columns of the release"),
        ({"counts": [1, 2, 3]}, "one count for every combination"),
        ({"counts": [1, 2, 3, 4, 5]}, "one count for every combination"),
        ({"counts": [1, 2, 3, MOST_RECORDS]}, None),
        ({"counts": [1, 2, 3, -MOST_RECORDS]}, None),
        ({"counts": [1, 2, 3, MOST_RECORDS + 1]}, "a count is too large"),
        ({"counts": [1, 2, 3, -MOST_RECORDS - 1]}, "a count is too large"),
    ],
)
def test_margins_are_of_drawn_or_exact_columns(change: dict[str, Any], said: str | None, drawn: nr.Release) -> None:
    given = block(drawn) | {"margins": [MARGIN | change]}
    if said is None:
        assert Manifest.model_validate(given).spent == 1.0
        return
    with pytest.raises(ValidationError, match=said):
        Manifest.model_validate(given)


def test_margins_of_general_columns_are_refused(general: nr.Release) -> None:
    town = next(one for one in general.statements if one.name == "town")
    assert not town.is_exact
    margin = MARGIN | {"of": ["town"], "counts": [0] * town.d}
    with pytest.raises(ValidationError, match="columns that are drawn or exact"):
        Manifest.model_validate(block(general) | {"margins": [margin]})
    assert general.designs == {}


MEANING: dict[str, Any] = {"name": "x", "role": "sensitive", "kind": "string", "values": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"values": ["a", "a"]}, "each once"),
        ({"hidden": ["a"]}, None),
        ({"hidden": ["z"]}, "what stands for others is a value"),
        ({"kind": "integer"}, "not of the kind"),
        ({"distance": [[0.0] * 3] * 3}, None),
        ({"distance": [[0.0] * 3] * 2}, "not a square table"),
        ({"distance": [[0.0] * 2] * 3}, "not a square table"),
        ({"hierarchy": [["a", "b", "c"], ["*"] * 3]}, None),
        ({"hierarchy": [["a", "c", "b"], ["*"] * 3]}, "not over the values"),
        ({"hierarchy": [["a", "b", "c"], ["*"] * 2]}, "not over the values"),
        ({"hierarchy": [["a", "b", "c"], ["u", "v", "v"], ["x", "x", "y"]]}, "not a tree"),
        ({"differ": ["a"]}, "only tuples have members that differ"),
        ({"differ": []}, None),
        ({"top": inf}, "finite"),
        ({"bottom": nan}, "finite"),
    ],
)
def test_what_a_column_means(change: dict[str, Any], said: str | None) -> None:
    if said is None:
        PublishedMeaning.model_validate(MEANING | change)
        return
    with pytest.raises(ValidationError, match=said):
        PublishedMeaning.model_validate(MEANING | change)


@pytest.mark.parametrize(
    ("low", "high", "fits"),
    [
        (0, 0, True),
        (0, 3, True),
        (3, 0, False),
        (0, MOST_WHOLE, True),
        (0, MOST_WHOLE + 1, False),
        (MOST_RECORDS - 1, MOST_RECORDS, True),
        (MOST_RECORDS, MOST_RECORDS + 1, False),
        (-MOST_RECORDS, 1 - MOST_RECORDS, True),
        (-MOST_RECORDS - 1, -MOST_RECORDS, False),
    ],
)
def test_whole_numbers_between_published_ends(low: int, high: int, fits: bool) -> None:
    said = ""
    try:
        PublishedMeaning.model_validate(MEANING | {"kind": "integer", "values": ["1"], "integers": [low, high]})
    except ValidationError as error:
        said = str(error)
    assert ("do not rise, or are too many" in said) is not fits


@pytest.mark.parametrize("form", [None, 3, "nothing"])
def test_a_column_has_a_known_form(form: Any) -> None:
    with pytest.raises(ValueError, match="a form that this version knows"):
        read_column({"form": form})


@pytest.mark.parametrize(("size", "fits"), [(1, True), (0, False)])
def test_a_blind_method_came_to_a_class_size(size: int, fits: bool) -> None:
    if fits:
        assert UsedMethod(name="mondrian", class_size=size).facts == {"class_size": 1}
        return
    with pytest.raises(ValidationError):
        UsedMethod(name="mondrian", class_size=size)
    assert UsedMethod(name="mondrian").facts == {}
    assert UsedMethod(name="auto", chosen="sweep").facts == {"chosen": "sweep"}
    assert UsedMethod(name="mondrian").model_dump() == {"name": "mondrian", "on": ()}


# ---------------------------------------------------------------- what follows from it


def test_columns_are_asked_for_by_name(drawn: nr.Release) -> None:
    assert drawn.column("job").name == "job"
    with pytest.raises(QueryError, match="there is no column 'nobody'"):
        drawn.column("nobody")
    assert list(drawn.designs) == ["job"]
    assert sides(drawn.statements) == {}
    assert MOST_COUNTERFEITS == 10


@pytest.mark.parametrize(
    ("text", "known", "found"),
    [
        ("job=cook", ["job"], ("job", "cook")),
        ("job=a=b", ["job"], ("job", "a=b")),
        ("a=b=c", ["a=b"], ("a=b", "c")),
        ("a=b=c", ["a=b", "a"], ("a", "b=c")),
        ("a=b=c=d", ["a=b=c"], ("a=b=c", "d")),
        ("a=b", ["a=b", "a"], None),
        ("job", ["job"], None),
        ("jobcook", ["job"], None),
        ("town=Ulm", ["job"], None),
        ("job=", ["job"], ("job", "")),
    ],
)
def test_a_share_is_asked_for_by_column_and_value(text: str, known: list[str], found: Any) -> None:
    assert _share(text, dict.fromkeys(known)) == found


@pytest.mark.parametrize(
    ("name", "title"), [("job", "job"), ("mean", "mean_"), ("low", "low_"), ("std_error", "std_error_")]
)
def test_a_column_that_is_called_like_a_result_is_told_apart(name: str, title: str) -> None:
    assert _title(name, "mean") == title


def test_names_that_are_taken_get_underscores() -> None:
    assert free_name("count", ()) == "count"
    assert free_name("count", ("count",)) == "count_"
    assert free_name("count", ("count", "count_")) == "count__"


@pytest.mark.parametrize(("data", "way"), [("data.csv", "a JSON array"), ("data.parquet", "a list")])
def test_the_page_says_what_must_be_known_before_counting(
    data: str, way: str, drawn: nr.Release, general: nr.Release
) -> None:
    text = _meaning(drawn.statements, data, "w")
    assert f"A set ({way}) holds values" in text
    assert "weigh by it" in text
    assert "are tuples of" not in text
    assert "A general value" not in text
    other = _meaning(general.statements, data)
    assert "A set (" not in other
    assert "weigh by it" not in other
    assert "A general value" in other


def test_groups_are_needed_for_differences(drawn: nr.Release) -> None:
    with pytest.raises(QueryError, match="difference needs groups"):
        drawn.difference("w", by=[])


def test_what_came_after_the_format_is_left_out_where_it_says_nothing(drawn: nr.Release) -> None:
    manifest = drawn.manifest.model_copy(update={"weight": None, "margins": ()})
    said = manifest.model_dump(mode="json")
    assert {"weight", "margins"} & said.keys() == set()
    assert (said["suppressed"], said["title"], said["rows_are_people"]) == (0, manifest.title, True)
    assert drawn.manifest.model_copy(update={"weight": "w"}).model_dump(mode="json")["weight"] == "w"


def test_a_resource_lists_its_files_once() -> None:
    def entry(name: str) -> dict[str, Any]:
        return {"path": name, "bytes": 3, "hash": "sha256:0"}

    one, two = "data-00000.parquet", "data-00001.parquet"
    several = {"path": [one, two], "parts": [entry(one), entry(two)]}
    assert [name for name, _, _ in list_files(several)] == [one, two]
    assert list_files(entry("data.csv")) == [("data.csv", 3, "sha256:0")]
    for wrong in ({"parts": []}, {"path": [two, one]}, {"path": [one]}):
        with pytest.raises(ValueError, match="two lists of files"):
            list_files(several | wrong)
    assert are_known(several)
    assert are_known(entry("data.parquet"))
    assert not are_known(entry("other.parquet"))
    assert not are_known({"path": [one, one], "parts": [entry(one), entry(one)]})
    assert not are_known({"path": [one, "x.parquet"], "parts": [entry(one), entry("x.parquet")]})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"values": ["(missing)"], "kind": "string"}, None),
        ({"bottom": 0.0, "top": 3.0, "kind": "string"}, None),
        ({"bottom": 1.0, "kind": "string"}, "not those of the whole numbers"),
        ({"top": 4.0, "kind": "string"}, "not those of the whole numbers"),
        ({"values": ["1"]}, "not those of the whole numbers"),
        ({"integers": None, "measure": "integer"}, "a measure is of edges"),
    ],
)
def test_whole_numbers_are_listed_by_their_ends(change: dict[str, Any], said: str | None) -> None:
    given = MEANING | {"kind": "integer", "values": [], "integers": [0, 3]} | change
    if said is None:
        assert PublishedMeaning.model_validate(given).integers == (0, 3)
        return
    with pytest.raises(ValidationError, match=said):
        PublishedMeaning.model_validate(given)


def test_a_column_is_read_as_it_was_written(drawn: nr.Release, general: nr.Release) -> None:
    for release in (drawn, general):
        for statement in release.statements:
            written = write_column(statement)
            assert ("hidden" in written) is bool(statement.column.is_open is False and statement.domain.hidden)
            assert write_column(read_column(written)) == written
    job = write_column(drawn.column("job"))
    with pytest.raises(ValueError, match="unless its form has none"):
        read_column({name: value for name, value in job.items() if name != "values"})
    with pytest.raises(ValueError, match="unless its form has none"):
        read_column({"form": "open", "name": "x", "role": "plain", "kind": "string", "values": ["a"]})


def test_a_manifest_is_the_same_where_it_says_the_same(drawn: nr.Release) -> None:
    again = Manifest.model_validate(block(drawn))
    assert again == drawn.manifest
    assert again.model_copy(update={"records": 3}) != drawn.manifest
    assert again != block(drawn)


@pytest.mark.parametrize(("most", "fits"), [(0, False), (1, True), (1000, True), (1001, False)])
def test_a_person_has_one_record_at_least_and_a_thousand_at_most(drawn: nr.Release, most: int, fits: bool) -> None:
    changed = block(drawn) | {"rows_are_people": False, "most_rows": most}
    if fits:
        assert Manifest.model_validate(changed).most_rows == most
    else:
        with pytest.raises(ValidationError):
            Manifest.model_validate(changed)


# ------------------------------------------------------------------ the largest numbers


@pytest.mark.parametrize("field", ["records", "suppressed"])
@pytest.mark.parametrize(("number", "refused"), [(0, False), (2**53, False), (2**53 + 1, True), (-1, True)])
def test_numbers_of_people(field, number, refused):
    with pytest.raises(ValidationError) as caught:
        Manifest.model_validate({field: number})
    assert (field in {error["loc"][0] for error in caught.value.errors()}) == refused
