"""The second phase of `suppress`: which terms every group gives up, and what becomes of groups beyond mending."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.engines import Omit, Plan, Records, TermSearch
from noren.errors import PolicyError, Problem, RequirementNotMet
from noren.methods.cover import cover
from noren.methods.suppress.beliefs import Linkage, linkages, measure_groups
from noren.methods.suppress.search import GroupsResult, search_groups
from noren.metrics.general import view_of
from noren.models.base import Model
from noren.progress import Meter
from noren.ragged import offsets_of, owners
from noren.statements import TermCells

if TYPE_CHECKING:
    from noren.methods.suppress import Suppress


@dataclass
class _Found:
    """What is known of one linkage so far; one entry per group, and one per term of the table."""

    linkage: Linkage
    removed: NDArray[np.bool_]
    cost: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    lower_bound: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    optimal: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    feasible: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    searched: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    nodes: int = 0
    seconds: float = 0.0


def suppressed(method: Suppress, table: Records, first: Plan, requirements: Sequence[Model], meter: Meter) -> Plan:
    """The recoding of the first phase, with terms left out wherever a group's terms reveal too much."""
    found = [_Found(linkage, np.zeros(len(linkage.cells.data), bool)) for linkage in linkages(table, requirements)]
    for one in found:
        if len(one.linkage.rules) > 1:
            names = " and ".join(map(repr, one.linkage.names))
            message = f"{names} are linked by one knowledge table and must meet one and the same requirement."
            raise PolicyError([Problem("require", message, 'Ask the same of all of them, or use "mondrian".')])
    recoding = first
    group, count = groups_of(table, recoding)
    stale = np.ones(count, bool)
    notes: list[str] = []
    share = method.total_seconds and method.total_seconds / max(1, len(found))
    while True:
        for one in found:
            _search(method, one, group, count, stale, share, meter)
        bad = np.zeros(count, bool)
        for one in found:
            bad |= ~one.feasible
        if not bad.any():
            break
        recoding, note = _mended(method, table, recoding, group, count, bad)
        notes.append(note)
        before = group
        group, count = groups_of(table, recoding)
        stale = _carried(found, before, bad, group, count)
    terms: dict[str, TermCells] = {}
    cells = {name: column.cells for name, column in table.terms.items()}
    for one in found:
        terms |= one.linkage.split(~one.removed, cells)
    figures = tuple(_figures(method, one, group, count) for one in found)
    notes = [*first.notes, *dict.fromkeys(notes), *(figure.note for figure in figures)]
    treatments = {**recoding.treatments, **{name: Omit(left) for name, left in terms.items()}}
    return replace(recoding, treatments=treatments, notes=notes, searches=figures)


def told(meter: Meter) -> Callable[[int, int, float], None]:
    """What a search tells about its groups (done, of how many, mean cost), as progress."""
    seen = 0

    def tell(done: int, groups: int, cost: float) -> None:
        nonlocal seen
        meter(max(0, done - seen), note=f"Terms, cost {cost:.4f}", total=groups)
        seen = done

    return tell


def groups_of(table: Records, recoding: Plan) -> tuple[NDArray[np.int64], int]:
    """The group of every record as a reader sees it (-1: not published), and how many there are."""
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
    """Search the groups that are new or have changed; `share` is this linkage's part of the time for all of them."""
    if not len(one.cost):
        one.cost, one.lower_bound = np.zeros(count), np.zeros(count)
        one.optimal, one.feasible, one.searched = (np.ones(count, bool), np.ones(count, bool), np.zeros(count, bool))
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
        progress=told(meter),
        prices=method.prices(one.linkage.knowledge, cells.d),
    )
    result = _bare(result, members, bounds, one.linkage)
    entries = np.isin(cells.owner, members) if len(todo) < count else np.ones(len(cells.data), bool)
    one.removed[entries] = result.removed[entries]
    one.cost[todo], one.lower_bound[todo] = result.cost, result.lower_bound
    one.optimal[todo], one.feasible[todo] = result.optimal, result.feasible
    one.searched[todo] = result.searched
    one.nodes += result.nodes
    one.seconds += result.seconds


def _bare(
    result: GroupsResult, members: NDArray[np.int64], bounds: NDArray[np.int64], linkage: Linkage
) -> GroupsResult:
    """The result, with all terms left out of groups whose search ended before it found anything, where that helps.

    Records without terms are all alike, so what holds for one such group holds for any.
    """
    lost = np.flatnonzero(~result.feasible & ~result.optimal)
    if not len(lost):
        return result
    ((rule, unlinked),) = linkage.rules
    zero, none = np.zeros(2, np.int64), np.zeros(0, np.int64)
    nothing = measure_groups(
        zero[:1], np.array([0, 1]), zero, none, linkage.knowledge, linkage.alpha, l=rule.l, unlinked=unlinked
    )
    if not rule.holds(nothing)[0]:
        return result
    group = np.full(len(linkage.cells), -1, np.int64)
    group[members] = owners(bounds)
    removed, cost = result.removed | np.isin(group[linkage.cells.owner], lost), result.cost.copy()
    low, feasible = result.lower_bound.copy(), result.feasible.copy()
    cost[lost], low[lost], feasible[lost] = 1.0, np.minimum(low[lost], 1.0), True
    return replace(result, removed=removed, cost=cost, lower_bound=low, feasible=feasible)


def _carried(
    found: Sequence[_Found],
    before: NDArray[np.int64],
    bad: NDArray[np.bool_],
    group: NDArray[np.int64],
    count: int,
) -> NDArray[np.bool_]:
    """Take over what is known of groups that are the same as before. Returns which groups are not."""
    shown = group >= 0
    sizes = np.bincount(group[shown], minlength=count)
    was = np.bincount(before[before >= 0], minlength=len(bad))
    origin = np.zeros(count, np.int64)
    origin[group[shown]] = before[shown]
    stale = (was[origin] != sizes) | bad[origin]
    mixed = before[shown] != origin[group[shown]]
    stale[group[shown][mixed]] = True
    for one in found:
        for name in ("cost", "lower_bound", "optimal", "feasible", "searched"):
            setattr(one, name, getattr(one, name)[origin])
    return stale


def _mended(
    method: Suppress,
    table: Records,
    recoding: Plan,
    group: NDArray[np.int64],
    count: int,
    bad: NDArray[np.bool_],
) -> tuple[Plan, str]:
    """The recoding without groups that no removal can mend, and what was done about them."""
    records = int(bad[group[group >= 0]].sum())
    what = f"{int(bad.sum())} of {count} groups ({records} records) reveal too much whatever was left out"
    if method.infeasible == "refuse":
        raise RequirementNotMet(f"{what}.", hint='Raise k, ask for less, or set infeasible = "merge" or "drop".')
    if method.infeasible == "drop":
        keep = (group >= 0) & ~bad[np.maximum(group, 0)]
        allowed = int(method.suppression * table.n + 1e-9)
        if table.n - int(keep.sum()) > allowed:
            raise RequirementNotMet(
                f"{what}; at most {allowed} records may be dropped.",
                hint='Raise suppression or k, or set infeasible = "merge".',
            )
        return replace(recoding, keep=keep), f"{records} records were dropped: {what}"
    if count == 1:
        raise RequirementNotMet(
            "the whole table as one group reveals too much whatever terms are left out.",
            hint="Ask for less: a larger t or c, or a smaller l.",
        )
    classes = merged_groups(table, group, count, bad)
    note = "groups that reveal too much whatever was left out were merged with their nearest neighbours"
    return covered(table, recoding, classes, int(classes.max()) + 1), note


def covered(table: Records, recoding: Plan, classes: NDArray[np.int64], count: int) -> Plan:
    """The recoding with these classes of records; each publishes the least general values that cover it."""
    treatments = dict(recoding.treatments)
    for name in table.quasi:
        treatments[name] = cover(table.columns[name], table.codes[name], classes, count)
    keep = classes >= 0
    return replace(recoding, treatments=treatments, keep=None if keep.all() else keep)


def merged_groups(table: Records, group: NDArray[np.int64], count: int, bad: NDArray[np.bool_]) -> NDArray[np.int64]:
    """New classes: every bad group together with the group nearest to it."""
    from scipy.spatial import KDTree

    centre = _centres(table, group, count)
    partner = np.arange(count)
    wanting = np.flatnonzero(bad)
    _, near = KDTree(centre).query(centre[wanting], k=2, p=1)
    partner[wanting] = np.where(near[:, 0] == wanting, near[:, 1], near[:, 0])
    root = np.arange(count)
    while True:
        low = root.copy()
        np.minimum.at(low, np.arange(count), root[partner])
        np.minimum.at(low, partner, root)
        low = low[low]
        if (low == root).all():
            break
        root = low
    _, number = np.unique(root, return_inverse=True)
    return np.where(group >= 0, number.ravel()[np.maximum(group, 0)], -1)


def _centres(table: Records, group: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """Where every group lies: mean places of its records, each quasi-identifier between 0 and 1."""
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
        cost=one.cost,
        lower_bound=one.lower_bound,
        optimal=one.optimal,
        searched=one.searched,
        entries=int(shown.sum()),
        removed=int((one.removed & shown).sum()),
        nodes=one.nodes,
        seconds=one.seconds,
    )
