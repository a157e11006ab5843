"""Ranges of parameters, and what is measured and shown where nothing else is asked for."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

import noren as nr
from noren.designs.pram import PramDesign
from noren.models import MODELS
from noren.release.manifest import MOST_RECORDS, Manifest, UsedMethod
from noren.statements.mean import MeanStatement
from noren.workflow.foreign import verify_table

PEOPLE = pl.DataFrame({"town": [f"t{i % 3}" for i in range(60)], "ill": [f"i{i % 12}" for i in range(60)]})
RULES = nr.Policy(
    attributes={"town": "quasi-identifier", "ill": "sensitive"},
    require=[nr.models.KAnonymity(k=30), nr.models.DistinctLDiversity(on="ill", l=2)],
    method="mondrian",
)


@pytest.mark.parametrize("most", [0.0, 1.0, 1.5])
def test_a_belief_is_a_share(most: float) -> None:
    for model in (nr.models.Belief, nr.models.Mechanism):
        with pytest.raises(ValidationError):
            model(on="ill", most=most)
        assert model(on="ill", most=0.5).most == 0.5


@pytest.mark.parametrize("keep", [0.0, 1.0, 1.5])
def test_values_are_kept_with_a_probability(keep: float) -> None:
    with pytest.raises(ValidationError):
        PramDesign(d=3, keep=keep)


def test_classes_that_fall_short_are_named_on_request_alone() -> None:
    """They are told by what their records publish."""
    for _, found in (verify_table(PEOPLE, RULES), verify_table(PEOPLE, RULES, show=0)):
        assert [(one.holds, len(one.shortfalls)) for one in found] == [(False, 0), (True, 0)]
    _, found = verify_table(PEOPLE, RULES, show=2)
    assert len(found[0].shortfalls) == 2


def test_a_whole_table_lacks_nobody_and_is_measured_up_to_eight_values() -> None:
    found = nr.measure(PEOPLE, quasi=["town"], sensitive=["ill"])
    assert found.suppressed == 0
    probes: Any = nr.models.RecursiveCLDiversity.probes(release().column("ill"))
    assert [one.l for one in probes] == [2, 3, 4, 5, 6, 7, 8]


def release() -> nr.Release:
    asked = [nr.models.DistinctLDiversity(on="ill", l=2)]
    return nr.anonymize(PEOPLE, nr.Policy(attributes=RULES.attributes, require=asked, method="mondrian"))


def test_no_release_has_more_records_than_are_counted_exactly() -> None:
    block = release().manifest.model_dump(mode="json")
    Manifest.model_validate(block | {"records": MOST_RECORDS})
    for name in ("records", "suppressed"):
        with pytest.raises(ValidationError):
            Manifest.model_validate(block | {name: 2**53 + 1})


def test_what_a_manifest_says_of_a_method_stays() -> None:
    with pytest.raises(ValidationError):
        UsedMethod(name="mondrian").name = "sweep"  # type: ignore[misc]


@pytest.mark.parametrize("mean", [float("nan"), float("inf")])
def test_a_mean_is_a_number_or_missing(mean: float) -> None:
    from noren.schema.column import Column
    from noren.schema.domain import Domain
    from noren.schema.roles import Role

    column = Column(role=Role.QUASI_IDENTIFIER).over("pay", Domain(("1", "2"), "integer"))
    assert MeanStatement.parse(column, {"means": [1.5, None], "decimals": 1}, None).kinds == 2  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="finite number"):
        MeanStatement.parse(column, {"means": [1.5, mean], "decimals": 1}, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("columns", "named"), [(("a",), "of a and"), (("a", "b"), "of each of a and b and")])
def test_a_promise_about_one_column_names_it_alone(columns: tuple[str, ...], named: str) -> None:
    says = nr.models.TCloseness(on=columns, t=0.1).promise_about(columns, True).says
    assert f"the overall distribution {named} sees" in says


def test_who_is_looked_up_by_no_named_column_is_looked_up_by_all_that_find_people() -> None:
    alike = nr.models.KAnonymity(k=2)
    assert (
        "searches for a person by the columns by which people can be found finds" in alike.promise_about((), False).says
    )
    assert "searches for a person by age finds" in alike.promise_about(("age",), False).says


def test_those_who_are_missing_keep_as_many_values_as_expanded_rows_ask_for() -> None:
    assert nr.models.ExpandedK(on="ill", k=2).judges_left_out


# ------------------------------------------------------------------ how far they go


JUST = 1e-9
LIMITS: dict[tuple[str, str], tuple[list[Any], list[Any]]] = {
    ("alpha-k-anonymity", "alpha"): ([JUST, 1 - JUST], [0, 1]),
    ("alpha-k-anonymity", "k"): ([1], [0]),
    ("belief", "most"): ([JUST, 1 - JUST], [0, 1]),
    ("belief", "share"): ([0, 1 - JUST], [-JUST, 1]),
    ("beta-likeness", "beta"): ([JUST, 1e9], [0, inf]),
    ("delta-disclosure", "delta"): ([JUST, 1e9], [0, inf]),
    ("distinct-l-diversity", "l"): ([2], [1]),
    ("entropy-l-diversity", "l"): ([1 + JUST], [1]),
    ("expanded-k", "k"): ([2], [1]),
    ("frequency-l-diversity", "l"): ([2], [1]),
    ("informed-belief", "most"): ([JUST, 1 - JUST], [0, 1]),
    ("k-anonymity", "k"): ([2], [1]),
    ("le-diversity", "l"): ([2], [1]),
    ("le-diversity", "e"): ([1], [0]),
    ("le-diversity", "most"): ([JUST, 1], [0, 1 + JUST]),
    ("local-privacy", "epsilon"): ([JUST, 50], [0, 50 + 1e-6]),
    ("m-invariance", "m"): ([2], [1]),
    ("mechanism", "most"): ([JUST, 1 - JUST], [0, 1]),
    ("p-sensitive-k-anonymity", "p"): ([2], [1]),
    ("p-sensitive-k-anonymity", "k"): ([2], [1]),
    ("qs-closeness", "t"): ([JUST, 2], [0, 2 + JUST]),
    ("qs-diversity", "c"): ([JUST, 1e9], [0, inf]),
    ("qs-diversity", "l"): ([2], [1]),
    ("recursive-cl-diversity", "c"): ([JUST, 1e9], [0, inf]),
    ("recursive-cl-diversity", "l"): ([2], [1]),
    ("semantic-diversity", "l"): ([2], [1]),
    ("semantic-diversity", "d"): ([JUST], [0]),
    ("semantic-diversity", "most"): ([JUST, 1], [0, 1 + JUST]),
    ("t-closeness", "t"): ([JUST, 1 - JUST], [0, 1]),
    ("tau-l-diversity", "tau"): ([JUST, 1 - JUST], [0, 1]),
    ("tau-l-diversity", "l"): ([2], [1]),
}


def refused(model: str, field: str, value: Any) -> bool:
    """Whether this field is complained about; what else is missing does not matter here."""
    try:
        MODELS[model].model_validate({"on": "x", field: value})
    except ValidationError as error:
        return any(one["loc"][:1] == (field,) for one in error.errors())
    return False


def test_every_number_has_its_limits_here() -> None:
    numbers = {
        (name, field)
        for name, kind in MODELS.items()
        for field, info in kind.model_fields.items()
        if info.annotation in (int, float, float | None)
    }
    assert numbers == {*LIMITS}


@pytest.mark.parametrize(("model", "field"), LIMITS)
def test_limits(model: str, field: str) -> None:
    taken, beyond = LIMITS[model, field]
    assert not any(refused(model, field, value) for value in taken)
    assert all(refused(model, field, value) for value in [*beyond, nan])
