"""What a session saves: no password, no private folder, a script that is Python whatever the table is called."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from noren.errors import NorenError
from noren_studio.files import POLICY, SCRIPT, script, session_files
from noren_studio.session import Session

SECTIONS = {
    "attributes": {"job": {"role": "sensitive"}, "zip": {"role": "quasi-identifier"}},
    "require": [{"model": "frequency-l-diversity", "on": ["job"], "l": 2}],
    "method": {"name": "decoys"},
}


def session(folder: Path, place: str, name: str = "people.csv") -> Session:
    found = Session(folder)
    found.open(place, name, SECTIONS, "open")
    return found


@pytest.mark.parametrize("name", ['a"""b', "a\\", "a\n'''", "日本", "{x}", "\u202e"])
def test_the_script_is_python_whatever_the_table_is_called(name: str) -> None:
    for place in (None, f"/data/{name}.csv"):
        ast.parse(script(place, name))


def test_a_password_and_a_private_folder_are_not_saved(tmp_path: Path) -> None:
    address = "postgresql://me:geheim@localhost/base?table=people"
    files = session_files(session(tmp_path, address, "people of base"), tmp_path)
    assert "geheim" not in "".join(files.values())
    assert "sys.argv[1]\n" in files[SCRIPT]
    uploaded = session(tmp_path, "")
    uploaded.open(str(uploaded.folder / "upload-1" / "people.csv"), "people.csv", SECTIONS, "open")
    assert str(uploaded.folder) not in "".join(session_files(uploaded, tmp_path).values())


def test_the_policy_is_the_one_of_the_session(tmp_path: Path) -> None:
    import noren as nr

    found = session(tmp_path, "/data/people.csv")
    files = session_files(found, tmp_path)
    assert nr.Policy.parse(files[POLICY]).require == found.rules.policy.require  # type: ignore[union-attr]
    assert "'/data/people.csv'" in files[SCRIPT]


def test_what_is_no_policy_yet_is_not_saved(tmp_path: Path) -> None:
    found = session(tmp_path, "/data/people.csv")
    found.edit("break", lambda sections: sections["attributes"].clear())
    with pytest.raises(NorenError, match="problems"):
        session_files(found, tmp_path)


def test_undo_brings_the_other_table_back_and_not_its_neighbours_results(tmp_path: Path) -> None:
    from noren_studio.session import Found

    found = session(tmp_path, "/data/one.csv")
    found.kept["tables"] = {"/data/one.csv": {"rows": 1}, "/data/two.csv": {"rows": 2}}
    found.open("/data/two.csv", "two.csv", SECTIONS, "open two.csv")
    found.found["risk"] = Found(found.draft.mark, "/data/two.csv", {"uniques": 2})
    assert (found.table, found.result("risk")) == ({"rows": 2}, {"uniques": 2})
    found.history.undo()
    assert (found.table, found.result("risk")) == ({"rows": 1}, None)
