"""Knowledge tables from ontologies with annotations, from lists with counts, and from documents.

What is built is what an adversary is taken to know: a pair that is absent counts as impossible, so that a source with
gaps protects too little. Pair weights estimate P(term | label); weights and priors say how common labels are.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple
from xml.etree import ElementTree

from noren.files import write_whole
from noren.schema.hierarchy import read_side_file, read_side_rows
from noren.schema.knowledge import Knowledge, KnowledgeError, knowledge_rows

By = Literal["count", "pmi"]
LABELS = ("label", "disease_name", "diseasename", "disease")
TERMS = ("term", "hpo_id", "symptom")
SHARES = ("frequency", "share")
CODES, TITLES, ABOVE = ("code", "id"), ("description", "name", "label", "title"), ("parent",)
STATED = {"HP:0040280": 1.0, "HP:0040281": 0.895, "HP:0040282": 0.545, "HP:0040283": 0.17, "HP:0040284": 0.025}
"""Frequencies that the Human Phenotype Ontology names, by the middle of their ranges; the last name is for never."""
NEVER = "HP:0040285"
OWL, RDF = "{http://www.w3.org/2002/07/owl#}", "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
RDFS, WORD = "{http://www.w3.org/2000/01/rdf-schema#}", re.compile(r"\w+")
Pair = tuple[str, str]


class Built(NamedTuple):
    """A knowledge table, and remarks on how it was built."""

    knowledge: Knowledge
    notes: tuple[str, ...]

    def write(self, path: Path) -> Path:
        """Write the table as the CSV that a policy names."""
        rows, out = knowledge_rows(self.knowledge), StringIO(newline="")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(rows)
        for row in zip(*rows.values(), strict=True):
            writer.writerow([f"{cell:.8g}" if isinstance(cell, float) else cell for cell in row])
        return write_whole(path, out.getvalue().encode())


@dataclass
class Ontology:
    """The names of codes, their synonyms, and the parents of each code."""

    names: dict[str, str] = field(default_factory=dict)
    parents: dict[str, list[str]] = field(default_factory=dict)
    synonyms: dict[str, list[str]] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)
    """Former codes, and the codes that they were merged into."""

    def lineage(self, code: str) -> set[str]:
        """Return the code and all its ancestors, without roots, which carry no information."""
        found, ahead = {code}, [code]
        while ahead:
            new = set(self.parents.get(ahead.pop(), ())) - found
            found |= new
            ahead += new
        return {one for one in found if one == code or self.parents.get(one)}

    def phrases(self) -> list[list[str]]:
        """Return every name with its synonyms."""
        return [[name, *self.synonyms.get(code, ())] for code, name in self.names.items()]


# -------------------------------------------------------------------- pairs


def knowledge_from_pairs(
    source: Path,
    *,
    label: str | None = None,
    term: str | None = None,
    count: str | None = None,
    share: str | None = None,
    total: str | None = None,
    ontology: Path | None = None,
    ancestors: bool = False,
) -> Built:
    """Build a table from the pairs in a file: annotations of an ontology, a table of codes, or a list with counts.

    label, term: columns, recognised by their names if they have usual ones, else the first two. count: a column with
    how many of the label have the term; share: one with which part of them (`0.15`, `15%`, `3/20`, or a frequency that
    HPO names). total: a column with how common the label is. ontology: names for the codes of terms. ancestors: who has
    a term has all that it is a kind of, too.
    """
    header, rows = _read_table(source)
    owner, own = _column(source, header, label, LABELS, 0), _column(source, header, term, TERMS, 1)
    assert owner is not None
    assert own is not None
    many, part = _column(source, header, count), _column(source, header, share, () if count else SHARES)
    common = _column(source, header, total)
    denied, aspect = _column(source, header, None, ("qualifier",)), _column(source, header, None, ("aspect",))
    tree = Ontology() if ontology is None else read_ontology(ontology)
    found: dict[Pair, list[float | None]] = {}
    totals: dict[str, float] = {}
    for row in rows:
        name, code = row[owner], tree.merged.get(row[own], row[own])
        if not name:
            raise KnowledgeError(f"{source}: a line names no label.", hint="Give the column of labels with --label.")
        if (denied is not None and row[denied].upper() == "NOT") or (aspect is not None and row[aspect] not in "P"):
            continue
        value = None
        if many is not None:
            value = _number(source, row[many])
        elif part is not None:
            value = _part(source, row[part])
        if common is not None:
            totals[name] = _number(source, row[common])
        elif not code and value is not None:
            totals[name] = value
        if code and value != 0:
            found.setdefault((name, code), []).append(value)
    notes: list[str] = []
    kept = _mean_shares(found, notes) if many is None else _shares_of_counts(source, found, totals, notes)
    if unknown := len({code for _, code in kept if ontology is not None and code not in tree.names}):
        notes.append(f"{unknown} codes are not in the ontology, so the code is used as their name.")
    wide: dict[Pair, float | None] = {}
    for (name, code), value in kept.items():
        for one in sorted(tree.lineage(code)) if ancestors else (code,):
            pair = name, tree.names.get(one, one)
            wide[pair] = None if value is None else max(value, wide.get(pair) or 0.0)
    return Built(
        _assemble(list(wide), totals, {pair: value for pair, value in wide.items() if value is not None}), tuple(notes)
    )


def _mean_shares(found: dict[Pair, list[float | None]], notes: list[str]) -> dict[Pair, float | None]:
    """Return the mean of the shares stated for a pair; if there are none, the mean of all pairs."""
    stated = {pair: [value for value in values if value is not None] for pair, values in found.items()}
    means: dict[Pair, float | None] = {pair: fmean(values) if values else None for pair, values in stated.items()}
    known = [value for value in means.values() if value is not None]
    if known and len(known) < len(means):
        notes.append(f"{len(means) - len(known)} pairs have no frequency and get the mean of the others.")
        means = {pair: fmean(known) if value is None else value for pair, value in means.items()}
    return means


def _shares_of_counts(
    source: Path, found: dict[Pair, list[float | None]], totals: dict[str, float], notes: list[str]
) -> dict[Pair, float | None]:
    """Return counts divided by the totals of their labels; a label without a total uses its largest count."""
    counts = {pair: sum(value or 0.0 for value in values) for pair, values in found.items()}
    lacking = {name for name, _ in counts if name not in totals}
    for (name, _), value in counts.items():
        if name in lacking:
            totals[name] = max(value, totals.get(name, 0.0))
        elif value > totals[name]:
            raise KnowledgeError(f"{source}: a label has a term more often than it occurs.", hint="Check --total.")
    if lacking:
        notes.append(f"{len(lacking)} labels have no total; their largest count is used.")
    return {(name, code): value / totals[name] for (name, code), value in counts.items()}


def _assemble(pairs: Sequence[Pair], totals: dict[str, float], shares: dict[Pair, float]) -> Knowledge:
    """Assemble the table: weights and priors from totals of labels, pair weights from shares."""
    known = {name: totals[name] for name in dict.fromkeys(name for name, _ in pairs) if name in totals}
    priors = {name: value / sum(known.values()) for name, value in known.items()}
    return Knowledge.from_pairs(pairs, weights=known or None, priors=priors or None, pair_weights=shares or None)


# -------------------------------------------------------------------- documents


def knowledge_from_documents(source: Path, labels: Path, terms: Path, *, by: By = "count", least: int = 2) -> Built:
    """Build a table of labels and terms that occur in the same documents at least so often.

    source: a folder of .txt files, each a document, or a file with a document a line. labels, terms: a file with a name
    a line and other words for it in further cells, or an ontology. by: "pmi" keeps a pair only where it occurs more
    often than if labels and terms were spread at random (pointwise mutual information above 0).
    """
    named = [_phrases(labels), _phrases(terms)]
    single, both, documents = Counter[tuple[int, str]](), Counter[Pair](), 0
    for text in _documents(source):
        words = [word.casefold() for word in WORD.findall(text)]
        mine, signs = (_names_in(words, *phrases) for phrases in named)
        single.update([(0, name) for name in mine] + [(1, name) for name in signs])
        both.update(product(sorted(mine), sorted(signs)))
        documents += 1
    kept = {
        (label, term): times / single[0, label]
        for (label, term), times in both.items()
        if times >= least and (by == "count" or times * documents > single[0, label] * single[1, term])
    }
    if not kept:
        hint = "Check the names, or lower --least."
        raise KnowledgeError(f"no label and term occur together in {documents:,} documents.", hint=hint)
    totals = {name: float(times) for (kind, name), times in single.items() if kind == 0}
    dropped = len({label for label, _ in both} - {label for label, _ in kept})
    notes = [f"{documents:,} documents; negations ('no fever') are not read."]
    if dropped:
        notes.append(f"{dropped} labels have no remaining pair and are not in the table.")
    return Built(_assemble(sorted(kept), totals, kept), tuple(notes))


def _names_in(words: Sequence[str], names: dict[tuple[str, ...], str], longest: int) -> set[str]:
    """Return the names that occur, the longest first: "chest pain" does not also count as "pain"."""
    found, start = set(), 0
    while start < len(words):
        for size in range(min(longest, len(words) - start), 0, -1):
            if (name := names.get(tuple(words[start : start + size]))) is not None:
                found.add(name)
                start += size - 1
                break
        start += 1
    return found


def _phrases(path: Path) -> tuple[dict[tuple[str, ...], str], int]:
    """Return every spelling of a name, word by word, and the words of the longest."""
    if path.suffix in (".obo", ".owl"):
        rows = read_ontology(path).phrases()
    else:
        rows = [[cell.strip() for cell in row] for row in csv.reader(StringIO(read_side_file(path, KnowledgeError)))]
    found: dict[tuple[str, ...], str] = {}
    for name, *others in rows:
        for words in (name, *others):
            if parts := tuple(word.casefold() for word in WORD.findall(words)):
                found.setdefault(parts, name)
    if not found:
        raise KnowledgeError(f"{path}: no names.", hint="Write a name a line.")
    return found, max(map(len, found))


def _documents(source: Path) -> Iterator[str]:
    if source.is_dir():
        for path in sorted(source.glob("*.txt")):
            yield read_side_file(path, KnowledgeError)
    else:
        yield from filter(str.strip, read_side_file(source, KnowledgeError).splitlines())


# -------------------------------------------------------------------- files


def read_ontology(path: Path) -> Ontology:
    """Read an OBO file, classes of an OWL file in RDF/XML, or a table of code, description and parent (as of the
    ICD)."""
    text, out = read_side_file(path, KnowledgeError), Ontology()
    if path.suffix == ".obo":
        for stanza in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
            lines = [line.partition(": ") for line in stanza.splitlines()]
            said = [(key, value) for key, _, value in lines]
            if not stanza.startswith("Term]") or ("is_obsolete", "true") in said:
                continue
            code = next((value.strip() for key, value in said if key == "id"), "")
            out.names[code] = next((value.strip() for key, value in said if key == "name"), code)
            out.merged |= {value.strip(): code for key, value in said if key == "alt_id"}
            out.parents[code] = [value.partition("!")[0].strip() for key, value in said if key == "is_a"]
            out.synonyms[code] = [value.split('"')[1] for key, value in said if key == "synonym" and '"' in value]
    elif path.suffix == ".owl":
        _read_owl(path, text, out)
    else:
        header, rows = _read_table(path)
        at = [_column(path, header, None, names, i) for i, names in enumerate((CODES, TITLES, ABOVE))]
        for code, name, parent in ([row[i] for i in at if i is not None] for row in rows):
            out.names[code] = name or code
            out.parents[code] = [parent] if parent else []
    if not out.names:
        raise KnowledgeError(
            f"{path}: it holds no terms of an ontology.", hint="Give an OBO file, or code,description,parent."
        )
    return out


def _read_owl(path: Path, text: str, out: Ontology) -> None:
    if "<!ENTITY" in text:
        raise KnowledgeError(f"{path}: declares entities.", hint="Convert it to OBO, for example with ROBOT.")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        raise KnowledgeError(f"{path}: not RDF/XML.", hint="Convert it to OBO, for example with ROBOT.") from None
    for node in root.iter(f"{OWL}Class"):
        if code := node.get(f"{RDF}about"):
            out.names[code] = (node.findtext(f"{RDFS}label") or code).strip()
            above = (one.get(f"{RDF}resource") for one in node.findall(f"{RDFS}subClassOf"))
            out.parents[code] = [one for one in above if one]


def _read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return header and rows, all of one width. Lines before the header that begin with # are skipped."""
    table = [row for row, _ in read_side_rows(path, KnowledgeError, ",;\t|", comment="#")]
    if len(table) < 2 or any(len(row) != len(table[0]) for row in table):
        raise KnowledgeError(f"{path}: not a table.", hint="Write a header, and as many cells in every line.")
    return table[0], table[1:]


def _column(
    path: Path, header: Sequence[str], name: str | None, usual: Sequence[str] = (), place: int | None = None
) -> int | None:
    """Return the position of a column: by its name, by a usual name, or by default."""
    if name is not None:
        if name not in header:
            raise KnowledgeError(f"{path}: no column {name!r}.", hint=f"It has: {', '.join(header[:10])}.")
        return header.index(name)
    found = [i for one in usual for i, own in enumerate(header) if own.lower() == one]
    if not found and place is not None and place >= len(header):
        raise KnowledgeError(f"{path}: {len(header)} columns are too few.", hint="Give two or three columns.")
    return found[0] if found else place


def _number(path: Path, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise KnowledgeError(f"{path}: a count is not a number of at least 0.", hint="Write whole numbers.")
    return number


def _part(path: Path, text: str) -> float | None:
    """Parse a share of an annotation; None if it is not stated, 0 if the term is excluded."""
    if not text:
        return None
    if text.startswith("HP:"):
        return 0.0 if text == NEVER else STATED.get(text)
    top, slash, below = text.removesuffix("%").partition("/")
    try:
        value = float(top) / (float(below) if slash else 100.0 if text.endswith("%") else 1.0)
    except (ValueError, ZeroDivisionError):
        value = -1.0
    if not 0 <= value <= 1:
        raise KnowledgeError(f"{path}: a frequency is not a share between 0 and 1.", hint="Write 0.15, 15%, or 3/20.")
    return value
