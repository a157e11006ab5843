"""A forged release is caught: whoever rewrites data, manifest and checksums has no key to sign them with."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli.main import main
from noren.errors import ReleaseError, SecretError
from noren.release.package import checksum, manifest_digest

PEOPLE = pl.DataFrame(
    {"town": ["Ulm", "Hof"] * 20, "job": (["cook"] * 2 + ["clerk"] * 2 + ["miner"] * 2 + ["nurse"] * 2) * 5}
)
POLICY = nr.Policy(
    attributes={"town": "plain", "job": "sensitive"}, require=[nr.models.FrequencyLDiversity(on="job", l=2)]
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    nr.SigningKey.create(folder / "holder.key")
    nr.SigningKey.create(folder / "other.key")
    nr.anonymize(PEOPLE, POLICY, to=folder / "signed", sign=folder / "holder.key")
    nr.anonymize(PEOPLE, POLICY, to=folder / "unsigned")
    return folder


@pytest.fixture
def release(home: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(home / "signed", tmp_path / "release"))


def run(*words: Any, code: int = 0, **options: Any) -> str:
    result = CliRunner().invoke(main, [str(word) for word in words], **options)
    assert result.exit_code == code, result.output
    return result.output


def forged(release: Path) -> None:
    """Another manifest and other data, with every checksum recomputed."""
    data = release / "data.parquet"
    package = json.loads((release / "datapackage.json").read_text(encoding="utf-8"))
    again = nr.anonymize(PEOPLE.head(38), POLICY)
    shutil.rmtree(release)
    again.save(release)
    package = json.loads((release / "datapackage.json").read_text(encoding="utf-8"))
    package["noren"].pop("sha256")
    package["noren"]["sha256"] = manifest_digest(package["noren"])
    assert package["resources"][0]["hash"] == f"sha256:{checksum(data)}"
    (release / "datapackage.json").write_text(json.dumps(package, ensure_ascii=False, indent=1) + "\n")


def test_a_signed_release_is_its_signers(home: Path) -> None:
    assert nr.verify(home / "signed", signer=home / "holder.key.pub").hold
    key = nr.PublicKey.load(home / "holder.key.pub")
    assert nr.open_release(home / "signed").signer == key
    said = run("verify", home / "signed", "--signer", home / "holder.key.pub")
    assert f"signed by {key.fingerprint} (as asked for)" in said
    assert "give --signer with the holder's public key" in run("verify", home / "signed")
    assert "`datapackage.sig`" in (home / "signed" / "README.md").read_text()


def test_an_unsigned_release_says_so(home: Path) -> None:
    assert nr.open_release(home / "unsigned").signer is None
    assert "checksums match, not signed" in run("verify", home / "unsigned")
    assert json.loads(run("verify", home / "unsigned", "--json"))["signer"] is None
    assert "It is not signed" in (home / "unsigned" / "README.md").read_text()
    with pytest.raises(ReleaseError, match="it is not signed"):
        nr.verify(home / "unsigned", signer=home / "holder.key.pub")
    run("verify", home / "unsigned", "--signer", home / "holder.key.pub", code=2)


def test_a_forged_manifest_with_recomputed_checksums_is_caught(home: Path, release: Path) -> None:
    signature = (release / "datapackage.sig").read_bytes()
    forged(release)
    assert nr.verify(release).hold, "without a signature nobody can tell"
    (release / "datapackage.sig").write_bytes(signature)
    with pytest.raises(ReleaseError, match=r"datapackage.json differs from what was signed"):
        nr.verify(release, signer=home / "holder.key.pub")
    with pytest.raises(ReleaseError, match=r"datapackage.json differs from what was signed"):
        nr.open_release(release)


def test_a_forgery_under_another_key_is_caught(home: Path, release: Path, tmp_path: Path) -> None:
    nr.open_release(release).save(tmp_path / "again", sign=nr.SigningKey.load(home / "other.key"))
    assert nr.verify(tmp_path / "again").hold
    with pytest.raises(ReleaseError, match=r"it is signed by [0-9a-f]{32}, not by the required signer [0-9a-f]{32}"):
        nr.verify(tmp_path / "again", signer=home / "holder.key.pub")


def test_altered_data_are_caught(home: Path, release: Path) -> None:
    with (release / "data.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(ReleaseError, match="its checksum differs"):
        nr.verify(release, signer=home / "holder.key.pub")


@pytest.mark.parametrize("cut", [0, 1, 100])
def test_a_truncated_signature_is_caught(cut: int, home: Path, release: Path) -> None:
    path = release / "datapackage.sig"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ReleaseError, match="not a complete signature"):
        nr.verify(release, signer=home / "holder.key.pub")


def test_a_signature_over_something_else_is_caught(home: Path, release: Path) -> None:
    path = release / "datapackage.sig"
    text = path.read_text()
    path.write_text(text[:-2] + ("0" if text[-2] != "0" else "1") + "\n")
    with pytest.raises(ReleaseError, match="differs from what was signed"):
        nr.open_release(release)


# ---------------------------------------------------------------- keys


def test_key_files(tmp_path: Path) -> None:
    run("key", "new", tmp_path / "mine.key")
    assert stat.S_IMODE(os.stat(tmp_path / "mine.key").st_mode) == 0o600
    made = nr.SigningKey.load(tmp_path / "mine.key")
    assert made.public == nr.PublicKey.load(tmp_path / "mine.key.pub")
    assert "masked" in repr(made)
    assert "exists already" in run("key", "new", tmp_path / "mine.key", code=2)
    os.chmod(tmp_path / "mine.key", 0o644)
    with pytest.raises(SecretError, match="open to other users"):
        nr.SigningKey.load(tmp_path / "mine.key")
    with pytest.raises(SecretError, match="is the private signing key"):
        nr.PublicKey.load(tmp_path / "mine.key")
    os.chmod(tmp_path / "mine.key", 0o600)
    os.chmod(tmp_path / "mine.key.pub", 0o600)
    with pytest.raises(SecretError, match="is not a signing key"):
        nr.SigningKey.load(tmp_path / "mine.key.pub")


def test_a_passphrase_is_asked_for_and_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.key"
    run("key", "new", path, "--passphrase", input="four plain words\nfour plain words\n")
    assert b"ENCRYPTED" in path.read_bytes()
    assert b"four plain words" not in path.read_bytes()
    with pytest.raises(SecretError, match="locked with a passphrase"):
        nr.SigningKey.load(path)
    with pytest.raises(SecretError, match="the passphrase is wrong"):
        nr.SigningKey.load(path, "other words")
    public = nr.PublicKey.load(tmp_path / "mine.key.pub")
    assert nr.SigningKey.load(path, "four plain words").public == public
    monkeypatch.setenv("NOREN_PASSPHRASE", "four plain words")
    assert nr.SigningKey.load(path).public == public


def test_the_command_signs(tmp_path: Path) -> None:
    PEOPLE.write_csv(tmp_path / "people.csv")
    (tmp_path / "policy.toml").write_text(
        '[attributes]\ntown = "plain"\njob = "sensitive"\n'
        '[[require]]\nmodel = "frequency-l-diversity"\non = "job"\nl = 2\n'
    )
    (tmp_path / "word").write_text("four plain words\n")
    run("key", "new", tmp_path / "mine.key", "--passphrase-file", tmp_path / "word")
    words = ("anonymize", tmp_path / "people.csv", tmp_path / "policy.toml", "--to", tmp_path / "release")
    said = run(*words, "--sign", tmp_path / "mine.key", code=2)
    assert "locked with a passphrase" in said
    assert not (tmp_path / "release").exists()
    run(*words, "--sign", tmp_path / "mine.key", "--passphrase-file", tmp_path / "word")
    run("verify", tmp_path / "release", "--signer", tmp_path / "mine.key.pub")


def test_a_release_in_memory_is_signed_when_it_is_saved(home: Path) -> None:
    with pytest.raises(ReleaseError, match="in memory cannot be signed"):
        nr.anonymize(PEOPLE, POLICY, sign=home / "holder.key")
    with pytest.raises(ReleaseError, match="in memory has no signature"):
        nr.verify(nr.anonymize(PEOPLE, POLICY), signer=home / "holder.key.pub")
