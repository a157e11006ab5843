"""What several test files share and is costly to make."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def report_worlds(tmp_path_factory):
    """Three releases of one small table, with their policies and the original. Read, never written."""
    from tests.unit.report.world import make_worlds

    return make_worlds(tmp_path_factory.mktemp("worlds"))


@pytest.fixture(scope="session")
def report_pages(report_worlds):
    """Every kind of report about them."""
    from tests.unit.report.world import make_pages

    return make_pages(report_worlds)
