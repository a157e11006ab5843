"""Edits of a policy as plain values; the library validates the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

QUASI = ("quasi-identifier", "sensitive-quasi-identifier")
SECRET = ("sensitive", "sensitive-quasi-identifier")
KEPT = ("kind", "format", "decimal", "missing_values", "missing")
"""Options of a column that say how it is written: they stay when its role changes."""


def attribute(sections: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the table of a column, also if it was written as a role only."""
    given = sections["attributes"][name]
    if isinstance(given, str):
        given = sections["attributes"][name] = {"role": given}
    found: dict[str, Any] = given
    return found


def set_role(sections: dict[str, Any], name: str, role: str) -> None:
    """Set another role, and remove options that only the old one permits."""
    given = attribute(sections, name)
    was, given["role"] = given["role"], role
    if role in ("identifier", "drop"):
        for option in [one for one in given if one not in ("role", *KEPT)]:
            del given[option]
    if role != "quasi-sensitive":
        for option in ("knowledge", "separator", "columns", "unknown"):
            given.pop(option, None)
    if was in SECRET and role not in SECRET:
        unname(sections, name)
    follow(sections)


def unname(sections: dict[str, Any], name: str) -> None:
    """Remove a column from all requirements; remove requirements on that column only."""
    left = []
    for one in sections.get("require", []):
        on = one.get("on", [])
        named = [on] if isinstance(on, str) else list(on)
        if name in named:
            named.remove(name)
            if not named:
                continue
            left.append({**one, "on": named})
        else:
            left.append(one)
    sections["require"] = left


def follow(sections: dict[str, Any]) -> None:
    """Assign columns to the method for their kind, if several methods share them."""
    from noren.methods import METHODS

    methods = sections.get("method")
    if isinstance(methods, list) and len(methods) == 2:
        roles = {n: one if isinstance(one, str) else one["role"] for n, one in sections["attributes"].items()}
        forms = [METHODS[one["name"]].forms_classes for one in methods]
        if sorted(forms) == [False, True]:
            for one, classes in zip(methods, forms, strict=True):
                wanted = [n for n, role in roles.items() if role == ("quasi-identifier" if classes else "sensitive")]
                both = [n for n, role in roles.items() if role == "sensitive-quasi-identifier" and not classes]
                one["on"] = wanted + both
            sections["method"] = [one for one in methods if one["on"]]
            if len(sections["method"]) == 1:
                sections["method"][0].pop("on")


def set_key(sections: dict[str, Any], key: str | None) -> None:
    """Set the column that identifies people; without one every row is a person. A bound on rows is removed with its
    key."""
    people = sections.setdefault("people", {})
    if people.pop("key", None) not in (key, [key]):
        people.pop("most_rows", None)
    people.pop("rows", None)
    if key is None:
        people["rows"] = "independent"
    else:
        people["key"] = key
        attribute(sections, key)["role"] = "identifier"


def set_option(sections: dict[str, Any], name: str, option: str, value: Any) -> None:
    """Set an option of a column; None removes it."""
    given = attribute(sections, name)
    if value is None:
        given.pop(option, None)
    else:
        given[option] = value


def add_requirement(sections: dict[str, Any], given: dict[str, Any]) -> None:
    sections.setdefault("require", []).append(dict(given))


def remove_requirement(sections: dict[str, Any], at: int) -> None:
    del sections["require"][at]


def set_parameter(sections: dict[str, Any], at: int, field: str, value: Any) -> None:
    """Set a parameter of the requirement at a position; None is its default."""
    given = sections["require"][at]
    if value is None:
        given.pop(field, None)
    else:
        given[field] = value


def adopt(sections: dict[str, Any], method: Any, setting: dict[str, float] | None = None) -> None:
    """Adopt the methods and parameters of a candidate."""
    sections["method"] = method
    for name, value in (setting or {}).items():
        for one in sections.get("require", []):
            if name in one:
                one[name] = int(value) if float(value).is_integer() else value


def groups(sections: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the groups of columns that are hidden together, in any notation."""
    given = sections.get("together", [])
    if isinstance(given, Mapping) or (given and all(isinstance(one, str) for one in given)):
        given = [given]
    return [dict(one) if isinstance(one, Mapping) else {"columns": list(one)} for one in given]


def join(sections: dict[str, Any], group: Mapping[str, Any]) -> None:
    """Hide these columns together."""
    sections["together"] = [*groups(sections), dict(group)]


def part(sections: dict[str, Any], columns: Sequence[str]) -> None:
    """Hide these columns separately."""
    left = [one for one in groups(sections) if list(one["columns"]) != list(columns)]
    sections.pop("together", None)
    if left:
        sections["together"] = left


def at_levels(sections: Mapping[str, Any], levels: Mapping[str, int] | None) -> list[dict[str, Any]]:
    """Fix Incognito's levels in the methods, or free them (None); other options stay. Without Incognito, make it the
    only method."""
    given = sections.get("method", [])
    methods = [dict(one) for one in ([given] if isinstance(given, Mapping) else given)]
    own = [one for one in methods if one["name"] == "incognito"] or [{"name": "incognito"}]
    for one in own:
        one.pop("levels", None)
        if levels is not None:
            one["levels"] = dict(levels)
    return methods if own[0] in methods else own
