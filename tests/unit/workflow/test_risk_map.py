"""Sweeping parameters: candidates, frontier, bend, labels, and how often secrets are guessed."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.errors import QueryError
from noren.workflow import comparison
from noren.workflow.compare import compare, find_levels, settings
from noren.workflow.comparison import HEIGHT, LETTER, LINE, WIDTH, Candidate, bend, frontier, map_chart

METHODS = (nr.methods.Mondrian(),)


def table(n: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    job = rng.integers(0, 5, n)
    ill = np.where(rng.random(n) < 0.5, job, rng.integers(0, 5, n))
    return pl.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "job": [f"j{i}" for i in job],
            "ill": [f"i{i}" for i in ill],
        }
    )


def policy(**more: Any) -> nr.Policy:
    given: dict[str, Any] = {
        "attributes": {"age": nr.quasi_identifier(), "job": nr.quasi_identifier(), "ill": nr.sensitive()},
        "require": [nr.models.KAnonymity(k=2), nr.models.FrequencyLDiversity(on="ill", l=2)],
        "method": nr.methods.Mondrian(),
        "mechanism": "ignored",  # a table of few people
    }
    return nr.Policy(**(given | more))


def candidate(name: str, risk: float, error: float) -> Candidate:
    return Candidate(name, METHODS, 0.0, belief=risk, query_loss=error)


class TestFrontier:
    POINTS = (candidate("a", 0.2, 3), candidate("b", 0.3, 1), candidate("c", 0.4, 1.5), candidate("d", 0.9, 0.9))

    def test_nobody_beats_it(self) -> None:
        assert [one.title for one in frontier(self.POINTS)] == ["a", "b", "d"]
        assert frontier([candidate("x", 0.1, float("nan"))]) == []

    def test_the_bend_has_little_of_both(self) -> None:
        best = bend(frontier(self.POINTS))
        assert best is not None
        assert best.title == "b"
        assert bend([]) is None
        for alone in ([self.POINTS[0]], [candidate("x", 0.2, 1.0), candidate("y", 0.4, 1.0)]):
            assert bend(alone) is alone[0], "where all errors are one, the risk decides"
        steep = [candidate("x", 0.2, 0.9), candidate("y", 0.3, 0.86), candidate("z", 0.9, 0.85)]
        assert bend(steep) is steep[1], "both axes count alike, however short they are"

    @pytest.mark.parametrize("most", [5.0, 500.0], ids=["linear", "logarithmic"])
    def test_labels_do_not_overlap(self, most: float) -> None:
        """Forty points on a frontier: what is labelled lies inside and apart."""
        many = [candidate(f"method {i}, k = {i}", 0.2 + i / 100, most / (1 + i * most / 40)) for i in range(40)]
        chart = map_chart(many).to_dict()
        across, down = chart["layer"][2]["encoding"]["x"]["scale"], chart["layer"][2]["encoding"]["y"]["scale"]
        assert down["type"] == ("log" if most > 100 else "linear")
        scale = np.log10 if most > 100 else np.asarray
        low, high = scale(np.array(down["domain"]))
        boxes = []
        for label in chart["layer"][2]["data"]["values"]:
            left = (label["risk"] - across["domain"][0]) / (across["domain"][1] - across["domain"][0]) * WIDTH
            top = (1 - (scale(label["error"]) - low) / (high - low)) * HEIGHT - LINE / 2
            boxes.append((left, top, left + LETTER * len(label["label"]), top + LINE))
        assert len(boxes) > 5
        for i, (a, b, c, d) in enumerate(boxes):
            assert a >= -1e-6
            assert c <= WIDTH + 1e-6
            for e, f, g, h in boxes[i + 1 :]:
                assert a >= g - 1e-6 or e >= c - 1e-6 or b >= h - 1e-6 or f >= d - 1e-6

    def test_a_single_point_has_a_map(self) -> None:
        assert len(map_chart([candidate("a", 0.2, 0.0)]).to_dict()["layer"]) == 3
        assert map_chart([]).to_dict()


class TestGrid:
    @pytest.fixture(scope="class")
    @staticmethod
    def found() -> nr.Comparison:
        return compare(table(), policy(), among=["mondrian", "mondrian + decoys"], grid={"k": [3, 10], "l": [2, 3]})

    def test_every_setting_is_tried_and_met(self, found: nr.Comparison) -> None:
        swept = {tuple(one.setting.items()) for one in found}
        assert swept == {(("k", k), ("l", size)) for k in (3, 10) for size in (2, 3)}
        for one in found:
            assert one.holds
            asked = {verdict.model: verdict.required for verdict in one.verdicts}
            assert asked == {"k-anonymity": one.setting["k"], "frequency-l-diversity": one.setting["l"]}
            assert one.smallest_class >= one.setting["k"]

    def test_every_candidate_has_its_policy(self, found: nr.Comparison) -> None:
        for one in found:
            assert one.policy is not None
            assert {model.model: model.parameters() for model in one.policy.require}["k-anonymity"]["k"] == one.setting[
                "k"
            ]
            again = nr.Policy.parse(one.policy.to_toml())
            assert again.methods == one.methods

    def test_the_frame_and_the_choice(self, found: nr.Comparison) -> None:
        assert found.frame["setting"].to_list()[0] == ", ".join(f"{k} = {v:g}" for k, v in found[0].setting.items())
        assert found.frame["belief"].null_count() == 0
        assert found.chosen in found.frontier
        risks = [one.risk for one in found.frontier]
        assert risks == sorted(risks)

    @pytest.mark.parametrize(
        ("grid", "words"),
        [
            ({"t": [0.1]}, "no requirement has a parameter 't'"),
            ({"k": []}, "no values"),
            ({"k": [0]}, "cannot have k = 0"),
            ({"k": list(range(2, 300))}, "are tried at most"),
        ],
    )
    def test_a_grid_that_makes_no_sense_is_refused(self, grid: dict[str, list[float]], words: str) -> None:
        with pytest.raises(QueryError, match=words):
            compare(table(50), policy(), grid=grid)

    def test_without_a_grid_nothing_is_swept(self) -> None:
        assert settings(policy(), {}) == [{}]


class TestBelief:
    def guesses(self, data: pl.DataFrame, **more: Any) -> float:
        rules = policy(**more)
        found = compare(data, rules, among=[rules.methods[0].name])
        assert found.best is not None
        assert found.best.belief is not None
        return found.best.belief

    def test_a_class_is_guessed_by_its_commonest_value(self) -> None:
        """Two classes by hand, five times a a a b and c c d d; 3 + 2 of 8 are guessed right."""
        data = pl.DataFrame({"age": [1] * 20 + [9] * 20, "job": ["x"] * 40, "ill": list("aaab" * 5 + "ccdd" * 5)})
        rules = [nr.models.KAnonymity(k=4), nr.models.DistinctLDiversity(on="ill", l=2)]
        assert self.guesses(data, require=rules) == pytest.approx(5 / 8)

    def test_decoys_among_independent_columns(self) -> None:
        """Sets of l equally common values, told by nothing else: one in l is right."""
        rng = np.random.default_rng(8)
        n = 4000
        data = pl.DataFrame(
            {"age": rng.integers(0, 2, n), "job": ["x"] * n, "ill": [f"i{i}" for i in rng.integers(0, 8, n)]}
        )
        attributes = {"age": nr.plain(), "job": nr.plain(), "ill": nr.sensitive()}
        rules = [nr.models.FrequencyLDiversity(on="ill", l=4)]
        share = self.guesses(data, attributes=attributes, require=rules, method=nr.methods.Decoys())
        # 4,000 guesses of chance 1/4, helped a little by unequal counts: six standard deviations and 2 points
        assert share == pytest.approx(0.25, abs=6 * (0.25 * 0.75 / 4000) ** 0.5 + 0.02)

    def test_a_column_that_tells_helps(self) -> None:
        attributes = {"age": nr.plain(), "job": nr.plain(), "ill": nr.sensitive()}
        rules = [nr.models.FrequencyLDiversity(on="ill", l=3)]
        data = table(3000)
        told = self.guesses(data, attributes=attributes, require=rules, method=nr.methods.Decoys())
        alone = self.guesses(
            data.with_columns(job=pl.lit("x")), attributes=attributes, require=rules, method=nr.methods.Decoys()
        )
        assert told > alone + 0.1


class TestPeople:
    def test_people_are_counted_when_methods_are_compared(self) -> None:
        rng = np.random.default_rng(2)
        who = np.repeat(np.arange(200), 3)
        data = pl.DataFrame(
            {"pid": who, "age": np.repeat(rng.integers(20, 60, 200), 3), "ill": rng.choice(list("abcde"), 600)}
        )
        rules = nr.Policy(
            attributes={"pid": "identifier", "age": "quasi-identifier", "ill": "sensitive"},
            require=[{"model": "k-anonymity", "k": 4}, {"model": "distinct-l-diversity", "on": "ill", "l": 2}],
            method={"name": "mondrian"},
            people={"key": "pid"},
        )
        found = compare(data, rules, among=["mondrian"])
        assert all(one.holds for one in found)
        assert all(200 <= one.verdicts[0].records < 600 for one in found), "people, once in each of their classes"


def test_levels_are_listed_with_what_they_cost() -> None:
    found = find_levels(
        table(), policy(require=[nr.models.KAnonymity(k=5), nr.models.DistinctLDiversity(on="ill", l=2)])
    )
    assert found.frame.columns == ["age", "job", "loss", "classes", "dropped"]
    assert found.frame["loss"].is_sorted()
    assert found.to_dict()["levels"][0]["levels"] == found[0].levels
    assert "combinations of levels that meet the requirements" in repr(found)
    fixed = nr.methods.Incognito(levels=found[-1].levels)
    rules = [nr.models.KAnonymity(k=5), nr.models.DistinctLDiversity(on="ill", l=2)]
    most = nr.Policy(attributes=policy().attributes, require=rules, method=fixed, dependence={"most": 1.0})
    assert nr.anonymize(table(), most).records == 400
    mechanism = nr.models.Mechanism(on="ill", most=0.5)
    assert find_levels(table(), policy(require=[*rules, mechanism])).frame.equals(found.frame), (
        "that is judged, not sought"
    )


@pytest.mark.parametrize(
    ("box", "inside"),
    [
        ((0, 0, 1, 1), True),
        ((-1, 0, 1, 1), False),
        ((0, -1, 1, 1), False),
        ((0, 0, comparison.WIDTH, comparison.HEIGHT), True),
        ((0, 0, comparison.WIDTH + 1, 1), False),
        ((0, 0, 1, comparison.HEIGHT + 1), False),
    ],
)
def test_labels_stay_on_the_map(box: tuple[float, float, float, float], inside: bool) -> None:
    assert comparison._inside(box) == inside


@pytest.mark.parametrize(
    ("other", "meet"),
    [
        ((3, 3, 6, 6), True),
        ((4, 0, 6, 4), False),
        ((-2, 0, 0, 4), False),
        ((0, 4, 4, 6), False),
        ((0, -2, 4, 0), False),
    ],
)
def test_labels_that_touch_do_not_meet(other: tuple[float, float, float, float], meet: bool) -> None:
    assert comparison._meet((0, 0, 4, 4), other) == meet
    assert comparison._meet(other, (0, 0, 4, 4)) == meet


def test_a_label_begins_three_pixels_from_its_point() -> None:
    one = Candidate("mondrian", (), 0.0, belief=0.5, query_loss=0.5)
    (label,) = comparison._labels([one], [one], (0.0, 1.0), (0.0, 1.0), False)
    assert label["risk"] * WIDTH == pytest.approx(0.5 * WIDTH + comparison.POINT + 3)
    assert label["error"] == pytest.approx(0.5)
    high = Candidate("mondrian", (), 0.0, belief=0.5, query_loss=10**0.5)
    (label,) = comparison._labels([high], [high], (0.0, 1.0), (0.0, 1.0), True)
    assert label["error"] == pytest.approx(10**0.5)


def test_a_label_without_room_beside_its_point_moves_by_a_line_up_and_then_down() -> None:
    """Points that stand in its way, and where the label comes to stand."""
    one, middle, across = Candidate("m" * 20, (), 0.0, belief=0.5, query_loss=0.5), HEIGHT / 2, WIDTH / 2
    right, left = across + comparison.POINT + 3, across - comparison.POINT - 3 - LETTER * 20

    def stands(*beside: tuple[float, float]) -> tuple[float, float]:
        others = [Candidate("x", (), 0.0, belief=x / WIDTH, query_loss=1 - y / HEIGHT) for x, y in beside]
        label = comparison._labels([one], [one, *others], (0.0, 1.0), (0.0, 1.0), False)[0]
        return pytest.approx((label["risk"] * WIDTH, (1 - label["error"]) * HEIGHT))

    near = comparison.POINT + LINE / 2 - 0.1
    assert stands() == (right, middle)
    assert stands((right + 50, middle)) == (left, middle)
    assert stands((right + 50, middle + near), (left + 50, middle - near)) == (right, middle - LINE)
    assert stands((right + 50, middle - 3), (left + 50, middle - 3)) == (right, middle + LINE)
    assert stands((right + 50, middle + near + 0.2), (right + 50, middle - near - 0.2)) == (right, middle)


@pytest.mark.parametrize(
    ("values", "span"),
    [
        ((), (0.0, 1.08)),
        ((0.0, 1.0), (0.0, 1.08)),
        ((0.5, 1.5), (0.42, 1.58)),
        ((-1.0, 1.0), (-1.16, 1.16)),
        ((2.0,), (1.84, 2.16)),
        ((0.5,), (0.42, 0.58)),
    ],
)
def test_an_axis_has_room_and_begins_at_nothing_at_most(values: tuple[float, ...], span: tuple[float, float]) -> None:
    assert comparison._span(values) == pytest.approx(span)


@pytest.mark.parametrize(
    ("beliefs", "words"),
    [
        ((0.2, 0.3), "Share of people whose secret is guessed right"),
        ((0.2, None), "Share of people whose secret is guessed right"),
        ((None, None), "Largest share of one secret value in a class"),
    ],
)
def test_the_map_says_what_its_axes_are(beliefs: tuple[float | None, ...], words: str) -> None:
    points = [
        Candidate(f"m{i}", METHODS, 0.0, belief=belief, worst_share=0.5 + i / 10, query_loss=2.0 - i)
        for i, belief in enumerate(beliefs)
    ]
    line, dots, _ = map_chart(points).to_dict()["layer"]
    assert dots["encoding"]["x"]["title"] == words
    assert {key: dots["encoding"]["x"]["scale"][key] for key in ("nice", "zero")} == {"nice": False, "zero": False}
    assert dots["encoding"]["y"]["scale"]["nice"] is False
    assert dots["mark"]["filled"] is True
    assert line["mark"]["strokeDash"] == [4, 3]
    assert [tip["field"] for tip in dots["encoding"]["tooltip"]] == list(dots["data"]["values"][0])


def test_a_candidate_that_loses_as_much_as_a_safer_one_is_beaten() -> None:
    same = [candidate("a", 0.2, 1.0), candidate("b", 0.3, 1.0), candidate("c", 0.4, 1.0 - 2e-12)]
    assert [one.title for one in frontier(same)] == ["a", "c"]


@pytest.mark.parametrize(
    ("errors", "apart"),
    [((), False), ((0.0, 9.0), False), ((1.0, 20.0), False), ((1.0, 20.1), True), ((0.1, 1.0, 2.1), True)],
)
def test_errors_stand_on_a_logarithmic_axis_from_twenty_times_the_least_on(
    errors: tuple[float, ...], apart: bool
) -> None:
    assert comparison._far_apart(errors) is apart
    assert comparison._heights(errors) == (list(np.log10(errors)) if apart else list(errors))


def test_a_logarithmic_axis_reaches_from_the_least_error_to_beyond_the_largest() -> None:
    """Of two powers of ten 8% is left free above; nothing below one error in one."""
    down = map_chart([candidate("a", 0.2, 100.0), candidate("b", 0.4, 1.0)]).to_dict()["layer"][1]["encoding"]["y"]
    assert down["scale"]["domain"] == pytest.approx([1.0, 10**2.16])
