"""What every method that forms classes and every model about classes must do. An entry without a case here fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.engines import Plan, Recode
from noren.methods import METHODS
from noren.methods.base import ClassMethod
from noren.methods.cover import cover
from noren.models import MODELS, KAnonymity, Model
from noren.workflow.anonymize import run
from tests.contracts.paints import PAINTS, PALETTE, SHADES

N = 360


def table(n: int = N) -> pa.Table:
    """People with a name, two columns that find them, a harmless one, a secret shade, and signs of a paint."""
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "who": [f"p{i}" for i in range(n)],
            "age": rng.integers(20, 60, n).tolist(),
            "town": rng.choice(["13021", "13022", "13145", "24011", "24990"], n).tolist(),
            "note": [f"n{i % 7}" for i in range(n)],
            "shade": rng.choice(SHADES, n, p=[0.2, 0.2, 0.2, 0.15, 0.15, 0.1]).tolist(),
            "signs": [";".join(PAINTS.terms[c] for c in np.flatnonzero(rng.random(5) < 0.4)) for _ in range(n)],
        }
    )


@dataclass(frozen=True)
class ClassCase:
    """Parameters that the table can reach, stricter ones that its releases break, and ones beyond any table."""

    attainable: dict[str, Any]
    stricter: dict[str, Any]
    beyond: dict[str, Any]
    more: dict[str, Any] = field(default_factory=dict)


CASES = {
    "k-anonymity": ClassCase({"k": 4}, {"k": 300}, {"k": 361}),
    "distinct-l-diversity": ClassCase({"l": 3}, {"l": 6}, {"l": 7}),
    "frequency-l-diversity": ClassCase({"l": 3}, {"l": 5}, {"l": 7}),
    "entropy-l-diversity": ClassCase({"l": 2.5}, {"l": 5.9}, {"l": 6.5}),
    "recursive-cl-diversity": ClassCase({"c": 2.0, "l": 2}, {"c": 0.3, "l": 3}, {"c": 0.05, "l": 5}),
    "alpha-k-anonymity": ClassCase({"alpha": 0.5, "k": 3}, {"alpha": 0.21, "k": 3}, {"alpha": 0.1, "k": 3}),
    "t-closeness": ClassCase({"t": 0.35}, {"t": 0.01}, {}, {"distance": "equal"}),
    "tau-l-diversity": ClassCase({"tau": 0.5, "l": 3}, {"tau": 0.2, "l": 5}, {"tau": 0.5, "l": 7}),
    "beta-likeness": ClassCase({"beta": 1.5}, {"beta": 0.01}, {}),
    "delta-disclosure": ClassCase({"delta": 1.2}, {"delta": 0.01}, {}),
    "p-sensitive-k-anonymity": ClassCase({"p": 2, "k": 4}, {"p": 6, "k": 4}, {"p": 7, "k": 4}),
    "le-diversity": ClassCase({"l": 2, "e": 1}, {"l": 3, "e": 1}, {"l": 4, "e": 1}),
    "m-invariance": ClassCase({"m": 3}, {"m": 6}, {"m": 7}),
}
JUDGED_ALONE = ("semantic-diversity",)
"""Models that are judged on classes, and that methods reach with sets alone."""
CLASS_MODELS = [
    name
    for name, kind in MODELS.items()
    if (kind.judge_classes is not Model.judge_classes or kind is KAnonymity)
    and not kind.of_mechanism
    and name not in JUDGED_ALONE
]
"""All that methods look for; what a mechanism tells is in tests/leaks/test_mechanism.py."""
GENERAL = [name for name, kind in METHODS.items() if issubclass(kind, ClassMethod)]
TRUTH = {"microaggregation": "means-are-true"}
"""How the original is compared with what a method publishes, where cells do not cover values."""
MAKES = {"m-invariance": "m-invariance"}
"""The method of a model that others do not meet."""
KEEP_ALL = ("auto", "local-suppression", "microaggregation", "m-invariance")
"""Methods without a share of records that they may leave out."""


def policy(model: str, parameters: dict[str, Any], method: str | dict[str, Any], **more: Any) -> nr.Policy:
    on = {} if model == "k-anonymity" else {"on": "shade"}
    shade = {"role": "plain"} if model == "k-anonymity" else {"role": "sensitive", "hierarchy": PALETTE}
    require = [{"model": model, **on, **parameters}]
    signs: dict[str, Any] = {"role": "identifier"}
    options = {"name": method} if isinstance(method, str) else method
    if options["name"] == "suppress":
        options = {"nodes": 500} | options
        signs = {"role": "quasi-sensitive", "separator": ";", "knowledge": PAINTS}
        require.append({"model": "qs-diversity", "on": "signs", "c": 1.0, "l": 2})
    if options["name"] == "microaggregation" and model != "k-anonymity":
        require.append({"model": "k-anonymity", "k": 2})
    return nr.Policy(
        mechanism="ignored",
        attributes={
            "who": "identifier",
            "age": "quasi-identifier",
            "town": {"role": "quasi-identifier", "hierarchy": {"prefix": [3, 2]}},
            "note": "plain",
            "shade": shade,
            "signs": signs,
        },
        require=require,
        method=options,
        people={"rows": "independent"},
        **more,
    )


def served() -> list[tuple[str, str]]:
    pairs = []
    for method in GENERAL:
        for model in CLASS_MODELS:
            try:
                policy(model, CASES[model].attainable, method)
            except nr.errors.PolicyError:
                continue
            pairs.append((method, model))
    return pairs


SERVED = served()


def test_every_entry_has_a_case():
    assert CASES.keys() == set(CLASS_MODELS)
    assert {method for method, _ in SERVED} == set(GENERAL)
    assert {model for _, model in SERVED} == set(CLASS_MODELS)


@pytest.mark.parametrize(("method", "model"), SERVED)
def test_a_requirement_that_a_method_serves_ends_in_verdicts_that_hold(method, model, tmp_path):
    rules = policy(model, CASES[model].attainable, method)
    outcome = run(table(), rules, to=tmp_path / "release")
    assert all(verdict.holds is True and verdict.breaches == 0 for verdict in outcome.facts.verdicts)
    opened = nr.open_release(tmp_path / "release")
    assert opened.records == N
    assert [entry.holds for entry in opened.verdicts] == [True] * len(rules.require)
    again = nr.verify(opened, rules if method in ("suppress", "microaggregation") else None, original=table())
    assert all(verdict.holds is True for verdict in again)
    assert {verdict.model for verdict in again} >= {model, TRUTH.get(method, "truth-in-set")}
    stated = sorted(opened.frame()["note"].to_list())
    assert stated == sorted(table()["note"].to_pylist()), "a harmless column passes as it is"
    assert "who" not in opened.columns
    assert ("signs" in opened.columns) == (method == "suppress")


@pytest.mark.parametrize("method", GENERAL)
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_release_survives_the_directory_and_answers(method, form, tmp_path):
    model = "frequency-l-diversity"
    release = nr.anonymize(table(), policy(model, {"l": 2}, method))
    release.save(tmp_path / "release", form)
    opened = nr.open_release(tmp_path / "release")
    assert opened.frame().equals(release.frame())
    truth = table().to_pandas().groupby("shade").size()
    for estimator in ("likelihood", "spread"):
        found = opened.estimate("shade", estimator=estimator)
        assert found.frame["count"].sum() == pytest.approx(N)
        assert found.frame["std_error"].null_count() == len(found.frame)
        for shade, count, low, high in found.frame.select("shade", "count", "low", "high").iter_rows():
            assert low - 1e-6 <= count <= high + 1e-6
            assert low - 1e-9 <= truth.get(shade, 0) <= high + 1e-9
    two = opened.count({"town": ["13021", "13022"], "shade": "amber"})
    pairs = zip(table()["town"].to_pylist(), table()["shade"].to_pylist(), strict=True)
    exact = sum(town in ("13021", "13022") and shade == "amber" for town, shade in pairs)
    assert two.low - 1e-9 <= exact <= two.high + 1e-9
    assert two.std_error is None
    assert "hard bounds" in str(two)


@pytest.mark.parametrize("model", CLASS_MODELS)
def test_a_stricter_requirement_than_the_release_meets_is_seen(model):
    case, method = CASES[model], MAKES.get(model, "mondrian")
    release = nr.anonymize(table(), policy(model, case.attainable, method))
    (verdict,) = nr.verify(release, policy(model, case.stricter, method))
    assert verdict.holds is False
    assert verdict.breaches > 0


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("model", CLASS_MODELS)
def test_a_method_that_decides_wrongly_publishes_nothing(model, streamed, tmp_path, monkeypatch):
    """One class per record. The verification, which shares no code with methods, must stop it."""

    def wrong(self: Any, records: Any, requirements: Any, order: Any, meter: Any) -> Plan:
        own = np.arange(records.n)
        return Plan({name: cover(records.columns[name], records.codes[name], own, records.n) for name in records.quasi})

    method = MAKES.get(model, "mondrian")
    monkeypatch.setattr(METHODS[method], "recode", wrong)
    target = tmp_path / "there" / "release" if streamed else None
    with pytest.raises(nr.errors.RequirementNotMet, match="nothing is published") as caught:
        nr.anonymize(table(), policy(model, CASES[model].attainable, method), to=target)
    assert model in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_method_whose_cells_do_not_cover_the_truth_publishes_nothing(monkeypatch):
    def lying(self: Any, records: Any, requirements: Any, order: Any, meter: Any) -> Plan:
        whole = cover(records.columns["town"], records.codes["town"], np.arange(records.n), records.n)
        return Plan({"town": Recode(whole.nodes, whole.data[::-1])})

    monkeypatch.setattr(METHODS["mondrian"], "recode", lying)
    with pytest.raises(nr.errors.RequirementNotMet, match="do not cover the true values"):
        nr.anonymize(table(), policy("k-anonymity", {"k": 2}, "mondrian"))


@pytest.mark.parametrize(("method", "model"), [pair for pair in SERVED if CASES[pair[1]].beyond])
def test_a_requirement_beyond_reach_says_what_is_reachable(method, model, tmp_path):
    with pytest.raises((nr.errors.PolicyError, nr.errors.RequirementNotMet)) as caught:
        nr.anonymize(table(), policy(model, CASES[model].beyond, method), to=tmp_path / "release")
    assert any(character.isdigit() for character in str(caught.value))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", GENERAL)
def test_records_never_keep_their_order(method):
    """The harmless column numbers the records; published, it must not rise with the original's place."""
    rows = table()
    numbered = rows.set_column(3, "note", pa.array([f"{i:04d}" for i in range(N)]))
    release = nr.anonymize(numbered, policy("frequency-l-diversity", {"l": 2}, method))
    note = release.frame()["note"].to_list()
    assert sorted(note) == [f"{i:04d}" for i in range(N)]
    assert note != sorted(note)


@pytest.mark.parametrize("method", [name for name in GENERAL if name not in KEEP_ALL])
def test_suppression_drops_no_more_than_it_may_and_tells(method, tmp_path):
    rules = policy("frequency-l-diversity", {"l": 3}, {"name": method, "suppression": 0.05})
    outcome = run(table(), rules, to=tmp_path / "release")
    assert 0 <= outcome.facts.suppressed <= 0.05 * N
    opened = nr.open_release(tmp_path / "release")
    assert opened.records + opened.manifest.suppressed == N
    assert opened.manifest.suppressed == outcome.facts.suppressed
    again = nr.verify(opened, rules, original=table())
    assert not again.failed
    # what the missing had can be subtracted from exact cells and groups, and from nothing else
    secrets = [opened.column(name) for model in rules.require for name in model.on]
    told = all(secret.is_exact or secret.table is not None for secret in secrets)
    undecided = [verdict.model for verdict in again.undecided]
    assert undecided == ([] if told or not opened.manifest.suppressed else ["left-out"])


@pytest.mark.parametrize("method", ["local-suppression", "microaggregation", "m-invariance"])
def test_a_method_that_keeps_every_record_refuses_suppression(method):
    with pytest.raises(nr.errors.PolicyError, match=r"suppresses (no|cells, not) records"):
        policy("frequency-l-diversity", {"l": 3}, {"name": method, "suppression": 0.05})


def test_an_original_that_is_another_table_is_seen(tmp_path: Path):
    release = nr.anonymize(table(), policy("k-anonymity", {"k": 4}, "mondrian"))
    rng = np.random.default_rng(0)
    other = table().set_column(1, "age", pa.array(rng.integers(20, 30, N).tolist()))
    verdicts = nr.verify(release, original=other)
    assert any(v.model == "truth-in-set" and v.holds is False for v in verdicts)
