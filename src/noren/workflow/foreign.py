"""Tables that were anonymised elsewhere: read as they are, so that the same checks judge them.

Every quasi-identifier is taken as the texts that stand there, whatever notation another tool used: records look alike
if their texts are equal, and missing cells equal each other. A sensitive column is read as values, or as nodes of the
hierarchy that the policy gives it. Rows whose quasi-identifiers all say "suppressed" are judged as a class of their
own: what else they say is about people of the table. Only rows that say nothing at all are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from noren.errors import DataError, PolicyError, Problem
from noren.models.verdict import Verdict, Verdicts
from noren.policy.policy import Policy
from noren.policy.resolve import NO_ORDER, open_table
from noren.release.published import Published
from noren.release.release import is_release, open_release
from noren.release.store import MemoryStore, PeopleStore, Store, names_people
from noren.schema.column import Column
from noren.schema.confusables import merge_lookalikes
from noren.schema.domain import MISSING, Domain, has_no_order, infer_kind, is_number, sort_labels
from noren.schema.hierarchy import Hierarchy
from noren.schema.kinds import number_text
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import tree_of
from noren.schema.roles import Role
from noren.sources.source import Source
from noren.statements import (
    Cells,
    CodeCells,
    ExactStatement,
    NodeStatement,
    OpenCells,
    OpenStatement,
    Statement,
    TermsStatement,
)
from noren.statements.encode import as_dictionary, encode_labels, label_counts
from noren.statements.term_cells import encode_terms, term_counts
from noren.workflow.prepare import read_policy
from noren.workflow.verify import check as judge
from noren.workflow.verify import unwanted, verify

QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)
SUPPRESSED = "*"
MOST_LABELS = 1 << 14
"""Up to so many different texts of a quasi-identifier are coded."""


def read_foreign(
    source: Source,
    roles: Mapping[str, Role],
    *,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    knowledge: Mapping[str, Knowledge] | None = None,
    people: Sequence[str] = (),
    suppressed: str | None = SUPPRESSED,
    judged: bool = False,
) -> Published:
    """The columns that have a role, as far as the table has them. Identifiers and plain columns are not read.

    Where the table has all columns of the key `people`, its store says whose row each is.
    With `judged`, suppressed rows that say anything besides stay as a class of their own.
    """
    names = [n for n in source.columns if n in roles and not roles[n].is_dropped and roles[n] is not Role.PLAIN]
    quasi = [name for name in names if roles[name] in QUASI]
    columns = _columns(source, names)
    rows = len(next(iter(columns.values()))) if columns else 0
    if not names or not rows:
        why = "it has a header but no rows" if names else "none of its columns has a role to be checked"
        hint = "Give a table with at least one record." if names else "Name quasi-identifiers and sensitive columns."
        raise DataError(f"{source.name}: nothing to check: {why}.", hint=hint)
    keep = _kept(columns, quasi, suppressed)
    gone = int((~keep).sum())
    if judged and gone:
        others = [name for name in source.columns if name not in quasi]
        keep |= _telling(_columns(source, others), rows, str(suppressed))
    if not keep.all():
        chosen = np.flatnonzero(keep)
        columns = {name: column.take(chosen) for name, column in columns.items()}
    if not keep.any():
        raise DataError(
            f"{source.name}: every row has {suppressed!r} in all quasi-identifiers, so every record was dropped.",
            hint="If they are one class of records instead, say so: suppressed = None, or --suppressed ''.",
        )
    statements: list[Statement] = []
    cells: dict[str, Cells] = {}
    trees, orders, known = hierarchies or {}, values or {}, knowledge or {}
    for name in names:
        if roles[name] is Role.QUASI_IDENTIFIER:
            statement, found = _key(name, roles[name], columns[name])
        elif roles[name] is Role.QUASI_SENSITIVE:
            statement, found = _terms(name, columns[name], known[name], list(known).index(name) + 1)
        else:
            kept = suppressed is None or name in trees
            hidden = columns[name] if kept else _without(columns[name], name, str(suppressed))
            statement, found = _secret(name, roles[name], hidden, trees.get(name), orders.get(name))
        statements.append(statement)
        cells[name] = found
    number = int(keep.sum())
    store: Store = MemoryStore(cells)
    if people and set(people) <= set(source.columns):
        store = PeopleStore(store, _people(source, people)[keep])
    return Published(statements, store, number, suppressed=gone, title=source.name)


def _people(source: Source, key: Sequence[str]) -> np.ndarray:
    """The number of every row's person, from 0 on."""
    columns = _columns(source, list(key))
    found = np.zeros(len(next(iter(columns.values()))), np.int64)
    for name, column in columns.items():
        texts, positions = as_dictionary(column, name)
        if (positions < 0).any():
            raise DataError("the key of a person is missing in some records.", hint="Every person needs one.")
        found = np.unique(found * np.int64(len(texts)) + positions, return_inverse=True)[1].reshape(-1)
    return found


def foreign_table(data: Any, policy: Policy, *, suppressed: str | None = SUPPRESSED, judged: bool = False) -> Published:
    """A table that another tool made, read as a policy describes it."""
    return read_foreign(
        open_table(data, policy),
        {name: column.role for name, column in policy.attributes.items()},
        hierarchies=policy.hierarchies,
        values={name: column.values for name, column in policy.attributes.items() if column.values is not None},
        knowledge=policy.knowledge,
        people=policy.people.key,
        suppressed=suppressed,
        judged=judged,
    )


def verify_table(
    data: Any, policy: Policy | str | Path, *, suppressed: str | None = SUPPRESSED, show: int = 0
) -> tuple[Published, Verdicts[Verdict]]:
    """Check a table that another tool made against the requirements of a policy. Suppressed rows are a class too."""
    policy = read_policy(policy)
    foreign = foreign_table(data, policy, suppressed=suppressed, judged=True)
    for statement in foreign.statements:
        ordered = any("order" in model.needs and statement.name in model.on for model in policy.require)
        if ordered and statement.domain.source == "data" and has_no_order(statement.domain.values):
            raise PolicyError([Problem(f"attributes.{statement.name}.values", *NO_ORDER)], source=policy.source)
    known = names_people(foreign.store)
    several = bool(policy.people.key) and not known
    verdicts = judge(foreign, policy.require, show=show, people=known, several=several)
    columns = open_table(data, policy).columns
    return foreign, Verdicts(verdicts + unwanted(columns, policy, foreign.records, "the table has the column"))


def check(table: Any, policy: Policy | str | Path, *, suppressed: str | None = SUPPRESSED) -> bool:
    """Whether a table or a release meets every requirement of a policy: true or false, and nothing else.

    Rows of a table whose quasi-identifiers all say `suppressed` are a class like others, unless they say nothing else.

    >>> import noren as nr
    >>> import polars as pl
    >>> people = pl.DataFrame({"town": ["Ulm"] * 20 + ["Bonn"] * 20, "job": ["cook", "clerk", "miner", "nurse"] * 10})
    >>> asked = [nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on="job", l=2)]
    >>> roles = {"town": "quasi-identifier", "job": "sensitive"}
    >>> policy = nr.Policy(attributes=roles, require=asked, method="mondrian")
    >>> nr.check(people, policy), nr.check(people[16:], policy)
    (True, False)
    >>> nr.check(nr.anonymize(people[16:], policy), policy)
    True
    """
    rules = read_policy(policy)
    if not rules.require:
        raise PolicyError([Problem("require", "nothing is required, so nothing can hold.")], source=rules.source)
    if is_release(table):
        release = open_release(table)
        return all(verdict.holds is True for verdict in verify(release, rules))
    return all(verdict.holds is True for verdict in verify_table(table, rules, suppressed=suppressed)[1])


def _columns(source: Source, names: Sequence[str]) -> dict[str, Any]:
    parts: dict[str, list[Any]] = {name: [] for name in names}
    for batch in source.batches(names):
        for name in names:
            parts[name].append(batch.column(name))
    return {name: _joined(found) for name, found in parts.items() if found}


def _joined(parts: Sequence[Any]) -> Any:
    """One column from its parts. Dictionaries stay, where Arrow can unite them: texts without a null among them."""
    import pyarrow as pa

    dictionaries = [part for part in parts if isinstance(part, pa.DictionaryArray)]
    fit = [pa.types.is_string(part.type.value_type) and not part.dictionary.null_count for part in dictionaries]
    if dictionaries and not (all(fit) and len({part.type for part in parts}) == 1):
        parts = [_decoded(part) if isinstance(part, pa.DictionaryArray) else part for part in parts]
    return pa.chunked_array(parts).unify_dictionaries().combine_chunks()


def _decoded(part: Any) -> Any:
    """A column without its dictionary. Views of text, as Polars has them, are copied first: Arrow cannot take them."""
    import pyarrow as pa

    known, view = part.dictionary, pa.types.is_string_view(part.type.value_type)
    return (known.cast(pa.string()) if view else known).take(part.indices)


def _kept(columns: Mapping[str, Any], quasi: Sequence[str], suppressed: str | None) -> np.ndarray:
    rows = len(next(iter(columns.values())))
    if suppressed is None or not quasi:
        return np.ones(rows, bool)
    gone = np.ones(rows, bool)
    for name in quasi:
        texts, positions = as_dictionary(columns[name], name)
        stars = np.append(np.array([text == suppressed for text in texts.to_pylist()], bool), False)
        gone &= stars[positions]
    return ~gone


def _telling(columns: Mapping[str, Any], rows: int, suppressed: str) -> np.ndarray:
    """Which rows say anything in these columns: a cell that is neither missing nor suppressed."""
    out = np.zeros(rows, bool)
    for name, column in columns.items():
        texts, positions = as_dictionary(column, name)
        says = [text.strip() not in ("", suppressed) for text in texts.to_pylist()]
        out |= np.append(np.array(says, bool), False)[positions]
    return out


def _key(name: str, role: Role, column: Any) -> tuple[Statement, Cells]:
    """A quasi-identifier as its texts, numbers written as a person would.

    Few texts are coded, since numbers are grouped faster. A cell that says "(missing)" is not a missing cell, which a
    list of values could not tell apart.
    """
    labels, _, missing = label_counts(column, name)
    listed = (*dict.fromkeys(labels), *([MISSING] if missing else ()))
    if len(listed) > MOST_LABELS or MISSING in labels:
        return _open(name, role, column)
    domain = Domain(listed)
    codes, _ = encode_labels(column, name, domain)
    return ExactStatement(Column(role=role).met(name, domain)), CodeCells(len(domain), codes)


def _open(name: str, role: Role, column: Any) -> tuple[Statement, Cells]:
    """A quasi-identifier as its texts themselves."""
    texts, positions = as_dictionary(column, name)
    import pyarrow as pa

    cells = texts.take(pa.array(positions, mask=positions < 0))
    return OpenStatement(Column(role=role).met(name, None)), OpenCells(cells)


def _secret(
    name: str, role: Role, column: Any, hierarchy: Hierarchy | None, order: Sequence[str] | None
) -> tuple[Statement, Cells]:
    """A sensitive column as values; as nodes where some cells are inner nodes of its hierarchy.

    What means or looks the same counts once, or a class would look more diverse than it is: spaces around a text, 1
    and 1.0, letters of another script, characters that nobody sees.
    """
    known = list(order or ()) if hierarchy is None else [label for level in hierarchy.levels for label in level]
    column = _plain_texts(column, name, known, hierarchy is None and order is None)
    labels, _, missing = label_counts(column, name)
    missing += MISSING in labels  # a release writes missing cells so
    labels = [label for label in dict.fromkeys(labels) if label != MISSING]
    if hierarchy is not None:
        leaves = set(hierarchy.leaves)
        strange = [label for label in labels if label not in leaves]
        if strange:
            return _nodes(name, role, column, hierarchy, strange, missing)
    kind = infer_kind(labels)
    declared = [value for value in order or () if value != MISSING]
    listed = declared + sort_labels([label for label in labels if label not in set(declared)], kind)
    if missing:
        listed.append(MISSING)
    kind = "string" if missing or order is not None else kind
    domain = Domain(tuple(listed), kind, "policy" if order is not None else "data")
    codes, _ = encode_labels(column, name, domain)
    tree = None if hierarchy is None else hierarchy.restricted(domain.values)
    return ExactStatement(Column(role=role).met(name, domain, hierarchy=tree)), CodeCells(len(domain), codes)


def _without(column: Any, name: str, suppressed: str) -> Any:
    """The cells, those that say "suppressed" as missing: no value of their own. A hierarchy may know the mark."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts, positions = as_dictionary(column, name)
    mark = pc.equal(pc.utf8_trim_whitespace(texts), suppressed)
    told = pc.if_else(mark, pa.scalar(None, pa.string()), texts)
    return told.take(pa.array(positions, mask=positions < 0))


def _plain_texts(column: Any, name: str, known: Sequence[str], numbers: bool) -> Any:
    """The cells without spaces around them, as the first text that looks the same, `known` ones before others;
    numbers, if all cells are such, as a person writes them."""
    import pyarrow as pa

    texts, positions = as_dictionary(column, name)
    plain = [text.strip() for text in texts.to_pylist()]
    if numbers and all(is_number(text) for text in plain if text):
        plain = [number_text(float(text)) if text else text for text in plain]
    else:
        listed = list(dict.fromkeys([*known, *plain]))
        seen = dict(zip(listed, merge_lookalikes(listed), strict=True))
        plain = [seen[text] if text else text for text in plain]
    return pa.array(plain, pa.string()).take(pa.array(positions, mask=positions < 0))


def _nodes(
    name: str, role: Role, column: Any, hierarchy: Hierarchy, strange: Sequence[str], missing: int
) -> tuple[Statement, Cells]:
    nodes = tree_of(hierarchy).nodes
    place = {label: node for node, label in reversed(list(enumerate(nodes.labels)))}
    absent = sorted({label for label in strange if label not in place})
    if absent or missing:
        what = ", ".join(map(repr, absent)) or "missing cells"
        message = f"misses {len(absent)} values of {name!r}: {what}." if absent else f"has no place for {what}."
        raise PolicyError([Problem(f"attributes.{name}.hierarchy", message, "Add a line for each value.")])
    texts, positions = as_dictionary(column, name)
    numbers = np.array([place.get(text, 0) for text in texts.to_pylist()], np.int64)
    column = Column(role=role).met(name, Domain(hierarchy.leaves, "string", "hierarchy"), hierarchy=hierarchy)
    return NodeStatement(column), CodeCells(len(nodes), numbers[positions])


def _terms(name: str, column: Any, knowledge: Knowledge, number: int) -> tuple[Statement, Cells]:
    found = [term for term in term_counts(column)[0] if term not in set(knowledge.terms)]
    domain = Domain((*knowledge.terms, *found))
    meant = Column(role=Role.QUASI_SENSITIVE, knowledge=knowledge)
    return TermsStatement(meant.met(name, domain), number), encode_terms(column, domain)
