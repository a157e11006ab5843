"""A release for tools that do not know sets: plausible complete tables, or one column for every statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noren.errors import DataError, QueryError
from noren.files import publish_file, refuse_target, write_whole
from noren.release.release import Release
from noren.statements import Statement

if TYPE_CHECKING:
    import polars as pl

FORMS = {
    "imputed-csv": "plausible complete tables, one below the other; for any tool, not for inference",
    "wide-csv": "what was published, one 0/1 column for each possible value of a set; nothing is lost or guessed",
    "stata": "plausible complete tables as a .dta file in Stata's flong form (mi import flong); not for inference",
    "spss": "plausible complete tables as a .sav file with the variable imputation_; not for inference",
}
"""What a release can be exported as, and what each is good for."""
LABEL, HOLDS = "not for inference", "inference on one and two columns holds"
"""What the tables are called where records tell little, and where they tell enough of every two columns."""
SUFFIXES = {"imputed-csv": ".csv", "wide-csv": ".csv", "stata": ".dta", "spss": ".sav"}
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
    progress: Callable[[int], None] | None = None,
) -> str:
    """Write the release in a form that other tools read. Returns what it is good for."""
    target = Path(to)
    if form not in FORMS:
        raise QueryError(f"nothing is exported as {form!r}.", hint=f"Known: {', '.join(FORMS)}.")
    if target.suffix.lower() != SUFFIXES[form]:
        raise DataError(f"{target}: {form} is written to a {SUFFIXES[form]} file.", hint="Choose such a name.")
    refuse_target(target)
    if form == "wide-csv":
        write_whole(target, _guarded(wide(release)).write_csv().encode())
        return FORMS[form]
    made = release.impute(m, seed=seed, progress=progress)
    if form == "imputed-csv":
        write_whole(target, _guarded(made.frame).write_csv().encode())
    else:
        _statistical(target, form, made.tables)
    return FORMS[form].replace(LABEL, HOLDS) if made.holds else FORMS[form]


def wide(release: Release) -> pl.DataFrame:
    """What was published with one 0/1 column for every value that a set may hold: "job=cook"."""
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
        held = _held(release, statement, cells)
        for place, value in enumerate(values):
            out.append(held(place).alias(_free(f"{statement.name}={value}", taken)))
            taken.add(out[-1].name)
    return pl.DataFrame(out)


def _held(release: Release, statement: Statement, cells: pl.Series) -> Callable[[int], pl.Series]:
    """Whether each cell holds the value at a place of its domain. Sets are asked by code: a number, a date and a
    missing value have no one text in a frame."""
    import polars as pl

    if statement.terms is not None:
        texts, terms = cells.cast(pl.List(pl.String)), statement.terms
        return lambda place: texts.list.contains(terms[place]).cast(pl.Int8)
    codes = statement.members(release.cells([statement.name])[statement.name])
    return lambda place: pl.Series((codes == place).any(axis=1).astype("int8"))


def _free(name: str, taken: Collection[str]) -> str:
    """The name, with underscores until it is not taken."""
    while name in taken:
        name += "_"
    return name


def _guarded(frame: pl.DataFrame) -> pl.DataFrame:
    """Texts that a spreadsheet would run stand behind an apostrophe; lists are joined."""
    import polars as pl

    from noren.statements.texts import guarded, guarded_text

    parts = []
    for column in frame:
        flat = column.cast(pl.List(pl.String)).list.join(";") if column.dtype == pl.List else column
        text = pl.from_arrow(guarded(flat.to_arrow(compat_level=pl.CompatLevel.oldest())))
        assert isinstance(text, pl.Series)
        parts.append(text.alias(guarded_text(column.name)))
    return pl.DataFrame(parts)


def _statistical(target: Path, form: str, tables: Any) -> None:
    """Stata keeps the incomplete table as number 0, which here has nothing; SPSS numbers tables from 1."""
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
        titles = {name: _free(name, {*ids, *table.columns}) for name in table.columns if name in ids}
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
    """Names that both programs accept: letters, digits, underscores, 32 characters, no word of their languages; made
    different from each other and from those `taken` by numbers."""
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
