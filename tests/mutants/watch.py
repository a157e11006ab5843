"""A plugin of pytest: which tests ran which lines, and only these tests in this order. `run.py` starts it.

`NOREN_WATCH` names a file for what was reached, `NOREN_ONLY` one with the tests to run, `NOREN_FAILED` one for the
first that failed.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SHARED = "|setup"
"""Marks what ran while a test was set up: fixtures may be shared, so it is told of the test's whole file."""


class Watcher:
    """Lines by test, of the files of some folders."""

    def __init__(self, target: Path, folders: list[str]) -> None:
        import coverage

        self.target = target
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.coverage = coverage.Coverage(data_file=None, config_file=False, include=[f"{one}/*" for one in folders])
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid + SHARED)
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        yield

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        with warnings.catch_warnings(action="ignore"):  # tests that reach none of the folders are no fault
            data = self.coverage.get_data()
        home = Path.cwd()
        lines = {
            str(Path(file).relative_to(home)): {str(n): who for n, who in data.contexts_by_lineno(file).items()}
            for file in data.measured_files()
        }
        passed = {test: spent for test, spent in self.seconds.items() if test not in self.failed}
        self.target.write_text(json.dumps({"seconds": passed, "lines": lines}))


class Chooser:
    """Some tests alone, in an order, and the name of the first that fails."""

    def __init__(self, wanted: list[str], told: Path | None) -> None:
        self.place = {test: i for i, test in enumerate(wanted)}
        self.told = told

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((one for one in items if one.nodeid in self.place), key=lambda one: self.place[one.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tell(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._tell(report)

    def _tell(self, report: Any) -> None:
        if report.failed and self.told is not None and not self.told.exists():
            self.told.write_text(report.nodeid)


def pytest_configure(config: pytest.Config) -> None:
    if "NOREN_WATCH" in os.environ:
        folders = os.environ["NOREN_WATCHED"].split(os.pathsep)
        config.pluginmanager.register(Watcher(Path(os.environ["NOREN_WATCH"]), folders))
    if "NOREN_ONLY" in os.environ:
        wanted = json.loads(Path(os.environ["NOREN_ONLY"]).read_text())
        told = os.environ.get("NOREN_FAILED")
        config.pluginmanager.register(Chooser(wanted, Path(told) if told else None))
