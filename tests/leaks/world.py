"""A table whose private parts are easy to recognise, ways to release it, and bounds for what chance may do."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
from scipy import stats

import noren as nr
from noren.engines import shuffle

ALPHA = 1e-9
"""Chance that a test of randomness fails although everything is as it should be."""

JOBS = ("Baker", "Clerk", "Miner", "Nurse", "Pilot", "Tutor")
ILLS = ("Angina", "Asthma", "Burn", "Cold", "Flu", "Gout", "Measles", "Ulcer")
WARDS = ("Wardqueen-East", "Wardqueen-West", "Wardking-North")
HELD = {"manifest", "path", "statements", "store", "records", "suppressed", "title", "by_name"}
"""Everything that a release in memory consists of."""
IDENTIFIERS = ("ward", "full name", "insurance_no")

POLICY = """\
title = "People"

[attributes]
insurance_no = { role = "identifier" }
"full name" = { role = "identifier" }
ward = { role = "identifier" }
row = { role = "plain" }
zip = { role = "quasi-identifier" }
age = { role = "sensitive-quasi-identifier", bins = [0, 30, 60, 120] }
job = { role = "sensitive-quasi-identifier" }
ill = { role = "sensitive", hierarchy = "hidden-tree.csv", distance = "tree" }

[[require]]
model = "frequency-l-diversity"
on = ["age", "job"]
l = 2

[[require]]
model = "frequency-l-diversity"
on = "ill"
l = 3
"""
MEMOISED = """
[randomness]
record_key = "full name"
secret = "deep-secret.key"
"""
TREE = "".join(f"{ill};{'Chest' if ill in ('Angina', 'Asthma', 'Cold', 'Flu') else 'Elsewhere'};*\n" for ill in ILLS)


@functools.cache
def people(n: int = 600, seed: int = 7) -> pa.Table:
    """n persons with three identifying columns, their row number, and four things about them."""
    rng = np.random.default_rng(seed)
    letters = rng.integers(0, 26, (n, 12)) + ord("a")
    return pa.table(
        {
            "insurance_no": pa.array(rng.choice(9 * 10**14, n, replace=False) + 10**14),
            "full name": ["Qz" + bytes(row.tolist()).decode() for row in letters],
            "ward": rng.choice(WARDS, n).tolist(),
            "row": pa.array(np.arange(n)),
            "zip": rng.choice(["01001", "01008", "52701"], n).tolist(),
            "age": pa.array(rng.integers(0, 100, n)),
            "job": rng.choice(JOBS, n, p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05]).tolist(),
            "ill": rng.choice(ILLS, n).tolist(),
        }
    )


def holder(folder: Path, table: pa.Table | None = None, *, memoised: bool = False) -> tuple[Path, Path]:
    """The holder's files: the original as CSV, the policy, the tree and, where asked for, the secret."""
    folder.mkdir(parents=True, exist_ok=True)
    data, policy = folder / "very-private-original.csv", folder / "unseen-policy.toml"
    pv.write_csv(people() if table is None else table, data)
    policy.write_text(POLICY + (MEMOISED if memoised else ""), encoding="utf-8")
    (folder / "hidden-tree.csv").write_text(TREE, encoding="utf-8")
    if memoised and not (folder / "deep-secret.key").exists():
        nr.Secret.create(folder / "deep-secret.key")
    return data, policy


def use_buckets(monkeypatch, rows_per_bucket: int = 50) -> None:
    """Send even small tables through buckets on disk."""
    monkeypatch.setattr(shuffle, "MEMORY_BYTES", 0)
    monkeypatch.setattr(shuffle, "BUCKET_BYTES", rows_per_bucket)


def use_small_batches(monkeypatch, rows: int) -> None:
    """Read frames and Parquet files in many batches."""
    import noren.sources.arrow

    monkeypatch.setattr(noren.sources.arrow, "BATCH_ROWS", rows)


def make_release(way: str, folder: Path, monkeypatch) -> Path:
    """A release directory made in one of the ways there are."""
    data, policy = holder(folder / "holder", memoised=way == "memoised")
    target = folder / "public" / "release"
    if way == "buckets":
        use_buckets(monkeypatch)
    if way == "saved":
        nr.anonymize(data, policy).save(target)
    else:
        nr.anonymize(data, policy, to=target, file_format="csv" if way == "csv" else "parquet")
    return target


WAYS = ("streamed", "csv", "memoised", "saved", "buckets")


def everything(directory: Path) -> tuple[bytes, str]:
    """All bytes of all files of a release, and as text whatever a Parquet file holds behind compression."""
    raw, texts = [], []
    for path in sorted(directory.rglob("*")):
        raw.append(path.name.encode())
        if path.is_file():
            raw.append(path.read_bytes())
        if path.suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                texts += [str(file.schema), str(file.schema_arrow), str(file.metadata.metadata)]
                texts += [str(file.metadata.row_group(i).to_dict()) for i in range(file.metadata.num_row_groups)]
                texts += [str(file.read(columns=[name]).to_pydict()) for name in file.schema_arrow.names]
    return b"\0".join(raw), "\0".join(texts)


def binomial_bounds(n: int, p: float, tests: int = 1) -> tuple[float, float]:
    """Exact bounds that all of `tests` binomial counts keep, but for a chance below ALPHA."""
    low, high = stats.binom.ppf([ALPHA / (2 * tests), 1 - ALPHA / (2 * tests)], n, p)
    return float(low), float(high)


def linked(release: nr.Release, original: pa.Table, column: str) -> pl.DataFrame:
    """Published sets beside the truth, joined over the exact row number: what an outsider must not be able to do."""
    left = release.frame().select("row", pl.col(column).alias("set"))
    right = pl.DataFrame({"row": original["row"].to_numpy(), "truth": original[column].to_pylist()})
    return left.join(right, on="row", how="inner", validate="1:1")
