"""What the recipient and the auditor have open and ask: part of the draft, so that every change can be undone.

Plain values, as JSON has them. `release` is the place of the open release, `question` what is asked of it, `audit`
what the auditor named beside it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from noren_studio.session import Session
from noren_studio.view import refresh, refresh_frame

RELEASE, QUESTION, AUDIT = "release", "question", "audit"


def release_of(session: Session) -> str:
    """The place of the release that is open; empty if none is."""
    return str(session.draft.asks.get(RELEASE, ""))


def asked(session: Session, part: str) -> dict[str, Any]:
    """What is asked at present, as a copy."""
    return copy.deepcopy(dict(session.draft.asks.get(part, {})))


def ask(
    session: Session, words: str, part: str, change: Callable[[dict[str, Any]], None], rebuild: bool = True
) -> None:
    """A change of what is asked, and the page after it."""
    now = asked(session, part)
    change(now)
    _made(session, words, {**session.draft.asks, part: now}, rebuild)


def open_release(session: Session, words: str, place: str) -> None:
    """Another release. What was asked of the one before names columns that this one may not have."""
    kept = {name: value for name, value in session.draft.asks.items() if name not in (RELEASE, QUESTION)}
    _made(session, words, {**kept, RELEASE: place}, True)


def _made(session: Session, words: str, asks: Mapping[str, Any], rebuild: bool) -> None:
    if session.history.make(words, replace(session.draft, asks=asks)):
        (refresh if rebuild else refresh_frame)()


def mark_of(given: Mapping[str, Any]) -> str:
    """A short name of a question, by which an answer knows what it answers."""
    import hashlib
    import json

    return hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()[:16]
