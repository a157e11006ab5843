"""The largest numbers that a manifest may name: whole numbers beyond them are none as floating point."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from noren.release.manifest import Manifest


@pytest.mark.parametrize("field", ["records", "suppressed"])
@pytest.mark.parametrize(("number", "refused"), [(0, False), (2**53, False), (2**53 + 1, True), (-1, True)])
def test_numbers_of_people(field, number, refused):
    with pytest.raises(ValidationError) as caught:
        Manifest.model_validate({field: number})
    assert (field in {error["loc"][0] for error in caught.value.errors()}) == refused
