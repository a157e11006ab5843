"""What a draft lists, numbers and draws by: values of left-out records stay unnamed, keys decide sets, distances go."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.designs.decoys import DecoyDesign
from noren.engines import Group, Plan, Recode, Table
from noren.engines.engine import CodeBatch
from noren.engines.plan import Draw
from noren.errors import RequirementNotMet
from noren.schema.nodes import tree_of
from noren.secret import RecordStream, Secret
from noren.statements import CodeCells, GroupTable, NodeStatement
from noren.workflow.draft import Draft
from noren.workflow.prepare import prepare

N = 40
ROLES: dict[str, Any] = {
    "who": "identifier",
    "town": "quasi-identifier",
    "ill": "sensitive",
    "job": "sensitive",
    "shade": "plain",
    "sex": {"role": "plain", "values": ["f", "m", "x"]},
}


@cache
def table(**more: str) -> Table:
    """Two rows of everybody, of whom the last alone is from Kiel, has gout, is a smith, grey and a man."""
    last = np.arange(N) >= N - 2
    people = pa.table(
        {
            "who": [f"p{i // 2}" for i in range(N)],
            "town": np.where(last, "Kiel", np.where(np.arange(N) % 4 < 2, "Ulm", "Hof")),
            "ill": np.where(last, "gout", np.where(np.arange(N) % 2, "flu", "cold")),
            "job": np.where(last, "smith", "cook"),
            "shade": np.where(last, "grey", "blue"),
            "sex": np.where(last, "m", "f"),
        }
    )
    policy = nr.Policy(
        attributes=ROLES,
        require=[nr.models.DistinctLDiversity(on="ill", l=2), nr.models.FrequencyLDiversity(on="job", l=2)],
        method=[{"name": "mondrian"}, {"name": "decoys", "on": ["job"]}],
        people=more or {"rows": "independent"},
        dependence={"most": 1.0},
    )
    return prepare(people, policy)


JOB = Draw(DecoyDesign(d=2, eta=2))
WITHOUT_LAST = np.arange(N) < N - 2


def drafted(of: Table, keep: np.ndarray | None = None, stream: RecordStream | None = None, **treatments: Any) -> Draft:
    records = of.part(["town", "ill"], []).records
    return Draft(of, Plan({"job": JOB} | treatments, keep, records=records), stream=stream, key="who", most=0.1)


def values(draft: Draft) -> dict[str, tuple[str, ...]]:
    return {name: one.domain.values for name, one in draft.by_name.items()}


def test_a_value_of_left_out_records_is_not_listed() -> None:
    whole = {
        "town": ("Hof", "Kiel", "Ulm"), "ill": ("cold", "flu", "gout"), "job": ("cook", "smith"),
        "shade": ("blue", "grey"), "sex": ("f", "m", "x"),
    }  # fmt: skip
    assert values(drafted(table())) == whole
    less = whole | {"town": ("Hof", "Ulm"), "ill": ("cold", "flu"), "shade": ("blue",)}
    assert values(drafted(table(), WITHOUT_LAST)) == less, (
        "drawn values are a matter of the design, others were declared"
    )


def test_values_that_are_nowhere_have_no_place() -> None:
    found = drafted(table(), WITHOUT_LAST)
    assert found.published_codes("shade", ["grey", "blue", "red"]).tolist() == [-1, 0, -1]
    assert found.published_codes("ill", ["gout", "cold", "flu"]).tolist() == [-1, 0, 1]


def test_groups_are_numbered_from_one_on() -> None:
    held = table().part(["town", "ill"], []).records.codes["ill"]
    one = GroupTable(1, 3, np.zeros(3, np.int64), np.arange(3), np.bincount(held))
    found = drafted(table(), ill=Group(one, np.zeros(N, np.int64)))
    assert found.by_name["ill"].number == 1  # type: ignore[attr-defined]


def test_sides_of_knowledge_are_numbered_from_one_on() -> None:
    one = nr.Knowledge.from_pairs([("flu", "cough"), ("pox", "rash")])
    other = nr.Knowledge.from_pairs([("gout", "tea"), ("burn", "balm")])
    kind = pa.list_(pa.string())
    columns = {"a": [["cough"]], "b": [["tea"]], "c": [["rash"]]}
    people = pa.table({"town": ["u"]} | {name: pa.array(cells, kind) for name, cells in columns.items()})
    known = {"a": one, "b": other, "c": one}
    policy = nr.Policy(
        attributes={"town": "quasi-identifier"}
        | {name: {"role": "quasi-sensitive", "knowledge": table} for name, table in known.items()},
        require=[{"model": "qs-closeness", "on": names, "t": 1.0} for names in (["a", "c"], ["b"])],
        method="suppress",
    )
    ready = prepare(people, policy)
    found = Draft(ready, Plan(records=ready.records))
    assert [found.by_name[name].number for name in "abc"] == [1, 2, 1]  # type: ignore[attr-defined]


def test_a_distance_is_published_only_with_what_is_drawn() -> None:
    people = pa.table({"pay": [1, 2, 3, 4] * 2})
    asked = [nr.models.SemanticDiversity(on="pay", l=2, d=0.3)]
    ready = prepare(people, nr.Policy(attributes={"pay": {"role": "sensitive", "distance": "ordinal"}}, require=asked))
    exact, drawn = Draft(ready, Plan()), Draft(ready, Plan({"pay": Draw(DecoyDesign(d=4, eta=2))}))
    assert [one.by_name["pay"].column.distance for one in (exact, drawn)] == ["equal", "ordinal"]


def test_values_that_are_all_published_keep_their_hierarchy_and_others_name_what_cells_show() -> None:
    people = pa.table({"zip": ["abx", "aby", "cdx", "cdy"] * 2, "ill": ["a", "b"] * 4})
    roles = {"zip": {"role": "quasi-identifier", "hierarchy": {"prefix": [2]}}, "ill": "plain"}
    rules = nr.Policy(attributes=roles, require=[nr.models.KAnonymity(k=2)], method="mondrian", dependence={"most": 1})
    records = prepare(people, rules).records
    tree = records.columns["zip"].tree
    assert tree is not None
    nodes, codes = tree_of(tree).nodes, records.codes["zip"].astype(np.int64)

    def shown(data: np.ndarray) -> NodeStatement:
        found = Draft(prepare(people, rules), Plan({"zip": Recode(nodes, data)}, records=records)).by_name["zip"]
        assert isinstance(found, NodeStatement)
        return found

    every = shown(codes)
    assert every.domain.values == ("abx", "aby", "cdx", "cdy")
    assert every.nodes is not None
    assert every.nodes.labels == nodes.labels
    some = shown(np.where(codes < 2, nodes.labels.index("ab*"), codes))
    assert some.nodes is not None
    assert sorted(some.nodes.labels) == ["ab*", "cdx", "cdy"]


# ---------------------------------------------------------------- by what sets are drawn


def sets(draft: Draft, keys: bool = False, start: int = 0) -> list[list[int]]:
    """The sets of eight records who all have the first of ten values."""
    given = pa.chunked_array([[f"p{i // 2}" for i in range(8)]]) if keys else None
    batch = CodeBatch({"job": np.zeros(8, np.int64)}, {}, {}, given, 8, start)
    found: list[list[int]] = (
        draft.cells_of(batch, ["job"], np.arange(8), np.arange(start, start + 8))["job"].codes(5).tolist()
    )  # type: ignore[attr-defined]
    return found


@cache
def drawing(people: bool = False) -> Table:
    cells = {"who": [f"p{i // 2}" for i in range(N)], "job": [f"j{i % 10}" for i in range(N)]}
    policy = nr.Policy(
        attributes={"who": "identifier", "job": "sensitive"},
        require=[nr.models.FrequencyLDiversity(on="job", l=5)],
        people={"key": "who"} if people else {"rows": "independent"},
    )
    return prepare(pa.table(cells), policy)


WIDE = Plan({"job": Draw(DecoyDesign(d=10, eta=5))})


def test_a_secret_and_keys_draw_the_same_in_every_draft() -> None:
    stream = RecordStream(Secret.fresh())
    one, other = (Draft(drawing(), WIDE, stream=stream, key="who") for _ in range(2))
    assert one.reading.key == "who"
    assert sets(one, keys=True) == sets(other, keys=True, start=8)
    assert sets(one, keys=True)[::2] == sets(one, keys=True)[1::2], "by the key alone"


def test_without_a_secret_every_run_draws_anew_and_reads_no_keys() -> None:
    fresh = Draft(drawing(), WIDE, key="who")
    assert fresh.reading.key is None
    assert sets(fresh) != sets(fresh)


def test_rows_of_one_person_with_one_value_have_one_set_also_without_a_secret() -> None:
    found = Draft(drawing(people=True), WIDE)
    assert sets(found)[::2] == sets(found)[1::2]
    assert len({tuple(one) for one in sets(found)}) > 1
    other = Draft(drawing(people=True), WIDE)
    assert sets(found) != sets(other), "another release draws by another secret"


def test_nothing_drawn_is_not_taken_for_one_truth_in_its_set() -> None:
    one = prepare(
        pa.table({"job": ["cook"]}),
        nr.Policy(
            attributes={"job": {"role": "sensitive", "values": ["cook", "smith"]}},
            require=[nr.models.FrequencyLDiversity(on="job", l=2)],
        ),
    )
    with pytest.raises(RequirementNotMet, match="do not follow their design"):
        Draft(one, Plan({"job": Draw(DecoyDesign(d=2, eta=1))})).demand_heads()


def test_closeness_is_judged_by_the_original() -> None:
    assert drafted(table()).overall().keys() == {"job"}
    assert drafted(table()).overall()["job"].shares == pytest.approx([38 / 40, 2 / 40])
    assert Draft(drawing(), WIDE).overall().keys() == {"job"}
    assert isinstance(drafted(table()).cells["ill"], CodeCells)
