"""A hospital that does not exist: a table with the correlations a real one has, to try everything on.

No row describes a person. Age shapes the job, the region shapes the job, age and job shape the disease, and two
winters bring an influenza wave, so that an estimate which loses relationships can be seen to lose them. The
generator is seeded and statistical, which is right for test data and would be wrong for a release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

# disease: (block, chapter, weight, ages it favours, how strongly)
_DISEASES: dict[str, tuple[str, str, float, tuple[int, int], float]] = {
    "A02 Salmonella infection": ("Intestinal infections", "Infectious diseases", 1.2, (0, 40), 0.6),
    "A09 Gastroenteritis": ("Intestinal infections", "Infectious diseases", 3.5, (0, 12), 1.5),
    "B18 Chronic hepatitis": ("Viral infections", "Infectious diseases", 0.8, (30, 60), 1.0),
    "B20 HIV disease": ("Viral infections", "Infectious diseases", 0.5, (20, 50), 1.3),
    "C18 Colon cancer": ("Digestive cancers", "Cancers", 1.1, (55, 99), 2.0),
    "C34 Lung cancer": ("Cancers of chest and breast", "Cancers", 1.1, (50, 85), 2.0),
    "C50 Breast cancer": ("Cancers of chest and breast", "Cancers", 1.3, (40, 80), 1.6),
    "F32 Depression": ("Mood disorders", "Mental disorders", 2.6, (16, 65), 1.0),
    "F41 Anxiety disorder": ("Stress and anxiety", "Mental disorders", 1.9, (14, 50), 1.2),
    "F43 Burnout": ("Stress and anxiety", "Mental disorders", 1.3, (28, 60), 1.6),
    "I10 High blood pressure": ("Vessels", "Circulation", 3.4, (50, 99), 1.7),
    "I63 Stroke": ("Vessels", "Circulation", 1.4, (60, 99), 2.1),
    "I21 Heart attack": ("Heart", "Circulation", 1.7, (50, 90), 2.0),
    "I50 Heart failure": ("Heart", "Circulation", 1.5, (68, 99), 2.4),
    "J10 Influenza": ("Influenza and pneumonia", "Breathing", 1.3, (0, 99), 0.0),
    "J18 Pneumonia": ("Influenza and pneumonia", "Breathing", 2.0, (65, 99), 1.2),
    "J44 Chronic bronchitis": ("Chronic airways", "Breathing", 1.5, (50, 90), 1.5),
    "J45 Asthma": ("Chronic airways", "Breathing", 1.9, (3, 25), 1.3),
    "J60 Dust lung": ("Dust diseases of the lung", "Breathing", 0.25, (40, 80), 1.2),
    "M16 Worn hip joint": ("Joints", "Bones and muscles", 1.5, (58, 99), 2.1),
    "M51 Slipped disc": ("Back", "Bones and muscles", 1.6, (28, 65), 1.2),
    "M54 Back pain": ("Back", "Bones and muscles", 3.0, (25, 70), 1.1),
    "S52 Broken forearm": ("Fractures", "Injuries", 1.9, (4, 30), 1.4),
    "S72 Broken hip": ("Fractures", "Injuries", 1.0, (72, 99), 2.6),
}

# job: (share among those of working age, diseases it brings and how many times as often)
_JOBS: dict[str, tuple[float, dict[str, float]]] = {
    "No job": (0.09, {"F32": 2.2, "B18": 1.8}),
    "Student": (0.0, {"F41": 1.6, "S52": 1.4}),
    "Retired": (0.0, {"I50": 1.4, "S72": 1.3}),
    "Office clerk": (0.20, {"M54": 2.6, "I10": 1.4}),
    "Nurse": (0.10, {"F43": 2.6, "J10": 2.0, "M51": 1.8}),
    "Teacher": (0.09, {"F43": 3.2, "J10": 1.7}),
    "Miner": (0.06, {"J60": 30.0, "J44": 4.0, "C34": 3.0}),
    "Farmer": (0.09, {"A02": 3.0, "M16": 2.0, "S52": 1.8}),
    "Builder": (0.12, {"M51": 3.2, "S52": 2.8, "J60": 3.0}),
    "Driver": (0.10, {"M51": 1.8, "I21": 2.2, "I10": 1.5}),
    "Software developer": (0.09, {"M54": 2.2, "F41": 1.7}),
    "Lawyer": (0.06, {"F43": 2.4, "I21": 1.8}),
}

# region: (zip prefix, how many zips, share of patients, jobs that are more common there)
_REGIONS: tuple[tuple[str, int, float, dict[str, float]], ...] = (
    ("010", 12, 0.34, {"Office clerk": 1.8, "Lawyer": 2.2, "Farmer": 0.1, "Miner": 0.1}),
    ("023", 7, 0.18, {"Software developer": 4.0, "Teacher": 1.8, "Farmer": 0.2, "Miner": 0.1}),
    ("335", 7, 0.16, {"Miner": 9.0, "Driver": 1.6, "Lawyer": 0.3, "Software developer": 0.3}),
    ("527", 8, 0.17, {"Farmer": 6.0, "Builder": 1.3, "Lawyer": 0.3, "Miner": 0.2}),
    ("948", 6, 0.15, {"Builder": 1.8, "Nurse": 1.6, "Miner": 0.3}),
)

YEARS = tuple(range(2015, 2026))
_INFLUENZA = {2018: 5.0, 2019: 1.6, 2021: 0.4, 2024: 6.5, 2025: 2.0}  # times as often as in other years

_FIRST = (
    "Ada Amara Björn Camila Çelik Dmitri Elif Ewa Fatima Georg Hiroshi Ines Ivo Jürgen José Kofi Laila Lívia Łukasz "
    "Mária Mei Milan Nadia Noah Olu Ottilie Priya Rafael Ruth Sanna Søren Tariq Teresa Ulla Vera Wanda Xenia Yuki "
    "Zoë Émile"
)
_SYLLABLES = (
    "Al Bar Cor Dal Fen Gru Hal Kel Lind Mor Nar Ost Pel Ros Sal Tor Ul Var Wes Zim",
    "a ber den e in ka lo mar o ven",
    "berg dóttir feld ić kova man mura nen oğlu quist ri sen ska son ström tti",
)


def hospital_table(n: int = 20_000, seed: int = 1) -> pa.Table:
    """n made-up admissions: patient_id, name, age, zip, job, admission_year, disease. The same for the same seed."""
    import pyarrow as pa

    if n < 1:
        raise ValueError(f"n must be at least 1. Got {n} instead.")
    rng = np.random.default_rng(seed)
    age = _ages(n, rng)
    zips, region_of_zip, share = _zips()
    place = rng.choice(len(zips), n, p=share)
    job = _drawn(_job_odds(), region_of_zip[place] * 100 + age, rng)
    year = rng.choice(len(YEARS), n, p=_normalised(np.linspace(1.0, 1.35, len(YEARS))))
    disease = _drawn(_disease_odds(), (age * len(_JOBS) + job) * len(YEARS) + year, rng)
    return pa.table(
        {
            "patient_id": pa.array([f"P{number:06d}" for number in range(1, n + 1)], pa.string()),
            "name": pa.array(_names(n, rng), pa.string()),
            "age": pa.array(age, pa.int64()),
            "zip": pa.array(np.array(zips)[place].tolist(), pa.string()),
            "job": pa.array(np.array(list(_JOBS))[job].tolist(), pa.string()),
            "admission_year": pa.array(np.array(YEARS)[year], pa.int64()),
            "disease": pa.array(np.array(list(_DISEASES))[disease].tolist(), pa.string()),
        }
    )


def disease_hierarchy_csv() -> str:
    """The tree of diseases in ARX's layout: leaf;block;chapter;* with no header."""
    return "".join(f"{leaf};{block};{chapter};*\n" for leaf, (block, chapter, *_) in _DISEASES.items())


def _ages(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Hospitals see the very young, and then ever more of the old."""
    years = np.arange(100)
    odds = 0.6 + 2.2 * np.exp(-years / 3) + 1.2 * np.exp(-(((years - 71) / 17) ** 2)) + 0.5 * (years > 18)
    odds[years > 85] *= np.exp(-(years[years > 85] - 85) / 5)
    return rng.choice(years, n, p=_normalised(odds))


def _zips() -> tuple[list[str], NDArray[np.int64], NDArray[np.float64]]:
    """Zips, the region of each, and the share of patients who live there (uneven inside a region)."""
    zips, region_of, share = [], [], []
    for region, (prefix, count, weight, _) in enumerate(_REGIONS):
        inside = _normalised(1 / np.arange(1, count + 1) ** 0.6)
        zips += [f"{prefix}{1 + 7 * i:02d}" for i in range(count)]
        region_of += [region] * count
        share += (weight * inside).tolist()
    return zips, np.array(region_of), _normalised(np.array(share))


def _job_odds() -> NDArray[np.float64]:
    """Probabilities of the jobs, one row per (region, age)."""
    jobs = list(_JOBS)
    odds = np.zeros((len(_REGIONS), 100, len(jobs)))
    for region, (*_, more) in enumerate(_REGIONS):
        work = _normalised(np.array([share * more.get(job, 1.0) for job, (share, _) in _JOBS.items()]))
        for age in range(100):
            working = float(np.interp(age, [16, 25, 60, 67, 75], [0.0, 0.93, 0.93, 0.12, 0.01]))
            student = float(np.interp(age, [5, 6, 17, 27], [0.0, 0.97, 0.97, 0.03])) * (age < 32)
            retired = float(np.interp(age, [55, 60, 67, 75], [0.0, 0.1, 0.88, 0.99]))
            row = work * working
            row[jobs.index("Student")] += student
            row[jobs.index("Retired")] += retired
            row[jobs.index("No job")] += 1.0 if age < 6 else 0.02
            odds[region, age] = _normalised(row)
    return odds.reshape(-1, len(jobs))


def _disease_odds() -> NDArray[np.float64]:
    """Probabilities of the diseases, one row per (age, job, year)."""
    ages = np.arange(100)
    odds = np.empty((100, len(_JOBS), len(YEARS), len(_DISEASES)))
    for at, (name, (_, _, weight, (low, high), strength)) in enumerate(_DISEASES.items()):
        code = name.split()[0]
        outside = np.maximum(0, np.maximum(low - ages, ages - high))
        by_age = weight * np.exp(-strength * np.minimum(outside / 8, 2.5))
        by_job = np.array([more.get(code, 1.0) for _, more in _JOBS.values()])
        by_year = np.array([_INFLUENZA.get(year, 1.0) if code == "J10" else 1.0 for year in YEARS])
        odds[..., at] = by_age[:, None, None] * by_job[:, None] * by_year
    rows = odds.reshape(-1, len(_DISEASES))
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _drawn(odds: NDArray[np.float64], row: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One outcome per record, from the row of probabilities that the record points to."""
    bounds = np.cumsum(odds, axis=1)[:, :-1]
    out = np.empty(row.size, np.int64)
    for start in range(0, row.size, 100_000):
        part = slice(start, start + 100_000)
        luck = rng.random(row[part].size)
        out[part] = (luck[:, None] >= bounds[row[part]]).sum(axis=1)
    return out


def _names(n: int, rng: np.random.Generator) -> list[str]:
    first, heads, middles, tails = (text.split() for text in (_FIRST, *_SYLLABLES))
    picks = [rng.integers(0, len(parts), n).tolist() for parts in (first, heads, middles, tails)]
    return [f"{first[a]} {heads[b]}{middles[c]}{tails[d]}" for a, b, c, d in zip(*picks, strict=True)]


def _normalised(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(odds / odds.sum())


POLICY_TOML = """\
# What the hospital wants to publish, and what must hold before it may.
# Check it against the data with `noren anonymize`; it names every problem at once.

# 1. What each column means. The role decides what happens to it:
#    identifier                  names a person: dropped, never published
#    drop                        dropped as well, without naming anybody
#    quasi-identifier            an outsider may know it and recognise a person by it
#    sensitive                   nobody may learn it about a person
#    sensitive-quasi-identifier  both at once: known to some, a secret to others
#    plain                       harmless, published as it is
[attributes]
patient_id     = { role = "identifier" }
name           = { role = "identifier" }
age            = { role = "sensitive-quasi-identifier", bins = [0, 18, 30, 45, 60, 75, 120] }
zip            = { role = "quasi-identifier" }
job            = { role = "sensitive-quasi-identifier" }
admission_year = { role = "plain" }
# The tree says which diseases are alike: one line per disease, leaf;block;chapter;*
disease        = { role = "sensitive", hierarchy = "disease.csv", distance = "tree" }

#    Whose rows are whose: requirements count people. Two people may share a name, so the number says it.
[people]
key = "patient_id"

#    Age and job tell each other: pupils are young, pensioners are old. For about a sixth of the patients both sets
#    together leave one age. Noren measures it and refuses above 5%: leave one of the two out, or accept it here.
[dependence]
most = 0.25

# 2. What must hold. Nothing is published unless independent code confirms it.
#    Each published age and each published job is a set of at least two values: one is true, nobody can see which.
[[require]]
model = "frequency-l-diversity"
on = ["age", "job"]
l = 2

#    Each published disease is a set of at least three.
[[require]]
model = "frequency-l-diversity"
on = "disease"
l = 3

# 3. How to get there: hide each true value among random decoys. Recipients can still estimate counts and
#    relationships, because they know how decoys are drawn.
[method]
name = "decoys"
"""
