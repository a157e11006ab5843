"""Knowledge tables from annotations of ontologies, lists with counts, and documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from noren.schema.knowledge import PAIR, Knowledge, KnowledgeError, knowledge_rows
from noren.schema.knowledge_sources import Built, knowledge_from_documents, knowledge_from_pairs, read_ontology

OBO = """format-version: 1.2

[Term]
id: HP:1
name: All

[Term]
id: HP:2
name: Fever
synonym: "High temperature" EXACT []
is_a: HP:1 ! All

[Term]
id: HP:3
name: Night fever
is_a: HP:2 ! Fever

[Term]
id: HP:9
name: Gone
is_obsolete: true

[Typedef]
id: part_of
name: part of
"""
OWL = """<?xml version="1.0"?>
<rdf:RDF xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">
<owl:Class rdf:about="HP:1"><rdfs:label>All</rdfs:label></owl:Class>
<owl:Class rdf:about="HP:2"><rdfs:label>Fever</rdfs:label><rdfs:subClassOf rdf:resource="HP:1"/></owl:Class>
<owl:Class rdf:about="HP:3"><rdfs:label>Night fever</rdfs:label><rdfs:subClassOf rdf:resource="HP:2"/>
<rdfs:subClassOf><owl:Restriction/></rdfs:subClassOf></owl:Class>
</rdf:RDF>
"""
TABLE = "code,description,parent\nHP:1,All,\nHP:2,Fever,HP:1\nHP:3,Night fever,HP:2\n"
ANNOTATIONS = """#description: HPO annotations
database_id\tdisease_name\tqualifier\thpo_id\tfrequency\taspect
X:1\tFlu\t\tHP:2\t3/20\tP
X:1\tFlu\t\tHP:2\t35%\tP
X:1\tFlu\tNOT\tHP:3\t\tP
X:2\tMalaria\t\tHP:3\tHP:0040280\tP
X:2\tMalaria\t\tHP:7\tHP:0040285\tP
X:2\tMalaria\t\tHP:8\t\tP
X:2\tMalaria\t\tHP:2\t1\tI
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def weights(built: Built, extra: str = PAIR) -> dict[tuple[str, str], float]:
    rows = knowledge_rows(built.knowledge)
    return {(a, b): number for a, b, number in zip(rows["label"], rows["term"], rows[extra], strict=True)}


@pytest.mark.parametrize(("name", "text"), [("hp.obo", OBO), ("hp.owl", OWL), ("hp.csv", TABLE)])
def test_annotations_get_the_names_and_ancestors_of_their_ontology(name: str, text: str, tmp_path: Path) -> None:
    source, ontology = written(tmp_path, "phenotype.hpoa", ANNOTATIONS), written(tmp_path, name, text)
    plain = knowledge_from_pairs(source, ontology=ontology)
    unstated = (0.25 + 1.0) / 2
    assert weights(plain) == {
        ("Flu", "Fever"): pytest.approx(0.25),
        ("Malaria", "Night fever"): 1.0,
        ("Malaria", "HP:8"): unstated,
    }
    assert len(plain.notes) == 2
    wide = weights(knowledge_from_pairs(source, ontology=ontology, ancestors=True))
    assert wide == weights(plain) | {("Malaria", "Fever"): 1.0}  # and nobody has the root


def test_synonyms_and_obsolete_terms_of_an_obo_file(tmp_path: Path) -> None:
    found = read_ontology(written(tmp_path, "hp.obo", OBO))
    assert found.phrases() == [["All"], ["Fever", "High temperature"], ["Night fever"]]


def test_codes_that_were_merged_into_a_term_have_its_name_and_ancestors(tmp_path: Path) -> None:
    text = "[Term]\nid: R\nname: All\n\n[Term]\nid: A\nname: Fever\nis_a: R\n\n"
    text += "[Term]\nid: B\nname: Night fever\nalt_id: OLD\nalt_id: OLDER\nis_a: A ! Fever\n"
    ontology = written(tmp_path, "hp.obo", text)
    source = written(tmp_path, "pairs.csv", "label,term\nFlu,OLDER\nMalaria,B\n")
    built = knowledge_from_pairs(source, ontology=ontology, ancestors=True)
    rows = knowledge_rows(built.knowledge)
    found = set(zip(rows["label"], rows["term"], strict=True))
    assert found == {(name, sign) for name in ("Flu", "Malaria") for sign in ("Fever", "Night fever")}
    assert built.notes == ()
    assert read_ontology(ontology).phrases() == [["All"], ["Fever"], ["Night fever"]]


def test_counts_become_shares_of_their_label_and_weights(tmp_path: Path) -> None:
    text = "illness;sign;patients;all\nFlu;cough;30;40\nFlu;fever;10;40\nCold;cough;10;10\n"
    built = knowledge_from_pairs(written(tmp_path, "pairs.csv", text), count="patients", total="all")
    assert weights(built) == {("Flu", "cough"): 0.75, ("Flu", "fever"): 0.25, ("Cold", "cough"): 1.0}
    assert weights(built, "weight")["Flu", "cough"] == 40
    assert weights(built, "prior")["Cold", "cough"] == pytest.approx(0.2)
    # beliefs after "cough" are the shares of labels among those who cough: 30 of 40
    knowledge = built.knowledge
    joint = [knowledge.label_weights[i] * weights(built)[name, "cough"] for i, name in enumerate(knowledge.labels)]
    assert joint[0] / sum(joint) == pytest.approx(0.75)


def test_totals_may_stand_in_a_line_without_a_term_or_be_missing(tmp_path: Path) -> None:
    bare = knowledge_from_pairs(written(tmp_path, "a.csv", "label,term,n\nFlu,,40\nFlu,cough,30\n"), count="n")
    assert weights(bare) == {("Flu", "cough"): 0.75}
    none = knowledge_from_pairs(written(tmp_path, "b.csv", "label,term,n\nFlu,cough,30\nFlu,fever,15\n"), count="n")
    assert weights(none) == {("Flu", "cough"): 1.0, ("Flu", "fever"): 0.5}
    assert len(none.notes) == 1


DOCUMENTS = [
    "Chest pain; influenza.", "Chest pain and FLU", "flu with chest  pain", "migraine, pain",
    "Migraine: pain in the head", "a healthy visitor", "chest pain", "migraine and chest pain",
]  # fmt: skip
COUNTS = {("Flu", "chest pain"): 1.0, ("Migraine", "pain"): 2 / 3}


@pytest.mark.parametrize("folder", [False, True])
def test_documents_give_pairs_that_occur_together(folder: bool, tmp_path: Path) -> None:
    if folder:
        source = tmp_path / "notes"
        source.mkdir()
        for i, text in enumerate(DOCUMENTS):
            written(source, f"{i}.txt", text)
    else:
        source = written(tmp_path, "notes.txt", "\n".join(DOCUMENTS) + "\n")
    labels = written(tmp_path, "labels.csv", "Flu,influenza\nMigraine\n")
    terms = written(tmp_path, "terms.csv", "pain\nchest pain\n")
    assert weights(knowledge_from_documents(source, labels, terms)) == pytest.approx(COUNTS)
    once = knowledge_from_documents(source, labels, terms, least=1)
    assert weights(once)["Migraine", "chest pain"] == pytest.approx(1 / 3)
    assert weights(once, "weight")["Flu", "chest pain"] == 3
    associated = knowledge_from_documents(source, labels, terms, by="pmi", least=1)
    # migraine and chest pain: 1 of 8 together, 3/8 x 5/8 if at random
    assert weights(associated) == pytest.approx(COUNTS)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    source = written(tmp_path, "pairs.csv", 'label,term,n\n"Flu, bird",cough,3\nCold,cough,1\nCold,,7\n')
    built = knowledge_from_pairs(source, count="n")
    again = Knowledge.read_csv(built.write(tmp_path / "knowledge.csv"))
    assert again.labels == built.knowledge.labels
    assert knowledge_rows(again)[PAIR] == pytest.approx(knowledge_rows(built.knowledge)[PAIR])


WRONG = {
    "more with the term than with the label": ("label,term,n\nFlu,,3\nFlu,cough,4\n", {"count": "n"}),
    "no number": ("label,term,n\nFlu,cough,many\n", {"count": "n"}),
    "no share": ("label,term,frequency\nFlu,cough,120%\n", {}),
    "no such column": ("label,term\nFlu,cough\n", {"count": "n"}),
    "uneven": ("label,term\nFlu\n", {}),
    "no label": ("label,term\n,cough\n", {}),
}


@pytest.mark.parametrize(("text", "columns"), WRONG.values(), ids=WRONG)
def test_wrong_pairs_are_refused(text: str, columns: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError):
        knowledge_from_pairs(written(tmp_path, "pairs.csv", text), **columns)  # type: ignore[arg-type]


def test_an_owl_file_with_entities_is_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + OWL.partition("\n")[2]
    with pytest.raises(KnowledgeError, match="entities"):
        read_ontology(written(tmp_path, "hp.owl", bomb))
