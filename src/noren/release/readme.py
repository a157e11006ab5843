"""The README of a release: contents, meaning of the cells, and how to read it in Python, R and SQL.

It says nothing that the manifest does not say. Names that a holder chose are quoted as code: nothing in them runs or
looks like part of the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from noren.release.manifest import Manifest
from noren.statements import Statement
from noren.statements.set import NUMBERS, SET_KEY, SETS

README = "README.md"
PAGE = """\
# {title}

A table about people, published so that what "What holds" lists is true of it. It was made with Noren {version} and
holds {records:,} records{who}.

| file | what it is |
| --- | --- |
{files}

## The columns

| column | in the file | published |
| --- | --- | --- |
{columns}

{meaning}

{told}## What holds

| requirement | columns | asked | checked |
| --- | --- | --- | --- |
{verdicts}
{mechanism}
Anybody can check this again: `noren verify .`
{signed}

## Reading it

Python, with estimates that allow for how the table was made:

```python
import noren as nr

release = nr.open_release(".")
release.estimate([{first}])  # counts with intervals
release.frame()  # the cells, as a Polars frame
```

Python without Noren: `{polars}`

R: `{r}`

SQL, for example in DuckDB: `{sql}`
"""

SIGNED = "It is signed: with the holder's public key, `noren verify . --signer KEY.pub` tells whether it is theirs."
IGNORED = (
    'The policy says `mechanism = "ignored"`: what holds is said of the cells. Somebody who knows the method and who '
    "is in the table may learn more, up to somebody's secret."
)
UNSIGNED = "It is not signed: its checksums tell damage, and nothing about its maker."


def code(text: str) -> str:
    """Return a name as a safe Markdown code span."""
    shown = text if text.isprintable() else json.dumps(text)
    shown = re.sub(r"\s+", " ", shown).replace("`", "'").replace("|", "\\|")
    return f"`{shown}`" if shown.strip() else "`(blank)`"


def readme(
    manifest: Manifest, data: str, sides: Sequence[tuple[str, str]], titles: Mapping[str, str], signed: bool = False
) -> str:
    """Return the README of a release in a file, with its side tables."""
    files = [("datapackage.json", "the description for programs: columns, values, requirements, checksums")]
    files += [(data, "the records"), *sides]
    files += [("datapackage.sig", "the holder's signature over datapackage.json")] if signed else []
    return PAGE.format(
        title=code(manifest.title) if manifest.title else "A release",
        version=re.sub(r"[^\w.+-]", "", manifest.noren)[:40],
        records=manifest.records,
        who=_who(manifest),
        files="\n".join(f"| `{name}` | {text} |" for name, text in files),
        columns="\n".join(
            f"| {code(one.name)} | {code(titles[one.name])} | {_cell(one.description)} |" for one in manifest.columns
        ),
        meaning=_meaning(manifest.columns, data, manifest.weight),
        told=_design_words(manifest.columns) + _margins(manifest),
        verdicts="\n".join(
            f"| {code(one.model)} | {code(one.column)} | {one.required:g} | {'holds' if one.holds else 'fails'} |"
            for one in manifest.verdicts
        )
        or "| none | | | |",
        mechanism="" if manifest.mechanism is None else f"\n{IGNORED}\n",
        first=json.dumps(manifest.columns[0].name) if manifest.columns else "",
        signed=SIGNED if signed else UNSIGNED,
        **_commands(data, {one.name: titles[one.name] for one in manifest.columns if one.side == SETS}),
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _who(manifest: Manifest) -> str:
    several = "several" if manifest.most_rows is None else f"up to {manifest.most_rows}"
    out = "" if manifest.rows_are_people else f"; a person may have {several}"
    if manifest.suppressed:
        out += f"; {manifest.suppressed:,} people were left out to protect the others"
    return out


def _meaning(columns: Sequence[Statement], data: str, weight: str | None = None) -> str:
    """Return what a reader must know before counting anything."""
    out = ["Do not count cells as if they were the truth."]
    if weight is not None:
        out.append(f"In {code(weight)} stands how many people of the population a record stands for: weigh by it.")
    if any(one.design is not None for one in columns):
        way = "a JSON array" if data.endswith(".csv") else "a list"
        numbered = any(one.side == SETS for one in columns)
        way = f"a number, under which `{SETS}.parquet` has the list" if numbered else way
        out.append(f"A set ({way}) holds values of which one may be true; the others were drawn by chance.")
    for one in columns:
        if not one.column.is_open and one.domain.made_of:
            members = ", ".join(map(code, one.domain.made_of))
            out.append(f"The values of {code(one.name)} are tuples of {members}, in this order, with bars between.")
    if any(one.nodes is not None for one in columns):
        out.append("A general value such as `[20, 40)` or `130**` stands for every value inside it.")
    if any(one.is_class for one in columns):
        out.append("A group is a number without a meaning of its own: its table says which values it holds how often.")
    if fakes := sum(one.fake_entries for one in columns):
        out.append(
            f"{fakes:,} entries of those tables are counterfeits, which are nobody's: the manifest says how many every "
            "group has, and its records are as many fewer."
        )
    return " ".join(out) if len(out) > 1 else "The cells are as the table above says."


def _design_words(columns: Sequence[Statement]) -> str:
    """Return what the parameters of designs disclose."""
    found = [f"{code(one.name)}: {one.design.tells}." for one in columns if one.design is not None and one.design.tells]
    return f"What the published parameters tell: {' '.join(found)}\n\n" if found else ""


def _margins(manifest: Manifest) -> str:
    """Return which counts were published with noise, and their epsilon."""
    if not manifest.margins:
        return ""
    tables = "; ".join(
        f"{' x '.join(map(code, one.of))} (epsilon {one.epsilon:g}, scale {one.scale:.4g})" for one in manifest.margins
    )
    return (
        f"Counts with noise stand in `datapackage.json` under `noren.margins`: {tables}. They spend epsilon = "
        f"{manifest.spent:g} of everybody's budget (central differential privacy, one person replaced by another), "
        "beside what the cells tell; Noren's estimates use them.\n\n"
    )


def _commands(data: str, numbered: Mapping[str, str]) -> dict[str, str]:
    """Return how to read the data without Noren, with the lists of numbered sets. `numbered` are the columns that hold
    numbers, with their titles, which are their names up to format 4."""
    if numbered:
        sets = f"{SETS}.parquet"
        plain = next((name for name in numbered if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name)), "COLUMN")
        read = f'import polars as pl; data, sets = pl.read_parquet("{data}"), pl.read_parquet("{sets}"); '
        gather = "data.with_columns(sets[name].gather(data[name]) for name in sets.columns[1:])"
        number = "[[name]]"
        ending = ""
        if any(name != title for name, title in numbered.items()):
            read += f'names = {{name + "{NUMBERS}": name for name in sets.columns[1:]}}; '
            gather = "data.with_columns(sets[name].gather(data[key]).alias(key) for key, name in names.items())"
            ending = NUMBERS
            gather, number = f"{gather}.rename(names)", f'[[paste0(name, "{NUMBERS}")]]'
        return {
            "polars": read + gather,
            "r": (
                f"data <- {_read_in_r(data)}; "
                f'sets <- arrow::read_parquet("{sets}"); '
                f"for (name in names(sets)[-1]) data[[name]] <- sets[[name]][data{number} + 1]"
            ),
            "sql": (
                f"SELECT sets.\"{plain}\" FROM '{data}' AS data JOIN '{sets}' AS sets "
                f'ON data."{plain}{ending}" = sets.{SET_KEY} LIMIT 10;'
            ),
        }
    if data.endswith(".csv"):
        return {
            "polars": f'import polars as pl; pl.read_csv("{data}")',
            "r": f'read.csv("{data}", check.names = FALSE)',
            "sql": f"SELECT * FROM read_csv('{data}') LIMIT 10;",
        }
    return {
        "polars": f'import polars as pl; pl.read_parquet("{data}")',
        "r": _read_in_r(data),
        "sql": f"SELECT * FROM '{data}' LIMIT 10;",
    }


def _read_in_r(data: str) -> str:
    several = "*" in data
    return f'as.data.frame(arrow::open_dataset(Sys.glob("{data}")))' if several else f'arrow::read_parquet("{data}")'
