"""Delimited text: separator and encoding given or detected, rows streamed, errors without cells."""

from __future__ import annotations

import codecs
import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

from noren.errors import DataError
from noren.sources.header import MISSING, demand_header
from noren.sources.place import Place, Spot
from noren.sources.source import Writing, name_repeated

SEPARATORS = ",;\t|"
SAMPLE_BYTES = 1 << 18
BLOCK_BYTES = 8 << 20
FIRST_BYTES = 1 << 20
"""A block where the first rows alone are wanted."""
MAGIC = {
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "compressed with gzip",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
}
"""First bytes of files that are no text, whatever their name says."""
BROKEN = (OSError, EOFError, zlib.error)
"""What reading a file raises that is cut off, damaged or out of reach."""


class CsvSource:
    """A CSV file with a header line. Every cell is text; an empty cell is missing."""

    rows: int | None = None
    piece: tuple[int, int] | None = None
    """The first byte and the end of what is read where that is not the whole file."""
    renamed = False
    """Whether the header repeats a name, so that columns are called otherwise than there."""

    def __init__(
        self,
        path: Spot,
        *,
        separator: str | None = None,
        encoding: str | None = None,
        missing_values: tuple[str, ...] = (),
        doubted: bool = False,
    ) -> None:
        """Open a CSV; `doubted`: a user's own file, whose header and separator may be wrong."""
        self.path = path
        self.name = str(path)
        notes: list[str] = []
        sample = _sample(path)
        for first, what in MAGIC.items():
            if sample.startswith(first) and not (first == b"BZh" and sample.isascii()):
                raise DataError(
                    f"{path}: not CSV text but {what}.",
                    hint="Unpack it, or give it the suffix of what it is: .csv, .csv.gz, .parquet, .arrow.",
                )
        if not sample.strip():
            raise DataError(f"{path}: empty file.", hint="The first line must hold the column names.")
        if encoding is None:
            encoding, guessed = sniff_encoding(sample, self.name)
            if guessed:
                notes.append(f"{path}: not UTF-8, read as {encoding} (set encoding to choose another)")
        try:
            "a".encode(encoding, "ignore")  # refuses codecs that are not for text
            text = codecs.getincrementaldecoder(encoding)().decode(sample, final=False)
        except LookupError:
            raise DataError(
                f"encoding {encoding!r} is unknown.", hint="Use an encoding such as utf-8, cp1252 or utf-16."
            ) from None
        except UnicodeError as error:
            raise _encoding_error(self.name, encoding, getattr(error, "start", None)) from None
        text = text.removeprefix("\ufeff")
        if "\0" in text:
            raise _not_text(self.name)
        if separator is None:
            separator = sniff_separator(text)
        elif len(separator) != 1:
            raise DataError(f"separator {separator!r} is not one character.", hint="For example ',' or ';'.")
        self.encoding = encoding
        self.separator = separator
        self.missing_values = ("", *missing_values)
        try:
            header = next(row for row in csv.reader(StringIO(text, newline=""), delimiter=separator) if row)
        except (csv.Error, StopIteration):
            raise DataError(
                f"{path}: the header cannot be read.", hint="Check that every quotation mark is closed."
            ) from None
        if doubted:
            demand_header(self.name, text, separator, (*self.missing_values, *MISSING))
        self.columns, repeated = name_repeated(header, self.name)
        self.notes, self.renamed = (*notes, *repeated), bool(repeated)
        before = text[: len(text) - len(text.lstrip("\r\n"))]
        self._blank_lines = max(before.count("\n"), before.count("\r"))
        self.size = path.stat().st_size
        self._utf8 = encoding.lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig", "ascii")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        return self._batches(columns, threads=True)

    def first(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the same rows for a reader who stops early: small blocks, no read-ahead, and no search for quotes in
        the rest of the file. Rows beyond a small block are left to the other reader.
        """
        seen = 0
        try:
            for batch in self._batches(columns, threads=False, block=FIRST_BYTES, quotes=True):
                yield batch
                seen += batch.num_rows
            return
        except DataError:
            pass
        yield from _behind(seen, self._batches(columns, threads=True))

    def _batches(self, columns: Sequence[str], **how: Any) -> Iterator[Any]:
        import pyarrow as pa

        try:
            with self._open(columns, lambda row: "error", **how) as reader:
                for batch in reader:
                    for column in batch.columns:  # each text once, not once for every cell
                        if isinstance(column, pa.DictionaryArray):
                            column.dictionary.validate(full=True)
                    yield batch
        except MemoryError:  # of Arrow too
            raise
        except (pa.ArrowException, UnicodeError) as error:
            if "Empty CSV file" not in str(error):  # a header without even a line break
                raise self._explain(error) from None
        except BROKEN:
            raise _unreadable(self.path) from None

    def _open(
        self,
        columns: Sequence[str],
        refuse: Callable[[Any], str],
        *,
        threads: bool,
        block: int | None = None,
        quotes: bool | None = None,
    ) -> Any:
        import pyarrow as pa
        import pyarrow.csv as pv

        text_type = pa.dictionary(pa.int32(), pa.string())
        return pv.open_csv(
            self._stream(),
            read_options=pv.ReadOptions(
                block_size=block or BLOCK_BYTES,
                encoding="utf8" if self._utf8 else self.encoding,
                use_threads=threads,
                skip_rows=self._blank_lines if self._has_header else 0,
                column_names=list(self.columns) if self.renamed or not self._has_header else None,
                skip_rows_after_names=int(self.renamed and self._has_header),
            ),
            parse_options=pv.ParseOptions(
                delimiter=self.separator,
                invalid_row_handler=refuse,
                newlines_in_values=self._has_quotes() if quotes is None else quotes,
                ignore_empty_lines=len(self.columns) > 1,  # in a table of one column it is a missing cell
            ),
            convert_options=pv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(columns, text_type),
                include_columns=list(columns),
                null_values=list(self.missing_values),
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )

    def pieces(self, size: int) -> list[CsvSource]:
        """Split the rows into sources of about equal size.

        A text with quotes is not cut: whether a line break ends a record is known only from its beginning on.
        """
        single = self.encoding.lower().startswith(("cp125", "latin", "iso-8859", "iso8859"))
        if self.size < 2 * size or _is_gzipped(self.path) or not (self._utf8 or single) or self._has_quotes():
            return [self]
        cuts = [0]
        with self.path.open("rb") as file:
            while cuts[-1] + 2 * size <= self.size:
                file.seek(cuts[-1] + size)
                file.readline()
                cuts.append(file.tell())
        cuts = [*cuts, self.size] if cuts[-1] < self.size else cuts
        return [self._cut_out(start, stop) for start, stop in pairwise(cuts)]

    def _cut_out(self, start: int, stop: int) -> CsvSource:
        part = copy(self)
        part.piece = (start, stop)
        return part

    @property
    def _has_header(self) -> bool:
        return self.piece is None or self.piece[0] == 0

    def _stream(self) -> Any:
        """Return the unpacked bytes of the file or of its part."""
        import pyarrow as pa

        file = self.path.open("rb") if isinstance(self.path, Place) else pa.OSFile(str(self.path))
        if self.piece is not None:
            return file.get_stream(self.piece[0], self.piece[1] - self.piece[0])
        return pa.CompressedInputStream(file, "gzip") if _is_gzipped(self.path) else file

    def _has_quotes(self) -> bool:
        """Return whether quoted cells may contain line breaks; without quotes the faster block reader is safe."""
        if not hasattr(self, "_quotes"):
            self._quotes = contains_byte(self.path, b'"')
        return self._quotes

    def _ragged_row(self) -> tuple[int, int, int] | None:
        """Return the number of the first ragged row (the header is row 1), and its expected and found cells.

        Only a reader without threads knows the number, so the file is read once more.
        """
        import pyarrow as pa

        found: list[tuple[int, int, int]] = []

        def refuse(row: Any) -> str:
            found.append((row.number, row.expected_columns, row.actual_columns))
            return "error"

        try:
            with self._open(self.columns[:1], refuse, threads=False) as reader:
                for _ in reader:
                    pass
        except (pa.ArrowException, UnicodeError, *BROKEN):
            pass
        return found[0] if found else None

    def _explain(self, error: Exception) -> DataError:
        text = str(error)
        ragged = self._ragged_row() if "columns, got" in text else None
        if ragged is not None:
            number, expected, actual = ragged
            behind = "" if self._has_header else f" behind byte {self.piece[0]:,}"  # type: ignore[index]
            return DataError(
                f"{self.name}: row {number}{behind} has {actual} cells, the header has {expected}.",
                hint=f"Correct the row, or set the separator if {self.separator!r} is wrong.",
            )
        if isinstance(error, UnicodeError) or "utf8" in text.lower() or "utf-8" in text.lower():
            return _encoding_error(self.name, self.encoding, None)
        if "straddling object" in text:
            return DataError(f"{self.name}: a row exceeds {BLOCK_BYTES} bytes, or a quote is never closed.")
        return DataError(
            f"{self.name}: cannot be parsed as CSV with separator {self.separator!r}.",
            hint="Check quotation marks and the separator.",
        )


def open_csv(place: str, writing: Writing) -> CsvSource:
    """Open delimited text in a file."""
    return CsvSource(
        Path(place),
        separator=writing.separator,
        encoding=writing.encoding,
        missing_values=writing.missing_values,
        doubted=True,
    )


def _behind(rows: int, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches without their first rows."""
    for batch in batches:
        skipped = min(rows, batch.num_rows)
        rows -= skipped
        if skipped < batch.num_rows:
            yield batch.slice(skipped)


def _sample(path: Spot) -> bytes:
    try:
        with _open_unpacked(path) as file:
            return bytes(file.read(SAMPLE_BYTES))
    except BROKEN:
        raise _unreadable(path) from None


def _open_unpacked(path: Spot) -> Any:
    """Open the file without its compression."""
    if not _is_gzipped(path):
        return path.open("rb")
    return gzip.open(path if isinstance(path, Path) else path.open("rb"))


def _is_gzipped(path: Spot) -> bool:
    return path.suffix.lower() == ".gz"


def _unreadable(path: Spot) -> DataError:
    return DataError(f"{path}: cannot be read.", hint="Check that the file is complete and that you may read it.")


def contains_byte(path: Spot, byte: bytes) -> bool:
    """Return whether the byte occurs in the (unpacked) file."""
    with _open_unpacked(path) as file:
        while chunk := file.read(1 << 22):
            if byte in chunk:
                return True
    return False


def _encoding_error(name: str, encoding: str, position: int | None) -> DataError:
    where = f" at byte {position}" if position is not None else ""
    return DataError(
        f"{name}: the text is not valid {encoding}{where}.",
        hint="Give the right encoding (for example cp1252 or utf-16), or repair the file.",
    )


def sniff_encoding(sample: bytes, name: str) -> tuple[str, bool]:
    """Detect the encoding: byte order marks, then UTF-8, then cp1252; and whether it was a guess."""
    if sample.startswith(codecs.BOM_UTF8):
        return "utf-8-sig", False
    if sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32", False
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", False
    if b"\0" in sample:
        return _sniff_wide(sample, name), True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=False)
        return "utf-8", False
    except UnicodeDecodeError as error:
        kept = sample.decode("utf-8", errors="ignore")
        if not kept.isascii():
            raise _encoding_error(name, "utf-8", error.start) from None
    try:
        codecs.getincrementaldecoder("cp1252")().decode(sample)
    except UnicodeDecodeError as error:
        raise _encoding_error(name, "utf-8", error.start) from None
    return "cp1252", True


def _sniff_wide(sample: bytes, name: str) -> str:
    """Detect an encoding of two or four bytes a character in a text with NUL bytes."""
    for encoding in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
        text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(sample)
        if "\0" not in text and sum(map(str.isascii, text)) > len(text) / 2:
            return encoding
    raise _not_text(name)


def _not_text(name: str) -> DataError:
    return DataError(f"{name}: it holds NUL characters, so it is not text.", hint="Remove them, or give the encoding.")


def sniff_separator(text: str) -> str:
    """Return the separator that splits the first lines into the same number of cells, preferring the most cells."""
    lines = text.splitlines()[:-1][:50] or text.splitlines()
    best, best_score = ",", 0.0
    for candidate in SEPARATORS:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=candidate) if row]
        except csv.Error:  # one cell swallows the sample: a quote is never closed
            continue
        if not widths or widths[0] < 2:
            continue
        score = sum(width == widths[0] for width in widths) / len(widths) * 1000 + widths[0]
        if score > best_score:
            best, best_score = candidate, score
    return best
