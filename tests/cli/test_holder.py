"""The holder's commands: init, anonymize, secret."""

from __future__ import annotations

import re
import stat
from html.parser import HTMLParser

import pytest

import noren as nr
from noren.engines import ENGINES
from tests.cli.conftest import strict

LOCAL = re.compile(r"^(#|data:|$)")


class Links(HTMLParser):
    """Everything a browser would load or follow."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        names = ("src", "href", "xlink:href", "action", "data", "poster", "srcset")
        self.found += [value or "" for name, value in attrs if name in names]


def assert_needs_no_network(text: str) -> None:
    links = Links()
    links.feed(text)
    assert [link for link in links.found if not LOCAL.match(link)] == []
    assert "link" not in links.tags
    assert "iframe" not in links.tags
    for style in re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL):
        assert "@import" not in style
        assert "url(" not in style


def test_init_drafts_a_policy_that_anonymize_accepts(hospital, tmp_path, run):
    result = run("init", hospital / "patients.csv")
    assert "# patient_id: " in result.output
    assert 'name           = { role = "identifier" }' in result.output
    decided = "" if "[people]" in result.output else '\n[people]\nkey = "patient_id"\n'
    decided += "" if "[dependence]" in result.output else "\n[dependence]\nmost = 1.0\n"
    (tmp_path / "policy.toml").write_text(result.output + decided, encoding="utf-8")
    columns = ["patient_id", "name", "age", "zip", "job", "admission_year", "disease"]
    assert [*nr.Policy.load(tmp_path / "policy.toml").attributes] == columns
    run("anonymize", hospital / "patients.csv", tmp_path / "policy.toml", "--to", tmp_path / "release")
    run("verify", tmp_path / "release", "--original", hospital / "patients.csv", "--policy", tmp_path / "policy.toml")


def test_init_writes_a_file_and_never_over_one(hospital, tmp_path, run):
    target = tmp_path / "policy.toml"
    assert str(target) in run("init", hospital / "patients.csv", "--to", target).output
    content = target.read_text(encoding="utf-8")
    assert "exists already" in run("init", hospital / "patients.csv", "--to", target, code=2).output
    assert target.read_text(encoding="utf-8") == content


def test_a_hierarchy_is_made_and_the_policy_takes_it(hospital, tmp_path, run):
    target = tmp_path / "zip.csv"
    result = run("hierarchy", hospital / "patients.csv", "zip", "--by", "prefix", "--to", target)
    assert "levels written to" in result.output
    lines = target.read_text(encoding="utf-8").splitlines()
    assert all(line.endswith(";*") and line.count(";") == 4 for line in lines)
    assert "exists already" in run("hierarchy", hospital / "patients.csv", "zip", "--to", target, code=2).output
    answer = strict(run("hierarchy", hospital / "patients.csv", "age", "--json").output)
    assert answer.keys() == {"made", "levels", "to"}
    assert answer["levels"][1][0].startswith("below ")
    assert "needs dates" in run("hierarchy", hospital / "patients.csv", "zip", "--by", "date", code=2).output


def test_init_keeps_what_it_was_told_about_the_file(tmp_path, run):
    lines = ["who|shade", *(f"p{i}|{['röt', 'blau', 'grün', '?'][i % 4]}" for i in range(60))]
    (tmp_path / "shades.txt").write_bytes("\n".join(lines).encode("cp1252"))
    options = ("--separator", "|", "--encoding", "cp1252", "--missing", "?")
    answer = strict(run("init", tmp_path / "shades.txt", *options, "--json").output)
    assert answer.keys() == {"policy", "notes"}
    policy = nr.Policy.parse(answer["policy"])
    told = {"separator": "|", "encoding": "cp1252", "missing_values": ("?",)}
    assert policy.data.model_dump(exclude_none=True) == told
    release = nr.anonymize(tmp_path / "shades.txt", policy)
    assert set(release.column("shade").domain.values) == {"röt", "blau", "grün", "(missing)"}


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_anonymize_says_what_it_did(file_format, hospital, tmp_path, run):
    target = tmp_path / "release"
    command = ("anonymize", hospital / "patients.csv", hospital / "policy.toml", "--to", target)
    result = run(*command, "--format", file_format)
    assert f"Released 800 records to {target}" in result.output
    assert "holds" in result.output
    assert "FAILS" not in result.output
    assert sorted(path.name for path in target.iterdir()) == ["README.md", f"data.{file_format}", "datapackage.json"]


def test_anonymize_as_json(hospital, tmp_path, run):
    command = ("anonymize", hospital / "patients.csv", hospital / "policy.toml", "--to", tmp_path / "release", "--json")
    answer = strict(run(*command).output)
    assert answer.keys() == {
        "release", "records", "dropped", "suppressed", "losses", "randomness", "designs",
        "verdicts", "notes", "replayed", "guesses", "seconds", "signer",
    }  # fmt: skip
    assert answer["signer"] is None
    assert answer["release"] == str(tmp_path / "release")
    assert (answer["records"], answer["dropped"], answer["randomness"]) == (800, 0, "fresh")
    assert answer["designs"]["disease"] == {
        "name": "uniform-decoys", "d": 24, "eta": 3, "p": 1.0, "epsilon": None,
    }  # fmt: skip
    assert {verdict["holds"] for verdict in answer["verdicts"]} == {True}
    assert [v["column"] for v in answer["verdicts"]] == ["age", "job", "disease"]


def test_an_existing_target_is_refused(hospital, release, tmp_path, run):
    before = sorted(path.read_bytes() for path in release.iterdir())
    command = ("anonymize", hospital / "patients.csv", hospital / "policy.toml")
    assert "exists already" in run(*command, "--to", release, code=2).output
    assert sorted(path.read_bytes() for path in release.iterdir()) == before
    for name in ("a file", "an empty directory", "a dangling link"):
        target = tmp_path / name
        if name == "a file":
            target.write_text("here first")
        elif name == "a dangling link":
            target.symlink_to(tmp_path / "nowhere")
        else:
            target.mkdir()
        assert "exists already" in run(*command, "--to", target, code=2).output


def test_a_target_under_a_file_is_refused_in_words(hospital, tmp_path, run):
    (tmp_path / "file").write_text("here first")
    command = ("anonymize", hospital / "patients.csv", hospital / "policy.toml", "--to", tmp_path / "file" / "release")
    result = run(*command, code=2)
    assert "cannot be made" in result.output


def test_a_bad_policy_gets_all_its_problems_at_once(hospital, tmp_path, run):
    text = (hospital / "policy.toml").read_text(encoding="utf-8")
    text = text.replace('role = "quasi-identifier" }', 'role = "quasi" }').replace("l = 3", "l = 1")
    text = text.replace("[method]", "[methods]")
    text += '\n[[require]]\nmodel = "distinct-l-diversity"\non = "desease"\nl = 2\n'
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    (tmp_path / "disease.csv").write_bytes((hospital / "disease.csv").read_bytes())
    command = ("anonymize", hospital / "patients.csv", tmp_path / "policy.toml", "--to", tmp_path / "release")
    result = run(*command, code=2)
    for part in ("unknown role 'quasi'", "require[1].l", "no column 'desease'", "unknown section 'methods'", "Hint: "):
        assert part in result.output
    assert "problems" in result.output
    assert "Traceback" not in result.output
    answer = strict(run(*command, "--json", code=2).output)
    assert answer.keys() == {"error", "message", "hint", "problems"}
    assert answer["error"] == "PolicyError"
    assert len(answer["problems"]) >= 4
    assert not (tmp_path / "release").exists()


def test_a_policy_that_does_not_fit_the_table_gets_all_its_problems_at_once(hospital, tmp_path, run):
    text = (hospital / "policy.toml").read_text(encoding="utf-8")
    text = text.replace("zip            =", "postcode       =").replace(
        "bins = [0, 18, 30, 45, 60, 75, 120]", "bins = [0, 18, 30]"
    )
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    tree = (hospital / "disease.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "disease.csv").write_text("".join(line for line in tree if "Asthma" not in line), encoding="utf-8")
    command = ("anonymize", hospital / "patients.csv", tmp_path / "policy.toml", "--to", tmp_path / "release")
    result = run(*command, code=2)
    for part in ("has the column 'zip'", "has no column 'postcode'", "cells lie outside 0..30", "J45 Asthma"):
        assert part in result.output


def test_a_requirement_that_is_not_met_is_exit_code_1(hospital, tmp_path, run):
    text = (hospital / "policy.toml").read_text(encoding="utf-8") + "parameters.job = { eta = 3, p = 0.9 }\n"
    text = text.replace("[method]", '[[require]]\nmodel = "t-closeness"\non = "job"\nt = 0.1\n\n[method]')
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    (tmp_path / "disease.csv").write_bytes((hospital / "disease.csv").read_bytes())
    command = ("anonymize", hospital / "patients.csv", tmp_path / "policy.toml", "--to", tmp_path / "release")
    assert "nothing is published" in run(*command, code=1).output
    assert strict(run(*command, "--json", code=1).output)["error"] == "RequirementNotMet"
    assert not (tmp_path / "release").exists()


def test_the_report_is_one_page_that_loads_nothing(hospital, tmp_path, run):
    report = tmp_path / "reports" / "report.html"
    command = ("anonymize", hospital / "patients.csv", hospital / "policy.toml", "--to", tmp_path / "release")
    assert str(report) in run(*command, "--report", report).output
    text = report.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "Holder only" in text
    for word in ("frequency-l-diversity", "disease", "800 records", "est guess at a secret"):
        assert word in text
    assert_needs_no_network(text)
    assert "<script" not in text
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert [path.name for path in report.parent.iterdir()] == ["report.html"]
    assert "Holder only" not in (tmp_path / "release" / "datapackage.json").read_text(encoding="utf-8")


def test_the_report_writes_names_as_text(tmp_path, run):
    """A column called like a tag stays a name."""
    (tmp_path / "data.csv").write_text(
        "\n".join(["<script>x</script>,s", *(f"{i % 2},{'abc'[i % 3]}" for i in range(30))])
    )
    (tmp_path / "policy.toml").write_text(
        'title = "<img src=x>"\n[attributes]\n"<script>x</script>" = "plain"\ns = "sensitive"\n'
        '[[require]]\nmodel = "frequency-l-diversity"\non = "s"\nl = 2\n'
    )
    command = ("anonymize", tmp_path / "data.csv", tmp_path / "policy.toml", "--to", tmp_path / "release")
    run(*command, "--report", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    links = Links()
    links.feed(text)
    assert not {"script", "img"} & links.tags
    assert "&lt;script&gt;" in text


def test_a_secret_is_for_its_owner_alone_and_is_never_overwritten(tmp_path, run):
    key = tmp_path / "hospital.key"
    result = run("secret", key)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    content = key.read_text()
    assert content.split()[1] not in result.output
    assert nr.Secret.load(key).fingerprint in result.output
    assert "never overwritten" in run("secret", key, code=2).output
    assert key.read_text() == content
    answer = strict(run("secret", tmp_path / "other.key", "--json").output)
    assert answer == {
        "secret": str(tmp_path / "other.key"),
        "fingerprint": nr.Secret.load(tmp_path / "other.key").fingerprint,
    }


def test_a_secret_repeats_the_decoys(hospital, tmp_path, run):
    key = tmp_path / "hospital.key"
    run("secret", key)
    text = (hospital / "policy.toml").read_text(encoding="utf-8") + '\n[randomness]\nrecord_key = "patient_id"\n'
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    (tmp_path / "disease.csv").write_bytes((hospital / "disease.csv").read_bytes())
    command = ("anonymize", hospital / "patients.csv", tmp_path / "policy.toml")
    assert "no secret is given" in run(*command, "--to", tmp_path / "none", code=2).output
    frames = []
    for name in ("first", "second"):
        answer = strict(run(*command, "--to", tmp_path / name, "--secret", key, "--json").output)
        assert answer["randomness"] == "memoised"
        frame = nr.open_release(tmp_path / name).frame()
        frames.append(sorted(map(str, frame.rows())))
    assert frames[0] == frames[1]


def test_paths_may_be_written_in_any_script(hospital, tmp_path, run):
    folder = tmp_path / "病院 größe"
    folder.mkdir()
    data = folder / "患者 ähnlich.csv"
    data.write_bytes((hospital / "patients.csv").read_bytes())
    (folder / "disease.csv").write_bytes((hospital / "disease.csv").read_bytes())
    (folder / "правила.toml").write_bytes((hospital / "policy.toml").read_bytes())
    target = folder / "公開 версия"
    report = folder / "отчёт.html"
    assert str(target) in run("anonymize", data, folder / "правила.toml", "--to", target, "--report", report).output
    assert run("verify", target, "--original", data).output.startswith(str(target))
    picture = folder / "図.svg"
    run("estimate", target, "--by", "job", "--plot", picture)
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    assert report.exists()


def test_the_engine_is_one_of_the_registry(hospital, run, tmp_path):
    given = ("anonymize", hospital / "patients.csv", hospital / "policy.toml", "--to", tmp_path / "release")
    assert "'abacus' is not" in run(*given, "--engine", "abacus", code=2).output
    assert not (tmp_path / "release").exists()
    assert strict(run(*given, "--engine", "local", "--json").output)["records"] == 800
    assert all(name in run("anonymize", "--help").output for name in ENGINES)


def test_an_address_is_passed_on_as_it_was_typed(hospital, run, tmp_path):
    given = ("gopher://host//table", hospital / "policy.toml", "--to", tmp_path / "release")
    assert "cannot read from gopher://" in run("anonymize", *given, code=2).output


def typed_wrongly(folder, tmp_path):
    """The policy of the hospital with a misspelling, and with sets too small for columns that disclose each other."""
    text = (folder / "policy.toml").read_text(encoding="utf-8").replace("l = 3", "l = 2").replace("zip  ", "zipp ")
    (tmp_path / "disease.csv").write_bytes((folder / "disease.csv").read_bytes())
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    return tmp_path / "policy.toml"


def test_a_refusal_names_the_command_that_finds_a_way_and_its_policy_runs(hospital, tmp_path, run):
    policy, data = typed_wrongly(hospital, tmp_path), hospital / "patients.csv"
    refused = run("anonymize", data, policy, "--to", tmp_path / "release", code=2)
    assert f"A policy that works: noren fix {data} {policy}" in refused.output
    found = strict(run("anonymize", data, policy, "--to", tmp_path / "release", "--json", code=2).output)
    assert found["way_out"] == f"noren fix {data} {policy}"
    assert not (tmp_path / "release").exists()
    said = run("fix", data, policy, "--to", tmp_path / "fixed.toml").output
    assert "changed: use the policy's lines about 'zipp' for 'zip'" in said
    assert "disclose each other" in said
    assert "# was: zipp" in (tmp_path / "fixed.toml").read_text(encoding="utf-8")
    run("anonymize", data, tmp_path / "fixed.toml", "--to", tmp_path / "release")


def test_fix_lists_alternatives_with_their_price(hospital, tmp_path, run):
    found = strict(run("fix", hospital / "patients.csv", typed_wrongly(hospital, tmp_path), "--json").output)
    change = next(one for one in found["changes"] if "disclose" in one["problem"])
    prices = [round(one["kept"], 3) for one in [change["change"], *change["alternatives"]]]
    assert len(prices) >= 3
    assert prices == sorted(prices, reverse=True)
    assert nr.Policy.parse(found["policy"], base=tmp_path).published


def test_fix_says_where_nothing_is_to_be_changed(hospital, run):
    result = run("fix", hospital / "patients.csv", hospital / "policy.toml")
    assert "runs without changes" in result.output
    assert (hospital / "policy.toml").read_text(encoding="utf-8") in result.output
