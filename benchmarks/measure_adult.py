"""`noren measure` against pyCANON's full report: the raw Adult table, and a table of about 3,437 Mondrian classes.

    python benchmarks/measure_adult.py --data DIR [--peers PYTHON]

DIR holds adult.csv.gz (45,222 complete rows). PYTHON is an interpreter that has pycanon (`make peers` makes one);
without it that comparison is left out. pyCANON takes about two minutes.

Both read the same CSV file and report all their figures, pyCANON nine and Noren some more; the time is CPU seconds
from the file to the figures, imports left out. Noren's is the median of several runs after a first one, and beside it
stands the whole command in a process of its own. Every figure of pyCANON is compared with the one derived from ours
(docs/peers.md); a difference ends the benchmark with an error.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from mondrian_adult import SETS, coded, order

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.peers.differences import agree, expected  # noqa: E402

from noren.engines import Recode  # noqa: E402
from noren.methods import Mondrian  # noqa: E402
from noren.models import KAnonymity  # noqa: E402
from noren.workflow.measure import Measures, measure  # noqa: E402

SECRET = "salary-class"
K = 9
"""The k at which plain Mondrian, without refinement, makes the number of classes nearest to 3,437."""
RUNS = 7
ASKED = 100


def mondrian_table(path: Path, target: Path) -> int:
    """Write Adult as plain Mondrian publishes it; how many classes that makes."""
    import polars as pl

    frame = pl.read_csv(path, infer_schema_length=0)
    table = coded(frame, SETS, SECRET, {})
    plan = Mondrian(refinement=0).recode(table, [KAnonymity(k=K)], order)
    texts = {}
    for name in SETS:
        column = plan.of(name)
        assert isinstance(column, Recode)
        texts[name] = np.array(column.nodes.labels, object)[column.data].tolist()
    made = pl.DataFrame({**texts, SECRET: frame[SECRET]})
    made.write_csv(target)
    return made.select(SETS).n_unique()


def ours(path: Path) -> tuple[Measures, float, float]:
    """The figures, the median CPU seconds of a run, and those of the command in a process of its own."""
    found = measure(path, quasi=SETS, sensitive=[SECRET])
    seconds = []
    for _ in range(RUNS):
        begin = time.process_time()
        measure(path, quasi=SETS, sensitive=[SECRET])
        seconds.append(time.process_time() - begin)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["measure", str(path), "--quasi", ",".join(SETS), "--sensitive", SECRET, "--json"]
    subprocess.run([sys.executable, "-m", "noren.cli.main", *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return found, statistics.median(seconds), command


def theirs(python: str, path: Path) -> dict:
    job = {"csv": str(path), "quasi": list(SETS), "sensitive": [SECRET]}
    runner = ROOT / "tests" / "peers" / "pycanon_run.py"
    done = subprocess.run([python, str(runner)], input=json.dumps([job]), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"pyCANON failed in {python}: {done.stderr.strip().splitlines()[-1]}")
    found: dict = json.loads(done.stdout)[0]
    return found


def compared(title: str, path: Path, python: str | None) -> None:
    print(f"\n{title}")
    found, seconds, command = ours(path)
    print(f"  Noren: {len(found.found)} figures, {seconds:.3f} CPU seconds ({command:.2f} for the whole command)")
    if python is None:
        print("  pyCANON left out: give --peers an interpreter that has it.")
        return
    answer = theirs(python, path)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    wanted = expected(found, rows, SETS, [SECRET], [])
    different = [name for name, figure in wanted.items() if not agree(answer["figures"][name], figure)]
    ratio = answer["seconds"] / seconds
    print(f"  pyCANON {answer['version']}: {len(wanted)} figures, {answer['seconds']:.1f} CPU seconds")
    print(f"  {ratio:.0f} times as long (asked {ASKED}); {answer['seconds'] / command:.0f} times the whole command")
    if different:
        sys.exit(f"  figures that differ: {', '.join(different)}")
    print(f"  all {len(wanted)} figures are those that ours imply")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--peers", help="an interpreter that has pycanon")
    args = parser.parse_args()
    path = args.data / "adult.csv.gz"
    if not path.exists():
        sys.exit(f"{path} is missing. Give --data a folder with adult.csv.gz.")
    print(f"8 quasi-identifiers ({', '.join(SETS)}), sensitive: {SECRET}")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "mondrian.csv"
        classes = mondrian_table(path, made)
        compared(f"Mondrian table, k = {K}: {classes:,} classes", made, args.peers)
    compared("Adult, raw", path, args.peers)


if __name__ == "__main__":
    main()
