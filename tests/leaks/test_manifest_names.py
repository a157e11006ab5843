"""No file of a release names a value that the policy does not declare and that no published cell shows.

Every byte of every file is searched for the original's values, for every method of the registry, with hierarchies
given as a rule, as a file or not at all, for numbers, dates and texts, in CSV and in Parquet.
"""

from __future__ import annotations

import csv
import functools
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import noren as nr
from noren.methods import METHODS
from tests.leaks.world import everything

N = 120
OUTLIERS = {"pay": 999_983, "born": "1899-12-31", "rate": 8123.46513, "town": "Zzyzx-Springs", "code": "99731"}
"""What one person has, far from everybody else."""
HIERARCHIES = ("rule", "file", "none")
RULES: dict[str, Any] = {
    "pay": {"widths": [50_000, 100_000]},
    "born": {"calendar": ["year", "decade"]},
    "rate": {"quantiles": [4, 2]},
    "town": {"frequency": [8, 40]},
    "code": {"prefix": [2, 1]},
}
ILLS = ("Angina", "Burn", "Cold", "Flu", "Gout", "Measles")
TERMS = "label,term\nA,cough\nA,fever\nB,cough\nB,rash\nC,fever\nC,rash\n"


@functools.cache
def people() -> pl.DataFrame:
    """People of whom nearly everybody has values of their own."""
    rng = np.random.default_rng(11)
    letters = rng.integers(0, 26, (N, 9)) + ord("a")
    days = rng.integers(0, 20_000, N)
    table = pl.DataFrame(
        {
            "pay": rng.choice(np.arange(100_001, 200_000, 7), N, replace=False),
            "born": [str(np.datetime64("1940-01-01") + int(day)) for day in days],
            "rate": np.round(rng.uniform(10, 900, N), 5),
            "town": [bytes(row.tolist()).decode().capitalize() if i % 3 else "Ulm" for i, row in enumerate(letters)],
            "code": [f"{number:05}" for number in rng.integers(1_000, 80_000, N)],
            "ill": rng.choice(ILLS, N),
            "signs": rng.choice(["cough;fever", "rash", "fever", "cough;rash"], N),
        }
    )
    odd = pl.DataFrame({**{name: [value] for name, value in OUTLIERS.items()}, "ill": ["Flu"], "signs": ["rash"]})
    return pl.concat([table, odd])


def declared_tree(name: str) -> list[list[str]]:
    """A file hierarchy over the column's values: the policy declares them all."""
    values = sorted({str(value) for value in people()[name].to_list()})
    return [[value, f"{name}-{place % 3}", "*"] for place, value in enumerate(values)]


def policy_of(method: str, given: str, folder: Path) -> nr.Policy:
    attributes: dict[str, Any] = {}
    for name in OUTLIERS:
        attributes[name] = {"role": "quasi-identifier"}
        if name == "born":
            attributes[name]["kind"] = "date"
        if given == "rule":
            attributes[name]["hierarchy"] = RULES[name]
        if given == "file":
            rows = "".join(";".join(row) + "\n" for row in declared_tree(name))
            (folder / f"{name}.csv").write_text(rows, encoding="utf-8")
            attributes[name]["hierarchy"] = str(folder / f"{name}.csv")
    asked: list[Any] = [nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on="ill", l=2)]
    if method in ("decoys", "pram"):
        asked = [nr.models.FrequencyLDiversity(on="ill", l=2)]
    if method == "pram":
        asked = [nr.models.TCloseness(on="ill", t=0.3)]
    if method in ("anatomy", "rating"):
        asked = asked[1:]
    attributes["ill"] = "sensitive"
    attributes["signs"] = "identifier"
    if method == "suppress":
        (folder / "terms.csv").write_text(TERMS)
        attributes["signs"] = {"role": "quasi-sensitive", "separator": ";", "knowledge": str(folder / "terms.csv")}
        attributes["ill"] = "identifier"
        asked = [nr.models.KAnonymity(k=5), nr.models.QSDiversity(on="signs", l=2, c=4)]
    return nr.Policy(mechanism="ignored", attributes=attributes, require=asked, method=method, dependence={"most": 1.0})


def shown(directory: Path) -> str:
    """The texts of all cells of the data and the side tables."""
    out = []
    for path in directory.iterdir():
        if path.suffix not in (".csv", ".parquet"):
            continue
        if path.suffix == ".csv":
            with path.open(newline="", encoding="utf-8") as file:
                out += [cell for row in csv.reader(file) for cell in row]
            continue
        out += [str(cell) for column in pq.read_table(path).columns for cell in column.to_pylist()]
    return "\0".join(out)


PLACES = r"'(?:\w+_offset|\w+_size|num_\w+)': \d+"
"""Where the parts of a Parquet file lie, and how many."""


def readable(directory: Path) -> bytes:
    """All bytes but compressed cells (`everything` has their text), checksums and sizes of files: there, five digits
    stand by chance in one release of some hundred."""
    out = []
    for path in sorted(directory.rglob("*")):
        if not path.is_file():
            continue
        raw = path.read_bytes()
        if path.suffix == ".parquet":
            raw = raw[-8 - int.from_bytes(raw[-8:-4], "little") :]  # the footer is not compressed
        out.append(raw)
    return re.sub(rb'[0-9a-f]{64}|"bytes": \d+', b"", b"\0".join(out))


def stands_in(value: str, raw: bytes, plain: bytes, text: str) -> bool:
    """Whether some file holds a value; a number not as digits of a longer one, nor as decimals."""
    if not value.isdigit():
        return value.encode() in raw or value in text
    whole = rf"(?<![\d.]){value}(?!\d)"
    return re.search(whole.encode(), plain) is not None or re.search(whole, text) is not None


def undeclared(directory: Path, given: str) -> dict[str, list[str]]:
    """Values of the original, by column, that some file holds although nothing shows or declares them."""
    raw, text = everything(directory)
    plain, text = readable(directory), re.sub(PLACES, "", text)
    cells = shown(directory)
    out: dict[str, list[str]] = {}
    for name in (*OUTLIERS, "signs"):
        if given == "file" and name in OUTLIERS:
            continue
        values = {str(value) for value in people()[name].to_list()} - {"Ulm"}
        if name == "signs":
            values = {value for value in values if ";" in value}
        found = [v for v in sorted(values) if stands_in(v, raw, plain, text) and v not in cells]
        if found:
            out[name] = found
    return out


def released(method: str, given: str, form: str, folder: Path) -> Path:
    policy = policy_of(method, given, folder)
    nr.anonymize(people(), policy, to=folder / "release", file_format=form)
    return folder / "release"


@pytest.mark.parametrize("given", HIERARCHIES)
@pytest.mark.parametrize("method", METHODS)
def test_no_file_names_what_nothing_shows(method: str, given: str, tmp_path: Path) -> None:
    forms = ("parquet", "csv") if given == "rule" else ("parquet",)
    for form in forms:
        folder = tmp_path / form
        folder.mkdir()
        directory = released(method, given, form, folder)
        assert undeclared(directory, given) == {}
        assert not any(verdict.holds is False for verdict in nr.verify(directory))
