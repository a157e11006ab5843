"""The session of one browser: decisions with undo, and a private folder that is removed at the end.

A session is reached by the secret in its cookie and by nothing else, so that two sessions never see each other's table.
"""

from __future__ import annotations

import copy
import hashlib
import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noren.errors import NorenError, PolicyError, Problem
from noren_studio.jobs import Job, Work

if TYPE_CHECKING:
    from noren import Policy


def is_release(place: str) -> bool:
    """Return whether a place is a release: a local folder, or a schema of a database."""
    if "://" in place:
        return "schema=" in place.partition("?")[2]
    path = Path(place)
    return path.is_dir() and (path / "datapackage.json").is_file()


def is_packed(place: str) -> bool:
    """Return whether a place is a ZIP file."""
    return "://" not in place and place.lower().endswith(".zip")


def shown(place: str) -> str:
    """Return the display name of a place: a file name, or an address without its password."""
    if "://" in place:
        from noren.sources import Address

        return Address.parse(place).name
    return Path(place).name


@dataclass(frozen=True)
class Rules:
    """A policy, or its problems."""

    policy: Policy | None
    problems: Sequence[Problem] = field(default_factory=tuple)

    def about(self, *where: str) -> list[Problem]:
        """Return the problems at one of these places of the policy, or below it."""
        return [
            p for p in self.problems if any(p.where == at or p.where.startswith((f"{at}.", f"{at}[")) for at in where)
        ]


def read_rules(sections: Mapping[str, Any], base: Path) -> Rules:
    """Parse the sections as a policy; paths are relative to `base`."""
    from noren import Policy

    if not sections:
        return Rules(None)
    try:
        return Rules(Policy(**{**sections, "base": base}))
    except PolicyError as error:
        return Rules(None, error.problems)
    except NorenError as error:
        return Rules(None, (Problem("", error.message, error.hint or ""),))


MOST_UNDONE = 200
"""Edits that can be taken back; a draft is small, and nobody goes back further."""


@dataclass(frozen=True)
class Draft:
    """The decisions at one moment. It never changes: an edit makes another one."""

    place: str = ""
    """Path or address of the table, as verbs take it."""
    name: str = ""
    """How the table is called: an address may hold a password, and is never shown whole."""
    policy: Mapping[str, Any] = field(default_factory=dict)
    """The policy as TOML is read: sections of plain values. It may be wrong, `rules` says where."""
    asks: Mapping[str, Any] = field(default_factory=dict)
    """What the recipient and the auditor have open and ask; see `noren_studio.questions`."""

    @property
    def opened(self) -> bool:
        return bool(self.place and self.policy)

    @property
    def mark(self) -> str:
        """Return a short hash of this state, to match results."""
        return mark_of({"place": self.place, "policy": self.policy})


@dataclass(frozen=True)
class Edit:
    """A draft, and a description of the edit that led to it."""

    words: str
    draft: Draft


def mark_of(given: Mapping[str, Any]) -> str:
    """Return a short hash of plain values, to match results."""
    return hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()[:16]


class History:
    """The drafts in order, with the current position."""

    def __init__(self) -> None:
        self._edits = [Edit("", Draft())]
        self._at = 0

    @property
    def draft(self) -> Draft:
        return self._edits[self._at].draft

    @property
    def undoes(self) -> str | None:
        """Return what `undo` would revert."""
        return self._edits[self._at].words if self._at else None

    @property
    def redoes(self) -> str | None:
        """Return what `redo` would restore."""
        return self._edits[self._at + 1].words if self._at + 1 < len(self._edits) else None

    def make(self, words: str, draft: Draft) -> bool:
        """Add a draft after the current one and discard undone ones; return False if nothing changed."""
        if draft == self.draft:
            return False
        self._edits = [*self._edits[: self._at + 1], Edit(words, draft)][-MOST_UNDONE - 1 :]
        self._at = len(self._edits) - 1
        return True

    def undo(self) -> bool:
        self._at, before = max(0, self._at - 1), self._at
        return self._at != before

    def redo(self) -> bool:
        self._at, before = min(len(self._edits) - 1, self._at + 1), self._at
        return self._at != before


@dataclass(frozen=True)
class Found:
    """The result of a job, and the draft for which it was requested."""

    mark: str
    place: str
    result: Any


OF_TABLE = frozenset({"risk", "reach", "compare", "pair", "levels", "release", "report", "save"})
"""Results that are about the table of the holder, and about no other one: undo may bring another one back."""


class Session:
    """The state of one browser. Pages read it, and change it only by `edit` and `start`."""

    def __init__(self, folder: Path, place: str = "") -> None:
        self.id = secrets.token_urlsafe(32)
        self.folder = Path(tempfile.mkdtemp(prefix="session-", dir=folder))
        self.history = History()
        self.jobs: dict[str, Job] = {}
        self.found: dict[str, Found] = {}
        self.kept: dict[str, Any] = {}
        """What a page wants to find again after a reload: a choice, a filter. Not undone, not saved."""
        self.clients: set[str] = set()
        self.accepted: set[str] = set()
        """Columns and requirements of the draft that somebody has accepted or changed since the table was opened."""
        self.look: bool | None = None
        """Whether the dark look was chosen; None follows the system."""
        self.system_dark = False
        self.first = "/"
        """The page that is shown first: what the command line named is opened there."""
        if place and (is_release(place) or is_packed(place)):
            self.kept["release"], self.first = place, "/recipient"
        elif place:
            self.kept["open"], self.first = place, "/table"
        self._rules: tuple[Draft, Rules] | None = None

    @property
    def dark(self) -> bool:
        """Return whether pages are dark: as chosen, or as the system is."""
        return self.system_dark if self.look is None else self.look

    @property
    def draft(self) -> Draft:
        return self.history.draft

    @property
    def rules(self) -> Rules:
        """Return the parsed policy, or its problems."""
        if self._rules is None or self._rules[0] is not self.draft:
            self._rules = self.draft, read_rules(self.draft.policy, self.folder)
        return self._rules[1]

    def edit(self, words: str, change: Callable[[dict[str, Any]], None]) -> bool:
        """Change the policy: `change` gets a copy of its sections. Returns False if nothing changed."""
        sections = copy.deepcopy(dict(self.draft.policy))
        change(sections)
        return self.history.make(words, replace(self.draft, policy=sections))

    def open(self, place: str, name: str, policy: Mapping[str, Any], words: str) -> None:
        """Open another table, with its drafted policy."""
        self.accepted = set()
        self.history.make(words, replace(self.draft, place=place, name=name, policy=policy))

    # ------------------------------------------------------------------ work

    def start(self, name: str, work: Work, /, **given: Any) -> Job:
        """Run a function in a separate process. A job stops an older one of the same name."""
        self.stop(name)
        place = self.draft.place
        job = self.jobs[name] = Job(name, work, given, self.draft.mark, lambda job: self._keep(job, place))
        job.start()
        return job

    def judge(self, name: str, work: Work, /, **given: Any) -> Job:
        """Run a function on the table and policy of the current draft."""
        draft = self.draft
        return self.start(name, work, place=draft.place, policy=dict(draft.policy), base=str(self.folder), **given)

    def runs(self, name: str) -> bool:
        return name in self.jobs and self.jobs[name].running

    def stop(self, name: str) -> None:
        job = self.jobs.get(name)
        if job is not None:
            job.cancel()

    def _keep(self, job: Job, place: str) -> None:
        if self.jobs.get(job.name) is job:
            self.found[job.name] = Found(job.mark, place, job.result)

    def result(self, name: str) -> Any:
        """Return the result of the last job of a name; None if there is none, or if it was for another table."""
        found = self.found.get(name)
        if found is None or (name in OF_TABLE and found.place != self.draft.place):
            return None
        return found.result

    @property
    def table(self) -> Any:
        """Return what is known about the table of the current draft."""
        return self.kept.get("tables", {}).get(self.draft.place)

    def is_drafted(self, name: str) -> bool:
        """Return whether a column is as drafted, and nobody has accepted it."""
        drafted = (self.table or {}).get("policy", {}).get("attributes", {})
        given = self.draft.policy.get("attributes", {})
        return name not in self.accepted and name in drafted and given.get(name) == drafted[name]

    def drafted_requirements(self) -> list[Mapping[str, Any]]:
        """Return the drafted requirements that nobody has accepted or changed."""
        drafted = (self.table or {}).get("policy", {}).get("require", [])
        given = self.draft.policy.get("require", [])
        return [one for one in given if one in drafted and mark_of(one) not in self.accepted]

    def is_fresh(self, name: str) -> bool:
        """Return whether the last result is for the current draft."""
        found = self.found.get(name)
        return found is not None and found.mark == self.draft.mark

    def end(self) -> None:
        """Stop all jobs and remove every file of the session."""
        for name in list(self.jobs):
            self.stop(name)
        shutil.rmtree(self.folder, ignore_errors=True)


class Sessions:
    """All sessions of a server by their secret; their folders are in one that only the user can read."""

    def __init__(self, place: str = "") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="noren-studio-"))
        self._place = place
        self._all: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._all)

    def begin(self) -> Session:
        """Make a session. The first one gets what the command line named."""
        session = Session(self.folder, self._place)
        self._place = ""
        self._all[session.id] = session
        return session

    def get(self, secret: str) -> Session | None:
        return self._all.get(secret)

    def owner(self, client: str) -> str | None:
        """Return the session of a page."""
        return next((one.id for one in self._all.values() if client in one.clients), None)

    def end(self, session: Session) -> None:
        self._all.pop(session.id, None)
        session.end()

    def close(self) -> None:
        """End all sessions and remove their files."""
        for session in list(self._all.values()):
            self.end(session)
        shutil.rmtree(self.folder, ignore_errors=True)
