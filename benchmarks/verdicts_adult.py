"""What it costs on Adult to judge replays of the method and all rows of a person together: NCP and query error.

    python benchmarks/verdicts_adult.py --data DIR [--records 45222]

DIR holds adult.csv.gz. Seven quasi-identifiers, occupation is the secret, k = 5 and frequency l = 2 and 3. "people":
a third of the records, each seen three times, a year older each time; occupation stays.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import polars as pl

import noren as nr
from noren.methods.candidates import count_query_loss
from noren.metrics.general import view_of
from noren.workflow.anonymize import run

QUASI = ("age", "sex", "race", "marital-status", "education", "native-country", "workclass")
JUDGED: dict[str, Any] = {}
IGNORED = {"mechanism": "ignored"}
RUNS: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("judged", "hilbert", JUDGED),
    ("ignored", {"name": "hilbert", "blind": False}, IGNORED),
    ("judged", "mondrian", JUDGED),
    ("ignored", "mondrian", IGNORED),
    ("judged", "auto", JUDGED),
    ("ignored", "auto", IGNORED),
    ("judged", "three-phase", JUDGED),
    ("ignored", "three-phase", IGNORED),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--records", type=int, default=45_222)
    given = parser.parse_args()
    table = pl.read_csv(given.data / "adult.csv.gz").select(*QUASI, "occupation").head(given.records)
    print(
        "| l | table | method | mechanism, rows | NCP | query error | s |\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    for least in (2, 3):
        for title, method, more in RUNS:
            show(f"| {least} | people with one row | {named(method)} | {title}", table, least, method, more)
        for title, people in (("by rows", {"rows": "independent"}), ("by people", {"key": "who"})):
            for method in ("hilbert", "mondrian"):
                more = {"people": people}
                show(f"| {least} | people with three rows | `{method}` | {title}", visits(table), least, method, more)


def named(method: Any) -> str:
    return f"`{method}`" if isinstance(method, str) else "`hilbert`, `blind = false`"


def visits(table: pl.DataFrame) -> pl.DataFrame:
    """A third of the records, each seen three times, a year older each time."""
    some = table.gather_every(3).with_row_index("who")
    return pl.concat([some.with_columns(pl.col("age") + nth) for nth in range(3)])


def show(line: str, table: pl.DataFrame, least: int, method: Any, more: dict[str, Any]) -> None:
    """Print the losses of one release, or that it is refused."""
    roles = {name: "identifier" if name == "who" else "quasi-identifier" for name in table.columns}
    asked = [nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on="occupation", l=least)]
    policy = nr.Policy(attributes={**roles, "occupation": "sensitive"}, require=asked, method=method, **more)
    started = time.perf_counter()
    try:
        facts = run(table, policy).facts
    except nr.errors.RequirementNotMet:
        print(f"{line} | refused | | |", flush=True)
        return
    spent = time.perf_counter() - started
    records = facts.table.records
    error = count_query_loss(records, view_of(records, facts.plan))
    print(f"{line} | {facts.losses['ncp_loss']:.3f} | {error:.3f} | {spent:.0f} |", flush=True)


if __name__ == "__main__":
    main()
