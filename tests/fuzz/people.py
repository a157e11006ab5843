"""What somebody concludes who knows the quasi-identifiers of all rows of everybody, and the rule of the method.

People with several rows are the intersection of what their rows leave possible (DEFINITIONS, part 8.1); whoever is
passed over on a public curve is chained to the pair that passed them over (part 8.2).
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from unicodedata import category, normalize

from tests.fuzz.reading import MISSING, Read, base, covered
from tests.fuzz.truth import kept_records, labels
from tests.fuzz.worlds import World
from tests.oracles.people_over_rows import Told, told
from tests.oracles.replay import Person, certain_by_the_curve, named_pairs

EPS = 1e-7
Row = dict[str, str]


# ---------------------------------------------------------------- people with several rows


def judge_people(world: World, read: Read) -> list[str]:
    """What all rows of a person disclose together, beyond what is asked."""
    if not world.person:
        return []
    kept = kept_records(world)
    rows: dict[Any, list[int]] = {}
    for i in kept:
        rows.setdefault(world.columns[world.person][i], []).append(i)
    out = []
    for name in read.with_role("sensitive"):
        truth = labels(world, read, name, kept)
        constant = all(len({truth[i] for i in own}) == 1 for own in rows.values())
        if constant and read.entries[name]["form"] == "set":
            out += _sets_of_people(read, name, rows)
        elif constant and read.entries[name]["form"] in ("exact", "group", "node"):
            out += _intersections(world, read, name, rows, kept)
    return out


def _sets_of_people(read: Read, name: str, rows: dict[Any, list[int]]) -> list[str]:
    """A person with one secret has one set."""
    if "row" not in read.entries:
        return []
    sets = {int(row["row"]): row[name] for row in read.rows}
    several = sum(len({sets[i] for i in own if i in sets}) > 1 for own in rows.values())
    return [f"{name}: {several} people have several sets for one secret"] if several else []


def _intersections(world: World, read: Read, name: str, rows: dict[Any, list[int]], kept: list[int]) -> list[str]:
    if read.manifest["suppressed"]:
        return []
    found = tell_people(world, read, name, rows, kept)
    grouped = read.entries[name]["form"] == "group"
    out = []
    if grouped and "row" in read.entries:
        group = {int(row["row"]): row[name] for row in read.rows}
        several = sum(len({group[i] for i in own}) > 1 for own in rows.values())
        out += [f"{name}: {several} people have rows in several groups"] if several else []
    for asked in world.require:
        if asked["model"] == "k-anonymity":
            least = min(one.owners for one in found.values())
            if least < asked["k"]:
                out.append(f"all rows of a person fit {least} people, asked {asked['k']}")
        elif asked.get("on") == name and asked["model"] in ("distinct-l-diversity", "frequency-l-diversity"):
            possible = min(len(one.possible) for one in found.values())
            # the product says too much where a class holds all rows of a person, as classes of whole people do
            ways = [(one.belief, one.together) if one.together else (one.belief,) for one in found.values()]
            believed = max(min(max(way.values(), default=1.0) for way in some) for some in ways)
            if possible < asked["l"] - EPS:
                out.append(f"{name}: all rows of a person leave {possible} values, asked {asked['l']}")
            apart = grouped or asked["model"] != "frequency-l-diversity"  # of groups see above: one holds all rows
            if not apart and believed * asked["l"] > 1 + EPS:
                out.append(f"{name}: all rows of a person leave a belief of {believed:.3f}, asked l = {asked['l']}")
    return out


def tell_people(world: World, read: Read, name: str, rows: dict[Any, list[int]], kept: list[int]) -> dict[Any, Told]:
    """What is left of everybody's secret."""
    heads = read.with_role("quasi-identifier")
    under = {head: covered(read.entries[head]) for head in heads}
    leaves = covered(read.entries[name]) if read.entries[name]["form"] == "node" else {}
    grouped = read.entries[name]["form"] == "group"
    held: dict[tuple[Any, ...], Counter[Any]] = {}
    for row in read.rows:
        key = (*(row[head] or MISSING for head in heads), row[name] if grouped else None)
        value = row[name] or MISSING
        if grouped:
            held[key] = Counter(read.groups[name][int(row[name])])
        else:
            held.setdefault(key, Counter()).update(leaves.get(value, [value]))
    covers = [
        {head: under[head].get(cell, frozenset([cell])) for head, cell in zip(heads, key[:-1], strict=True)}
        for key in held
    ]
    known = {head: labels(world, read, head, kept) for head in heads}
    truth = {head: {one: _place(read, head, under[head], one) for one in known[head].values()} for head in heads}
    people = {who: [{head: truth[head][known[head][i]] for head in heads} for i in own] for who, own in rows.items()}
    return told(covers, list(held.values()), people)


def _place(read: Read, head: str, under: dict[str, frozenset[str]], truth: str) -> str:
    """The published base value of a true one, whatever the spelling of its number."""
    found = base(read.entries[head], truth)
    shown = frozenset(truth for cells in under.values() for truth in cells)
    if found in shown:
        return found
    try:
        return next((one for one in shown if one != MISSING and float(one) == float(truth)), found)
    except ValueError:
        return found


# ---------------------------------------------------------------- the rule of a public curve

OPEN_RULE = ("three-phase", "sweep", "local-suppression")
"""Methods that choose by secrets whom they move, withhold or pass over."""


def judge_rule(world: World, read: Read) -> list[str]:
    """A release that says nothing is ignored is made by no method that passes people over for their secrets."""
    if world.ignores or read.manifest.get("mechanism") == "ignored":
        return []
    protected = [name for name in read.entries if read.entries[name]["role"].startswith("sensitive")]
    if not protected:
        return []
    used = [one.get("chosen") or one["name"] for one in read.manifest["methods"]]
    sized = [one.get("class_size") for one in read.manifest["methods"]]
    bare = [n for n, size in zip(used, sized, strict=True) if n in OPEN_RULE or (n == "hilbert" and size is None)]
    return [f"{name} is published although whom it passed over is certain" for name in bare]


def replayed(world: World, read: Read, curve: list[int]) -> tuple[int, int]:
    """How many secrets somebody who replays the curve is certain of, and how many of them are right."""
    heads, secret = read.with_role("quasi-identifier"), read.with_role("sensitive")[0]
    people: list[Person] = [
        tuple(float(cell) for cell in one) for one in zip(*(world.columns[head] for head in heads), strict=True)
    ]
    found = certain_by_the_curve(named_pairs(read.rows, people, heads, secret), people, curve)
    return len(found), sum(str(world.columns[secret][who]) == said for who, said in found.items())


# ---------------------------------------------------------------- labels that look the same

SEEN = str.maketrans("аеорсхуіѕԜΑΕΟ‐\u00a0", "aeopcxyisWAEO- ")
"""Letters of other scripts that the worlds' twins are made of."""


def seen(label: str) -> str:
    """What a reader sees of a label."""
    plain = normalize("NFKC", label.translate(SEEN))
    return " ".join("".join(c for c in plain if category(c) != "Cf").split())


def judge_twins(read: Read) -> list[str]:
    """No two values of a column look the same."""
    out = []
    for name, entry in read.entries.items():
        if entry["form"] == "open" or entry["kind"] != "string":
            continue
        shown = set(entry["values"] or ()) | {value for held in read.groups.get(name, {}).values() for value in held}
        if entry["form"] in ("set", "terms"):
            shown |= {one for row in read.rows for one in row[name]}
        elif entry["form"] in ("exact", "member"):
            shown |= {row[name] for row in read.rows if row[name] is not None}
        if len({seen(one) for one in shown}) < len(shown):
            out.append(f"{name}: two values look the same")
    return out
