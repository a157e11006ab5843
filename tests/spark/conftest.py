"""One small Spark session for all tests of a process, and the table and policies that engines are compared on."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.s3 import KEYS

PATIENT = {
    "spark.python.authenticate.socketTimeout": "600s",
    "spark.network.timeout": "800s",
    "spark.executor.heartbeatInterval": "60s",
}
"""Java gives its Python processes 15 seconds to connect, and a silent executor two minutes: too little on a machine
that does other things as well. What is dead is known by its closed connection all the same."""
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""A Java process of a test ends before code that is optimised further, or collected by several threads, pays."""
SMALL = {
    **PATIENT,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.default.parallelism": "3",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "10ms",
}


def demand_java() -> None:
    """Skip with the reason where Spark cannot run."""
    pytest.importorskip("pyspark", reason="Spark needs the extra spark")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Spark needs Java 17 or newer")


@pytest.fixture(scope="session")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session's event log is written."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def session(events: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two threads, four attempts a task."""
    demand_java()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.update(KEYS)  # of the store of a test, for Python processes that Java starts
    more = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.local.dir": str(tmp_path_factory.mktemp("local")),
        # the base of a test writes its log where it is told, or else into the checkout
        "spark.driver.extraJavaOptions": f"{BRIEF} -Dderby.system.home={tmp_path_factory.mktemp('derby')}",
    }
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in (SMALL | more).items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # PySpark leaves the pipe to Java open
        running = builder.getOrCreate()
    running.sparkContext.setLogLevel("OFF")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def engine(session: Any) -> Any:
    from noren.engines.spark import SparkEngine

    return SparkEngine(session)
