"""What a manifest may say of its columns: tuples, edges, counterfeits, side tables, weights."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from noren.release.manifest import (
    MOST_RECORDS,
    Manifest,
    PublishedMargin,
    PublishedMeaning,
    UsedMethod,
    VerdictEntry,
)
from noren.schema.roles import Role

MEANING: dict[str, Any] = {"name": "x", "role": "sensitive", "kind": "string", "values": ["a", "b", "c"]}
MEMBER = {"name": "m", "role": "sensitive", "kind": "string", "values": ["a", "b"]}
PAIRS = MEANING | {"values": ["a | a", "b | a"], "members": [MEMBER, MEMBER | {"name": "n"}]}
MARGIN = {"of": ["job"], "epsilon": 1.0, "sensitivity": 2, "counts": [1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"differ": ["m", "n"]}, None),
        ({"differ": ["m", "z"]}, "those that differ are members"),
        ({"members": [MEMBER]}, "at least 2 items"),
        ({"members": [MEMBER, MEMBER]}, "a name of its own"),
        ({"members": [MEMBER, MEMBER | {"name": "x"}]}, "a name of its own"),
        ({"kind": "integer"}, "tuples are texts of their members' values"),
        ({"values": None}, "tuples are texts of their members' values"),
        ({"members": [MEMBER, MEMBER | {"name": "n", "values": None}]}, "tuples are texts of their members' values"),
        ({"members": [MEMBER, PAIRS | {"name": "p"}]}, "tuples are texts of their members' values"),
        ({"values": ["a | a", "b | c"]}, "a part that its member does not list"),
        ({"values": ["a | a", "c | b"]}, "a part that its member does not list"),
    ],
)
def test_tuples_are_of_their_members_values(change: dict[str, Any], said: str | None) -> None:
    if said is None:
        assert PublishedMeaning.model_validate(PAIRS | change).column().domain.made_of == ("m", "n")
        return
    with pytest.raises(ValidationError, match=said):
        PublishedMeaning.model_validate(PAIRS | change)


BINS = MEANING | {"values": ["[0, 1)", "[1, 2]"], "edges": [0.0, 1.0, 2.0]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"values": ["[0, 1)", "[1, 2]", "(missing)"]}, None),
        ({"top": 2.0}, "edges or open ends"),
        ({"bottom": 0.0}, "edges or open ends"),
        ({"edges": [1.0, 0.0, 2.0]}, "do not rise"),
        ({"edges": [0.0, 1.0, 3.0]}, "not those of the values"),
        ({"edges": [0.0, 1.5, 2.0], "measure": "integer", "values": ["0", "1"]}, "edges"),
        ({"edges": [0.0, 1.0, 3.0], "measure": "integer", "values": ["0", "[1, 3)"]}, None),
        ({"edges": [0.0, 1.0, 3.0], "measure": "integer", "values": ["0", "[1, 3)", "(missing)"]}, None),
        ({"edges": [0.0, 1.0, 3.0], "measure": "integer", "values": ["0", "[1, 3)", "7"]}, "do not rise"),
        ({"edges": [0.0, 1.0, 2.0], "integers": [0, 3], "values": [], "kind": "integer"}, "ends are not those"),
    ],
)
def test_edges_are_those_of_the_values(change: dict[str, Any], said: str | None) -> None:
    if said is None:
        PublishedMeaning.model_validate(BINS | change)
        return
    with pytest.raises(ValidationError, match=said):
        PublishedMeaning.model_validate(BINS | change)


@pytest.mark.parametrize(
    ("one", "field"),
    [
        (PublishedMeaning.model_validate(MEANING), "name"),
        (VerdictEntry(model="m", column="c", required=1, achieved=1, holds=True, basis="b"), "holds"),
        (UsedMethod(name="decoys"), "name"),
        (PublishedMargin.model_validate(MARGIN), "epsilon"),
    ],
)
def test_what_is_published_does_not_change(one: Any, field: str) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(one, field, None)
    assert MOST_RECORDS == 9_007_199_254_740_992


REST: dict[str, Any] = {"records": 1, "rows_are_people": True, "most_rows": None, "_fits_margins": lambda: None}
"""What these manifests say besides."""


@pytest.mark.parametrize(("fakes", "fits"), [(10, True), (11, False)])
def test_counterfeits_are_ten_times_the_records_at_most(fakes: int, fits: bool) -> None:
    columns = [SimpleNamespace(name="g", fake_entries=fakes, side=None, rows_per_record=1, is_exact=True)]
    given: Any = SimpleNamespace(columns=columns, rows_per_record=1, weight=None, **REST)
    if fits:
        assert Manifest._fits(given) is given  # type: ignore[operator]
        return
    with pytest.raises(ValueError, match="far more counterfeits"):
        Manifest._fits(given)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("sides", "fits"),
    [
        (["groups"], True),
        (["groups-1", "groups-2", "terms"], True),
        (["groups-2", "groups-1"], False),
        (["groups-1", "groups-3"], False),
        (["groups-2"], False),
        ([None, "groups-1"], True),
    ],
)
def test_side_tables_are_numbered_from_one_on(sides: list[str | None], fits: bool) -> None:
    columns = [
        SimpleNamespace(name=str(i), fake_entries=0, side=side, rows_per_record=1, is_exact=True)
        for i, side in enumerate(sides)
    ]
    given: Any = SimpleNamespace(columns=columns, rows_per_record=1, weight=None, **REST)
    if fits:
        assert Manifest._fits(given) is given  # type: ignore[operator]
        return
    with pytest.raises(ValueError, match="not numbered from 1 on"):
        Manifest._fits(given)  # type: ignore[operator]


@pytest.mark.parametrize(("rows", "exact", "fits"), [(1, False, True), (2, True, True), (2, False, False)])
def test_shuffled_members_stand_beside_exact_columns_alone(rows: int, exact: bool, fits: bool) -> None:
    drawn = SimpleNamespace(name="a", fake_entries=0, side=None, rows_per_record=rows, is_exact=False)
    other = SimpleNamespace(name="b", fake_entries=0, side=None, rows_per_record=1, is_exact=exact)
    given: Any = SimpleNamespace(columns=[drawn, other], rows_per_record=rows, weight=None, **REST)
    if fits:
        assert Manifest._fits(given) is given  # type: ignore[operator]
        return
    with pytest.raises(ValueError, match="beside exact columns alone"):
        Manifest._fits(given)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("role", "exact", "fits"), [(Role.PLAIN, True, True), (Role.PLAIN, False, False), (Role.SENSITIVE, True, False)]
)
def test_a_weight_is_a_plain_column_published_exactly(role: Role, exact: bool, fits: bool) -> None:
    column = SimpleNamespace(name="w", fake_entries=0, side=None, rows_per_record=1, is_exact=exact, role=role)
    given: Any = SimpleNamespace(columns=[column], rows_per_record=1, weight="w", **REST)
    if fits:
        assert Manifest._fits(given) is given  # type: ignore[operator]
        return
    with pytest.raises(ValueError, match="the weight is a plain column"):
        Manifest._fits(given)  # type: ignore[operator]


@pytest.mark.parametrize(
    "given",
    [
        MEANING,
        MEANING | {"domain_source": "policy", "distance": "ordinal"},
        MEANING | {"distance": [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]},
        MEANING | {"hierarchy": [["a", "b", "c"], ["d", "d", "c"], ["*", "*", "*"]], "hidden": ["c"]},
        MEANING | {"kind": "integer", "values": [], "integers": [0, 3]},
        MEANING | {"values": ["(missing)"], "integers": [0, 3], "bottom": 0.0, "top": 3.0},
        MEANING | {"values": ["below 1", "2"], "bottom": 1.0},
        BINS | {"domain_source": "bins"},
        MEANING | {"edges": [0.0, 1.0, 3.0], "measure": "integer", "values": ["0", "[1, 3)"]},
        PAIRS | {"values": ["a | a", "b | b"]},
        PAIRS | {"values": ["a | a", "b | b"], "differ": ["n"], "domain_source": "policy"},
        {"name": "x", "role": "plain", "kind": "string"},
    ],
)
def test_what_a_column_means_is_said_again_as_it_was_read(given: dict[str, Any]) -> None:
    column = PublishedMeaning.model_validate(given).column()
    assert column.min_count == 1
    said = PublishedMeaning.of(column).model_dump(mode="json", exclude_none=True)
    sources = {"domain_source": "data"} if given.get("values") is not None else {}
    inner = {"members": [one | {"domain_source": "data", "hidden": []} for one in given.get("members", [])]}
    assert said == sources | {"hidden": []} | given | (inner if inner["members"] else {})
