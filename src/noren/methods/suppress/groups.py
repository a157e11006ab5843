"""The second phase of `suppress`: which terms every group suppresses, and the treatment of groups that cannot be
fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.engines import Omit, Plan, Records, TermSearch
from noren.errors import PolicyError, Problem, RequirementNotMet
from noren.methods.cover import cover
from noren.methods.suppress.beliefs import Linkage, linkages
from noren.methods.suppress.search import search_groups
from noren.metrics.general import view_of
from noren.models.base import Model
from noren.progress import Meter
from noren.ragged import offsets_of
from noren.statements import TermCells

if TYPE_CHECKING:
    from noren.methods.suppress import Suppress


PER_GROUP: dict[str, type] = {"cost": float, "lower_bound": float, "optimal": bool, "feasible": bool, "searched": bool}


@dataclass
class _Found:
    """The results for one linkage so far: the suppressed terms of the table, and PER_GROUP by group."""

    linkage: Linkage
    removed: NDArray[np.bool_]
    by_group: dict[str, NDArray]
    nodes: int = 0
    seconds: float = 0.0


def suppress_terms(method: Suppress, table: Records, first: Plan, requirements: Sequence[Model], meter: Meter) -> Plan:
    """Return the recoding of the first phase, with terms suppressed in groups that disclose too much."""
    recoding = first
    group, count = groups_of(table, recoding)
    found = [
        _Found(linkage, np.zeros(len(linkage.cells.data), bool), {n: np.zeros(count, t) for n, t in PER_GROUP.items()})
        for linkage in linkages(table, requirements)
    ]
    for one in found:
        one.by_group["optimal"][:] = one.by_group["feasible"][:] = True
        if len(one.linkage.rules) > 1:
            names = " and ".join(map(repr, one.linkage.names))
            message = f"{names} share a knowledge table and must have the same requirement."
            raise PolicyError([Problem("require", message, 'Require the same of all of them, or use "mondrian".')])
    stale = np.ones(count, bool)
    notes: list[str] = []
    share = method.total_seconds and method.total_seconds / max(1, len(found))
    while True:
        for one in found:
            _search(method, one, group, count, stale, share, meter)
        bad = np.zeros(count, bool)
        for one in found:
            bad |= ~one.by_group["feasible"]
        if not bad.any():
            break
        recoding, note = _mend_groups(method, table, recoding, group, count, bad)
        notes.append(note)
        before = group
        group, count = groups_of(table, recoding)
        stale = _carry_over(found, before, bad, group, count)
    terms: dict[str, TermCells] = {}
    cells = {name: column.cells for name, column in table.terms.items()}
    for one in found:
        terms |= one.linkage.split(~one.removed, cells)
    figures = tuple(_figures(method, one, group, count) for one in found)
    notes = [*first.notes, *dict.fromkeys(notes), *(figure.note for figure in figures)]
    treatments = {**recoding.treatments, **{name: Omit(left) for name, left in terms.items()}}
    return replace(recoding, treatments=treatments, notes=notes, searches=figures)


def report_progress(meter: Meter) -> Callable[[int, int, float], None]:
    """Report the results of a search about its groups (done, of how many, mean cost) as progress."""
    seen = 0

    def tell(done: int, groups: int, cost: float) -> None:
        nonlocal seen
        meter(max(0, done - seen), note=f"Terms, cost {cost:.4f}", total=groups)
        seen = done

    return tell


def groups_of(table: Records, recoding: Plan) -> tuple[NDArray[np.int64], int]:
    """Return the published group of every record (-1: not published), and their number."""
    view = view_of(table, recoding)
    group = np.full(table.n, -1, np.int64)
    group[view.keep] = view.classes
    return group, len(view.sizes)


def _search(
    method: Suppress,
    one: _Found,
    group: NDArray[np.int64],
    count: int,
    stale: NDArray[np.bool_],
    share: float | None,
    meter: Meter,
) -> None:
    """Search the groups that are new or have changed; `share` is the share of the time for this linkage."""
    todo = np.flatnonzero(stale)
    if not len(todo) or not one.linkage.rules:
        return
    order = np.argsort(group, kind="stable")
    order = order[np.searchsorted(group[order], 0) :]
    members = order[stale[group[order]]]
    bounds = offsets_of(np.bincount(group[order], minlength=count)[todo])
    ((rule, unlinked),) = one.linkage.rules
    cells = one.linkage.cells
    result = search_groups(
        members,
        bounds,
        cells.offsets,
        cells.data,
        one.linkage.knowledge,
        rule,
        one.linkage.alpha,
        search=method.search,
        seconds=method.seconds,
        nodes=method.nodes,
        total_seconds=share and max(0.0, share - one.seconds),
        unlinked=unlinked,
        progress=report_progress(meter),
        prices=method.prices(one.linkage.knowledge, cells.d),
    )
    entries = np.isin(cells.owner, members) if len(todo) < count else np.ones(len(cells.data), bool)
    one.removed[entries] = result.removed[entries]
    for name, figures in one.by_group.items():
        figures[todo] = getattr(result, name)
    one.nodes += result.nodes
    one.seconds += result.seconds


def _carry_over(
    found: Sequence[_Found],
    before: NDArray[np.int64],
    bad: NDArray[np.bool_],
    group: NDArray[np.int64],
    count: int,
) -> NDArray[np.bool_]:
    """Copy the results of unchanged groups; return which groups have changed."""
    shown = group >= 0
    sizes = np.bincount(group[shown], minlength=count)
    was = np.bincount(before[before >= 0], minlength=len(bad))
    origin = np.zeros(count, np.int64)
    origin[group[shown]] = before[shown]
    stale = (was[origin] != sizes) | bad[origin]
    mixed = before[shown] != origin[group[shown]]
    stale[group[shown][mixed]] = True
    for one in found:
        one.by_group = {name: figures[origin] for name, figures in one.by_group.items()}
    return np.asarray(stale)


def _mend_groups(
    method: Suppress,
    table: Records,
    recoding: Plan,
    group: NDArray[np.int64],
    count: int,
    bad: NDArray[np.bool_],
) -> tuple[Plan, str]:
    """Return the recoding without groups that no suppression can fix, and a note on their treatment."""
    records = int(bad[group[group >= 0]].sum())
    what = f"{int(bad.sum())} of {count} groups ({records} records) disclose too much whatever terms are suppressed"
    if method.infeasible == "refuse":
        raise RequirementNotMet(f"{what}.", hint='Raise k, ask for less, or set infeasible = "merge" or "drop".')
    if method.infeasible == "drop":
        keep = (group >= 0) & ~bad[np.maximum(group, 0)]
        allowed = int(method.suppression * table.n + 1e-9)
        if table.n - int(keep.sum()) > allowed:
            raise RequirementNotMet(
                f"{what}; at most {allowed} records may be suppressed.",
                hint='Raise suppression or k, or set infeasible = "merge".',
            )
        return replace(recoding, keep=keep), f"{records} records were dropped: {what}"
    if count == 1:
        raise RequirementNotMet(
            "even the whole table as one group discloses too much, whatever terms are suppressed.",
            hint="Lower the requirement: a larger t or c, or a smaller l.",
        )
    classes = merged_groups(table, group, count, bad)
    note = "groups that disclose too much whatever terms are suppressed were merged with their nearest neighbours"
    return cover_classes(table, recoding, classes, int(classes.max()) + 1), note


def cover_classes(table: Records, recoding: Plan, classes: NDArray[np.int64], count: int) -> Plan:
    """Return the recoding with these classes of records; each publishes the smallest generalised values that cover
    it."""
    treatments = dict(recoding.treatments)
    for name in table.quasi:
        treatments[name] = cover(table.columns[name], table.codes[name], classes, count)
    keep = classes >= 0
    return replace(recoding, treatments=treatments, keep=None if keep.all() else keep)


def merged_groups(table: Records, group: NDArray[np.int64], count: int, bad: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return new classes: every bad group together with the nearest group."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import KDTree

    centre = _centres(table, group, count)
    partner = np.arange(count)
    wanting = np.flatnonzero(bad)
    _, near = KDTree(centre).query(centre[wanting], k=2, p=1)
    partner[wanting] = np.where(near[:, 0] == wanting, near[:, 1], near[:, 0])
    _, number = connected_components(coo_array((np.ones(count), (np.arange(count), partner)), (count, count)))
    return np.where(group >= 0, number[np.maximum(group, 0)], -1)


def _centres(table: Records, group: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """Return the centre of every group: mean positions of its records, each quasi-identifier between 0 and 1."""
    from noren.methods.mondrian.space import space_of

    space = space_of(table, {})
    shown = group >= 0
    sizes = np.maximum(1, np.bincount(group[shown], minlength=count))
    out = np.empty((count, len(table.quasi)), np.float32)
    for b in range(len(table.quasi)):
        place = space.rows[shown, b] / max(1, int(space.costs.widths[b]) - 1)
        out[:, b] = np.bincount(group[shown], place, minlength=count) / sizes
    return out


def _figures(method: Suppress, one: _Found, group: NDArray[np.int64], count: int) -> TermSearch:
    shown = group[one.linkage.cells.owner] >= 0
    return TermSearch(
        columns=one.linkage.names,
        search=method.search,
        records=np.bincount(group[group >= 0], minlength=count),
        **{name: figures for name, figures in one.by_group.items() if name != "feasible"},
        entries=int(shown.sum()),
        removed=int((one.removed & shown).sum()),
        nodes=one.nodes,
        seconds=one.seconds,
    )
