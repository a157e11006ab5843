"""A file of a release is what writing its cells gives, byte for byte: blank lines and quotes of CSV, row groups, pages
and the order of dictionaries in Parquet could tell what no cell tells."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from noren.errors import ReleaseError
from noren.release.parts import checksum
from noren.release.store import CsvStore, ParquetStore, read_side, write_data, write_side
from noren.sources.place import Spot, readable
from noren.statements import Statement

NEAR = 1e-12


class Digest:
    """A file that keeps nothing but the checksum of what is written to it."""

    def __init__(self) -> None:
        self.closed = False
        self._found = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._found.update(data)
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        self.closed = True

    def hexdigest(self) -> str:
        return self._found.hexdigest()


def demand_written(data: Path, columns: Sequence[Statement], beside: Mapping[Path, dict[str, Any]]) -> None:
    """Refuse CSV files that hold anything but the texts of their cells; `beside` are the side tables, with the
    types that their columns are written from."""
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
            raise ReleaseError(
                f"{path}: not as published: its text is not what its cells are written as.",
                hint="Do not use it; ask the holder for it again.",
            )


def unlike_written(
    data: Sequence[Spot], columns: Sequence[Statement], beside: Mapping[Spot, dict[str, Any]]
) -> list[Spot]:
    """The Parquet files that writing their cells again does not give byte for byte.

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
            raise ReleaseError(
                f"{path}: not as published: its row groups or pages are not as its cells are written.",
                hint="Do not use it; ask the holder for it again.",
            )
        out.append(path)
    return out


def _write_data(path: Spot, columns: Sequence[Statement], sink: Any) -> None:
    write_data(path, columns, ParquetStore(path).batches(columns), sink)


def _layout(metadata: Any) -> Any:
    """What the metadata of a Parquet file say, but for places and for how well pages were compressed."""
    moved = {"total_compressed_size", "data_page_offset", "dictionary_page_offset", "file_offset", "serialized_size"}

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: kept(one) for name, one in value.items() if name not in moved}
        return [kept(one) for one in value] if isinstance(value, list | tuple) else value

    return kept(metadata.to_dict())


def demand_lines(path: Spot, columns: Mapping[str, Any]) -> None:
    """Refuse a Parquet table of knowledge that is not, line by line and type by type, what it is written as: a line
    that stands twice and a number as a text say nothing to a reader, and something to whom they were meant for."""
    if path.suffix != ".parquet":
        return
    found = read_side(path)
    same = list(found) == list(columns) and all(_alike(one, columns[name]) for name, one in found.items())
    if not same:
        raise ReleaseError(
            f"{path}: not as published: its lines are not what its table is written as.",
            hint="Do not use it; ask the holder for it again.",
        )


def _alike(found: Any, written: Any) -> bool:
    """The same cells of the same type; numbers but for the last digit, because priors are made to sum to 1 again."""
    import pyarrow as pa

    if found.type != written.type or len(found) != len(written) or not pa.types.is_floating(found.type):
        return bool(found.equals(written))
    one, two = (cells.to_numpy(zero_copy_only=False) for cells in (found, written))
    return bool(np.allclose(one, two, rtol=NEAR, atol=0, equal_nan=True))
