"""What a review of verification, attacks and reports found."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import noren as nr
from noren.audit import AttackResult, Scenario
from noren.cli.audit import _check_targets, _write
from noren.cli.main import main
from noren.errors import DataError
from noren.report.content import _without_places
from noren.report.material import _file


@pytest.mark.parametrize("name", ["beliefs.csv", "deeper/beliefs.csv"])
def test_audit_writes_into_no_release_at_all(tmp_path: Path, name: str) -> None:
    """Not into the one that is attacked, and not into another one."""
    for release in ("one", "two"):
        (tmp_path / release).mkdir()
        (tmp_path / release / "datapackage.json").write_text("{}")
    for release in ("one", "two"):
        with pytest.raises(DataError, match="inside the release"):
            _check_targets(tmp_path / "one", None, tmp_path / release / name)
        with pytest.raises(DataError, match="inside the release"):
            _check_targets(tmp_path / "one", tmp_path / release / "chart.html", None)
    _check_targets(tmp_path / "one", tmp_path / "chart.html", tmp_path / "beliefs.csv")


def test_a_policy_written_in_python_quotes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a policy is called "policy"; a file of that name in the current directory is another one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy").write_text("private notes")
    (tmp_path / "policy.toml").write_text('[attributes]\nage = "quasi-identifier"\n')
    made = nr.Policy(attributes={"age": nr.quasi_identifier()}, require=[])
    assert _file(made, made) is None
    loaded = nr.Policy.load("policy.toml")
    assert _file(loaded, loaded) is None  # it may have been changed since; its own text is shown
    assert _file("policy.toml", loaded) == Path("policy.toml")


def ordinal(**options) -> nr.Policy:
    attributes = {"q": nr.quasi_identifier(), "s": nr.sensitive(distance="ordinal", **options)}
    close = nr.models.TCloseness(on="s", t=0.3, distance="ordered")
    return nr.Policy(attributes=attributes, require=[close], method=nr.methods.Mondrian())


def test_numbers_and_other_texts_have_no_order(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("q,s\na,1\na,2\nb,10\nb,?\n")
    for act in (nr.check, nr.anonymize):
        with pytest.raises(nr.errors.PolicyError, match="so they have no order"):
            act(table, ordinal())
    assert nr.check(table, ordinal(values=["1", "2", "10", "?"])) is False
    table.write_text("q,s\na,1\na,2\nb,10\nb,11\n")
    assert nr.check(table, ordinal()) is False


@pytest.mark.parametrize("cells", ["1 1.0 1 1.00", "flu,'flu ',flu,' flu'", "flu * flu *", "-0 0 0.0 0"])
def test_what_means_the_same_makes_no_class_diverse(tmp_path: Path, cells: str) -> None:
    table = tmp_path / "t.csv"
    texts = [cell.strip("'") for cell in (cells.split(",") if "," in cells else cells.split())]
    table.write_text("q,s\n" + "".join(f"{'aabb'[i]},{text}\n" for i, text in enumerate(texts)))
    rules = nr.Policy(
        attributes={"q": nr.quasi_identifier(), "s": nr.sensitive()},
        require=[nr.models.DistinctLDiversity(on="s", l=2)],
        method=nr.methods.Mondrian(),
    )
    found = nr.measure(table, rules).value("distinct-l-diversity")
    assert found == (2.0 if "*" in cells else 1.0)  # a missing secret is a value of its own, as everywhere
    assert nr.check(table, rules) is ("*" in cells)


def test_nothing_required_is_not_true(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("q\na\n")
    with pytest.raises(nr.errors.PolicyError, match="no requirements"):
        nr.check(table, nr.Policy(attributes={"q": nr.quasi_identifier()}, require=[]))


def test_a_page_for_anybody_names_no_directory() -> None:
    text = 'x = { hierarchy = "/home/me/secret place/h.csv", knowledge = { csv = "a/b.csv", priors = "c.csv" } }\n'
    shown = _without_places(text + 'secret = "/home/me/key"\n')
    assert "home" not in shown
    assert "key" not in shown
    assert 'hierarchy = "h.csv"' in shown
    assert 'csv = "b.csv", priors = "c.csv"' in shown


def test_what_is_found_about_people_is_private_and_runs_nowhere(tmp_path: Path) -> None:
    frame = pl.DataFrame({"value": ["=cmd()", "flu"], "belief": [0.5, -0.25]})
    scenario = Scenario("raw", "raw table", "person", {"belief": 0.5}, frame, holder_only=True)
    result = AttackResult("made", ("s",), "nobody", "none", {"belief": 0.1}, (scenario,), {}, "belief", ())
    path = tmp_path / "records.csv"
    _write([result], None, path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert "'=cmd()" in path.read_text()
    assert ",=cmd()" not in path.read_text()
    assert "-0.25" in path.read_text()


def test_nothing_is_overwritten_and_a_report_has_a_known_form(tmp_path: Path) -> None:
    plot = tmp_path / "chart.png"
    plot.write_bytes(b"mine")
    with pytest.raises(DataError, match="exists already"):
        _check_targets(tmp_path / "release", plot, None)
    answer = CliRunner().invoke(main, ["report", str(tmp_path / "release"), "--to", str(tmp_path / "page.pdf")])
    assert answer.exit_code == 2
    assert "ends in .html or .json" in answer.output
    assert not (tmp_path / "page.pdf").exists()
