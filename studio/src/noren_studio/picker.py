"""A dialog that picks a file of this machine: folders and tables, as the user may read them."""

from __future__ import annotations

from pathlib import Path

from nicegui import ui

from noren.sources import SOURCES
from noren_studio import texts
from noren_studio.parts import button, div, line, title
from noren_studio.session import Session

SUFFIXES = (*(one for one in SOURCES if one.startswith(".")), ".tsv", ".txt", ".gz")
MOST = 500
"""Entries of a folder that are listed."""


async def pick_file(session: Session, folders: bool = False) -> Path | None:
    """A file that was clicked, or with `folders` a folder; None if nothing was."""
    with ui.dialog() as dialog, ui.card().style("width: 620px; max-width: 90vw"):
        title(texts.PICK_FOLDER if folders else texts.PICK_FILE)

        @ui.refreshable
        def listing(folder: Path) -> None:
            session.kept["folder"] = str(folder)
            line(str(folder), "n-mono n-wrap")
            with (
                ui.element("div").style("height: 360px; overflow: auto; width: 100%"),
                ui.list().props("dense").classes("n-full"),
            ):
                if folder.parent != folder:
                    ui.item(texts.UP, on_click=lambda: listing.refresh(folder.parent))
                for path in entries(folder, folders):
                    click = (lambda p=path: listing.refresh(p)) if path.is_dir() else (lambda p=path: dialog.submit(p))
                    with ui.item(on_click=click), div("n-row tight"):
                        ui.icon("folder" if path.is_dir() else "description", size="18px").classes("n-soft")
                        line(path.name)
            if folders:
                button(texts.THIS_FOLDER, lambda: dialog.submit(folder), "main")

        listing(Path(session.kept.get("folder") or Path.cwd()))
    found: Path | None = await dialog
    return found


def entries(folder: Path, folders: bool) -> list[Path]:
    """Folders first, then tables; what starts with a dot is left out."""
    try:
        found = [one for one in folder.iterdir() if not one.name.startswith(".")]
        inside = sorted(one for one in found if one.is_dir())
        files = [] if folders else sorted(one for one in found if one.suffix.lower() in SUFFIXES and one.is_file())
    except OSError:
        return []
    return [*inside, *files][:MOST]
