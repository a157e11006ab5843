"""A master and two workers on this machine, each at an address of its own, with everything between them encrypted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.spark.conftest import BRIEF, PATIENT, demand_java

pytestmark = pytest.mark.slow  # at every change tests/contracts/test_engines.py compares parts in memory

ROOT = Path(__file__).parents[2]
SEALED = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "only for this test",
    "spark.network.crypto.enabled": "true",
}


def spark_class() -> str:
    import pyspark

    return str(Path(pyspark.__file__).parent / "bin" / "spark-class")


@contextmanager
def daemon(folder: Path, name: str, *words: str) -> Iterator[IO[str]]:
    """A process of the cluster, ended at the end; gives what it says."""
    log = folder / f"{name}.log"
    environment = os.environ | {
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": BRIEF,
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
    }
    with (
        log.open("w") as told,
        subprocess.Popen([spark_class(), *words], stdout=told, stderr=told, env=environment) as process,
        log.open() as said,
    ):
        try:
            yield said
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def awaited(said: IO[str], pattern: str, seconds: int = 600) -> str:
    """What a process says, once it says it."""
    import time

    text, end = "", time.monotonic() + seconds
    while time.monotonic() < end:
        text += said.read()
        if found := re.search(pattern, text):
            return found[1]
        time.sleep(0.1)
    pytest.fail(f"the process never said {pattern}: {text[-2000:]}")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of two workers."""
    demand_java()
    folder = tmp_path_factory.mktemp("cluster")
    settings = folder / "daemons.conf"
    settings.write_text("".join(f"{name} {value}\n" for name, value in SEALED.items()))
    with ExitStack() as stack:
        ports = ("--port", "0", "--webui-port", "0", "--properties-file", str(settings))
        said = stack.enter_context(
            daemon(folder, "master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", *ports)
        )
        address = awaited(said, r"Starting Spark master at (spark://\S+)")
        for number in (1, 2):
            said = stack.enter_context(
                daemon(folder, f"worker-{number}", "org.apache.spark.deploy.worker.Worker", "--host",
                       f"127.0.0.{number}", "--cores", "1", "--memory", "700m", "--work-dir",
                       str(folder / f"work-{number}"), *ports, address)
            )  # fmt: skip
            awaited(said, r"(Successfully registered with master)")
        yield address


def test_one_release_comes_out_whatever_happens_to_machines_and_tasks(master: str, tmp_path: Path) -> None:
    """A task runs twice because it is slow, and a machine is killed that holds what was drawn: the same cells as on one
    machine, verified on the cluster."""
    conf = {
        **SEALED,
        **PATIENT,
        "spark.master": master,
        "spark.io.encryption.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.cores.max": "2",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": BRIEF,
        "spark.executor.extraJavaOptions": BRIEF,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.default.parallelism": "3",
        "spark.sql.shuffle.partitions": "3",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.3",
        "spark.speculation.minTaskRuntime": "100ms",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.local.dir": str(tmp_path / "local"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.on_cluster", str(tmp_path), json.dumps(conf)],
        capture_output=True, text=True, timeout=2400, cwd=ROOT, check=False,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    said = re.search(r"^FOUND (.*)$", done.stdout, re.MULTILINE)
    assert said is not None, done.stderr[-3000:]
    found = json.loads(said[1])
    assert found["same"] == [True, True], "cell for cell what one machine publishes under the same secret"
    assert found["verified"] == [True, True]
    assert found["mixed"] is True
    assert found["rows"] == 383
    for happened in ("stalled", "overtaken", "died"):
        assert (tmp_path / happened).exists(), happened
