"""What every privacy model and every method must do, whatever it is. An entry without a case here fails."""

from __future__ import annotations

import json
from dataclasses import dataclass
from dataclasses import field as member
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pytest

import noren as nr
from noren.engines import Draw, Plan
from noren.methods import METHODS
from noren.methods.base import DrawingMethod
from noren.models import MODELS, Model
from noren.workflow.anonymize import run

N = 400
SHADES = ("amber", "beige", "coral", "denim", "ebony", "fawn")


def table(n: int = N) -> pa.Table:
    """People with a name, a number published exactly, and a shade that is a secret."""
    rng = np.random.default_rng(11)
    shade = rng.choice(SHADES, n, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05])
    return pa.table(
        {"who": [f"p{i}" for i in range(n)], "number": rng.integers(0, 5, n).tolist(), "shade": shade.tolist()}
    )


KNOWN = dict(zip(SHADES, (0.3, 0.25, 0.2, 0.1, 0.1, 0.05), strict=True))
"""Public shares: those by which the table's shades are drawn, not those that it has."""
RAINBOW = {"values": SHADES, "distance": "ordinal"}
PALETTE = {"hierarchy": {"tree": {"warm": ["amber", "coral"], "pale": ["beige", "fawn"], "dark": ["denim", "ebony"]}}}


@dataclass(frozen=True)
class ModelCase:
    """Parameters that six values can meet, and what lies on either side of them."""

    attainable: dict[str, Any]
    beyond: dict[str, Any]
    """Parameters that no method can reach on this table, or that contradict themselves."""
    too_weak: dict[str, Any]
    """A decoy design that breaks the attainable requirement."""
    column: dict[str, Any] = member(default_factory=dict)
    """What the model must know about the column besides its role."""


CLASS_ONLY: dict[str, dict[str, Any]] = {
    "k-anonymity": {"k": 3},
    "recursive-cl-diversity": {"c": 2.0, "l": 3},
    "alpha-k-anonymity": {"alpha": 0.5, "k": 3},
    "tau-l-diversity": {"tau": 0.5, "l": 3, "weights": None},
    "beta-likeness": {"beta": 1.5, "form": "basic"},
    "delta-disclosure": {"delta": 2.0},
    "p-sensitive-k-anonymity": {"p": 2, "k": 3},
    "mechanism": {"most": 0.5},
    "m-invariance": {"m": 3},
}
"""Models of classes, which decoys cannot meet: see test_general.py."""
TERMS_ONLY: dict[str, dict[str, Any]] = {
    "qs-diversity": {"c": 1.0, "l": 3, "unlinked": "prior"},
    "qs-closeness": {"t": 0.4, "distance": "emd"},
}
"""Models of sets of terms, which no other column has: see test_suppress.py and test_term_models.py."""
RELEASE_ONLY: dict[str, dict[str, Any]] = {"belief": {"most": 0.9, "given": "published", "share": 0.01}}
"""Models of the whole release, which no method looks for: see tests/leaks/test_several_columns.py."""
MODEL_CASES = {
    "distinct-l-diversity": ModelCase({"l": 3}, {"l": 7}, {"eta": 2}),
    "frequency-l-diversity": ModelCase({"l": 3}, {"l": 7}, {"eta": 2}),
    "entropy-l-diversity": ModelCase({"l": 2.5}, {"l": 6.5}, {"eta": 2}),
    "t-closeness": ModelCase({"t": 0.2}, {"t": 0.0}, {"eta": 2, "p": 0.9}),
    "local-privacy": ModelCase({"epsilon": 1.0}, {"epsilon": 0.0}, {"eta": 2, "p": 0.9}),
    "informed-belief": ModelCase(
        {"most": 0.5, "prior": KNOWN}, {"most": 0.2, "prior": KNOWN}, {"eta": 2}, {"values": SHADES}
    ),
    "expanded-k": ModelCase({"k": 3}, {"k": 7}, {"eta": 2}),
    "semantic-diversity": ModelCase({"l": 2, "d": 2.0}, {"l": 3, "d": 3.0}, {"eta": 2}, RAINBOW),
    "le-diversity": ModelCase({"l": 2, "e": 1}, {"l": 4, "e": 1}, {"eta": 2}, PALETTE),
}
METHOD_CASES: dict[str, dict[str, Any]] = {
    "decoys": {"parameters": {"shade": {"eta": 3, "p": 1.0}}},
    "sweep": {"chunk": 8, "suppression": 0.02},
    "mondrian": {"strict": False},
    "incognito": {"suppression": 0.05},
    "hilbert": {"l": 3},
    "three-phase": {"refine": False},
    "anatomy": {"suppression": 0.1},
    "rating": {"suppression": 0.1},
    "local-suppression": {"importance": {"number": 2.0}},
    "microaggregation": {"each": True, "block": 500},
    "pram": {"keep": {"shade": 0.6}, "prior": "data", "grid": 20},
    "auto": {"objective": "ncp", "among": ["mondrian"]},
    "m-invariance": {"counterfeits": 0.2},
    "suppress": {"k": 4, "generalise": {"name": "mondrian", "strict": False}, "balance": {"terms": 0.1}, "nodes": 9},
}
SET_MODELS = [name for name, kind in MODELS.items() if kind.judge_sets is not Model.judge_sets]
SET_ONLY = [name for name in SET_MODELS if MODELS[name].judge_classes is Model.judge_classes]
DESIGN_METHODS = [name for name, kind in METHODS.items() if issubclass(kind, DrawingMethod)]
SERVED: dict[str, tuple[str, dict[str, Any]]] = {
    "decoys": ("frequency-l-diversity", {"l": 3}),
    "pram": ("t-closeness", {"t": 0.4}),
}
"""A requirement that each method of designs can serve."""
ATTAINABLE = {name: case.attainable for name, case in MODEL_CASES.items()} | CLASS_ONLY | TERMS_ONLY | RELEASE_ONLY


def policy(model: str, parameters: dict[str, Any], method: dict[str, Any] | None = None, **more: Any) -> nr.Policy:
    return nr.Policy(
        attributes={
            "who": "identifier",
            "number": "plain",
            "shade": {"role": "sensitive", **MODEL_CASES[model].column},
        },
        require=[{"model": model, "on": "shade", **parameters}],
        method={"name": "decoys"} | (method or {}),
        **more,
    )


def test_every_entry_has_a_case():
    assert MODEL_CASES.keys() == set(SET_MODELS)
    assert ATTAINABLE.keys() == MODELS.keys()
    assert METHOD_CASES.keys() == METHODS.keys()
    assert SERVED.keys() == set(DESIGN_METHODS)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_registered_under_its_own_name_and_survives_json(name):
    made = MODELS[name].model_validate({"model": name, "on": "shade", **ATTAINABLE[name]})
    assert made.model == name
    assert MODELS[name].model_validate(json.loads(made.model_dump_json())) == made
    assert MODELS[name].model_validate(made.model_dump()) == made
    assert made.parameters().keys() == MODELS[name].model_fields.keys() - {"model", "on"}
    with pytest.raises(ValueError, match="frozen"):
        made.on = ("number",)
    with pytest.raises(ValueError, match="Extra inputs"):
        MODELS[name].model_validate({"on": "shade", "surprise": 1, **ATTAINABLE[name]})


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_registered_under_its_own_name_and_survives_json(name):
    made = METHODS[name].model_validate({"name": name, **METHOD_CASES[name]})
    assert made.name == name
    assert METHODS[name].model_validate(json.loads(made.model_dump_json())) == made
    assert METHODS[name].model_validate(made.model_dump()) == made
    with pytest.raises(ValueError, match="frozen"):
        made.name = "other"
    with pytest.raises(ValueError, match="Extra inputs"):
        METHODS[name].model_validate({"surprise": 1})


@pytest.mark.parametrize(
    "entry",
    [
        *MODELS.values(),
        *METHODS.values(),
        nr.methods.DecoyParameters,
        nr.designs.DecoyDesign,
        nr.designs.InformedDesign,
        nr.designs.PramDesign,
        nr.designs.SemanticDesign,
        nr.Column,
    ],
)
def test_every_parameter_is_described(entry):
    """The tag that names an entry (`model`, `name`) describes itself; everything a person can set has a sentence."""
    for name, field in entry.model_fields.items():
        if name not in ("model", "name"):
            assert field.description, name
            assert field.description.endswith(".")


@pytest.mark.parametrize("name", SET_MODELS)
def test_an_attainable_requirement_ends_in_a_verdict_that_holds(name, tmp_path):
    case = MODEL_CASES[name]
    rules = policy(name, case.attainable)
    outcome = run(table(), rules, to=tmp_path / "release")
    parameter = next(iter(case.attainable.values()))
    (verdict,) = outcome.facts.verdicts
    assert (verdict.model, verdict.column, verdict.required) == (name, "shade", parameter)
    assert verdict.holds is True
    assert (verdict.records, verdict.breaches) == (N, 0)
    opened = nr.open_release(tmp_path / "release")
    assert [entry.holds for entry in opened.verdicts] == [True]
    again = nr.verify(opened, original=table())
    assert [v.model for v in again] == [name, *(["truth-in-set"] if opened.designs["shade"].p == 1 else [])]
    assert all(v.holds is True for v in again)
    assert all(v.holds is not False for v in nr.verify(opened)), "a recipient may be unsure, never wrongly sure"


@pytest.mark.parametrize("name", SET_MODELS)
def test_a_stricter_requirement_than_the_release_meets_is_seen(name):
    """Made for the attainable parameters, checked against ones that the cells break."""
    case = MODEL_CASES[name]
    parameter, value = next(iter(case.attainable.items()))
    release = nr.anonymize(table(), policy(name, case.attainable))
    stricter = case.attainable | {parameter: value + 1 if MODELS[name].higher_is_safer else value / 4}
    (verdict, *_) = nr.verify(release, policy(name, stricter), original=table())
    assert verdict.holds is False
    assert verdict.breaches > 0


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", SET_MODELS)
def test_a_requirement_that_is_not_met_publishes_nothing(name, streamed, tmp_path, monkeypatch):
    """A method that decides wrongly. Verification, which shares no code with it, must stop the release."""
    case = MODEL_CASES[name]
    wrong = Plan({"shade": Draw(nr.designs.DecoyDesign(d=len(SHADES), **case.too_weak))})
    monkeypatch.setattr(nr.methods.Decoys, "plan", lambda *_, **options: wrong)
    with pytest.raises(nr.errors.RequirementNotMet, match=f"{name} on 'shade'.* records fall short") as caught:
        nr.anonymize(table(), policy(name, case.attainable), to=tmp_path / "there" / "release" if streamed else None)
    assert "nothing is published" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", SET_MODELS)
def test_a_requirement_beyond_reach_is_refused_with_a_remedy(name, tmp_path):
    with pytest.raises(nr.errors.PolicyError) as caught:
        nr.anonymize(table(), policy(name, MODEL_CASES[name].beyond), to=tmp_path / "release")
    assert all(problem.hint for problem in caught.value.problems)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", SET_ONLY)
def test_a_model_refuses_a_column_that_is_published_exactly(name):
    release = nr.anonymize(table(), policy("frequency-l-diversity", {"l": 2}))
    exact = nr.Policy(
        attributes={"number": {"role": "sensitive", **MODEL_CASES[name].column, "values": None}},
        require=[{"model": name, "on": "number", **MODEL_CASES[name].attainable}],
    )
    with pytest.raises(nr.NorenError, match="makes no statement about column 'number'"):
        nr.verify(release, exact)


@pytest.mark.parametrize("name", SET_MODELS)
def test_a_model_on_a_column_that_the_release_does_not_have_is_refused(name):
    release = nr.anonymize(table(), policy("frequency-l-diversity", {"l": 2}))
    other = nr.Policy(
        attributes={"hue": {"role": "sensitive", **MODEL_CASES[name].column}},
        require=[{"model": name, "on": "hue", **MODEL_CASES[name].attainable}],
    )
    with pytest.raises(nr.errors.ReleaseError, match="'hue'"):
        nr.verify(release, other)


@pytest.mark.parametrize("method", DESIGN_METHODS)
@pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "polars", "pandas"])
def test_the_input_is_left_as_it_was(method, form, tmp_path):
    import polars as pl
    import pyarrow.parquet as pq

    original = table()
    rules = policy(*SERVED[method], {"name": method})
    if form in ("csv", "parquet"):
        path = tmp_path / f"people.{form}"
        (pv.write_csv if form == "csv" else pq.write_table)(original, path)
        before = path.read_bytes(), path.stat().st_mtime_ns
        nr.anonymize(path, rules, to=tmp_path / "release")
        assert (path.read_bytes(), path.stat().st_mtime_ns) == before
        assert sorted(p.name for p in tmp_path.iterdir()) == [path.name, "release"]
        return
    frame = {"arrow": table, "polars": lambda: pl.from_arrow(table()), "pandas": lambda: table().to_pandas()}
    given = frame[form]()
    nr.anonymize(given, rules)
    assert given.equals(frame[form]())


@pytest.mark.parametrize("method", DESIGN_METHODS)
def test_a_method_publishes_every_record_once_and_changes_no_exact_column(method, tmp_path):
    original = table()
    release = nr.anonymize(original, policy(*SERVED[method], {"name": method}), to=tmp_path / "r")
    assert release.records == N
    assert sorted(release.frame()["number"].to_list()) == sorted(original["number"].to_pylist())


def test_a_release_that_claims_an_unknown_model_is_refused(tmp_path: Path):
    """As a newer version might write it."""
    release = nr.anonymize(table(), policy("frequency-l-diversity", {"l": 2}))
    claims = ({"model": "model-of-tomorrow", "on": ["shade"]},)
    newer = nr.Release(release.manifest.model_copy(update={"requirements": claims}), release.store)
    with pytest.raises(nr.errors.ReleaseError, match="model-of-tomorrow"):
        nr.verify(newer)
