"""No message shows a password, wherever an address was given and however wrongly it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from noren.cli.main import main
from noren.errors import NorenError, PolicyError, Problem, mask
from noren.sources.source import open_source

SECRET = "hunter2"
ADDRESSES = [
    f"postgresql://user:{SECRET}/{SECRET}pw@host/base?table=t",
    f"postgresql://user:{SECRET}/{SECRET}pw@host:5432/base",
    f"postgresql://user:{SECRET} {SECRET}@host/base?table=t",
    f"postgresql://user:{SECRET}",
    f"postgresql:user:{SECRET}@",
    f"postgresql:user:{SECRET} {SECRET}@host",
    f"postgresql:/user:{SECRET}@host/base",
    f"postgres:user:{SECRET}@host/base",
    f"jdbc:postgresql://host/base?user=me&password={SECRET}",
    f"jdbc:oracle:thin:me/{SECRET}@host:1521:base",
    f"jdbc:sqlserver://host;user=me;password={SECRET};encrypt=true",
    f"mysql+pymysql://me:{SECRET}@host/base",
    f"host=db user=me password={SECRET}",
    f"host=db user=me PASSWORD = '{SECRET} {SECRET}'",
    f"dbname=base passwd={SECRET}",
    f"s3://key:{SECRET}@bucket/table.csv",
    f"https://me:{SECRET}@host/table.csv",
    f"https://host/table.csv?user=me&access_token={SECRET}",
]
COMMANDS = {
    "init": ["init", "{}"],
    "risk": ["risk", "{}"],
    "hierarchy": ["hierarchy", "{}", "age"],
    "anonymize": ["anonymize", "{}", "policy.toml", "--to", "release"],
    "a policy": ["anonymize", "table.csv", "{}", "--to", "release"],
    "a target": ["anonymize", "table.csv", "policy.toml", "--to", "{}"],
    "verify": ["verify", "{}"],
    "an original": ["verify", "release", "--original", "{}"],
    "measure": ["measure", "{}"],
    "audit": ["audit", "{}"],
    "publish": ["publish", "release", "{}"],
    "report": ["report", "{}", "--to", "page.html"],
    "estimate": ["estimate", "{}", "--by", "ill"],
    "count": ["count", "{}", "--where", "ill=flu"],
    "export": ["export", "{}", "--to", "out"],
    "mean": ["mean", "{}", "age"],
    "regress": ["regress", "{}", "age ~ ill"],
    "compare": ["compare", "{}", "policy.toml"],
    "strength": ["strength", "{}", "ill"],
    "a command": ["{}"],
    "an option": ["init", "table.csv", "--{}"],
    "an argument too many": ["init", "table.csv", "{}", "{}", "{}"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_shows_a_password(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("name,ill\nAnn,flu\nBob,gout\n")
    (tmp_path / "policy.toml").write_text('[attributes]\nname = "identifier"\nill = "plain"\n')
    for address in ADDRESSES:
        for more in ([], ["--json"]):
            words = [word.format(address) for word in COMMANDS[command]] + more
            done = CliRunner().invoke(main, words)
            assert SECRET not in done.output, (words, done.output)
            if command != "a target":
                assert done.exit_code == 2, (words, done.output)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_error_holds_a_password(address: str, tmp_path: Path) -> None:
    with pytest.raises(NorenError) as caught:
        open_source(address)
    assert SECRET not in str(caught.value) + str(vars(caught.value))
    several = PolicyError([Problem(address, address, address)])
    for error in (NorenError(f"{address}: no.", hint=f"Try {address}"), several):
        assert SECRET not in str(error) + str(vars(error)) + repr(error)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://localhost/hospital (public.visits): no connection.",
        "attributes.age: 3 cells are missing.",
        "people@home.csv: no such file.",
        "Write it as year:2020, me@host is somebody.",
        "s3://bucket/table: the store refused.",
        "attributes.secret: the values 'a' and 'b' are missing.",
        "/data/12:30/people.csv: no such file.",
    ],
)
def test_other_messages_stay_as_they_are(text: str) -> None:
    assert mask(text) == text
