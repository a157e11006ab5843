"""Files of the user: opening a table or a release, saving a session as two files.

The files of a session are the policy, and a Python script that repeats the release with public verbs. Neither holds a
password or a cell. The script needs the table, the policy and Noren, and nothing of the studio.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nicegui import events, ui

from noren.errors import NorenError
from noren.files import write_whole
from noren.policy import text_for
from noren.sources import SOURCES
from noren_studio import texts
from noren_studio.parts import button, div, line, problems, title, upload
from noren_studio.session import Session

POLICY, SCRIPT = "policy.toml", "release.py"


def session_files(session: Session, folder: Path) -> dict[str, str]:
    """Return the files of a session by name; raise if the policy is not valid yet."""
    policy = session.rules.policy
    if policy is None:
        raise NorenError(texts.NOT_YET, hint=texts.NOT_YET_HINT)
    place = session.draft.place
    lasting = not Path(place).is_relative_to(session.folder) and "@" not in place
    return {POLICY: text_for(policy, folder), SCRIPT: script(place if lasting else None, session.draft.name)}


def script(place: str | None, name: str) -> str:
    """Return a Python script that makes the release again. Without a place, the table is the first argument."""
    called = "".join(char if char.isprintable() else "?" for char in name).replace("\\", "/").replace('"', "'")
    default = "sys.argv[1]" if place is None else f"sys.argv[1] if len(sys.argv) > 1 else {place!r}"
    return f'''"""Makes the release again that was prepared in Noren Studio from {called}.

Run: python {SCRIPT} {"TABLE" if place is None else "[TABLE]"} [FOLDER]
"""

import sys
from pathlib import Path

import noren as nr

HERE = Path(__file__).resolve().parent
TABLE = {default}
FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "release"

if __name__ == "__main__":
    policy = nr.Policy.load(HERE / "{POLICY}")
    release = nr.anonymize(TABLE, policy, to=FOLDER)
    for verdict in release.verdicts:
        print(verdict.column, verdict.model, verdict.required, verdict.achieved, verdict.holds)
    print(f"The release is in {{FOLDER}}.")
'''


def save_dialog(session: Session) -> None:
    """Show a dialog to download both files or write them into a folder."""
    with ui.dialog() as dialog, ui.card().style("width: 720px; max-width: 92vw"):
        title(texts.SAVE_SESSION)
        line(texts.SAVE_WHY, "n-why")
        if session.rules.policy is None:
            problems(session.rules.problems)
            button(texts.CLOSE, dialog.close)
        else:
            _choices(session, dialog)
    dialog.open()


def _choices(session: Session, dialog: ui.dialog) -> None:
    found = session_files(session, Path(session.kept.get("folder") or Path.cwd()))
    line(found[POLICY], "n-mono n-pre").style("max-height: 300px; overflow: auto; width: 100%")
    with div("n-row"):
        for name, content in found.items():
            button(texts.download(name), partial(ui.download.content, content, name))
    with div("n-row n-full"):
        folder = ui.input(texts.SAVE_INTO, value=session.kept.get("folder") or str(Path.cwd())).classes("n-grow")
        folder.props("outlined dense")
        button(texts.WRITE, lambda: _write(session, Path(folder.value), dialog), "main")
    button(texts.CLOSE, dialog.close)


def _write(session: Session, folder: Path, dialog: ui.dialog) -> None:
    """Write both files without overwriting others."""
    try:
        found = session_files(session, folder)
        taken = [name for name in found if (folder / name).exists()]
        if taken:
            raise NorenError(texts.exists(folder / taken[0]), hint=texts.OTHER_FOLDER)
        for name, content in found.items():
            write_whole(folder / name, content.encode())
    except (NorenError, OSError) as error:
        with dialog:
            message = error.message if isinstance(error, NorenError) else f"{error.filename}: {error.strerror}."
            ui.notify(message, type="negative")
        return
    ui.notify(texts.written(folder), type="positive")
    dialog.close()


# ---------------------------------------------------------------------- a file that is picked


SUFFIXES = (*(one for one in SOURCES if one.startswith(".")), ".tsv", ".txt", ".gz")
MOST = 500
"""Entries of a folder that are listed."""


async def pick_file(session: Session, folders: bool = False) -> Path | None:
    """Let the user select a file, or with `folders` a folder; None if cancelled."""
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
    """Return folders first, then tables; hidden ones are skipped."""
    try:
        found = [one for one in folder.iterdir() if not one.name.startswith(".")]
        inside = sorted(one for one in found if one.is_dir())
        files = [] if folders else sorted(one for one in found if one.suffix.lower() in SUFFIXES and one.is_file())
    except OSError:
        return []
    return [*inside, *files][:MOST]


# ---------------------------------------------------------------------- a field for a place, and an upload


@dataclass(frozen=True)
class Opener:
    """Lets the user type, select or drop a place, and passes it to `begin`."""

    session: Session
    begin: Callable[[str], None]
    folders: bool = False

    def place(self, label: str, example: str, now: str = "") -> None:
        """Show a field for a path or an address, with its buttons."""
        field = ui.input(label, value=now, placeholder=example).props("outlined dense autocomplete=off")
        field.props("spellcheck=false data-place").classes("n-grow")

        def go() -> None:
            if (field.value or "").strip():
                self.begin(field.value.strip())

        field.on("keydown.enter", go)
        button(texts.OPEN, go, "main")
        button(texts.BROWSE, self._pick)

    def upload(self, label: str, largest: int = 4 << 30, accept: str = "") -> None:
        upload(label, self._uploaded, largest, accept)

    async def _pick(self) -> None:
        path = await pick_file(self.session, self.folders)
        if path is not None:
            self.begin(str(path))

    async def _uploaded(self, event: events.UploadEventArguments) -> None:
        """Store an uploaded file in the session's folder under a safe name."""
        kept = self.session.kept
        number = kept["uploads"] = kept.get("uploads", 0) + 1
        folder = self.session.folder / f"upload-{number}"
        folder.mkdir(mode=0o700)
        target = folder / plain_name(event.file.name)
        await event.file.save(target)
        self.begin(str(target))


def plain_name(given: str) -> str:
    """Return a safe file name."""
    name = Path(given).name
    suffix = "".join(Path(name).suffixes[-2:])
    stem = "".join(char if char.isalnum() or char in "-_" else "_" for char in name.partition(".")[0])[:60]
    return (stem or "table") + (suffix if suffix.replace(".", "").isalnum() and len(suffix) < 20 else ".csv")
