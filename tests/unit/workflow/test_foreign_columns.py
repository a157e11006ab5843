"""How single columns of other tools' tables are read: what is a value, what is missing, what is the same."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import noren as nr
from noren.errors import PolicyError
from noren.release.store import names_people
from noren.schema.domain import MISSING
from noren.schema.hierarchy import Hierarchy
from noren.schema.knowledge import Knowledge
from noren.schema.roles import Role
from noren.sources.source import open_source
from noren.statements import ExactStatement, NodeStatement, OpenStatement, TermsStatement
from noren.workflow import foreign as room
from noren.workflow.foreign import _key, _nodes, _secret, _telling, foreign_table, read_foreign, verify_table


def texts(*cells: str | None) -> Any:
    return pa.array(cells, pa.string())


def secret(cells: Any, tree: Hierarchy | None = None, order: list[str] | None = None) -> Any:
    statement, found = _secret("x", Role.SENSITIVE, cells, tree, order)
    domain = statement.domain
    return domain.values, domain.kind, domain.source, [domain.values[code] for code in found.data]


def test_numbers_that_are_written_otherwise_are_one_value_unless_values_are_declared() -> None:
    cells = texts(" 1", "1.0", "2", None)
    assert secret(cells) == (("1", "2", MISSING), "string", "data", ["1", "1", "2", MISSING])
    assert secret(texts("1", "1.0", "2"))[:3] == (("1", "2"), "integer", "data")
    assert secret(texts("1", "1.0"), order=["1.0", "1"]) == (("1.0", "1"), "string", "policy", ["1", "1.0"])
    tree = Hierarchy((("1", "1.0"), ("*", "*")))
    assert secret(texts("1", "1.0"), tree)[0] == ("1", "1.0")
    assert secret(texts("1", "x", "1.0"))[0] == ("1", "1.0", "x")
    assert secret(texts("1", "", "1.0"))[0] == ("1", MISSING)


def test_declared_values_stand_first_and_a_missing_cell_last() -> None:
    values, kind, source, cells = secret(texts("c", "a", MISSING), order=["b", MISSING, "a"])
    assert (values, kind, source, cells) == (("b", "a", "c", MISSING), "string", "policy", ["c", "a", MISSING])


TREE = Hierarchy((("flu", "cold", "ulcer"), ("lungs", "lungs", "gut"), ("*", "*", "*")))


def test_inner_values_of_a_tree_are_its_nodes() -> None:
    statement, cells = _nodes("x", Role.SENSITIVE, texts("lungs", "flu", "*"), TREE, ["lungs", "*"], 0)
    assert isinstance(statement, NodeStatement)
    assert [statement.nodes.labels[code] for code in cells.data] == ["lungs", "flu", "*"]
    assert statement.domain.source == "hierarchy"
    with pytest.raises(PolicyError, match="does not contain missing cells"):
        _nodes("x", Role.SENSITIVE, texts("lungs", None), TREE, ["lungs"], 1)
    with pytest.raises(PolicyError, match="misses 1 values of 'x': 'skin'"):
        _nodes("x", Role.SENSITIVE, texts("skin"), TREE, ["skin", "skin"], 0)


@pytest.mark.parametrize(("cells", "coded"), [("abc", True), ("abcd", False), ("ab", True)])
def test_few_texts_are_coded(cells: str, coded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert room.MOST_LABELS == 16_384
    monkeypatch.setattr(room, "MOST_LABELS", 3)
    statement, _ = _key("town", Role.QUASI_IDENTIFIER, texts(*cells))
    assert isinstance(statement, ExactStatement if coded else OpenStatement)


def test_a_text_that_says_missing_is_not_a_missing_cell() -> None:
    statement, cells = _key("town", Role.QUASI_IDENTIFIER, texts(MISSING, None, "a"))
    assert isinstance(statement, OpenStatement)
    assert cells.data.to_pylist() == [MISSING, None, "a"]
    statement, cells = _key("town", Role.QUASI_IDENTIFIER, texts("b", None, "a"))
    assert statement.domain.values[-1] == MISSING
    assert [statement.domain.values[code] for code in cells.data] == ["b", MISSING, "a"]


def test_a_row_tells_something_in_any_cell_that_is_neither_missing_nor_suppressed() -> None:
    first, second = texts(None, "*", " * ", "", "flu", None), texts(None, None, "*", " ", None, "x")
    assert _telling({"a": first, "b": second}, 6, "*").tolist() == [False, False, False, False, True, True]
    assert _telling({}, 2, "*").tolist() == [False, False]


ROLES = {"town": Role.QUASI_IDENTIFIER, "job": Role.SENSITIVE}
PEOPLE = pl.DataFrame({"town": ["*", "*", "Ulm", "Ulm"], "job": ["cook", None, "cook", "clerk"]})


def test_suppressed_rows_that_tell_a_secret_stay_where_they_are_judged() -> None:
    plain = read_foreign(open_source(PEOPLE), ROLES)
    assert (plain.records, plain.suppressed) == (2, 2)
    judged = read_foreign(open_source(PEOPLE), ROLES, judged=True)
    assert (judged.records, judged.suppressed) == (3, 2)
    kept = read_foreign(open_source(PEOPLE), ROLES, suppressed=None)
    assert (kept.records, kept.suppressed) == (4, 0)


def policy(**column: Any) -> nr.Policy:
    attributes: dict[str, Any] = {"town": "quasi-identifier", "job": {"role": "sensitive"} | column}
    asked = [nr.models.DistinctLDiversity(on="job", l=2)]
    return nr.Policy(attributes=attributes, require=asked, method="mondrian")


def test_a_policy_says_which_values_there_are() -> None:
    found = foreign_table(PEOPLE, policy(values=["smith", "cook", "clerk"]))
    assert found.column("job").domain.values[:3] == ("smith", "cook", "clerk")
    assert (found.records, found.suppressed) == (2, 2)
    assert foreign_table(PEOPLE, policy()).column("job").domain.source == "data"
    judged, _ = verify_table(PEOPLE, policy())
    assert judged.records == 3


ORDERED = nr.models.TCloseness(on="job", t=0.9, distance="ordered")


@pytest.mark.parametrize(
    ("cells", "model", "column", "refused"),
    [
        ("1x23", ORDERED, {"distance": "ordinal"}, True),
        ("1x23", ORDERED, {"distance": "ordinal", "values": ["x", "1", "2", "3"]}, False),
        ("axbc", ORDERED, {"distance": "ordinal"}, False),
        ("1x23", nr.models.DistinctLDiversity(on="job", l=2), {}, False),
    ],
)
def test_values_without_an_order_are_refused_where_an_order_is_asked_for(
    cells: str, model: Any, column: dict[str, Any], refused: bool
) -> None:
    """Another column may be without."""
    table = pl.DataFrame({"town": ["7", "y", "7", "y"], "job": list(cells)})
    attributes: dict[str, Any] = {"town": "quasi-identifier", "job": {"role": "sensitive"} | column}
    rules = nr.Policy(attributes=attributes, require=[model], method="mondrian")
    if refused:
        with pytest.raises(PolicyError, match=r"attributes\.job\.values"):
            verify_table(table, rules)
        return
    assert verify_table(table, rules)[0].records == 4


def test_rows_of_one_person_are_known_by_the_whole_key() -> None:
    table = pl.DataFrame({"a": ["1", "1", "2", "2"], "b": ["x", "x", "x", "y"]})
    roles = dict.fromkeys(("a", "b"), Role.QUASI_IDENTIFIER)
    found = read_foreign(open_source(table), roles, people=["a", "b"])
    assert room._people(open_source(table), ["a", "b"]).tolist() == [0, 0, 1, 2]
    assert names_people(found.store)
    assert not names_people(read_foreign(open_source(table), roles, people=["a", "c"]).store)


def test_terms_are_those_of_the_knowledge_and_of_the_table() -> None:
    known = {name: Knowledge.from_sets([[0], [0, 1]], terms=["fever", "rash"]) for name in ("more", "signs")}
    table = pa.table({"town": ["Ulm", "Hof"], "signs": [["rash", "cough"], ["fever"]]})
    roles = {"town": Role.QUASI_IDENTIFIER, "signs": Role.QUASI_SENSITIVE}
    found = read_foreign(open_source(table), roles, knowledge=known).column("signs")
    assert isinstance(found, TermsStatement)
    assert found.domain.values == ("fever", "rash", "cough")
    assert found.number == 2
