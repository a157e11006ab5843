"""Checks that a release contains nothing that its manifest does not describe.

Everything in a release follows from its manifest: which files there are, which columns they have, every word of the
descriptor. So what a release should be is written down again and compared with what is there.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import struct
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from noren.errors import ReleaseError
from noren.release.manifest import Manifest
from noren.release.store import MOST_ROWS, CsvStore, ParquetStore, checksum, read_side, write_data, write_side
from noren.sources.place import Spot, readable
from noren.statements import Statement
from noren.statements.set import SETS
from noren.statements.set_cells import MOST_SETS

LAST_BYTES = 8
MAGIC = b"PAR1"
WRITER = "parquet-cpp-arrow version "
SHOWN = 3


def demand_files(directory: Spot, known: Sequence[str]) -> None:
    """Refuse a directory that contains anything except the files of the release."""
    strange = sorted(path.name for path in directory.iterdir() if path.name not in known)
    if strange:
        raise _refusal(directory, f"it has {list_names(strange)}, which its manifest does not describe")


def demand_columns(path: Spot, titles: Sequence[str]) -> None:
    """Refuse a file whose columns are not those of the manifest, in its order."""
    found = columns_of(path)
    strange = [name for name in found if name not in titles]
    if strange:
        raise _refusal(path, f"it has the column {list_names(strange)}, which its manifest does not describe")
    if found != list(titles):
        raise _refusal(path, "its columns differ from those of the manifest")


def columns_of(path: Spot) -> list[str]:
    """Return the columns of a file; refuse other metadata."""
    import pyarrow as pa

    if path.suffix == ".csv":
        try:
            with path.open(newline="", encoding="utf-8") as file:
                return next(csv.reader(file), [])
        except (UnicodeDecodeError, csv.Error):
            raise _refusal(path, "its header is not text") from None
    import pyarrow.parquet as pq

    try:
        metadata, schema = pq.read_metadata(readable(path)), pq.read_schema(readable(path))
        writer, names = metadata.created_by or "", list(schema.names)
    except (pa.ArrowException, OSError, UnicodeError):
        raise ReleaseError(
            f"{path}: cannot be read as the manifest describes it.", hint="Ask for the release again."
        ) from None
    remarks = {*(metadata.metadata or {}), *(schema.metadata or {})}
    if remarks:
        keys = sorted(key.decode("utf-8", errors="replace") for key in remarks)
        raise _refusal(path, f"its metadata hold {list_names(keys)}, which its manifest does not describe")
    if not writer.startswith(WRITER) or len(writer) > len(WRITER) + 30:
        raise _refusal(path, "its metadata name an unknown writer")
    return names


def demand_descriptor(descriptor: Spot, found: Mapping[str, Any], expected: Mapping[str, Any], same: bool) -> None:
    """Refuse a descriptor that differs from what its manifest implies; `same` if the present version wrote it."""
    if json.dumps(found) == json.dumps(expected):  # the same texts, numbers and words in the same order
        return
    for place in _differences(found, expected, "", same):
        raise _refusal(descriptor, f"{place} is not what its manifest describes")
    demand_order(descriptor, found, expected)


def demand_order(descriptor: Spot, found: Any, expected: Any) -> None:
    """Refuse keys in another order or numbers of another type than written, because both could hide data."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if [key for key in found if key in expected] != [key for key in expected if key in found]:
            raise _refusal(descriptor, "its keys are not in the written order")
        for key in found.keys() & expected.keys():
            demand_order(descriptor, found[key], expected[key])
    elif isinstance(expected, list) and isinstance(found, list):
        for one, other in zip(found, expected, strict=False):
            demand_order(descriptor, one, other)
    elif {type(found), type(expected)} == {int, float}:
        raise _refusal(descriptor, "a number is not in the written form")


def _differences(found: Any, expected: Any, place: str, same: bool) -> list[str]:
    """Return where two descriptors differ. An earlier format may lack later fields."""
    if isinstance(expected, dict) and isinstance(found, dict):
        out = []
        for name in [*found, *(name for name in expected if name not in found)]:
            where = f"{place}.{name}" if place else str(name)
            if name not in expected:
                out.append(where)
            elif name not in found:
                out += [where] if same else []
            else:
                out += _differences(found[name], expected[name], where, same)
        return out
    if isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return [one for i, (a, b) in pairs for one in _differences(a, b, f"{place}[{i}]", same)]
    return [] if found == expected and type(found) is type(expected) else [place or "it"]


# ---------------------------------------------------------------------- bytes of Parquet files


def demand_pages(path: Spot) -> None:
    """Refuse a Parquet file with bytes between its pages or in its footer, or statistics that its cells do not have.

    Only after the cells were read: that is where PyArrow turns faults of such a file into errors.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix != ".parquet":
        return
    with path.open("rb") as file:
        file.seek(-LAST_BYTES, 2)
        end = file.tell() - struct.unpack("<I4s", file.read())[0]
    with pq.ParquetFile(readable(path), pre_buffer=False) as file:
        reach = 4
        for number in range(file.num_row_groups):
            try:
                table = file.read_row_group(number)
            except (pa.ArrowException, OSError, UnicodeError):
                raise _refusal(path, "it cannot be read completely") from None
            group = file.metadata.row_group(number)
            for chunk in sorted((group.column(i) for i in range(group.num_columns)), key=_begin):
                if _begin(chunk) != reach:
                    raise _refusal(path, "it holds bytes that belong to no column")
                reach += chunk.total_compressed_size
            _demand_statistics(path, group, table)
        if reach != end and file.num_row_groups:
            raise _refusal(path, "it holds bytes that belong to no column")
        _demand_footer(path, end, file.metadata)


def _demand_footer(path: Spot, end: int, metadata: Any) -> None:
    """Write a footer again from what was read and compare it, because readers ignore unknown fields and bytes after the
    last one."""
    again = io.BytesIO()
    metadata.write_metadata_file(again)
    with path.open("rb") as file:
        file.seek(end)
        if file.read() != again.getvalue()[len(MAGIC) :]:
            raise _refusal(path, "its footer has bytes that this version of PyArrow cannot read")


def _begin(chunk: Any) -> int:
    first = chunk.dictionary_page_offset
    return int(chunk.data_page_offset if first is None else min(first, chunk.data_page_offset))


def _demand_statistics(path: Spot, group: Any, table: Any) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, column in enumerate(table.columns):
        cells = column.combine_chunks()
        while pa.types.is_list(cells.type):
            cells = cells.flatten()
        told = group.column(at).statistics
        if told is None or not told.has_min_max or not len(cells):
            continue
        try:
            ends = pc.min_max(cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells)
            same = (ends["min"].as_py(), ends["max"].as_py()) == (told.min, told.max)
        except (pa.ArrowException, UnicodeError, ValueError, OverflowError):
            same = False
        if not same:
            raise _refusal(path, "its statistics name values that its cells do not have")


def list_names(names: Sequence[str]) -> str:
    """Name a few files, columns or labels and count the others."""
    shown = ", ".join(repr(name[:60]) for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _refusal(path: Spot, why: str, said: str = "not as published") -> ReleaseError:
    return ReleaseError.distrust(f"{path}: {said}: {why}.")


# ---------------------------------------------------------------------- byte for byte


NEAR = 1e-12


class Digest(io.RawIOBase):
    """A file object that keeps only the checksum of what is written."""

    def __init__(self) -> None:
        self._found = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._found.update(data)
        return len(data)

    def hexdigest(self) -> str:
        return self._found.hexdigest()


def demand_written(data: Path, columns: Sequence[Statement], beside: Mapping[Path, dict[str, Any]]) -> None:
    """Refuse CSV files that contain anything except the texts of their cells; `beside` are the side tables with their
    types."""
    if data.suffix != ".csv":
        return
    again = {data: Digest()}
    if not write_data(data, columns, CsvStore(data).batches(columns), again[data]):
        del again[data]  # a header alone, which was compared with the columns
    for path, types in beside.items():
        again[path] = Digest()
        write_side(path, {name: read.cast(types[name]) for name, read in read_side(path).items()}, again[path])
    for path, digest in again.items():
        if digest.hexdigest() != checksum(path):
            raise _refusal(path, "its text differs from how these cells are written")


def unlike_written(
    data: Sequence[Spot], columns: Sequence[Statement], beside: Mapping[Spot, dict[str, Any]]
) -> list[Spot]:
    """Return the Parquet files that differ, byte for byte, from a new file of their cells.

    Another version of PyArrow, or another build of it with other libraries inside, may compress otherwise. A file
    that this version laid out otherwise than it writes is refused.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = []
    for path, write in [
        *((path, partial(_write_data, path, columns)) for path in data),
        *((path, partial(write_side, path, cells)) for path, cells in beside.items()),
    ]:
        digest = Digest()
        write(digest)
        if digest.hexdigest() in (checksum(path), Digest().hexdigest()):  # or there are no rows to write
            continue
        with tempfile.TemporaryFile() as file:
            write(file)
            file.seek(0)
            written = pq.read_metadata(file)
        try:
            found = pq.read_metadata(readable(path))
            other = found.created_by == written.created_by and _layout(found) != _layout(written)
        except (pa.ArrowException, OSError, UnicodeError):
            other = True
        if other:
            raise _refusal(path, "its row groups or pages differ from how these cells are written")
        out.append(path)
    return out


def _write_data(path: Spot, columns: Sequence[Statement], sink: Any) -> None:
    write_data(path, columns, ParquetStore(path).batches(columns), sink)


def _layout(metadata: Any) -> Any:
    """Return the metadata of a Parquet file, except positions and compressed sizes."""
    moved = {"total_compressed_size", "data_page_offset", "dictionary_page_offset", "file_offset", "serialized_size"}

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: strip(one) for name, one in value.items() if name not in moved}
        return [strip(one) for one in value] if isinstance(value, list | tuple) else value

    return strip(metadata.to_dict())


def demand_lines(path: Spot, columns: Mapping[str, Any]) -> None:
    """Refuse a Parquet knowledge table that differs in any line or type from how it is written, because repeated lines
    or other types could hide data."""
    if path.suffix != ".parquet":
        return
    found = read_side(path)
    same = list(found) == list(columns) and all(_alike(one, columns[name]) for name, one in found.items())
    if not same:
        raise _refusal(path, "its lines differ from how this table is written")


def _alike(found: Any, written: Any) -> bool:
    """Return whether cells and types are equal; the last digit of numbers may differ, because priors are normalised
    again."""
    import pyarrow as pa

    if found.type != written.type or len(found) != len(written) or not pa.types.is_floating(found.type):
        return bool(found.equals(written))
    one, two = (cells.to_numpy(zero_copy_only=False) for cells in (found, written))
    return bool(np.allclose(one, two, rtol=NEAR, atol=0, equal_nan=True))


# ---------------------------------------------------------------------- claimed sizes


UNPACKED = 1 << 28
"""Bytes that a row group may unpack to in any case: 256 MB."""
MOST_PAIRS = 1 << 26
"""Rows of the largest knowledge table."""
DAMAGED = "changed or damaged"
RATIO = 1000
"""Beyond that, how many times the size of the file a row group may unpack to."""


def check_size(path: Spot, manifest: Manifest) -> None:
    """Refuse a Parquet file that claims more rows, larger row groups or more unpacked bytes than a release has."""
    if path.suffix != ".parquet":
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:  # not the metadata of columns: Arrow ends the process where those are malformed
        found = pq.read_metadata(readable(path))
        groups = [found.row_group(number) for number in range(found.num_row_groups)]
    except (pa.ArrowException, OSError):
        return  # whoever reads it will say that it cannot be read
    except UnicodeError:
        raise _refusal(path, "the names of its columns are not text", DAMAGED) from None
    if path.name.startswith(("data.", "data-")):
        most = manifest.records * manifest.rows_per_record
        if any(group.num_rows > MOST_ROWS for group in groups):
            raise _refusal(path, f"a row group claims more than {MOST_ROWS:,} rows", DAMAGED)
    else:
        most = manifest.records + manifest.counterfeits if path.name.startswith("groups-") else MOST_PAIRS
        most = MOST_SETS if path.stem == SETS else most
    if found.num_rows > most:
        raise _refusal(path, f"it claims {found.num_rows:,} rows, more than the manifest allows ({most:,})", DAMAGED)
    if any(group.total_byte_size > UNPACKED + RATIO * path.stat().st_size for group in groups):
        raise _refusal(path, "it claims to unpack to far more than its size", DAMAGED)
