"""What `verify` says of forged releases: the table of docs/security.md, tried line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

import noren as nr
from tests.leaks.forgeries import BASES, FORGERIES, forge, make_bases, original, policy_of, said


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bases(tmp_path_factory.mktemp("bases"))


@pytest.mark.parametrize("base", BASES)
def test_an_untouched_release_is_accepted(base: str, home: Path) -> None:
    release, policy, truth = home / base / "release", policy_of(base, home / base), original(base)
    signer = home / "holder.key.pub"
    assert nr.verify(release, signer=signer).hold
    assert said(release, policy=policy, signer=signer) == "accepted"
    assert said(release, policy=policy, original=truth, signer=signer) == "accepted"


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_noticed(name: str, home: Path, tmp_path: Path) -> None:
    forgery, release = forge(home, name, tmp_path)
    policy, truth = policy_of(forgery.base, home / forgery.base), original(forgery.base)
    found = (
        said(release),
        said(release, policy=policy),
        said(release, original=truth),
        said(release, policy=policy, original=truth),
    )
    assert found == (forgery.alone, forgery.policy, forgery.original, forgery.both)
    assert said(release, signer=home / "holder.key.pub") == "refused"
