"""The server of one studio: on the loopback interface, without cells in the log, removing all files at the end."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noren.errors import NorenError
from noren_studio import texts
from noren_studio.gate import LOOPBACK, Gate
from noren_studio.jobs import SPARE, place_of
from noren_studio.session import Sessions

if TYPE_CHECKING:
    from fastapi import FastAPI

LOGGERS = ("nicegui", "uvicorn.error", "uvicorn.access", "asyncio", "engineio", "socketio", "fastapi")


class Discreet(logging.Formatter):
    """Formats log lines by kind and place only, because messages may quote a cell."""

    def format(self, record: logging.LogRecord) -> str:
        what = record.levelname.lower()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            return f"noren studio: {what}: {type(error).__name__} at {place_of(error)}"
        return f"noren studio: {what} in {record.name} ({record.module}:{record.lineno})"


def quiet_logs() -> None:
    """Install this format for all loggers of the server."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Discreet())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.CRITICAL + 1 if name == "uvicorn.access" else logging.WARNING)


def listening(port: int | None) -> socket.socket:
    """Open a socket on the loopback interface: at this port, or at a free one."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK[0], port or 0))
    except OSError as error:
        found.close()
        raise NorenError(texts.port_refused(port, error.strerror), hint=texts.OTHER_PORT) from None
    found.listen(128)
    return found


def serve(
    place: str = "", port: int | None = None, browser: bool = True, announce: Callable[[str], None] = print
) -> None:
    """Run a studio until it is interrupted, announcing every one-time address."""
    sessions = Sessions(place)
    tempfile.tempdir = str(sessions.folder)  # what uploads are spooled to
    os.environ["NICEGUI_STORAGE_PATH"] = str(sessions.folder / "storage")
    before = signal.signal(signal.SIGTERM, _ended)  # uvicorn raises it again when it has shut down
    try:
        with listening(port) as entry:
            _serve(sessions, entry, browser, announce)
    except KeyboardInterrupt:
        pass  # that is how a studio ends
    finally:
        signal.signal(signal.SIGTERM, before)
        SPARE.close()
        tempfile.tempdir = None
        sessions.close()


def _ended(number: int, frame: Any) -> None:
    raise SystemExit(0)


def _serve(sessions: Sessions, entry: socket.socket, browser: bool, announce: Callable[[str], None]) -> None:
    import uvicorn

    port: int = entry.getsockname()[1]
    gate = Gate(make_app(sessions), sessions, port, sessions.owner)
    quiet_logs()
    config = uvicorn.Config(gate, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=1)
    SPARE.prepare()
    address = gate.invite()
    announce(address)
    threading.Thread(target=_more_addresses, args=(gate, announce), daemon=True).start()
    if browser:
        page = redirect_page(sessions.folder / "open.html", address)
        threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
    uvicorn.Server(config).run(sockets=[entry])


def redirect_page(target: Path, address: str) -> Path:
    """Write a private file that leads to the address, because other users can see a browser's command line."""
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={address.replace("?token=", "enter#")}">\n'
        )
    return target


def _more_addresses(gate: Gate, announce: Callable[[str], None]) -> None:
    """Announce another address for every line on the standard input."""
    try:
        for _ in sys.stdin:
            announce(gate.invite())
    except (OSError, ValueError):
        return


def make_app(sessions: Sessions) -> FastAPI:
    """Return the application of the pages, without access control."""
    from fastapi import FastAPI
    from nicegui import app as pages
    from nicegui import binding, ui

    from noren_studio.shell import register
    from noren_studio.theme import FAVICON

    register(sessions)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    ui.run_with(
        app,
        title=texts.TITLE,
        favicon=FAVICON,
        dark=None,
        language="en-US",
        tailwind=False,
        gzip_middleware_factory=None,
        show_welcome_message=False,
        reconnect_timeout=30.0,
        binding_refresh_interval=None,
    )
    pages.config.socket_io_js_transports = ["websocket"]
    binding.MAX_PROPAGATION_TIME = float("inf")  # a busy machine is no fault: nothing is bound here, nothing is slow
    return app
