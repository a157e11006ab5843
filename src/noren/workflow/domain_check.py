"""Checks that a release lists only values that its cells show or its policy declares.

A list of values is a place where a forger can write. A value taken from the data must be shown by a cell; what lies
under generalised values follows from the generalised values that cells show; what is declared is compared with the
policy, and without one it is named as what only the policy can confirm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import inf, isclose, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError, ReleaseError
from noren.models.verdict import Verdict
from noren.policy.policy import Policy
from noren.policy.resolve import declared_column
from noren.policy.values import sort_ranked
from noren.release.release import Release
from noren.schema.column import Column, HierarchySpec
from noren.schema.confusables import count_lookalikes
from noren.schema.domain import (
    MISSING,
    OTHER,
    OTHERS,
    Domain,
    bare,
    bin_labels,
    end_labels,
    infer_kind,
    masks,
    sort_labels,
)
from noren.schema.extents import ANYTHING, bounds_on, ends_of, kind_of, strip_number
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge, knowledge_rows
from noren.schema.roles import Role
from noren.schema.tuples import TupleDomain
from noren.statements import GroupStatement, MeanStatement, NodeStatement, Statement
from noren.workflow.truth import Truth

BY_CHANCE = 1e-9
"""A value that somebody has stays out of all drawn cells with a smaller chance: then nobody has it."""
SPECIAL = (MISSING, OTHER)
Tallies = Mapping[str, NDArray[np.int64]]


# ---------------------------------------------------------------------- the release by itself


def demand_legible(release: Release) -> None:
    """Refuse labels of one column that look the same, because cells with both would only seem protected."""
    for statement in release.statements:
        for labels in _labels(statement):
            if found := count_lookalikes(labels):
                what = "a label looks" if found == 1 else f"{found:,} labels look"
                message = f"column {statement.name!r}: {what} like another one, or like an empty cell."
                raise ReleaseError.distrust(message)


def _labels(statement: Statement) -> Iterable[Sequence[str]]:
    """Return the labels of a column that a reader must distinguish, list by list."""
    column = statement.column
    if column.is_open:
        return
    domain = column.domain
    members = domain.members if isinstance(domain, TupleDomain) else ()
    trees = [tree for tree in (column.tree, *(member.tree for member in members)) if tree is not None]
    for one in (domain, *(member.domain for member in members)):
        if one.kind == "string" and one.measure is None:
            yield one.values
    for tree in trees:
        yield from (tuple(dict.fromkeys(level)) for level in tree.levels[1:])
    if isinstance(statement, NodeStatement) and statement.listed is not None:
        yield statement.listed.labels


def tallied_columns(release: Release, policy: Policy | None) -> list[Statement]:
    """Return the columns whose shown values must be counted."""
    chosen = []
    for one in release.statements:
        if one.column.is_open and one.form != "mean":
            continue
        derived = one.form in ("node", "group", "mean", "terms")
        if derived or one.domain.source == "data" or (policy is not None and not one.is_class):
            chosen.append(one)
    return chosen


def demand_shown(release: Release, tallies: Tallies) -> None:
    """Refuse values, generalised values, means and groups that no cell shows and that are not declared."""
    for statement in release.statements:
        if statement.name in tallies and (found := _hidden_words(release, statement, tallies[statement.name])):
            raise ReleaseError.distrust(f"column {statement.name!r}: {found}.")


def _hidden_words(release: Release, statement: Statement, tally: NDArray[np.int64]) -> str | None:
    """Describe what a column lists although nothing shows it; None if everything is shown or declared."""
    if isinstance(statement, MeanStatement):
        means = [mean for mean in statement.means if mean is not None]
        rises = all(a < b for a, b in pairwise(means)) and None not in statement.means[:-1]
        return None if rises and tally.all() else "it lists means that no cell shows, or not in order"
    if isinstance(statement, GroupStatement):
        tally = statement.table.totals  # that it fits the cells is judged with the requirements
    domain = statement.domain
    if statement.terms is not None:
        return None if _unseen_terms(statement, tally).all() else "it lists terms that no cell shows"
    if isinstance(statement, NodeStatement):
        return _hidden_nodes(statement, tally)
    if domain.source != "data":
        return None
    unseen = np.flatnonzero(tally == 0)
    if statement.design is not None and not (statement.is_class or statement.is_exact):
        unseen = unseen[_chance(release, statement, unseen) < BY_CHANCE]
    if len(unseen) and not _is_whole_range(domain, unseen):
        return f"it lists {len(unseen):,} values of the data that no cell shows"
    return None if _is_sorted(domain) else "its values are not in order"


def _unseen_terms(statement: Statement, tally: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether every term is shown or in the knowledge table."""
    known = statement.column.knowledge
    named = set(known.terms) if isinstance(known, Knowledge) else set()
    return np.asarray((tally > 0) | np.array([term in named for term in statement.domain.values], bool))


def _chance(release: Release, statement: Statement, unseen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return an upper bound of the probability that an occurring value is in no drawn cell."""
    if not len(unseen):
        return np.zeros(0)
    assert statement.design is not None
    matrix = np.asarray(statement.design.inclusion_matrix())[:, unseen]
    others = (1 - matrix.min(axis=0)) ** release.records
    own = 1 - matrix[unseen, np.arange(len(unseen))]
    return np.asarray(others if release.suppressed else np.minimum(others, own))


def _is_whole_range(domain: Domain, unseen: NDArray[np.int64]) -> bool:
    """Return whether unshown values are declared ends, or whole numbers between shown ones."""
    ends = {label for _, label in end_labels(domain.top, domain.bottom)}
    inner = [i for i, value in enumerate(domain.values) if value not in ends and value not in SPECIAL]
    left = {i for i in unseen.tolist() if domain.values[i] not in ends}
    if not left:
        return True
    if not left <= set(inner) or not all(domain.values[i].removeprefix("-").isdecimal() for i in inner):
        return False
    numbers = [int(domain.values[i]) for i in inner]
    bottom = inner[0] not in left or (domain.bottom is not None and numbers[0] == np.ceil(domain.bottom))
    top = inner[-1] not in left or (domain.top is not None and numbers[-1] == np.ceil(domain.top) - 1)
    return bottom and top and numbers == list(range(numbers[0], numbers[-1] + 1))


def _is_sorted(domain: Domain) -> bool:
    """Return whether values from the data are in their canonical order."""
    if isinstance(domain, TupleDomain):
        return True  # by the places of their parts, which their members list
    listed = list(domain.values)
    if domain.has_ends:
        return listed == sort_ranked(listed, domain.top, domain.bottom)
    kinds = dict.fromkeys((domain.kind, infer_kind(domain.plain), "string"))
    return any(listed == sort_labels(listed, kind) for kind in kinds)


def _hidden_nodes(statement: NodeStatement, tally: NDArray[np.int64]) -> str | None:
    """Describe what a column of generalised values lists besides those of its cells."""
    nodes, domain = statement.listed, statement.domain
    if nodes is None:
        return None
    runs = [tuple(run) for run in nodes.runs]
    if not tally.all():
        return f"it lists {int((tally == 0).sum()):,} generalised values that no cell shows"
    if runs != sorted(runs):
        return "its generalised values are not in order"
    if domain.integers is not None or domain.measure is not None:
        return "its ends differ from those of its generalised values" if unshown_ends(statement) is None else None
    if domain.hidden and not (names_all(statement) and stands_for_nodes(domain, nodes.labels)):
        return "it lists values that are part of none of its generalised values"
    covered = np.zeros(len(domain), bool)
    for run in runs:
        for start, stop in run:
            covered[start:stop] = True
    return None if covered.all() or domain.source != "data" else "it lists values without a generalised value"


def names_all(statement: Statement) -> bool:
    """Return whether generalised texts name every value under them, except placeholders."""
    if not isinstance(statement, NodeStatement) or statement.listed is None or statement.domain.source != "data":
        return True
    domain, labels = statement.domain, [strip_number(label) for label in statement.listed.labels]
    if domain.measure is not None or domain.integers is not None:
        return True
    named = {*labels, *domain.hidden, *SPECIAL}
    for label, run in zip(labels, statement.listed.runs, strict=True):
        values = [domain.values[code] for start, stop in run for code in range(start, stop)]
        if label == "{" + ", ".join(values) + "}":
            named.update(values)
    return set(domain.values) <= named


def stands_for_nodes(domain: Domain, labels: Sequence[str]) -> bool:
    """Return whether every placeholder is named after a generalised value."""
    known = {name for label in labels for name in (label, OTHERS + label)}
    return all(name.rstrip() in known or name in known for name in domain.hidden)


def unshown_ends(statement: Statement) -> set[float] | None:
    """Return ends of base values that no generalised value shows: declared ones, or top and bottom coding. None if an
    edge is neither."""
    domain, nodes = statement.domain, statement.nodes
    if nodes is None or (domain.integers is None and domain.measure is None):
        return set()
    measure = domain.measure or "integer"
    bare = [label.removesuffix(f" or {MISSING}") for label in nodes.labels if label != MISSING]
    found = [ends_of(label, kind_of(measure)) for label in bare]
    shown = {place for one in found if one is not None for place in bounds_on(one, measure)}
    edges = [*map(float, domain.integers)] if domain.integers is not None else list(domain.edges or ())
    finite = [edge for edge in edges if isfinite(edge)]
    bottom = domain.bottom is not None or edges[:1] == [-inf]
    top = domain.top is not None or edges[-1:] == [inf]
    declared = {*(finite[:1] if bottom else []), *(finite[-1:] if top else [])}
    wanted = {place for place in shown if isfinite(place)}
    if domain.integers is not None and wanted:
        wanted = {min(wanted), max(wanted)} if len(wanted) > 1 else wanted
        inside = all(min(edges) <= place <= max(edges) for place in wanted)
        return set(finite) - wanted if inside and set(finite) - wanted <= declared else None
    extra = set(finite) - wanted
    return extra if wanted <= set(finite) and extra <= declared else None


# ---------------------------------------------------------------------- what only a policy says


def only_policy_confirms(release: Release) -> list[str]:
    """Return sentences about declarations that neither cells nor rules show, so that only the policy confirms them."""
    out = [f"the title {release.manifest.title[:60]!r}"] if release.manifest.title else []
    for statement in release.statements:
        column = statement.column
        if column.is_open:
            continue
        what = []
        if column.domain.source != "data" and column.domain.measure is None and column.domain.integers is None:
            what.append("declared values")
        if unshown_ends(statement) or (column.domain.has_ends and column.domain.integers is None):
            what.append("declared ends")
        if not names_all(statement):
            what.append("the values")
        if column.tree is not None:
            what.append("the hierarchy")
        if column.distance != "equal" and not isinstance(column.distance, str):
            what.append("the distances")
        if column.knowledge is not None:
            what.append("the knowledge table")
        if what:
            out.append(f"{' and '.join(what)} of {statement.name!r}")
    return out


def other_domains(release: Release, policy: Policy, tallies: Tallies, truth: Truth | None) -> list[Verdict]:
    """Return a failing verdict for every column whose values, hierarchy, distances or knowledge are not the
    policy's."""
    out = []
    for statement in release.statements:
        declared = policy.attributes.get(statement.name)
        if declared is None or declared.role is Role.IDENTIFIER:
            continue  # which is another verdict
        found = _unlike(statement, declared, policy, tallies)
        if found is None and truth is not None and statement.name in truth.source.columns:
            found = _not_in(truth.table.columns.get(statement.name), statement)
        if found is not None:
            out.append(refute("published-domain", statement.name, release.records, f"{statement.name!r}: {found}"))
    said = release.manifest.title
    if said != policy.title and policy.title:
        out.append(refute("published-domain", "all columns", release.records, "the title is not the policy's"))
    return out


def refute(model: str, column: str, records: int, text: str, asked: float = 0.0, found: float = 1.0) -> Verdict:
    """Return a failing verdict on all records from the release."""
    return Verdict(model, column, float(asked), float(found), False, "the release alone", records, records, text)


def _unlike(statement: Statement, declared: Column, policy: Policy, tallies: Tallies) -> str | None:
    """Describe how a column differs from the policy's description of its values; None if it does not."""
    column, name = statement.column, statement.name
    if column.is_open:
        listed = declared.values is not None or declared.edges is not None
        open_form = statement.form == "open"
        return "it lists no values, although the policy declares them" if listed and open_form else None
    if statement.terms is not None:
        return _other_knowledge(statement, declared, policy)
    domain = column.domain
    found: str | None
    if isinstance(domain, TupleDomain):
        parts = {one.name: one for one in domain.members}
        for own, part in declared.members.items():
            tree = policy.hierarchies.get(own)
            found = _other_values(part, tree, parts[own].domain, False) if own in parts else "other members"
            found = found or _other_tree(part, tree, parts[own].tree, parts[own].domain)
            if found is not None:
                return f"member {own!r}: {found}"
    elif found := _other_values(declared, policy.hierarchies.get(name), domain, isinstance(statement, NodeStatement)):
        return found
    if _takes_data(declared, policy.hierarchies.get(name)) and domain.source not in ("data", "hierarchy"):
        tally = statement.table.totals if isinstance(statement, GroupStatement) else tallies.get(name)
        if tally is not None and len(tally) == len(domain) and not (tally > 0).all():
            return "it declares values that neither the policy lists nor a cell shows"
    if _takes_data(declared, policy.hierarchies.get(name)) and not names_all(statement):
        return "it lists values that are part of none of its generalised values"
    if not (unshown_ends(statement) or set()) <= {declared.top, declared.bottom}:
        return "its ends differ from those of the policy and of its generalised values"
    return _other_tree(declared, policy.hierarchies.get(name), column.tree, domain) or _other_distance(column, policy)


def _takes_data(declared: Column, tree: Hierarchy | None) -> bool:
    return declared.values is None and declared.bins is None and tree is None


def _plain(values: Iterable[str]) -> list[str]:
    return [value for value in values if value not in SPECIAL]


def _other_values(declared: Column, tree: Hierarchy | None, domain: Domain, general: bool) -> str | None:
    """Describe how a list of values differs from the declared one; values without records may be absent under
    generalised ones."""
    listed = _plain(domain.values)
    if declared.edges is not None:
        if domain.edges != declared.edges or listed != list(bin_labels(declared.edges)):
            return "its bins are not the policy's"
    elif isinstance(declared.bins, str):
        return None if _fits_rule(declared, domain) else "its bins do not follow the policy's rule"
    elif declared.values is not None:
        wanted = _plain(declared.values)
        if listed != ([value for value in wanted if value in set(listed)] if general else wanted):
            return "its values are not those that the policy declares"
    elif tree is not None and not domain.hidden and domain.measure is None and domain.integers is None:
        if tree.missing(domain.values):
            return "it has values that are not in the policy's hierarchy"
        if domain.source == "hierarchy" and set(listed) != set(_plain(tree.leaves)):
            return "its values are not the leaves of the policy's hierarchy"
    elif (
        domain.integers is None
        and domain.measure is None
        and (domain.top, domain.bottom) != (declared.top, declared.bottom)
    ):
        return "its open ends are not the policy's"
    return None


def _fits_rule(declared: Column, domain: Domain) -> bool:
    """Return whether bins follow a rule, as far as this is known without the data: their width or number."""
    rule, _, argument = str(declared.bins).partition(":")
    if domain.edges is None or domain.measure is not None:
        return domain.edges is not None
    ends = [end for end in (declared.bottom, declared.top) if end is not None]
    inner = [edge for edge in domain.edges if isfinite(edge) and edge not in ends]
    if rule != "width":
        return len(inner) + 1 <= max(2, int(float(argument)))
    step = float(argument)
    return all(isclose(edge / step, round(edge / step), rel_tol=1e-9, abs_tol=1e-9) for edge in inner)


def _other_tree(declared: Column, known: Hierarchy | None, tree: Hierarchy | None, domain: Domain) -> str | None:
    """Describe how a published hierarchy differs from the policy's, or from the rule that it states."""
    if tree is None:
        return None
    spec = declared.hierarchy
    other = "its hierarchy is not the policy's"
    if known is not None:
        same = not known.missing(domain.values) and tree.levels == known.restrict_to(domain.values).levels
        return None if same else other
    if not isinstance(spec, HierarchySpec):
        return other
    if spec.counts_records or domain.hidden:
        return None if all(map(_is_general, tree.levels[1:], [tree.leaves] * tree.height)) else other
    try:
        made = spec.over(domain.values, np.zeros(len(domain), np.int64))
    except NorenError:
        return other
    return None if made.levels == tree.levels else other


def _is_general(level: Sequence[str], leaves: Sequence[str]) -> bool:
    """Return whether every label above a leaf is the leaf, an interval, a mask of it, or a number of records."""
    for label, leaf in zip(map(bare, level), map(bare, leaves), strict=True):
        few = label.removeprefix("fewer than ").removesuffix(" records")
        known = label in (leaf, *ANYTHING) or masks(label, leaf) or masks(strip_number(label), strip_number(leaf))
        starred = label.rstrip("*") != label and leaf.startswith(label.rstrip("*")) and len(label) == len(leaf)
        if not (known or starred or few.isdecimal() or ends_of(label, "number") or ends_of(label, "date")):
            return False
    return True


def _other_distance(column: Column, policy: Policy) -> str | None:
    """Describe how published distances differ from the policy's."""
    if column.distance == "equal":
        return None
    try:
        wanted = declared_column(policy, column)
        same = column.distance == wanted.distance or _same(column.distances, wanted.distances)
    except NorenError:
        same = False
    return None if same else "its distances are not the policy's"


def _same(one: NDArray | None, other: NDArray | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other)


def _other_knowledge(statement: Statement, declared: Column, policy: Policy) -> str | None:
    """Describe how terms or their knowledge table differ from the policy's."""
    known, told = policy.knowledge.get(statement.name), statement.column.knowledge
    if known is None or not isinstance(told, Knowledge):
        return "the policy has no knowledge table of it"
    more = list(statement.domain.values[len(known.terms) :])
    listed = statement.domain.values[: len(known.terms)] == known.terms
    kept = not more or (declared.unknown == "keep" and more == sorted(more))
    same = listed and kept and _lines(known) == _lines(told)
    return None if same else "its terms or its knowledge table are not the policy's"


def _lines(knowledge: Knowledge) -> list[tuple[Any, ...]]:
    """Return the lines of a knowledge table in a fixed order; priors are normalised again, so the last digits may
    differ."""
    columns = knowledge_rows(knowledge).values()
    rows = [[f"{cell:.11e}" if isinstance(cell, float) else cell or "" for cell in cells] for cells in columns]
    return sorted(zip(*rows, strict=True))


def _not_in(truth: Column | None, statement: Statement) -> str | None:
    """Describe what a column lists although the original does not have it."""
    if truth is None or truth.is_open or statement.column.is_open or statement.terms is not None:
        return None
    own, domain = truth.domain, statement.domain
    if domain.hidden or domain.measure is not None or domain.integers is not None:
        return None  # which follows from its general values
    if not set(domain.values) <= set(own.values):
        return "it lists values that are not in the original"
    if domain.edges is not None and domain.edges != own.edges:
        return "its bins differ from those that the policy's rule gives for the original"
    tree = statement.column.tree
    if tree is not None and truth.tree is not None and tree.levels != truth.tree.restrict_to(domain.values).levels:
        return "its hierarchy differs from the one that the policy's rule gives for the original"
    return None
