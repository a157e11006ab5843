"""The nightly fuzz run: python -m tests.fuzz.run --cases 10000 [--start 0] [--summary fuzz-summary.json]

Prints a line of progress, the seed of every failure, and a summary that a machine can read: how cases ended, why they
were refused, for `ties` cases and standard deviations by which the places of equal records decide, and for `replays`
of how many people a replay of the public curve is certain, and right, with the mechanism judged and ignored. One case:
python -m tests.fuzz.run --start SEED --cases 1
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from math import sqrt
from pathlib import Path

from tests.fuzz.case import Outcome, run_case
from tests.fuzz.ties import SURE, beyond_chance


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this long")
    parser.add_argument("--summary", type=Path, help="write the summary as JSON")
    given = parser.parse_args()
    started = time.monotonic()
    ends: Counter[tuple[str, str]] = Counter()
    refusals: Counter[str] = Counter()
    wrong: list[Outcome] = []
    places: dict[str, list[float]] = defaultdict(list)
    replays = {"judged": [0, 0], "ignored": [0, 0]}
    done = 0
    for seed in range(given.start, given.start + given.cases):
        if time.monotonic() - started > given.seconds:
            break
        with tempfile.TemporaryDirectory(prefix="noren-fuzz-") as folder:
            outcome = run_case(seed, Path(folder))
        done += 1
        ends[outcome.tag, outcome.end] += 1
        if outcome.end == "refused":
            refusals[outcome.words] += 1
        for what, number in outcome.places.items():
            for which in (outcome.tag, "all"):
                places[f"{which} {what}"].append(number)
        if outcome.replay:
            said = replays["ignored" if outcome.replay["ignored"] else "judged"]
            said[0] += int(outcome.replay["certain"])
            said[1] += int(outcome.replay["right"])
        if outcome.wrong:
            wrong.append(outcome)
            print(f"\nseed {seed} ({outcome.tag}): {outcome.words}", flush=True)
        if done % 50 == 0 or done == given.cases:
            rate = done / (time.monotonic() - started)
            print(f"{done}/{given.cases} cases, {len(wrong)} wrong, {rate:.1f}/s", file=sys.stderr, flush=True)
    ties = {name: (len(found), round(beyond_chance(found), 2)) for name, found in sorted(places.items())}
    decided = [name for name, (_, beyond) in ties.items() if beyond > SURE]
    if decided:
        print(f"places in the table decide among equal records: {decided}", flush=True)
    certain, right = replays["judged"]
    tells = right > certain / 2 + SURE * sqrt(certain) / 2  # among the two secrets of a pair
    if tells:
        print(f"a replay of the curve is certain of {certain} people and right about {right}", flush=True)
    summary = {
        "start": given.start,
        "cases": done,
        "seconds": round(time.monotonic() - started, 1),
        "wrong": [vars(outcome) for outcome in wrong],
        "ends": {f"{tag} {end}": count for (tag, end), count in sorted(ends.items())},
        "releases": sum(count for (_, end), count in ends.items() if end == "release"),
        "errors": dict(Counter(name for words in refusals.elements() for name in [words.split(":")[0]]).most_common()),
        "refusals": dict(refusals.most_common()),
        "ties": ties,
        "ties_decided": decided,
        "replays": replays,
    }
    if given.summary is not None:
        given.summary.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in summary.items() if key != "wrong"}, indent=1))
    return 1 if wrong or decided or tells else 0


if __name__ == "__main__":
    sys.exit(main())
