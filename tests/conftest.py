"""How the tests run: what Hypothesis tries, how workers share a machine, what a run leaves out or demands.

On a desk Hypothesis tries other examples every time, in continuous integration the same ones. Strategies that discard
many candidates are meant to; the health check for that would only fail by chance.

`make test` is for every change: of each property a third of its examples, and nothing marked `slow`. `.ci/run` and
`make test EVERYTHING=1` run all. What is marked here also holds for papers/tests, when a run has both.
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

EVERYTHING = bool(os.environ.get("NOREN_EVERYTHING"))
"""All examples and the slow tests as well."""
LEFT_OUT = pytest.mark.skip(reason="slow: runs in .ci/run and by make test EVERYTHING=1")
SHARE, FEWEST = 3, 10
"""Of the examples that a property asks for, one in so many is tried at every change, but no fewer than ten."""


def at_every_change(asked: int) -> int:
    """How many examples are tried where a property asks for so many."""
    return asked if EVERYTHING else max(asked // SHARE, min(asked, FEWEST))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: set[Any] = set()
    for item in items:
        if not EVERYTHING and item.get_closest_marker("slow"):
            item.add_marker(LEFT_OUT)
        test = getattr(item, "obj", None)
        test = getattr(test, "__func__", test)
        if getattr(test, "is_hypothesis_test", False) and test not in seen:
            seen.add(test)  # of several parameters
            asked = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = settings(asked, max_examples=at_every_change(asked.max_examples))


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
