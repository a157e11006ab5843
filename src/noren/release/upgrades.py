"""Manifests of earlier formats, brought to the present one step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from noren.release.manifest import FORMAT, PublishedMeaning

Block = Mapping[str, Any]
EARLY = (
    "name", "role", "form", "kind", "values", "domain_source", "edges", "hierarchy", "design", "distance", "nodes",
    "groups", "knowledge",
)  # fmt: skip
"""The fields of a column in the order in which version 0.1 wrote them."""


def upgraded(block: Block) -> Block:
    """The manifest in the present format; one of an unknown format stays as it is. Raises ValueError where it lies."""
    while (upgrade := _upgrade(block)) is not None:
        block = upgrade(block)
    return block


def known_format(block: Block) -> bool:
    return block.get("format") == FORMAT or _upgrade(block) is not None


def early_order(block: Block) -> Block:
    """The manifest with the fields of its columns in their present order, where they stand in that of version 0.1."""
    columns, present = [], ("form", *PublishedMeaning.model_fields)
    for column in block["columns"]:
        early = list(column) == [name for name in EARLY if name in column]
        order = [*(name for name in present if name in column), *column] if early else list(column)
        columns.append({name: column[name] for name in dict.fromkeys(order)})
    return {**block, "columns": columns}


def _upgrade(block: Block) -> Callable[[Block], Block] | None:
    number = block.get("format")
    return UPGRADES.get(number) if isinstance(number, int) else None


def _from_1(block: Block) -> Block:
    """Format 1 (version 0.1): a layout for the whole table, one method, empty fields spelled out."""
    out = dict(block)
    layout, method, columns = out.pop("layout", "sets"), out.pop("method"), out["columns"]
    groups = 0
    made = []
    for entry in columns:
        column = {name: value for name, value in dict(entry).items() if value is not None}
        if column["form"] == "value":
            column["form"] = "exact"
        if column["form"] == "group":
            groups += 1
            column["number"] = groups
        made.append(column)
    forms = {column["form"] for column in made}
    fits = {
        "sets": forms <= {"exact", "open", "set"},
        "records": forms <= {"exact", "open", "member"} and "member" in forms,
        "general": forms <= {"exact", "open", "node", "group", "terms"},
    }
    if not fits.get(layout, False):
        raise ValueError("the layout does not fit the columns")
    if set(method) != {"name"}:
        raise ValueError("the method says more than its name")
    return out | {"format": 2, "columns": made, "methods": [{"name": method["name"]}]}


def _from_2(block: Block) -> Block:
    """Format 2 listed every value under general values; the present one may list edges instead."""
    later = {"measure", "integers", "hidden", "tight"}
    if any(later & set(column) for column in block["columns"]):
        raise ValueError("a column has a field of a later format")
    return {**block, "format": 3}


def _from_3(block: Block) -> Block:
    """Format 3 wrote every set as a list; the present one may keep sets once and write their numbers."""
    if any("sets" in column for column in block["columns"]):
        raise ValueError("a column has a field of a later format")
    return {**block, "format": 4}


UPGRADES: dict[Any, Callable[[Block], Block]] = {1: _from_1, 2: _from_2, 3: _from_3}
