"""Two releases of overlapping people, as they are typed: secret, anonymize, refusal, m-invariance, audit --second."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cli.conftest import strict

POLICY = """\
mechanism = "ignored"

[attributes]
id = "identifier"
age = "quasi-identifier"
ill = {{ role = "sensitive", values = ["a", "b", "c", "d", "e"] }}

[[require]]
model = "{model}"
on = "ill"
{parameter} = 3

[method]
name = "{method}"
{option}

[randomness]
secret = "hospital.key"
record_key = "id"
"""


@pytest.fixture
def folder(tmp_path, run):
    """Two years of a hospital: people came, people went."""
    rng = np.random.default_rng(3)
    people = [f"p{i},{rng.integers(20, 70)},{rng.choice(list('abcde'))}" for i in range(90)]
    for name, rows in (("2025", people[:70]), ("2026", people[20:])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,age,ill", *rows]) + "\n")
    groups = POLICY.format(model="frequency-l-diversity", parameter="l", method="anatomy", option="")
    kept = POLICY.format(model="m-invariance", parameter="m", method="m-invariance", option="counterfeits = 0.3")
    (tmp_path / "groups.toml").write_text(groups)
    (tmp_path / "kept.toml").write_text(kept)
    run("secret", tmp_path / "hospital.key")
    return tmp_path


def test_the_second_year_is_refused_with_the_number_of_people(folder, run):
    run("anonymize", folder / "2025.csv", folder / "groups.toml", "--to", folder / "first")
    result = run("anonymize", folder / "2026.csv", folder / "groups.toml", "--to", folder / "second", code=1)
    assert "people were in other classes before" in result.output
    assert not (folder / "second").exists()
    shown = strict(run("secret", folder / "hospital.key", "--show", "--json").output)
    assert (shown["releases"], shown["people"]) == (1, 70)
    assert shown["key"] == {"column": "id", "unicode": "NFKC", "spaces": "trim", "case": "fold"}
    assert shown["columns"] == [
        {"column": "ill", "published": "classes", "eta": None, "values": 5, "p": None, "people": 70}
    ]
    assert "People are recognised by id" in run("secret", folder / "hospital.key", "--show").output


def test_m_invariance_makes_the_second_year_and_the_audit_finds_nobody(folder, run):
    run("anonymize", folder / "2025.csv", folder / "kept.toml", "--to", folder / "first")
    told = strict(
        run("anonymize", folder / "2026.csv", folder / "kept.toml", "--to", folder / "second", "--json").output
    )
    assert "register: 50 of 70 people are in earlier releases" in told["notes"]
    options = ("--original", folder / "2025.csv", "--policy", folder / "kept.toml", "--second", folder / "second")
    more = ("--second-original", folder / "2026.csv")
    (found,) = strict(run("audit", folder / "first", *options, *more, "--json").output)["results"]
    assert found["attack"] == "intersection"
    assert (found["facts"]["people"], found["facts"]["m"], found["facts"]["exposed"]) == (50, 3, 0)
    assert (
        "0 of 50 people have fewer than 3 possible values"
        in run("audit", folder / "first", *options, *more, "--details").output
    )
    run("verify", folder / "second")
    run("audit", folder / "first", *more, code=2)


def test_a_lost_register_is_said(folder, run):
    (folder / "hospital.key.register").unlink()
    result = run("anonymize", folder / "2025.csv", folder / "kept.toml", "--to", folder / "first", code=2)
    assert "There is no register at" in result.output
    assert "backup" in result.output
