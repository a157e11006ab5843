"""Writes patients.csv: invented people with signs of illness, and the diagnosis that the signs came from.

    python make_patients.py [--records 1200] [--seed 7] [--to patients.csv]

Every patient has one illness of diseases.csv, drawn by how common it is, and shows two to five of its signs. The
diagnosis is written too, so that an attack can be compared with the truth; the policy keeps it out of the release.
"""

from __future__ import annotations

import argparse
import csv
import random
from pathlib import Path

HERE = Path(__file__).parent
REGIONS = ("Harbour", "Old Town", "Northside", "Mill Valley", "Airport", "Lakes")
JOBS = ("clerk", "cook", "driver", "engineer", "nurse", "retired", "student", "teacher")
NAMES = ("Ada", "Bela", "Carla", "Dov", "Eun", "Femi", "Gita", "Hana", "Igor", "Jun", "Kofi", "Lena")


def knowledge() -> tuple[dict[str, list[str]], list[float]]:
    """The signs of every illness, and how common each is."""
    signs: dict[str, list[str]] = {}
    common: dict[str, float] = {}
    with (HERE / "diseases.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            signs.setdefault(row["label"], []).append(row["term"])
            common[row["label"]] = float(row["weight"])
    return signs, [common[label] for label in signs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--to", type=Path, default=Path("patients.csv"))
    args = parser.parse_args()
    draw = random.Random(args.seed)
    signs, common = knowledge()
    with args.to.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["name", "age", "sex", "region", "job", "signs", "diagnosis"])
        for number in range(args.records):
            age = min(94, max(16, round(draw.gauss(47, 18))))
            job = "retired" if age > 66 else "student" if age < 22 else draw.choice([j for j in JOBS if j != "retired"])
            illness = draw.choices(list(signs), common)[0]
            shown = draw.sample(signs[illness], min(len(signs[illness]), draw.randint(2, 5)))
            name = f"{draw.choice(NAMES)} {number + 1}"
            out.writerow([name, age, draw.choice("fm"), draw.choice(REGIONS), job, "; ".join(shown), illness])


if __name__ == "__main__":
    main()
