"""Combines the noised margins of a release with answers from the cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.designs.central import noise_variance
from noren.estimates.statistics.noised import Fold, Folded, NoisedTable, Weighed, weigh

if TYPE_CHECKING:
    from noren.estimates.counts.tabulate import Tabulation
    from noren.release.answers import Question
    from noren.release.release import Release

FEW = 8
"""Cells below which nobody can tell from margins how wrong an estimate is."""
INTERVAL = "margins"
"""Where an interval came from that noised margins had a part in."""


def noised_tables(release: Release) -> list[NoisedTable]:
    """Return the margins of a release as tables."""
    out = []
    for margin in release.manifest.margins:
        shape = tuple(release.column(name).d for name in margin.of)
        counts = np.array(margin.counts, np.float64).reshape(shape)
        out.append(NoisedTable(margin.of, counts, noise_variance(margin.scale), margin.epsilon))
    return out


@dataclass(frozen=True, eq=False)
class Margins:
    """The margins with columns of a question."""

    whole: Sequence[tuple[NoisedTable, Folded]]
    """Those that hold all its columns."""
    parts: Sequence[tuple[str, ...]]
    """Columns asked for that others hold, with all its conditions: the table is raked to what is known of these."""

    @classmethod
    def of(cls, release: Release, question: Question) -> Margins:
        tables = noised_tables(release) if question.weights is None and question.terms is None else []
        if all(question.columns[name].is_exact for name in question.columns):
            tables = []
        asked: dict[str, Fold] = {}
        for group in question.shape.axes:
            admitted = question.allowed.get(group.column)
            groups = group.groups if admitted is None else np.where(admitted, group.groups, -1)
            asked[group.column] = (groups.astype(np.int64), len(group.labels))
        conditions: dict[str, Fold] = {}
        for name, admitted in {**question.fixed, **question.allowed}.items():
            if name not in asked:
                conditions[name] = (np.where(admitted, 0, -1).astype(np.int64), 1)
            elif name in question.fixed:
                groups, size = asked[name]
                asked[name] = np.where(admitted, groups, -1), size
        hidden = [name for name in conditions if name in question.allowed]
        whole, parts = [], []
        for table in tables:
            if not set(conditions) <= set(table.names):
                continue
            held = tuple(name for name in asked if name in table.names)
            if len(held) == len(asked):
                order = {**asked, **{name: conditions[name] for name in hidden}}
                order |= {name: fold for name, fold in conditions.items() if name not in order}
                found = table.folded(order)
                shape = [fold[1] for name, fold in order.items() if name in asked or name in hidden]
                whole.append(
                    (table, replace(found, counts=found.counts.reshape(shape), cells=found.cells.reshape(shape)))
                )
            elif held and len(question.shape.axes) == len(question.shown):
                parts.append(held)
        return cls(whole, list(dict.fromkeys(parts)))

    def put_into(self, table: Tabulation, level: float, n: float, *, sampled: float) -> Tabulation:
        """Combine the table with the margins that contain all of its columns; intervals allow for their noise.

        `sampled` is how often the variance of sampling counts: 0 of the original table, 1 of a population of which
        records are people, else as often as a person has records at most.
        """
        if not self.whole or table.centre is None or table.noise is None:
            return table
        found = weigh(table.centre, table.noise, [folded for _, folded in self.whole])
        sampling = np.maximum(found.counts * (1 - found.counts / max(n, 1.0)), 0.0)
        error = np.sqrt(found.variance + sampled * sampling)
        reach = found.quantile(level) * error
        free = table.method in ("linear", "semantic-linear", "uniform-linear")
        counts = found.counts if free else np.clip(self._likely(table, found), 0.0, n)
        low, high = np.clip(found.counts - reach, 0.0, n), np.clip(found.counts + reach, 0.0, n)
        if not free:
            low, high = np.minimum(low, counts), np.maximum(high, counts)
        used = [{"of": list(one.names), "epsilon": one.epsilon} for one, _ in self.whole]
        return replace(
            table,
            counts=counts,
            std_error=error,
            low=low,
            high=high,
            interval=np.full(counts.shape, INTERVAL),
            assumes=f"{table.assumes}; noised margins as described in the manifest",
            diagnostics=table.diagnostics | {"margins": used},
        )

    def _likely(self, table: Tabulation, found: Weighed) -> NDArray[np.float64]:
        """Return the likelihood estimate from the records, moved towards the margins in proportion to its error.

        Held-out records pull it towards independence, so that it is nearer to the truth than what intervals stand
        around, and biased. How wrong it is, the margins themselves tell: the mean square of its distance from them,
        less their noise, as a share of the variance of the unbiased estimate.
        """
        assert table.noise is not None
        if table.method != "likelihood" or table.counts.size < FEW:
            return found.counts
        others = weigh(np.zeros_like(table.noise), np.full_like(table.noise, np.inf), [one for _, one in self.whole])
        told = np.isfinite(others.variance) & np.isfinite(table.noise)
        distance = np.square(table.counts - others.counts) - others.variance
        share = np.clip(distance[told].sum() / max(float(table.noise[told].sum()), 1e-300), 0.0, 1.0)
        own = np.where(np.isfinite(table.noise), share * table.noise, np.inf)
        return weigh(table.counts, np.maximum(own, 1e-9), [one for _, one in self.whole]).counts


def raked_to_parts(
    table: Tabulation, names: Sequence[str], parts: Mapping[tuple[str, ...], NDArray[np.float64]]
) -> Tabulation:
    """Return the table raked to these sums; intervals are extended to contain the new counts."""
    from noren.estimates.counts.held_out import rake

    wanted: dict[tuple[int, ...], NDArray[np.float64]] = {}
    total = max(float(table.counts.sum()), 1e-300)
    held = {name for columns in parts for name in columns}
    order = sorted(range(len(names)), key=lambda j: names[j] in held)  # `rake` takes what stands last as other tables
    place = {names[j]: at for at, j in enumerate(order)}
    for columns, counts in parts.items():
        own = sorted(range(len(columns)), key=lambda i: place[columns[i]])
        moved = np.transpose(counts, own)
        wanted[tuple(place[columns[i]] for i in own)] = moved * (total / max(float(moved.sum()), 1e-300))
    flat = np.transpose(table.counts.reshape(table.counts.shape[: len(names)]), order)
    raked = rake(np.maximum(flat, 0.0), wanted)
    counts = np.transpose(raked, np.argsort(order)).reshape(table.counts.shape)
    told: dict[str, Any] = {"raked_to_margins": [list(columns) for columns in parts]}
    return replace(
        table,
        counts=counts,
        low=np.minimum(table.low, counts),
        high=np.maximum(table.high, counts),
        diagnostics=table.diagnostics | told,
        assumes=f"{table.assumes}; noised margins as described in the manifest",
    )
