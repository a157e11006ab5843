"""One browser's work: what it decided, every step of which can be undone, and a private folder that ends with it.

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
    """Whether a place is a release: a folder of this machine, or a schema of a base."""
    if "://" in place:
        return "schema=" in place.partition("?")[2]
    path = Path(place)
    return path.is_dir() and (path / "datapackage.json").is_file()


def is_packed(place: str) -> bool:
    """Whether a place is one ZIP file, as a release is handed over."""
    return "://" not in place and place.lower().endswith(".zip")


def shown(place: str) -> str:
    """How a place is called: a file by its name, an address without its password."""
    if "://" in place:
        from noren.sources import Address

        return Address.parse(place).name
    return Path(place).name


@dataclass(frozen=True)
class Rules:
    """A policy, or what is wrong with it."""

    policy: Policy | None
    problems: Sequence[Problem] = field(default_factory=tuple)

    def about(self, *where: str) -> list[Problem]:
        """Problems that stand at one of these places of the policy, or below it."""
        return [
            p for p in self.problems if any(p.where == at or p.where.startswith((f"{at}.", f"{at}[")) for at in where)
        ]


def read_rules(sections: Mapping[str, Any], base: Path) -> Rules:
    """The sections as a policy; paths in it are relative to `base`."""
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
    """What was decided, at one moment. It never changes: an edit makes another one."""

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
        """A short name of this state, by which a result knows what it was computed from."""
        text = json.dumps([self.place, self.policy], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Edit:
    """A draft and what led to it, in words."""

    words: str
    draft: Draft


class History:
    """Drafts in the order in which they were made, with a place in it."""

    def __init__(self) -> None:
        self._edits = [Edit("", Draft())]
        self._at = 0

    @property
    def draft(self) -> Draft:
        return self._edits[self._at].draft

    @property
    def undoes(self) -> str | None:
        """What `undo` would take back."""
        return self._edits[self._at].words if self._at else None

    @property
    def redoes(self) -> str | None:
        """What `redo` would bring back."""
        return self._edits[self._at + 1].words if self._at + 1 < len(self._edits) else None

    def make(self, words: str, draft: Draft) -> bool:
        """Another draft after the present one; what was undone before is gone. False if nothing changed."""
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
    """What a job found, and the draft that it was asked about."""

    mark: str
    place: str
    result: Any


OF_TABLE = frozenset({"risk", "reach", "compare", "pair", "levels", "release", "report", "save"})
"""Results that are about the table of the holder, and about no other one: undo may bring another one back."""


class Session:
    """The state of one browser. Pages read it, and change it by `edit` and `start` alone."""

    def __init__(self, folder: Path, place: str = "") -> None:
        self.id = secrets.token_urlsafe(32)
        self.folder = Path(tempfile.mkdtemp(prefix="session-", dir=folder))
        self.history = History()
        self.jobs: dict[str, Job] = {}
        self.found: dict[str, Found] = {}
        self.kept: dict[str, Any] = {}
        """What a page wants to find again after a reload: a choice, a filter. Not undone, not saved."""
        self.clients: set[str] = set()
        self.seen: set[str] = set()
        """The pages that were looked at since the table was opened: what was drafted is not yet what was decided."""
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
        """Whether pages are dark: as was chosen, or as the system is."""
        return self.system_dark if self.look is None else self.look

    @property
    def draft(self) -> Draft:
        return self.history.draft

    @property
    def rules(self) -> Rules:
        """The policy as the library reads it, or everything that it finds wrong with it."""
        if self._rules is None or self._rules[0] is not self.draft:
            self._rules = self.draft, read_rules(self.draft.policy, self.folder)
        return self._rules[1]

    def edit(self, words: str, change: Callable[[dict[str, Any]], None]) -> bool:
        """Change the policy: `change` is given a copy of its sections. False if nothing changed."""
        sections = copy.deepcopy(dict(self.draft.policy))
        change(sections)
        return self.history.make(words, replace(self.draft, policy=sections))

    def open(self, place: str, name: str, policy: Mapping[str, Any], words: str) -> None:
        """Another table, with the policy that was drafted for it."""
        self.seen = {"table"}
        self.history.make(words, replace(self.draft, place=place, name=name, policy=policy))

    # ------------------------------------------------------------------ work

    def start(self, name: str, work: Work, /, **given: Any) -> Job:
        """Run a verb in a process of its own. One job of a name at a time: an older one is stopped."""
        self.stop(name)
        place = self.draft.place
        job = self.jobs[name] = Job(name, work, given, self.draft.mark, lambda job: self._keep(job, place))
        job.start()
        return job

    def judge(self, name: str, work: Work, /, **given: Any) -> Job:
        """Run a verb on the table and the policy of the present draft."""
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
        """What the last job of a name found, however old; None before, and where it was about another table."""
        found = self.found.get(name)
        if found is None or (name in OF_TABLE and found.place != self.draft.place):
            return None
        return found.result

    @property
    def table(self) -> Any:
        """What is known of the table of the present draft since it was opened."""
        return self.kept.get("tables", {}).get(self.draft.place)

    def is_fresh(self, name: str) -> bool:
        """Whether the last result is about the present draft."""
        found = self.found.get(name)
        return found is not None and found.mark == self.draft.mark

    def end(self) -> None:
        """Stop what runs and remove every file of the session."""
        for name in list(self.jobs):
            self.stop(name)
        shutil.rmtree(self.folder, ignore_errors=True)


class Sessions:
    """All sessions of a server, by their secret; their folders stand in one that is the user's alone."""

    def __init__(self, place: str = "") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="noren-studio-"))
        self._place = place
        self._all: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._all)

    def begin(self) -> Session:
        """A new session. The first one gets what the command line named."""
        session = Session(self.folder, self._place)
        self._place = ""
        self._all[session.id] = session
        return session

    def get(self, secret: str) -> Session | None:
        return self._all.get(secret)

    def owner(self, client: str) -> str | None:
        """The session that a page belongs to."""
        return next((one.id for one in self._all.values() if client in one.clients), None)

    def end(self, session: Session) -> None:
        self._all.pop(session.id, None)
        session.end()

    def close(self) -> None:
        """End all sessions and leave nothing behind."""
        for session in list(self._all.values()):
            self.end(session)
        shutil.rmtree(self.folder, ignore_errors=True)
