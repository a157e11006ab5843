"""Texts of the frame around every page, of the start page, and of what pages share."""

from __future__ import annotations

import re
from typing import Literal

Tone = Literal["", "good", "bad", "warn", "accent"]
"""How a text is coloured; it never is the only thing that tells."""

TITLE = "Noren Studio"

# ---------------------------------------------------------------------- the gate and the server

REFUSED = (
    "Noren Studio answers only the browser that it let in.\n\n"
    "Each address with a token works once. Press Enter in the terminal where the studio runs for another one.\n"
)
OTHER_PORT = "Leave --port out to take one that is free."


def port_refused(port: int | None, why: str | None) -> str:
    return f"port {port} cannot be used: {why}."


def at_address(address: str) -> str:
    return f"Noren Studio: {address}\n(for one browser, once; Enter for another address, Ctrl-C to end)"


# ---------------------------------------------------------------------- jobs

NO_MEMORY = "there is not enough memory for this."
NO_MEMORY_HINT = "Close other programs, name fewer columns, or take a machine with more memory."
CHECK_PATH = "Check the path, its permissions and the space left."
REPORT_IT = "Your edits are kept. Please report it: the message names the place and quotes no cell."
CANCEL = "Cancel"
CANCELLED = "Cancelled. Nothing was written."
TRY_AGAIN = "Try again"
STARTING = "Starting"
STALE = "The policy has changed since this was computed."


def worker_ended(how: str) -> tuple[str, str]:
    return f"the computation ended by itself ({how}).", "Your edits are kept. Often it is memory: try fewer columns."


def fault(kind: str, place: str) -> str:
    return f"a fault in Noren: {kind} at {place}. Nothing was published."


def waiting(before: int) -> str:
    return f"Waiting for its turn: {before} before you" if before else "Waiting for its turn: you are next"


def running_for(seconds: float) -> str:
    return f"{seconds:.0f} s"


# ---------------------------------------------------------------------- the frame

UNDO = "Undo"
REDO = "Redo"
LIGHT_OR_DARK = "Light or dark"
MENU = "Menu"
SAVE_SESSION = "Save as policy and script"
END_SESSION = "End this session"
ENDED = "The session has ended. Its files are removed."
END_CONFIRM = "End the session? Edits that you did not save are gone."
KEEP = "Keep working"
HOLDER = "Holder"
RECIPIENT = "Recipient"
AUDITOR = "Auditor"
FIRST_OPEN = "Open a table first: the steps are about one table."
SKIP = "To the content"
OPEN_TABLE = "Open a table"


def undid(words: str) -> str:
    return f"Undone: {words}"


def redid(words: str) -> str:
    return f"Done again: {words}"


# ---------------------------------------------------------------------- the start page

START_TITLE = "What do you want to do?"
START_LEAD = (
    "Everything here runs on this machine. No cell of a table leaves it, and nothing is published before you say so."
)
START = {
    "holder": ("Publish a table about people", "Open a table, decide what each column is, see what is risked and what "
               "is lost, and make a release that provably meets your policy.", "Open a table"),
    "recipient": ("Work with a release", "Open what somebody published, count and estimate with error bars, and take "
                  "charts and tables along.", "Open a release"),
    "auditor": ("Check a release", "Verify its claims, attack it as an adversary would, and look at tables that were "
                "made elsewhere.", "Audit a release"),
}  # fmt: skip


# ---------------------------------------------------------------------- pages

PAGES = {
    "table": ("Table", "What it holds, what it is taken for, and what it gives away as it is."),
    "columns": ("Columns", "What each column is decides how it is protected."),
    "requirements": ("Requirements", "What must hold of anything that is published."),
    "choose": ("Choose", "Ways to meet the requirements: what each risks and what each loses."),
    "release": ("Release", "Make it, check it, sign it, and hand over what is on the public side of the curtain."),
    "recipient": ("Open a release", "What was published, and what can be learned from it."),
    "auditor": ("Audit", "What holds, and what an adversary learns."),
}


# ---------------------------------------------------------------------- hints

_HINTS = {
    ".pub": "Give the public half of a signing key for a signer, and the key itself to sign.",
    "noren key": "Correct the path, or tick that the key is to be made.",
    "--passphrase": "Type its passphrase.",
    "--quasi": "Give the columns that find people the role quasi-identifier (step 2).",
    "--levels": "Raise a level, or allow people to be left out; the page Choose finds the best levels.",
    "--separator": "Save the file with commas between its columns.",
}
"""What a page says where a hint of the library names something that is typed into a terminal."""
_TERMINAL = re.compile(r"(?<!\w)--\w|`noren |noren (?:init|key|secret|compare)\b")


def in_words(hint: str) -> str:
    """A hint as a page gives it: a command line is of no use in a window."""
    if not _TERMINAL.search(hint):
        return hint
    return next((words for mark, words in _HINTS.items() if mark in hint), "")


# ---------------------------------------------------------------------- saving a session

SAVE_WHY = "The policy says what was decided, the script repeats the release with Python alone. Neither holds a cell."
SAVE_INTO = "Folder"
WRITE = "Write both"
CLOSE = "Close"
NOT_YET = "the policy has problems and cannot be saved as one yet."
NOT_YET_HINT = "Correct what the steps Columns and Requirements name."
OTHER_FOLDER = "Name another folder, or remove it first."


def download(name: str) -> str:
    return f"Download {name}"


def exists(path: object) -> str:
    return f"{path} exists already."


def written(path: object) -> str:
    return f"Written to {path}"
