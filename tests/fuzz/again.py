"""A second release of people whom a register knows: nobody is told more by both than by one, and no way leads round."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.fuzz.reading import MISSING, Read, covered, read_release
from tests.fuzz.worlds import World


def again(world: World, folder: Path, first: Read, run: Any) -> list[str]:
    """What is wrong with a second release. `run` releases a world to a folder, or says why not."""
    if first.is_shuffled or any(entry["form"] == "set" for entry in first.entries.values()):
        found = _drawn(world, folder, first, run)
    else:
        found = _classes(world, folder, first, run)
    return found + _ways_round(world, folder, run)


def _drawn(world: World, folder: Path, first: Read, run: Any) -> list[str]:
    """The same people, their keys written otherwise, publish the same sets."""
    key = world.data["record_key"]
    spelled = [f" {value.upper()}\t" for value in world.columns[key]]
    error = run(replace(world, columns=world.columns | {key: spelled}), folder / "again")
    if error is not None:
        chance = world.dependence < 1  # looked for among random records
        return [] if chance else [f"the same people again are refused: {type(error).__name__}: {error}"]
    second = read_release(folder / "again")
    return [] if _held(first) == _held(second) else ["the same people publish other sets in a second release"]


def _held(read: Read) -> Counter[Any]:
    return Counter(tuple(sorted(row.items(), key=lambda item: item[0])) for row in read.rows)


def _classes(world: World, folder: Path, first: Read, run: Any) -> list[str]:
    """The same secrets in other classes: both together leave as many values possible, or it is refused."""
    if "row" not in first.entries:
        return []
    r = random.Random(world.seed)
    moved = dict(world.columns)
    for name, attribute in world.attributes.items():
        if attribute["role"] == "quasi-identifier":
            moved[name] = r.sample(moved[name], len(moved[name]))
    if run(replace(world, columns=moved), folder / "again") is not None:
        return []
    second = read_release(folder / "again")
    out = []
    for name in first.with_role("sensitive", "sensitive-quasi-identifier"):
        before, after = possible(first, name), possible(second, name)
        least = max([2, *(a["l"] for a in world.require if a.get("on") == name and a["model"] in COUNTED)])
        both = [(before[i], after[i]) for i in before.keys() & after.keys()]
        exposed = [one & other for one, other in both if len(one & other) < least <= min(len(one), len(other))]
        if exposed:
            out.append(f"{name}: two releases leave {len(exposed)} people fewer than {least} values")
    return out


COUNTED = ("frequency-l-diversity", "distinct-l-diversity")


def possible(read: Read, name: str) -> dict[int, frozenset[str]]:
    """The secrets that the class of every record leaves possible, by the record's number."""
    if read.entries[name]["form"] == "group":
        return {int(row["row"]): frozenset(read.groups[name][int(row[name])]) for row in read.rows}
    under = covered(read.entries[name])
    keys = [one for one in read.with_role("quasi-identifier", "sensitive-quasi-identifier") if one != name]
    held: dict[tuple[Any, ...], set[str]] = {}
    for row in read.rows:
        held.setdefault(tuple(row[key] for key in keys), set()).update(under[row[name] or MISSING])
    return {int(row["row"]): frozenset(held[tuple(row[key] for key in keys)]) for row in read.rows}


def _ways_round(world: World, folder: Path, run: Any) -> list[str]:
    """Another key column, and a lost register: both must be refused."""
    key = world.data["record_key"]
    renamed = {("other key" if name == key else name): value for name, value in world.columns.items()}
    roles = {("other key" if name == key else name): value for name, value in world.attributes.items()}
    other = replace(world, columns=renamed, attributes=roles, data=world.data | {"record_key": "other key"})
    out = [] if run(other, folder / "renamed") is not None else ["another key column leads round the register"]
    for path in folder.iterdir():
        if path.name.startswith("secret.key") and path.name != "secret.key":
            path.unlink()
    return out if run(world, folder / "lost") is not None else [*out, "a lost register is not missed"]
