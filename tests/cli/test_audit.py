"""The command that attacks a release, run as it is typed."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from tests.cli.conftest import strict
from tests.cli.test_holder import assert_needs_no_network

DISEASES = {
    "Flu": ("cough", "fever", "headache"),
    "Cold": ("cough", "sneezing", "headache"),
    "Measles": ("fever", "rash", "cough"),
    "Migraine": ("headache", "nausea", "vomiting"),
    "Gastritis": ("nausea", "vomiting", "pain"),
}
POLICY = """\
[attributes]
who = "identifier"
disease = "identifier"
age = "quasi-identifier"
sex = "quasi-identifier"
signs = { role = "quasi-sensitive", separator = ";", knowledge = "diseases.csv" }

[[require]]
model = "k-anonymity"
k = 3

[[require]]
model = "qs-diversity"
on = "signs"
c = 1.0
l = 2

[method]
name = "suppress"
nodes = 2000
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run):
    """The holder's directory, with a release. Read, never written."""
    path = tmp_path_factory.mktemp("clinic")
    rng = np.random.default_rng(8)
    lines = []
    for i in range(120):
        # sickness depends on age, so that classes of neighbours are alike: where diversity of terms is no help
        age = int(rng.integers(20, 70))
        label = list(DISEASES)[min(4, (age - 20) // 10)]
        signs = rng.choice(DISEASES[label], size=int(rng.integers(1, 4)), replace=False)
        lines.append(f"p{i},{label},{age},{'mf'[int(rng.integers(0, 2))]},{';'.join(signs)}")
    (path / "patients.csv").write_text("\n".join(["who,disease,age,sex,signs", *lines]) + "\n")
    pairs = [f"{label},{term}" for label, terms in DISEASES.items() for term in terms]
    (path / "diseases.csv").write_text("\n".join(["label,term", *pairs]) + "\n")
    (path / "policy.toml").write_text(POLICY)
    run("anonymize", path / "patients.csv", path / "policy.toml", "--to", path / "release")
    return path


@pytest.fixture
def command(folder, run):
    """Run the audit; demand that the holder's directory and the release stay as they are."""

    def audit(*words, holder=True, code=0):
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        known = ("--original", folder / "patients.csv", "--policy", folder / "policy.toml") if holder else ()
        result = run("audit", folder / "release", *known, *words, code=code)
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
        assert "Traceback" not in result.output
        return result

    return audit


def test_what_the_holder_sees(command):
    text = command("--truth", "disease").output
    for part in (
        "The linking attack on signs",
        "Adversary: has the knowledge table",
        "Knowledge: 5 labels, 8 terms. Prior: the original.",
        "before any release",
        "raw table",
        "k-anonymous, k = 3",
        "l-diverse, l = 2, k = 3",
        "this release",
        "right guess",
        "keep them with the holder",
    ):
        assert part in text
    assert "Written" not in text
    assert "p17" not in text


def test_what_an_outsider_sees(command):
    text = command(holder=False).output
    assert "Prior: an estimate from the release." in text
    assert "this release, row by row" in text
    for part in ("raw table", "k-anonymous", "right guess", "holder"):
        assert part not in text


def test_as_json(command):
    answer = strict(command("--truth", "disease", "--k", 4, "--l", 3, "--json").output)
    assert answer.keys() == {"release", "results", "written"}
    (result,) = answer["results"]
    assert result["holder_only"] is True
    assert (result["facts"]["k"], result["facts"]["l"]) == (4, 3)
    found = {scenario["name"]: scenario["summary"] for scenario in result["scenarios"]}
    assert set(found) == {"raw", "k-anonymous", "l-diverse", "release", "release-rows"}
    assert found["raw"]["right"] > result["baseline"]["right"]
    assert found["raw"]["certain"] > found["release"]["certain"] == 0
    # neighbours have the same sickness: what 4 of them tell together, 3-diverse in sets of terms, is most of it
    assert found["l-diverse"]["above_half"] > 0
    assert found["release"]["max_belief"] <= 0.5 + 1e-9
    outside = strict(command("--json", holder=False).output)
    assert outside["results"][0]["holder_only"] is False


@pytest.mark.parametrize("suffix", [".html", ".png", ".svg"])
def test_a_chart(command, tmp_path, suffix):
    path = tmp_path / f"audit{suffix}"
    assert f"Written (holder only): {path}" in command("--truth", "disease", "--plot", path).output
    assert path.stat().st_size > 1000
    if suffix == ".html":
        assert_needs_no_network(path.read_text(encoding="utf-8"))


def test_lines_for_the_holder(command, tmp_path):
    path = tmp_path / "believed.csv"
    command("--truth", "disease", "--records", path)
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 5 * 120
    assert {line["holder_only"] for line in lines} == {"true"}
    raw = [line for line in lines if line["scenario"] == "raw"]
    assert [int(line["record"]) for line in raw] == list(range(1, 121))
    assert {line["label"] for line in raw} <= set(DISEASES)
    assert "exists already" in command("--records", path, code=2).output
    outside = tmp_path / "rows.csv"
    assert f"Written: {outside}" in command("--records", outside, holder=False).output
    assert "false" in outside.read_text(encoding="utf-8").splitlines()[1]


@pytest.mark.parametrize("option", ["--plot", "--records"])
@pytest.mark.parametrize("holder", [True, False])
def test_nothing_is_written_into_a_release(command, folder, option, holder):
    name = "audit.png" if option == "--plot" else "audit.csv"
    text = command(option, folder / "release" / name, holder=holder, code=2).output
    assert "lies inside the release" in text
    assert "lies inside the release" in command(option, folder / "release" / ".." / "release" / name, code=2).output


@pytest.mark.parametrize(
    ("words", "holder", "says"),
    [
        (("--truth", "illness"), True, "no column 'illness' to take the truth from"),
        (("--truth", "who"), True, "120 of 120 cells of 'who' are no labels of the knowledge table"),
        (("--truth", "disease"), False, "--truth needs --original"),
        (("--k", "4"), False, "--k needs --original"),
        (("--k", "1"), True, "Invalid value for '--k'"),
        (("--original", "patients.csv"), False, "Give --original and --policy together"),
        (("--attack", "guessing"), True, "no attack 'guessing'"),
        (("--plot", "audit.bmp"), True, "cannot be written as '.bmp'"),
        (("--records", "audit.txt"), True, "records are written as CSV"),
    ],
)
def test_refused(command, words, holder, says):
    text = command(*words, holder=holder, code=2).output
    assert says in " ".join(text.split())
    assert "p17" not in text


def test_a_release_without_terms(release, run):
    assert "no sets of terms" in run("audit", release, code=2).output


def test_a_policy_without_knowledge(folder, run, tmp_path):
    text = POLICY.replace('signs = { role = "quasi-sensitive", separator = ";", knowledge = "diseases.csv" }', "")
    text = text.split("[[require]]")
    policy = tmp_path / "policy.toml"
    policy.write_text(text[0] + 'signs = "plain"\n[[require]]' + text[1] + '[method]\nname = "mondrian"\n')
    words = ("--original", folder / "patients.csv", "--policy", policy)
    assert "no knowledge table for 'signs'" in run("audit", folder / "release", *words, code=2).output


def test_an_original_without_records(folder, run, tmp_path):
    empty = tmp_path / "empty.csv"
    empty.write_text("who,disease,age,sex,signs\n")
    words = ("--original", empty, "--policy", folder / "policy.toml")
    assert "no records" in run("audit", folder / "release", *words, code=2).output
