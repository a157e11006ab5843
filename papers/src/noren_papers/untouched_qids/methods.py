"""The paper's four methods and ours on one table: publish, ask, compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from noren import Policy, anonymize
from noren.errors import PolicyError, RequirementNotMet
from noren.methods import Anatomy, DecoyParameters, Decoys, Mondrian, ThreePhase
from noren.models import FrequencyLDiversity
from noren.release.release import Release
from noren.schema.column import quasi_identifier, sensitive
from noren.statements import SetCells
from noren_papers.base import Bench, Gain
from noren_papers.claims import error_of
from noren_papers.untouched_qids.median import median_classes
from noren_papers.untouched_qids.tables import Source
from noren_papers.untouched_qids.workload import Coded, Published, Question, coded, squared_errors, truths

PROPOSAL, TP, ANATOMY, MONDRIAN = "Proposal", "TP", "Anatomy", "Mondrian"
OURS = "Likelihood (ours)"
LEAST_LOSS = "Mondrian by loss (ours)"
OTHERS = (TP, ANATOMY, MONDRIAN)
PAPERS = (PROPOSAL, *OTHERS)
SERIES = (OURS, *PAPERS, LEAST_LOSS)
OUR_SERIES = (OURS, LEAST_LOSS)
EACH = "each question"
"""Column with the error of every question, for comparisons; it is not written."""
OURS_NOTE = (
    f"{OURS}: the same published sets as the proposal's. EM on whole sets, started at the estimate for all records and "
    "stopped by the likelihood of held-out records of the group: what release.estimate does for a decoy column within "
    "exact ones, here as matrix products because hundreds of groups are asked for. The iteration of equation 10 "
    "likewise runs for all groups at once, until no cell moves by one, and divides by l at the end: it "
    "is the estimator 'bayes'."
)
METHODS_NOTE = (
    "Releases are made by the library's pipeline and verified, but for Mondrian, which is the published one: strict "
    f"cuts at the median, the widest attribute first. '{LEAST_LOSS}' is the library's method, which cuts by least loss "
    "and lets records move afterwards. Without hierarchies a class publishes the interval or set that it covers."
)


def publish(source: Source, l: int, series: str) -> Release | None:
    """A release by one of the paper's methods, or None where its requirement cannot be met."""
    ways: Mapping[str, Any] = {TP: ThreePhase(refine=False), ANATOMY: Anatomy(), LEAST_LOSS: Mondrian()}
    counts = source.frame[source.secret].value_counts()["count"].to_numpy()
    if series in ways:
        method = ways[series]
    elif l == len(counts):
        method = Decoys(parameters={source.secret: DecoyParameters(eta=l)})
    else:
        method = Decoys()
    require = [FrequencyLDiversity(on=source.secret, l=l)]
    # What the library refuses, it refuses for the secrets alone: where that is likely, ask with one column first.
    crowded = int(counts.max()) * l > int(counts.sum())
    release = None
    try:
        for quasi in (source.quasi[:1], source.quasi) if crowded else (source.quasi,):
            attributes = {name: quasi_identifier() for name in quasi} | {source.secret: sensitive()}
            policy = Policy(
                dependence={"most": 1.0}, attributes=attributes, require=require, method=method, mechanism="ignored"
            )
            release = anonymize(source.frame.select([*quasi, source.secret]), policy)
    except (RequirementNotMet, PolicyError):
        return None
    return release


def published(bench: Bench, source: Source, l: int, series: str) -> Release | None:
    """The release that several figures ask."""
    key = ("untouched", source.name, source.origin, l, series, bench.quick)
    return bench.shared(key, lambda: publish(source, l, series))


def histograms(
    bench: Bench, source: Source, l: int, series: str, asked: Sequence[Question], *, keep: bool = True
) -> NDArray[np.float64] | None:
    """What a method without decoys says of every question, or None where it cannot be run.

    keep: hold the release for other settings and figures.
    """
    table = codes_of(bench, source)
    if series == MONDRIAN:
        key = ("untouched", source.name, source.origin, l, series, bench.quick)
        classes = bench.shared(key, lambda: median_classes(table, source.quasi, source.secret, l))
        return None if classes is None else np.stack([classes.histogram(question) for question in asked])
    release = published(bench, source, l, series) if keep else publish(source, l, series)
    if release is None:
        return None
    view = Published(release, table, source.quasi, source.secret)
    return np.stack([view.spread_histogram(question) for question in asked])


def codes_of(bench: Bench, source: Source) -> Coded:
    key = ("untouched", "codes", source.name, source.origin, bench.quick)
    return bench.shared(key, lambda: coded(source.frame, [*source.quasi, source.secret]))


def from_sets(
    release: Release,
    table: Coded,
    source: Source,
    asked: Sequence[Question],
    rng: np.random.Generator,
    known: dict[int, NDArray[np.float64]] | None = None,
) -> dict[str, NDArray[np.float64]]:
    """The proposal's histograms and ours, from one release of decoys.

    known: remembers by release what all records together say.
    """
    view = Published(release, table, source.quasi, source.secret)
    design = release.designs[source.secret]
    eta = int(design.eta)
    sets = membership(view.cells[source.secret], eta)
    known = {} if known is None else known
    start = known[id(release)] if id(release) in known else known.setdefault(id(release), overall(sets))
    fold = rng.integers(0, 4, len(sets))
    inclusions, ours = [], []
    for question in asked:
        rows = np.flatnonzero(view.shares(question))
        mine = sets[rows]
        inclusions.append(mine.sum(axis=0, dtype=float))
        ours.append(held_out(mine, start, fold[rows]) * len(rows))
    return {PROPOSAL: equation_10(np.stack(inclusions), eta)[0], OURS: np.stack(ours)}


def measured(
    bench: Bench,
    source: Source,
    l: int,
    asked: Sequence[Question],
    keys: Mapping[str, Any],
    series: Sequence[str] = SERIES,
    *,
    keep: bool = True,
) -> pl.DataFrame:
    """One row for every series: the mean over all questions of equation 11. Empty where a method cannot be run.

    keep: hold the releases for other settings and figures.
    """
    table = codes_of(bench, source)
    truth = truths(table, source.secret, asked)
    found: dict[str, NDArray[np.float64]] = {}
    if PROPOSAL in series or OURS in series:
        release = published(bench, source, l, PROPOSAL) if keep else publish(source, l, PROPOSAL)
        if release is not None:
            known = bench.shared(("untouched", "overall"), dict[int, NDArray[np.float64]]) if keep else None
            found |= from_sets(release, table, source, asked, bench.rng(f"folds {source.name} {l}"), known)
    for name in (*OTHERS, LEAST_LOSS):
        if name in series and (counts := histograms(bench, source, l, name, asked, keep=keep)) is not None:
            found[name] = counts
    rows = []
    for name in series:
        row: dict[str, Any] = {**keys, "series": name}
        row |= dict.fromkeys(("mse", "standard_error", "mse_true_total", EACH))
        if name in found:
            own, true_total = squared_errors(truth, found[name])
            row |= {"mse": float(own.mean()), "standard_error": error_of(own), EACH: own.tolist()}
            row["mse_true_total"] = float(true_total.mean())
        rows.append(row | {"questions": len(asked), "mean_group": float(truth.sum(axis=1).mean())})
    numbers = ("mse", "standard_error", "mse_true_total", "mean_group")
    frame = pl.DataFrame(rows, infer_schema_length=None, schema_overrides={EACH: pl.List(pl.Float64)})
    return frame.with_columns(pl.col(name).cast(pl.Float64) for name in numbers)


def gains(frame: pl.DataFrame, keys: Sequence[str]) -> tuple[Gain, ...]:
    """Ours over the proposal from the same sets, setting by setting."""
    return Gain.over("MSE of a group's histogram", frame, keys, OURS, PROPOSAL, "mse", LOSES)


LOSES = (
    "a group is small, and how far it goes from what all records say is chosen by few held-out records; starting from "
    "all records and four folds are in use, other starts were not tried here"
)


# ---------------------------------------------------------------- histograms from sets of decoys
# The library's estimators answer one question at a time with intervals. Here hundreds of questions need counts alone,
# so the paper's iteration runs for all of them at once, and ours is a few matrix products; tests compare both with it.


Floats = NDArray[np.float64]
EPSILON = 1.0
"""The paper stops when no cell of its iteration moves by more, before it divides by l."""
MOST_STEPS = 20_000
FOLDS = 4
PATIENCE = 3
WORTH = 0.1
"""A step must raise the log likelihood of all held-out records together by this much."""
TINY = np.float32(1e-30)
LONGEST = 150
MIXED = 0.01
"""Share of the start that is mixed in when held-out records are scored: an empty value is not impossible."""


def membership(cells: SetCells, eta: int) -> NDArray[np.float32]:
    """(records, values): 1 where a record's set holds the value."""
    out = np.zeros((len(cells), cells.d), np.float32)
    np.put_along_axis(out, cells.codes(eta).astype(np.int64), np.float32(1), axis=1)
    return out


def equation_10(inclusions: Floats, size: int, epsilon: float = EPSILON) -> tuple[Floats, NDArray[np.int64]]:
    """The paper's estimate of every row of inclusion counts, and how many steps each took.

    size: values in a set. Starts at the inclusion counts and divides by the size once, at the end; what is compared
    with epsilon are changes before that.
    """
    w = np.asarray(inclusions, float)
    d = w.shape[1]
    other = (size - 1) / (d - 1) if d > 1 else 1.0
    x, steps = w.copy(), np.zeros(len(w), np.int64)
    open_rows = np.arange(len(w))
    for _ in range(MOST_STEPS):
        now, seen = x[open_rows], w[open_rows]
        expected = other * now.sum(axis=1, keepdims=True) + (1 - other) * now
        ratio = np.divide(seen, expected, out=np.zeros_like(seen), where=expected > 0)
        following = now * (other * ratio.sum(axis=1, keepdims=True) + (1 - other) * ratio)
        x[open_rows] = following
        steps[open_rows] += 1
        open_rows = open_rows[np.abs(following - now).max(axis=1) >= epsilon]
        if not len(open_rows):
            break
    return x / size, steps


def overall(sets: NDArray[np.float32], steps: int = 30) -> Floats:
    """Shares of the values among all records: linear inversion, then EM on whole sets."""
    d, share = sets.shape[1], sets.mean(axis=0, dtype=float)
    other = (share.sum() - 1) / max(1, d - 1)
    linear = (share - other) / (1 - other) if other < 1 - 1e-9 else np.full(d, 1 / d)
    x = np.maximum(linear, 0.05 / d).astype(np.float32)
    x /= x.sum()
    for _ in range(steps):
        following = x * ((1 / np.maximum(sets @ x, TINY)) @ sets) / np.float32(len(sets))
        moved = float(np.abs(following - x).max())
        x = following
        if moved * len(sets) < 1:
            break
    return np.asarray(x, float) / float(x.sum())


def held_out(sets: NDArray[np.float32], start: Floats, fold: NDArray[np.integer]) -> Floats:
    """Shares of the values among these records: EM from the shares of all records, stopped by held-out likelihood.

    The same rule by which the library tabulates a decoy column within exact ones: a small group stays near what all
    records say, a large one goes its own way, and how far is decided by records that the fit has not seen. Four fits
    without a fold each and one with all records go side by side; the last one goes 4/3 as far, because it has 4/3 of
    the records. At least one step is made: asked for are these records, not the population that they come from.
    `fold` numbers the records 0 to 3 at random.
    """
    n, d = sets.shape
    base = ((1 - MIXED) * start + MIXED / d).astype(np.float32)
    if n < 2 * FOLDS:
        return _step(sets, base)
    train = np.ones((n, FOLDS + 1), np.float32)
    train[np.arange(n), fold] = 0
    sizes = np.maximum(train.sum(axis=0), 1)
    x = np.repeat(base[:, None], FOLDS + 1, axis=1)
    floor = (sets @ base) * np.float32(MIXED)
    path, best, top = [x[:, -1]], 0, -np.inf
    rows = np.arange(n)
    for _ in range(LONGEST):
        expected = np.maximum(sets @ x, TINY)
        score = float(np.log((1 - MIXED) * expected[rows, fold] + floor).sum(dtype=float))
        if score > top + WORTH:
            best, top = len(path) - 1, score
        if len(path) - 1 - best >= PATIENCE:
            break
        x = x * (sets.T @ (train / expected)) / sizes
        path.append(x[:, -1])
    wanted = max(1, round(best * FOLDS / (FOLDS - 1)))
    last = path[min(wanted - 1, len(path) - 1)]
    for _ in range(wanted - len(path)):
        last = _step(sets, last).astype(np.float32)
    return _step(sets, last)


def _step(sets: NDArray[np.float32], x: NDArray[np.float32]) -> Floats:
    """One step of EM: what these records' sets say of their own values, if those were drawn with shares x."""
    out = np.asarray(x * (sets.T @ (1 / np.maximum(sets @ x, TINY))), float)
    return np.asarray(out / out.sum())
