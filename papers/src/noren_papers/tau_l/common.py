"""What all figures of the paper share: the requirements, the data sets, and the releases of every method.

A release is made by a method of the library on the coded table and kept as a `GeneralTable`: what was published beside
the truth, which is what the metrics read. Whether it satisfies (tau,l) is judged by `noren.metrics`, which shares no
code with the methods.

For the figures:

    settings(bench)                            the representative (tau, l) of figures 11 and 16 to 22, both data sets
    grid(bench, "adult")                       all (tau, l) of the planes of figures 9, 10, 14 and 15
    dataset(bench, "adult")                    Prepared: frame, quasi_identifiers, sensitive, hierarchies, coded
    release_of(bench, "adult", "SWEEP", .3, 5) Published, or None where the method cannot meet the requirement
    label(.3, 5)                               "(0.3, 5)"
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren.engines import Plan, RandomOrder, Recode, Records
from noren.errors import RequirementNotMet
from noren.methods import Hilbert, Incognito, Mondrian, Sweep
from noren.methods.base import ClassMethod
from noren.metrics.general import GeneralTable, view_of
from noren.metrics.information import Utility, utility_score, utility_scores
from noren.models import FrequencyLDiversity, Model, RecursiveCLDiversity, TauLDiversity
from noren.schema.nodes import tree_of
from noren_papers import draw
from noren_papers.base import Bench, Gain
from noren_papers.relations import Compare, Kind
from noren_papers.tau_l.excess import excess_of_classes, excessive_protection
from noren_papers.tau_l.sources import SOURCES, Prepared, prepared, touch

Row = dict[str, Any]
KEYS = ("data", "requirement")
ZERO_NOTE = "An error of exactly 0 has no place on this scale and no point."


def than(
    one: str, kind: Kind, other: str | Sequence[str], value: str, *, error: str | None = None, **more: Any
) -> Compare:
    """One method against others at every requirement that both meet. Means are not mixed over data sets."""
    return Compare(
        one, kind, other, value, **{"keys": KEYS, "series": "method", "apart": ("data",)} | more, error=error
    )


def rows_of(frame: pl.DataFrame, method: str, *, empty: bool | None = None) -> list[Row]:
    """Rows of a method; all, those without a release, or those with one."""
    found = [row for row in frame.to_dicts() if row["method"] == method]
    return found if empty is None else [row for row in found if (row["utility"] is None) == empty]


def gain(
    what: str, frame: pl.DataFrame, ours: str, theirs: str, value: str, reason: str = "", *, lost: bool = False
) -> tuple[Gain, ...]:
    """Ours over theirs, requirement by requirement. lost: what is missing from 1 is compared."""
    return Gain.over(what, frame, KEYS, ours, theirs, value, reason, series="method", lost=lost)


def mean(values: Sequence[float | None]) -> float:
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else float("nan")


SWEEP, ONE_D, CLD = "SWEEP", "1DLD", "CLD"
CHUNKS, MONDRIAN = "SWEEP in chunks (ours)", "Mondrian (ours)"
DIRECT = "Incognito for (tau, l) (ours)"
"""Full-domain generalisation searched for (tau, l) itself: one search instead of one for every (c, l)."""
PAPERS = (SWEEP, ONE_D, CLD)
OURS = (CHUNKS, MONDRIAN)
METHODS = (*PAPERS, *OURS)
"""The methods of the paper, then ours. `chunk`: what SWEEP would publish as one class of stars is cut along a Hilbert
curve into groups of 16, in which more secrets are generalised. Mondrian cuts classes that meet (tau,l) themselves."""
SUPPRESSED = "secrets suppressed (degenerate)"
"""Exact quasi-identifiers and no secret at all: meets every requirement, tells nothing, and has a high utility."""
CHUNK = 16

Requirement = tuple[float, int]
REQUIREMENTS: dict[str, tuple[Requirement, ...]] = {
    "adult": ((0.5, 2), (0.5, 3), (0.4, 4), (0.3, 5), (0.25, 6), (0.2, 7), (0.15, 8)),
    "nursery": ((0.5, 2), (0.5, 3), (0.45, 3), (0.45, 4), (0.4, 4), (0.4, 5)),
}
"""From weak to strong: psi(k) of each is nowhere above that of the one before. As many in a quick run."""
BOTH = tuple(REQUIREMENTS)
GRIDS: dict[str, tuple[tuple[float, ...], tuple[int, ...]]] = {
    "adult": ((0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15), (2, 3, 4, 5, 6, 7, 8, 9)),
    "nursery": ((0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2), (2, 3, 4, 5)),
}
"""tau from weak to strong, l from weak to strong."""
QUICK_GRIDS: dict[str, tuple[tuple[float, ...], tuple[int, ...]]] = {
    "adult": ((0.5, 0.4, 0.3, 0.25, 0.2, 0.15), (5, 8)),
    "nursery": ((0.5, 0.45, 0.4, 0.2), (3, 5)),
}
C_GRID = (*range(1, 21), 25, 30, 40, 50, 75, 100, 200, 500, 1_000, 10_000)
"""The c that CLD is run with, for every l from 2 to the number of secrets; the paper's c is a whole number."""


NO_POINT = "No point: the method has no table that satisfies the requirement."
NUMBERS = ("utility", "utility_quasi", "utility_sensitive", "excess", "mean_excess", "seconds")


def label(tau: float, l: int) -> str:
    return f"({tau:g}, {l})"


def grid(bench: Bench, name: str) -> list[Requirement]:
    """Every (tau, l) of the plane with 1/l <= tau, by l and then from weak to strong; fewer in a quick run."""
    taus, ls = GRIDS[name]
    if bench.quick:
        taus, ls = QUICK_GRIDS[name]
    plane = {(tau, l) for l in ls for tau in taus if tau * l >= 1 - 1e-9} | set(REQUIREMENTS[name])
    return sorted(plane, key=lambda one: (one[1], -one[0]))


def c_grid(bench: Bench) -> tuple[int, ...]:
    return bench.pick(C_GRID, (1, 2, 4, 6, 10, 20, 100, 10_000))


def dataset(bench: Bench, name: str) -> Prepared:
    touch(bench, name)
    return bench.shared(("tau-l", "data", name), lambda: prepared(bench, name))


def settings(bench: Bench) -> Iterator[tuple[Prepared, float, int, Row]]:
    """Every data set and representative requirement, with what all sheets say of them."""
    for name, (tau, l) in bench.each((name, one) for name, asked in REQUIREMENTS.items() for one in asked):
        data = dataset(bench, name)
        yield data, tau, l, {"data": data.title, "requirement": label(tau, l), "tau": tau, "l": l}


def by_requirement(frame: pl.DataFrame, **more: Any) -> Any:
    """A panel for every data set, the requirements along x, a line for every method."""
    chart: dict[str, Any] = {
        "x": "requirement", "series": "method", "panel": "data", "ordinal": True, "columns": 2, "shared_y": False,
        "x_title": "(tau, l)", "note": NO_POINT,
    }  # fmt: skip
    return draw.lines(frame, **chart | more)


@dataclass(frozen=True)
class Published:
    """A release that satisfies (tau, l), and what it took."""

    method: str
    tau: float
    l: int
    chosen: str
    """What the method was run with: "l = 3", "c = 4, l = 6", or nothing."""
    table: GeneralTable
    """What was published beside the truth; `.columns[name].nodes` and `.data`, `.classes`, `.keep`."""
    utility: Utility
    """Share of the information that is left: `.total` (the paper's um), `.quasi`, `.sensitive`."""
    excess: float
    """Excessive protection, Definition 35: of the class that has least."""
    mean_excess: float
    """The same for the class of a record on average: one class at the bound does not hide the others."""
    seconds: float
    """CPU seconds, for 1DLD and CLD with the search for l or (c, l)."""
    records_of_classes: NDArray[np.int64]
    """Records of every class."""


def release_of(bench: Bench, name: str, method: str, tau: float, l: int) -> Published | None:
    """The release of one method for one requirement; None where it has none. Made once per run."""
    return bench.shared(("tau-l", name, method, tau, l), lambda: _release(bench, name, method, tau, l))


def _release(bench: Bench, name: str, method: str, tau: float, l: int) -> Published | None:
    if method == ONE_D:
        return _first_of(bench, name, tau, l)
    if method == CLD:
        return _best_of(bench, name, tau, l)
    makers: dict[str, ClassMethod] = {
        SWEEP: Sweep(),
        CHUNKS: Sweep(chunk=CHUNK),
        MONDRIAN: Mondrian(),
        DIRECT: Incognito(),
    }
    data = dataset(bench, name)
    table: GeneralTable
    if method == SUPPRESSED:
        table, seconds = suppressed(data), 0.0
    else:
        try:
            need = TauLDiversity(on=data.sensitive, tau=tau, l=l)
            table, seconds = made(bench, data, makers[method], need, f"{method} {tau} {l}")
        except RequirementNotMet:
            return None
    try:
        return _published(data, method, tau, l, "", table, seconds)
    except RequirementNotMet:
        if not is_empty(table):
            raise  # a method that publishes what breaks its requirement is no result, it is a mistake
        return None


def is_empty(table: GeneralTable) -> bool:
    """Whether every quasi-identifier of every record is at its root: of no use, an empty table (Definition 2)."""
    columns = table.quasi_columns()
    return all(bool((one.spread[one.cells[table.keep]] == len(one.domain)).all()) for one in columns)


def _published(
    data: Prepared, method: str, tau: float, l: int, chosen: str, table: GeneralTable, seconds: float
) -> Published:
    """Raises RequirementNotMet if the table does not satisfy (tau, l), or says nothing at all."""
    if is_empty(table):
        raise RequirementNotMet("all quasi-identifiers of all records are at their roots.")
    excess = excess_of_classes(table, tau, l, data.sensitive)
    least, mean = float(excess.min()), float(np.average(excess, weights=table.sizes))
    return Published(method, tau, l, chosen, table, utility_scores(table), least, mean, seconds, table.sizes)


def made(bench: Bench, data: Prepared, method: ClassMethod, need: Model, seed: str) -> tuple[GeneralTable, float]:
    """What a method publishes, and its CPU seconds after a first small run that compiles."""
    warm(bench, data, method, need)
    order = random_order(f"{data.name}/{seed}")
    begin = time.process_time()
    plan = method.recode(data.coded, [need], order)
    seconds = time.process_time() - begin
    return view(data, plan), seconds


def random_order(seed: str) -> RandomOrder:
    """Random orders that depend on the name alone, so that every figure sees the same release."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big"))
    return lambda n: np.asarray(rng.permutation(n), np.int64)


def warm(bench: Bench, data: Prepared, method: ClassMethod, need: Model) -> None:
    """Run once on a few records of the table, so that a compiler's time is not taken for the method's."""

    def small() -> bool:
        n = min(300, data.coded.n)
        part = Records(n, data.coded.columns, {name: codes[:n] for name, codes in data.coded.codes.items()})
        try:
            method.recode(part, [need], np.arange)
        except RequirementNotMet:
            return False
        return True

    bench.shared(("tau-l", "warm", data.name, method.model_dump_json()), small)


def view(data: Prepared, plan: Plan) -> GeneralTable:
    """What a plan publishes, as the metrics read it."""
    return view_of(data.coded, plan)


def suppressed(data: Prepared) -> GeneralTable:
    """All quasi-identifiers as they are, every secret at the root."""
    tree = tree_of(data.hierarchies[data.sensitive])
    secret = Recode(tree.nodes, np.full(data.coded.n, tree.root))
    return view(data, Plan({data.sensitive: secret}))


def figures_of(bench: Bench, name: str, method: str, tau: float, l: int) -> Row:
    """The numbers of one release, empty where there is none. Only releases that other figures need are kept."""

    def make() -> Row:
        keep = (tau, l) in REQUIREMENTS.get(name, ())
        found = release_of(bench, name, method, tau, l) if keep else _release(bench, name, method, tau, l)
        row = {"data": SOURCES[name].title, "tau": tau, "l": l, "requirement": label(tau, l), "method": method}
        if found is None:
            return row | {"chosen": "", "classes": 0} | dict.fromkeys(NUMBERS)
        used = found.utility
        return row | {
            "chosen": found.chosen,
            "classes": len(found.records_of_classes),
            "utility": used.total,
            "utility_quasi": used.quasi,
            "utility_sensitive": used.sensitive,
            "excess": found.excess,
            "mean_excess": found.mean_excess,
            "seconds": found.seconds,
        }

    return bench.shared(("tau-l", "figures", name, method, tau, l), make)


def sheet(bench: Bench, name: str, asked: Sequence[Requirement], methods: Sequence[str]) -> pl.DataFrame:
    """`figures_of` for every requirement and method, in long form."""
    import polars as pl

    rows = [
        figures_of(bench, name, method, tau, l)
        for tau, l in bench.each(asked, lambda one: f"{SOURCES[name].title} {label(*one)}")
        for method in methods
    ]
    kinds = {"classes": pl.Int64, **dict.fromkeys(NUMBERS, pl.Float64)}
    return pl.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None)


# ------------------------------------------------------------ 1DLD: the first simple l whose table satisfies (tau, l)


@dataclass(frozen=True)
class Candidate:
    """A release under simple l or (c, l), and what it took; it may or may not satisfy some (tau, l)."""

    chosen: str
    parameter: tuple[int, ...]
    table: GeneralTable
    seconds: float


def one_d(bench: Bench, name: str, l: int) -> Candidate | None:
    """1-D l-diversity with one l; None if the table is not eligible."""

    def make() -> Candidate | None:
        data = dataset(bench, name)
        if int(data.counts.max()) * l > data.coded.n:
            return None
        need = FrequencyLDiversity(on=data.sensitive, l=l)
        return Candidate(f"l = {l}", (l,), *made(bench, data, Hilbert(l=l, blind=False), need, f"1DLD {l}"))

    return bench.shared(("tau-l", "1DLD", name, l), make)


def _first_of(bench: Bench, name: str, tau: float, l: int) -> Published | None:
    """Try l = 2, 3, ... until the table satisfies (tau, l), as the paper's brute force does."""
    data, seconds = dataset(bench, name), 0.0
    for size in range(2, data.values + 1):
        found = one_d(bench, name, size)
        if found is None:
            return None
        begin = time.process_time()
        try:
            out = _published(data, ONE_D, tau, l, found.chosen, found.table, seconds + found.seconds)
        except RequirementNotMet:
            seconds += found.seconds + time.process_time() - begin
            continue
        return out
    return None


# ------------------------------------------------------------ CLD: the (c, l) with least excessive protection


@dataclass(frozen=True)
class Searched:
    """Everything CLD found: one candidate for every different table, and what the whole search took."""

    candidates: Sequence[Candidate]
    searches: int
    seconds: float


def cld(bench: Bench, name: str) -> Searched:
    """Incognito for every (c, l) of the grid, with the fewest levels of generalisation, as the paper has it.

    Equal tables are kept once, under the (c, l) that found them first (small l, then small c).
    """
    return bench.shared(("tau-l", "CLD", name), lambda: _search(bench, name))


def _search(bench: Bench, name: str) -> Searched:
    data, method = dataset(bench, name), Incognito(loss="height")
    found: dict[str, Candidate] = {}
    spent, searches = 0.0, 0
    tail = np.sort(data.counts[data.counts > 0]).cumsum()[::-1]
    for l in range(2, data.values + 1):
        for c in c_grid(bench):
            searches += 1
            if int(data.counts.max()) >= c * tail[l - 1]:
                continue  # the whole table as one class fails, so every table does
            need = RecursiveCLDiversity(on=data.sensitive, c=c, l=l)
            warm(bench, data, method, need)
            begin = time.process_time()
            plan = method.recode(data.coded, [need], np.arange)
            seconds = time.process_time() - begin
            spent += seconds
            levels = plan.notes[0].split(";")[0]
            if levels not in found:
                found[levels] = Candidate(f"c = {c}, l = {l}", (c, l), view(data, plan), seconds)
    useful = [one for one in found.values() if not is_empty(one.table)]
    return Searched(useful, searches, spent)


def _best_of(bench: Bench, name: str, tau: float, l: int) -> Published | None:
    """Of all CLD tables that satisfy (tau, l) the one with least excessive protection, then of most utility."""
    data, found = dataset(bench, name), cld(bench, name)
    begin = time.process_time()
    fitting: list[Published] = []
    for one in found.candidates:
        try:
            fitting.append(_published(data, CLD, tau, l, one.chosen, one.table, 0.0))
        except RequirementNotMet:
            continue
    seconds = found.seconds + time.process_time() - begin
    if not fitting:
        return None
    best = min(fitting, key=lambda one: (round(one.excess, 9), -one.utility.total))
    return replace(best, seconds=seconds)


# ------------------------------------------------------------ what the searches have seen beside what they took


def candidates(bench: Bench, name: str, method: str) -> list[GeneralTable]:
    """Every table that a method's search has seen."""
    if method == CLD:
        return [one.table for one in cld(bench, name).candidates]
    found = (one_d(bench, name, l) for l in range(2, dataset(bench, name).values + 1))
    return [one.table for one in found if one is not None]


def scored(bench: Bench, name: str, method: str, tau: float, l: int) -> list[tuple[float, float]]:
    """Excess and utility of every table of the search that satisfies (tau, l)."""

    def make() -> list[tuple[float, float]]:
        out = []
        for table in candidates(bench, name, method):
            try:
                excess = excessive_protection(table, tau, l, dataset(bench, name).sensitive)
            except RequirementNotMet:
                continue
            out.append((excess, utility_score(table)))
        return out

    return bench.shared(("tau-l", "scored", name, method, tau, l), make)
