"""Forms follow the fields that models and methods declare, whichever there are."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from noren.methods import METHODS
from noren.models import MODELS
from noren_studio.forms import fields_of, range_of, slider_span
from noren_studio.pages.requirements import FIRST


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_form_and_begins_valid(name: str) -> None:
    kind = MODELS[name]
    required = {n for n, f in kind.model_fields.items() if f.is_required() and n not in ("model", "on")}
    assert required <= fields_of(kind, ("model", "on")).keys()
    made = kind(on=("secret",), **FIRST[name])
    for field, given in FIRST[name].items():
        assert getattr(made, field) == given
    assert made.promise("secret", True).says


@pytest.mark.parametrize("name", MODELS)
def test_a_slider_offers_nothing_that_the_model_refuses(name: str) -> None:
    kind = MODELS[name]
    for field, info in fields_of(kind, ("model", "on")).items():
        found = range_of(info)
        if found.kind not in ("whole", "number"):
            continue
        low, high, step = slider_span(field, found)
        assert low < high
        assert step > 0
        for end in (low, high):
            value = int(end) if found.kind == "whole" else end
            refused = []
            try:
                kind(**{"on": ("secret",), **FIRST[name], field: value})
            except ValidationError as error:  # of several fields together, the page says
                refused = [one["loc"] for one in error.errors()]
            assert (field,) not in refused


def test_ranges_are_those_of_the_fields() -> None:
    k = range_of(MODELS["k-anonymity"].model_fields["k"])
    assert (k.kind, k.low, k.high) == ("whole", 2, None)
    t = range_of(MODELS["t-closeness"].model_fields["t"])
    assert (t.kind, t.low, t.high, t.open_low, t.open_high) == ("number", 0, 1, True, True)
    assert t.words() == "More than 0. Less than 1."
    assert range_of(MODELS["t-closeness"].model_fields["distance"]).choices == ("equal", "ordered", "tree")
    assert range_of(METHODS["mondrian"].model_fields["strict"]).kind == "switch"
    assert range_of(METHODS["mondrian"].model_fields["weights"]).kind == "other"
