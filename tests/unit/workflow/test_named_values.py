"""What a release of classes may name, how foreign terms are read, and which register is asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.engines import Recode
from noren.schema.column import Column
from noren.schema.domain import MISSING, Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Nodes, tree_of
from noren.schema.roles import Role
from noren.secret import Register
from noren.sources.source import open_source
from noren.workflow.foreign import foreign_table, read_foreign
from noren.workflow.prepare import prepare
from noren.workflow.republish import Registers
from noren.workflow.settling import settle_draft
from noren.workflow.shown import Outgoing, declare_values, forget_unseen, listed_nodes, same_nodes
from tests.statements import meaning
from tests.unit import term_world

TREE = Hierarchy((("a", "b", "c", "d"), ("X", "X", "Y", "Y"), ("*", "*", "*", "*")))


def general(nodes: Nodes, codes: list[int], published: list[str]) -> Outgoing:
    place = {label: node for node, label in enumerate(nodes.labels)}
    return Outgoing(
        meaning("ill", 4, hierarchy=TREE),
        np.array(codes),
        Recode(nodes, np.array([place[label] for label in published])),
    )


def test_general_values_stay_nodes_of_what_is_left_of_their_hierarchy() -> None:
    part = general(tree_of(TREE).nodes, [0, 1, 2, 3], ["X", "X", "c", "d"])
    found = forget_unseen(part, np.array([True, True, True, False]))
    assert found.column.domain.values == ("a", "b", "c")
    assert found.codes[:3].tolist() == [0, 1, 2]
    assert isinstance(found.change, Recode)
    tree = found.column.tree
    assert tree is not None
    assert same_nodes(found.change.nodes, tree_of(tree).nodes)
    members = [found.change.nodes.members(node).tolist() for node in found.change.data[:3].tolist()]
    assert members == [[0, 1], [0, 1], [2]]


def test_general_values_that_are_no_nodes_of_a_hierarchy_are_listed() -> None:
    nodes = Nodes.from_members(4, ["b or c", "a", "d"], [(1, 2), (0,), (3,)])
    part = general(nodes, [0, 1, 2, 3], ["a", "b or c", "b or c", "d"])
    found = forget_unseen(part, np.array([True, True, True, False]))
    assert isinstance(found.change, Recode)
    shown = found.change.nodes
    assert {shown.labels[node]: shown.members(node).tolist() for node in range(len(shown))} == {
        "a": [0],
        "b or c": [1, 2],
    }
    listed, place = listed_nodes(found.change, np.array([True, True, True, False]))
    assert listed.labels == ("a", "b or c")
    assert place[:3].tolist() == [0, 1, 1]


def test_nothing_is_forgotten_that_is_published_or_declared() -> None:
    part = general(tree_of(TREE).nodes, [0, 1, 2, 3], ["*"] * 4)
    assert forget_unseen(part, np.ones(4, bool)) is part
    assert forget_unseen(part, np.array([True, False, False, False]), values_stay=True) is part


def test_a_secret_goes_back_to_the_domain_it_was_declared_with() -> None:
    whole = Column(role=Role.SENSITIVE).over("ill", Domain(("a", "b", "c"), "string", "policy"))
    seen = Column(role=Role.SENSITIVE).over("ill", Domain(("a", "c"), "string", "policy"))
    part = Outgoing(seen, np.array([0, 1, 1]), None)
    found = declare_values(whole, np.array([1, 0, 2]), part)
    assert found.column is whole
    assert found.codes.tolist() == [0, 2, 2]
    assert declare_values(whole, np.array([1, 1, 1]), part) is part
    assert declare_values(seen, np.array([1, 0]), part) is part


def test_foreign_terms_are_read_by_their_knowledge() -> None:
    frame = pl.DataFrame({"age": [30, 30], "town": ["n", "n"], "signs": [["cough", "strange"], ["fever"]]})
    found = foreign_table(frame, term_world.policy())
    terms = found.column("signs").terms
    assert terms is not None
    assert {*term_world.TERMS, "strange"} == {*terms}
    told = dict(zip(terms, found.column("signs").tally(found.cells(["signs"])["signs"]).tolist(), strict=True))
    assert {term: times for term, times in told.items() if times} == {"cough": 1, "fever": 1, "strange": 1}


@pytest.mark.parametrize("mark", ["*", None])
def test_a_secret_that_was_suppressed_is_missing_and_no_value(mark: str | None) -> None:
    frame = pl.DataFrame({"town": ["u", "u", "v", "v"], "ill": ["a", "*", "b", "None"]})
    roles = {"town": Role.QUASI_IDENTIFIER, "ill": Role.SENSITIVE}
    found = read_foreign(open_source(frame), roles, suppressed=mark).column("ill").domain.values
    assert {*found} == ({"a", "b", "None", MISSING} if mark else {"a", "b", "None", "*"})


@pytest.mark.parametrize("renamed", [False, True])
def test_a_register_beside_a_policy_is_asked_by_the_column_of_its_key(tmp_path: Path, renamed: bool) -> None:
    people = pl.DataFrame({"id": [f"p{i}" for i in range(60)], "ill": ["a", "b", "c"] * 20})
    asked = [nr.models.FrequencyLDiversity(on="ill", l=2)]
    roles = {"id": "identifier", "ill": "sensitive"}
    nr.Secret.create(tmp_path / "key")
    nr.anonymize(
        people, nr.Policy(attributes=roles, require=asked, randomness={"record_key": "id"}), secret=tmp_path / "key"
    )
    if renamed:
        roles = {"ill": "sensitive", "who": "identifier"}
    columns = {"columns": {"who": "id"}} if renamed else {}
    fresh = nr.Policy(attributes=roles, require=asked, randomness=columns, base=tmp_path)
    (found,) = Registers(fresh, None).all
    assert (found.key, found.rule.column, found.memoised) == ("who" if renamed else "id", "id", False)
    assert Registers(nr.Policy(attributes={"ill": "sensitive"}, require=asked, base=tmp_path), None).all == []


@pytest.mark.parametrize("least", [2, 3])
def test_a_register_learns_what_classes_leave_possible(tmp_path: Path, least: int) -> None:
    people = pl.DataFrame({"id": [f"p{i}" for i in range(24)], "age": [20, 60] * 12, "ill": list("aabbccddabcd") * 2})
    nr.Secret.create(tmp_path / "key")
    rules = nr.Policy(
        attributes={"id": "identifier", "age": "quasi-identifier", "ill": "sensitive"},
        require=[nr.models.DistinctLDiversity(on="ill", l=least)],
        method={"name": "mondrian", "blind": False},
        randomness={"record_key": "id", "mode": "fresh"},
        mechanism="ignored",  # a table of few people
    )
    release = nr.anonymize(people, rules, secret=tmp_path / "key")
    found = Register.open(tmp_path / "key").contents
    assert len(found.people) == 24
    sets = found.classes["ill"]
    sizes = np.diff(sets.bounds)[sets.which]
    classes = release.frame().group_by("age").agg(pl.col("ill").n_unique().alias("values"), pl.len())
    assert sorted(sizes.tolist()) == sorted(
        size for values, people in classes.select("values", "len").rows() for size in [values] * people
    )


def test_a_table_whose_rows_are_people_is_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes grow where people have several rows, and what is drawn has no classes to grow."""

    def never(*given: object) -> None:
        raise AssertionError("nothing is judged before it is written")

    monkeypatch.setattr("noren.workflow.settling.judge_draft", never)
    people = pl.DataFrame({"who": [*range(20), *range(20)], "age": [20, 60] * 20, "ill": list("abcd") * 10})
    roles = {"who": "identifier", "age": "quasi-identifier", "ill": "sensitive"}
    asked = [nr.models.DistinctLDiversity(on="ill", l=2)]
    alone = nr.Policy(attributes=roles, require=asked, method="mondrian", people={"rows": "independent"})
    assert settle_draft(prepare(people, alone), alone).records == 40
    drawn = nr.Policy(attributes=roles | {"age": "plain"}, require=asked, method="decoys", people={"key": "who"})
    assert settle_draft(prepare(people, drawn), drawn).records == 40
    several = nr.Policy(attributes=roles, require=asked, method="mondrian", people={"key": "who"})
    with pytest.raises(AssertionError, match="nothing is judged"):
        settle_draft(prepare(people, several), several)
