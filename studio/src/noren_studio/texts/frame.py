"""Texts of the frame, of the start page, and of several pages."""

from __future__ import annotations

import re
from typing import Literal

Tone = Literal["", "good", "bad", "warn", "accent"]
"""How a text is coloured; it never is the only thing that tells."""

TITLE = "Noren Studio"

# ---------------------------------------------------------------------- the gate and the server

REFUSED = (
    "Noren Studio answers only the browser that used its address first.\n\n"
    "Each address with a token works once. Press Enter in the terminal where the studio runs for another one.\n"
)
OTHER_PORT = "Omit --port to use a free port."


def port_refused(port: int | None, why: str | None) -> str:
    return f"port {port} cannot be used: {why}."


def at_address(address: str) -> str:
    return f"Noren Studio: {address}\n(for one browser, once; Enter for another address, Ctrl-C to end)"


# ---------------------------------------------------------------------- jobs

NO_MEMORY = "there is not enough memory for this."
NO_MEMORY_HINT = "Close other programs, use fewer columns, or use a machine with more memory."
CHECK_PATH = "Check the path, its permissions and the free space."
REPORT_IT = "Your edits are kept. Please report it: the message names the place and quotes no cell."
CANCEL = "Cancel"
CANCELLED = "Cancelled. Nothing was written."
CANCELLED_PART = "Cancelled. Nothing was written. The results so far are kept."
TRY_AGAIN = "Try again"
STARTING = "Starting"
PROGRESS = "How far it is"
STALE = "The policy has changed since this was computed."


def worker_ended(how: str) -> tuple[str, str]:
    return (
        f"the computation ended unexpectedly ({how}).",
        "Your edits are kept. The memory may be too small: try fewer columns.",
    )


def fault(kind: str, place: str) -> str:
    return f"a fault in Noren: {kind} at {place}. Nothing was published."


def waiting(before: int) -> str:
    return f"Waiting: {before} other jobs run first" if before else "Waiting: this job is next"


def running_for(seconds: float, left: float | None = None) -> str:
    return f"{seconds:.0f} s" if left is None else f"{seconds:.0f} s, about {left:.0f} s left"


# ---------------------------------------------------------------------- the frame

UNDO = "Undo"
REDO = "Redo"
LIGHT_OR_DARK = "Light or dark"
MENU = "Menu"
SAVE_SESSION = "Save as policy and script"
END_SESSION = "End this session"
ENDED = "The session has ended. Its files are removed."
END_CONFIRM = "End the session? You lose edits that you did not save."
KEEP = "Keep working"
HOLDER = "Holder"
RECIPIENT = "Recipient"
AUDITOR = "Auditor"
FIRST_OPEN = "Open a table first."
SKIP = "To the content"
OPEN_TABLE = "Open a table"
STATES = {"drafted": "drafted for you, not reviewed", "done": "reviewed", "problem": "has a problem"}


def set_to(what: str, value: object, field: str = "") -> str:
    """Return what an edit did, as undo and redo name it: to a whole thing, or to one field of it."""
    shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)
    return f"{what}: {field + ' = ' if field else ''}{shown or 'none'}"


def undid(words: str) -> str:
    return f"Undone: {words}"


def redid(words: str) -> str:
    return f"Done again: {words}"


# ---------------------------------------------------------------------- the start page

START_TITLE = "What do you want to do?"
START_LEAD = "Everything runs on this machine. No cell of a table leaves it, and you decide what is published."
START = {
    "holder": ("Publish a table about people", "Open a table, give each column a role, compare risk and loss, and make "
               "a release that is verified against your policy.", "Open a table"),
    "recipient": ("Work with a release", "Open a release, estimate counts and models with intervals, and save "
                  "charts and tables.", "Open a release"),
    "auditor": ("Check a release", "Verify its claims, attack it as an adversary would, and measure tables by other "
                "tools.", "Audit a release"),
}  # fmt: skip

TOUR_GO = "Tour of one minute"
TOUR_SAYS = "Five steps with a made-up hospital table. The tour reads none of your files."
TOUR_NEXT, TOUR_END = "Next", "End the tour"
TOUR = {
    "table": "This is the demo's table. Below you see what it discloses. Every role is a guess that you can correct.",
    "columns": "Pick a column and look at its role. A dashed number in the list of steps means that a draft "
    "needs your review.",
    "requirements": "Each card states what a requirement guarantees and what it does not. Move a slider and "
    "read the sentence again.",
    "choose": "Press Compare. Each candidate appears on the map as soon as it is measured. Adopt one.",
    "release": "Press Make the release. The right side shows everything that others will see.",
}


# ---------------------------------------------------------------------- pages

PAGES = {
    "table": ("Table", "The columns of the table, their guessed roles, and what the table discloses."),
    "columns": ("Columns", "The role of a column determines how it is protected."),
    "requirements": ("Requirements", "What every release must guarantee."),
    "choose": ("Choose", "Methods that meet the requirements, with their risk and loss."),
    "release": ("Release", "Make, verify and sign the release, and hand it over."),
    "recipient": ("Open a release", "What was published, and what can be learned from it."),
    "auditor": ("Audit", "Which requirements hold, and what an adversary learns."),
}


# ---------------------------------------------------------------------- hints

_HINTS = {
    ".pub": "To check a signature, give the public key (.pub); to sign, give the signing key.",
    "noren key": "Correct the path, or tick the box to make a new key.",
    "--passphrase": "Type its passphrase.",
    "--quasi": "Give columns by which people can be found the role quasi-identifier (step 2).",
    "--levels": "Raise a level, or permit suppression; the page Choose finds the best levels.",
    "--separator": "Save the file with commas between its columns.",
    "[[require]]": "Protect it on the page Requirements, or give it the role Plain or Quasi-identifier.",
}
"""What a page says where a hint of the library names something that is typed, into a terminal or a file."""
_TERMINAL = re.compile(r"(?<!\w)--\w|`noren |noren (?:init|key|secret|compare)\b|\[\[require]]")


WHERE, WHAT = "Where", "What"


def more_problems(count: int) -> str:
    return f"{count:,} more problems" if count > 1 else "1 more problem"


def in_words(hint: str) -> str:
    """Return a hint for a page, which has no command line."""
    if not _TERMINAL.search(hint):
        return hint
    return next((words for mark, words in _HINTS.items() if mark in hint), "")


def without_lines(why: str) -> str:
    """Return a remark of a draft without advice about lines of its file."""
    return re.split(r" If people have several rows|\s+Add most_rows", why)[0]


# ---------------------------------------------------------------------- saving a session

SAVE_WHY = "The policy records your decisions; the script makes the release again in Python. Neither contains a cell."
SAVE_INTO = "Folder"
WRITE = "Write both"
CLOSE = "Close"
NOT_YET = "the policy has problems and cannot be saved as one yet."
NOT_YET_HINT = "Correct the problems that the steps Columns and Requirements show."
OTHER_FOLDER = "Name another folder, or remove it first."


def download(name: str) -> str:
    return f"Download {name}"


def exists(path: object) -> str:
    return f"{path} exists already."


def written(path: object) -> str:
    return f"Written to {path}"
