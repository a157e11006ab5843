"""What is given by mistake works, or is refused by the command with what is wrong and exit code 2."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from click.testing import CliRunner

import noren as nr
from noren.cli import main as command
from noren.cli.main import main
from noren.errors import DataError
from noren.sources.source import open_source

ROWS = "town,age,ill\n" + "".join(f"T{i % 3},{20 + i},{'flu' if i % 2 else 'gout'}\n" for i in range(30))
POLICY = """
[attributes]
town = "identifier"
age = {{ role = "sensitive", bins = "{bins}" }}
ill = "plain"
[[require]]
model = "frequency-l-diversity"
on = "age"
l = 2
"""


def refuse(place: Path | str, *words: str) -> str:
    """What `noren init` says about a table that it refuses."""
    done = CliRunner().invoke(main, ["init", str(place), *words])
    assert done.exit_code == 2, done.output
    assert "Hint" in done.output
    return done.output


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    for name in ("pipe.csv", "pipe.parquet", "pipe.arrow", "pipe.xlsx"):
        os.mkfifo(tmp_path / name)
        assert "is not a file" in refuse(tmp_path / name)
    (tmp_path / "policy.toml").write_text(POLICY.format(bins="width:10"))
    (tmp_path / "people.csv").write_text(ROWS)
    for words in (["verify", str(tmp_path / "pipe.csv")], ["measure", str(tmp_path / "pipe.csv")],
                  ["risk", str(tmp_path / "pipe.csv")], ["estimate", str(tmp_path / "pipe.csv"), "--by", "ill"],
                  ["anonymize", str(tmp_path / "people.csv"), str(tmp_path / "policy.toml"), "--to",
                   str(tmp_path / "pipe.csv")]):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "noren.cli.main", *words], capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 2, (words, done.stderr)


@pytest.mark.parametrize("words", [["init", "{}"], ["verify", "{}"], ["anonymize", "{}", "{}", "--to", "{}"]])
def test_a_name_that_is_not_utf_8_is_refused(words: list[str], tmp_path: Path) -> None:
    place = os.fsencode(tmp_path) + b"/caf\xe9.csv"
    Path(os.fsdecode(place)).write_text(ROWS)
    given = [word.encode().replace(b"{}", place) for word in words]
    done = subprocess.run([sys.executable, "-m", "noren.cli.main", *given], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "UTF-8" in done.stderr
    for data in (Path(os.fsdecode(place)), tmp_path):
        with pytest.raises(DataError, match=r"caf\\udce9\.csv: the file name is not UTF-8"):
            open_source(data)


@pytest.mark.parametrize("bins", ["quantiles:0", "quantiles:1", "quantiles:2.5"])
def test_too_few_quantiles_are_named(bins: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(ROWS)
    (tmp_path / "policy.toml").write_text(POLICY.format(bins=bins))
    with pytest.raises(
        nr.errors.PolicyError, match="the number of quantiles must be a whole number of at least 2"
    ) as caught:
        nr.anonymize(tmp_path / "people.csv", nr.Policy.load(tmp_path / "policy.toml"))
    assert [problem.where for problem in caught.value.problems] == ["attributes.age.bins"]


class Keys(pe.KmsClient):
    """A keeper of keys that keeps none."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return key_bytes.hex().encode()

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return bytes.fromhex(wrapped_key.decode())


@pytest.mark.parametrize("footer", [True, False])
def test_an_encrypted_file_is_called_encrypted(footer: bool, tmp_path: Path) -> None:
    factory = pe.CryptoFactory(lambda config: Keys())
    wanted = pe.EncryptionConfiguration("key", column_keys={"key": ["town", "age"]}, plaintext_footer=not footer)
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), wanted)
    with pq.ParquetWriter(
        tmp_path / "people.parquet", pa.schema([("town", "string"), ("age", "int64")]), encryption_properties=properties
    ) as writer:
        writer.write_table(pa.table({"town": ["Ulm"], "age": [1]}))
    assert "is encrypted" in refuse(tmp_path / "people.parquet")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_wide_encodings_are_read_with_and_without_a_mark(encoding: str, tmp_path: Path) -> None:
    text = ROWS.replace("T1", "Köln").replace("T2", "東京")
    (tmp_path / "people.csv").write_bytes(text.encode(encoding))
    source = open_source(tmp_path / "people.csv")
    assert source.columns == ("town", "age", "ill")
    towns = [town for batch in source.batches(["town"]) for town in batch.column(0).to_pylist()]
    assert towns == ["T0", "Köln", "東京"] * 10
    assert bool(source.notes) == encoding.endswith("e"), "what was guessed is said"


@pytest.mark.parametrize("content", [b"\0" * 100, b"a,b\n1,\0\n", ROWS.encode().replace(b"T2", b"T\x002")])
def test_nul_characters_are_no_text(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_bytes(content)
    assert "NUL" in refuse(tmp_path / "people.csv")
    assert "NUL" in refuse(tmp_path / "people.csv", "--encoding", "utf-8")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_nul_character_in_a_late_cell_is_refused(suffix: str, tmp_path: Path) -> None:
    towns = ["Ulm", "Bonn"] * 60_000 + ["Ko\0ln"]
    place = tmp_path / f"people.{suffix}"
    if suffix == "csv":
        place.write_text("town,ill\n" + "".join(f"{town},flu\n" for town in towns))
    else:
        pq.write_table(pa.table({"town": towns, "ill": ["flu"] * len(towns)}), place)
    assert "column 'town' holds a NUL character" in refuse(place)


def test_want_of_memory_is_called_that(tmp_path: Path) -> None:
    """Libraries that cannot be loaded say many things, and Numba says that it finds no llvmlite."""
    (tmp_path / "people.csv").write_text(ROWS)

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (450 << 20, 450 << 20))

    words = [sys.executable, "-m", "noren.cli.main", "init", str(tmp_path / "people.csv")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=little)
    assert done.returncode == 4, done.stderr
    assert "not enough memory" in done.stderr or "This process has a memory limit" in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        OSError("Could not find/load shared object file 'libllvmlite.so'"),
        ImportError("libarrow.so: failed to map segment from shared object"),
        OSError(12, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        MemoryError(),
    ],
)
def test_every_way_to_say_so_is_known(error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(command.Commands, "get_command", fail)
    monkeypatch.setattr(command.LazyCommands, "get_command", fail)
    done = CliRunner().invoke(main, ["init", "people.csv"])
    assert done.exit_code == 4
    assert "not enough memory" in done.output
