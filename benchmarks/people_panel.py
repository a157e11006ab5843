"""What it costs that all rows of a person are read together, on generated people who are seen several times.

    python benchmarks/people_panel.py [--people 3000]

k = 5 and frequency and distinct l = 3. "rows" takes every row for a person of its own; how many people somebody who
knows all their rows then leaves with fewer than 3 illnesses, or with fewer than 5 people they could be, is what
`noren verify --original` says under the key. "people" is the release with `[people] key`.
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl

import noren as nr
from noren.workflow.anonymize import run

METHODS = ("mondrian", "hilbert", "three-phase", "sweep", "incognito", "microaggregation")
ROLES = {"who": "identifier"} | dict.fromkeys(("age", "weight", "region"), "quasi-identifier") | {"ill": "sensitive"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=3000)
    people = parser.parse_args().people
    print("| rows of a person | method | NCP: rows, people | fewer than 3 illnesses, fewer than 5 people: rows |")
    print("| --- | --- | --- | --- |")
    for title, rows in {"4": 4, "1 to 7": np.random.default_rng(3).integers(1, 8, people)}.items():
        data = panel(people, rows)
        for method in METHODS:
            print(f"| {title} | `{method}` | {compared(data, method)} |", flush=True)


def compared(data: pl.DataFrame, method: str) -> str:
    """The losses of both, and whom the first one exposes."""
    asked = [{"model": "k-anonymity", "k": 5}, {"model": "frequency-l-diversity", "on": "ill", "l": 3}]
    asked += [] if method == "sweep" else [{"model": "distinct-l-diversity", "on": "ill", "l": 3}]
    of_people, of_rows = (
        nr.Policy(attributes=ROLES, require=asked, method=method, people=people, mechanism="ignored")
        for people in ({"key": "who"}, {"rows": "independent"})
    )
    by_rows, by_people = run(data, of_rows), run(data, of_people)
    diverse = nr.models.DistinctLDiversity(on="ill", l=3)
    judge = nr.Policy(
        attributes=ROLES, require=[of_people.require[0], diverse], method="mondrian", people={"key": "who"}
    )
    found = {one.model: one.breaches for one in nr.verify(by_rows.release, judge, original=data)}
    losses = [f"{one.facts.losses['ncp_loss']:.3f}" for one in (by_rows, by_people)]
    return f"{', '.join(losses)} | {found['distinct-l-diversity']:,}, {found['k-anonymity']:,}"


def panel(people: int, rows: int | np.ndarray) -> pl.DataFrame:
    """Everybody a year older at each visit, a little heavier or lighter, in ten of a hundred visits elsewhere."""
    rng = np.random.default_rng(7)
    who = np.repeat(np.arange(people), rows)
    nth = np.arange(len(who)) - np.searchsorted(who, who)
    region = np.where(rng.random(len(who)) < 0.1, rng.integers(0, 8, len(who)), rng.integers(0, 8, people)[who])
    shares = np.arange(18, 4, -1) / np.arange(18, 4, -1).sum()
    columns = {
        "who": who,
        "age": rng.integers(20, 80, people)[who] + nth,
        "weight": rng.integers(45, 110, people)[who] + rng.integers(-3, 4, len(who)),
        "region": [f"r{x}" for x in region],
        "ill": [f"i{x}" for x in rng.choice(14, people, p=shares)[who]],
    }
    return pl.DataFrame(columns)


if __name__ == "__main__":
    main()
