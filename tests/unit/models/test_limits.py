"""How far every parameter of every model may go: the last value that is taken and the first that is refused."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from pydantic import ValidationError

from noren.models import MODELS

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
