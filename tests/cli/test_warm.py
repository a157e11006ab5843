"""Compiling ahead, as typed."""

from __future__ import annotations

from tests.cli.conftest import strict


def test_a_method_is_compiled_ahead_and_then_there(run, tmp_path, monkeypatch):
    first = strict(run("warm", "anatomy", "--workers", 1, "--json").output)
    assert first.keys() == {"kernels", "seconds", "folder"}
    again = run("warm", "anatomy", "--workers", 1).output
    assert again.startswith("0 kernels compiled in ")


def test_a_method_that_does_not_exist(run):
    assert "there is no method 'mondrain'" in run("warm", "mondrain", code=2).output
