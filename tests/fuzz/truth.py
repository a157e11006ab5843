"""A release compared with its original: the truth is covered, and nothing secret stands beside it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.fuzz.judge import judge_left_out, true_set
from tests.fuzz.reading import MISSING, Read, base, covered
from tests.fuzz.texts import is_missing, text
from tests.fuzz.worlds import World

OTHER = "(other)"


def kept_records(world: World) -> list[int]:
    """The records that the policy does not drop for a missing cell."""
    drops = [name for name, a in world.attributes.items() if a.get("missing") == "drop" and a["role"] != "identifier"]
    return [i for i in range(world.rows) if not any(_gone(world, name, i) for name in drops)]


def _gone(world: World, name: str, i: int) -> bool:
    return is_missing(world.columns[name][i])


def labels(world: World, read: Read, name: str, kept: list[int]) -> dict[int, str]:
    """What the policy makes of every kept record's cell: a bin, a merged value, a category for missing ones."""
    attribute, entry = world.attributes[name], read.entries[name]
    column = world.columns[name]
    times = Counter(text(column[i]) for i in kept if not is_missing(column[i]))
    merges = attribute.get("rare") == "merge" and "values" not in attribute and "bins" not in attribute
    out = {}
    for i in kept:
        value = column[i]
        if is_missing(value):
            out[i] = MISSING
        elif "bins" in attribute:
            edges = attribute["bins"]
            slots = [k for k in range(len(edges) - 1) if edges[k] <= value < edges[k + 1]]
            out[i] = entry["values"][slots[0] if slots else len(edges) - 2]
        else:
            told = text(value)
            special = told == OTHER or (told == MISSING and MISSING in (entry["values"] or ()))
            out[i] = OTHER if merges and times[told] < attribute["min_count"] and not special else told
    return out


def overall(world: World, read: Read) -> dict[str, dict[str, float]]:
    """The original's distribution of every coded column."""
    kept = kept_records(world)
    out = {}
    for name, entry in read.entries.items():
        if entry["form"] not in ("open", "terms"):
            counts = Counter(labels(world, read, name, kept).values())
            out[name] = {value: times / len(kept) for value, times in counts.items()}
    return out


def against_original(world: World, read: Read, directory: Path) -> list[str]:
    """What a release says that is not true, and what it says that it must not."""
    kept = kept_records(world)
    told = {name: labels(world, read, name, kept) for name, e in read.entries.items() if e["form"] != "terms"}
    out = _shape(world, read, kept)
    if "row" in read.entries:
        out += _record_by_record(world, read, told)
        gone = sorted({*kept} - {int(row["row"]) for row in read.rows})
        secrets = [name for name in told if world.attributes[name]["role"].startswith("sensitive")]
        held = {name: dict(Counter(told[name][i] for i in gone)) for name in secrets}
        whole = replace(
            read, entries={n: e | {"hierarchy": declared_tree(world, n, e)} for n, e in read.entries.items()}
        )
        out += judge_left_out(len(gone), held, world.require, overall(world, read), whole)
    else:
        out += _as_often(read, told, kept)
    return out + _secrets(world, read, directory)


def declared_tree(world: World, name: str, entry: dict[str, Any]) -> Any:
    """The published tree, or where the policy gives one by groups the whole of it: those left out may alone have a
    value, and then no release names it."""
    given = world.attributes[name].get("hierarchy")
    if not isinstance(given, dict) or "tree" not in given or entry["hierarchy"] is None:
        return entry["hierarchy"]
    rows = [[leaf, group, "*"] for group, leaves in given["tree"].items() for leaf in leaves]
    known = {row[0] for row in rows}
    rows += [list(row) for row in zip(*entry["hierarchy"], strict=True) if row[0] not in known]
    return [list(level) for level in zip(*rows, strict=True)]


def _shape(world: World, read: Read, kept: list[int]) -> list[str]:
    out = []
    suppressed = read.manifest["suppressed"]
    each = next(e["design"]["eta"] for e in read.entries.values() if e["design"]) if read.is_shuffled else 1
    if len(read.rows) != read.manifest["records"] * each:
        out.append(f"{len(read.rows)} rows, the manifest says {read.manifest['records']}")
    if read.manifest["records"] + suppressed != len(kept):
        out.append(f"{read.manifest['records']} published and {suppressed} suppressed of {len(kept)}")
    if suppressed > world.method.get("suppression", 0) * len(kept) + 1e-9:
        out.append(f"{suppressed} of {len(kept)} suppressed, more than the policy allows")
    wanted = {name for name, a in world.attributes.items() if a["role"] != "identifier"}
    if set(read.entries) != wanted:
        out.append(f"published columns differ by {sorted(set(read.entries) ^ wanted)}")
    strange = [n for n, e in read.entries.items() if e["role"] != world.attributes[n]["role"]]
    return out + [f"the role of {name} was changed" for name in strange]


def _record_by_record(world: World, read: Read, told: dict[str, dict[int, str]]) -> list[str]:
    """Every cell against the record it is about."""
    out: list[str] = []
    by_row: dict[int, list[dict[str, Any]]] = {}
    for row in read.rows:
        by_row.setdefault(int(row["row"]), []).append(row)
    for name, entry in read.entries.items():
        under = covered(entry) if entry["form"] == "node" else {}
        for i, rows in by_row.items():
            words = _cell_wrong(world, read, name, entry, under, i, rows, told)
            if words:
                out.append(f"{name}: {words}")
                break
    held = {name: {told[name][i] for i in by_row} for name in told}
    if read.manifest["suppressed"]:
        for name, entry in read.entries.items():
            listed = set(entry["values"] or ()) - set(entry["hidden"] or ())
            if _declared(entry):
                special = {MISSING, OTHER} if entry["design"] is None else set()  # sets can show their whole domain
                listed &= special - set(texts_in(world.attributes[name].get("values") or []))
            if name in held and not listed <= held[name]:
                out.append(f"{name}: the manifest lists {len(listed - held[name])} values that no published record has")
    order = [int(row["row"]) for row in read.rows]
    if not read.is_shuffled and len(order) > 40 and order in (sorted(order), sorted(order, reverse=True)):
        out.append("the records stand in the order of the original")
    return out


def _declared(entry: dict[str, Any]) -> bool:
    """Whether values are listed whoever has them: the policy's, a whole range, what lies between edges of cells."""
    between = entry["form"] == "node" and (entry["measure"] or entry["integers"])
    return entry["domain_source"] != "data" or bool(between) or _range(entry)


def _range(entry: dict[str, Any]) -> bool:
    return entry["kind"] == "integer" and entry["values"] is not None


def _cell_wrong(
    world: World, read: Read, name: str, entry: dict[str, Any], under: dict[str, frozenset[str]], i: int,
    rows: list[dict[str, Any]], told: dict[str, dict[int, str]],
) -> str:  # fmt: skip
    form = entry["form"]
    if i not in told.get("row", {}):
        return "a record that the policy drops"
    cell = rows[0][name]
    if form == "terms":
        return "" if cell <= true_set(world, name, i) else "terms that the record does not have"
    truth = told[name][i]
    if form in ("exact", "open"):
        same = (cell if cell is not None else MISSING) == truth or _same_number(cell, truth)
        return "" if same else "an exact cell was changed"
    if form == "set":
        uniform = entry["design"]["name"] == "uniform-decoys"
        return "" if truth in cell or (uniform and entry["design"]["p"] < 1) else "a set without the truth"
    if form == "member":
        return "" if truth in {row[name] or MISSING for row in rows} else "members without the truth"
    if form == "node":
        leaves = under.get(cell or MISSING, frozenset())
        covers = base(entry, truth) in leaves or any(_same_number(leaf, truth) for leaf in leaves)
        return "" if covers else "a general value that does not cover the truth"
    return "" if truth in read.groups[name][int(cell)] else "a group without the truth"


def _spelled(entry: dict[str, Any], truth: str) -> str:
    """A whole number as releases write it: a table may say 1e5."""
    return text(float(truth)) if entry["integers"] and _same_number(truth, truth) else truth


def _same_number(cell: str | None, truth: str) -> bool:
    try:
        return cell is not None and float(cell) == float(truth)
    except ValueError:
        return False


def _as_often(read: Read, told: dict[str, dict[int, str]], kept: list[int]) -> list[str]:
    """Without a row number: every value is possible at least as often as it is true, exact columns agree."""
    out = []
    missing = read.manifest["suppressed"]
    for name, truths in told.items():
        entry = read.entries[name]
        form = entry["form"]
        true = Counter(base(entry, _spelled(entry, one)) if form == "node" else one for one in truths.values())
        if form in ("exact", "open") and not missing and not read.is_shuffled:
            found = Counter(MISSING if row[name] is None else row[name] for row in read.rows)
            if found != true and not _range(entry) and entry["kind"] != "number" and form != "open":
                out.append(f"{name}: exact cells differ from the original's")
        if form in ("node", "set") and not (form == "set" and entry["design"].get("p", 1) < 1):
            under = covered(entry) if form == "node" else {}
            possible: Counter[str] = Counter()
            for row in read.rows:
                possible.update(under[row[name] or MISSING] if form == "node" else row[name])
            if any(possible[value] + missing < times for value, times in true.items()):
                out.append(f"{name}: a value is true more often than possible")
        if form == "group" and not missing:
            listed: Counter[str] = Counter()
            for held in read.groups[name].values():
                listed.update(held)
            if listed != true:
                out.append(f"{name}: the groups do not hold the original's values")
    return out


def _told_beside(world: World, read: Read, directory: Path) -> list[str]:
    """Values of generalised columns that the manifest lists or the page names, but no cell shows or policy declares."""
    page = (directory / "README.md").read_text(encoding="utf-8")
    out = []
    for name, entry in read.entries.items():
        if entry["form"] != "node":
            continue
        declared = "\0".join([*texts_in(world.attributes[name]), *world.files.values()])
        listed = set(texts_in(entry)) - ENDS
        whole = {int(one) for one in listed if WHOLE.fullmatch(one)}
        if whole and len(whole) == max(whole) - min(whole) + 1:  # all of a range, whoever has which
            listed -= set(map(str, whole))
        cells = "\0".join({str(row[name]) for row in read.rows})
        exact = {text(value) for value in world.columns[name] if not is_missing(value)} - {MISSING, OTHER}
        told = [one for one in exact if one in listed or (len(one) >= LONG and one in page)]
        if any(one not in cells and one not in declared for one in told):
            out.append(f"{name}: exact values stand beside the cells")
    return out


ENDS = {"-inf", "inf"}
"""Where every scale of numbers ends, whoever has such a value."""
WHOLE = re.compile(r"0|-?[1-9]\d*")
LONG = 12
"""Characters from which on a text is not found by chance."""


def texts_in(part: Any) -> list[str]:
    """Every text somewhere in a piece of JSON."""
    if isinstance(part, dict):
        return [found for item in part.values() for found in texts_in(item)]
    if isinstance(part, list):
        return [found for item in part for found in texts_in(item)]
    return [part] if isinstance(part, str) else []


def _secrets(world: World, read: Read, directory: Path) -> list[str]:
    """Identifiers and their names stand nowhere; neither do names of the holder's files."""
    parts = []
    for path in sorted(directory.rglob("*")):
        parts.append(path.name)
        if path.suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                parts += [str(file.schema_arrow), str(file.metadata.metadata), str(file.read().to_pydict())]
        elif path.is_file():
            parts.append(path.read_bytes().decode("utf-8"))
    everything = "\0".join(parts)
    out = []
    for name, attribute in world.attributes.items():
        hidden = world.columns[name] if attribute["role"] == "identifier" and name != "row" else []
        if any(value is not None and str(value) in everything for value in hidden):
            out.append("an identifier is published")
    names = ("holder-table", "secret.key", *world.files)
    out += [f"the name {name} is published" for name in names if name in everything]
    out += _told_beside(world, read, directory)
    files = {path.name for path in directory.iterdir()}
    known = {"README.md", "datapackage.json", "data.csv", "data.parquet"}
    if any(f not in known and not f.startswith(("groups-", "knowledge-")) for f in files):
        out.append("a file that no release has")
    return out
