"""The register refuses contradictions, keeps what it was told, and is whole whoever writes at the same time."""

from __future__ import annotations

import multiprocessing
import stat
from dataclasses import replace

import numpy as np
import pytest

from noren.errors import RequirementNotMet, SecretError
from noren.secret import ClassSets, DrawnColumn, KeyRule, Publication, PublishedClasses, Register, Secret

ENTRY = DrawnColumn(domain=("a", "b", "c"), design="uniform-decoys", eta=2, p=0.5)
KEY = KeyRule("id")


def people(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint64)


def drawn(*numbers: int, memoised: bool = True, **columns: DrawnColumn) -> Publication:
    return Publication(KEY, columns or {"job": ENTRY}, memoised, people(*numbers))


def classes(sets: dict[int, str], name: str = "ill", least: int = 2, invariant: bool = False) -> Publication:
    """People by number, each among the letters of a word."""
    values = tuple(sorted({letter for word in sets.values() for letter in word}))
    codes = [sorted(values.index(letter) for letter in word) for word in sets.values()]
    bounds = np.cumsum([0, *map(len, codes)])
    found = ClassSets(values, np.arange(len(sets)), bounds, np.concatenate(codes).astype(np.int64))
    return Publication(KEY, people=people(*sets), classes={name: PublishedClasses(found, least, invariant)})


@pytest.fixture
def path(tmp_path):
    Secret.create(tmp_path / "secret")
    return tmp_path / "secret"


def test_it_records_and_refuses(path, tmp_path):
    register = Register.open(path)
    assert register.check(drawn(1, 2)) == []
    register.record(drawn(1, 2))
    file = tmp_path / "secret.register"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["secret", "secret.register"]
    again = Register.open(path)
    assert again.contents.drawn["job"].entry == ENTRY
    assert again.check(drawn(2, 3, job=ENTRY, age=ENTRY)) == ["register: 1 of 2 people are in earlier releases"]
    assert again.check(drawn(1, 2, 3)) == ["register: 2 of 3 people are in earlier releases"]
    for change, words in [
        ({"eta": 1}, r"eta \(recorded 2, now 1\)"),
        ({"p": 0.25}, r"p \(recorded 0.5, now 0.25\)"),
        ({"design": "flat"}, r"design \(recorded uniform-decoys, now flat\)"),
        ({"domain": ("a", "b", "c", "d")}, r"domain \(recorded 3 values, now 4: 1 new, 0 gone\)"),
        ({"domain": ("c", "b", "a")}, "another order"),
    ]:
        other = drawn(7, age=ENTRY, job=replace(ENTRY, **change))
        with pytest.raises(SecretError, match=words) as caught:
            again.check(other)
        assert "'job'" in str(caught.value)
        assert "'age'" not in str(caught.value)
        assert "eta = 2 and p = 0.5 under [method.parameters.job]" in str(caught.value)
        assert "earlier releases can be intersected" in str(caught.value)
        with pytest.raises(SecretError, match=words):
            again.record(other)
    assert Register.open(path).contents.releases == 1


def test_it_sees_what_another_run_recorded_meanwhile(path):
    first, second = Register.open(path), Register.open(path)
    first.record(drawn(1))
    second.record(drawn(2, job=ENTRY, age=ENTRY))
    known = Register.open(path).contents
    assert set(known.drawn) == {"age", "job"}
    assert known.people.tolist() == [1, 2]
    with pytest.raises(SecretError, match="eta"):
        first.record(drawn(3, job=ENTRY, age=replace(ENTRY, eta=3)))


def _records(path, number):
    for i in range(8):
        Register.open(path).record(drawn(100 * number + i))


def test_many_writers_lose_nobody(path):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_records, args=(path, number)) for number in range(3)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
        assert one.exitcode == 0
    assert Register.open(path).contents.people.tolist() == [100 * n + i for n in range(3) for i in range(8)]


def test_a_register_of_another_secret_is_refused(path, tmp_path):
    with pytest.raises(SecretError, match="no secret file"):
        Register.open(tmp_path / "nowhere")
    path.unlink()
    with pytest.raises(SecretError, match="exists already and belongs to another secret"):
        Secret.create(path)
    assert not path.exists()
    Secret.create(tmp_path / "other")
    (tmp_path / "other").rename(path)
    with pytest.raises(SecretError, match="does not belong to secret"):
        Register.open(path)


def test_marks_tell_who_was_drawn_how(path):
    register = Register.open(path)
    register.record(drawn(1, 2))
    register.record(drawn(3, memoised=False))
    for new, count in ((drawn(1, 3, 4), 1), (drawn(1, 2, 3, 4, memoised=False), 3)):
        how = "by the secret" if new.memoised else "anew"
        with pytest.raises(SecretError, match=f"^{count} people of this release.*drawn {how}"):
            register.check(new)
        register.check(replace(new, repeat="allow"))
    register.check(drawn(1, 2, 4))
    register.check(drawn(4, 5, memoised=False))
    with pytest.raises(SecretError, match=r"2 people.*can be intersected with their classes"):
        register.check(classes({1: "ab", 3: "ab", 9: "ab"}, "job"))


def test_what_all_releases_leave_possible_is_kept(path):
    register = Register.open(path)
    register.record(classes({1: "abcd", 2: "abcd", 3: "xyz"}))
    register.record(classes({1: "bcd", 4: "bcd"}))
    register.record(classes({1: "cdz", 2: "abz"}))
    known = Register.open(path).contents
    sets = known.sets_of("ill", people(1, 2, 3, 4, 5))
    letters = [
        "".join(sets.values[code] for code in sets.codes[sets.bounds[one] : sets.bounds[one + 1]]) if one >= 0 else None
        for one in sets.which.tolist()
    ]
    assert [word and "".join(sorted(word)) for word in letters] == ["cd", "ab", "xyz", "bcd", None]
    with pytest.raises(
        RequirementNotMet, match=r"^2 people were in other classes before.*fewer than 2.*\(2 of them only one"
    ):
        register.check(classes({1: "ca", 2: "bc", 3: "xyz", 9: "pq"}))
    assert "register: releases of 2 people can be intersected" in "".join(
        register.check(replace(classes({1: "ca", 2: "bc", 3: "xyz"}), repeat="allow"))
    )


def test_whom_two_releases_leave_too_few_values_need_not_be_left_a_single_one(path):
    register = Register.open(path)
    register.record(classes({1: "abc", 2: "abc"}))
    second = classes({1: "abd", 2: "cde"}, least=3)
    with pytest.raises(RequirementNotMet, match=r"^2 people .* fewer than 3 .*\(1 of them only one\)"):
        register.check(second)
    assert (
        "register: releases of 2 people can be intersected in 'ill'"
        in register.check(replace(second, repeat="allow"))[-1]
    )


def test_classes_of_a_column_can_be_intersected_with_its_sets(path):
    register = Register.open(path)
    register.record(classes({1: "abc", 2: "abc"}, "job"))
    for memoised in (True, False):
        with pytest.raises(
            SecretError, match=r"^1 people of this release are in earlier releases with sets or classes of 'job'"
        ):
            register.check(drawn(1, 3, memoised=memoised))
    register.check(drawn(3, 4))


def test_sets_drawn_anew_bind_nobody_and_those_by_the_secret_do(path):
    """The entry of a column is that of the last release until the secret draws it, and stays from then on."""
    register = Register.open(path)
    entries = {eta: replace(ENTRY, eta=eta) for eta in (1, 2, 3)}

    def kept(new: Publication) -> tuple[int, bool]:
        register.record(new)
        found = Register.open(path).contents.drawn["job"]
        return found.entry.eta, found.binding

    assert kept(drawn(1, memoised=False, job=entries[1])) == (1, False)
    assert kept(drawn(2, memoised=False, job=entries[3])) == (3, False)
    assert kept(drawn(3, age=ENTRY)) == (3, False), "another column is drawn by the secret"
    assert kept(drawn(4, memoised=False, age=ENTRY)) == (3, False)
    assert kept(drawn(5, job=entries[2])) == (2, True)
    assert kept(drawn(6, memoised=False, job=entries[1])) == (2, True)
    assert kept(drawn(7, age=ENTRY)) == (2, True)


def test_a_person_at_the_first_place_is_here_again_too(path):
    register = Register.open(path)
    register.record(drawn(1, 2))
    with pytest.raises(
        SecretError,
        match=r"'work' has 3 of the 3 values of 'job', which earlier releases contain for 1 of these people",
    ):
        register.check(drawn(1, work=ENTRY))


def test_a_publication_without_people_is_of_nobody(path):
    register = Register.open(path)
    register.record(Publication(KEY, {"job": ENTRY}))
    assert register.contents.people.tolist() == []
    nothing = ClassSets.none(2).meet(ClassSets.none(2)).after
    assert (nothing.which.tolist(), nothing.sizes.tolist()) == ([-1, -1], [])


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("noren-register-0 {own}", "has the format 'noren-register-0'; this version reads 'noren-register-1'"),
        ("noren-register-1 0123456789abcdef", "does not belong to secret"),
        ("noren-register-0", "cannot be read"),
        ("noren-register-0 {own} {own}", "cannot be read"),
        ("something noren-register-0", "cannot be read"),
        ("noren-register-1 {own}", "cannot be read"),
    ],
)
def test_a_file_that_is_no_register_of_this_secret_says_what_it_is(path, header, said):
    own = Register.open(path)
    own.path.write_text(header.format(own=Secret.load(path).fingerprint) + "\n")
    with pytest.raises(SecretError, match=said):
        Register.open(path)


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_register_that_cannot_be_written_stays_as_it_was(path, tmp_path, monkeypatch, fault):
    register = Register.open(path)
    register.record(drawn(1))
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}

    def fails(handle: int) -> None:
        raise fault

    monkeypatch.setattr("noren.secret.register.os.fsync", fails)
    with pytest.raises(SecretError if isinstance(fault, OSError) else KeyboardInterrupt) as caught:
        register.record(drawn(2))
    assert isinstance(caught.value, KeyboardInterrupt) or "No space left on device" in str(caught.value)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_a_register_needs_an_existing_folder(tmp_path):
    with pytest.raises(SecretError, match="Cannot write the register"):
        Register.create(tmp_path / "nowhere" / "secret", Secret.fresh())


def test_who_is_alone_already_is_not_exposed_by_the_second_release(path):
    register = Register.open(path)
    register.record(classes({1: "a", 2: "ab"}))
    register.check(classes({1: "ab", 2: "b"}))
    with pytest.raises(RequirementNotMet, match=r"^1 people"):
        register.check(classes({2: "bc"}))


def test_an_invariant_column_keeps_everybody_among_the_same_values(path):
    register = Register.open(path)
    register.record(classes({1: "abc", 2: "abc"}, least=2, invariant=True))
    register.check(classes({1: "abc", 3: "xy"}, least=2, invariant=True))
    for word in ("ab", "abcd"):
        with pytest.raises(RequirementNotMet, match="1 people would get other possible values of 'ill'"):
            register.check(classes({1: word, 2: "abc"}, least=2, invariant=True))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (("a", "b", "c"), "'work' has 3 of the 3 values of 'job'"),
        ((" A", "b", "C "), "'work' has 3 of the 3 values of 'job'"),
        (("a", "b", "d"), "'work' has 2 of the 3 values of 'job'"),
        (("a", "b", "d", "e"), None),
        (("x", "y"), None),
    ],
)
def test_a_column_with_the_values_of_one_that_is_gone_may_be_that_one(path, values, said):
    """From half of all values on, and only if somebody of the earlier release is here again."""
    register = Register.open(path)
    register.record(drawn(1, 2))
    new = drawn(2, 3, work=replace(ENTRY, domain=values))
    if said is None:
        register.check(new)
    else:
        with pytest.raises(SecretError, match=f"{said}, which earlier releases contain for 1 of these people"):
            register.check(new)
    register.check(replace(new, named=frozenset({"work"})))
    register.check(replace(new, repeat="allow"))
    register.check(drawn(3, 4, work=replace(ENTRY, domain=values)))
    register.check(drawn(1, job=ENTRY, work=replace(ENTRY, domain=values)))


def test_epsilons_of_margins_add_up_to_the_budget(path):
    register = Register.open(path)
    spends = replace(drawn(1), spent=0.75, budget=1.5)
    assert register.check(spends) == ["register: noised margins spend epsilon = 0.75, in total 0.75 over all releases"]
    register.record(spends)
    assert "0.75, in total 1.5 over all releases" in register.check(spends)[-1], "up to the budget itself"
    register.record(spends)
    with pytest.raises(
        RequirementNotMet,
        match=r"have spent epsilon = 1\.5; with 0\.75 more the total would be 2\.25, above the budget of 1\.5",
    ):
        register.check(spends)
    register.check(replace(drawn(1), budget=1.5))
    register.check(replace(spends, budget=None))


def test_people_are_known_by_the_same_column_evened_out_alike(path):
    register = Register.open(path)
    register.record(drawn(1))
    with pytest.raises(SecretError, match="identify people by 'id', but this policy by 'number'"):
        register.check(replace(drawn(1), key=KeyRule("number")))
    for name in ("unicode", "spaces", "case"):
        with pytest.raises(
            SecretError, match=f"normalised keys differently.*{name} .recorded {getattr(KEY, name)}, now"
        ):
            register.check(replace(drawn(1), key=replace(KEY, **{name: "keep"})))


def test_a_publication_is_drawn_by_the_secret_and_must_leave_two_values_unless_it_says_otherwise(path):
    register = Register.open(path)
    register.record(Publication(KEY, {"job": ENTRY}, people=people(1)))
    assert register.contents.drawn["job"].binding
    register.record(classes({5: "abc"}))
    sets = classes({5: "bcd"}).classes["ill"].sets
    register.check(Publication(KEY, people=people(5), classes={"ill": PublishedClasses(sets)}))
    with pytest.raises(RequirementNotMet, match="fewer than 3"):
        register.check(Publication(KEY, people=people(5), classes={"ill": PublishedClasses(sets, 3)}))
    with pytest.raises(RequirementNotMet, match="get other possible values"):
        register.check(Publication(KEY, people=people(5), classes={"ill": PublishedClasses(sets, invariant=True)}))
