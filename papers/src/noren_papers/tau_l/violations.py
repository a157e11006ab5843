"""Figure 12: where no simple l or (c, l) will do, how far the classes of 1DLD and CLD go beyond psi(k)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.metrics.general import GeneralTable
from noren.metrics.strength import psi
from noren_papers import draw
from noren_papers.base import Bench, Figure, Result
from noren_papers.claims import ALMOST, Answer, judged
from noren_papers.relations import listed
from noren_papers.tau_l.common import CHUNKS, CLD, ONE_D, SWEEP, cld, dataset, label, one_d, release_of

ASKED = {"adult": (0.15, 8), "nursery": (0.45, 4)}
REQUIRED = "psi(k), required"
WORST = " (worst class)"
TOLERANCE = 1e-9


def reached(table: GeneralTable, sensitive: str) -> NDArray[np.float64]:
    """(classes, values): F(1), F(2), ... of every class, from induced frequencies (Definitions 7 and 9)."""
    column = table.column(sensitive)
    occurs = np.flatnonzero(column.counts > 0)
    shares = np.asarray(column.overlap(np.eye(len(column.domain))[occurs])).T
    if column.nodes is not None:
        # `overlap` counts every leaf under a node; values that nobody has do not count
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), TOLERANCE)
    cells = column.cells[table.keep].astype(np.int64)
    kinds = shares.shape[0]
    counted = np.bincount(table.classes * kinds + cells, minlength=len(table.sizes) * kinds).reshape(-1, kinds)
    found = counted @ shares / table.sizes[:, None]
    return np.cumsum(-np.sort(-found, axis=1), axis=1)


def nearest(bench: Bench, name: str, tau: float, l: int) -> tuple[str, NDArray[np.float64]]:
    """The CLD table that goes beyond psi by least in its worst class."""
    data = dataset(bench, name)
    best: tuple[float, str, NDArray[np.float64]] | None = None
    for one in cld(bench, name).candidates:
        rose = reached(one.table, data.sensitive)
        over = float((rose - psi(np.arange(1, rose.shape[1] + 1), tau, l)).max())
        if best is None or over < best[0]:
            best = over, one.chosen, rose
    if best is None:
        raise RuntimeError("CLD has no table at all")  # c = 10,000 at l = 2 always has one
    return best[1], best[2]


def figure_12(bench: Bench) -> Result:
    bench.plan(2 * len(ASKED))
    rows: list[dict[str, Any]] = []
    over: dict[tuple[str, str], NDArray[np.bool_]] = {}
    chosen: dict[tuple[str, str], str] = {}
    for name, (tau, l) in ASKED.items():
        data = dataset(bench, name)
        most = data.coded.n // int(data.counts.max())
        curve = one_d(bench, name, most)
        tables = {} if curve is None else {ONE_D: (f"l = {most}", reached(curve.table, data.sensitive))}
        tables[CLD] = nearest(bench, name, tau, l)
        bench.step(data.title)
        for method in (SWEEP, CHUNKS):
            found = release_of(bench, name, method, tau, l)
            if found is not None:
                tables[method] = "", reached(found.table, data.sensitive)
        bench.step(data.title)
        bound = psi(np.arange(1, data.values + 1), tau, l)
        place = f"{label(tau, l)}-diversity on {data.title}"
        rows += [
            {"panel": place, "k": k, "series": REQUIRED, "F": float(value), "median_F": None, "classes": None,
             "classes_beyond": None}
            for k, value in enumerate(bound, 1)
        ]  # fmt: skip
        for method, (words, rose) in tables.items():
            over[name, method] = rose > bound + TOLERANCE
            chosen[name, method] = words
            rows += [
                {"panel": place, "k": k + 1, "series": _series(method), "F": float(rose[:, k].max()),
                 "median_F": float(np.median(rose[:, k])), "classes": len(rose),
                 "classes_beyond": int(over[name, method][:, k].sum())}
                for k in range(len(bound))
            ]  # fmt: skip
    frame = pl.DataFrame(rows, infer_schema_length=None)
    order = (REQUIRED, *(_series(method) for method in (ONE_D, CLD, SWEEP, CHUNKS)))
    picture = draw.lines(
        frame, x="k", y="F", series="series", order=order, ours=(_series(CHUNKS),), panel="panel", columns=2,
        ordinal=True, shared_y=False, x_title="commonest secrets together, k", y_title="F(k)", size=(310, 230),
        title="Figure 12. Cumulative frequencies of the k commonest secrets against what is required",
        note="For each method and k the class with the largest F(k). SWEEP's lines may cover psi(k), never exceed it.",
    )  # fmt: skip
    kept = {key: int(value.any(axis=1).sum()) for key, value in over.items() if key[1] == CHUNKS}
    more = "; ".join(
        f"{dataset(bench, name).title}: {number} of {len(over[name, method])} classes of SWEEP in chunks go beyond"
        for (name, method), number in kept.items()
    )
    notes = (
        "1DLD is run with the largest simple l that the table allows, CLD's table is the one of all (c, l) that goes "
        "beyond psi by least. Groups of 1DLD with equal published quasi-identifiers count as one class, which is what "
        "a reader sees; how many there are depends on the hierarchies, which the paper's text does not give.",
    )
    parameters = {f"{dataset(bench, n).title} {m}": words for (n, m), words in chosen.items() if words}
    return Result({"": frame}, {"": picture}, _answers(bench, over), (_series(CHUNKS),), parameters, notes, (), more)


def _series(method: str) -> str:
    return f"{method.removesuffix(' (ours)')}{WORST}{' (ours)' if method.endswith(' (ours)') else ''}"


def _answers(bench: Bench, over: dict[tuple[str, str], NDArray[np.bool_]]) -> dict[str, Answer]:
    def beyond(name: str, method: str) -> list[int]:
        found = over.get((name, method))
        return [] if found is None else [k + 1 for k in np.flatnonzero(found.any(axis=0)).tolist()]

    def title(name: str) -> str:
        return dataset(bench, name).title

    tau, l = ASKED["adult"]
    second = float(psi(2, tau, l))
    curve = over.get(("adult", ONE_D))
    many = 0 if curve is None else int(curve[:, 1].sum())
    classes = 0 if curve is None else len(curve)
    none = {(n, m): release_of(bench, n, m, *ASKED[n]) is None for n in ASKED for m in (ONE_D, CLD)}
    data = dataset(bench, "adult")
    most = data.coded.n // int(data.counts.max())
    first, five = beyond("adult", ONE_D), beyond("adult", CLD)
    return {
        "not eligible": judged(
            list(none.values()),
            "No table of 1DLD or CLD satisfies it: "
            + listed([f"{m} on {title(n)} {label(*ASKED[n])}" for (n, m), empty in none.items() if empty]),
        ),
        "1DLD to k = 7": judged(
            [k in first for k in range(1, l)],
            f"{title('adult')} {label(tau, l)}: some class of 1DLD goes beyond psi(k) at k = {first}; simple "
            f"l = {most} itself keeps F(1) at or below {1 / most:.3f}, psi(1) is {tau:g}",
        ),
        "nearly all at k = 2": judged(
            [many >= (1 - ALMOST) * classes] if classes else [],
            f"F(2) is above psi(2) = {second:.3f} in {many:,} of {classes:,} classes of 1DLD "
            f"({many / max(1, classes):.1%}; the paper has 4,892 of 4,949, 98.8%; the criterion is 95%)",
        ),
        "0.27": judged([round(second, 2) == 0.27], f"psi(2) of {label(tau, l)} is {second:.4f}"),
        "CLD to k = 5": judged(
            [k in five for k in range(1, 6)],
            f"{title('adult')} {label(tau, l)}: some class of CLD goes beyond psi(k) at k = {five}",
        ),
        "Nursery": judged(
            [bool(beyond("nursery", m)) for m in (ONE_D, CLD)],
            f"{title('nursery')} {label(*ASKED['nursery'])}: "
            + "; ".join(f"{m} goes beyond at k = {beyond('nursery', m)}" for m in (ONE_D, CLD)),
        ),
    }  # fmt: skip


FIGURES: tuple[Figure, ...] = (
    Figure(
        "12",
        "Violations where a requirement is not eligible for 1DLD and CLD",
        {
            "not eligible": "(0.15, 8) on Adult and (0.45, 4) on Nursery cannot be had from 1DLD or CLD.",
            "1DLD to k = 7": "On Adult some classes of 1DLD exceed what is required for every k up to 7.",
            "nearly all at k = 2": "In nearly all classes of 1DLD (4,892 of 4,949) two secrets together exceed it.",
            "0.27": "What is required there at k = 2 is 0.27.",
            "CLD to k = 5": "Some classes of CLD exceed it for the first five commonest secrets.",
            "Nursery": "On Nursery with (0.45, 4) it is much the same.",
        },
        figure_12,
        data=("adult", "nursery"),
    ),
)
