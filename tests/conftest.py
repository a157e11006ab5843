"""How the tests run: what Hypothesis tries, how workers share a machine, what a run demands.

On a desk Hypothesis tries other examples every time, in continuous integration the same ones. Strategies that discard
many candidates are meant to; the health check for that would only fail by chance.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "noren",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
settings.load_profile("noren")

DEMAND = bool(os.environ.get("NOREN_DEMAND"))
"""Continuous integration: a test that cannot run here is a failure. `make peers` has its own needs and is not meant."""


def demanded(report: Any) -> Any:
    """The report of a skipped test or file as that of a failed one."""
    if DEMAND and report.skipped and not hasattr(report, "wasxfail") and not report.nodeid.startswith("tests/peers/"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"NOREN_DEMAND is set, and this was not run. {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return demanded((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return demanded((yield))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop():
    """Before 3.12 two threads that start at once cannot both be traced: one dies of it, and what waits for it hangs.

    So coverage follows the main thread alone there. From 3.12 on the interpreter itself tells which lines ran.
    """
    if sys.version_info < (3, 12):
        threading.settrace(None)  # type: ignore[arg-type]
