"""A person whom an earlier release knows keeps the same sets, or the release is refused: no way round the register."""

from __future__ import annotations

import signal
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren import files
from noren.methods import METHODS
from noren.methods.base import DrawingMethod
from noren.release import package
from noren.secret import Register
from noren.workflow import anonymize

N, D = 400, 9
ILLS = [f"ill {code}" for code in range(D)]
DRAWING = [name for name, kind in METHODS.items() if issubclass(kind, DrawingMethod)]
ASKED: dict[str, dict[str, Any]] = {
    "decoys": {"model": "frequency-l-diversity", "l": 3},
    "pram": {"model": "t-closeness", "t": 0.6},
}


def people() -> pl.DataFrame:
    """Everybody has an id, an address and a row by which an outsider recognises the two releases' rows."""
    truth = np.random.default_rng(5).integers(0, D, N)
    truth[:D] = np.arange(D)
    return pl.DataFrame(
        {
            "id": [f"Zoë-{i:04d}" for i in range(N)],
            "mail": [f"p{i}@example.org" for i in range(N)],
            "row": np.arange(N),
            "ill": [ILLS[code] for code in truth],
        }
    )


def policy(method: str = "decoys", secret: str = "ill", key: str = "id", **randomness: Any) -> nr.Policy:
    return nr.Policy(
        attributes={"id": "identifier", "mail": "identifier", "row": "plain", secret: "sensitive"},
        require=[{**ASKED[method], "on": secret}],
        method={"name": method} | ({"keep": {secret: 0.4}} if method == "pram" else {}),
        randomness={"record_key": key, **randomness},
    )


@pytest.fixture
def key(tmp_path) -> Path:
    nr.Secret.create(tmp_path / "hospital.key")
    return tmp_path / "hospital.key"


def cells(release: nr.Release, name: str = "ill") -> list[Any]:
    return release.frame().sort("row")[name].to_list()


# ---------------------------------------------------------------- the same person, written otherwise

WRITTEN: dict[str, Callable[[str], str]] = {
    "a space in front": lambda text: " " + text,
    "a tab behind": lambda text: text + "\t",
    "a hard space": lambda text: text + "\u00a0",
    "a character without a width": lambda text: "\u200b" + text[:2] + "\u00ad" + text[2:],
    "capitals": str.upper,
    "small letters": str.lower,
    "letters and accents apart": lambda text: unicodedata.normalize("NFD", text),
    "wide digits": lambda text: text.translate({ord("0") + i: 0xFF10 + i for i in range(10)}),
}


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("method", DRAWING)
def test_a_key_that_is_written_otherwise_is_the_same_person(method, written, key):
    first = nr.anonymize(people(), policy(method), secret=key)
    other = people().with_columns(pl.Series("id", [WRITTEN[written](text) for text in people()["id"]]))
    assert cells(nr.anonymize(other, policy(method), secret=key)) == cells(first)


def test_doubled_spaces_are_one(key):
    names = people().with_columns(pl.Series("id", [f"Ann {text}" for text in people()["id"]]))
    first = nr.anonymize(names, policy("decoys"), secret=key)
    for space in ("  ", " \t ", "\u2003"):
        other = names.with_columns(pl.col("id").str.replace(" ", space, literal=True))
        assert cells(nr.anonymize(other, policy("decoys"), secret=key)) == cells(first)


def test_two_keys_that_differ_in_case_alone_are_refused_as_one(key):
    twice = people().with_columns(pl.Series("id", ["ann", "ANN ", *people()["id"][2:]]))
    with pytest.raises(nr.errors.DataError, match=r"(?s)not unique.*case"):
        nr.anonymize(twice, policy(), secret=key)
    nr.anonymize(twice, policy(key_case="keep"), secret=key)


def test_keys_that_would_be_normalised_otherwise_than_before_are_refused(key):
    nr.anonymize(people(), policy(), secret=key)
    with pytest.raises(nr.errors.SecretError, match=r"case.*recorded fold, now keep"):
        nr.anonymize(people(), policy(key_case="keep"), secret=key)


# ---------------------------------------------------------------- ways round


@pytest.mark.parametrize("method", DRAWING)
def test_another_key_column_is_refused_with_what_to_do(method, key, tmp_path):
    nr.anonymize(people(), policy(method), secret=key)
    with pytest.raises(nr.errors.SecretError, match=r"'id'.*'mail'") as caught:
        nr.anonymize(people(), policy(method, key="mail"), to=tmp_path / "release", secret=key)
    assert 'record_key = "id"' in str(caught.value.hint)
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize("method", DRAWING)
def test_a_renamed_secret_is_refused_and_drawn_as_before_if_it_is_declared(method, key, tmp_path):
    first = nr.anonymize(people(), policy(method), secret=key)
    renamed = people().rename({"ill": "illness"})
    with pytest.raises(nr.errors.SecretError, match=f"'illness'.*'ill'.*{N} of these people") as caught:
        nr.anonymize(renamed, policy(method, "illness"), to=tmp_path / "release", secret=key)
    assert 'illness = "ill"' in str(caught.value.hint)
    assert not (tmp_path / "release").exists()
    same = policy(method, "illness", columns={"illness": "ill"})
    assert cells(nr.anonymize(renamed, same, secret=key), "illness") == cells(first)


def test_a_new_column_with_the_same_values_may_be_declared_as_such(key):
    nr.anonymize(people(), policy(), secret=key)
    other = people().rename({"ill": "mother"})
    nr.anonymize(other, policy("decoys", "mother", columns={"mother": "mother"}), secret=key)


def test_a_renamed_key_column_is_the_same_if_it_is_declared(key):
    first = nr.anonymize(people(), policy(), secret=key)
    renamed = people().rename({"id": "number"})
    rules = nr.Policy(
        attributes={"number": "identifier", "mail": "identifier", "row": "plain", "ill": "sensitive"},
        require=[{**ASKED["decoys"], "on": "ill"}],
        randomness={"record_key": "number", "columns": {"number": "id"}},
    )
    assert cells(nr.anonymize(renamed, rules, secret=key)) == cells(first)


@pytest.mark.parametrize("method", DRAWING)
def test_a_lost_register_is_an_error_with_the_remedy(method, key, tmp_path):
    nr.anonymize(people(), policy(method), secret=key)
    (lost,) = (path for path in tmp_path.iterdir() if path != key)
    lost.unlink()
    with pytest.raises(nr.errors.SecretError, match="no register") as caught:
        nr.anonymize(people(), policy(method), to=tmp_path / "release", secret=key)
    assert "backup" in str(caught.value.hint)
    assert not (tmp_path / "release").exists()


def test_a_copied_secret_has_no_register(key, tmp_path):
    copy = tmp_path / "copy.key"
    copy.write_bytes(key.read_bytes())
    copy.chmod(0o600)
    with pytest.raises(nr.errors.SecretError, match="no register"):
        nr.anonymize(people(), policy(), secret=copy)


# ---------------------------------------------------------------- fresh releases


@pytest.mark.parametrize("method", DRAWING)
@pytest.mark.parametrize("order", [("memoised", "fresh"), ("fresh", "memoised"), ("fresh", "fresh")])
def test_known_people_are_not_drawn_anew_unless_it_is_allowed(method, order, key, tmp_path):
    half = people().head(N // 2)
    nr.anonymize(half, policy(method, mode=order[0]), secret=key)
    with pytest.raises(nr.errors.SecretError, match=f"{N // 2} people") as caught:
        nr.anonymize(people(), policy(method, mode=order[1]), to=tmp_path / "release", secret=key)
    assert 'repeat = "allow"' in str(caught.value.hint)
    assert not (tmp_path / "release").exists()
    later = people().tail(N // 2)
    nr.anonymize(later, policy(method, mode=order[1]), secret=key)
    nr.anonymize(people(), policy(method, mode=order[1], repeat="allow"), secret=key)


@pytest.mark.parametrize("method", DRAWING)
def test_a_policy_beside_a_register_that_does_not_name_it_is_asked_too(method, key, tmp_path):
    nr.anonymize(people().head(150), policy(method), secret=key)
    file = tmp_path / "without.toml"
    file.write_text(policy(method).to_toml().split("[randomness]")[0])
    with pytest.raises(nr.errors.SecretError, match="150 people"):
        nr.anonymize(people(), file, to=tmp_path / "release")
    assert not (tmp_path / "release").exists()
    nr.anonymize(people().tail(150), file)
    with pytest.raises(nr.errors.SecretError, match="150 people"):
        nr.anonymize(people().tail(200), file)
    file.write_text(file.read_text() + '\n[randomness]\nrepeat = "allow"\n')
    nr.anonymize(people(), file)


# ---------------------------------------------------------------- what the register tells


def test_the_register_tells_nothing_without_the_secret(key, tmp_path):
    nr.anonymize(people(), policy(), secret=key)
    (path,) = (path for path in tmp_path.iterdir() if path != key)
    assert path.stat().st_mode & 0o077 == 0
    content = path.read_bytes()
    for word in ("ill", "Zoë", "zoë", "0001", "mail", "uniform"):
        assert word.encode() not in content
    assert len(content) < 9 * N + 2_000, "eight bytes a person, one a drawn column"


def test_a_register_that_was_changed_is_refused(key, tmp_path):
    nr.anonymize(people(), policy(), secret=key)
    (path,) = (path for path in tmp_path.iterdir() if path != key)
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)
    with pytest.raises(nr.errors.SecretError, match="cannot be read"):
        nr.anonymize(people(), policy(), secret=key)


# ---------------------------------------------------------------- runs that fail


def fail_now(*_, **__):
    raise OSError(28, "No space left on device")


def fail_after(parent: Path, target: Path, real: Callable, path: Path) -> None:
    """The release has its name, but not for certain after a power cut."""
    fail_now() if path == parent and target.exists() else real(path)


def take_first(target: Path, real: Callable, *given: Any) -> Any:
    """Another program is faster."""
    target.mkdir()
    (target / "theirs").write_text("first")
    return real(*given)


@pytest.mark.parametrize(
    "where", ["before the name", "at the name", "after the name", "target is taken", "verification"]
)
def test_only_runs_that_publish_enter_the_register(where, tmp_path, monkeypatch):
    """10 runs of which 6 publish leave 6 entries, and margins are charged for those only."""
    secret = nr.Secret.create(tmp_path / "s.key") and tmp_path / "s.key"
    policy = nr.Policy.parse(f"""
[attributes]
id = "identifier"
town = "plain"
ill = "sensitive"
[[require]]
model = "frequency-l-diversity"
on = "ill"
l = 2
[dependence]
most = 1.0
[randomness]
record_key = "id"
secret = "{secret}"
budget = 0.75
[[margins]]
of = ["ill"]
epsilon = 0.125
""")
    table = pl.DataFrame({"id": range(40), "town": ["Ulm", "Bonn"] * 20, "ill": ["flu", "cold", "gout", "burn"] * 10})
    published = 0
    for number in range(10):
        target, good = tmp_path / f"release-{number}", number in (0, 2, 3, 5, 8, 9)
        with monkeypatch.context() as broken:
            if good:
                pass
            elif where == "before the name":
                broken.setattr(package, "sync_directory", fail_now)
            elif where == "at the name":
                broken.setattr(package, "publish_directory", fail_now)
            elif where == "after the name":
                broken.setattr(files, "sync", partial(fail_after, tmp_path, target, files.sync))
            elif where == "target is taken":
                broken.setattr(anonymize, "make_manifest", partial(take_first, target, anonymize.make_manifest))
            else:
                broken.setattr(anonymize, "demand_verdicts", fail_now)
            try:
                nr.anonymize(table, policy, to=target)
                published += 1
            except (OSError, nr.NorenError):
                assert not good
        assert (target / "datapackage.json").exists() == good
        contents = Register.open(secret).contents
        assert contents.releases == published
        assert contents.spent == pytest.approx(0.125 * published)
    assert published == 6
    assert not list(tmp_path.glob(".*"))


def test_a_killed_run_is_recorded_where_it_may_have_published(tmp_path):
    """Killed with the register written, before or after the release has its name: it is recorded in both."""
    code = """
import os, signal, sys
import noren as nr
from noren.release import package
when, real = sys.argv[1], package.publish_directory
def publish(*given):
    if when == "after":
        real(*given)
    os.kill(os.getpid(), signal.SIGKILL)
package.publish_directory = publish
policy = nr.Policy(
    attributes={"id": "identifier", "ill": "sensitive"},
    require=[nr.models.FrequencyLDiversity(on="ill", l=2)],
    randomness={"record_key": "id", "secret": "s.key"},
)
import polars as pl
nr.anonymize(pl.DataFrame({"id": range(20), "ill": ["a", "b", "c", "d"] * 5}), policy, to="release", secret="s.key")
"""
    for when in ("before", "after"):
        folder = tmp_path / when
        folder.mkdir()
        nr.Secret.create(folder / "s.key")
        ended = subprocess.run([sys.executable, "-c", code, when], cwd=folder, capture_output=True, check=False)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert (folder / "release").exists() == (when == "after")
        assert Register.open(folder / "s.key").contents.releases == 1


def test_runs_at_once_leave_an_entry_for_each_release(tmp_path):
    """Ten runs to five places: whoever comes second to a place is not in the register."""
    nr.Secret.create(tmp_path / "s.key")
    policy = nr.Policy(
        attributes={"id": "identifier", "ill": "sensitive"},
        require=[nr.models.FrequencyLDiversity(on="ill", l=2)],
        randomness={"record_key": "id", "secret": str(tmp_path / "s.key")},
    )
    table = pl.DataFrame({"id": range(20), "ill": ["a", "b", "c", "d"] * 5})

    def run(number: int) -> bool:
        try:
            nr.anonymize(table, policy, to=tmp_path / f"release-{number % 5}")
        except nr.NorenError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(run, range(10)))
    assert sum(done) == len(list(tmp_path.glob("release-*"))) == 5
    assert Register.open(tmp_path / "s.key").contents.releases == 5
