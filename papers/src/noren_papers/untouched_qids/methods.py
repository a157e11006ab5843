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
from noren_papers.base import Bench, Gain
from noren_papers.claims import error_of
from noren_papers.untouched_qids.median import median_classes
from noren_papers.untouched_qids.sets import equation_10, held_out, membership, overall
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
    few: int | None = None,
) -> dict[str, NDArray[np.float64]]:
    """The proposal's histograms and ours, from one release of decoys.

    known: remembers by release what all records together say. few: ours for so many of the questions, the first ones.
    """
    view = Published(release, table, source.quasi, source.secret)
    design = release.designs[source.secret]
    eta = int(design.eta)
    sets = membership(view.cells[source.secret], eta)
    known = {} if known is None else known
    start = known[id(release)] if id(release) in known else known.setdefault(id(release), overall(sets))
    fold = rng.integers(0, 4, len(sets))
    inclusions, ours = [], []
    for number, question in enumerate(asked):
        rows = np.flatnonzero(view.shares(question))
        mine = sets[rows]
        inclusions.append(mine.sum(axis=0, dtype=float))
        if few is None or number < few:
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
    few: int | None = None,
) -> pl.DataFrame:
    """One row for every series: the mean over all questions of equation 11. Empty where a method cannot be run.

    keep: hold the releases for other settings and figures. few: the likelihood answers so many questions only.
    """
    table = codes_of(bench, source)
    truth = truths(table, source.secret, asked)
    found: dict[str, NDArray[np.float64]] = {}
    if PROPOSAL in series or OURS in series:
        release = published(bench, source, l, PROPOSAL) if keep else publish(source, l, PROPOSAL)
        if release is not None:
            known = bench.shared(("untouched", "overall"), dict[int, NDArray[np.float64]]) if keep else None
            found |= from_sets(release, table, source, asked, bench.rng(f"folds {source.name} {l}"), known, few)
    for name in (*OTHERS, LEAST_LOSS):
        if name in series and (counts := histograms(bench, source, l, name, asked, keep=keep)) is not None:
            found[name] = counts
    rows = []
    for name in series:
        row: dict[str, Any] = {**keys, "series": name}
        row |= dict.fromkeys(("mse", "standard_error", "mse_true_total", EACH))
        if name in found:
            own, true_total = squared_errors(truth[: len(found[name])], found[name])
            row |= {"mse": float(own.mean()), "standard_error": error_of(own), EACH: own.tolist()}
            row["mse_true_total"] = float(true_total.mean())
        answered = len(found.get(name, asked))
        rows.append(row | {"questions": answered, "mean_group": float(truth.sum(axis=1).mean())})
    numbers = ("mse", "standard_error", "mse_true_total", "mean_group")
    frame = pl.DataFrame(rows, infer_schema_length=None, schema_overrides={EACH: pl.List(pl.Float64)})
    return frame.with_columns(pl.col(name).cast(pl.Float64) for name in numbers)


def on_the_same(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The mean errors of every setting over the questions that all of its methods answered."""
    few = pl.col(EACH).list.len().min().over(list(keys))
    kept = frame.filter(pl.col("mse").is_not_null())
    return kept.with_columns(mse=pl.col(EACH).list.head(few).list.mean())


def gains(frame: pl.DataFrame, keys: Sequence[str]) -> tuple[Gain, ...]:
    """Ours over the proposal from the same sets, setting by setting."""
    wide = on_the_same(frame, keys).pivot(on="series", index=list(keys), values="mse")
    found = {
        ", ".join(f"{row[key]}" if key == "data" else f"{key} = {row[key]}" for key in keys): row[OURS] / row[PROPOSAL]
        for row in wide.to_dicts()
        if row[OURS] is not None and row[PROPOSAL]
    }
    return Gain.of("MSE of a group's histogram", found, LOSES)


LOSES = (
    "a group is small, and how far it goes from what all records say is chosen by few held-out records; starting from "
    "all records and four folds are in use, other starts were not tried here"
)
