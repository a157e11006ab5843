"""Tables as people bring them: a survey, hospital visits, a census extract with several codings, accidents."""

from __future__ import annotations

import numpy as np
import polars as pl


def survey(n: int = 3000) -> pl.DataFrame:
    """Markers of missing cells, a decimal comma, a weight, free text."""
    rng = np.random.default_rng(1)
    income = [f"{amount:.2f}".replace(".", ",") for amount in rng.lognormal(10, 1, n)]
    return pl.DataFrame(
        {
            "respid": [f"R{i:06}" for i in range(n)],
            "age": [str(age) if age < 95 else "NA" for age in rng.integers(18, 96, n)],
            "sex": rng.choice(["1", "2"], n),
            "region": rng.choice([f"region {i}" for i in range(12)], n),
            "marital": rng.choice(["m", "s", "d", "w"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "income": ["?" if hidden else text for hidden, text in zip(rng.random(n) < 0.05, income, strict=True)],
            "trust": rng.choice(["-9", "1", "2", "3", "4", "5", "6", "7"], n),
            "vote": rng.choice(["yes", "no"], n),
            "comment": [f"what somebody said about it, at some length, {i}" for i in range(n)],
            "wt": rng.lognormal(0, 0.3, n).round(4),
        }
    )


def visits(people: int = 900) -> pl.DataFrame:
    """Several rows of one person, in any order."""
    rng = np.random.default_rng(2)
    rows = rng.integers(1, 6, people)
    who = np.repeat(np.arange(people), rows)
    n = len(who)
    born = np.datetime64("1930-01-01") + rng.integers(0, 28000, people)
    usual = np.repeat(rng.integers(0, 20, people), rows)
    codes = np.where(rng.random(n) < 0.7, usual, rng.integers(0, 20, n))
    day = np.datetime64("2020-01-01") + rng.integers(0, 1500, n)
    return pl.DataFrame(
        {
            "visit_id": np.arange(n) + 100_000,
            "patient_id": [f"P{one:05}" for one in who],
            "birth_date": [str(born[one]) for one in who],
            "sex": np.repeat(rng.choice(["f", "m"], people), rows),
            "postcode": np.repeat([f"{code:05}" for code in rng.choice(np.arange(1000, 9999, 37), people)], rows),
            "admission": [f"{str(one)[8:]}.{str(one)[5:7]}.{str(one)[:4]}" for one in day],
            "diagnosis": [f"J{code:02}" for code in codes],
        }
    ).sample(fraction=1, shuffle=True, seed=1)


def census(n: int = 4000) -> pl.DataFrame:
    """One occupation in three codings, twice; an income of which a fifth is 0."""
    rng = np.random.default_rng(3)
    job = rng.integers(0, 40, n)
    return pl.DataFrame(
        {
            "SERIALNO": np.arange(n) + 2_010_000,
            "AGEP": rng.integers(0, 95, n),
            "SEX": rng.choice([1, 2], n),
            "dx02": [f"a{code}" for code in job],
            "dx10": [f"{code * 7 % 40 * 10:04}" for code in job],
            "group10": [f"{11 + code // 4}" for code in job],
            "PINCP": np.where(rng.random(n) < 0.2, 0, rng.lognormal(10, 1, n)).round(0).astype(int),
            "PWGTP": rng.integers(1, 200, n),
        }
    )


def accidents(n: int = 3000) -> pl.DataFrame:
    """Dates with slashes, times of day, places, -1 for unknown ages."""
    rng = np.random.default_rng(4)
    days = zip(rng.integers(1, 29, n), rng.integers(1, 13, n), strict=True)
    clock = zip(rng.integers(0, 24, n), rng.integers(0, 60, n), strict=True)
    return pl.DataFrame(
        {
            "accident_ref": [f"2020{i:07}" for i in range(n)],
            "date": [f"{day:02}/{month:02}/2020" for day, month in days],
            "time": [f"{hour:02}:{minute:02}" for hour, minute in clock],
            "longitude": rng.normal(0, 1, n).round(6),
            "severity": rng.choice(["fatal", "serious", "slight"], n, p=[0.1, 0.3, 0.6]),
            "age_of_driver": np.where(rng.random(n) < 0.1, -1, rng.integers(17, 95, n)),
            "sex_of_driver": rng.choice([1, 2, 3], n, p=[0.6, 0.35, 0.05]),
            "weather": rng.choice(list("12345678"), n),
        }
    )


TABLES = {"survey": survey, "visits": visits, "census": census, "accidents": accidents}


def _pick(rng: np.random.Generator, values: list[str], n: int, skew: float = 1.0) -> np.ndarray:
    """Values of which the first are common."""
    share = 1 / np.arange(1, len(values) + 1) ** skew
    return np.asarray(rng.choice(values, n, p=share / share.sum()))


def _dates(rng: np.random.Generator, n: int, first: str, days: int, form: str) -> list[str]:
    return [str(day) for day in pl.Series(np.datetime64(first) + rng.integers(0, days, n)).dt.strftime(form)]


FIRST = [
    "Anna",
    "Bert",
    "Carla",
    "David",
    "Eva",
    "Frank",
    "Greta",
    "Hans",
    "Ida",
    "Jan",
    "Karin",
    "Lars",
    "Maria",
    "Nils",
    "Olga",
    "Paul",
    "Rosa",
    "Sven",
    "Tina",
    "Uwe",
]
LAST = [
    f"{a}{b}"
    for a in ("Acker", "Berg", "Dorn", "Eber", "Feld", "Gold", "Hart", "Kron", "Lind", "Mark", "Nord", "Ober")
    for b in ("mann", "berg", "er", "stein", "hofer", "wald", "feld", "bach", "ling", "son")
]


def court(n: int = 1200) -> pl.DataFrame:
    """Names and birth dates of defendants, a charge in words, a score in bands."""
    rng = np.random.default_rng(11)
    first, last = _pick(rng, FIRST, n, 0.5), _pick(rng, LAST, n, 0.6)
    age, score = np.clip(rng.gamma(3, 8, n) + 17, 18, 90).astype(int), rng.integers(1, 11, n)
    charge = _pick(
        rng,
        ["Battery", "Theft", "Possession of Cannabis", "Driving License Suspended", "Burglary"]
        + [f"Statute {i} violation of the first kind" for i in range(90)],
        n,
        1.1,
    )
    return pl.DataFrame(
        {
            "id": np.arange(1, n + 1),
            "name": [f"{a.lower()} {b.lower()}" for a, b in zip(first, last, strict=True)],
            "first": first,
            "last": last,
            "dob": _dates(rng, n, "1950-01-01", 17000, "%m/%d/%y"),
            "age": age,
            "age_cat": np.where(age < 25, "Less than 25", np.where(age > 45, "Greater than 45", "25 - 45")),
            "sex": rng.choice(["Male", "Female"], n, p=[0.8, 0.2]),
            "race": _pick(rng, ["African-American", "Caucasian", "Hispanic", "Other", "Asian", "Native American"], n),
            "juv_fel_count": rng.poisson(0.06, n),
            "priors_count": rng.negative_binomial(1, 0.22, n),
            "c_case_number": [f"13{i:06}CF10A" for i in rng.permutation(n)],
            "c_charge_degree": rng.choice(["F", "M"], n, p=[0.64, 0.36]),
            "c_charge_desc": charge,
            "decile_score": score,
            "score_text": np.where(score < 5, "Low", np.where(score < 8, "Medium", "High")),
            "is_recid": (rng.random(n) < 0.2 + 0.05 * score).astype(int),
        }
    )


def appointments(people: int = 1500) -> pl.DataFrame:
    """Several rows of a patient; yes and no that hardly anybody has, and that age nearly determines."""
    rng = np.random.default_rng(12)
    who = np.repeat(np.arange(people), rng.choice([1, 2, 3, 6], people, p=[0.6, 0.2, 0.15, 0.05]))
    n, age = len(who), rng.integers(0, 95, people)
    ill = {
        "Hypertension": 0.03 + (age > 45) * 0.4,
        "Diabetes": 0.02 + (age > 50) * 0.2,
        "Alcoholism": (age > 18) * 0.04,
    }
    own = {name: (rng.random(people) < chance).astype(int)[who] for name, chance in ill.items()}
    return pl.DataFrame(
        {
            "PatientId": [f"{29872499824296 + 7919 * int(one)}" for one in who],
            "AppointmentID": rng.permutation(n) + 5_030_000,
            "Gender": rng.choice(["F", "M"], people, p=[0.65, 0.35])[who],
            "ScheduledDay": [
                f"{day}T{hour:02}:{minute:02}:08Z"
                for day, hour, minute in zip(
                    _dates(rng, n, "2016-04-01", 60, "%Y-%m-%d"),
                    rng.integers(7, 19, n),
                    rng.integers(0, 60, n),
                    strict=True,
                )
            ],
            "AppointmentDay": [f"{day}T00:00:00Z" for day in _dates(rng, n, "2016-05-01", 40, "%Y-%m-%d")],
            "Age": age[who],
            "Neighbourhood": _pick(rng, [f"BAIRRO {i}" for i in range(60)], people, 0.7)[who],
            "Scholarship": (rng.random(people) < 0.1).astype(int)[who],
            **own,
            "Handcap": rng.choice([0, 1, 2, 3, 4], people, p=[0.98, 0.017, 0.002, 0.0005, 0.0005])[who],
            "SMS_received": rng.integers(0, 2, n),
            "No-show": rng.choice(["No", "Yes"], n, p=[0.8, 0.2]),
        }
    )


def staff(n: int = 450) -> pl.DataFrame:
    """Codes that end in ID beside their labels, a manager's number with gaps, dates of two digits a year."""
    rng = np.random.default_rng(13)
    dept, marital, sex, perf = (
        rng.choice(k, n, p=p)
        for k, p in (
            (5, [0.65, 0.16, 0.1, 0.05, 0.04]),
            (5, [0.44, 0.4, 0.1, 0.04, 0.02]),
            (2, [0.57, 0.43]),
            (4, [0.1, 0.06, 0.78, 0.06]),
        )
    )
    post = np.where(dept == 0, rng.integers(0, 4, n), dept * 4 + rng.integers(0, 3, n))
    manager = np.where(dept == 0, rng.integers(0, 10, n), dept * 3 + 7 + rng.integers(0, 2, n))
    gone = rng.random(n) < 0.33
    return pl.DataFrame(
        {
            "Employee_Name": [f"{b}, {a}" for a, b in zip(rng.choice(FIRST, n), rng.choice(LAST, n), strict=True)],
            "EmpID": np.arange(n) + 10_000,
            "MaritalStatusID": marital,
            "GenderID": sex,
            "EmpStatusID": np.where(gone, rng.choice([4, 5], n, p=[0.2, 0.8]), 1),
            "DeptID": dept + 1,
            "PerfScoreID": perf + 1,
            "Salary": (rng.lognormal(11, 0.3, n)).astype(int),
            "Termd": gone.astype(int),
            "PositionID": post,
            "Position": [f"Position {one}" for one in post],
            "State": rng.choice(["MA", "CT", "TX", "VT", "NY"], n, p=[0.9, 0.05, 0.03, 0.01, 0.01]),
            "Zip": [f"{one:05}" for one in rng.integers(1000, 2800, n)],
            "DOB": _dates(rng, n, "1951-01-01", 15000, "%m/%d/%y"),
            "Sex": np.where(sex == 0, "F", "M "),
            "MaritalDesc": np.array(["Single", "Married", "Divorced", "Separated", "Widowed"])[marital],
            "DateofHire": _dates(rng, n, "2006-01-09", 4000, "%m/%d/%Y"),
            "DateofTermination": [
                day if out else None
                for day, out in zip(_dates(rng, n, "2012-01-09", 2400, "%m/%d/%Y"), gone, strict=True)
            ],
            "TermReason": np.where(
                gone,
                _pick(rng, ["Another position", "unhappy", "more money", "hours", "military", "retiring"], n),
                "N/A-StillEmployed",
            ),
            "Department": np.array(["Production", "IT/IS", "Sales", "Software Engineering", "Admin Offices"])[dept],
            "ManagerName": np.array([f"{a} {b}" for a, b in zip([*FIRST, *FIRST], LAST, strict=False)])[manager],
            "ManagerID": [None if one == 3 else str(one + 1) for one in manager],
            "RecruitmentSource": _pick(
                rng, ["Indeed", "LinkedIn", "Google Search", "Employee Referral", "Diversity Fair", "Website"], n
            ),
            "PerformanceScore": np.array(["PIP", "Needs Improvement", "Fully Meets", "Exceeds"])[perf],
            "EngagementSurvey": rng.integers(110, 501, n) / 100,
            "SpecialProjectsCount": np.where(dept == 1, rng.integers(3, 9, n), 0),
            "Absences": rng.integers(1, 21, n),
        }
    )


def dogs(people: int = 1800) -> pl.DataFrame:
    """German headers, people with several dogs, a breed and its kind, a quarter and its district."""
    rng = np.random.default_rng(14)
    who = np.repeat(np.arange(people), rng.choice([1, 2, 3], people, p=[0.88, 0.1, 0.02]))
    n, quarter = len(who), rng.integers(0, 34, people)
    breeds = [f"Rasse {name}" for name in LAST[:60]]
    breed = _pick(rng, breeds, n, 1.0)
    kind = {name: ("K" if i % 3 else "I") for i, name in enumerate(breeds)}
    return pl.DataFrame(
        {
            "HALTER_ID": who + 126,
            "ALTER": _pick(rng, ["41-50", "51-60", "31-40", "61-70", "21-30", "71-80", "11-20", "81-90"], people, 0.4)[
                who
            ],
            "GESCHLECHT": rng.choice(["w", "m"], people, p=[0.69, 0.31])[who],
            "STADTKREIS": (quarter // 3 + 1)[who],
            "STADTQUARTIER": (quarter // 3 * 10 + 11 + quarter % 3)[who],
            "RASSE1": breed,
            "RASSENTYP": [kind[str(one)] for one in breed],
            "GEBURTSJAHR_HUND": rng.integers(1999, 2017, n),
            "GESCHLECHT_HUND": rng.choice(["m", "w"], n),
            "HUNDEFARBE": _pick(
                rng,
                [
                    f"{a}/{b}"
                    for a in ("weiß", "schwarz", "rötlich", "grau")
                    for b in ("braun", "tricolor", "beige", "weiß")
                ],
                n,
            ),
        }
    )


def clinic_in_japan(n: int = 800) -> pl.DataFrame:
    """Japanese headers: name, telephone, age, sex, postcode, occupation, income, illness."""
    rng = np.random.default_rng(15)
    return pl.DataFrame(
        {
            "氏名": [
                f"{a}{b}"
                for a, b in zip(
                    rng.choice(list("佐鈴高田伊渡山中小加"), n),
                    rng.choice(list("一二三花子美太郎健次"), n),
                    strict=True,
                )
            ],
            "電話番号": [
                f"03-{a:04}-{b:04}" for a, b in zip(rng.integers(0, 9999, n), rng.integers(0, 9999, n), strict=True)
            ],
            "年齢": rng.integers(20, 90, n),
            "性別": rng.choice(["男", "女"], n),
            "郵便番号": [
                f"{a:03}-{b:04}" for a, b in zip(rng.integers(100, 120, n), rng.integers(0, 99, n), strict=True)
            ],
            "生年月日": _dates(rng, n, "1935-01-01", 25000, "%Y/%m/%d"),
            "職業": _pick(rng, ["会社員", "公務員", "自営業", "主婦", "学生", "無職"], n),
            "年収": (rng.lognormal(6, 0.5, n)).astype(int),
            "病名": _pick(rng, ["高血圧", "糖尿病", "風邪", "喘息", "胃炎", "骨折", "うつ病"], n),
        }
    )


def trial(people: int = 240) -> pl.DataFrame:
    """Five visits of a subject: values that hardly change, an arm that everything follows, adverse events in words."""
    rng = np.random.default_rng(16)
    who = np.repeat(np.arange(people), 5)
    n, arm, base = len(who), rng.integers(0, 3, people), rng.normal(140, 15, people)
    site = rng.integers(0, 12, people)
    return pl.DataFrame(
        {
            "USUBJID": [f"ABC-{site[one]:02}-{one:04}" for one in who],
            "SITEID": site[who] + 701,
            "VISITNUM": np.tile(np.arange(1, 6), people),
            "VISIT": np.tile(["SCREENING", "BASELINE", "WEEK 4", "WEEK 8", "WEEK 12"], people),
            "AGE": rng.integers(50, 89, people)[who],
            "SEX": rng.choice(["F", "M"], people)[who],
            "RACE": rng.choice(["WHITE", "BLACK OR AFRICAN AMERICAN", "ASIAN"], people, p=[0.88, 0.1, 0.02])[who],
            "ARM": np.array(["Placebo", "Low Dose", "High Dose"])[arm[who]],
            "ARMCD": np.array(["Pbo", "Lo", "Hi"])[arm[who]],
            "SYSBP": (base[who] - 5 * arm[who] + rng.normal(0, 4, n)).astype(int),
            "WEIGHT": (rng.normal(75, 12, people)[who] + rng.normal(0, 1, n)).round(1),
            "AETERM": np.where(
                rng.random(n) < 0.7,
                "",
                _pick(
                    rng,
                    ["PRURITUS", "ERYTHEMA", "RASH", "DIZZINESS", "NAUSEA", "COUGH", "DIARRHOEA"]
                    + [f"EVENT {i}" for i in range(40)],
                    n,
                ),
            ),
            "RFSTDTC": np.repeat(_dates(rng, people, "2012-07-01", 700, "%Y-%m-%d"), 5),
            "DTHFL": np.where(rng.random(people) < 0.02, "Y", "")[who],
        }
    )


def insurance(n: int = 1300) -> pl.DataFrame:
    """Few columns, of which charges follow nearly from the others."""
    rng = np.random.default_rng(17)
    age, smoker, bmi = rng.integers(18, 65, n), rng.random(n) < 0.2, rng.normal(30.6, 6, n)
    charges = 250 * age + smoker * 700 * bmi + rng.exponential(2000, n)
    return pl.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["male", "female"], n),
            "bmi": bmi.round(2),
            "children": rng.poisson(1, n),
            "smoker": np.where(smoker, "yes", "no"),
            "region": rng.choice(["southeast", "southwest", "northwest", "northeast"], n),
            "charges": charges.round(4),
        }
    )


def loans(n: int = 1500) -> pl.DataFrame:
    """Grades inside grades, months such as 2014-03, jobs in people's own words, mail addresses under a strange name."""
    rng = np.random.default_rng(18)
    grade, sub = _pick(rng, list("BCADEFG"), n, 0.6), rng.integers(1, 6, n)
    amount = rng.integers(2, 80, n) * 500
    rate = np.array([ord(one) - 60 for one in grade]) * 2.1 + sub * 0.4
    jobs = [
        f"{a} {b}"
        for a in ("Senior", "Junior", "Chief", "Night", "Store")
        for b in ("Nurse", "Teacher", "Driver", "Clerk", "Manager", "Cook")
    ]
    return pl.DataFrame(
        {
            "id": rng.permutation(n) + 1_077_000,
            "contact": [f"{rng.choice(FIRST).lower()}.{rng.choice(LAST).lower()}{i}@example.org" for i in range(n)],
            "loan_amnt": amount,
            "funded_amnt": amount,
            "term": rng.choice([" 36 months", " 60 months"], n, p=[0.73, 0.27]),
            "int_rate": [f"{one:.2f}%" for one in rate],
            "installment": (amount * (1 + rate / 30) / 36).round(2),
            "grade": grade,
            "sub_grade": [f"{a}{b}" for a, b in zip(grade, sub, strict=True)],
            "emp_title": np.where(
                rng.random(n) < 0.5,
                [f"{one} at branch {i % 700}" for i, one in enumerate(rng.choice(jobs, n))],
                rng.choice(jobs, n),
            ),
            "emp_length": _pick(
                rng, ["10+ years", "< 1 year", "2 years", "3 years", "4 years", "5 years", "1 year", "n/a"], n
            ),
            "home_ownership": _pick(rng, ["RENT", "MORTGAGE", "OWN", "OTHER"], n, 1.5),
            "annual_inc": (rng.lognormal(11, 0.5, n)).round(0),
            "issue_d": _dates(rng, n, "2011-01-01", 1200, "%Y-%m"),
            "loan_status": _pick(rng, ["Fully Paid", "Charged Off", "Current"], n, 1.5),
            "purpose": _pick(
                rng,
                ["debt_consolidation", "credit_card", "other", "home", "purchase", "car", "wedding", "moving", "house"],
                n,
            ),
            "zip_code": [f"{one:03}xx" for one in rng.integers(100, 999, n)],
            "addr_state": _pick(rng, [f"{a}{b}" for a in "ABCDE" for b in "KLMNO"], n),
            "dti": rng.gamma(4, 4, n).round(2),
            "pub_rec": rng.choice([0, 1, 2], n, p=[0.95, 0.045, 0.005]),
        }
    )


def wide_survey(n: int = 900) -> pl.DataFrame:
    """67 columns: items that go together, a filter, weights of 0, dates that can be read two ways."""
    rng = np.random.default_rng(19)
    trait = rng.normal(0, 1, (6, n))
    items = {
        f"q{10 + i}_{j}": np.clip(np.round(3 + trait[i] + rng.normal(0, 0.8, n)), 1, 5).astype(int)
        for i in range(6)
        for j in range(9)
    }
    works = rng.random(n) < 0.6
    return pl.DataFrame(
        {
            "caseid": np.arange(n) + 1,
            "interview": [
                f"{a:02}/{b:02}/2019" for a, b in zip(rng.integers(1, 12, n), rng.integers(1, 12, n), strict=True)
            ],
            "gender": rng.choice(["1", "2"], n),
            "yrbrn": rng.integers(1930, 2003, n),
            "region": rng.integers(1, 17, n),
            "hhsize": rng.integers(1, 6, n),
            "educ": rng.integers(1, 8, n),
            "works": np.where(works, "yes", "no"),
            "hours": np.where(works, rng.integers(8, 60, n), -9),
            "occup": np.where(works, rng.integers(11, 97, n), -9),
            "trust": rng.integers(0, 11, n),
            "lrscale": rng.choice([*range(11), 77, 88], n),
            **items,
            "pspwght": np.where(rng.random(n) < 0.03, 0.0, rng.lognormal(0, 0.4, n)).round(3),
        }
    )


def enquete(n: int = 700) -> pl.DataFrame:
    """French headers, decimals after commas, a commune and its code."""
    rng = np.random.default_rng(20)
    town = rng.integers(0, 18, n)
    return pl.DataFrame(
        {
            "nom": rng.choice(LAST, n),
            "prénom": rng.choice(FIRST, n),
            "sexe": rng.choice(["H", "F"], n),
            "date de naissance": _dates(rng, n, "1940-01-01", 22000, "%d/%m/%Y"),
            "code postal": [f"{one:05}" for one in town * 1000 + 1000],
            "commune": [f"Commune {one}" for one in town],
            "profession": _pick(rng, ["ouvrier", "cadre", "employé", "agriculteur", "retraité", "étudiant"], n),
            "revenu mensuel": [f"{one:.2f}".replace(".", ",") for one in rng.lognormal(7.5, 0.4, n)],
            "maladie": _pick(rng, ["aucune", "diabète", "asthme", "cancer", "hypertension", "dépression"], n),
            "satisfaction": rng.integers(1, 6, n),
        }
    )


def club(n: int = 600) -> pl.DataFrame:
    """Five columns: who, where, what, and a code with its label."""
    rng = np.random.default_rng(21)
    kind = rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    return pl.DataFrame(
        {
            "member": [f"{a} {b}" for a, b in zip(rng.choice(FIRST, n), rng.choice(LAST, n), strict=True)],
            "town": _pick(rng, [f"Town {i}" for i in range(30)], n),
            "kind": kind,
            "kind_label": np.array(["full", "guest", "honorary", "former"])[kind],
            "fee": rng.choice([0, 10, 25, 40, 80], n),
        }
    )


def births(n: int = 2000) -> pl.DataFrame:
    """A mother and her child: a length of pregnancy in weeks and in classes, yes and no of very different shares."""
    rng = np.random.default_rng(22)
    weeks = np.clip(np.round(rng.normal(39, 2.3, n)), 24, 43).astype(int)
    return pl.DataFrame(
        {
            "mother_age": rng.integers(15, 48, n),
            "father_age": [None if i % 7 == 0 else age for i, age in enumerate(rng.integers(16, 60, n).tolist())],
            "race": _pick(rng, ["white", "black", "asian", "other"], n),
            "married": rng.choice(["married", "not married"], n),
            "gestation": weeks,
            "premature": np.where(weeks < 37, "premie", "full term"),
            "weight_g": (weeks * 90 - 250 + rng.normal(0, 350, n)).astype(int),
            "low_weight": rng.choice(["low", "not low"], n, p=[0.08, 0.92]),
            "smoker": rng.choice(["no", "yes"], n, p=[0.87, 0.13]),
            "visits": rng.poisson(12, n),
            "gained": np.where(rng.random(n) < 0.03, 999, rng.integers(0, 80, n)),
        }
    )


MESSY = {
    one.__name__: one
    for one in (
        court,
        appointments,
        staff,
        dogs,
        clinic_in_japan,
        trial,
        insurance,
        loans,
        wide_survey,
        enquete,
        club,
        births,
    )
}
"""Tables whose drafts had to be helped."""
