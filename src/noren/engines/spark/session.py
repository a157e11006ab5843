"""A Spark session, and what it must be like before a key travels through it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from noren.errors import OutOfReach, QueryError, SecretError

INSTALL = 'Install it with: pip install "noren[spark]"'
OURS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
}
"""Settings of every job: partitions stay as they are planned, and batches are as large as on one machine."""
DRIVER = "spark.noren.driver.memory"
"""The setting that says how much of this machine's memory what must be decided in one place may take."""
TUPLE_COPIES = 4
"""How many times the codes and the count of a tuple, eight bytes each, are held where tuples decide."""
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
WIRE = (("spark.authenticate", "spark.network.crypto.enabled"), ("spark.ssl.rpc.enabled",))
"""Settings of which one group must be on, so that what travels between machines is encrypted."""


def started(master: str | None = None, conf: Mapping[str, str] | None = None) -> Any:
    """The session that is running, or a new one. Workers on this machine run the Python that runs here."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise QueryError("the engine spark needs PySpark 4.", hint=INSTALL) from None
    running = SparkSession.getActiveSession()
    if running is not None and master is None and not conf:
        return running
    if running is None and shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise QueryError("Spark needs Java 17 or newer, and there is none here.", hint="Install it, or set JAVA_HOME.")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("noren").config("spark.ui.showConsoleProgress", "false")
    builder = builder if master is None else builder.master(master)
    for name, value in (conf or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@contextmanager
def settings(session: Any) -> Iterator[None]:
    """The session with our settings for the time of a job; then as it was."""
    before = {name: session.conf.get(name, None) for name in OURS}
    try:
        for name, value in OURS.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)


def setting(session: Any, name: str) -> str | None:
    """A setting of the session or of its context."""
    found = session.conf.get(name, None)
    return found if found is not None else session.sparkContext.getConf().get(name)


def demand_sealed(session: Any) -> None:
    """Refuse to send a key where somebody could read it on its way: on the wire, or in what is spilled to disk."""
    master = session.sparkContext.master
    if re.fullmatch(r"local(\[[^\]]*\])?", master):
        return
    lacking = [] if _on(session, "spark.io.encryption.enabled") else ["spark.io.encryption.enabled"]
    if not any(all(_on(session, name) for name in group) for group in WIRE):
        lacking += [name for name in WIRE[0] if not _on(session, name)]
    if lacking:
        wanted = " ".join(f"--conf {name}=true" for name in lacking)
        raise SecretError(
            f"keys would travel unencrypted to {master.split(':')[0]}, so nothing is drawn there.",
            hint=f"Start the session with {wanted} (or, for the wire, spark.ssl.rpc.enabled).",
        )


def _on(session: Any, name: str) -> bool:
    return (session.sparkContext.getConf().get(name) or "false").lower() == "true"


def room(session: Any) -> int:
    """How many bytes of this machine's memory may be taken: by the setting, else half of what it has."""
    said = setting(session, DRIVER)
    if said is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", said.strip().lower())
    if found is None:
        raise QueryError(f"{DRIVER}={said} is no size.", hint="For example 2g.")
    return int(found[1]) * UNITS[found[2]]


def demand_room(
    session: Any, needed: int, what: str, instead: str = "choose a method that decides by counts (decoys)"
) -> None:
    """Refuse what does not fit, with the numbers."""
    there = room(session)
    if needed > there:
        raise OutOfReach(
            f"{what} needs {needed:,} bytes on the driver, and it may take {there:,}.",
            hint=f"Raise {DRIVER} where the machine has more, or {instead}.",
        )
