"""The commands with a policy that bounds what somebody believes who knows public shares."""

from __future__ import annotations

import numpy as np

from tests.cli.conftest import strict

POLICY = """
[attributes]
job = { role = "sensitive", values = ["clerk", "cook", "miner", "nurse", "smith", "tailor"] }

[[require]]
model = "informed-belief"
on = "job"
most = 0.5
prior = "shares.csv"
"""
SHARES = {"clerk": 0.35, "cook": 0.25, "miner": 0.15, "nurse": 0.1, "smith": 0.1, "tailor": 0.05}


def test_a_release_is_made_verified_and_counted(tmp_path, run):
    jobs = np.random.default_rng(3).choice([*SHARES], 2000, p=[*SHARES.values()])
    (tmp_path / "people.csv").write_text("job\n" + "\n".join(jobs) + "\n")
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "shares.csv").write_text("job,share\n" + "".join(f"{job},{share}\n" for job, share in SHARES.items()))
    made = run("anonymize", tmp_path / "people.csv", tmp_path / "policy.toml", "--to", tmp_path / "out")
    assert "informed-belief" in made.output
    found = strict(run("verify", tmp_path / "out", "--json").output)
    (verdict,) = found["verdicts"]
    assert (verdict["model"], verdict["required"], verdict["holds"]) == ("informed-belief", 0.5, True)
    assert verdict["achieved"] <= 0.5 + 1e-6
    manifest = strict((tmp_path / "out" / "datapackage.json").read_text())["noren"]
    assert manifest["requirements"][0]["prior"] == SHARES
    counted = run("estimate", tmp_path / "out", "--by", "job").output
    assert "tailor" in counted

    (tmp_path / "policy.toml").write_text(POLICY.replace("0.5", "0.3"))
    refused = run("anonymize", tmp_path / "people.csv", tmp_path / "policy.toml", "--to", tmp_path / "no", code=2)
    assert "one value has a public share of 0.35" in refused.output
    assert not (tmp_path / "no").exists()
