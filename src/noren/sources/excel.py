"""The first sheet of an Excel workbook, read into memory."""

from __future__ import annotations

from pathlib import Path

from noren.errors import DataError
from noren.sources.arrow import FrameSource
from noren.sources.header import LOOKED_AT, MISSING, demand_names
from noren.sources.source import Writing

INSTALL = "pip install 'noren[excel]'"


def open_excel(place: str, writing: Writing) -> FrameSource:
    """The first sheet, its first row as the names of the columns."""
    import polars as pl

    path = Path(place)
    try:
        frame = pl.read_excel(path, engine="calamine")
    except ModuleNotFoundError:
        message = f"{path}: reading Excel files needs a package that is not installed."
        raise DataError(message, hint=f"{INSTALL}, or save the sheet as CSV.") from None
    except Exception:  # whatever a reader of somebody else's format raises may quote cells
        raise DataError(f"{path}: cannot be read as an Excel workbook.", hint="Save the sheet as CSV.") from None
    rows = frame.head(LOOKED_AT).cast(pl.String, strict=False).fill_null("").rows()
    demand_names(str(path), [frame.columns, *rows], ("", *writing.missing_values, *MISSING))
    source = FrameSource(frame, writing.missing_values)
    source.name = str(path)
    return source
