"""Exports for tools that cannot read sets: imputed tables, or a 0/1 column for every possible value."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from noren.errors import DataError, QueryError
from noren.files import publish_directory, publish_file, refuse_target, sync_directory, write_whole
from noren.release.release import Release, free_name
from noren.statements import Statement

if TYPE_CHECKING:
    import polars as pl

FORMS = {
    "imputed-csv": "imputed complete tables, one below the other; for any tool, not for inference",
    "wide-csv": (
        "the published cells with one 0/1 column for each possible value of a set; nothing is lost or imputed"
    ),
    "excel": "a workbook: the records, sets as texts, and a sheet that says what they are; nothing is lost or guessed",
    "stata": "imputed complete tables as a .dta file in Stata's flong form (mi import flong); not for inference",
    "spss": "imputed complete tables as a .sav file with the variable imputation_; not for inference",
    "r": "a directory with the records, the likelihood of every cell and an R script that estimates counts from them",
}
"""What a release can be exported as, and what each is good for."""
LABEL, HOLDS = "not for inference", "inference on one and two columns is valid"
"""What the tables are called where records tell little, and where they tell enough of every two columns."""
PUBLISHED = ("wide-csv", "excel", "r")
"""Forms that show what was published; the others draw plausible tables."""
SUFFIXES = {"imputed-csv": ".csv", "wide-csv": ".csv", "excel": ".xlsx", "stata": ".dta", "spss": ".sav", "r": ""}
WORDS = {
    "all", "and", "by", "eq", "ge", "gt", "le", "lt", "ne", "not", "or", "to", "with",
    "byte", "double", "float", "if", "in", "int", "long", "strl", "using",
}  # fmt: skip
"""What SPSS and Stata do not take for names,"""
STRINGS = re.compile(r"str\d+", re.IGNORECASE)
"""nor these."""
MOST_COLUMNS = 5000
INSTALL = "pip install 'noren[export]'"


def export(
    release: Release,
    to: str | Path,
    form: str,
    *,
    m: int = 20,
    seed: int | None = None,
    mark: bool = False,
    progress: Callable[[int], None] | None = None,
) -> str:
    """Write the release in a form that other tools read; return its valid uses.

    With `mark`, CSV files begin with a byte-order mark, by which Excel sees that they are UTF-8.
    """
    target = Path(to)
    if form not in FORMS:
        raise QueryError(f"{form!r} is not an export format.", hint=f"Known: {', '.join(FORMS)}.")
    if target.suffix.lower() != SUFFIXES[form]:
        into = f"a {SUFFIXES[form]} file" if SUFFIXES[form] else "a directory, whose name has no ending"
        raise DataError(f"{target}: {form} is written to {into}.", hint="Choose such a name.")
    if mark and target.suffix != ".csv":
        raise QueryError("only CSV files begin with a byte-order mark.", hint="Leave it out.")
    refuse_target(target)
    encoding = "utf-8-sig" if mark else "utf-8"
    if form == "wide-csv":
        write_whole(target, _guard_frame(wide(release)).write_csv().encode(encoding))
        return FORMS[form]
    if form == "excel":
        about = [["what it is"], *([line] for line in release.describe().splitlines())]
        write_whole(target, workbook({"records": _readable(release), "about": about}))
        return FORMS[form]
    if form == "r":
        export_for_r(release, target)
        return FORMS[form]
    made = release.impute(m, seed=seed, progress=progress)
    if form == "imputed-csv":
        write_whole(target, _guard_frame(made.frame).write_csv().encode(encoding))
    else:
        _statistical(target, form, made.tables)
    return FORMS[form].replace(LABEL, HOLDS) if made.holds else FORMS[form]


def wide(release: Release) -> pl.DataFrame:
    """Return the published cells with one 0/1 column for every possible value of a set: "job=cook"."""
    import polars as pl

    frame, out = release.frame(), []
    taken = set(frame.columns)
    for statement in release.statements:
        cells = frame[statement.name]
        if cells.dtype != pl.List:
            out.append(cells)
            continue
        values = statement.terms if statement.terms is not None else statement.domain.values
        if len(out) + len(values) > MOST_COLUMNS:
            raise QueryError(f"there would be more than {MOST_COLUMNS:,} columns.", hint="Export imputed-csv instead.")
        held = _membership(release, statement, cells)
        for place, value in enumerate(values):
            out.append(held(place).alias(free_name(f"{statement.name}={value}", taken)))
            taken.add(out[-1].name)
    return pl.DataFrame(out)


def _readable(release: Release) -> Iterator[list[Any]]:
    """Return the names of the columns and every record for people: a set as "cook or clerk", a missing value empty."""
    import polars as pl

    frame = release.frame()
    yield list(frame.columns)
    columns = []
    for statement in release.statements:
        cells = frame[statement.name]
        if cells.dtype == pl.List:
            between = " or " if statement.terms is None else "; "
            cells = cells.cast(pl.List(pl.String)).list.eval(pl.element().fill_null("missing")).list.join(between)
        columns.append(cells.to_list() if cells.dtype.is_numeric() else cells.cast(pl.String).to_list())
    yield from map(list, zip(*columns, strict=True))


def _membership(release: Release, statement: Statement, cells: pl.Series) -> Callable[[int], pl.Series]:
    """Return a function that says for the code of a value which cells contain it."""
    import polars as pl

    if statement.terms is not None:
        texts, terms = cells.cast(pl.List(pl.String)), statement.terms
        return lambda place: texts.list.contains(terms[place]).cast(pl.Int8)
    codes = statement.members(release.cells([statement.name])[statement.name])
    return lambda place: pl.Series((codes == place).any(axis=1).astype("int8"))


def _guard_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before texts that a spreadsheet would run; join lists."""
    import polars as pl

    from noren.statements.texts import guard_formulas, guard_text

    parts = []
    for column in frame:
        flat = column.cast(pl.List(pl.String)).list.join(";") if column.dtype == pl.List else column
        text = pl.from_arrow(guard_formulas(flat.to_arrow(compat_level=pl.CompatLevel.oldest())))
        assert isinstance(text, pl.Series)
        parts.append(text.alias(guard_text(column.name)))
    return pl.DataFrame(parts)


def _statistical(target: Path, form: str, tables: Any) -> None:
    """Write for Stata, in which table 0 is the incomplete one, or SPSS, which numbers tables from 1."""
    import polars as pl

    try:
        import pyreadstat
    except ModuleNotFoundError:
        message = f"{form} needs a package that is not installed."
        raise DataError(message, hint=f"{INSTALL}, or export imputed-csv.") from None
    parts = []
    for number, table in enumerate(tables, 1):
        ids = {"_mi_m": [number] * table.height, "_mi_id": range(1, table.height + 1)}
        ids = ids if form == "stata" else {"imputation_": [number] * table.height}
        titles = {name: free_name(name, {*ids, *table.columns}) for name in table.columns if name in ids}
        parts.append(pl.DataFrame(ids).hstack(_flat(table).rename(titles)))
    whole = pl.concat(parts)
    own = list(ids)
    labels = dict(zip([*own, *_short(whole.columns[len(own) :], own)], whole.columns, strict=True))
    whole.columns = list(labels)
    write = pyreadstat.write_dta if form == "stata" else pyreadstat.write_sav
    aside = target.with_name(f".{target.stem}-part{target.suffix}")
    try:
        write(whole.to_pandas(), str(aside), column_labels=list(labels.values()))
        publish_file(aside, target)
    except ModuleNotFoundError:
        raise DataError(f"{form} needs pandas.", hint=f"{INSTALL}, or export imputed-csv.") from None
    finally:
        aside.unlink(missing_ok=True)


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    lists = [column.name for column in table if column.dtype == pl.List]
    return table.with_columns(pl.col(name).cast(pl.List(pl.String)).list.join(";") for name in lists)


def _short(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Return names that both programs accept: letters, digits, underscores, at most 32 characters, no reserved words;
    made unique by numbers."""
    out: list[str] = []
    for name in names:
        plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)[:28] or "v"
        plain = (
            plain if plain[0].isalpha() and plain.lower() not in WORDS and not STRINGS.fullmatch(plain) else f"v{plain}"
        )
        number, found = 1, plain
        while found.lower() in (one.lower() for one in (*taken, *out)):
            number += 1
            found = f"{plain}_{number}"
        out.append(found)
    return out


# ---------------------------------------------------------------------- workbooks
#
# A workbook (.xlsx) with a sheet of records and a sheet that says what they are, written without another package.

SHEET_ROWS, SHEET_COLUMNS, CELL_LETTERS = 1_048_576, 16_384, 32_767
"""What one sheet may hold: rows, columns, and letters of a cell."""
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
FIRST_LINE_STAYS = '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'


def workbook(sheets: dict[str, Iterable[Sequence[Any]]]) -> bytes:
    """Return the bytes of a workbook of named sheets. Texts stay texts."""
    numbered = list(enumerate(sheets, 1))
    links = "".join(f'<Relationship Id="r{i}" Type="{OFFICE}/worksheet" Target="sheet{i}.xml"/>' for i, _ in numbered)
    named = "".join(f'<sheet name={quoteattr(name)} sheetId="{i}" r:id="r{i}"/>' for i, name in numbered)
    kinds = "".join(f'<Override PartName="/sheet{i}.xml" ContentType="{TYPE}.worksheet+xml"/>' for i, _ in numbered)
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(
            "[Content_Types].xml",
            f'{HEAD}<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
            f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/workbook.xml" ContentType="{TYPE}.sheet.main+xml"/>{kinds}</Types>',
        )
        root = f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="workbook.xml"/>'
        for name, inner in (("_rels/.rels", root), ("_rels/workbook.xml.rels", links)):
            file.writestr(name, f'{HEAD}<Relationships xmlns="{PACKAGE}/relationships">{inner}</Relationships>')
        book = f'{HEAD}<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{named}</sheets></workbook>'
        file.writestr("workbook.xml", book)
        for i, name in numbered:
            with file.open(f"sheet{i}.xml", "w", force_zip64=True) as sheet:
                for text in _sheet(sheets[name]):
                    sheet.write(text.encode())
    return out.getvalue()


def _sheet(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield f'{HEAD}<worksheet xmlns="{MAIN}"><sheetViews><sheetView workbookViewId="0">{FIRST_LINE_STAYS}'
    yield "</sheetView></sheetViews><sheetData>"
    for number, row in enumerate(rows, 1):
        if number > SHEET_ROWS or len(row) > SHEET_COLUMNS:
            raise QueryError(
                f"a sheet holds at most {SHEET_ROWS:,} rows and {SHEET_COLUMNS:,} columns.",
                hint="Export wide-csv instead.",
            )
        yield f"<row>{''.join(map(_cell, row))}</row>"
    yield "</sheetData></worksheet>"


def _cell(value: Any) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and abs(value) < 1e15:
        return f"<c><v>{value!r}</v></c>"
    text = NOT_XML.sub("\ufffd", str(value))
    if len(text) > CELL_LETTERS:
        raise QueryError(f"a cell holds at most {CELL_LETTERS:,} letters.", hint="Export wide-csv instead.")
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'


# ---------------------------------------------------------------------- R
#
# The records, the likelihood of every published cell, and a script that estimates from them, for which R needs no
# package. The files hold nothing that the release does not publish.

MOST_ENTRIES = 10_000_000
"""Lines of the table of likelihoods beyond which R is no help."""
RECORDS, LIKELIHOOD, SCRIPT = "records.csv", "likelihood.csv", "estimate.R"
ESTIMATE = """\
# Counts from a release, by maximum likelihood (EM), in base R:
#   source("estimate.R"); estimate("job"); estimate("job", "disease")
# records.csv has a number for every cell, likelihood.csv the probability of that cell under every true value
# (up to a factor). One column agrees with Noren's `estimate`. Of several columns Noren stops EM early, where records
# that were held out say so, and gives intervals; EM to the end, as here, overfits tables of many cells.
records <- read.csv("records.csv", check.names = FALSE)
likelihood <- read.csv("likelihood.csv", colClasses = c("character", "integer", "character", "numeric"),
                       na.strings = character(), encoding = "UTF-8")

likelihood_matrix <- function(name) {
  rows <- likelihood[likelihood$column == name, ]
  if (nrow(rows) == 0) stop("no such column; known: ", toString(unique(likelihood$column)))
  values <- unique(rows$value)
  out <- matrix(0, max(rows$cell), length(values), dimnames = list(NULL, values))
  out[cbind(rows$cell, match(rows$value, values))] <- rows$likelihood
  out
}

estimate <- function(..., steps = 5000, tolerance = 0.01) {
  names <- c(...)
  counted <- aggregate(list(n = rep(1, nrow(records))), records[names], sum)   # how often cells occur together
  each <- lapply(names, function(name) likelihood_matrix(name)[counted[[name]], , drop = FALSE])
  joint <- Reduce(function(a, b) a[, rep(seq_len(ncol(a)), ncol(b)), drop = FALSE] *
                    b[, rep(seq_len(ncol(b)), each = ncol(a)), drop = FALSE], each)
  x <- rep(nrow(records) / ncol(joint), ncol(joint))
  for (step in seq_len(steps)) {
    old <- x
    x <- x * as.vector(crossprod(joint, counted$n / as.vector(joint %*% x)))
    if (max(abs(x - old)) < tolerance) break
  }
  cbind(expand.grid(lapply(each, colnames), stringsAsFactors = FALSE) |> setNames(names), count = x)
}
"""


def export_for_r(release: Release, target: Path) -> None:
    """Write a directory for R: records, likelihoods and a script.

    Columns whose cells are not about single values (sets of terms, means, columns of very many values) are not written.
    """
    import polars as pl

    if release.rows_per_record > 1:
        raise QueryError("the rows of this release are shuffled members of sets.", hint="Use `noren estimate`.")
    records: dict[str, NDArray] = {}
    parts: list[pl.DataFrame] = []
    entries = 0
    for statement in release.statements:
        cells, of = release.cells([statement.name])[statement.name].distinct()
        found = statement.likelihood(cells)
        if found is None:
            continue
        d = statement.d
        entries += len(found) * d if found.floor > 0 else len(found.value)
        if entries > MOST_ENTRIES:
            raise QueryError(f"there would be more than {MOST_ENTRIES:,} likelihoods.", hint="Export wide-csv instead.")
        rows = found.listed(d)
        records[statement.name] = of.astype(np.int64) + 1
        labels = pl.Series(statement.domain.values, dtype=pl.String)
        part = {"cell": rows.owner + 1, "value": labels.gather(rows.value), "likelihood": rows.weight}
        parts.append(pl.DataFrame({"column": [statement.name] * len(rows.value)} | part))
    if not parts:
        raise QueryError("no column of this release is about single values.", hint="Export wide-csv instead.")
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        pl.DataFrame(records).write_csv(aside / RECORDS)
        pl.concat(parts).write_csv(aside / LIKELIHOOD)
        (aside / SCRIPT).write_text(ESTIMATE, encoding="utf-8")
        sync_directory(aside)
        os.chmod(aside, 0o755)
        publish_directory(aside, target, lambda: not aside.exists())
    finally:
        shutil.rmtree(aside, ignore_errors=True)
