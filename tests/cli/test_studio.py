"""The command studio where NiceGUI is missing, and what it refuses."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from noren.studio import places


def test_without_nicegui_the_answer_is_how_to_install_it(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "nicegui" else real(name, *rest)
    )
    result = run("studio", code=2)
    assert "pip install 'noren[studio]'" in result.output


def test_an_address_is_shown_without_its_password() -> None:
    assert "secret" not in places.shown("postgresql://me:secret@localhost/base?table=people")
    assert places.shown("/data/patients.csv") == "patients.csv"
