"""The directory of a release: a Frictionless Data Package, written aside and renamed into place.

`datapackage.json` describes the data for any tool that knows the standard; its `noren` block is the manifest. The
checksums find accidents and careless edits. They are no signature: whoever can rewrite the data can rewrite them too,
so a holder who fears that publishes the checksum of datapackage.json through another channel.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from noren.cells import CellBatch, GroupTable
from noren.errors import ReleaseError
from noren.io.csv import contains_byte
from noren.release.bounds import check_size
from noren.release.convert import ESCAPE, FORMULA, guarded_text
from noren.release.groups import COLUMNS, read_groups, write_groups
from noren.release.knowledge import knowledge_numbers, knowledge_path, numbered, read_knowledge, write_knowledge
from noren.release.manifest import ColumnEntry, Manifest
from noren.release.store import CsvStore, ParquetStore, Store, write_data
from noren.schema.knowledge import Knowledge

DESCRIPTOR = "datapackage.json"
MOST_BYTES = 1 << 28
"""Size of the largest descriptor that is read: 256 MB."""
FileFormat = Literal["parquet", "csv"]
MEDIA = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}


def refuse_existing(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise ReleaseError(
            f"{target} exists already.", hint="A release never overwrites: choose another name, or remove it first."
        )


@contextmanager
def aside(target: Path) -> Iterator[Path]:
    """A private directory beside the target that becomes it at the end, or vanishes with the parents made for it.

    The renaming is the last thing that touches a file: whatever interrupts it, there is a whole release or none.
    """
    refuse_existing(target)
    new_parents = [parent for parent in target.parents if not parent.exists()]
    work: Path | None = None
    try:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", suffix=".part", dir=target.parent))
        except OSError as error:
            raise ReleaseError(
                f"{target} cannot be made: {error.strerror}.", hint="Name a place where you may make a directory."
            ) from None
        yield work
        refuse_existing(target)
        os.chmod(work, 0o755)
        os.rename(work, target)
    except BaseException:
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)
        for parent in new_parents:
            with suppress(OSError):
                parent.rmdir()
        raise


def checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def manifest_digest(block: dict[str, Any]) -> str:
    """Checksum of the manifest's content, whatever its spacing."""
    text = json.dumps(block, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write_cells(
    directory: Path, columns: Iterable[ColumnEntry], batches: Iterable[CellBatch], file_format: FileFormat
) -> tuple[Path, int]:
    """Write the data file. Returns its path and the number of records."""
    if file_format not in MEDIA:
        raise ReleaseError(f"unknown format {file_format!r}.", hint=f"Known: {', '.join(MEDIA)}.")
    path = directory / f"data.{file_format}"
    rows = write_data(path, list(columns), batches)
    return path, rows


def store_for(path: Path, escaped: bool = True) -> Store:
    return ParquetStore(path) if path.suffix == ".parquet" else CsvStore(path, escaped)


def write_tables(
    directory: Path,
    columns: Sequence[ColumnEntry],
    tables: Mapping[str, GroupTable],
    knowledge: Mapping[str, Knowledge],
    file_format: str,
) -> None:
    """Write the group table of every column that has one, and all knowledge tables."""
    for number, entry in grouped(columns):
        write_groups(directory / f"groups-{number}.{file_format}", entry, tables[entry.name])
    write_knowledge(directory, columns, knowledge, f".{file_format}")


def read_tables(
    directory: Path, columns: Iterable[ColumnEntry], suffix: str, escaped: bool = True
) -> dict[str, GroupTable]:
    """The group tables that stand in the directory."""
    return {entry.name: read_groups(directory / f"groups-{n}{suffix}", entry, escaped) for n, entry in grouped(columns)}


def grouped(columns: Iterable[ColumnEntry]) -> list[tuple[int, ColumnEntry]]:
    """The columns that publish group ids, numbered as their files are."""
    return list(enumerate((entry for entry in columns if entry.form == "group"), 1))


def write_descriptor(directory: Path, data: Path, manifest: Manifest) -> None:
    """Write datapackage.json for the data file and the group tables that stand in the directory."""
    block = _standard(manifest.model_dump(mode="json"))
    title = guarded_text if data.suffix == ".csv" else str
    schema: dict[str, Any] = {"fields": [_field(entry) | {"name": title(entry.name)} for entry in manifest.columns]}
    tables = grouped(manifest.columns)
    if tables:
        schema["foreignKeys"] = [
            {"fields": [title(entry.name)], "reference": {"resource": f"groups-{number}", "fields": ["group"]}}
            for number, entry in tables
        ]
    resources = [_resource("data", data, schema)]
    for number, entry in tables:
        kinds = ("integer", "any" if entry.kind == "string" else entry.kind, "integer")
        fields = [{"name": name, "type": kind} for name, kind in zip(COLUMNS, kinds, strict=True)]
        path = directory / f"groups-{number}{data.suffix}"
        described = {"title": f"Which values of {entry.name} each group holds"}
        resources.append(_resource(path.stem, path, {"fields": fields}) | described)
    for number, entries in numbered(manifest.columns).items():
        path = knowledge_path(directory, number, data.suffix)
        numbers = knowledge_numbers(path)
        fields = [{"name": "label", "type": "string"}, {"name": "term", "type": "string"}]
        fields += [{"name": name, "type": "number"} for name in numbers]
        described = {"title": f"What links the terms of {', '.join(entry.name for entry in entries)} to labels"}
        resources.append(_resource(path.stem, path, {"fields": fields}) | described)
    package = {
        "profile": "data-package",
        "name": "noren-release",
        "title": manifest.title or "Release",
        "resources": resources,
        "noren": {**block, "sha256": manifest_digest(block)},
    }
    path = directory / DESCRIPTOR
    path.write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _standard(value: Any) -> Any:
    """JSON has no word for an infinite edge; a text says it, and is read as the number."""
    if isinstance(value, dict):
        return {key: _standard(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_standard(one) for one in value]
    infinite = isinstance(value, float) and not isfinite(value)
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[repr(value)] if infinite else value


def _resource(name: str, path: Path, schema: dict[str, Any]) -> dict[str, Any]:
    if path.suffix == ".csv" and contains_byte(path, ESCAPE.encode()):  # without one nothing was escaped
        schema = schema | {"escape": {"before": list(ESCAPE + FORMULA), "prefix": ESCAPE}}
    return {
        "name": name,
        "path": path.name,
        "format": path.suffix[1:],
        "mediatype": MEDIA[path.suffix[1:]],
        "encoding": "utf-8",
        "bytes": path.stat().st_size,
        "hash": f"sha256:{checksum(path)}",
        "schema": schema,
    }


def _field(entry: ColumnEntry) -> dict[str, Any]:
    field: dict[str, Any] = {"name": entry.name}
    if entry.form == "set":
        assert entry.design is not None
        field["type"] = "array"
        field["constraints"] = {"minLength": entry.design.eta, "maxLength": entry.design.eta, "required": True}
        field["description"] = f"A set of {entry.design.eta} possible values, in domain order."
        field["arrayItem"] = {"type": entry.kind}
    elif entry.form == "node":
        field["type"] = "string"
        field["description"] = "A general value; the manifest tells which values lie under it."
    elif entry.form == "group":
        field["type"] = "integer"
        field["description"] = "A group; its own table tells which values it holds."
    elif entry.form == "terms":
        field["type"] = "array"
        field["description"] = "A set of terms; terms may have been left out to protect people."
        field["arrayItem"] = {"type": "string"}
    else:
        field["type"] = "any" if entry.form == "open" else entry.kind
    return field


def read_package(directory: Path) -> tuple[Manifest, Store, dict[str, GroupTable], dict[str, Knowledge]]:
    """The manifest, cells, group and knowledge tables of a release directory, after all checks."""
    descriptor = directory / DESCRIPTOR
    if not directory.is_dir() or descriptor.is_symlink() or not descriptor.is_file():
        raise ReleaseError(
            f"{directory}: no release here ({DESCRIPTOR} is missing).", hint="Name the directory of a release."
        )
    try:
        package = _parsed(descriptor)
        block = dict(package["noren"])
        stated = block.pop("sha256")
        files = [(item["path"], item["bytes"], item["hash"]) for item in package["resources"]]
        escaped = any("escape" in item.get("schema", {}) for item in package["resources"])
        name = files[0][0]
        digest = manifest_digest(block)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise _tampered(descriptor, "it is not the descriptor of a release") from None
    if stated != digest:
        raise _tampered(descriptor, "its manifest does not match its checksum")
    if name not in ("data.parquet", "data.csv"):
        raise _tampered(descriptor, "it names a data file that no release has")
    data = directory / name
    try:
        manifest = Manifest.model_validate(block)
        names = [name, *(f"groups-{number}{data.suffix}" for number, _ in grouped(manifest.columns))]
        names += [knowledge_path(directory, n, data.suffix).name for n in numbered(manifest.columns)]
        if [path for path, _, _ in files] != names:
            raise _tampered(descriptor, "it names a data file that no release has")
        for path, size, stated in files:
            _check_file(directory, path, size, stated)
            check_size(directory / path, manifest)
        tables = read_tables(directory, manifest.columns, data.suffix, escaped)
        knowledge = read_knowledge(directory, manifest.columns, data.suffix, escaped)
        return manifest, store_for(data, escaped), tables, knowledge
    except ValidationError as error:
        if block.get("format") != 1:
            raise ReleaseError(
                f"{descriptor}: written in format {str(block.get('format'))[:20]}, which this version cannot read.",
                hint="Install the version of noren that wrote it, or a newer one.",
            ) from None
        raise _tampered(descriptor, f"{error.error_count()} of its fields are not valid") from None
    except RecursionError:
        raise _tampered(descriptor, "it is not the descriptor of a release") from None


def _parsed(descriptor: Path) -> Any:
    """The descriptor as JSON, and as nothing that only looks like it: other readers must see what this one sees."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key stands twice")
        return found

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")

    with descriptor.open("rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ValueError("too large for a descriptor")
    package = json.loads(raw.decode("utf-8"), object_pairs_hook=once, parse_constant=refuse)
    json.dumps(package, ensure_ascii=False).encode("utf-8")  # lone halves of characters are no text
    return package


def _check_file(directory: Path, name: str, size: Any, digest: Any) -> None:
    path = directory / name
    if path.is_symlink() or not path.is_file():
        raise ReleaseError(f"{directory}: {name} is missing.", hint="The copy is incomplete: ask for it again.")
    if path.stat().st_size != size or digest != f"sha256:{checksum(path)}":
        raise _tampered(path, "its checksum differs from the descriptor's")


def _tampered(path: Path, why: str) -> ReleaseError:
    return ReleaseError(f"{path}: changed or damaged: {why}.", hint="Do not use it; ask the holder for it again.")
