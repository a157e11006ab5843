"""What a review of verification, attacks and reports found."""

from __future__ import annotations

from pathlib import Path

import pytest

import noren as nr
from noren.cli.audit import _check_targets
from noren.errors import DataError
from noren.report.material import _file
from noren.report.reproduce import _without_places


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
    return nr.Policy(attributes, [nr.TCloseness(on="s", t=0.3, distance="ordered")], nr.Mondrian())


def test_numbers_and_other_texts_have_no_order(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("q,s\na,1\na,2\nb,10\nb,?\n")
    for act in (nr.check, nr.anonymize):
        with pytest.raises(nr.PolicyError, match="order is not known"):
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
        {"q": nr.quasi_identifier(), "s": nr.sensitive()}, [nr.DistinctLDiversity(on="s", l=2)], nr.Mondrian()
    )
    found = nr.measure(table, rules).value("distinct-l-diversity")
    assert found == (2.0 if "*" in cells else 1.0)  # a missing secret is a value of its own, as everywhere
    assert nr.check(table, rules) is ("*" in cells)


def test_nothing_required_is_not_true(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("q\na\n")
    with pytest.raises(nr.PolicyError, match="nothing is required"):
        nr.check(table, nr.Policy({"q": nr.quasi_identifier()}, []))


def test_a_page_for_anybody_names_no_directory() -> None:
    text = 'x = { hierarchy = "/home/me/secret place/h.csv", knowledge = { csv = "a/b.csv", priors = "c.csv" } }\n'
    shown = _without_places(text + 'secret = "/home/me/key"\n')
    assert "home" not in shown
    assert "key" not in shown
    assert 'hierarchy = "h.csv"' in shown
    assert 'csv = "b.csv", priors = "c.csv"' in shown
