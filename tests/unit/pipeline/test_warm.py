"""What is compiled ahead: what every method's releases, judgements and attacks need."""

from __future__ import annotations

import pytest

from noren.methods import METHODS
from noren.pipeline.warm import _policies, _read, _works

ASKED = {
    "decoys": [{"frequency-l-diversity"}, {"t-closeness"}],
    "pram": [{"t-closeness"}],
    "anatomy": [{"frequency-l-diversity"}],
    "rating": [{"frequency-l-diversity"}],
    "suppress": [{"qs-diversity", "k-anonymity"}, {"qs-closeness", "k-anonymity"}],
    "sweep": [{"k-anonymity", "frequency-l-diversity"}, {"frequency-l-diversity"}],
    "m-invariance": [{"k-anonymity", "frequency-l-diversity"}, {"frequency-l-diversity"}],
    "microaggregation": [{"k-anonymity", "frequency-l-diversity"}],
}
CLASSES = [{"k-anonymity", "frequency-l-diversity"}, {"t-closeness"}, {"frequency-l-diversity"}]


@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_requirement_is_asked_of_a_method(method: str) -> None:
    found = [{model.model for model in policy.require} for policy in _policies(method, 20)]
    assert found == ASKED.get(method, CLASSES)


def test_tables_and_attacks_are_made_of_the_first_release_of_a_size() -> None:
    reading, *works = _works("mondrian")
    assert reading is _read
    asked = [work.keywords["asked"] for work in works]  # type: ignore[attr-defined]
    assert asked == [True, False, False] * 2
