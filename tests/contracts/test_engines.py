"""An engine is somewhere else to work, and nothing more: partitions on threads come to what one machine comes to.

Every method runs under both engines. Where chance decides (which records look alike, in which order rows stand, which
decoys are drawn) it is fixed, or what does not depend on it is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.engines import Average, Group, Omit, Recode, engine_for
from noren.methods import METHODS
from noren.release.manifest import write_column
from noren.workflow.anonymize import Outcome, run
from noren.workflow.measure import measure
from tests.contracts.paints import PAINTS, PALETTE, SHADES
from tests.contracts.partitions import PartitionedEngine

N = 403


def table() -> pa.Table:
    """People with a number, two columns that find them, a harmless one and a secret; every 20th has no town."""
    rng = np.random.default_rng(8)
    town = rng.choice(["13021", "13022", "13145", "24011", "24990"], N).tolist()
    return pa.table(
        {
            "row": np.arange(N),
            "age": rng.integers(20, 60, N).tolist(),
            "town": [None if i % 20 == 7 else cell for i, cell in enumerate(town)],
            "shade": rng.choice(SHADES, N, p=[0.2, 0.2, 0.2, 0.15, 0.15, 0.1]).tolist(),
            "signs": [";".join(PAINTS.terms[c] for c in np.flatnonzero(rng.random(5) < 0.4)) for _ in range(N)],
        }
    )


FREQUENCY = {"model": "frequency-l-diversity", "on": "shade", "l": 3}
SEMANTIC = {"model": "semantic-diversity", "on": "shade", "l": 2, "d": 2}
ORDERED = {"role": "sensitive", "values": list(SHADES), "distance": "ordinal"}


def policy(method: Any, *require: Any, **more: Any) -> nr.Policy:
    """Records without a town are dropped, so that the places of the others move."""
    attributes: dict[str, Any] = {
        "row": "plain",
        "age": "quasi-identifier",
        "town": {"role": "quasi-identifier", "hierarchy": {"prefix": [3, 2]}, "missing": "drop"},
        "shade": {"role": "sensitive", "hierarchy": PALETTE},
        "signs": "identifier",
    }
    randomness = more.pop("randomness", None)
    options: dict[str, Any] = {"people": {"rows": "independent"}}
    options |= {} if randomness is None else {"randomness": randomness}
    return nr.Policy(
        mechanism="ignored", attributes=attributes | more, require=require or [FREQUENCY], method=method, **options
    )


def linked(method: Any, *require: Any) -> nr.Policy:
    signs = {"role": "quasi-sensitive", "separator": ";", "knowledge": PAINTS}
    asked = require or ({"model": "qs-diversity", "on": "signs", "c": 2.0, "l": 2},)
    return policy(method, *asked, shade="plain", signs=signs)


BY_METHOD: Mapping[str, nr.Policy] = {
    "decoys": policy("decoys"),
    "sweep": policy("sweep"),
    "mondrian": policy("mondrian", FREQUENCY, {"model": "k-anonymity", "k": 4}),
    "incognito": policy("incognito", FREQUENCY, {"model": "k-anonymity", "k": 4}),
    "hilbert": policy("hilbert"),
    "three-phase": policy("three-phase"),
    "anatomy": policy("anatomy"),
    "rating": policy("rating"),
    "local-suppression": policy("local-suppression", FREQUENCY, {"model": "k-anonymity", "k": 4}),
    "microaggregation": policy("microaggregation", FREQUENCY, {"model": "k-anonymity", "k": 4}),
    "m-invariance": policy("m-invariance", {"model": "m-invariance", "on": "shade", "m": 3}),
    "pram": policy("pram", {"model": "t-closeness", "on": "shade", "t": 0.4}),
    "suppress": linked({"name": "suppress", "k": 3, "nodes": 200}),
    "auto": policy({"name": "auto", "among": ["mondrian", "incognito"]}),
}
CASES: Mapping[str, nr.Policy] = {
    **BY_METHOD,
    "closeness": policy("decoys", {"model": "t-closeness", "on": "shade", "t": 0.3}),
    "semantic": policy("decoys", SEMANTIC, shade=ORDERED),
    "shuffled records": policy({"name": "decoys", "form": "records"}, SEMANTIC, shade=ORDERED),
    "mixed": policy(
        [{"name": "mondrian"}, {"name": "decoys", "on": ["shade"]}], {"model": "k-anonymity", "k": 4}, FREQUENCY
    ),
    "mondrian with suppression": policy({"name": "mondrian", "suppression": 0.2}, {"model": "k-anonymity", "k": 9},
                                        FREQUENCY),
    "incognito with suppression": policy({"name": "incognito", "suppression": 0.2}, {"model": "k-anonymity", "k": 4},
                                         FREQUENCY),
    "terms and mondrian": linked("mondrian"),
    "terms and closeness": linked({"name": "suppress", "k": 4, "nodes": 200},
                                  {"model": "qs-closeness", "on": "signs", "t": 0.4}),
}  # fmt: skip


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One order of records, whichever engine runs."""
    monkeypatch.setattr("noren.methods.base.secret_order", lambda n: np.random.default_rng(n).permutation(n))


def both(rules: nr.Policy, **options: Any) -> tuple[Outcome, Outcome]:
    partitioned = PartitionedEngine()
    here, there = run(table(), rules, **options), run(table(), rules, engine=partitioned, **options)
    assert {"profile", "scatter", "judge"} <= set(partitioned.used)
    return here, there


def said(verdicts: Any) -> list[tuple[Any, ...]]:
    return [(v.model, v.column, v.holds, v.required, pytest.approx(v.achieved), v.basis, v.records, v.breaches, v.short)
            for v in verdicts]  # fmt: skip


def test_every_method_has_a_case() -> None:
    assert BY_METHOD.keys() == METHODS.keys()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("fixed")
def test_verdicts_and_counts_are_the_same(case: str) -> None:
    here, there = both(CASES[case])
    assert said(there.facts.verdicts) == said(here.facts.verdicts)
    assert there.facts.dropped == here.facts.dropped > 0
    assert (there.facts.records, there.facts.suppressed) == (here.facts.records, here.facts.suppressed)
    assert there.release.rows == here.release.rows
    assert there.facts.notes == here.facts.notes
    assert there.facts.losses == pytest.approx(here.facts.losses)
    for name, counts in here.facts.table.counts.items():
        assert there.facts.table.counts[name].tolist() == counts.tolist()
    if case != "shuffled records":
        rows = [sorted(made.release.frame()["row"].to_list()) for made in (here, there)]
        assert rows[0] == rows[1]


@pytest.mark.parametrize("case", [name for name, rules in CASES.items() if rules.forms_classes])
@pytest.mark.usefixtures("fixed")
def test_the_plan_is_the_same_in_the_same_order(case: str) -> None:
    here, there = (made.facts.plan for made in both(CASES[case]))
    assert there.treatments.keys() == here.treatments.keys()
    assert (there.keep is None) == (here.keep is None)
    assert here.keep is None or there.keep.tolist() == here.keep.tolist()  # type: ignore[union-attr]
    for name, treatment in here.treatments.items():
        other = there.treatments[name]
        assert type(other) is type(treatment)
        if isinstance(treatment, Recode | Group | Average):
            assert other.data.tolist() == treatment.data.tolist()  # type: ignore[union-attr]
        if isinstance(treatment, Recode):
            assert (other.nodes.labels, other.nodes.runs) == (treatment.nodes.labels, treatment.nodes.runs)  # type: ignore[union-attr]
        if isinstance(treatment, Omit):
            assert other.cells.data.tolist() == treatment.cells.data.tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize("case", [name for name, rules in CASES.items() if rules.forms_classes and not
                                  any(method.name == "decoys" for method in rules.methods)])  # fmt: skip
@pytest.mark.usefixtures("fixed")
def test_what_is_published_is_the_same_but_for_the_order_of_rows(case: str) -> None:
    here, there = (made.release for made in both(CASES[case]))
    assert [write_column(column) for column in there.statements] == [write_column(column) for column in here.statements]
    assert there.frame().sort("row").equals(here.frame().sort("row"))


@pytest.mark.parametrize("case", ["decoys", "pram", "closeness", "semantic", "mixed"])
@pytest.mark.parametrize("kind", ["memory", "parquet", "csv"])
@pytest.mark.usefixtures("fixed")
def test_memoised_cells_are_the_same_cell_for_cell(case: str, kind: Any, tmp_path: Path) -> None:
    nr.Secret.create(tmp_path / "key")
    rules = CASES[case]
    keyed = nr.Policy(
        mechanism="ignored",
        attributes=rules.attributes,
        require=rules.require,
        method=rules.methods,
        people=rules.people,
        randomness={"record_key": "row"},
    )
    found = []
    for number, engine in enumerate(("local", PartitionedEngine())):
        more = {} if kind == "memory" else {"to": tmp_path / str(number), "file_format": kind}
        found.append(nr.anonymize(table(), keyed, secret=tmp_path / "key", engine=engine, **more))
    frames = [release.frame().sort("row") for release in found]
    assert frames[0].equals(frames[1])
    names = ["town", "shade"]
    estimates = [release.estimate(names).frame.sort(names) for release in found]
    assert estimates[1]["count"].to_list() == pytest.approx(estimates[0]["count"].to_list(), abs=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_a_release_is_verified_alike_wherever(case: str) -> None:
    rules = CASES[case]
    release = nr.anonymize(table(), rules)
    for more in ({}, {"original": table()}):
        here = nr.verify(release, rules, **more)
        there = nr.verify(release, rules, engine=PartitionedEngine(), **more)
        assert said(there) == said(here)
        assert not any(verdict.holds is False for verdict in there), "without the original it may be undecided"
        assert not more or all(verdict.holds is True for verdict in there)


@pytest.mark.parametrize("case", ["mondrian", "anatomy", "decoys", "mixed", "suppress", "microaggregation", "pram"])
def test_what_a_release_achieves_is_the_same_wherever(case: str) -> None:
    release = nr.anonymize(table(), CASES[case])
    here, there = measure(release), measure(release, engine=PartitionedEngine())
    assert there.frame.equals(here.frame)
    assert len(here) > 0


def test_methods_are_compared_alike_wherever(fixed: None) -> None:
    rules, among = BY_METHOD["mondrian"], ["mondrian", "incognito", "mondrian + decoys"]
    here, there = (nr.compare(table(), rules, among=among, engine=e) for e in ("local", PartitionedEngine()))
    told = [{c.title: (c.holds, c.records, c.smallest_class, c.worst_share) for c in one} for one in (here, there)]
    assert told[1] == told[0]
    losses = [{c.title: pytest.approx(c.query_loss) for c in one if len(c.methods) == 1} for one in (here, there)]
    assert losses[1] == losses[0], "apart from decoys, which are drawn anew"


def test_summaries_merge() -> None:
    """Histograms are ascending and complete, whatever the partitions were."""
    from noren.workflow.prepare import prepare

    here, there = (prepare(table(), BY_METHOD["mondrian"], engine) for engine in ("local", PartitionedEngine()))
    for names in (["shade"], ["town", "shade"], ["shade", "age", "town"]):
        mine, other = here.histogram(names), there.histogram(names)
        assert mine[0].tolist() == other[0].tolist() == sorted(mine[0].tolist())
        assert mine[1].tolist() == other[1].tolist()
        assert mine[1].sum() == here.n
    starts = [(batch.start, batch.records) for batch in there.engine.encoded(there.source, there.reading(["age"]))]
    assert [start for start, _ in starts] == np.concatenate([[0], np.cumsum([n for _, n in starts])])[:-1].tolist()


@pytest.mark.parametrize("engine", ["local", PartitionedEngine()], ids=["local", "partitions"])
def test_a_table_without_records_is_refused_and_an_empty_partition_is_not(engine: Any) -> None:
    rules = policy("decoys", town="plain", shade={"role": "sensitive", "values": list(SHADES)})
    with pytest.raises(nr.errors.DataError, match="a header but no rows"):
        nr.anonymize(table().slice(0, 0), rules, engine=engine)
    for rows in (1, 2, 3):
        assert nr.anonymize(table().slice(0, rows), rules, engine=engine).records == rows


def test_an_engine_that_is_not_known_is_refused() -> None:
    assert isinstance(engine_for(None, PartitionedEngine()), PartitionedEngine)
    with pytest.raises(nr.errors.QueryError, match="no engine 'abacus'"):
        nr.anonymize(table(), BY_METHOD["decoys"], engine="abacus")
