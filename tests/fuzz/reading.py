"""A release directory read with json, csv and pyarrow alone: texts, sets of texts, side tables."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.fuzz.texts import text

MISSING = "(missing)"
NOTHING = dict.fromkeys(
    (
        "values",
        "edges",
        "measure",
        "integers",
        "hidden",
        "hierarchy",
        "distance",
        "nodes",
        "design",
        "groups",
        "knowledge",
    )
)
"""What a manifest leaves out where a column does not have it."""


@dataclass
class Read:
    """What stands in a release directory."""

    manifest: dict[str, Any]
    entries: dict[str, dict[str, Any]]
    rows: list[dict[str, Any]]
    """Texts by column; frozensets where the column holds sets; None where a cell is missing."""
    groups: dict[str, dict[int, dict[str, int]]]
    """Counts of values by group, for every column that names groups."""
    knowledge: dict[str, list[dict[str, Any]]]

    @property
    def is_shuffled(self) -> bool:
        """Whether the members of every set stand in rows of their own."""
        return any(entry["form"] == "member" for entry in self.entries.values())

    def with_role(self, *roles: str) -> list[str]:
        return [name for name, entry in self.entries.items() if entry["role"] in roles]


def read_release(directory: Path) -> Read:
    """Everything of a release, by plain means."""
    package = json.loads((directory / "datapackage.json").read_text(encoding="utf-8"))
    manifest = package["noren"]
    entries = {entry["name"]: _spelled_out(NOTHING | entry) for entry in manifest["columns"]}
    tables = {item["name"]: _table(directory, item) for item in package["resources"]}
    rows = [{name: _cell(row[_heading(name, row)], entry) for name, entry in entries.items()} for row in tables["data"]]
    numbered = [name for name, entry in entries.items() if entry["form"] == "group"]
    groups: dict[str, dict[int, dict[str, int]]] = {}
    for number, name in enumerate(numbered, 1):
        held = groups.setdefault(name, {})
        for row in tables[f"groups-{number}"]:
            value = MISSING if row["value"] in (None, "") else _text(row["value"], entries[name])
            held.setdefault(int(row["group"]), {})[value] = int(row["count"])
    knowledge = {
        name: tables[f"knowledge-{entry['knowledge']}"] for name, entry in entries.items() if entry["form"] == "terms"
    }
    return Read(manifest, entries, rows, groups, knowledge)


def _heading(name: str, row: dict[str, Any]) -> str:
    """What a file calls a column: numbers of groups have a heading of their own in CSV, and another in Parquet."""
    return next(heading for heading in (name, f"{name} (group)", f"{name}_group") if heading in row)


def _table(directory: Path, item: dict[str, Any]) -> list[dict[str, Any]]:
    path = directory / item["path"]
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    escaped = "escape" in item["schema"]
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = list(csv.reader(file))
    names = [_unescaped(cell, escaped) for cell in header]
    lines = [line or [""] for line in lines]  # an empty line of a table with one column is a missing cell
    assert all(len(line) == len(names) for line in lines), "a ragged line in a CSV file of the release"
    assert not escaped or not any(cell[:1] in "=@\t\r\n" for line in lines for cell in line if cell), "a bare formula"
    return [{name: _unescaped(cell, escaped) for name, cell in zip(names, line, strict=True)} for line in lines]


def _unescaped(cell: str, escaped: bool) -> str:
    return cell[1:] if escaped and cell.startswith("'") else cell


def _cell(value: Any, entry: dict[str, Any]) -> Any:
    if entry["form"] in ("set", "terms"):
        members = json.loads(value) if isinstance(value, str) else value
        listed = [MISSING if member is None else _text(member, entry) for member in members]
        assert len(set(listed)) == len(listed), "a set repeats a member"
        return frozenset(listed)
    return None if value is None or value == "" else _text(value, entry)


def _text(value: Any, entry: dict[str, Any]) -> str:
    """The cell as a person writes it; a number in CSV may have any of its spellings."""
    number = entry["kind"] == "number" and entry["form"] not in ("node", "open") and isinstance(value, str)
    return text(float(value)) if number and value != MISSING else text(value)


def _spelled_out(entry: dict[str, Any]) -> dict[str, Any]:
    """A column of whole numbers between two ends with all of them as values."""
    if entry["integers"] is None:
        return entry
    low, high = entry["integers"]
    first = [] if entry.get("bottom") is None else [f"below {low}"]
    last = [] if entry.get("top") is None else [f"{high} and above"]
    return entry | {"values": [*first, *map(str, range(low, high)), *last, *entry["values"]]}


def base(entry: dict[str, Any], truth: str) -> str:
    """The published base value that a true one is, where not all of them are named; else the true one itself."""
    values = entry["values"] or []
    if truth in values or truth == MISSING:
        return truth
    if entry["measure"] is not None or entry["integers"] is not None:
        place = _place(truth, str(entry["measure"]))
        if place is None:
            return truth
        if entry["integers"] is not None:
            low, high = entry["integers"]
            return f"below {low}" if place < low else f"{high} and above" if place >= high else truth
        edges = [float(edge) for edge in entry["edges"]]
        inside = [i for i in range(len(edges) - 1) if edges[i] <= place < edges[i + 1]]
        return values[inside[0]] if inside else truth
    names = [(label.removeprefix("other "), label) for label in entry["hidden"] or ()]
    stars = {name: len(name) - len(name.rstrip("*")) for name, _ in names}
    masked = [
        (stars[name], label)
        for name, label in names
        if stars[name] and name != "*" and len(name) == len(truth) and truth.startswith(name.rstrip("*"))
    ]
    opaque = [
        (1000 + (name in ("*", "(suppressed)")), label) for name, label in names if not stars[name] or name == "*"
    ]
    return min([*masked, *opaque], default=(0, truth))[1]


def _place(truth: str, measure: str) -> float | None:
    try:
        if measure == "date":
            return date.fromisoformat(truth).toordinal()
        if measure == "datetime":
            return (datetime.fromisoformat(truth) - datetime(1970, 1, 1)).total_seconds()
        return float(truth)
    except ValueError:
        return None


def covered(entry: dict[str, Any]) -> dict[str, frozenset[str]]:
    """Which base values every label of a column stands for."""
    values = entry["values"] or []
    out = {value: frozenset([value]) for value in values}
    if entry["nodes"] is not None:
        out = {
            label: frozenset(value for start, stop in runs for value in values[start:stop])
            for label, runs in entry["nodes"]
        }
    elif entry["hierarchy"] is not None and entry["form"] == "node":
        for height, level in enumerate(entry["hierarchy"]):
            held: dict[str, set[str]] = {}
            for leaf, label in zip(values, level, strict=True):
                held.setdefault(label, set()).add(leaf)
            for label, leaves in held.items():
                free = label
                if leaves not in out.values():  # where a label is taken the level is added to it
                    while free in out:
                        free += f" (level {height})"
                    out[free] = frozenset(leaves)
    return out
