"""The command that attacks a release, run as it is typed."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from noren.audit import ATTACKS
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

    def audit(*words, holder=True, code=0, attack="linking"):
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        known = ("--original", folder / "patients.csv", "--policy", folder / "policy.toml") if holder else ()
        chosen = ("--attack", attack) if attack else ()
        result = run("audit", folder / "release", *known, *chosen, *words, code=code)
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
        assert "Traceback" not in result.output
        return result

    return audit


def test_what_the_holder_sees(command):
    text = command("--truth", "disease", "--details").output
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
        "do not publish them",
    ):
        assert part in text
    assert "Written" not in text
    assert "p17" not in text


def test_a_summary_comes_first_and_details_on_request(release, hospital, run):
    known = ("--original", hospital / "patients.csv", "--policy", hospital / "policy.toml")
    text = run("audit", release, "--attack", "bayes", "--attack", "homogeneity", *known).output
    assert text.startswith("An adversary who knows one person's quasi-identifiers")
    assert text.index("homogeneity") < text.index("An adversary who knows which row is the person's")
    assert "all published columns" in text
    assert "with all published columns of a record" in text, "the figure that bayes leads with"
    assert "The strongest adversary knows" in text
    assert "do not publish them" in text
    assert "The bayes attack on" not in text
    assert len(text.splitlines()) < 30
    whole = run("audit", release, "--attack", "bayes", "--attack", "homogeneity", "--details", *known).output
    assert whole.index("An adversary who knows which row") < whole.index("The bayes attack on")
    assert whole.index("The homogeneity attack on") < whole.index("The bayes attack on"), "the order of what is known"


def test_what_an_outsider_sees(command):
    text = command("--details", holder=False).output
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
        (("--truth", "illness"), True, "it has no column 'illness', which should hold the true labels"),
        (("--truth", "who"), True, "120 of 120 cells of 'who' are not labels of the knowledge table"),
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
    assert "no sets of terms" in run("audit", release, "--attack", "linking", code=2).output


def test_a_policy_without_knowledge(folder, run, tmp_path):
    text = POLICY.replace('signs = { role = "quasi-sensitive", separator = ";", knowledge = "diseases.csv" }', "")
    text = text.split("[[require]]")
    policy = tmp_path / "policy.toml"
    policy.write_text(text[0] + 'signs = "plain"\n[[require]]' + text[1] + '[method]\nname = "mondrian"\n')
    words = ("--original", folder / "patients.csv", "--policy", policy)
    text = run("audit", folder / "release", "--attack", "linking", *words, code=2).output
    assert "no knowledge table for 'signs'" in text


def test_an_original_without_records(folder, run, tmp_path):
    empty = tmp_path / "empty.csv"
    empty.write_text("who,disease,age,sex,signs\n")
    words = ("--original", empty, "--policy", folder / "policy.toml")
    assert "no records" in run("audit", folder / "release", *words, code=2).output


def test_every_attack_that_applies(command, tmp_path):
    text = command("--truth", "disease", "--details", attack=None).output
    for part in (
        "The linking attack on signs",
        "The reidentification attack on age and sex",
        "Not run: homogeneity: the release has no sensitive column.",
        "mean risk (marketer)",
    ):
        assert part in text
    path = tmp_path / "lines.csv"
    answer = strict(command("--json", "--records", path, holder=False, attack=None).output)
    assert {"linking", "reidentification"} <= {result["attack"] for result in answer["results"]}
    assert answer["skipped"]["known-records"] == "the release has no sensitive column"
    assert {result["holder_only"] for result in answer["results"]} == {False}
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert {"linking", "reidentification"} <= {line["attack"] for line in lines}


def test_several_attacks_and_their_options(command):
    words = ("--attack", "reidentification", "--option", "fraction=0.05", "--option", "reidentification.threshold=0.1")
    answer = strict(command(*words, "--json", holder=False).output)
    assert [result["attack"] for result in answer["results"]] == ["linking", "reidentification"]
    assert answer["results"][1]["facts"]["fraction"] == 0.05
    assert answer["results"][1]["facts"]["threshold"] == 0.1


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("depth=3", "no option 'depth'"),
        ("homogeneity.fraction=0.5", "no option 'fraction'"),
        ("fraction", "is not NAME=VALUE"),
        ("fraction=2", "fraction: Input should be less than or equal to 1"),
        ("fraction=half", "fraction: Input should be a valid number"),
        ("population=nowhere.csv", "nowhere.csv"),
    ],
)
def test_wrong_options(command, word, says):
    text = command("--option", word, code=2, attack="reidentification", holder=False).output
    assert says in " ".join(text.split())


def test_the_list_of_attacks(run):
    text = run("audit", "--list").output
    found = strict(run("audit", "--list", "--json").output)["attacks"]
    assert [one["attack"] for one in found] == list(ATTACKS)
    for one in found:
        assert one["adversary"] in text
        assert one["success"] in text
        for option in one["options"]:
            assert option["means"], f"{one['attack']}: {option['name']} is not explained"
            assert f"  {option['name']}: {option['means']}" in text
    assert "Give a release" in run("audit", code=2).output


def test_a_release_of_decoys(release, hospital, run):
    known = ("--original", hospital / "patients.csv", "--policy", hospital / "policy.toml")
    text = run("audit", release, "--attack", "homogeneity", "--attack", "disclosure", "--details", *known).output
    assert "The homogeneity attack on disease" in text
    assert "The disclosure attack on disease" in text
    assert "do not publish them" in text
    # age and job are sets: people are found by their zip alone, and the reader is told what that leaves out
    assert "this release, by zip" in " ".join(text.split())
    assert "for one who knows the exact row, they are: certain 0.0%" in " ".join(text.split())
    risks = run("audit", release, "--attack", "reidentification", "--details", *known).output
    assert "'age', 'job': published as sets or groups and not matched" in " ".join(risks.split())
    outside = run("audit", release, "--attack", "homogeneity", "--details").output
    assert "an estimate from the release" in outside
    assert "holder" not in outside
    assert (
        "knowing other records discloses nothing" in run("audit", release, "--attack", "known-records", code=2).output
    )


def test_nothing_to_attack(run, tmp_path):
    (tmp_path / "plain.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "policy.toml").write_text('[attributes]\na = "plain"\nb = "plain"\n\n[method]\nname = "decoys"\n')
    run("anonymize", tmp_path / "plain.csv", tmp_path / "policy.toml", "--to", tmp_path / "release")
    text = run("audit", tmp_path / "release", "--attack", "reidentification", code=2).output
    assert "no quasi-identifier" in text
