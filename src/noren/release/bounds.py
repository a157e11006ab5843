"""How large a file of a release may claim to be, judged by its own metadata before anything of it is read.

A recipient opens files of people they may not know. A Parquet file of a few kilobytes can claim billions of rows, or
pages that unpack to gigabytes; neither is a release that this package wrote.
"""

from __future__ import annotations

from noren.errors import ReleaseError
from noren.release.manifest import Manifest
from noren.sources.place import Spot, readable
from noren.statements.set import SETS
from noren.statements.set_cells import MOST_SETS

MOST_ROWS_AT_ONCE = 1 << 16
"""Rows of the largest row group that is ever written."""
UNPACKED = 1 << 28
"""Bytes that a row group may unpack to in any case: 256 MB."""
MOST_PAIRS = 1 << 26
"""Rows of the largest knowledge table."""
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
        raise _refused(path, "the names of its columns are no text") from None
    if path.name.startswith(("data.", "data-")):
        most = manifest.records * manifest.rows_per_record
        if any(group.num_rows > MOST_ROWS_AT_ONCE for group in groups):
            raise _refused(path, f"a row group claims more than {MOST_ROWS_AT_ONCE:,} rows")
    else:
        most = manifest.records + manifest.counterfeits if path.name.startswith("groups-") else MOST_PAIRS
        most = MOST_SETS if path.stem == SETS else most
    if found.num_rows > most:
        raise _refused(path, f"it claims {found.num_rows:,} rows, more than the manifest allows ({most:,})")
    if any(group.total_byte_size > UNPACKED + RATIO * path.stat().st_size for group in groups):
        raise _refused(path, "it claims to unpack to far more than its size")


def _refused(path: Spot, why: str) -> ReleaseError:
    return ReleaseError(f"{path}: changed or damaged: {why}.", hint="Do not use it; ask the holder for it again.")
