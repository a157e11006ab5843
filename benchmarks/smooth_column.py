"""One drawn column of few records whose values are ordered: what smoothing along them changes.

For every column of a table that is named, sets drawn anew from a random sample: the geometric mean, the worst tenth and
the worst of L1(default) / L1(default without smoothing). Without a table, generated shapes over 8 to 40 ordered values.

    python benchmarks/smooth_column.py --records 500 --tables 40
    python benchmarks/smooth_column.py --table FILE.csv --columns age hours-per-week
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl

from low_signal import draw
from noren.designs import DecoyDesign
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.fit import fit
from noren.estimates.counts.frame import prepare
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import SetStatement

Codes = np.ndarray


def shape(rng: np.random.Generator, kind: str, d: int) -> np.ndarray:
    """Shapes that no constant was chosen on."""
    place = (np.arange(d) + 0.5) / d
    if kind == "gamma":
        found = place ** rng.uniform(0.5, 3) * np.exp(-rng.uniform(4, 10) * place)
    elif kind == "triangle":
        top = rng.uniform(0.1, 0.9)
        found = np.where(place < top, place / top, (1 - place) / (1 - top))
    elif kind == "waves":
        found = 1.2 + np.sin(place * rng.uniform(10, 40))
    elif kind == "one spike":
        found = np.full(d, 0.5 / d)
        found[rng.integers(d)] += 0.5
    elif kind == "every other":
        found = np.where(np.arange(d) % 2 == 0, 3.0, 1.0)
    else:  # cut off: a line that ends
        found = np.where(place < rng.uniform(0.3, 0.8), 1.0 + place, 0.01)
    return found / found.sum()


SHAPES = ("gamma", "triangle", "waves", "one spike", "every other", "cut off")


def ratio(rng: np.random.Generator, codes: Codes, column: Column) -> float | None:
    """L1 with smoothing over L1 without, sets drawn by a random design; None where nothing is drawn to even."""
    d, n = len(column.domain), len(codes)
    design = DecoyDesign(d=d, eta=int(rng.integers(2, max(3, d // 2 + 1))), p=float(rng.choice([1.0, 0.6, 0.3])))
    axis = Axis("column", SetStatement(column, design), draw(rng, codes, design).cells)
    with patch("noren.estimates.counts.fit.smoothing_kernels", return_value=[]):
        before = fit(prepare([axis]))
    if before.maximum is None:
        return None
    truth = np.bincount(codes, minlength=d)
    after = fit(prepare([axis])).table.ravel()
    return float(np.abs(after - truth).sum() / max(np.abs(before.table.ravel() - truth).sum(), 1e-9)) if n else None


def told(name: str, one: Callable[[], float | None], tables: int) -> None:
    found: list[float] = []
    for _ in range(20 * tables):
        if len(found) < tables and (value := one()) is not None:
            found.append(value)
    ordered = np.sort(found)
    if len(ordered):
        print(
            f"{name}: {np.exp(np.log(ordered).mean()):.3f}, tenth worst {ordered[-max(1, len(ordered) // 10)]:.2f}, "
            f"worst {ordered[-1]:.2f}, {len(ordered)} tables",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, help="A CSV file with a header.")
    parser.add_argument("--columns", nargs="+", default=[])
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    if args.table is None:
        for kind in SHAPES:

            def generated(kind: str = kind) -> float | None:
                d = int(rng.integers(8, 41))
                domain = Domain(tuple(map(str, range(d))), "integer")
                codes = rng.choice(d, args.records, p=shape(rng, kind, d))
                return ratio(rng, codes, Column(role=Role.SENSITIVE).over("column", domain))

            told(kind, generated, args.tables)
        return
    frame = pl.read_csv(args.table, infer_schema_length=None)
    for name in args.columns:
        values = frame[name].unique().sort()
        domain = Domain(tuple(map(str, values.to_list())), "integer" if frame[name].dtype.is_integer() else "string")
        column = Column(role=Role.SENSITIVE).over(name, domain)
        every = np.array(domain.find(frame[name].cast(pl.String).to_list()))
        told(name, lambda every=every, column=column: ratio(rng, rng.choice(every, args.records), column), args.tables)


if __name__ == "__main__":
    main()
