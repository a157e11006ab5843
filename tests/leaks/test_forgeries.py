"""What `verify` says of forged releases: the table of docs/security.md, tried line by line."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import noren as nr
from tests.leaks.forgeries import FORGERIES, SAME_LOOK, described, forge, said
from tests.leaks.forging import BASES, make_bases, original, policy_of


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


@pytest.mark.parametrize("twin", SAME_LOOK)
def test_a_twin_counts_as_one_value(twin: str, tmp_path: Path) -> None:
    """In a policy and in a source it is refused, in a table of another tool it is judged as the value it looks like."""
    secrets = ["HIV", SAME_LOOK[twin]("HIV"), "Flu"]
    asked = [nr.models.DistinctLDiversity(on="ill", l=2)]
    with pytest.raises(nr.errors.PolicyError, match="look the same as others"):
        nr.Policy(attributes={"ill": {"role": "sensitive", "values": secrets}}, require=asked)
    policy = nr.Policy(attributes={"town": "quasi-identifier", "ill": "sensitive"}, require=asked, method="mondrian")
    rows = pl.DataFrame({"town": ["Ulm", "Ulm", "Hof", "Hof"] * 5, "ill": [*secrets[:2], "HIV", "Flu"] * 5})
    with pytest.raises(nr.errors.PolicyError, match=r"attributes\.ill: 1 value looks like another") as caught:
        nr.anonymize(rows, policy)
    assert "HIV" not in str(caught.value)
    rows.write_csv(tmp_path / "table.csv")
    assert not nr.check(tmp_path / "table.csv", policy)
    rows.with_columns(ill=pl.Series(["HIV", "Cold", "HIV", "Flu"] * 5)).write_csv(tmp_path / "other.csv")
    assert nr.check(tmp_path / "other.csv", policy)


def test_the_table_of_the_documentation_is_this_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
    assert described() in page
    accepted = {name for name, one in FORGERIES.items() if {one.policy, one.both} & {"accepted", "named"}}
    always = sum({one.alone, one.policy, one.original, one.both} == {"refused"} for one in FORGERIES.values())
    assert f"{len(FORGERIES)} forgeries" in page
    assert f"The other {always} are refused in every case" in page
    assert len(FORGERIES) >= 60
    assert accepted == {"weaker claims than the policy's, which the cells keep", "pages that were compressed otherwise"}
