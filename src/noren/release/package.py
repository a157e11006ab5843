"""The directory of a release: a Frictionless Data Package, written under a temporary name and renamed.

`datapackage.json` describes the data for any tool that knows the standard; its `noren` block is the manifest. The
checksums find accidents and careless edits. Whoever can rewrite the data can rewrite them too: a holder who fears that
signs the release (`signature.py`), or publishes the checksum of datapackage.json through another channel.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from noren import __version__
from noren.errors import DataError, ReleaseError
from noren.files import DESCRIPTOR, keep_out, publish_directory, same_as, sync, sync_directory
from noren.release.closed import (
    check_size,
    columns_of,
    demand_columns,
    demand_descriptor,
    demand_files,
    demand_lines,
    demand_order,
    demand_pages,
    demand_written,
    unlike_written,
)
from noren.release.manifest import FORMAT, Manifest, early_order, known_format, upgrade_manifest
from noren.release.readme import README, code, readme
from noren.release.set_tally import SetTally
from noren.release.signature import SIGNATURE, read_signature, write_signature
from noren.release.store import (
    Part,
    Store,
    are_known,
    checksum,
    list_files,
    side_columns,
    side_fields,
    sides,
    store_for,
    title_of,
    titles_of,
    with_sides,
    write_data,
)
from noren.secret.signing import SigningKey
from noren.sources.csv import contains_byte
from noren.sources.place import Place, Spot
from noren.statements import CellBatch, SetStatement, Statement
from noren.statements.texts import ESCAPE, FORMULA


def demand_used(files: Sequence[Spot], columns: Sequence[Statement]) -> None:
    """Refuse a release that lists a set that no cell shows."""
    numbered = [column for column in columns if isinstance(column, SetStatement) and column.sets is not None]
    if not numbered:
        return
    seen = {column.name: np.zeros(column.sets or 0, bool) for column in numbered}
    for batch in store_for(files[0], True, *files[1:]).batches(numbered):
        for name, found in seen.items():
            found[batch[name].ids] = True  # type: ignore[attr-defined]
    unused = [name for name, found in seen.items() if not found.all()]
    if unused:
        raise ReleaseError.distrust(
            f"{files[0].parent}: not as published: it lists sets of {unused[0]!r} that no cell shows."
        )


MOST_BYTES = 1 << 28
"""Size of the largest descriptor that is read: 256 MB."""
FileFormat = Literal["parquet", "csv"]
MEDIA = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}


Recording = Callable[[Callable[[], bool]], AbstractContextManager[None]]
"""What surrounds the moment in which a release appears. It is told how to see whether the release is there."""


def record_nothing(_: Callable[[], bool]) -> AbstractContextManager[None]:
    """Record nothing about a release."""
    return nullcontext()


@contextmanager
def aside(target: Path, recording: Recording = record_nothing) -> Iterator[Path]:
    """Make a private directory beside the target, which becomes the target at the end or is removed.

    The renaming is the last thing that touches a file, and what it names is on the disk before: whatever interrupts
    it, there is a whole release or none.
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
                f"{target} cannot be made: {error.strerror}.", hint="Choose a place where you may create a directory."
            ) from None
        yield work
        sync_directory(work)
        for parent in new_parents:
            sync(parent.parent)
        published = partial(same_as, work.stat(), target)
        with recording(published):
            refuse_existing(target)
            os.chmod(work, 0o755)
            publish_directory(work, target, published)
    except BaseException:
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)
        for parent in new_parents:
            with suppress(OSError):
                parent.rmdir()
        raise


# ---------------------------------------------------------------------- in a directory or in a store
#
# A directory is renamed at the end. Stores have no such step for folders, so there the files are named one by one and
# the descriptor comes last: it is what makes a release, and without it nothing opens. A task that is late, after
# another did its work, writes beside the release and never into it.


@dataclass
class Staged:
    """A release in preparation: small files are in `work`, data files there or, by a distributed engine, in `cells`."""

    work: Path
    cells: Spot
    data: dict[str, Spot] = field(default_factory=dict)
    """Every data file, by the name that it will have."""

    def holds(self, files: Sequence[Spot], parts: Sequence[Part]) -> Path:
        """Set the data files; return the name of the first as if it were in `work`."""
        names = [part.name for part in parts] or [file.name for file in files]
        self.data = dict(zip(names, files, strict=True))
        return self.work / names[0]


@contextmanager
def stage_release(target: Spot, recording: Recording = record_nothing) -> Iterator[Staged]:
    """Yield a place to work, which becomes the target at the end, inside `recording`, or is removed."""
    if isinstance(target, Path):
        with aside(target, recording) as work:
            yield Staged(work, work)
        return
    refuse_existing(target)
    there = target.with_name(f"_{target.name}-{secrets.token_hex(8)}.part")
    placed: list[Place] = []
    begun = False
    try:
        with tempfile.TemporaryDirectory(prefix="noren-") as folder:
            there.mkdir()
            made = Staged(Path(folder), there)
            yield made
            _refuse_taken(target)
            begun = True
            target.mkdir()
            _place(made, target, placed)
            with recording((target / DESCRIPTOR).is_file):
                _publish(made, target)
    except BaseException:
        with suppress(ReleaseError):
            for file in reversed(placed):
                file.unlink()
            there.remove()
            if begun and not any(target.iterdir()):
                target.remove()
        raise


def refuse_existing(target: Spot) -> None:
    """Refuse a target that exists or is inside another release."""
    if isinstance(target, Path):
        keep_out(target.parent)
        if target.exists() or target.is_symlink():
            raise _existing_error(target)
        return
    if not target.name:
        raise ReleaseError(f"{target}: a release needs a folder inside the store.", hint="Give a folder in the store.")
    if any((one / DESCRIPTOR).is_file() for one in target.parents):
        raise DataError(f"{target} lies inside a release.", hint="Choose a path outside the release.")
    _refuse_taken(target)


def _refuse_taken(target: Place) -> None:
    if target.is_file() or any(target.iterdir()) or (not target.is_flat and target.exists()):
        raise _existing_error(target)


def _existing_error(target: Spot) -> ReleaseError:
    return ReleaseError(
        f"{target} exists already.", hint="A release never overwrites: choose another name, or remove it first."
    )


def _place(made: Staged, target: Place, placed: list[Place]) -> None:
    """Move everything except the descriptor to its place, and note it for removal after an error."""
    for name, file in made.data.items():
        size = file.stat().st_size
        placed.append(target / name)
        if isinstance(file, Place):
            file.move(placed[-1])
        else:
            placed[-1].put(file)
        if placed[-1].stat().st_size != size:
            raise ReleaseError(f"{placed[-1]}: the copy is incomplete, so nothing is published.")
    assert isinstance(made.cells, Place)
    made.cells.remove()
    for path in sorted(made.work.iterdir()):
        if path.is_file() and path.name not in (*made.data, DESCRIPTOR):
            placed.append(target / path.name)
            placed[-1].put(path)


def _publish(made: Staged, target: Place) -> None:
    """Write the descriptor, which completes the release."""
    try:
        (target / DESCRIPTOR).put(made.work / DESCRIPTOR)
    except BaseException:
        (target / DESCRIPTOR).unlink()
        raise


# ---------------------------------------------------------------------- what is written


def manifest_digest(block: dict[str, Any]) -> str:
    """Return the checksum of the manifest's content, whatever its spacing."""
    text = json.dumps(block, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write_cells(
    directory: Path,
    columns: Sequence[Statement],
    batches: Iterable[CellBatch],
    file_format: FileFormat,
    tally: SetTally | None = None,
) -> tuple[Path, int, tuple[Statement, ...]]:
    """Write the data file; return its path, the number of rows, and the columns as written.

    A tally, which must have seen all cells when the first batch comes, decides which sets are kept once; a CSV file
    holds lists.
    """
    if file_format not in MEDIA:
        raise ReleaseError(f"unknown format {file_format!r}.", hint=f"Known: {', '.join(MEDIA)}.")
    path = directory / f"data.{file_format}"
    if tally is None or file_format == "csv":
        plain = tuple(column.written_out() for column in columns)
        return path, write_data(path, plain, batches), plain
    batches = iter(batches)
    first = list(islice(batches, 1))
    written = tally.columns()
    return path, write_data(path, written, map(tally.renumber_sets, chain(first, batches))), written


def write_descriptor(
    directory: Path, data: Path, manifest: Manifest, sign: SigningKey | None = None, parts: Sequence[Part] = ()
) -> None:
    """Write datapackage.json and README.md for the data file and side tables, and with a key the signature. `parts` are
    all data files, if there are several."""
    page = directory / README
    page.write_text(page_of(manifest, data, sign is not None), encoding="utf-8")
    package = describe_package(directory, data, manifest, parts=parts)
    path = directory / DESCRIPTOR
    path.write_text(_text(package), encoding="utf-8")
    if sign is not None:
        write_signature(path, sign)


def _text(package: Mapping[str, Any]) -> str:
    return json.dumps(package, ensure_ascii=False, indent=1) + "\n"


def page_of(manifest: Manifest, data: Spot, signed: bool, titles: Mapping[str, str] | None = None) -> str:
    """Return the README; `titles` are names of columns as early versions wrote them."""
    titles = titles_of(data, manifest.columns) if titles is None else titles
    beside = [(f"{side}{data.suffix}", _beside(sharing)) for side, sharing in sides(manifest.columns).items()]
    return readme(manifest, title_of(data), beside, titles, signed)


def describe_package(
    directory: Spot,
    data: Spot,
    manifest: Manifest,
    titles: Mapping[str, str] | None = None,
    parts: Sequence[Part] = (),
) -> dict[str, Any]:
    """Return the descriptor of a release whose other files are in the directory; `titles` are names of columns as early
    versions wrote them."""
    titles = titles_of(data, manifest.columns) if titles is None else titles
    schema: dict[str, Any] = {"fields": [c.field() | {"name": titles[c.name]} for c in manifest.columns]}
    keys = [
        {"fields": [titles[column.name]], "reference": {"resource": column.side, "fields": [column.side_key]}}
        for column in manifest.columns
        if column.side is not None and column.side_key is not None
    ]
    resources = [_resource("data", data, schema | ({"foreignKeys": keys} if keys else {}), parts)]
    for name, sharing in sides(manifest.columns).items():
        path = directory / f"{name}{data.suffix}"
        described = {"title": sharing[0].side_title([column.name for column in sharing])}
        resources.append(_resource(name, path, {"fields": side_fields(sharing)}) | described)
    page = directory / README
    told = {"path": README, "bytes": page.stat().st_size, "hash": f"sha256:{checksum(page)}"} if page.exists() else None
    return {
        "profile": "data-package",
        "name": "noren-release",
        "title": manifest.title or "Release",
        "resources": resources,
        "readme": told,
        "noren": manifest_block(manifest),
    }


def manifest_block(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest with its checksum."""
    block = _standard(manifest.model_dump(mode="json"))
    return {**block, "sha256": manifest_digest(block)}


def manifest_of(name: str, block: Any) -> Manifest:
    """Read what `manifest_block` wrote, and check its checksum."""
    if not isinstance(block, dict) or "sha256" not in block:
        raise _damage_error(Path(name), "it is not the manifest of a release")
    stated = block.pop("sha256")
    manifest = _manifest(Path(name), block)
    if manifest_digest(_standard(manifest.model_dump(mode="json"))) != stated:  # a base may write numbers otherwise
        raise _damage_error(Path(name), "its manifest does not match its checksum")
    return manifest


def demand_closed(directory: Spot, read: Manifest | None = None) -> list[str]:
    """Refuse a release with a file, column, field or word that its manifest does not describe.

    `read` is the manifest of a release that was opened a moment ago. Returned are the files whose bytes only the
    version that wrote them can compare.
    """
    package = _parse_descriptor(directory / DESCRIPTOR)
    manifest = read_package(directory)[0] if read is None else read
    files = [directory / name for name, _, _ in list_files(package["resources"][0])]
    data = files[0]
    beside = {f"{stem}{data.suffix}": sharing for stem, sharing in sides(manifest.columns).items()}
    same = package["noren"].get("format") == FORMAT
    titles = titles_of(data, manifest.columns)
    if not same:  # early versions titled groups as values
        titles = {name: title if title in columns_of(data) else name for name, title in titles.items()}
    parts = [Part.of(path) for path in files] if "parts" in package["resources"][0] else []
    tables = {path: [titles[column.name] for column in manifest.columns] for path in files}
    tables |= {directory / name: [field["name"] for field in side_fields(own)] for name, own in beside.items()}
    page = [README] if "readme" in package else []
    demand_files(directory, [DESCRIPTOR, SIGNATURE, *page, *(path.name for path in tables)])
    for path, names in tables.items():
        demand_columns(path, names)
    expected = describe_package(directory, data, manifest, titles, parts)
    if not same:  # the manifest was brought forward; its own fields were checked when it was read
        demand_order(directory / DESCRIPTOR, early_order(package["noren"]), expected["noren"])
        expected["noren"] = package["noren"]
    demand_descriptor(directory / DESCRIPTOR, package, expected, same)
    if page:
        signed = (directory / SIGNATURE).exists()
        found = (directory / README).read_bytes()  # line ends too
        if found not in {page_of(manifest, data, one, titles).encode("utf-8") for one in {False, signed}}:
            raise _damage_error(directory / README, "it differs from the manifest")
    for path in tables:
        demand_pages(path)
    for name, own in beside.items() if same else ():
        if own[0].terms is not None:  # tables of groups and of sets are read in one order alone
            demand_lines(directory / name, side_columns(own))
    if same and isinstance(directory, Path):  # elsewhere nothing is CSV
        types = {directory / n: {c: cells.type for c, cells in side_columns(o).items()} for n, o in beside.items()}
        demand_written(directory / data.name, manifest.columns, types)
    demand_used(files, manifest.columns)
    if (directory / DESCRIPTOR).read_bytes() != _text(package).encode("utf-8"):
        raise _damage_error(directory / DESCRIPTOR, "its spaces and line breaks differ from those of a release")
    if data.suffix == ".csv":
        return []
    if not same or manifest.noren != __version__:
        return [path.name for path in tables]
    plain = {directory / name: side_columns(own) for name, own in beside.items() if own[0].terms is None}
    return [path.name for path in unlike_written(files, manifest.columns, plain)]


def _beside(sharing: Sequence[Statement]) -> str:
    """Describe a side table, with column names quoted."""
    return sharing[0].side_words(", ".join(code(column.name) for column in sharing))


def _standard(value: Any) -> Any:
    """Return a value for JSON, which has no infinite numbers; they become texts."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return _spell_infinite(value)
    return value  # which is nearly always so, and there may be a hundred thousand general values


def _spell_infinite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _spell_infinite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_spell_infinite(one) for one in value]
    infinite = isinstance(value, float) and not isfinite(value)
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[repr(value)] if infinite else value


def _resource(name: str, path: Spot, schema: dict[str, Any], parts: Sequence[Part] = ()) -> dict[str, Any]:
    if parts:
        return {
            "name": name,
            "path": [part.name for part in parts],
            "format": path.suffix[1:],
            "mediatype": MEDIA[path.suffix[1:]],
            "encoding": "utf-8",
            "bytes": sum(part.bytes for part in parts),
            "parts": [part.entry for part in parts],
            "schema": schema,
        }
    if (
        isinstance(path, Path) and path.suffix == ".csv" and contains_byte(path, ESCAPE.encode())
    ):  # without one nothing was escaped
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


def read_package(directory: Spot) -> tuple[Manifest, Store]:
    """Return the manifest (with side tables) and the cells of a release directory, after all checks."""
    descriptor = directory / DESCRIPTOR
    if not directory.is_dir() or descriptor.is_symlink() or not descriptor.is_file():
        raise ReleaseError(
            f"{directory}: this is not a release ({DESCRIPTOR} is missing).", hint="Give the directory of a release."
        )
    try:
        package = _parse_descriptor(descriptor)
        block = dict(package["noren"])
        stated = block.pop("sha256")
        cells, known = list_files(package["resources"][0]), are_known(package["resources"][0])
        beside_data = [(item["path"], item["bytes"], item["hash"]) for item in package["resources"][1:]]
        escaped = any("escape" in item.get("schema", {}) for item in package["resources"])
        page = package.get("readme")
        beside = [] if page is None else [(page["path"], page["bytes"], page["hash"])]
        digest = manifest_digest(block)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise _damage_error(descriptor, "it is not the descriptor of a release") from None
    read_signature(descriptor)
    if stated != digest:
        raise _damage_error(descriptor, "its manifest does not match its checksum")
    if not known:
        raise _damage_error(descriptor, "it lists a data file that no release has")
    manifest = _manifest(descriptor, block)
    data = directory / cells[0][0]
    if data.suffix == ".csv" and not isinstance(directory, Path):
        raise ReleaseError(f"{data}: CSV files are read from a directory.", hint="Copy the release to a disk first.")
    if [path for path, _, _ in beside_data] != [f"{side}{data.suffix}" for side in sides(manifest.columns)]:
        raise _damage_error(descriptor, "it lists a data file that no release has")
    if any(path != README for path, _, _ in beside):
        raise _damage_error(descriptor, "it lists a file that no release has")
    for path, size, stated in beside:
        _check_file(directory, path, size, stated)
    for path, size, stated in [*cells, *beside_data]:
        _check_file(directory, path, size, stated)
        check_size(directory / path, manifest)
    columns = with_sides(directory, manifest.columns, data.suffix, escaped)
    more = [directory / path for path, _, _ in cells[1:]]
    return manifest.model_copy(update={"columns": tuple(columns)}), store_for(data, escaped, *more)


def _manifest(descriptor: Spot, block: dict[str, Any]) -> Manifest:
    if not known_format(block):
        raise ReleaseError(
            f"{descriptor}: its format is {str(block.get('format'))[:20]}, which this version cannot read.",
            hint="Install the version of noren that wrote it, or a newer one.",
        )
    try:
        return Manifest.model_validate(upgrade_manifest(block))
    except ValidationError as error:
        raise _damage_error(descriptor, f"{error.error_count()} of its fields are not valid") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _damage_error(descriptor, "it is not the descriptor of a release") from None


def _parse_descriptor(descriptor: Spot) -> Any:
    """Parse the descriptor as strict JSON, so that all readers read the same."""

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


def _check_file(directory: Spot, name: str, size: Any, digest: Any) -> None:
    path = directory / name
    if path.is_symlink() or not path.is_file():
        raise ReleaseError(
            f"{directory}: {name} is missing.", hint="Ask for the release again; this copy is incomplete."
        )
    if path.stat().st_size != size or digest != f"sha256:{checksum(path)}":
        raise _damage_error(path, "its checksum differs from the descriptor's")


def _damage_error(path: Spot, why: str) -> ReleaseError:
    return ReleaseError.distrust(f"{path}: changed or damaged: {why}.")
