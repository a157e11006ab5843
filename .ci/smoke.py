"""Runs every command of Noren once, on a thousand patients: `ENVIRONMENT/bin/python .ci/smoke.py`.

It needs nothing but Noren's own dependencies. A command that `noren --help` lists and nothing here calls is a failure.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from noren.cli.main import main as noren

CALLS = """
demo --records 1000 --to home
risk home/patients.csv home/policy.toml --plot risk.svg
init home/patients.csv --to draft.toml
schema --to noren.schema.json
fix home/patients.csv home/policy.toml --to fixed.toml
hierarchy home/patients.csv zip --to zip.csv
secret holder.secret
key new holder.key
anonymize home/patients.csv home/policy.toml --to release --sign holder.key --report holder.html
verify release --signer holder.key.pub
verify release --policy home/policy.toml --original home/patients.csv
measure release
audit release
report release --to report.html
estimate release --by job,disease --plot jobs.png
describe release
count release --where job=Nurse
mean release age --by disease@2 --plot age.html
variance release age
quantile release age --at 0.25
correlation release age admission_year
difference release age --by disease@2
ratio release age --by disease@2
regress release 'age ~ C(job) + admission_year'
test release job disease@2
export release --as imputed-csv --tables 2 --to tables.csv
export release --as wide-csv --to wide.csv
compare home/patients.csv home/policy.toml --only decoys
knowledge build home/patients.csv --label disease --term job --to knowledge.csv
knowledge distance home/patients.csv home/policy.toml --column disease --d 2
"""
REFUSED = """
publish release postgresql://
studio --port 0
"""
"""Calls that need an extra, a server or a window: they must be refused with a hint (exit code 2), extra or not."""
NOT_IN_CORE = {"reproduce", "datasets", "strength", "violation-rate"}
"""Commands of `papers/`, whose own tests run them."""


def untried(listing: str) -> set[str]:
    """The commands of `noren --help` that nothing here calls, and those called here that it does not list."""
    listed = {*re.findall(r"^  ([a-z][\w-]*)  ", listing.partition("Holder:")[2], re.MULTILINE)}
    if len(listed) < 20:
        raise ValueError("`noren --help` is not read rightly: it lists fewer than 20 commands.")
    return (listed ^ {words[0] for words, _ in calls()}) - NOT_IN_CORE


def calls() -> Iterator[tuple[list[str], int]]:
    """Every call and the exit code that it must end with."""
    for lines, code in ((CALLS, 0), (REFUSED, 2)):
        yield from ((shlex.split(line), code) for line in lines.strip().splitlines())


def call(words: list[str], code: int) -> str:
    done = CliRunner().invoke(noren, words)
    if done.exit_code != code:
        sys.exit(f"noren {shlex.join(words)}: exit code {done.exit_code}\n{done.output}{done.exception!r}")
    return done.output


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        if lacking := untried(call(["--help"], 0)):
            sys.exit(f".ci/smoke.py and `noren --help` differ in: {', '.join(sorted(lacking))}")
        for words, code in calls():
            call(words, code)
        print(f"{len([*calls()])} calls of noren, {len([*Path(folder).rglob('*')])} files written: all as expected.")


if __name__ == "__main__":
    main()
