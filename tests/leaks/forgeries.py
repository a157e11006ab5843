"""What a forger does to a release, with the page for people written again and every checksum fitted.

Every forgery stands in `FORGERIES` with the release that it starts from and what `verify` says: alone, with the policy,
with the original, with both. The forger has no key: with the signer asked for, every forgery is refused.
"""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import noren as nr
from noren.errors import NorenError
from tests.leaks.forging import (
    Block,
    Change,
    N,
    added,
    block,
    column,
    package,
    refit,
    reordered,
    replace_columns,
    stretched,
    table,
    text,
    twins,
)
from tests.leaks.test_closed_world import UNREAD, mended, with_footer


@dataclass(frozen=True)
class Forgery:
    """Which release is changed and how, and what `verify` says of it."""

    base: str
    change: Change
    alone: str = "refused"
    policy: str = "refused"
    original: str = "refused"
    both: str = "refused"


BY_POLICY = ("named", "fails", "named", "fails")
"""What a release declares only its policy can confirm."""


def _one_more(old: Block) -> None:
    old["values"] = [*old["values"], "N17 has HIV"]


def _one_more_in_sets(old: Block) -> None:
    old["values"] = [*old["values"], "N17 has HIV"]
    old["design"]["d"] += 1


def _declared_more(old: Block) -> None:
    _one_more(old)
    old["domain_source"] = "policy"


def _leaf(old: Block) -> None:
    levels = old["hierarchy"]
    for level, label in zip(levels, ("N17 has HIV", "South", "*"), strict=True):
        level.append(label)
    old["values"] = levels[0]


def _renamed_node(release: Path) -> None:
    """A general value of the hierarchy that cells show under another name."""

    def change(old: Block) -> None:
        old["hierarchy"][1] = ["Anna Miller" if label == "South" else label for label in old["hierarchy"][1]]

    _in_cells(release, "town", "South", "Anna Miller")
    column("town", change)(release)


def _in_cells(release: Path, name: str, old: str, new: str) -> None:
    path = release / "data.parquet"
    made = pq.read_table(path)
    cells = pa.array([one.replace(old, new) for one in made.column(name).to_pylist()])
    made = made.set_column(made.column_names.index(name), name, cells)
    pq.write_table(made, path, compression="zstd", store_schema=False)
    mended(release)


def _moved_leaf(old: Block) -> None:
    old["hierarchy"][1] = [*old["hierarchy"][1][:3], "South", *old["hierarchy"][1][4:]]


def _hierarchy(old: Block) -> None:
    old["hierarchy"] = [old["values"], ["Anna Miller has HIV"] * len(old["values"])]


def _unused_node(old: Block) -> None:
    old["nodes"] = sorted([*old["nodes"], [str(old["integers"][0]), [[0, 1]]]], key=lambda node: node[1])


def _reversed_values(old: Block) -> None:
    old["values"] = old["values"][::-1]


def _other_bins(release: Path) -> None:
    def change(old: Block) -> None:
        old["edges"] = [20.0, 40.0, 60.0, 81.25]
        old["values"] = ["[20, 40)", "[40, 60)", "[60, 81.25]"]
        for node in old.get("nodes", []):
            node[0] = node[0].replace("80]", "81.25]")

    _in_cells(release, "age", "80]", "81.25]")
    column("age", change)(release)


def _distances(old: Block) -> None:
    d = len(old["values"])
    old["distance"] = [[0.0 if i == j else 0.17330000000000001 for j in range(d)] for i in range(d)]


def _doubled_lines(made: pa.Table) -> pa.Table:
    return pa.concat_tables([made, made])


def _as_texts(made: pa.Table) -> pa.Table:
    return made.set_column(2, "pair_weight", pa.array([f"000{one}" for one in made.column(2).to_pylist()]))


def _other_weight(made: pa.Table) -> pa.Table:
    cells = made.column(2).to_pylist()
    return made.set_column(2, "pair_weight", pa.array([0.1733, *cells[1:]]))


def _other_label(made: pa.Table) -> pa.Table:
    cells = ["Anna Miller" if one == "Gout" else one for one in made.column(0).to_pylist()]
    return made.set_column(0, "label", pa.array(cells))


def _hidden_entry(name: str, more: list[str]) -> Callable[[pa.Table], pa.Table]:
    def change(made: pa.Table) -> pa.Table:
        place = made.column_names.index(name)
        known = [*dict.fromkeys(made.column(place).to_pylist()), *more]
        codes = pa.array([known.index(cell) for cell in made.column(place).to_pylist()], pa.int32())
        return made.set_column(place, name, pa.DictionaryArray.from_arrays(codes, pa.array(known)))

    return change


def _statistics(release: Path) -> None:
    refit(release)
    path = release / "data.parquet"
    raw = path.read_bytes()
    foot = int.from_bytes(raw[-8:-4], "little") + 8
    path.write_bytes(raw[:-foot] + raw[-foot:].replace(b"Cold", b"Anna"))
    mended(release)


def _between(release: Path) -> None:
    refit(release)
    path = release / "data.parquet"
    raw = path.read_bytes()
    foot = int.from_bytes(raw[-8:-4], "little") + 8
    path.write_bytes(raw[:-foot] + b"Anna Miller, HIV" + raw[-foot:])
    mended(release)


def _remarks(release: Path) -> None:
    refit(release)
    path = release / "data.parquet"
    made = pq.read_table(path)
    with pq.ParquetWriter(path, made.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(made)
        writer.add_key_value_metadata({"note": "Anna Miller"})
    mended(release)


def _footer(what: str) -> Change:
    def apply(release: Path) -> None:
        refit(release)
        with_footer(release, UNREAD[what])

    return apply


def _directory(release: Path) -> None:
    refit(release)
    (release / "more").mkdir()


def _json(change: Callable[[str], str]) -> Change:
    return text("datapackage.json", lambda raw: change(raw.decode("utf-8")).encode("utf-8"))


def _counts(release: Path) -> None:
    """Counts of a group that are not those of its records."""
    refit(release)
    path = release / "groups-1.parquet"
    made = pq.read_table(path)
    counts = pa.array([1733, *made["count"].to_pylist()[1:]], made.schema.field("count").type)
    place = made.column_names.index("count")
    pq.write_table(made.set_column(place, "count", counts), path, compression="zstd", store_schema=False)
    mended(release)


def _unused_mean(old: Block) -> None:
    old["means"] = sorted([*old["means"], 1733.125])


def _title(release: Path) -> None:
    mended(release, lambda package: package.update(title="Anna Miller"))
    block(lambda manifest: manifest.update(title="Anna Miller"))(release)


def _exponent(release: Path) -> None:
    block(lambda manifest: manifest.update(records=float(manifest["records"])))(release)
    path = release / "datapackage.json"
    path.write_text(path.read_text(encoding="utf-8").replace(f'"records": {N}.0', '"records": 9e1'), encoding="utf-8")


def _loose(manifest: Block) -> None:
    manifest["requirements"][0]["k"] = float(manifest["requirements"][0]["k"])


def _weaker(manifest: Block) -> None:
    """The manifest claims less than the policy asks for, and the cells keep it."""
    manifest["requirements"] = manifest["requirements"][1:]
    manifest["verdicts"] = manifest["verdicts"][1:]


def verdict(**changes: Any) -> Change:
    return block(lambda manifest: manifest["verdicts"][0].update(changes))


def lines(change: Callable[[list[bytes]], list[bytes]]) -> Change:
    return text("data.csv", lambda raw: b"\n".join(change(raw.split(b"\n"))))


SAME_LOOK: dict[str, Callable[[str], str]] = {
    "a zero-width space": lambda one: one + "\u200b",
    "a no-break space behind it": lambda one: one + "\u00a0",
    "a Cyrillic letter": lambda one: one.replace("H", "\u041d"),
    "a Greek letter": lambda one: one.replace("I", "\u0399"),
    "a soft hyphen": lambda one: one[:1] + "\u00ad" + one[1:],
    "full-width letters": lambda one: "".join(chr(ord(c) + 0xFEE0) for c in one),
    "mathematical letters": lambda one: unicodedata.lookup("MATHEMATICAL BOLD CAPITAL H") + one[1:],
    "tag characters": lambda one: one + "".join(chr(0xE0000 + ord(c)) for c in "Anna"),
    "a variation selector": lambda one: one + "\ufe01",
    "a grapheme joiner": lambda one: one[:1] + "\u034f" + one[1:],
    "a turn of direction": lambda one: "\u202d" + one,
    "a small L for a capital I": lambda one: one.replace("I", "l"),
    "a digit for a letter": lambda one: one.replace("I", "1"),
    "a control character": lambda one: one + "\x01",
}

FORGERIES: dict[str, Forgery] = {
    # ------------------------------------------------------------ labels that look the same
    **{f"sets of a secret and its twin with {what}": Forgery("sets", twins(made)) for what, made in SAME_LOOK.items()},
    # ------------------------------------------------------------ domains
    "a free text among the values of the data": Forgery("classes", column("ill", _one_more)),
    "a free text among the values of sets": Forgery("sets", column("ill", _one_more_in_sets)),
    "a free text, said to be declared": Forgery("classes", column("ill", _declared_more), *BY_POLICY),
    "a free text among declared values": Forgery("declared", column("ill", _one_more), *BY_POLICY),
    "declared values in another order": Forgery("declared", column("ill", _reversed_values), *BY_POLICY),
    "values of the data in another order": Forgery("sets", column("ill", _reversed_values)),
    "a free text as a leaf of a hierarchy": Forgery("classes", column("town", _leaf), *BY_POLICY),
    "a free text as a node of a hierarchy": Forgery("classes", _renamed_node, *BY_POLICY),
    "a leaf under another node": Forgery("classes", column("town", _moved_leaf), *BY_POLICY),
    "a hierarchy with a free text that nobody declared": Forgery("classes", column("ill", _hierarchy), *BY_POLICY),
    "whole numbers that end at 1733": Forgery("classes", column("age", stretched(1733))),
    "whole numbers with an open end at 1733": Forgery(
        "classes", column("age", stretched(1733, top=1733.0, kind="string")), *BY_POLICY
    ),
    "a general value that no cell shows": Forgery("classes", column("age", _unused_node)),
    "bins that end elsewhere": Forgery("declared", _other_bins, *BY_POLICY),
    "distances that hold a number": Forgery("classes", column("ill", _distances), *BY_POLICY),
    "a mean that no cell shows": Forgery("means", column("age", _unused_mean)),
    "a count of a group that its records do not have": Forgery("groups", _counts, "fails", "fails", "fails", "fails"),
    "lines of a table of groups in another order": Forgery(
        "groups", table(lambda t: t.take(list(range(len(t)))[::-1]), "groups-1")
    ),
    "another title": Forgery("declared", _title, *BY_POLICY),
    # ------------------------------------------------------------ knowledge
    "lines of knowledge twice": Forgery("terms", table(_doubled_lines, "knowledge-1")),
    "weights of knowledge as texts": Forgery("terms", table(_as_texts, "knowledge-1")),
    "a weight of knowledge that holds a number": Forgery(
        "terms", table(_other_weight, "knowledge-1"), "named", "fails", "refused", "fails"
    ),
    "a label of knowledge that is a free text": Forgery(
        "terms", table(_other_label, "knowledge-1"), "named", "fails", "refused", "fails"
    ),
    # ------------------------------------------------------------ numbers, keys and spaces of the descriptor
    "keys of the descriptor in another order": Forgery(
        "classes", package(lambda p: p.update(noren=reordered(p["noren"])))
    ),
    "keys of a column in another order": Forgery("classes", block(replace_columns)),
    "keys of a requirement in another order": Forgery(
        "classes", block(lambda m: m.update(requirements=[reordered(one) for one in m["requirements"]]))
    ),
    "a whole number written 90.0": Forgery("classes", block(lambda m: m.update(records=float(m["records"])))),
    "a requirement's number written 3.0": Forgery("classes", block(_loose)),
    "a number with an exponent": Forgery("classes", _exponent),
    "a key twice": Forgery("classes", _json(lambda raw: raw.replace('"profile"', '"profile": "Anna", "profile"', 1))),
    "letters written as numbers": Forgery("classes", _json(lambda raw: raw.replace('"profile"', '"\\u0070rofile"', 1))),
    "spaces behind the descriptor": Forgery("classes", _json(lambda raw: raw + " \t \n")),
    "a descriptor on one line": Forgery("classes", _json(lambda raw: json.dumps(json.loads(raw), ensure_ascii=False))),
    "a byte order mark before the descriptor": Forgery("classes", _json(lambda raw: "\ufeff" + raw)),
    # ------------------------------------------------------------ words
    "a remark in the descriptor": Forgery("classes", package(lambda p: p.update(remark="Anna Miller"))),
    "a description of a field": Forgery(
        "classes", package(lambda p: p["resources"][0]["schema"]["fields"][0].update(description="Anna Miller"))
    ),
    "a field of the manifest that is none": Forgery("classes", block(lambda m: m.update(remark="Anna Miller"))),
    "a field of a column that is none": Forgery("classes", column("ill", lambda old: old.update(remark="Anna Miller"))),
    "a version that is a telephone number": Forgery("classes", block(lambda m: m.update(noren="4930.1234.5678"))),
    "a method that is none": Forgery("classes", block(lambda m: m["methods"][0].update(name="Anna Miller"))),
    "a requirement that is none": Forgery(
        "classes", block(lambda m: m["requirements"].append({"model": "Anna Miller"}))
    ),
    "a requirement with a remark": Forgery(
        "classes", block(lambda m: m["requirements"][0].update(remark="Anna Miller"))
    ),
    "a verdict on another model": Forgery("classes", verdict(model="Anna Miller")),
    "a verdict on another ground": Forgery("classes", verdict(basis="Anna Miller")),
    "a verdict with another figure": Forgery("classes", verdict(achieved=1733.0)),
    "a verdict with another figure, said to be an estimate": Forgery(
        "classes", verdict(basis="an estimate from the release", achieved=0.1733)
    ),
    "a verdict more": Forgery("classes", block(lambda m: m["verdicts"].append(m["verdicts"][0]))),
    "weaker claims than the policy's, which the cells keep": Forgery(
        "classes", block(_weaker), "named", "accepted", "named", "accepted"
    ),
    # ------------------------------------------------------------ the page for people
    "a line in the README": Forgery("classes", text("README.md", lambda raw: raw + b"\nAnna Miller has the flu.\n")),
    "spaces at line ends of the README": Forgery(
        "classes", text("README.md", lambda raw: raw.replace(b"\n", b" \n", 7))
    ),
    "other line ends in the README": Forgery("classes", text("README.md", lambda raw: raw.replace(b"\n", b"\r\n"))),
    "a byte order mark before the README": Forgery("classes", text("README.md", lambda raw: b"\xef\xbb\xbf" + raw)),
    # ------------------------------------------------------------ files
    "a file beside the others": Forgery("classes", added("original.csv")),
    "a hidden file": Forgery("classes", added(".names")),
    "a directory": Forgery("classes", _directory),
    "a table that no column needs": Forgery("classes", added("groups-1.parquet")),
    # ------------------------------------------------------------ Parquet
    "a column more": Forgery("classes", table(lambda t: t.append_column("name", pa.array(["Anna"] * len(t))))),
    "columns in another order": Forgery("classes", table(lambda t: t.select(t.column_names[::-1]))),
    "remarks in the schema": Forgery(
        "classes", table(lambda t: t.replace_schema_metadata({b"note": b"Anna"}), store_schema=True)
    ),
    "remarks in the footer": Forgery("classes", _remarks),
    "statistics that no cell has": Forgery("classes", _statistics),
    "bytes between the pages": Forgery("classes", _between),
    "bytes after the footer's last field": Forgery("classes", _footer("bytes after the last field")),
    "a field of the footer that no reader knows": Forgery("classes", _footer("a field that no reader knows")),
    "a text that stands in a dictionary alone": Forgery("classes", table(_hidden_entry("ill", ["Anna Miller"]))),
    "a text twice in a dictionary": Forgery("classes", table(_hidden_entry("ill", ["Flu"]))),
    "row groups of chosen sizes": Forgery("classes", table(lambda t: t, row_group_size=7)),
    "another compression": Forgery("classes", table(lambda t: t, compression="gzip")),
    "pages of another kind": Forgery("classes", table(lambda t: t, data_page_version="2.0")),
    "checksums of pages": Forgery("classes", table(lambda t: t, write_page_checksum=True)),
    "cells without a dictionary": Forgery("classes", table(lambda t: t, use_dictionary=False)),
    "pages that were compressed otherwise": Forgery(
        "classes", table(lambda t: t, compression_level=12), "named", "named", "named", "named"
    ),
    "row groups of a table of groups": Forgery("groups", table(lambda t: t, "groups-1", row_group_size=7)),
    # ------------------------------------------------------------ CSV
    "spaces behind the cells of a CSV file": Forgery(
        "csv", lines(lambda all: [one + b" " * bool(i and one) for i, one in enumerate(all)])
    ),
    "quotes that a CSV file has or lacks": Forgery("csv", text("data.csv", lambda raw: raw.replace(b'"Flu"', b"Flu"))),
    "blank lines in a CSV file": Forgery("csv", text("data.csv", lambda raw: raw + b"\n\n")),
    "other line ends in a CSV file": Forgery("csv", text("data.csv", lambda raw: raw.replace(b"\n", b"\r\n"))),
    "a byte order mark before a CSV file": Forgery("csv", text("data.csv", lambda raw: b"\xef\xbb\xbf" + raw)),
}


def forge(folder: Path, name: str, place: Path) -> tuple[Forgery, Path]:
    """A forged copy of a base release, without the signature that does not fit any more."""
    found = FORGERIES[name]
    release = Path(shutil.copytree(folder / found.base / "release", place / "release"))
    (release / "datapackage.sig").unlink()
    found.change(release)
    return found, release


def said(release: Path, **options: Any) -> str:
    """What `verify` says, in a word."""
    try:
        found = nr.verify(release, **options)
    except NorenError:
        return "refused"
    if not found.hold:
        return "fails"
    return "named" if found.unconfirmed else "accepted"


SAYS = {
    "refused": "refused",
    "fails": "fails",
    "named": "accepted, and named",
    "accepted": "accepted",
}
BASED_ON = {
    "classes": "classes",
    "declared": "classes, declared values",
    "sets": "sets",
    "groups": "groups",
    "means": "class means",
    "terms": "terms",
    "csv": "classes, CSV",
}


def described() -> str:
    """The forgeries that are not refused in every case, and what `verify` says of each, for docs/security.md."""
    rows = [
        "| forgery | of a release of | release only | `--policy` | `--original` | both | `--signer` |",
        "| --- " * 7 + "|",
    ]
    named = "accepted, declared values named"
    rows.append(f"| none: the control | all of these | {named} | accepted | {named} | accepted | accepted |")
    for name, one in FORGERIES.items():
        answers = (one.alone, one.policy, one.original, one.both)
        if set(answers) != {"refused"}:
            found = " | ".join(SAYS[said] for said in answers)
            rows.append(f"| {name} | {BASED_ON[one.base]} | {found} | refused |")
    return "\n".join(rows)
