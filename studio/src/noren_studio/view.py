"""The page that a browser looks at: how code of a page asks for it to be built anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nicegui import ui

KEY = "noren_view"


@dataclass(frozen=True)
class View:
    """What the frame offers to what stands in it."""

    refresh: Callable[[], None]
    """Build the content anew, and the frame around it."""
    frame: Callable[[], None]
    """Build the frame alone: undo, redo, steps."""


def keep(view: View) -> None:
    ui.context.client.storage[KEY] = view


def refresh() -> None:
    """Build the whole page anew."""
    ui.context.client.storage[KEY].refresh()


def refresh_frame() -> None:
    """After an edit that the page has shown by itself: what can be undone has changed, and which steps are done."""
    ui.context.client.storage[KEY].frame()
