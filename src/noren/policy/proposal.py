"""A first policy for a table: types, distinct counts and guessed roles, commented, for a person to correct.

Guesses lean to protection: a column that nothing is known about is drafted as a sensitive quasi-identifier, because a
wrong `plain` publishes people and a wrong `sensitive` only costs accuracy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, log10

from noren.engines import engine_for
from noren.io.source import Source
from noren.policy.toml import key, value
from noren.schema.domain import Kind, infer_kind
from noren.schema.hierarchy import exact
from noren.schema.roles import Role
from noren.table.engine import Counting
from noren.table.profile import ValueCounts

IDENTIFIERS = r"(^|_| )(name|surname|firstname|lastname|id|uid|uuid|ssn|e-?mail|phone|tel|iban|passport|mrn)($|_| )"
QUASI = r"(zip|postal|postcode|plz|city|town|region|county|state|country|sex|gender|birth|dob)"
BOTH = r"(^|_| |-)(age|job|occupation|profession|education|race|ethnic|marital|relationship|workclass|employer)"
SENSITIVE = r"(disease|diagnos|icd|illness|condition|salary|income|wage|religion|party|vote|crime|drug|symptom|outcome)"
AMOUNT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
MANY = 40
"""Categories beyond which a column is drafted with a remark, numbers beyond which it is drafted with bins."""


@dataclass(frozen=True)
class Guess:
    """A drafted line and why it says what it says."""

    role: Role
    why: str
    options: str = ""


LIST = Guess(Role.IDENTIFIER, "lists: dropped, unless you make it quasi-sensitive with a knowledge table")


def list_columns(source: Source) -> list[str]:
    """Columns that hold lists of texts."""
    import pyarrow as pa

    first = next(iter(source.batches(source.columns)), None)
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if first is None:
        return []
    return [name for name in source.columns if any(check(first.column(name).type) for check in checks)]


def draft(source: Source) -> str:
    """The text of a policy for this table."""
    lists = list_columns(source)
    profile = engine_for(source).profile(source, Counting(source.columns, terms=lists))
    profile.demand(source.name, lists)
    lines = [
        f"# Drafted from {source.name.rsplit('/', 1)[-1]}: {profile.records:,} records, {len(source.columns)} columns.",
        "# Every role is a guess: read each line, correct it, then run `noren anonymize`.",
        "#",
        "# Roles: identifier (dropped), quasi-identifier (others may know it; published as it is),",
        "#        sensitive (a secret), sensitive-quasi-identifier (both at once),",
        "#        quasi-sensitive (terms that outside knowledge links to secrets; needs a knowledge table),",
        "#        plain (harmless, published as it is).",
        "",
        "[attributes]",
    ]
    protected: list[tuple[str, int]] = []
    small: list[str] = []
    width = max(len(key(name)) for name in source.columns)
    for name in source.columns:
        column = profile.columns[name]
        guess = LIST if name in lists else guess_role(name, column, profile.records)
        text = f"{key(name):<{width}} = {{ role = {value(guess.role.value)}{guess.options} }}"
        lines.append(f"# {key(name)}: {describe(column)}; {guess.why}")
        lines.append(text)
        if guess.role.needs_requirement:
            size = len(column.counts) + bool(column.missing)
            if "bins" in guess.options:
                size = len(round_bins(column)) - 1
            if size >= 3:
                protected.append((name, size))
            else:
                small.append(name)
    if protected:
        lines += [
            "",
            "# At least l values stay possible for each of these columns. Inside a set of l values, an adversary",
            "# who knows how common they are can still prefer the common ones: t-closeness bounds that.",
            "[[require]]",
            'model = "frequency-l-diversity"',
            f"on = {value([name for name, _ in protected])}",
            f"l = {min(3, min(size for _, size in protected) - 1)}",
        ]
    if small:
        lines += [
            "",
            "# Two values cannot hide behind each other in sets; closeness protects them by chance instead.",
            "[[require]]",
            'model = "t-closeness"',
            f"on = {value(small)}",
            "t = 0.3",
        ]
    lines += ["", "[method]", 'name = "decoys"', ""]
    return "\n".join(lines)


def describe(column: ValueCounts) -> str:
    """Type, number of distinct values, missing cells."""
    if column.is_open:
        text = "very many distinct values"
    else:
        kind = kind_of(column)
        text = f"{kind}, {len(column.counts):,} distinct"
        if kind in ("integer", "number") and len(column.counts) > MANY:
            numbers = [float(label) for label in column.counts]
            text += f", {min(numbers):g} to {max(numbers):g}"
    return text + (f", {column.missing:,} missing" if column.missing else "")


def kind_of(column: ValueCounts) -> Kind:
    """What the texts look like. Amounts such as 12.50 are numbers here, so that they are drafted with bins."""
    kind = infer_kind(list(column.counts))
    amounts = any("." in label for label in column.counts) and all(map(AMOUNT.fullmatch, column.counts))
    return "number" if kind == "string" and amounts else kind


def guess_role(name: str, column: ValueCounts, records: int) -> Guess:
    """Role and options for one column."""
    word = name.lower()
    distinct = len(column.counts)
    numeric = kind_of(column) in ("integer", "number") and distinct > MANY
    bins = f", bins = {value(round_bins(column))}" if numeric else ""
    if re.search(IDENTIFIERS, word):
        return Guess(Role.IDENTIFIER, "its name says that it names a person")
    if records >= 20 and not numeric and (column.is_open or distinct > 0.9 * records):
        return Guess(Role.IDENTIFIER, "nearly every record has its own value")
    if column.is_open:
        return Guess(Role.IDENTIFIER, "too many values to hide one among the others")
    if distinct + bool(column.missing) <= 1:
        return Guess(Role.PLAIN, "a single value")
    if re.search(SENSITIVE, word):
        return Guess(Role.SENSITIVE, "its name sounds like a secret", bins)
    if re.search(QUASI, word):
        return Guess(Role.QUASI_IDENTIFIER, "others may know it; published as it is")
    why = "others may know it, and it may be a secret" if re.search(BOTH, word) else "unknown: protected to be safe"
    if distinct > MANY and not numeric:
        why += "; many categories, consider a hierarchy or min_count"
    return Guess(Role.SENSITIVE_QUASI_IDENTIFIER, why, bins)


def round_bins(column: ValueCounts, wanted: int = 8) -> list[float]:
    """About eight intervals with round edges that cover the values."""
    numbers = [exact(float(label)) for label in column.counts]
    low, high = min(numbers), max(numbers)
    step = Fraction(10) ** floor(log10((high - low) / wanted))
    step = next(step * factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= wanted)
    first = low // step * step
    edges = [float(first + i * step) for i in range(ceil((high - first) / step) + 1)]
    return [int(edge) if edge.is_integer() and abs(edge) < 1e15 else edge for edge in edges]
