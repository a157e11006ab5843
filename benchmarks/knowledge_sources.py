"""Knowledge tables built from documents, beside the frequencies of the patients that the documents describe.

    python benchmarks/knowledge_sources.py --data FOLDER

FOLDER has disease_symptom_41x132.csv.gz and icd10cm_2026_tabular.csv.gz (in it or in health/). Every second patient is
a document that names disease and symptoms; several patients may share one. The others are linked: printed are the share
whose disease the symptoms do not rule out, the share whose disease is believed most, and the mean belief in it.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from noren.schema.knowledge import Knowledge
from noren.schema.knowledge_sources import By, knowledge_from_documents, knowledge_from_pairs


def patients(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Disease and symptoms, in words."""
    frame = pl.read_csv(folder / "disease_symptom_41x132.csv.gz")
    (label,) = (name for name in frame.columns if frame[name].dtype == pl.String)
    for row in frame.iter_rows(named=True):
        name = " ".join(row[label].replace("_", " ").split())
        yield name, [term.replace("_", " ") for term, has in row.items() if term != label and has == 1]


def judge(knowledge: Knowledge, people: list[tuple[str, list[str]]]) -> tuple[float, float, float]:
    """Shares of people whose disease is possible, believed most, and the mean belief in it."""
    place = {label: i for i, label in enumerate(knowledge.labels)}
    pairs = np.zeros((len(place), len(knowledge.terms)))
    owner = np.repeat(np.arange(len(place)), np.diff(knowledge.bounds))
    pairs[owner, knowledge.codes] = 1.0 if knowledge.pair_weights is None else knowledge.pair_weights
    found = []
    for label, terms in people:
        codes = knowledge.encode(terms)
        belief = knowledge.label_weights * pairs[:, codes[codes >= 0]].prod(axis=1) * (codes >= 0).all()
        own = belief[place[label]] / belief.sum() if label in place and belief.sum() else 0.0
        found.append((own > 0, own > 0 and belief[place[label]] == belief.max(), own))
    return tuple(np.mean(found, axis=0).tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    folder = folder / "health" if (folder / "health").is_dir() else folder
    people = list(patients(folder))
    order = np.random.default_rng(1).permutation(len(people))
    seen, later = [people[i] for i in order[::2]], [people[i] for i in order[1::2]]
    truth = {(label, term) for label, terms in people for term in terms}
    work = Path(tempfile.mkdtemp())
    (work / "labels.csv").write_text("\n".join(sorted({f'"{label}"' for label, _ in people})))
    (work / "terms.csv").write_text("\n".join(sorted({term for _, terms in people for term in terms})))
    print(
        "| patients a document | pairs kept by | pairs | of them true | true ones found | possible | first | belief |"
    )
    print("| --- " * 8 + "|")
    kinds: list[By] = ["count", "pmi"]
    for together in (1, 3, 10):
        texts = [f"{label}. {', '.join(terms)}." for label, terms in seen]
        (work / "notes.txt").write_text(
            "\n".join(" ".join(texts[i : i + together]) for i in range(0, len(texts), together))
        )
        for by in kinds:
            built = knowledge_from_documents(work / "notes.txt", work / "labels.csv", work / "terms.csv", by=by)
            knowledge = built.knowledge
            owner = np.repeat(np.arange(len(knowledge.labels)), np.diff(knowledge.bounds))
            pairs = {
                (knowledge.labels[i], knowledge.terms[j])
                for i, j in zip(owner.tolist(), knowledge.codes.tolist(), strict=True)
            }
            right, judged = len(pairs & truth), judge(knowledge, later)
            print(
                f"| {together} | {by} | {len(pairs):,} | {right / len(pairs):.2f} | {right / len(truth):.2f} | "
                f"{judged[0]:.2f} | {judged[1]:.2f} | {judged[2]:.2f} |"
            )
    (work / "icd.csv").write_bytes(gzip.decompress((folder / "icd10cm_2026_tabular.csv.gz").read_bytes()))
    icd = knowledge_from_pairs(work / "icd.csv", label="chapter", term="description").knowledge
    print(f"\nICD-10-CM: {len(icd.labels)} chapters, {len(icd.terms):,} descriptions, {len(icd.codes):,} pairs")


if __name__ == "__main__":
    main()
