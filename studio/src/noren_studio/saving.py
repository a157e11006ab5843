"""A session as two files: the policy, and a Python script that repeats the release with public verbs.

Neither holds a password or a cell. The script needs the table, the policy and Noren, and nothing of the studio.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from nicegui import ui

from noren.errors import NorenError
from noren.files import write_whole
from noren_studio import texts
from noren_studio.parts import button, div, line, problems, title
from noren_studio.policy import text_of
from noren_studio.session import Session

POLICY, SCRIPT = "policy.toml", "release.py"


def session_files(session: Session, folder: Path) -> dict[str, str]:
    """What is saved, by name. Raises where the policy is not one yet."""
    policy = session.rules.policy
    if policy is None:
        raise NorenError(texts.NOT_YET, hint=texts.NOT_YET_HINT)
    place = session.draft.place
    lasting = not Path(place).is_relative_to(session.folder) and "@" not in place
    return {POLICY: text_of(policy, folder), SCRIPT: script(place if lasting else None, session.draft.name)}


def script(place: str | None, name: str) -> str:
    """The release again, by Python alone. Without a place, the table is the first argument."""
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
    """Both files, to be downloaded or written into a folder."""
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
    """Both files, neither over another one."""
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
