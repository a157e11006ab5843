"""What a column probably is, and why: kind, markers of missing cells, role.

Guesses lean to protection: what nothing is known about is drafted as a secret, because a wrong `plain` publishes people
and a wrong `sensitive` only costs accuracy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines.profile import ValueCounts
from noren.policy.hierarchies import Counts, drafted_spec, without
from noren.schema.edges import quantile_cuts
from noren.schema.kinds import CALENDAR, NUMERIC, sniff
from noren.schema.roles import Role
from noren.sources.source import Source

NAMES = (
    "name$ surname firstname lastname forename ssn email mail phone mobile tel fax iban passport mrn address street "
)
NAMES += "url ip$ account login licence license plate comment comments note notes remark remarks"
KEYS = "id uid uuid pid nr no num number key code$ seqn caseid idnum guid"
PERSONS = "patient person client member customer subject respondent participant pupil student employee insured user "
PERSONS += "citizen resident prisoner victim driver donor worker people pid id$ uid ssn mrn seqn idnum"
HOUSEHOLDS = "house household hh family serial hid dwelling"
EVENTS = "visit admission encounter stay episode accident event case record row order claim trip sample test hospital "
EVENTS += "ward clinic site school department region area country"
WEIGHTS = "w$ wt wts wgt weight$ weights$ pondwt perwt hhwt pwgtp wtssall wtss finalwt fnlwgt pweight dweight pspwght "
WEIGHTS += "anweight gewicht$"
BODY = "height bmi kg lb lbs birth$ newborn"
QUASI = "zip postal postcode plz city town region county state$ country district municipality province canton commune "
QUASI += (
    "sex gender geschlecht birth born dob age$ ages agep job jobs occ occp occupation soc socp profession education "
)
QUASI += "educ school schl race ethnic ethnicity marital married civil relationship nationality citizenship language "
QUASI += "employer industry indp naics workclass place location lat$ lon$ latitude longitude vehicle household hhsize "
QUASI += "children kids residence area$ ward department hospital puma time$ hour"
CLASSIC = "zip postal postcode plz sex gender geschlecht birth born dob age$ agep"
SECRET = "disease diagnosis diagnoses diag dx icd illness condition salary income earnings wage wages religion party "
SECRET += "vote crime offence drug drugs symptom outcome health treatment medication procedure hiv result score grade "
SECRET += "debt loan credit rent tax benefit sexual alcohol smoke smoking abuse severity injury politics political "
SECRET += "opinion attitude pregnant disability cause pincp wagp"
MARKERS = ("?", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "NaN", "nan", ".", "-", "--")
"""Texts that mean "missing" in any column."""
WORDS = ("na", "none", "None", "unknown", "Unknown", "missing", "Missing", "refused", "Refused", "x", "*")
"""Texts that mean "missing" among numbers or dates."""
NEGATIVE = ("-1", "-2", "-3", "-7", "-8", "-9", "-88", "-99", "-888", "-999", "-9999")
"""Numbers that mean "missing" where all others are 0 or more."""
LARGE = ("999", "9999", "99999", "999999")
MANY = 40
"""Categories beyond which a column is drafted with a remark, numbers beyond which it is drafted with bins."""
QUANTILES = 8
FREE_TEXT = 40
"""Characters in a usual cell from which a column is free text."""
FEW = 5
"""Records below which a value is rare."""
SMALL = 100
"""Records below which a table is too small to ask that values be common."""


@dataclass(frozen=True)
class Guess:
    """What is drafted for a column and why."""

    role: Role
    why: str
    options: Mapping[str, Any] = field(default_factory=dict)
    size: int = 0
    """Values that are left to hide one among."""
    names_people: bool = False

    def dropped(self, why: str) -> Guess:
        """The same column left out."""
        return replace(self, role=Role.DROP, why=why, options={}, names_people=False)


@dataclass(frozen=True)
class Seen:
    """What a table shows of a column, markers of missing cells taken out."""

    column: ValueCounts
    markers: tuple[str, ...]
    evidence: str
    kind: str
    decimal: str
    pattern: str

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def distinct(self) -> int:
        return len(self.column.counts)

    @property
    def filled(self) -> int:
        return sum(self.column.counts.values())

    @cached_property
    def counted(self) -> Counts:
        """Its values as a release would write them; long columns take a while, so they are read once."""
        return Counts.of(self.column)

    @property
    def is_amount(self) -> bool:
        """Whether the column holds numbers that are too many to be categories."""
        return self.kind in NUMERIC and self.distinct > MANY


def words_of(name: str) -> list[str]:
    """The words of a column's name: patientId, patient_id and PATIENT-ID have the same two."""
    parted = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return re.findall(r"[^\W\d_]+", parted.lower())


def says(name: str, stems: str) -> bool:
    """Whether a word of the name is one of these; "age$" must be the whole word, others may go on: birthdate."""
    found = words_of(name)
    for stem in stems.split():
        whole, text = stem.endswith("$"), stem.rstrip("$")
        short = whole or len(text) < 4
        if any(word == text or (not short and word.startswith(text)) for word in found):
            return True
    return False


def seen(column: ValueCounts) -> Seen:
    """The kind of a column with its evidence, and the texts in it that mean missing."""
    markers = markers_of(column.counts)
    left = without(column, markers)
    found = sniff(left.counts)
    return Seen(left, tuple(markers), found.why, found.kind, found.format.decimal, found.format.pattern)


def markers_of(counts: Mapping[str, int]) -> dict[str, int]:
    """Texts that mean missing, with how often they occur."""
    found = [text for text in MARKERS if text in counts]
    if "NA" in found and sum(len(text) == 2 and text.isupper() for text in counts) > 0.5 * len(counts):
        found.remove("NA")  # Namibia among countries, Naples among provinces
    rest = [text for text in counts if text not in found]
    strange = [text for text in rest if text in WORDS]
    bare = [text for text in rest if text not in strange]
    if bare and sniff(bare).kind in (*NUMERIC, *CALENDAR):
        found += strange
        rest = bare
    found += _numbers_that_mean_missing(rest, counts)
    return {text: counts[text] for text in found} if len(found) < len(counts) else {}


def _numbers_that_mean_missing(rest: Sequence[str], counts: Mapping[str, int]) -> list[str]:
    """-9 where everything else is positive, 999 where everything else is far below."""
    kind = sniff(rest).kind if rest else "string"
    if kind not in NUMERIC or len(rest) < 3:
        return []
    numbers = {text: number for text in rest if (number := _float(text)) is not None}
    found = [text for text in NEGATIVE if text in numbers]
    if any(number < 0 for text, number in numbers.items() if text not in found):
        found = []
    for text in LARGE:
        below = [number for other, number in numbers.items() if other != text and other not in found]
        if text in numbers and below and counts[text] >= FEW and max(below) < numbers[text] / 5:
            found.append(text)
    return found


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def describe(column: Seen) -> str:
    """Kind with its evidence, number of distinct values, missing cells."""
    if column.column.is_open:
        text = "very many distinct values"
    else:
        kind = "text" if column.kind == "string" else column.kind
        evidence = f" ({column.evidence})" if column.evidence not in ("texts", "no values") else ""
        text = f"{kind}{evidence}, {column.distinct:,} distinct"
    missing = column.column.missing
    text += f", {missing:,} missing" if missing else ""
    return text + (f" (marked {', '.join(map(repr, column.markers))})" if column.markers else "")


def guess(column: Seen, records: int, names: Sequence[str]) -> Guess:
    """Role and options for one column, in the table that has these columns."""
    name, distinct = column.name, column.distinct
    writing = _writing(column)
    is_key = says(name, KEYS) and (says(name, PERSONS + " " + HOUSEHOLDS + " " + EVENTS) or len(words_of(name)) == 1)
    nearly = records >= 20 and distinct > 0.9 * max(1, column.filled) and column.filled > 0.5 * records
    dated = column.kind in CALENDAR
    people = says(name, PERSONS) and not says(name, HOUSEHOLDS + " " + EVENTS)
    if says(name, NAMES) or (is_key and people):
        return Guess(Role.IDENTIFIER, "its name says that it names a person", names_people=people)
    if _free_text(column):
        return Guess(Role.DROP, "free text: nobody can say what stands in it")
    if is_key and (nearly or column.column.is_open or says(name, HOUSEHOLDS) or distinct > MANY):
        return Guess(Role.IDENTIFIER, "its name says that it numbers things: it may be looked up elsewhere")
    if column.column.is_open:
        return Guess(Role.IDENTIFIER, "too many values to hide one among the others")
    if nearly and not dated and (column.kind not in NUMERIC or _numbers_rows(column, records)):
        return Guess(Role.IDENTIFIER, "nearly every record has its own value")
    if distinct + bool(column.column.missing) <= 1:
        return Guess(Role.PLAIN, "a single value", writing)
    body = says(" ".join(names), BODY)
    if says(name, WEIGHTS) and column.kind in NUMERIC and not (says(name, "weight$ w$") and body):
        why = "a survey weight: published as it is, for estimates; one that only one person has can find that person"
        return Guess(Role.PLAIN, f"{why}: round it, or drop it", writing | {"weight": True})
    if says(name, SECRET):
        return _secret(column, records, "its name sounds like a secret")
    if says(name, QUASI) or dated:
        why = "others may know it" if says(name, QUASI) else "others may know when something happened"
        return _found_by(column, why)
    return _secret(column, records, "unknown: protected as a secret, to be safe")


def said(column: Seen, records: int, word: str) -> Guess | None:
    """Role and options for a column whose role the source itself names, as PostgreSQL does in comments; "key" is one
    that names a person. None for a word that is no role."""
    why = "the source says so"
    if word in ("key", Role.IDENTIFIER.value):
        return Guess(Role.IDENTIFIER, why, names_people=word == "key")
    if column.column.is_open:
        return None
    if word == Role.QUASI_IDENTIFIER.value:
        return _found_by(column, why)
    if word == Role.SENSITIVE.value:
        return _secret(column, records, why)
    return Guess(Role.PLAIN, why, _writing(column)) if word == Role.PLAIN.value else None


def _writing(column: Seen) -> dict[str, Any]:
    """How the column is written, where the reader of the table must be told."""
    out: dict[str, Any] = {}
    if column.kind in CALENDAR and column.pattern and "%Y-%m-%d" not in column.pattern:
        out |= {"kind": column.kind, "format": column.pattern}
    if column.kind in NUMERIC and column.decimal != ".":
        out["decimal"] = column.decimal
    if column.markers:
        out["missing_values"] = list(column.markers)
    return out


def _found_by(column: Seen, why: str) -> Guess:
    """A column by which people are found: made general until nobody stands alone."""
    options = _writing(column)
    spec = drafted_spec(column.column)
    if spec is not None:
        options["hierarchy"] = spec.model_dump(exclude_none=True)
        if spec.widths is not None:
            options["hierarchy"]["widths"] = [int(width) for width in spec.widths]
        why += "; made general step by step"
    elif column.is_amount:
        why += "; made general in intervals"
    return Guess(Role.QUASI_IDENTIFIER, why, options, column.distinct)


def _secret(column: Seen, records: int, why: str) -> Guess:
    """A secret: bins for amounts, rare values put together."""
    options, missing = _writing(column), bool(column.column.missing)
    if column.is_amount:
        counts = column.counted
        cuts = quantile_cuts(counts.numbers, counts.counts, QUANTILES)
        if cuts:
            bins = {"bins": f"quantiles:{QUANTILES}"}
            return Guess(
                Role.SENSITIVE, f"{why}; bins of about as many people", options | bins, len(cuts) + 1 + missing
            )
        return Guess(Role.DROP, "numbers that hardly differ: nothing to hide one among")
    rare = [count for count in column.column.counts.values() if count < FEW]
    size = column.distinct
    if rare and records >= SMALL and size > 2:
        options |= {"min_count": FEW, "rare": "merge"}
        size += 1 - len(rare)
        if sum(rare) > 0.1 * column.filled or size < 3:
            why += f"; {sum(rare) / column.filled:.0%} of the records have a value that fewer than {FEW} share: decide"
            why += " (shorten the codes in the table, or lower min_count), until then the draft stops here"
    elif size > MANY:
        why += "; many categories"
    return Guess(Role.SENSITIVE, why, options, size + missing)


def _free_text(column: Seen) -> bool:
    if column.kind != "string" or not column.column.counts or column.distinct < 20:
        return False
    usual = float(np.median([len(text) for text in column.column.counts]))
    return usual >= FREE_TEXT or (usual >= FREE_TEXT / 2 and column.distinct > 0.5 * column.filled)


def _numbers_rows(column: Seen, records: int) -> bool:
    """Whether whole numbers look like names of rows: none repeats, and they run on or are long."""
    if column.kind != "integer" or column.distinct < column.filled:
        return False
    numbers = [int(float(text)) for text in column.column.counts if _float(text) is not None]
    if len(numbers) < column.distinct:
        return False
    long = min(numbers) >= 10**5 and len(str(max(numbers))) == len(str(min(numbers)))
    return long or max(numbers) - min(numbers) < 2 * records


# ---------------------------------------------------------------------- how columns stand to each other


READ = 500_000
"""Records that are looked at."""
PAIRED = 20_000
"""Records on which pairs of columns are compared."""
TELLS = 0.95
"""Share of the records whose value another column must name, to say that it tells it."""
ALONE = 3
"""Fewest records with one value from which anything follows."""
TRIVIAL = 0.9
"""A column most of whose records have one value is told by anything."""
MOST_COLUMNS = 80
SMALL_TABLE = 1 << 15
"""Cells up to which a cross table of two columns is counted whole; beyond, only those that occur."""


@dataclass(frozen=True)
class Codes:
    """The first records of a table, every cell as the number of its value; missing is a value."""

    columns: Mapping[str, NDArray[np.int64]]
    records: int
    whole: bool
    """Whether these are all records."""
    eighths: Mapping[str, NDArray[np.int64]]
    """Amounts by which eighth of the records they fall into."""

    def numbers(self, names: Sequence[str]) -> NDArray[np.int64]:
        """The number of every record's combination of some columns."""
        out = np.zeros(self.records, np.int64)
        for name in names:
            codes = self.columns[name]
            _, out = np.unique(out * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
        return out

    def alone(self, names: Sequence[str], people: NDArray[np.int64] | None = None) -> float:
        """The share of people who are the only ones with their combination of some columns."""
        key = self.numbers(names)
        if people is None:
            return float((np.bincount(key)[key] == 1).mean()) if self.records else 0.0
        pairs = np.unique(np.stack([key, people], axis=1), axis=0)
        lonely = np.bincount(pairs[:, 0])[pairs[:, 0]] == 1
        return len(np.unique(pairs[lonely, 1])) / max(1, len(np.unique(people)))


def read_codes(source: Source, names: Sequence[str], amounts: Sequence[str] = ()) -> Codes:
    """The codes of some columns in the first records; amounts also in eighths."""
    import polars as pl

    parts: dict[str, list[Any]] = {name: [] for name in names}
    records, whole = 0, True
    for batch in source.batches(list(names)):
        if records >= READ:
            whole = False
            break
        for name in names:
            column = pl.from_arrow(batch.column(name))
            assert isinstance(column, pl.Series)
            parts[name].append(column.cast(pl.String))
        records += batch.num_rows
    columns, eighths = {}, {}
    for name, pieces in parts.items():
        joined = pl.concat(pieces) if pieces else pl.Series([], dtype=pl.String)
        columns[name] = joined.rank("dense").fill_null(0).to_numpy().astype(np.int64)
        if name in amounts:
            ranks = joined.str.replace(",", ".").cast(pl.Float64, strict=False).rank("average")
            eighths[name] = ((ranks - 0.5) * 8 / max(1, records)).floor().fill_null(-1).to_numpy().astype(np.int64) + 1
    return Codes(columns, records, whole, eighths)


class Pairing:
    """One column of the records on which pairs are compared: what a pair asks of it is counted once."""

    def __init__(self, codes: NDArray[np.int64]) -> None:
        self.codes = codes
        sizes = np.bincount(codes)
        self.width = len(sizes)
        self.trivial = not len(codes) or int(sizes.max()) > TRIVIAL * len(codes)
        self.known = np.flatnonzero(sizes[codes] >= ALONE)
        """Records about which something follows from this column."""
        self.own = codes[self.known]

    def tells(self, other: Pairing) -> bool:
        """Whether its values name those of another, for nearly all records about which anything follows."""
        if other.trivial or len(self.known) < 0.5 * len(self.codes):
            return False
        whole = len(self.known) == len(self.codes)
        pairs = self.own * other.width + (other.codes if whole else other.codes[self.known])
        if self.width * other.width <= SMALL_TABLE:
            counts = np.bincount(pairs, minlength=self.width * other.width)
            named = counts.reshape(self.width, other.width).max(axis=1).sum()
        else:
            pair, count = np.unique(pairs, return_counts=True)
            best = np.zeros(self.width, np.int64)
            np.maximum.at(best, pair // other.width, count)
            named = best.sum()
        return bool(named >= TELLS * len(self.known))


def telling(codes: Codes, names: Sequence[str]) -> dict[tuple[str, str], bool]:
    """For every ordered pair of columns whether the first tells the second; only those that do."""
    few = {name: Pairing(codes.eighths.get(name, codes.columns[name])[:PAIRED]) for name in list(names)[:MOST_COLUMNS]}
    return {(a, b): True for a, b in permutations(few, 2) if few[a].tells(few[b])}
