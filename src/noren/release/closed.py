"""A release is a closed world: a file, column, field or byte that its manifest does not describe is refused by name.

Everything in a release follows from its manifest: which files there are, which columns they have, every word of the
descriptor. So what a release should be is written down again and compared with what is there.
"""

from __future__ import annotations

import csv
import io
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from noren.errors import ReleaseError
from noren.sources.place import Spot, readable

LAST_BYTES = 8
MAGIC = b"PAR1"
WRITER = "parquet-cpp-arrow version "
SHOWN = 3


def demand_files(directory: Spot, known: Sequence[str]) -> None:
    """Refuse a directory that holds anything but the files of the release."""
    strange = sorted(path.name for path in directory.iterdir() if path.name not in known)
    if strange:
        raise _refused(directory, f"it holds {_listed(strange)}, which its manifest does not describe")


def demand_columns(path: Spot, titles: Sequence[str]) -> None:
    """Refuse a file whose columns are not those of the manifest, in its order."""
    found = columns_of(path)
    strange = [name for name in found if name not in titles]
    if strange:
        raise _refused(path, f"it has the column {_listed(strange)}, which its manifest does not describe")
    if found != list(titles):
        raise _refused(path, "its columns are not those of the manifest, each once and in its order")


def columns_of(path: Spot) -> list[str]:
    """The columns of a file, whose metadata say nothing else."""
    import pyarrow as pa

    if path.suffix == ".csv":
        try:
            with path.open(newline="", encoding="utf-8") as file:
                return next(csv.reader(file), [])
        except (UnicodeDecodeError, csv.Error):
            raise _refused(path, "its header is no text") from None
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
        raise _refused(path, f"its metadata hold {_listed(keys)}, which its manifest does not describe")
    if not writer.startswith(WRITER) or len(writer) > len(WRITER) + 30:
        raise _refused(path, "its metadata name a writer that no release has")
    return names


def demand_descriptor(descriptor: Spot, found: Mapping[str, Any], expected: Mapping[str, Any], same: bool) -> None:
    """Refuse a descriptor that says anything but what its manifest says; `same` if the present version wrote it."""
    if json.dumps(found) == json.dumps(expected):  # the same texts, numbers and words in the same order
        return
    for place in _differences(found, expected, "", same):
        raise _refused(descriptor, f"{place} is not what its manifest describes")
    demand_order(descriptor, found, expected)


def demand_order(descriptor: Spot, found: Any, expected: Any) -> None:
    """Refuse keys in another order than they are written in, and numbers of another type: both could tell something."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if [key for key in found if key in expected] != [key for key in expected if key in found]:
            raise _refused(descriptor, "its keys are not in the order in which they are written")
        for key in found.keys() & expected.keys():
            demand_order(descriptor, found[key], expected[key])
    elif isinstance(expected, list) and isinstance(found, list):
        for one, other in zip(found, expected, strict=False):
            demand_order(descriptor, one, other)
    elif {type(found), type(expected)} == {int, float}:
        raise _refused(descriptor, "a number is not as it is written")


def _differences(found: Any, expected: Any, place: str, same: bool) -> list[str]:
    """Where two descriptors differ. An earlier format may lack what came later, and words nothing otherwise."""
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
                raise _refused(path, "it cannot be read whole") from None
            group = file.metadata.row_group(number)
            for chunk in sorted((group.column(i) for i in range(group.num_columns)), key=_begin):
                if _begin(chunk) != reach:
                    raise _refused(path, "it holds bytes that belong to no column")
                reach += chunk.total_compressed_size
            _demand_statistics(path, group, table)
        if reach != end and file.num_row_groups:
            raise _refused(path, "it holds bytes that belong to no column")
        _demand_footer(path, end, file.metadata)


def _demand_footer(path: Spot, end: int, metadata: Any) -> None:
    """Readers pass over fields of a footer that they do not know, and over bytes after the last one: so the footer is
    written again from what was read."""
    again = io.BytesIO()
    metadata.write_metadata_file(again)
    with path.open("rb") as file:
        file.seek(end)
        if file.read() != again.getvalue()[len(MAGIC) :]:
            raise _refused(path, "its footer holds bytes that this version of PyArrow cannot read")


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
            raise _refused(path, "its statistics name values that its cells do not have")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:60]) for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _refused(path: Spot, why: str) -> ReleaseError:
    return ReleaseError(f"{path}: not as published: {why}.", hint="Do not use it; ask the holder for it again.")
