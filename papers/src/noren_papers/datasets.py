"""The tables of the papers: where they lie in a data folder, how to know them, who publishes them, what stands in.

A folder is laid out by relative paths; a file may be packed (.gz) or not. Checksums are of the unpacked content.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from noren.errors import DataError, NorenError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Dataset:
    """One file. `publisher` is where its owners publish the original; `cleaning` what was done to it since."""

    name: str
    path: str
    title: str
    rows: int
    columns: int
    sha256: str
    publisher: str
    cleaning: str = ""
    papers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Used:
    """A table as a figure used it."""

    name: str
    origin: str
    rows: int
    columns: int
    sha256: str
    remark: str = ""


def _listed() -> tuple[Dataset, ...]:
    text = Path(__file__).with_name("datasets.csv").read_text(encoding="utf-8")
    return tuple(
        Dataset(name, path, title, int(rows), int(columns), digest, publisher, cleaning, tuple(papers.split()))
        for name, path, title, rows, columns, digest, publisher, cleaning, papers in csv.reader(text.splitlines()[1:])
    )


DATASETS = _listed()
"""Every file that a paper's experiments read: `datasets.csv`."""

STAND_INS = {
    **dict.fromkeys(("adult", "census income", "occupations"), "people"),
    **dict.fromkeys(("nursery", "car", "cmc", "abalone", "mushroom", "chess"), "uci"),
    "columbia": "symptoms",
    "icd": "icd",
}
"""Modules of `standins`; each has `make(name, rows)`: a seeded table with the columns and the shape of the file."""

BY_NAME = {dataset.name: dataset for dataset in DATASETS}
EXACT, CHANGED, MISSING = "as published", "another version", "missing"


@dataclass(frozen=True)
class Found:
    """What lies in a folder where a data set should be."""

    dataset: Dataset
    state: str
    path: Path | None


def find(folder: Path | None, dataset: Dataset) -> Path | None:
    """The file in the folder, packed or not."""
    if folder is None:
        return None
    plain = folder / dataset.path
    return next((path for path in (plain, plain.with_name(plain.name + ".gz")) if path.is_file()), None)


def survey(folder: Path | None) -> list[Found]:
    """Every data set: as published, in another version, or missing."""
    out = []
    for dataset in DATASETS:
        path = find(folder, dataset)
        if path is None:
            out.append(Found(dataset, MISSING, None))
        else:
            out.append(Found(dataset, EXACT if digest_of(path) == dataset.sha256 else CHANGED, path))
    return out


def digest_of(path: Path) -> str:
    """The checksum of a file's unpacked content."""
    return hashlib.sha256(_unpacked(path)).hexdigest()


def check_folder(folder: Path | None) -> None:
    """A folder that was named must be there: a typing slip must not turn a reproduction into one on stand-ins."""
    if folder is not None and not folder.is_dir():
        raise DataError(
            f"the data folder {folder} does not exist.",
            hint="Leave --data out to run on generated stand-ins; noren datasets tells what a folder holds.",
        )


def load(name: str, folder: Path | None, *, rows: int | None = None) -> tuple[pl.DataFrame, Used]:
    """A table with all columns as text, from the folder or else generated, and a note of which."""
    import polars as pl

    dataset = BY_NAME[name]
    path = find(folder, dataset)
    if path is None:
        make: Callable[[str, int], pl.DataFrame] = import_module(f"noren_papers.standins.{STAND_INS[name]}").make
        frame = make(name, dataset.rows if rows is None else min(rows, dataset.rows))
        remark = f"{dataset.title} is not in the data folder" if folder is not None else "no data folder was given"
        return frame, generated(f"{name} (stand-in)", frame, remark)
    content = _unpacked(path)
    frame = pl.read_csv(io.BytesIO(content), infer_schema_length=0, n_rows=rows).fill_null("")
    digest = hashlib.sha256(content).hexdigest()
    remark = "" if digest == dataset.sha256 else "not the version that the reference figures were made with"
    origin = dataset.path if rows is None else f"{dataset.path}, first {rows:,} rows"
    return frame, Used(name, origin, frame.height, frame.width, digest, remark)


def generated(name: str, frame: pl.DataFrame, remark: str = "") -> Used:
    """A note of a table that a generator made; the checksum is of its CSV form."""
    digest = hashlib.sha256(frame.write_csv().encode()).hexdigest()
    return Used(name, "generated", frame.height, frame.width, digest, remark)


def adult_hierarchy(column: str, folder: Path | None) -> tuple[list[list[str]], Used]:
    """Rows of Adult's hierarchy of a column, leaf first, root last."""
    name = f"adult hierarchy {column}"
    dataset = BY_NAME[name]
    path = find(folder, dataset)
    if path is None:
        from noren_papers.standins.people import hierarchy

        rows = hierarchy(column)
        text = "\n".join(";".join(row) for row in rows)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return rows, Used(f"{name} (stand-in)", "generated", len(rows), len(rows[0]), digest)
    content = _unpacked(path)
    rows = [line.split(";") for line in content.decode("utf-8-sig").splitlines() if line]
    return rows, Used(name, dataset.path, len(rows), len(rows[0]), hashlib.sha256(content).hexdigest())


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            return gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise NorenError(f"{path} is not a whole gzip file.", hint="Fetch it again.") from error
    return content
