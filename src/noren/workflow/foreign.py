"""Reads tables that other tools anonymised, so that the same checks apply.

Every quasi-identifier is taken as the texts that stand there, whatever notation another tool used: records have equal
quasi-identifiers if their texts are equal, and missing cells equal each other. A sensitive column is read as values, or
as nodes of the hierarchy that the policy gives it. Rows whose quasi-identifiers all say "suppressed" are judged as a
class of their own: what else they say is about people of the table. Only rows that say nothing at all are left out.

A sensitive column whose cells are written as sets is read as sets: `{41, 23}`, `41|23`, `["41", "23"]`, lists. Rows
that hold one member of a person's set each cannot be told from values, so they must be declared. Where the policy's
method is `decoys`, it declares how sets of its size were drawn; else nobody knows, and only their values count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from noren import __version__
from noren.errors import DataError, PolicyError, Problem, QueryError, suggest_columns
from noren.methods.decoys import Decoys
from noren.models.verdict import Verdict, Verdicts
from noren.policy.policy import Policy
from noren.policy.resolve import NO_ORDER, declared_column, open_table
from noren.release.manifest import Manifest
from noren.release.published import Published
from noren.release.release import Release, is_release, open_release
from noren.release.store import MemoryStore, PeopleStore, Store, names_people
from noren.schema.column import Column
from noren.schema.confusables import merge_lookalikes
from noren.schema.domain import MISSING, Domain, has_no_order, infer_kind, is_number, sort_labels
from noren.schema.extents import ANYTHING, ends_of
from noren.schema.hierarchy import Hierarchy
from noren.schema.kinds import Kind, number_text
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import Nodes, tree_of
from noren.schema.roles import Role
from noren.sources.source import Source
from noren.sources.value_sets import is_list, looks_like_sets, read_sets
from noren.statements import (
    Cells,
    CodeCells,
    Design,
    ExactStatement,
    FoundSets,
    MemberStatement,
    NodeStatement,
    OpenCells,
    OpenStatement,
    SetCells,
    SetStatement,
    Statement,
    TermCells,
    TermsStatement,
    batch_length,
    concat,
)
from noren.statements.set_cells import MASK_LIMIT, mask_dtype
from noren.statements.terms import encode_terms, term_counts
from noren.statements.texts import as_dictionary, encode_labels, label_counts
from noren.workflow.prepare import read_policy
from noren.workflow.shown import cut_line
from noren.workflow.truth import Truth, overall_distributions
from noren.workflow.verify import check as judge
from noren.workflow.verify import find_unwanted, verify

QUASI = (Role.QUASI_IDENTIFIER, Role.SENSITIVE_QUASI_IDENTIFIER)
SUPPRESSED = "*"
MOST_LABELS = 1 << 14
"""Up to so many different texts of a quasi-identifier are coded."""
CellForm = Literal["values", "sets", "shuffled"]
"""What the cells of a sensitive column are: values, sets of values, or members of sets in rows of their own."""


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
    cells: Mapping[str, CellForm] | None = None,
    plain: bool = False,
) -> Published:
    """Read the columns that have a role. Identifiers are not read, and plain columns only on request.

    Where the table has all columns of the key `people`, its store says whose row each is.
    With `judged`, suppressed rows that say anything besides stay as a class of their own. `cells` says what the cells
    of sensitive columns are; else those that are all written as sets are sets.
    """
    forms = _demand_forms(cells or {}, source.columns)
    read_as = {name: role for name, role in roles.items() if not role.is_dropped and (plain or role is not Role.PLAIN)}
    names = [name for name in source.columns if name in read_as]
    quasi = [name for name in names if roles[name] in QUASI]
    columns = _columns(source, names)
    rows = len(next(iter(columns.values()))) if columns else 0
    if not names or not rows:
        why = "it has a header but no rows" if names else "no column has a role that can be checked"
        hint = "Give a table with at least one record." if names else "Give quasi-identifiers and sensitive columns."
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
            f"{source.name}: every row has {suppressed!r} in all quasi-identifiers, so all records are suppressed.",
            hint="If these rows are an ordinary class, set suppressed = None, or --suppressed ''.",
        )
    statements: list[Statement] = []
    read: dict[str, Cells] = {}
    trees, orders, known = hierarchies or {}, values or {}, knowledge or {}
    for name in names:
        if roles[name] in (Role.QUASI_IDENTIFIER, Role.PLAIN):
            statement, found = _key(name, roles[name], columns[name])
        elif roles[name] is Role.QUASI_SENSITIVE:
            statement, found = _terms(name, columns[name], known[name], list(known).index(name) + 1)
        elif _holds_sets(columns[name], name, forms.get(name), trees.get(name)):
            statement, found = _sets(name, roles[name], columns[name], trees.get(name), orders.get(name))
        else:
            kept = suppressed is None or name in trees
            hidden = columns[name] if kept else _without(columns[name], name, str(suppressed))
            statement, found = _secret(name, roles[name], hidden, trees.get(name), orders.get(name))
        statements.append(statement)
        read[name] = found
    number = int(keep.sum())
    store: Store = MemoryStore(read)
    if people and set(people) <= set(source.columns):
        store = PeopleStore(store, _people(source, people)[keep])
    return Published(statements, store, number, suppressed=gone, title=source.name)


def _people(source: Source, key: Sequence[str]) -> np.ndarray:
    """Number every row's person from 0."""
    columns = _columns(source, list(key))
    found = np.zeros(len(next(iter(columns.values()))), np.int64)
    for name, column in columns.items():
        texts, positions = as_dictionary(column, name)
        if (positions < 0).any():
            raise DataError("the key of a person is missing in some records.", hint="Give every record a key.")
        found = np.unique(found * np.int64(len(texts)) + positions, return_inverse=True)[1].reshape(-1)
    return found


def foreign_table(
    data: Any,
    policy: Policy,
    *,
    suppressed: str | None = SUPPRESSED,
    judged: bool = False,
    cells: Mapping[str, CellForm] | None = None,
    plain: bool = False,
) -> Published:
    """Read a table of another tool as a policy describes it; on request with its plain columns."""
    forms: dict[str, CellForm] = {**dict.fromkeys(shuffled_columns(policy), "shuffled"), **(cells or {})}
    found = read_foreign(
        open_table(data, policy),
        {name: column.role for name, column in policy.attributes.items()},
        hierarchies=policy.hierarchies,
        values={name: column.values for name, column in policy.attributes.items() if column.values is not None},
        knowledge=policy.knowledge,
        people=policy.people.key,
        suppressed=suppressed,
        judged=judged,
        cells=forms,
        plain=plain,
    )
    return with_declarations(found, policy, [name for name, form in forms.items() if form == "shuffled"])


def shuffled_columns(policy: Policy) -> list[str]:
    """Return the columns that a policy publishes member by member, in shuffled rows."""
    parts = [part for part in policy.parts if isinstance(part.method, Decoys) and part.method.form == "records"]
    return [name for part in parts for name in part.columns if name in policy.protected]


def with_declarations(foreign: Published, policy: Policy, shuffled: Sequence[str]) -> Published:
    """Return the same cells with the distances and trees that requirements need, and the declared designs."""
    needed = {name for model in policy.require if model.needs & {"tree", "distance"} for name in model.on}
    changed: dict[str, Statement] = {}
    for one in foreign.statements:
        if one.name in needed and one.lists_values and one.terms is None:
            changed[one.name] = one.over(declared_column(policy, one.column))
    foreign = foreign.over(changed)
    designs = declared_designs(policy, foreign, shuffled)
    for one in foreign.statements:
        design = designs.get(one.name)
        if one.name in shuffled:
            if design is None:
                message = (
                    "the cells are declared as members of shuffled sets, but the policy has no method that draws them."
                )
                hint = 'Use [method] name = "decoys" and the requirement that it met.'
                raise PolicyError([Problem(f"attributes.{one.name}", message, hint)], source=policy.source)
            changed[one.name] = MemberStatement(one.column, design)
        elif design is not None and isinstance(one, FoundSets) and one.least == one.most == design.eta:
            changed[one.name] = SetStatement(one.column, design)
    out = foreign.over(changed)
    out.records //= out.rows_per_record
    return out


def declared_designs(policy: Policy, foreign: Published, needed: Sequence[str] = ()) -> dict[str, Design]:
    """Return the design of every column that a policy draws as sets, if requirements and values determine it.

    Raises PolicyError where there is none for a column that is `needed`.
    """
    out: dict[str, Design] = {}
    for part in policy.parts:
        if not isinstance(part.method, Decoys) or part.method.prior == "data":
            continue
        for name in part.columns:
            models = [model for model in part.requirements if name in model.on]
            if not models or name not in foreign.by_name or any(model.epsilon_together < np.inf for model in models):
                continue
            own = [model.model_copy(update={"on": (name,)}) for model in models]
            column = foreign.column(name).column
            if column.is_open:
                continue
            try:
                out |= part.method.decide({name: column}, {name: np.zeros(column.d, np.int64)}, own)[0]
            except PolicyError as error:  # the method would refuse to draw such sets over these values
                if name in needed:
                    raise PolicyError(error.problems, source=policy.source) from None
    return out


def describe_cells(published: Published) -> list[str]:
    """Describe how sensitive cells were read, for every column whose cells are not single values."""
    out = []
    for one in published.statements:
        if isinstance(one, FoundSets):
            out.append(f"{one.name}: read as {one.description}")
        elif one.design is not None:
            out.append(f"{one.name}: read as {one.description}, drawn as the policy's method draws ({one.design.name})")
    return out


def _columns(source: Source, names: Sequence[str]) -> dict[str, Any]:
    parts: dict[str, list[Any]] = {name: [] for name in names}
    for batch in source.batches(names):
        for name in names:
            parts[name].append(batch.column(name))
    return {name: _joined(found) for name, found in parts.items() if found}


def _joined(parts: Sequence[Any]) -> Any:
    """Concatenate the parts of a column, keeping dictionaries if Arrow can unite them."""
    import pyarrow as pa

    dictionaries = [part for part in parts if isinstance(part, pa.DictionaryArray)]
    fit = [pa.types.is_string(part.type.value_type) and not part.dictionary.null_count for part in dictionaries]
    if dictionaries and not (all(fit) and len({part.type for part in parts}) == 1):
        parts = [_decoded(part) if isinstance(part, pa.DictionaryArray) else part for part in parts]
    return pa.chunked_array(parts).unify_dictionaries().combine_chunks()


def _decoded(part: Any) -> Any:
    """Return a column without its dictionary. Views of text, as Polars has them, are copied first."""
    import pyarrow as pa

    known, view = part.dictionary, pa.types.is_string_view(part.type.value_type)
    return (known.cast(pa.string()) if view else known).take(part.indices)


def _kept(columns: Mapping[str, Any], quasi: Sequence[str], suppressed: str | None) -> np.ndarray:
    rows = len(next(iter(columns.values())))
    if suppressed is None or not quasi:
        return np.ones(rows, bool)
    gone = np.ones(rows, bool)
    for name in quasi:
        gone &= _are(columns[name], name, {suppressed})
    return ~gone


def _telling(columns: Mapping[str, Any], rows: int, suppressed: str) -> np.ndarray:
    """Return which rows have a cell in these columns that is neither missing nor suppressed."""
    silent = np.ones(rows, bool)
    for name, column in columns.items():
        silent &= _are(column, name, {"", suppressed}, missing=True)
    return ~silent


def _are(column: Any, name: str, texts: Set[str], *, missing: bool = False) -> np.ndarray:
    """Return which cells are one of these texts, or missing. A list is none of them."""
    if is_list(column):
        return np.asarray(column.is_null().to_numpy(zero_copy_only=False) & missing)
    found, positions = as_dictionary(column, name)
    named = [(text.strip() if missing else text) in texts for text in found.to_pylist()]
    return np.asarray(np.append(np.array(named, bool), missing)[positions])


def _key(name: str, role: Role, column: Any) -> tuple[Statement, Cells]:
    """Return a quasi-identifier as texts, with numbers in a common form.

    Few texts are coded, since numbers are grouped faster. A cell that says "(missing)" is not a missing cell, which a
    list of values could not distinguish.
    """
    labels, _, missing = label_counts(column, name)
    listed = (*dict.fromkeys(labels), *([MISSING] if missing else ()))
    if len(listed) > MOST_LABELS or MISSING in labels:
        return _open(name, role, column)
    domain = Domain(listed)
    codes, _ = encode_labels(column, name, domain)
    return ExactStatement(Column(role=role).over(name, domain)), CodeCells(len(domain), codes)


def _open(name: str, role: Role, column: Any) -> tuple[Statement, Cells]:
    """Return a quasi-identifier as its texts."""
    texts, positions = as_dictionary(column, name)
    import pyarrow as pa

    cells = texts.take(pa.array(positions, mask=positions < 0))
    return OpenStatement(Column(role=role).over(name, None)), OpenCells(cells)


def _secret(
    name: str, role: Role, column: Any, hierarchy: Hierarchy | None, order: Sequence[str] | None
) -> tuple[Statement, Cells]:
    """Return a sensitive column as values; as nodes if some cells are inner nodes of its hierarchy.

    What means or looks the same counts once, or a class would look more diverse than it is: spaces around a text, 1
    and 1.0, letters of another script, characters that nobody sees.
    """
    known = list(order or ()) if hierarchy is None else [label for level in hierarchy.levels for label in level]
    column = _plain_texts(column, name, known, hierarchy is None and order is None)
    labels, _, missing = label_counts(column, name)
    missing += MISSING in labels  # a release writes missing cells so
    if hierarchy is not None:
        leaves = set(hierarchy.leaves)
        strange = [label for label in dict.fromkeys(labels) if label not in leaves and label != MISSING]
        if strange:
            return _nodes(name, role, column, hierarchy, strange, missing)
    domain = _domain(labels, missing, order)
    codes, _ = encode_labels(column, name, domain)
    tree = None if hierarchy is None else hierarchy.restrict_to(domain.values)
    return ExactStatement(Column(role=role).over(name, domain, hierarchy=tree)), CodeCells(len(domain), codes)


def _domain(labels: Sequence[str], missing: int, order: Sequence[str] | None) -> Domain:
    """Return the declared values in order, followed by others in the cells."""
    labels = [label for label in dict.fromkeys(labels) if label != MISSING]
    kind = infer_kind(labels)
    declared = [value for value in order or () if value != MISSING]
    listed = declared + sort_labels([label for label in labels if label not in set(declared)], kind)
    if missing:
        listed.append(MISSING)
    kind = "string" if missing or order is not None else kind
    return Domain(tuple(listed), kind, "policy" if order is not None else "data")


def _holds_sets(column: Any, name: str, form: CellForm | None, hierarchy: Hierarchy | None) -> bool:
    """Return whether cells are sets: declared, or all written as such. A text in the hierarchy is a value."""
    if form is not None or not looks_like_sets(column, name):
        return form == "sets"
    labels = set() if hierarchy is None else {label for level in hierarchy.levels for label in level}
    return is_list(column) or not labels & set(label_counts(column, name)[0])


def _sets(
    name: str, role: Role, column: Any, hierarchy: Hierarchy | None, order: Sequence[str] | None
) -> tuple[Statement, Cells]:
    """Return a sensitive column of sets. A value that a set names twice counts once."""
    lists = read_sets(column, name)
    known = list(order or ()) if hierarchy is None else list(hierarchy.leaves)
    flat = _plain_texts(lists.flatten(), name, known, hierarchy is None and order is None)
    labels, _, missing = label_counts(flat, name)
    domain = _domain(labels, missing, order)
    codes, _ = encode_labels(flat, name, domain)
    owner = np.repeat(np.arange(len(lists)), np.diff(lists.offsets.to_numpy()))
    sets = TermCells.from_entries(len(domain), len(lists), owner, codes)
    least, most = int(sets.sizes.min()), int(sets.sizes.max())
    if len(domain) > MASK_LIMIT and least < most:
        raise DataError(
            f"column {name!r} has sets of {least} to {most} of more than {MASK_LIMIT} values.",
            hint="Split the table; sets over so many values must have equal size.",
        )
    data = sets.data.reshape(-1, most) if len(domain) > MASK_LIMIT else _masks(sets)
    tree = None if hierarchy is None else hierarchy.restrict_to(domain.values)
    found = FoundSets(Column(role=role).over(name, domain, hierarchy=tree), least, most)
    return found, SetCells(len(domain), data)


def _masks(sets: TermCells) -> np.ndarray:
    bits = np.left_shift(np.uint64(1), sets.data.astype(np.uint64))
    return np.bitwise_or.reduceat(bits, sets.offsets[:-1]).astype(mask_dtype(sets.d))


def _demand_forms(forms: Mapping[str, CellForm], columns: Sequence[str]) -> Mapping[str, CellForm]:
    """Refuse an unknown form, or the form of a column that the table does not have."""
    if absent := [name for name in forms if name not in columns]:
        raise QueryError(f"there is no column {absent[0]!r}.", hint=suggest_columns(absent, columns))
    if strange := [form for form in forms.values() if form not in get_args(CellForm)]:
        hint = f"Cells are {', '.join(get_args(CellForm))}."
        raise QueryError(f"cells are never {strange[0]!r}.", hint=hint)
    return forms


def _without(column: Any, name: str, suppressed: str) -> Any:
    """Return the cells with suppressed ones as missing. A hierarchy may contain the mark."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts, positions = as_dictionary(column, name)
    mark = pc.equal(pc.utf8_trim_whitespace(texts), suppressed)
    told = pc.if_else(mark, pa.scalar(None, pa.string()), texts)
    return told.take(pa.array(positions, mask=positions < 0))


def _plain_texts(column: Any, name: str, known: Sequence[str], numbers: bool) -> Any:
    """Return the trimmed cells, each as the first text that looks the same (`known` ones first); numbers in a common
    form if all cells are numbers."""
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
        message = f"misses {len(absent)} values of {name!r}: {what}." if absent else f"does not contain {what}."
        raise PolicyError([Problem(f"attributes.{name}.hierarchy", message, "Add a line for each value.")])
    texts, positions = as_dictionary(column, name)
    numbers = np.array([place.get(text, 0) for text in texts.to_pylist()], np.int64)
    column = Column(role=role).over(name, Domain(hierarchy.leaves, "string", "hierarchy"), hierarchy=hierarchy)
    return NodeStatement(column), CodeCells(len(nodes), numbers[positions])


def _terms(name: str, column: Any, knowledge: Knowledge, number: int) -> tuple[Statement, Cells]:
    found = [term for term in term_counts(column)[0] if term not in set(knowledge.terms)]
    domain = Domain((*knowledge.terms, *found))
    meant = Column(role=Role.QUASI_SENSITIVE, knowledge=knowledge)
    return TermsStatement(meant.over(name, domain), number), encode_terms(column, domain)


# ---------------------------------------------------------------------- verified, and opened as releases


NUMBER = r"\s*(-?\d+(?:\.\d+)?)\s*"
SPAN = re.compile(rf"{NUMBER}(?:-|–|—|to|\.{{2,3}}|…){NUMBER}")
OPEN_INTERVAL = re.compile(rf"\[{NUMBER}[,;]{NUMBER}[\[)]")
INTERVAL = re.compile(rf"\[{NUMBER}[,;]{NUMBER}\]")
BELOW = re.compile(rf"<{NUMBER}")
FROM = re.compile(rf"(?:>=|≥){NUMBER}|{NUMBER}\+")
NOTATIONS = (
    (SPAN, "[{}, {}]"),
    (INTERVAL, "[{}, {}]"),
    (OPEN_INTERVAL, "[{}, {})"),
    (BELOW, "below {}"),
    (FROM, "{} and above"),
)


def open_published(
    table: Any,
    policy: Policy | str | Path,
    *,
    suppressed: str | None = SUPPRESSED,
    cells: Mapping[str, CellForm] | None = None,
) -> Release:
    """Open a table that another tool made as a release in memory, for `count`, `estimate` and the other questions.

    It claims no requirement and no method. Its sets are read with the design that follows from the policy's method and
    requirements.

    >>> import noren as nr
    >>> import polars as pl
    >>> table = pl.DataFrame({"age": ["50-51", "72-77"] * 2, "ill": ["flu", "flu", "gout", "gout"]})
    >>> rules = nr.Policy(attributes={"age": "quasi-identifier", "ill": "plain"})
    >>> round(nr.workflow.open_published(table, rules).count({"age": "73", "ill": "flu"}).count, 4)
    0.1667
    """
    rules = read_policy(policy)
    foreign = foreign_table(table, rules, suppressed=suppressed, cells=cells, plain=True)
    return _as_release(foreign, rules, foreign.suppressed)


def verify_table(
    data: Any,
    policy: Policy | str | Path,
    *,
    original: Any = None,
    suppressed: str | None = SUPPRESSED,
    show: int = 0,
    cells: Mapping[str, CellForm] | None = None,
) -> tuple[Published, Verdicts[Verdict]]:
    """Check a table that another tool made against the requirements of a policy. Suppressed rows are a class too.

    `cells` says what the cells of columns are: "values", "sets" or "shuffled" members of sets; what is not said is
    seen from the cells. With the original, closeness is judged against its distribution, and beliefs in labels against
    those before; every value must be possible as often as it is true, and no term may be published that is not.
    """
    rules = read_policy(policy)
    foreign = foreign_table(data, rules, suppressed=suppressed, judged=True, cells=cells)
    for statement in foreign.statements:
        ordered = any("order" in model.needs and statement.name in model.on for model in rules.require)
        if ordered and statement.domain.source == "data" and has_no_order(statement.domain.values):
            raise PolicyError([Problem(f"attributes.{statement.name}.values", *NO_ORDER)], source=rules.source)
    source = open_table(data, rules)
    truth = None
    if original is not None:
        absent = sum(batch.num_rows for batch in source.batches(source.columns[:1])) - foreign.rows
        truth = Truth(_as_release(foreign, rules, absent), rules, original)
    overall = overall_distributions(foreign, rules.require, truth)
    known = names_people(foreign.store)
    several = bool(rules.people.key) and not known
    verdicts = judge(foreign, rules.require, overall, show=show, people=known, several=several)
    verdicts += find_unwanted(source.columns, rules, foreign.records, "the table has the column")
    return foreign, Verdicts(verdicts + ([] if truth is None else truth.verdicts()))


def check(table: Any, policy: Policy | str | Path, *, suppressed: str | None = SUPPRESSED) -> bool:
    """Return whether a table or a release meets every requirement of a policy.

    Rows of a table whose quasi-identifiers all say `suppressed` are a class like others, unless they say nothing else.

    >>> import noren as nr
    >>> import polars as pl
    >>> people = pl.DataFrame({"town": ["Ulm"] * 40 + ["Bonn"] * 40, "job": ["cook", "clerk", "miner", "nurse"] * 20})
    >>> asked = [nr.models.KAnonymity(k=5), nr.models.FrequencyLDiversity(on="job", l=2)]
    >>> roles = {"town": "quasi-identifier", "job": "sensitive"}
    >>> policy = nr.Policy(attributes=roles, require=asked, method="mondrian")
    >>> nr.check(people, policy), nr.check(people[36:], policy)
    (True, False)
    >>> nr.check(nr.anonymize(people[36:], policy), policy)
    True
    """
    rules = read_policy(policy)
    if not rules.require:
        raise PolicyError(
            [Problem("require", "the policy has no requirements, so nothing can be checked.")], source=rules.source
        )
    if is_release(table):
        release = open_release(table)
        return all(verdict.holds is True for verdict in verify(release, rules))
    return all(verdict.holds is True for verdict in verify_table(table, rules, suppressed=suppressed)[1])


def _as_release(foreign: Published, rules: Policy, suppressed: int) -> Release:
    """Return the same cells as a release in memory without claims."""
    given = concat(list(foreign.batches()))
    rows, each = batch_length(given), foreign.rows_per_record
    if rows % each:
        raise DataError(
            f"the table has {rows:,} rows, which cannot be {each} rows per person.",
            hint="Give the whole table, or declare sets of another size.",
        )
    read = {one.name: (one, given[one.name]) for one in foreign.statements}
    if each == 1:
        read |= {name: _general(*pair, rules.hierarchies.get(name)) for name, pair in read.items()}
    manifest = Manifest(
        noren=__version__,
        title=rules.title,
        records=foreign.records,
        suppressed=suppressed,
        rows_are_people=not rules.people.key,
        columns=tuple(statement for statement, _ in read.values()),
        requirements=(),
        methods=(),
        randomness="fresh",
        verdicts=(),
    )
    out = Release(manifest, MemoryStore({name: own for name, (_, own) in read.items()}))
    out.title = foreign.title
    return out


def _general(one: Statement, cells: Cells, hierarchy: Hierarchy | None) -> tuple[Statement, Cells]:
    """Return a quasi-identifier as values or generalised values; unchanged if some text is neither."""
    if not isinstance(one, ExactStatement) or one.role.needs_requirement:
        return one, cells
    labels, codes = one.domain.values, np.asarray(cells.data)  # type: ignore[attr-defined]
    if hierarchy is not None:
        tree = tree_of(hierarchy).nodes
        place = {label: node for node, label in reversed(list(enumerate(tree.labels)))}
        if all(label in place for label in labels):
            domain = Domain(hierarchy.leaves, "string", "hierarchy")
            numbers = np.array([place[label] for label in labels])
            column = one.column.over(one.name, domain, hierarchy=hierarchy)
            return NodeStatement(column), CodeCells(len(tree), numbers[codes])
    said = [spell_interval(label) for label in labels]
    kind = next((kind for kind in KINDS if all(ends_of(label, kind) is not None for label in said)), None)
    if kind is None or all(label in ANYTHING for label in said):
        return one, cells
    distinct = list(dict.fromkeys(said))
    number = np.array([distinct.index(label) for label in said])
    points = [as_point(label, kind) for label in distinct]
    if all(point is not None for point in points):
        domain = Domain(tuple(sort_labels(distinct, kind)), kind)
        order = np.array([domain.index[label] for label in distinct])
        return ExactStatement(one.column.over(one.name, domain)), CodeCells(len(domain), order[number[codes]])
    cut = cut_line(distinct, (kind, 0), one.domain, np.zeros(len(distinct), bool))
    assert cut is not None
    nodes = Nodes.from_runs(len(cut[0]), distinct, cut[1])
    return NodeStatement(one.column.over(one.name, cut[0], hierarchy=None), nodes), CodeCells(len(nodes), number[codes])


def as_point(label: str, kind: Kind) -> float | None:
    """Return the one number or day of a label; None for an interval."""
    ends = ends_of(label, kind)
    return ends.low if ends is not None and ends.closed and ends.low == ends.high else None


def spell_interval(label: str) -> str:
    """Return an interval in the spelling of releases; other texts unchanged."""
    for notation, text in NOTATIONS:
        if found := notation.fullmatch(label):
            return text.format(*(part for part in found.groups() if part is not None))
    return label


KINDS: tuple[Kind, ...] = ("integer", "number", "date")
"""What the ends of intervals are tried as."""
