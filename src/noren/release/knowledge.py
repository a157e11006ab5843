"""The knowledge tables of a release: label, term, and what else the linking rests on, one file per table.

They are public by assumption: whoever wants to check what the terms of a release reveal needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from noren.errors import DataError, ReleaseError
from noren.release.groups import guarded_table, read_columns
from noren.release.manifest import ColumnEntry
from noren.schema.knowledge import Knowledge, KnowledgeError

COLUMNS = ("label", "term", "weight", "prior")


def knowledge_path(directory: Path, number: int, suffix: str) -> Path:
    return directory / f"knowledge-{number}{suffix}"


def write_knowledge(
    directory: Path, columns: Iterable[ColumnEntry], tables: Mapping[str, Knowledge], suffix: str
) -> None:
    """Write every knowledge table once."""
    for number, names in numbered(columns).items():
        _write(knowledge_path(directory, number, suffix), tables[names[0].name])


def numbered(columns: Iterable[ColumnEntry]) -> dict[int, list[ColumnEntry]]:
    """The columns of every knowledge table, by its number."""
    out: dict[int, list[ColumnEntry]] = {}
    for entry in columns:
        if entry.knowledge is not None:
            out.setdefault(entry.knowledge, []).append(entry)
    return dict(sorted(out.items()))


def rows(knowledge: Knowledge) -> dict[str, list[Any]]:
    """The table line by line; a label without terms has one line with an empty term."""
    sizes = np.diff(knowledge.bounds)
    owner = np.repeat(np.arange(len(sizes)), np.maximum(sizes, 1))
    bare = np.repeat(sizes == 0, np.maximum(sizes, 1))
    code = np.zeros(len(owner), np.int64)
    code[~bare] = knowledge.codes
    numbers = {"weight": knowledge.weights, "prior": knowledge.priors}
    out: dict[str, list[Any]] = {
        "label": [knowledge.labels[i] for i in owner.tolist()],
        "term": [None if none else knowledge.terms[c] for none, c in zip(bare.tolist(), code.tolist(), strict=True)],
    }
    return out | {name: found[owner].tolist() for name, found in numbers.items() if found is not None}


def knowledge_numbers(path: Path) -> list[str]:
    """Which of weight and prior a written table has."""
    return [name for name in COLUMNS[2:] if name in read_columns(path, COLUMNS)]


def _write(path: Path, knowledge: Knowledge) -> None:
    import pyarrow as pa

    table = pa.table(rows(knowledge))
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path, compression="zstd", store_schema=False)
    else:
        import pyarrow.csv as pv

        pv.write_csv(guarded_table(table), path, pv.WriteOptions(quoting_style="needed"))


def read_knowledge(
    directory: Path, columns: Iterable[ColumnEntry], suffix: str, escaped: bool = True
) -> dict[str, Knowledge]:
    """The knowledge of every column of terms; one object for columns that share a table."""
    out: dict[str, Knowledge] = {}
    for number, entries in numbered(columns).items():
        path = knowledge_path(directory, number, suffix)
        found = _read(path, escaped)
        out |= {entry.name: found for entry in entries}
    return out


def _read(path: Path, escaped: bool) -> Knowledge:
    import pyarrow as pa

    try:
        columns = read_columns(path, COLUMNS, escaped)
        label, term = (columns[name].cast(pa.string()).to_pylist() for name in COLUMNS[:2])
        if None in label:
            raise _damaged(path)
        extras = {
            name: _one_each(label, columns[name].cast(pa.float64()).to_pylist())
            for name in COLUMNS[2:]
            if name in columns
        }
        pairs = zip(label, (text or "" for text in term), strict=True)
        return Knowledge.from_pairs(pairs, weights=extras.get("weight"), priors=extras.get("prior"))
    except (pa.ArrowException, DataError, KnowledgeError, KeyError, ValueError, TypeError, OSError):
        raise _damaged(path) from None


def _one_each(labels: list[str], numbers: list[float]) -> dict[str, float]:
    """The number of every label, which all of its lines repeat."""
    out = dict(zip(labels, numbers, strict=True))
    if any(out[label] != number for label, number in zip(labels, numbers, strict=True)):
        raise ValueError("a label has two numbers")
    return out


def _damaged(path: Path) -> ReleaseError:
    return ReleaseError(f"{path}: not a knowledge table of the release.", hint="Ask for the release again.")
