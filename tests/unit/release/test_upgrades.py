"""Manifests of earlier formats are brought forward step by step, and refused where they have what came later."""

from __future__ import annotations

from typing import Any

import pytest

from noren.release.manifest import FORMAT, known_format, upgrade_manifest


def first(*forms: str, layout: str | None = "sets", method: Any = None) -> dict[str, Any]:
    out = {"format": 1, "columns": [{"form": form, "empty": None} for form in forms]}
    return out | {"method": method or {"name": "decoys"}} | ({} if layout is None else {"layout": layout})


@pytest.mark.parametrize(("number", "known"), [(0, False), *((n, True) for n in range(1, 6)), (6, False)])
def test_formats_up_to_the_present_one_are_known(number: int, known: bool) -> None:
    assert FORMAT == 5
    assert known_format({"format": number}) is known
    for strange in ("1", None, [1]):
        assert not known_format({"format": strange})


@pytest.mark.parametrize("number", [2, 3, 4])
def test_what_needs_no_change_gets_the_next_number(number: int) -> None:
    assert upgrade_manifest({"format": number, "columns": [{"form": "exact"}]}) == {
        "format": 5,
        "columns": [{"form": "exact"}],
    }
    assert upgrade_manifest({"format": 5, "columns": []}) == {"format": 5, "columns": []}
    assert upgrade_manifest({"format": 9}) == {"format": 9}


@pytest.mark.parametrize(
    ("number", "field"),
    [(2, "measure"), (2, "integers"), (2, "hidden"), (2, "tight"), (2, "sets"), (3, "sets")],
)
def test_a_field_of_a_later_format_is_refused(number: int, field: str) -> None:
    block = {"format": number, "columns": [{"form": "exact"}, {"form": "node", field: 1}]}
    with pytest.raises(ValueError, match="a field of a later format"):
        upgrade_manifest(block)
    assert field == "sets" or upgrade_manifest(block | {"format": 3})["format"] == 5


def test_the_first_format_had_a_layout_and_one_method() -> None:
    found = upgrade_manifest(first("value", "group", "group", "exact", layout="general"))
    assert found["methods"] == [{"name": "decoys"}]
    assert [*found["columns"]] == [
        {"form": "exact"},
        {"form": "group", "number": 1},
        {"form": "group", "number": 2},
        {"form": "exact"},
    ]
    assert "layout" not in found
    assert "method" not in found
    with pytest.raises(ValueError, match="more fields than its name"):
        upgrade_manifest(first("set", method={"name": "decoys", "k": 2}))


@pytest.mark.parametrize(
    ("layout", "forms", "fits"),
    [
        ("sets", ["exact", "open", "set"], True),
        (None, ["set"], True),
        ("sets", ["exact", "member"], False),
        ("sets", ["set", "node"], False),
        ("records", ["exact", "open", "member"], True),
        ("records", ["member"], True),
        ("records", ["exact", "open"], False),
        ("records", ["member", "set"], False),
        ("general", ["exact", "open", "node", "group", "terms"], True),
        ("general", ["exact"], True),
        ("general", ["node", "set"], False),
        ("other", ["exact"], False),
    ],
)
def test_a_layout_has_its_forms(layout: str | None, forms: list[str], fits: bool) -> None:
    if fits:
        assert upgrade_manifest(first(*forms, layout=layout))["format"] == 5
    else:
        with pytest.raises(ValueError, match="the layout does not fit"):
            upgrade_manifest(first(*forms, layout=layout))


def test_the_first_format_passes_through_all_others() -> None:
    """What a later format brought is refused in an earlier one, however early."""
    for field in ("measure", "sets"):
        block = first("set")
        block["columns"][0][field] = 1
        with pytest.raises(ValueError, match="a field of a later format"):
            upgrade_manifest(block)
