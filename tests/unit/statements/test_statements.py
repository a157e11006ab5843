"""Every form of cell: what it says about the truth, by its definition, and that it comes back from every file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noren.designs.decoys import DecoyDesign
from noren.designs.pram import PramDesign
from noren.designs.semantic.design import SemanticDesign
from noren.errors import ModelDoesNotApply, ReleaseError
from noren.release.manifest import PublishedMeaning, read_column, write_column
from noren.release.store import store_for, with_sides, write_data, write_sides
from noren.schema.column import Column
from noren.schema.confusables import count_lookalikes
from noren.schema.domain import MISSING, Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge
from noren.schema.nodes import Nodes, tree_of
from noren.schema.roles import Role
from noren.statements import (
    FORMS,
    Cells,
    ChangedStatement,
    CodeCells,
    ExactStatement,
    GroupStatement,
    GroupTable,
    MeanStatement,
    MemberStatement,
    NodeStatement,
    OpenCells,
    OpenStatement,
    SetCells,
    SetStatement,
    Statement,
    TermCells,
    TermsStatement,
)
from tests.oracles import semantic

NAME = '=a, "b"\u3000é'
"""A column's name that a file, a spreadsheet and a careless query find hard."""
DOMAINS = {
    "texts": Domain(("ash", "birch", "cedar", "doum", "elm")),
    "texts that need care": Domain(("=1+1", "-2+3", "'q'", 'a "b", c', "l\nm", "病", "e\u0301", "é", "NULL", "'")),
    "texts that look like lists": Domain(("[1, 2]", '["a"]', "{}", "@x", "\t=1", "007", "nan", "True")),
    "integers": Domain(("-3", "0", "7", "12345678901"), "integer"),
    "numbers": Domain(("-0.5", "1e-07", "2", "2.25", "1e+16"), "number"),
    "booleans": Domain(("false", "true"), "boolean"),
    "texts and missing": Domain(("a", "b", "c", "d", MISSING)),
    "integers and missing": Domain(("1", "2", "3", "4", MISSING), "integer"),
    "booleans and missing": Domain(("false", "true", MISSING), "boolean"),
    "more than a mask holds": Domain(tuple(map(str, range(70))), "integer"),
}
TYPED_MISSING = ("integers and missing", "booleans and missing")
"""Domains of columns that nothing protects: protected ones write a missing value as a text."""


@dataclass(frozen=True)
class Case:
    """A statement, cells, and what the definition says: P(cell | value), None where no single value is meant."""

    statement: Statement
    cells: Any
    chances: list[list[float]] | None
    whole: bool = True
    """Whether these are all cells there may be, each once, so that their chances add up to 1 under every value."""

    @property
    def d(self) -> int:
        return self.statement.d


Law = Callable[[tuple[int, ...], int], float]


def column(domain: Domain | None, role: Role = Role.SENSITIVE, **resolved: Any) -> Column:
    return Column(role=Role.PLAIN).over(NAME, domain, role=role, **resolved)


def exact(domain: Domain) -> Case:
    d = len(domain)
    rows = [[float(code == value) for value in range(d)] for code in range(d)]
    return Case(ExactStatement(column(domain, Role.PLAIN)), CodeCells(d, np.arange(d, dtype=np.uint16)), rows)


def uniform_law(d: int, eta: int, p: float) -> Law:
    """With probability p the truth and eta - 1 other values, all alike; else any eta values."""

    def chance(members: tuple[int, ...], value: int) -> float:
        return p * (value in members) / comb(d - 1, eta - 1) + (1 - p) / comb(d, eta)

    return chance


def apart_law(d: int, law: Callable[..., Any]) -> Law:
    compatible = [[abs(a - b) >= 2 for b in range(d)] for a in range(d)]
    laws = [law(compatible, 2, value) for value in range(d)]
    return lambda members, value: float(laws[value].get(members, 0))


def far_apart(kind: Any, d: int) -> SemanticDesign:
    return SemanticDesign.make(kind, np.abs(np.subtract.outer(np.arange(d), np.arange(d))).astype(float), 2, 2)


def even(compatible: Any, l: int, value: int) -> Any:  # noqa: E741
    return semantic.product_law(compatible, l, value, [1] * len(compatible))


def drawn(domain: Domain, make: Any, law: Any) -> Case:
    """Sets by the design that `make` gives for d values."""
    d = len(domain)
    design, chance = make(d), law(d)
    possible = list(combinations(range(d), design.eta))[:400]
    sets = [members for members in possible if any(chance(members, value) > 0 for value in range(d))]
    cells = SetCells.from_codes(d, np.array(sets))
    rows = [[chance(members, value) for value in range(d)] for members in sets]
    return Case(SetStatement(column(domain), design), cells, rows, len(possible) == comb(d, design.eta))


def members(domain: Domain, make: Any, law: Any) -> Case:
    """One member of a set, each as likely to stand in a row."""
    d = len(domain)
    design, chance = make(d), law(d)
    sets = list(combinations(range(d), design.eta))
    rows = [
        [sum(chance(own, value) for own in sets if code in own) / design.eta for value in range(d)] for code in range(d)
    ]
    return Case(MemberStatement(column(domain), design), CodeCells(d, np.arange(d)), rows)


def changed(domain: Domain, keep: float, parts: Callable[[int], tuple[int, ...] | None]) -> Case:
    """A value kept with some probability, else drawn by shares. Said up to a factor that makes shares alike."""
    d = len(domain)
    own = parts(d)
    shares = [1 / d] * d if own is None else [part / sum(own) for part in own]
    rows = [
        [(keep * (code == v) + (1 - keep) * shares[code]) / (shares[code] * d) for v in range(d)] for code in range(d)
    ]
    statement = ChangedStatement(column(domain), PramDesign(d=d, keep=keep, parts=own))
    return Case(statement, CodeCells(d, np.arange(d, dtype=np.uint16)), rows, own is None)


def averaged(domain: Domain) -> Case:
    """Means of a column whose values nobody lists; None where the whole class is missing."""
    means = (-12.5, 0.0, 0.25, 1e7, None) if domain.has_missing else (-12.5, 0.0, 0.25, 1e7)
    statement = MeanStatement(column(None, Role.QUASI_IDENTIFIER), means, 2)
    return Case(statement, CodeCells(len(means), np.arange(len(means), dtype=np.uint32)), None)


def listed(domain: Domain) -> Case:
    d = len(domain)
    under = [(0,), tuple(range(0, d, 2)), (0, d - 1), tuple(range(d))]
    nodes = Nodes.from_members(d, ["first", "=even", "ends\n病", "any"], under)
    rows = [[float(value in own) for value in range(d)] for own in under]
    return Case(NodeStatement(column(domain), nodes), CodeCells(4, np.arange(4)), rows, False)


def of_a_tree(domain: Domain) -> Case:
    d = len(domain)
    tree = Hierarchy((domain.values, *[tuple("low" if v < d // 2 else "+high" for v in range(d))], ("*",) * d))
    nodes = tree_of(tree).nodes
    rows = [[float(value in nodes.members(node)) for value in range(d)] for node in range(len(nodes))]
    statement = NodeStatement(column(domain, hierarchy=tree))
    return Case(statement, CodeCells(len(nodes), np.arange(len(nodes))), rows, False)


def grouped(domain: Domain) -> Case:
    """Three groups: value v is v + 1 times in the first, once in the second if even; 0 is twice in the last."""
    d = len(domain)
    counts = [[v + 1 for v in range(d)], [int(v % 2 == 0) for v in range(d)], [2 * int(v == 0) for v in range(d)]]
    group, value = np.nonzero(np.array(counts))
    table = GroupTable(3, d, group, value, np.array(counts)[group, value])
    rows = [[own[v] / sum(other[v] for other in counts) for v in range(d)] for own in counts]
    return Case(GroupStatement(column(domain), 3, held=table), CodeCells(3, np.arange(3)), rows)


def loose(domain: Domain) -> Case:
    texts = [None if text == MISSING else text for text in domain.values]
    return Case(OpenStatement(column(None, Role.PLAIN)), OpenCells(pa.array(texts, pa.string())), None)


def terms(domain: Domain) -> Case:
    d = len(domain)
    known = Knowledge.from_pairs([("=L", domain.values[0]), ("病", domain.values[0]), ("病", domain.values[1])])
    statement = TermsStatement(column(domain, Role.QUASI_SENSITIVE, knowledge=known))
    sets = [[], [0], list(range(d)), [1], list(range(0, d, 2)), [0]]
    owner = np.repeat(np.arange(len(sets)), [len(own) for own in sets])
    return Case(
        statement, TermCells.from_entries(d, len(sets), owner, np.array([code for own in sets for code in own])), None
    )


MAKERS: dict[type[Statement], dict[str, Callable[[Domain], Case]]] = {
    ExactStatement: {"exact": exact},
    OpenStatement: {"open": loose},
    SetStatement: {
        "sets": lambda domain: drawn(
            domain, lambda d: DecoyDesign(d=d, eta=min(3, d)), lambda d: uniform_law(d, min(3, d), 1.0)
        ),
        "sets of one": lambda domain: drawn(domain, lambda d: DecoyDesign(d=d, eta=1), lambda d: uniform_law(d, 1, 1)),
        "sets that may miss": lambda domain: drawn(
            domain, lambda d: DecoyDesign(d=d, eta=2, p=0.6), lambda d: uniform_law(d, 2, 0.6)
        ),
        "sets that carry no information": lambda domain: drawn(
            domain, lambda d: DecoyDesign(d=d, eta=2, p=0.0), lambda d: uniform_law(d, 2, 0.0)
        ),
        "sets far apart": lambda domain: drawn(
            domain, lambda d: far_apart("simple", d), lambda d: apart_law(d, semantic.simple)
        ),
        "even sets far apart": lambda domain: drawn(
            domain, lambda d: far_apart("uniform-sets", d), lambda d: apart_law(d, even)
        ),
    },
    MemberStatement: {
        "members": lambda domain: members(
            domain, lambda d: DecoyDesign(d=d, eta=2), lambda d: uniform_law(d, 2, 1.0)
        ),
        "members far apart": lambda domain: members(
            domain, lambda d: far_apart("simple", d), lambda d: apart_law(d, semantic.simple)
        ),
    },
    ChangedStatement: {
        "changed alike": lambda domain: changed(domain, 0.7, lambda d: None),
        "changed by shares": lambda domain: changed(domain, 0.3, lambda d: tuple(range(1, d + 1))),
    },
    MeanStatement: {"means": averaged},
    NodeStatement: {"listed nodes": listed, "nodes of a tree": of_a_tree},
    GroupStatement: {"groups": grouped},
    TermsStatement: {"terms": terms},
}  # fmt: skip


def fits(form: type[Statement], kind: str, domain: str) -> bool:
    """Which domains a form may be over: nothing protected writes missing as no value; terms are texts."""
    if domain in TYPED_MISSING:
        return form is ExactStatement
    if form is TermsStatement:
        return DOMAINS[domain].kind == "string"
    if "apart" in kind:
        return 4 <= len(DOMAINS[domain]) <= 11
    return form is not MemberStatement or len(DOMAINS[domain]) <= 11


def pairs() -> list[tuple[type[Statement], str, str]]:
    """Every form of the registry over every domain it may have. A form without a maker here fails."""
    return [
        (form, kind, domain)
        for form in FORMS.values()
        for kind in MAKERS[form]
        for domain in DOMAINS
        if fits(form, kind, domain)
    ]


PAIRS = pairs()
every = pytest.mark.parametrize(("form", "kind", "domain"), PAIRS, ids=lambda one: one if isinstance(one, str) else "")


def made(form: type[Statement], kind: str, domain: str) -> Case:
    case = MAKERS[form][kind](DOMAINS[domain])
    assert type(case.statement) is form
    return case


def listed_cells(cells: Cells) -> list[Any]:
    return list(cells.pack().to_pylist())


def test_every_form_is_here_under_its_name() -> None:
    assert MAKERS.keys() == set(FORMS.values())
    assert {form for form, _, _ in PAIRS} == set(FORMS.values())
    assert {name: form.form for name, form in FORMS.items()} == {name: name for name in FORMS}
    assert len({form.words for form in FORMS.values() if not form.is_exact}) == sum(
        not form.is_exact for form in FORMS.values()
    )


# ---------------------------------------------------------------- what it says about the truth


@every
def test_the_likelihood_is_the_definition(form: type[Statement], kind: str, domain: str) -> None:
    case = made(form, kind, domain)
    found = case.statement.likelihood(case.cells)
    if case.chances is None:
        assert found is None
        assert case.statement.possible(case.cells) is None
        return
    assert found is not None
    assert len(found) == len(case.cells)
    assert found.dense(case.d) == pytest.approx(np.array(case.chances), abs=1e-12)
    if case.whole:
        assert np.array(case.chances).sum(axis=0) == pytest.approx(np.ones(case.d))
    some = case.cells.take(np.array([len(case.cells) - 1, 0, 0]))
    again = case.statement.likelihood(some)
    assert again is not None
    assert again.dense(case.d).tolist() == found.dense(case.d)[[len(case.cells) - 1, 0, 0]].tolist()


@every
def test_what_is_possible_has_a_positive_likelihood(form: type[Statement], kind: str, domain: str) -> None:
    case = made(form, kind, domain)
    if case.chances is None:
        return
    possible = np.array(case.chances) > 0
    found = case.statement.possible(case.cells)
    assert found is not None
    bounds, values = found
    for cell, row in enumerate(possible):
        assert sorted(values[bounds[cell] : bounds[cell + 1]].tolist()) == np.flatnonzero(row).tolist()
    for value in range(case.d):
        covered = case.statement.covers(case.cells, np.full(len(case.cells), value))
        assert covered.tolist() == possible[:, value].tolist()


def test_a_set_that_the_design_never_draws_is_likely_under_no_value() -> None:
    statement = SetStatement(column(DOMAINS["texts"]), far_apart("simple", 5))
    found = statement.likelihood(SetCells.from_codes(5, np.array([[0, 1], [0, 2]])))
    assert (found.dense(5).sum(axis=1) > 0).tolist() == [False, True]


def test_a_set_of_another_size_than_the_design_draws_has_no_likelihood() -> None:
    statement = SetStatement(column(DOMAINS["texts"]), DecoyDesign(d=5, eta=2))
    with pytest.raises(ModelDoesNotApply, match="do not hold the 2 values"):
        statement.likelihood(SetCells.from_codes(5, np.array([[0, 1, 2]])))


def test_open_cells_cover_themselves() -> None:
    statement, cells = OpenStatement(column(None)), OpenCells(pa.array(["a", None, "b", None, "d"]))
    truth = pa.array(["a", None, "c", "x", None])
    assert statement.covers(cells, truth).tolist() == [True, True, False, False, False]


def test_terms_cover_a_truth_that_has_them_all() -> None:
    case = terms(DOMAINS["texts"])
    d, n = case.d, len(case.cells)
    everything = TermCells(d, np.arange(n + 1) * d, np.tile(np.arange(d, dtype=np.int32), n))
    nothing = TermCells(d, np.zeros(n + 1, np.int64), np.zeros(0, np.int32))
    assert case.statement.covers(case.cells, everything).all()
    assert case.statement.covers(case.cells, case.cells).all()
    assert case.statement.covers(case.cells, nothing).tolist() == (case.cells.sizes == 0).tolist()


@every
def test_tallies_of_batches_add_up(form: type[Statement], kind: str, domain: str) -> None:
    case = made(form, kind, domain)
    if case.chances is None:
        return
    half = len(case.cells) // 2
    parts = [case.cells.take(slice(0, half)), case.cells.take(slice(half, len(case.cells)))]
    whole = case.statement.tally(case.cells)
    assert (case.statement.tally(parts[0]) + case.statement.tally(parts[1])).tolist() == whole.tolist()
    if form in (ExactStatement, NodeStatement):
        times = (np.array(case.chances) > 0).sum(axis=0)
        assert case.statement.possible_counts(whole).tolist() == times.tolist()


# ---------------------------------------------------------------- cells in memory


@every
def test_cells_pack_take_concatenate_and_differ(form: type[Statement], kind: str, domain: str) -> None:
    cells = made(form, kind, domain).cells
    told = listed_cells(cells)
    assert listed_cells(cells.unpack(cells.pack())) == told
    half = len(cells) // 2
    parts = [cells.take(slice(0, half)), cells.take(slice(half, len(cells)))]
    assert listed_cells(type(cells).concat(parts)) == told
    order = np.arange(len(cells))[::-1]
    assert listed_cells(cells.take(order)) == told[::-1]
    twice = type(cells).concat([cells.take(order), cells])
    different, ids = twice.distinct()
    assert listed_cells(different.take(ids)) == told[::-1] + told
    assert len(different) == len({json.dumps(one) for one in told})
    empty = cells.take(slice(0, 0))
    assert len(empty) == len(empty.distinct()[0]) == 0
    assert cells.nbytes > 0


@every
def test_cells_of_another_kind_are_not_taken_on_trust(form: type[Statement], kind: str, domain: str) -> None:
    case = made(form, kind, domain)
    case.statement.check_cells(case.cells)
    strange: list[Any] = [None, [0, 1], CodeCells(case.d + 99, np.zeros(1, int))]
    if isinstance(case.cells, CodeCells):
        strange += [CodeCells(case.cells.d, np.array([case.cells.d])), CodeCells(case.cells.d, np.array([-1]))]
    for cells in strange:
        with pytest.raises(ModelDoesNotApply, match="column"):
            case.statement.check_cells(cells)


@every
def test_keys_are_equal_where_the_cells_are(form: type[Statement], kind: str, domain: str) -> None:
    case = made(form, kind, domain)
    if not (case.statement.is_key or case.statement.is_class):
        with pytest.raises(ModelDoesNotApply, match="equivalence classes cannot be formed"):
            case.statement.key(case.cells)
        return
    keys = list(case.statement.key(type(case.cells).concat([case.cells, case.cells])))
    told = listed_cells(case.cells)
    for i in range(len(told)):
        assert keys[i] == keys[i + len(told)]
    assert len(set(keys)) == len({json.dumps(one) for one in told})
    if case.statement.kinds is not None:
        assert len({case.statement.label(int(key)) for key in keys}) == len(set(keys))


# ---------------------------------------------------------------- files


@every
@pytest.mark.parametrize("kind_of_file", ["parquet", "csv"])
def test_cells_come_back_from_a_file(
    form: type[Statement], kind: str, domain: str, kind_of_file: str, tmp_path: Path
) -> None:
    case = made(form, kind, domain)
    path = tmp_path / f"data.{kind_of_file}"
    assert write_data(path, [case.statement], [{NAME: case.cells}]) == len(case.cells)
    found = [batch[NAME] for batch in store_for(path).batches([case.statement])]
    assert listed_cells(type(found[0]).concat(found)) == listed_cells(case.cells)


@every
def test_cells_come_back_from_arrow(form: type[Statement], kind: str, domain: str) -> None:
    case = made(form, kind, domain)
    assert listed_cells(case.statement.from_arrow(case.statement.to_arrow(case.cells))) == listed_cells(case.cells)
    chunks = pa.chunked_array([case.statement.to_arrow(case.cells.take(slice(i, i + 1))) for i in range(2)])
    if form in (SetStatement, OpenStatement, TermsStatement):
        assert listed_cells(case.statement.from_arrow(chunks)) == listed_cells(case.cells)[:2]


@every
def test_a_cell_that_nobody_published_is_refused(form: type[Statement], kind: str, domain: str) -> None:
    case = made(form, kind, domain)
    if form is OpenStatement:
        return
    wrongs = [pa.array(["Xq7 stranger"]), pa.array([["Xq7 stranger"] * 3]), pa.array([{"Xq7": 1}])]
    wrongs += [pa.array([b"Xq7"])] + ([] if MISSING in DOMAINS[domain].values else [pa.array([None], pa.string())])
    for wrong in wrongs:
        with pytest.raises(ReleaseError, match="column") as caught:
            case.statement.from_arrow(wrong)
        assert "Xq7" not in str(caught.value)


TYPES = {"string", "integer", "number", "boolean", "array", "any"}


@every
def test_the_field_of_a_data_package(form: type[Statement], kind: str, domain: str) -> None:
    case = made(form, kind, domain)
    field = json.loads(json.dumps(case.statement.field()))
    assert field["name"] == NAME
    assert field["type"] in TYPES
    assert field.keys() <= {"name", "type", "description", "constraints", "arrayItem"}
    cell = case.statement.to_arrow(case.cells).to_pylist()[-1]
    types: Mapping[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list}
    assert cell is None or isinstance(cell, types.get(field["type"], object))
    if field["type"] == "array":
        assert isinstance(cell[0], types[field["arrayItem"]["type"]])


# ---------------------------------------------------------------- the manifest


def block_of(statement: Statement) -> dict[str, Any]:
    return dict(json.loads(json.dumps(write_column(statement))))


@every
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_the_manifest_gives_the_statement_back(
    form: type[Statement], kind: str, domain: str, suffix: str, tmp_path: Path
) -> None:
    case = made(form, kind, domain)
    block = block_of(case.statement)
    write_sides(tmp_path, [case.statement], suffix)
    assert len(list(tmp_path.iterdir())) == (case.statement.side is not None)
    (again,) = with_sides(tmp_path, [read_column(block)], suffix)
    assert type(again) is form
    assert block_of(again) == block
    assert (again.name, again.role, again.d) == (NAME, case.statement.role, case.d)
    assert again.column.is_open == case.statement.column.is_open
    if case.chances is not None:
        found = again.likelihood(case.cells)
        assert found is not None
        assert found.dense(case.d) == pytest.approx(np.array(case.chances), abs=1e-12)
    if form is TermsStatement:
        one, other = again.column.known, case.statement.column.known
        assert (one.labels, one.terms) == (other.labels, other.terms)
        assert again.terms == case.statement.terms


FOREIGN: dict[str, Any] = {
    "design": {"name": "uniform-decoys", "d": 5, "eta": 2, "p": 1.0},
    "nodes": [["any", [[0, 5]]]],
    "groups": 2,
    "number": 1,
    "knowledge": 1,
    "counts": [1, 2],
    "secret": "x",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_fields_that_a_form_does_not_have_are_refused_and_its_own_are_needed(form: type[Statement]) -> None:
    for make in MAKERS[form].values():
        block = block_of(make(DOMAINS["texts"]).statement)
        own = block.keys() - PublishedMeaning.model_fields.keys() - {"form"}
        for name, value in FOREIGN.items():
            if name not in own:
                with pytest.raises(ValueError, match=r"has the fields|from a hierarchy or from a list"):
                    read_column(block | {name: value})
        for name in own:
            for wrong in ({k: v for k, v in block.items() if k != name}, block | {name: None}, block | {name: "x"}):
                with pytest.raises(ValueError):
                    read_column(wrong)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_form_is_not_read_as_another(form: type[Statement]) -> None:
    """Nothing but the open form goes without values, and the open form has none."""
    block = block_of(next(iter(MAKERS[form].values()))(DOMAINS["texts"]).statement)
    with pytest.raises(ValueError, match="lists its values"):
        read_column(
            {k: v for k, v in block.items() if k != "values"} if "values" in block else block | {"values": ["a"]}
        )
    for wrong in (block | {"form": "riddle"}, {k: v for k, v in block.items() if k != "form"}, None, [], "exact"):
        with pytest.raises(ValueError, match="a form that this version knows"):
            read_column(wrong)


# ---------------------------------------------------------------- any texts


LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")  # no table holds a NUL character
texts = st.lists(st.text(LETTERS, min_size=1), min_size=2, max_size=6, unique=True)


@given(texts)
def test_any_texts_come_back_from_both_files(tmp_path_factory: pytest.TempPathFactory, values: list[str]) -> None:
    """As cells of their own, in sets, as terms and as general values."""
    domain = Domain(tuple(value for value in values if value != MISSING) or ("a", "b"))
    folder = tmp_path_factory.mktemp("texts")
    d = len(domain)
    cases = [exact(domain)]
    looks_apart = not count_lookalikes(domain.values)  # knowledge tables refuse terms that look the same
    if d > 1 and looks_apart and all(value == value.strip() for value in domain.values):
        cases.append(terms(domain))
    if d > 2:
        cases.append(drawn(domain, lambda d: DecoyDesign(d=d, eta=2), lambda d: uniform_law(d, 2, 1.0)))
    cases.append(
        Case(NodeStatement(column(domain), Nodes.from_members(d, domain.values, [(v,) for v in range(d)])),
             CodeCells(d, np.arange(d)), None)
    )  # fmt: skip
    for number, case in enumerate(cases):
        for suffix in ("parquet", "csv"):
            path = folder / f"data-{number}.{suffix}"
            write_data(path, [case.statement], [{NAME: case.cells}])
            found = [batch[NAME] for batch in store_for(path).batches([case.statement])]
            assert listed_cells(type(found[0]).concat(found)) == listed_cells(case.cells)
