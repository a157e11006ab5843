"""Undo and redo of every edit, and sessions that do not see each other."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

from click.testing import CliRunner

from noren.cli.main import ELSEWHERE, GROUP, main
from noren_studio.session import MOST_UNDONE, Draft, History, Session, Sessions, shown
from noren_studio.shell import step_state

POLICY = {"attributes": {"zip": {"role": "quasi-identifier"}, "job": {"role": "plain"}}}


def test_every_edit_can_be_undone_and_done_again(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.open("t.csv", "t.csv", POLICY, "open t.csv")
    session.edit("zip: plain", lambda p: p["attributes"]["zip"].update(role="plain"))
    session.edit("job: sensitive", lambda p: p["attributes"]["job"].update(role="sensitive"))
    states = [session.draft]
    while session.history.undo():
        states.append(session.draft)
    assert states[-1] == Draft()
    assert states[-2].policy == POLICY
    back = []
    while session.history.redo():
        back.append(session.draft)
    assert back == states[-2::-1]


def test_an_edit_leaves_what_was_before_untouched(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.open("t.csv", "t.csv", POLICY, "open")
    session.edit("x", lambda p: p["attributes"]["zip"].update(role="plain"))
    assert POLICY["attributes"]["zip"] == {"role": "quasi-identifier"}
    assert session.history.undoes == "x"


def test_an_edit_after_undo_forgets_what_was_undone() -> None:
    history = History()
    history.make("a", Draft("a"))
    history.make("b", Draft("b"))
    history.undo()
    assert history.redoes == "b"
    assert not history.make("same", Draft("a"))
    history.make("c", Draft("c"))
    assert history.redoes is None
    assert not history.redo()
    assert history.draft == Draft("c")


def test_history_is_bounded() -> None:
    history = History()
    for number in range(3 * MOST_UNDONE):
        history.make(str(number), Draft(str(number)))
    steps = 0
    while history.undo():
        steps += 1
    assert steps == MOST_UNDONE


def test_a_result_knows_the_draft_it_was_about(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.open("t.csv", "t.csv", POLICY, "open")
    before = session.draft.mark
    session.edit("x", lambda p: p["attributes"]["zip"].update(role="plain"))
    assert session.draft.mark != before
    session.history.undo()
    assert session.draft.mark == before


def test_sessions_have_their_own_folder_and_only_the_first_gets_what_was_named() -> None:
    sessions = Sessions("patients.csv")
    one, two = sessions.begin(), sessions.begin()
    assert (one.first, one.kept.get("open")) == ("/table", "patients.csv")
    assert (two.first, two.kept) == ("/", {})
    assert one.folder != two.folder
    assert one.folder.stat().st_mode & 0o077 == 0
    assert sessions.get(one.id) is one
    assert sessions.get("") is None
    one.clients.add("page")
    assert sessions.owner("page") == one.id
    assert sessions.owner("other") is None
    sessions.close()
    assert not sessions.folder.exists()


def test_a_release_on_the_command_line_is_the_recipients(tmp_path: Path) -> None:
    (tmp_path / "datapackage.json").write_text("{}")
    sessions = Sessions(str(tmp_path))
    found = sessions.begin()
    assert (found.first, found.kept.get("release")) == ("/recipient", str(tmp_path))
    sessions.close()


def test_wrong_sections_are_problems_and_not_a_fault(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.open("t.csv", "t.csv", {"attributes": {"zip": {"role": "nobody"}}}, "open")
    assert session.rules.policy is None
    assert session.rules.about("attributes")
    assert not session.rules.about("require")


def test_an_address_is_shown_without_its_password() -> None:
    assert "secret" not in shown("postgresql://me:secret@localhost/base?table=people")
    assert shown("/data/patients.csv") == "patients.csv"


def test_the_command_is_found_by_its_entry_point_and_has_help_with_an_example_and_json() -> None:
    text = " ".join(CliRunner().invoke(main, ["studio", "--help"]).output.split())
    assert "Example: noren studio " in text
    assert "--json" in text
    added = {point.name for point in entry_points(group=GROUP) if point.module.startswith("noren_studio")}
    assert added == {command for command, (home, _) in ELSEWHERE.items() if home == "noren-studio"}


def test_no_step_is_ticked_whose_draft_nobody_has_accepted(tmp_path: Path) -> None:
    session = Session(tmp_path)
    assert step_state(session, "table") == ""
    drafted = {**POLICY, "require": [{"model": "k-anonymity", "k": 5}], "method": "mondrian"}
    session.kept["tables"] = {place: {"policy": drafted} for place in ("t.csv", "u.csv")}
    session.open("t.csv", "t.csv", drafted, "open t.csv")
    steps = ("table", "columns", "requirements", "choose", "release")
    assert [step_state(session, name) for name in steps] == ["done", "drafted", "drafted", "drafted", ""]
    session.accepted.update(drafted["attributes"])
    assert step_state(session, "columns") == "done"
    session.edit("wrong", lambda p: p["attributes"]["zip"].update(role="nobody"))
    assert step_state(session, "columns") == "problem"
    session.edit("right", lambda p: p["attributes"]["zip"].update(role="quasi-identifier"))
    assert step_state(session, "columns") == "done"
    session.edit("k-anonymity: k = 4", lambda p: p["require"][0].update(k=4))
    assert step_state(session, "requirements") == "done"
    session.open("u.csv", "u.csv", drafted, "open u.csv")
    assert [step_state(session, name) for name in steps[1:3]] == ["drafted", "drafted"]
