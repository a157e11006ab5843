"""Guess the kind, the marks of missing cells and the role of a column, with reasons.

Guesses lean to protection: what nothing is known about is drafted as a secret, because a wrong `plain` publishes people
and a wrong `sensitive` only costs accuracy.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import islice, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines.engine import ValueCounts
from noren.policy.hierarchies import Counts, drafted_spec, without
from noren.schema.column import HierarchySpec
from noren.schema.hierarchy import quantile_cuts
from noren.schema.kinds import CALENDAR, DAY_FIRST, EITHER, NUMERIC, Format, reader, sniff
from noren.schema.roles import Role
from noren.sources.source import Source

NAME, GIVEN, KEY, PERSON = ("name",), ("given",), ("key",), ("person",)
HOUSEHOLD, EVENT, WEIGHT = ("household",), ("event",), ("weight",)
BODY, CLASSIC, QUASI, SECRET = ("body",), ("classic",), ("classic", "known"), ("secret",)
"""Sections of words.toml, which a column's name is looked up in."""
MARKERS = ("?", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "NaN", "nan", ".", "-", "--")
"""Texts that mean "missing" in any column."""
WORDS = ("na", "none", "unknown", "missing", "refused", "x", "*", "ns", "nc", "nr", "nsp", "dk", "k.a.", "不明")
"""Texts that mean "missing" among numbers or dates, in small letters."""
NEGATIVE = (-1, -2, -3, -7, -8, -9, -88, -99, -888, -999, -9999)
"""Numbers that mean "missing" where all others are 0 or more."""
LARGE = (77, 88, 97, 98, 99, 777, 888, 997, 998, 999, 9999, 99999, 999999)
MANY = 40
"""Categories beyond which a column is drafted with a remark, numbers beyond which it is drafted with bins."""
QUANTILES = 8
FREE_TEXT = 40
"""Characters in a usual cell from which a column is free text."""
FEW = 5
"""Records below which a value is rare."""
SMALL = 100
"""Records below which a table is too small to ask that values be common."""
RARER = (0.02, 0.05)
"""Shares of the records below which a value is rare where a finer column disclosed too much."""
MOST_NOBODY = 0.2
"""Share of the records that may have the survey weight 0."""
MOST_RARE = 0.4
"""Share of the records with a rare value beyond which a column is dropped."""
SPACED = 0x2E80
"""From this character on, words are written without spaces between them."""
MONTH = re.compile(r"(18|19|20)\d\d-(0[1-9]|1[0-2])")
FORMS = {
    "mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.\w+"),
    "addresses of pages": re.compile(r"(https?://|www\.)\S+"),
    "telephone numbers": re.compile(r"\+?\(?\d[\d ()/.-]{5,18}\d"),
    "postal addresses": re.compile(r"(?=.*\d)(?=.*[^\W\d_]{3}.* ).{8,}"),
    "names of people": re.compile(r"([^\W\d_a-z][^\W\d_]*[.,]?[ '-]+)*[^\W\d_a-z][^\W\d_]+[.]?"),
}
"""How values look that name people or say how to reach them."""
LOOKED_AT, MOST_OF = 2_000, 0.8
"""Texts whose form is looked at, and the share of them that must have it."""
ALWAYS = ("mail addresses", "addresses of pages")
"""What is never anything else; the others must be different for most records."""
DIGITS = 5
"""Digits from which a number of one length names something."""
OWN = 0.5
"""Different values, as a share of the records, from which capitalised words are names of people rather than places."""


@dataclass(frozen=True)
class Guess:
    """The drafted role and options of a column, with the reason."""

    role: Role
    why: str
    options: Mapping[str, Any] = field(default_factory=dict)
    size: int = 0
    """Values that are left to hide one among."""
    names_people: bool = False

    def dropped(self, why: str) -> Guess:
        """Return the same column, dropped."""
        return replace(self, role=Role.DROP, why=why, options={}, names_people=False)


@dataclass(frozen=True)
class Seen:
    """The values of a column in the table, without marks of missing cells."""

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
        """Return its values as a release would write them; computed once, because it is slow for long columns."""
        return Counts.of(self.column)

    @property
    def is_amount(self) -> bool:
        """Return whether the column holds too many different numbers to be categories."""
        return self.kind in NUMERIC and self.distinct > MANY


@cache
def known_words(section: str) -> tuple[str, ...]:
    """Return the words with one meaning in all languages, in the form of column names."""
    sections = tomllib.loads(files("noren.policy").joinpath("words.toml").read_text("utf-8"))
    return tuple(bare(word) for words in sections[section].values() for word in words.split())


def bare(text: str) -> str:
    """Return a text in lower case without accents."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


def words_of(name: str) -> list[str]:
    """Return the words of a column's name: patientId, patient_id and PATIENT-ID have the same two."""
    return re.findall(r"[^\W\d_]+", bare(re.sub(r"([a-z])([A-Z])", r"\1 \2", name)))


@cache
def pattern_of(sections: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern that finds a word with one of these meanings among the words of a name."""

    def written(stem: str) -> str:
        text = stem.rstrip("$")
        if ord(text[0]) > SPACED:
            return re.escape(text)
        return rf"\b{re.escape(text)}" + (r"\b" if stem != text or len(text) < 4 else "")

    return re.compile("|".join(written(stem) for section in sections for stem in known_words(section)))


def says(name: str, sections: Sequence[str]) -> bool:
    """Return whether a word of the name has one of these meanings. "age$" must be the whole word; others may be its
    beginning (birthdate). Scripts without spaces are searched anywhere in the name."""
    return pattern_of(tuple(sections)).search(" ".join(words_of(name))) is not None


def seen(column: ValueCounts, month_first: bool = False) -> Seen:
    """Return the kind of a column with its evidence, and its marks of missing cells. Ambiguous dates are read like the
    other dates of the table."""
    markers = markers_of(column.counts)
    left = without(column, markers)
    found = sniff(left.counts)
    kind, pattern, why = found.kind, found.format.pattern, found.why
    if why == EITHER:
        read = reader_of_either(left.counts)
        pattern = DAY_FIRST[read] if month_first else read
        kind = "datetime" if "%H" in pattern else "date"
        order, other = ("month before day", read) if month_first else ("day before month", DAY_FIRST[read])
        why = f'read as {order}, which the data do not settle; if it is wrong, write format = "{other}"'
    return Seen(left, tuple(markers), why, kind, found.format.decimal, pattern)


def reader_of_either(labels: Iterable[str]) -> str:
    """Return the date format with the day first that matches an ambiguous one with the month first."""
    first = next(iter(labels))
    return next(one for one in DAY_FIRST if reader("datetime", Format(pattern=one))(first) is not None)


def see_columns(columns: Mapping[str, ValueCounts]) -> dict[str, Seen]:
    """Examine all columns of a table."""
    found = {name: seen(column) for name, column in columns.items()}
    if any(one.pattern in DAY_FIRST.values() for one in found.values()):
        found = {name: seen(columns[name], True) if one.pattern in DAY_FIRST else one for name, one in found.items()}
    return found


def markers_of(counts: Mapping[str, int]) -> dict[str, int]:
    """Return texts that probably mean missing, with their counts."""
    found = [text for text in MARKERS if text in counts]
    if "NA" in found and sum(len(text) == 2 and text.isupper() for text in counts) > 0.5 * len(counts):
        found.remove("NA")  # Namibia among countries, Naples among provinces
    rest = [text for text in counts if text not in found]
    strange = [text for text in rest if text.strip().casefold() in WORDS]
    bare = [text for text in rest if text not in strange]
    if bare and sniff(bare).kind in (*NUMERIC, *CALENDAR):
        found += strange
        rest = bare
    found += _numbers_that_mean_missing(rest, counts)
    return {text: counts[text] for text in found} if len(found) < len(counts) else {}


def _numbers_that_mean_missing(rest: Sequence[str], counts: Mapping[str, int]) -> list[str]:
    """Return numbers that probably mean missing: -9 if all others are positive, 999 if all others are much smaller."""
    kind = sniff(rest).kind if rest else "string"
    if kind not in NUMERIC or len(rest) < 3:
        return []
    numbers = {text: number for text in rest if (number := _float(text)) is not None}
    usual = [number for number in numbers.values() if number not in NEGATIVE and number not in LARGE]
    if not usual or min(usual) < 0:
        return []
    far = [number for number in LARGE if number > 5 * max(usual)]
    found = [text for text, number in numbers.items() if number in NEGATIVE]
    found += [text for text, number in numbers.items() if number in far and counts[text] >= FEW]
    return found


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def describe(column: Seen) -> str:
    """Describe a column: kind with its evidence, number of distinct values, missing cells."""
    if column.column.is_open:
        text = "very many distinct values"
    else:
        kind = "text" if column.kind == "string" else column.kind
        evidence = f" ({column.evidence})" if column.evidence not in ("texts", "no values") else ""
        text = f"{kind}{evidence}, {column.distinct:,} distinct"
    missing = column.column.missing
    text += f", {missing:,} missing" if missing else ""
    return text + (f" (marked {', '.join(map(repr, column.markers))})" if column.markers else "")


def guess(column: Seen, records: int) -> Guess:
    """Guess the role and options of one column of a table with so many records."""
    name, distinct = column.name, column.distinct
    nearly = records >= 20 and distinct > 0.9 * max(1, column.filled) and column.filled > 0.5 * records
    alone = len(words_of(name)) == 1
    numbered = alone or (_numbers_things(column) and not says(name, SECRET))
    is_key = says(name, KEY) and (numbered or says(name, (*PERSON, *HOUSEHOLD, *EVENT)))
    many = nearly or column.column.is_open or distinct > MANY
    elsewhere = says(name, (*QUASI, *EVENT))
    if says(name, GIVEN) and share_of_form(column, "names of people") > MOST_OF:
        return Guess(Role.IDENTIFIER, "its name and its values look like names of people")
    if says(name, NAME) and (column.column.is_open or distinct > FEW) and (not elsewhere or many):
        return Guess(Role.IDENTIFIER, "its name suggests that it names a person or gives contact data")
    whose = alone and says(name, PERSON) and (column.kind == "string" or _numbers_things(column))
    whose |= is_key and (says(name, PERSON) or alone)
    if whose and many and not (elsewhere or says(name, HOUSEHOLD)):
        return Guess(Role.IDENTIFIER, "its name suggests that it names a person", names_people=True)
    if (what := reaching(column)) is not None and (what in ALWAYS or not elsewhere):
        return Guess(Role.IDENTIFIER, f"it holds {what}")
    if _free_text(column):
        return Guess(Role.DROP, "free text, which may contain anything")
    dated = column.kind in CALENDAR or _are_months(column)
    finds = dated or (says(name, CLASSIC) and _are_codes(column))
    own = nearly or column.column.is_open or (many and not says(name, QUASI)) or says(name, HOUSEHOLD)
    if is_key and own and not finds:
        return Guess(Role.IDENTIFIER, "its name suggests a number that others can look up elsewhere")
    if column.column.is_open:
        return Guess(Role.IDENTIFIER, "too many different values to protect")
    if nearly and not finds and (column.kind not in NUMERIC or _numbers_rows(column, records)):
        return Guess(Role.IDENTIFIER, "nearly every record has a unique value")
    if distinct + bool(column.column.missing) <= 1:
        return Guess(Role.PLAIN, "a single value", _writing(column))
    if _is_weight(column):
        return _weight(column)
    if says(name, SECRET):
        return secret(column, records, "its name suggests a secret")
    if says(name, QUASI) or dated:
        why = "others may know it" if says(name, QUASI) else "a date that others may know"
        return found_by(column, records, why)
    return secret(column, records, "unclear meaning; treated as a secret to be safe")


def said(column: Seen, records: int, word: str) -> Guess | None:
    """Return the role and options of a column whose role the source states, as in PostgreSQL comments; "key" names a
    person. None if the word is no role."""
    why = "as the source declares"
    if word in ("key", Role.IDENTIFIER.value):
        return Guess(Role.IDENTIFIER, why, names_people=word == "key")
    if column.column.is_open:
        return None
    if word == Role.QUASI_IDENTIFIER.value:
        return found_by(column, records, why)
    if word == Role.SENSITIVE.value:
        return secret(column, records, why)
    return Guess(Role.PLAIN, why, _writing(column)) if word == Role.PLAIN.value else None


def _writing(column: Seen) -> dict[str, Any]:
    """Return how the column is written, if the reader of the table must know."""
    out: dict[str, Any] = {}
    if column.kind in CALENDAR and column.pattern and "%Y-%m-%d" not in column.pattern:
        out |= {"kind": column.kind, "format": column.pattern}
    if column.kind in NUMERIC and column.decimal != ".":
        out["decimal"] = column.decimal
    if column.markers:
        out["missing_values"] = list(column.markers)
    return out


def found_by(column: Seen, records: int, why: str, coarser: int = 0) -> Guess:
    """Draft a quasi-identifier: generalised until nobody is unique, from the start in few intervals or with merged rare
    values if more detail disclosed too much."""
    options = _writing(column)
    if coarser and column.is_amount:
        parts = max(2, QUANTILES >> (coarser - 1))
        why += f"; in {parts} intervals, because finer ones disclose too much"
        return Guess(Role.QUASI_IDENTIFIER, why, options | {"bins": f"quantiles:{parts}"}, parts)
    if coarser:
        least = max(FEW, round(records * RARER[min(coarser, len(RARER)) - 1]))
        rare = {"min_count": least, "rare": "merge"}
        why += f"; values with fewer than {least} records are merged, because more detail discloses too much"
        return Guess(Role.QUASI_IDENTIFIER, why, options | rare, column.distinct)
    if _are_months(column):
        spec: HierarchySpec | None = HierarchySpec(prefix=(4, 3))
    elif column.kind in CALENDAR and column.distinct > QUANTILES:
        spec = HierarchySpec(calendar=("month", "year", "decade"))
    else:
        spec = drafted_spec(column.column)
    if spec is not None:
        options["hierarchy"] = spec.model_dump(exclude_none=True)
        if spec.widths is not None:
            options["hierarchy"]["widths"] = [int(width) for width in spec.widths]
        why += "; generalised step by step"
    elif column.is_amount:
        why += "; generalised to intervals"
    return Guess(Role.QUASI_IDENTIFIER, why, options, column.distinct)


def secret(column: Seen, records: int, why: str, coarser: int = 0) -> Guess:
    """Draft a secret: bins for amounts, merged rare values; coarser if more detail disclosed too much."""
    options, missing = _writing(column), bool(column.column.missing)
    if column.is_amount:
        counts = column.counted
        parts = max(2, QUANTILES >> coarser)
        cuts = quantile_cuts(counts.numbers, counts.counts, parts)
        if cuts:
            bins = {"bins": f"quantiles:{parts}"}
            why += "; in intervals of about equally many people (for other edges: bins = [0, 10, 20])"
            return Guess(Role.SENSITIVE, why, options | bins, len(cuts) + 1 + missing)
        if column.kind == "integer" and counts.numbers.min() == 0:
            why += "; most values are 0, and all others become one value"
            return Guess(Role.SENSITIVE, why, options | {"top": 1}, 2 + missing)
        return Guess(Role.DROP, "numbers that hardly differ, so none can be hidden")
    least = max(FEW, round(records * RARER[min(coarser, len(RARER)) - 1])) if coarser else FEW
    rare = [count for count in column.column.counts.values() if count < least]
    size = column.distinct
    if rare and records >= SMALL and size > 2:
        share = sum(rare) / max(1, records)
        size += 1 - len(rare)
        if size < 3 or share > MOST_RARE:
            few = f"{share:.0%} of the records have a value that fewer than {least} share"
            return Guess(Role.DROP, f"{few}; to publish it, shorten the codes in the table")
        options |= {"min_count": least, "rare": "merge"}
        why += f"; values with fewer than {least} records ({sum(rare):,} in all) are merged"
    elif size > MANY:
        why += "; many categories"
    return Guess(Role.SENSITIVE, why, options, size + missing)


def _is_weight(column: Seen) -> bool:
    """Return whether a column holds survey weights: by its name, and by numbers that are rarely 0."""
    if not says(column.name, WEIGHT) or column.kind not in NUMERIC or column.distinct <= 2:
        return False
    numbers, counts = column.counted.numbers, column.counted.counts
    usual = float((numbers * counts).sum()) / max(1, column.filled)
    if numbers.min() < 0 or counts[numbers == 0].sum() > MOST_NOBODY * column.filled:
        return False
    return not says(column.name, BODY) or 0.5 < usual < 2


def _weight(column: Seen) -> Guess:
    """Draft survey weights, published exactly; records of weight 0 are dropped."""
    options = _writing(column) | {"weight": True}
    why = (
        "a survey weight: published exactly, for estimates. A weight that only one person has identifies that person: "
    )
    why += "round it, or drop the column"
    nothing = [text for text in column.column.counts if _float(text.replace(",", ".")) == 0]
    if nothing:
        options |= {"missing_values": [*options.get("missing_values", []), *nothing], "missing": "drop"}
        why += "; records of weight 0 are dropped"
    return Guess(Role.PLAIN, why, options)


def reaching(column: Seen) -> str | None:
    """Return the kind of personal data in a column (such as e-mail addresses), judged by the form of its values."""
    if column.kind != "string" or column.distinct < 20 or _are_months(column):
        return None
    for what in FORMS if column.distinct > OWN * column.filled else ALWAYS:
        if share_of_form(column, what) > MOST_OF:
            return what
    return None


def share_of_form(column: Seen, what: str) -> float:
    """Return the share of a column's texts that match this form."""
    texts = list(islice(column.column.counts, LOOKED_AT))
    return sum(len(text) < 80 and bool(FORMS[what].fullmatch(text.strip())) for text in texts) / max(1, len(texts))


def _numbers_things(column: Seen) -> bool:
    """Return whether texts are long numbers of one length, such as card or contract numbers."""
    texts = [text.strip() for text in islice(column.column.counts, LOOKED_AT)]
    return len({len(text) for text in texts}) == 1 and all(sum(map(str.isdigit, text)) >= DIGITS for text in texts)


def _are_codes(column: Seen) -> bool:
    """Return whether values are codes whose first characters denote larger units, such as postcodes."""
    spec = drafted_spec(column.column) if column.kind == "string" and column.distinct else None
    return spec is not None and spec.prefix is not None


def _are_months(column: Seen) -> bool:
    """Return whether values are months such as 2014-03."""
    return column.kind == "string" and column.distinct > 1 and all(map(MONTH.fullmatch, column.column.counts))


def _free_text(column: Seen) -> bool:
    if column.kind != "string" or not column.column.counts or column.distinct < 20:
        return False
    usual = float(np.median([len(text) for text in column.column.counts]))
    return usual >= FREE_TEXT or (usual >= FREE_TEXT / 2 and column.distinct > 0.5 * column.filled)


def _numbers_rows(column: Seen, records: int) -> bool:
    """Return whether whole numbers look like row numbers: none repeats, and they are consecutive or long."""
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
FOLLOWS = 0.8
"""Share of the records about which something must follow."""
TRIVIAL = 0.9
"""A column most of whose records have one value is told by anything."""
MOST_COLUMNS = 80
SMALL_TABLE = 1 << 15
"""Cells up to which a cross table of two columns is counted whole; beyond, only those that occur."""


@dataclass(frozen=True)
class Codes:
    """The first records of a table, with every cell as the number of its value; missing is a value."""

    columns: Mapping[str, NDArray[np.int64]]
    records: int
    whole: bool
    """Whether these are all records."""
    eighths: Mapping[str, NDArray[np.int64]]
    """Amounts by which eighth of the records they fall into."""

    def numbers(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Number every record's combination of some columns."""
        out = np.zeros(self.records, np.int64)
        for name in names:
            codes = self.columns[name]
            _, out = np.unique(out * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
        return out

    def alone(self, names: Sequence[str], people: NDArray[np.int64] | None = None) -> float:
        """Return the share of people who are unique in some columns."""
        key = self.numbers(names)
        if people is None:
            return float((np.bincount(key)[key] == 1).mean()) if self.records else 0.0
        pairs = np.unique(np.stack([key, people], axis=1), axis=0)
        lonely = np.bincount(pairs[:, 0])[pairs[:, 0]] == 1
        return len(np.unique(pairs[lonely, 1])) / max(1, len(np.unique(people)))


def read_codes(source: Source, names: Sequence[str], amounts: Sequence[str] = ()) -> Codes:
    """Return the codes of some columns in the first records; of amounts also in eighths."""
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
    """One column of the records on which pairs are compared, with its counts computed once."""

    def __init__(self, codes: NDArray[np.int64]) -> None:
        self.codes = codes
        sizes = np.bincount(codes)
        self.width = len(sizes)
        self.trivial = not len(codes) or int(sizes.max()) > TRIVIAL * len(codes)
        self.known = np.flatnonzero(sizes[codes] >= ALONE)
        """Records about which something follows from this column."""
        self.own = codes[self.known]

    def tells(self, other: Pairing) -> bool:
        """Return whether its values determine those of another column for nearly all informative records."""
        if other.trivial or len(self.known) < FOLLOWS * len(self.codes):
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
    """Return every ordered pair of columns of which the first determines the second."""
    few = {name: Pairing(codes.eighths.get(name, codes.columns[name])[:PAIRED]) for name in list(names)[:MOST_COLUMNS]}
    return {(a, b): True for a, b in permutations(few, 2) if few[a].tells(few[b])}
