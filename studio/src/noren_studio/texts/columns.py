"""Texts of step 2, the columns and their generalised values."""

from __future__ import annotations

VALUES_KEEP_NAMES = "only a node can be changed like this, not a value of the table."
PICK_NODE = "Select a node, not a value."
MERGE_SIBLINGS = "only nodes or values with the same parent can be combined."
TICK_TWO = "Tick two or more nodes or values with the same parent."
MOVE_INSIDE = "a node cannot be moved into itself."
MOVE_DEEP = "a node with nodes below it cannot be on the same level as values."
NAME_NEEDED = "a node needs a name."
NAME_HINT = "Give it another name."


def name_taken(label: str) -> str:
    return f"there is a node {label!r} already."


def node(label: str, records: int) -> str:
    return f"{label}  ({records:,})"


KEYS = "Use the arrow keys to select a column, and a digit to set the role with that number."
COLUMN_OPTIONS = {
    "missing": {
        "category": "a value of their own",
        "drop": "drop the record",
        "reject": "refuse the table",
    },
    "rare": {"refuse": "refuse the table", "merge": "put together as (other)"},
    "kind": {
        "": "as understood",
        "text": "texts",
        "integer": "whole numbers",
        "number": "numbers",
        "date": "dates",
        "datetime": "dates with times",
        "boolean": "yes or no",
    },
    "decimal": {"": "as understood", ".": "a point: 1.5", ",": "a comma: 1,5"},
    "format": {
        "": "as understood",
        "%d/%m/%Y": "day first: 31/12/2026",
        "%m/%d/%Y": "month first: 12/31/2026",
        "%d.%m.%Y": "31.12.2026",
        "%d-%m-%Y": "31-12-2026",
        "%Y-%m-%d": "2026-12-31",
        "%Y%m%d": "20261231",
    },
}
OPTION_NAMES = {
    "missing": "Missing cells are",
    "rare": "Rare values",
    "kind": "Its cells are",
    "decimal": "Before decimals stands",
    "format": "Dates are written",
}
HIERARCHY = "General values"
NO_VALUES = "Too many different values to list: use bins, or drop the column."
NO_HIERARCHY = "No hierarchy: numbers become intervals, other values become sets of values."
WAY = "Made by"
WAY_NONE = "no hierarchy"
WAYS = {
    "widths": "intervals of a width",
    "quantiles": "intervals with equally many people",
    "prefix": "first characters",
    "calendar": "spans of the calendar",
    "frequency": "rare values put together",
    "tree": "a tree, edited by hand",
    "intervals": "intervals with given edges",
    "csv": "a file in ARX's layout",
}
RULE_FIELDS = {
    "widths": "Widths, each a multiple of the previous one",
    "quantiles": "Numbers of intervals, falling",
    "prefix": "Characters to keep, falling",
    "calendar": "Spans: week, month, quarter, year, decade",
    "frequency": "Fewest records, rising",
}
RULE_HINTS = {
    "widths": "For example 5, 10, 20.",
    "quantiles": "For example 8, 4, 2.",
    "prefix": "For example 3, 1.",
    "calendar": "For example month, year, decade.",
    "frequency": "For example 20, 100.",
}
ARX_OUT = "Save for ARX (CSV)"
ARX_IN = "Load an ARX hierarchy"
NOT_A_TREE = "This rule does not fit the values of the column."
NO_GAPS = "The hierarchy contains every value of the table and no others."
GAPS_HINT = "Add these values to the hierarchy; otherwise the release is refused."
ORPHANS_HINT = "These values do no harm, but check their spelling."
NODE_NAME = "Name of the node"
MOVE_TO = "Node to move under"
TREE_HOW = (
    "Drag a node or a value onto another one; or select it with Tab, press m, select the target, press m again. "
    "Or tick nodes and values, then:"
)
TICK_FIRST = "Tick a node or a value first."
MERGE = "Put together"
RENAME = "Rename"
SPLIT = "Dissolve"
MOVE = "Move"
MOVE_WHERE = "no target node is selected."


def moved(what: str, under: str) -> str:
    return f"{what} under {under}"


def hierarchy_why(name: str, values: int) -> str:
    return (
        f"{name} has {values:,} values. If people would be unique, a more general value is published; "
        "hierarchies with small steps lose less information."
    )


def of_values(shown: int, total: int) -> str:
    return f"Shown for the {shown:,} most common of {total:,} values."


def not_read(written: str) -> str:
    return f"{written!r} cannot be read as a list."


def level(height: int, labels: int) -> str:
    return f"Level {height}: {labels:,}" if height else f"Values: {labels:,}"


def and_more(count: int) -> str:
    return f"and {count:,} more"


def _some(values: list[str]) -> str:
    named = ", ".join(values[:5])
    return named if len(values) <= 5 else f"{named} and {len(values) - 5:,} more"


def gaps(values: list[str]) -> str:
    return f"Without a place: {_some(values)}"


def orphans(values: list[str]) -> str:
    return f"Not in the table: {_some(values)}"


def why_quasi(uniques: int, without: int, alone: float) -> str:
    fewer = uniques - without
    return (
        f"Others may know it. {uniques:,} people are unique in all such columns; without this column "
        f"{without:,} would be ({fewer:,} fewer). {alone:.1%} of people are unique in this column."
    )


def why_sensitive(distinct: int | None, value: str, share: float) -> str:
    return (
        f"A secret with {distinct or 0:,} values. Whoever guesses {value!r} of everybody is right for {share:.1%} of "
        "people without any release; what a release adds to that is the risk."
    )


def why_plain(distinct: int | None, rare: int) -> str:
    return (
        f"Published unchanged: others can use its {distinct or 0:,} values to find people. For harmless columns only."
    )


def why_identifier(distinct: int | None, rows: int) -> str:
    many = "very many" if distinct is None else f"{distinct:,}"
    return f"{many} different values in {rows:,} rows. It is dropped and never published."
