"""The scale of the answers is a view: any engine gives the same numbers on it, and the same errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from trueup import Answers, disk, estimate
from trueup.answers.scale import PanelScales, Scale
from trueup.engines import vectors
from trueup.engines.memory import MemoryEngine
from trueup.errors import AnswersError
from trueup.pipeline.scaling import answers_on_scale, keep_gold, on_scale

if TYPE_CHECKING:
    from pathlib import Path

SCALES = [
    Scale("log"),
    Scale("log1p", (0.0, 50.0)),
    Scale("logit", (0.0, 100.0)),
]
ON_SPARK = pytest.mark.needs("java")
PLACES = ["memory", "disk", pytest.param("spark", marks=ON_SPARK)]


def table(seed: int = 1) -> pd.DataFrame:
    """Answers above 0 over many sizes, with variances of their own."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"q{j}", f"w{i}", float(np.exp(0.3 * rng.normal() + j / 6)), rng.uniform(0.5, 2.0))
        for j in range(20)
        for i in range(6)
        if rng.random() < 0.7
    ]
    return pd.DataFrame(rows, columns=["question", "worker", "answer", "variance"])


def run(place: str, frame: pd.DataFrame, folder: Path, **options: Any) -> Any:
    """Estimate, and return the questions in the order of their ids."""
    options = {"method": "mean", "shrink": "normal", **options}
    if place == "memory":
        return estimate(frame, **options).questions.sort_values("question")
    if place == "disk":
        source, out = folder / "a.parquet", folder / "o.parquet"
        frame.to_parquet(source)
        disk.estimate(source, out, **options)
        return pd.read_parquet(out).sort_values("question")
    pytest.importorskip("pyspark", reason="needs pyspark")
    from spark_session import session
    from trueup import spark

    with spark.estimate(session().createDataFrame(frame), partitions=2, **options) as est:
        return est.questions.toPandas().sort_values("question")


@pytest.mark.parametrize("scale", SCALES)
def test_values_are_those_of_transformed_answers(scale: Scale) -> None:
    """Answers that were transformed before they were read differ by nothing but rounding."""
    frame = table()
    given = answers_on_scale(Answers.of(frame, answer_variance="variance"), scale)
    values = scale.forward(frame["answer"].to_numpy())
    carried = frame["variance"] / scale.slope(values) ** 2
    expected = Answers.of(frame.assign(answer=values, variance=carried), answer_variance="variance")
    assert given.precision is not None
    assert expected.precision is not None
    np.testing.assert_allclose(given.values, expected.values, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(given.centre, expected.centre, rtol=1e-14)
    np.testing.assert_allclose(given.precision, expected.precision, rtol=1e-12)
    assert given.answer_variance == pytest.approx(expected.answer_variance, rel=1e-12)


@pytest.mark.parametrize("place", PLACES[1:])
@pytest.mark.parametrize("scale", SCALES)
def test_every_engine_finds_the_same_on_a_scale(place: str, scale: Scale, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "transform": scale.transform,
        "bounds": scale.bounds,
        "answer_variance": "variance",
        "gold": {f"q{j}": float(np.exp(j / 6)) for j in range(0, 20, 2)},
    }
    expected = run("memory", table(), tmp_path, **options)
    found = run(place, table(), tmp_path, **options)
    for name in ("estimate", "lower", "upper", "std_error", "base"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9)


@pytest.mark.parametrize("place", PLACES)
def test_answers_without_a_place_on_the_scale_are_named(place: str, tmp_path: Path) -> None:
    frame = table()
    bad = frame.index[(frame["question"] == "q7")][:2]
    frame.loc[bad, "answer"] = [0.0, -1.0]
    first, second = (f'worker "{frame["worker"][i]}" on question "q7"' for i in bad)
    with pytest.raises(AnswersError) as caught:
        run(place, frame, tmp_path, transform="log")
    assert str(caught.value) == (
        f"transform: log needs answers above 0 (log1p takes 0); 2 of {len(frame)} are not, such as {first} (0.0), "
        f"{second} (-1.0). Drop or mend these answers, or choose another transform."
    )


@pytest.mark.parametrize("place", PLACES)
def test_every_engine_names_the_same_answer_of_many(place: str, tmp_path: Path) -> None:
    frame = table().assign(answer=lambda rows: -rows["answer"])
    with pytest.raises(AnswersError) as caught:
        run(place, frame, tmp_path, transform="log1p")
    with pytest.raises(AnswersError) as expected:
        run("memory", frame, tmp_path, transform="log1p")
    assert str(caught.value) == str(expected.value)
    assert "log1p needs answers above -1" in str(caught.value)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("options", "truth", "rule"),
    [
        ({"transform": "log"}, -1.0, "log needs truths above 0 (log1p takes 0)"),
        ({"bounds": (0.0, 100.0)}, 101.0, "the bounds are 0 and 100"),
    ],
)
def test_truths_without_a_place_on_the_scale_are_named(
    place: str, options: dict[str, Any], truth: float, rule: str, tmp_path: Path
) -> None:
    with pytest.raises(AnswersError) as caught:
        run(place, table(), tmp_path, gold={"q1": 2.0, "q3": truth}, **options)
    assert str(caught.value) == (
        f'gold: question "q3" has the truth {truth:g}, but {rule}. '
        "Fix or remove it, or change transform or bounds."
    )


def test_answers_far_below_the_centre_lose_no_digit() -> None:
    """Relative to the centre, 1e-20 would be 0, and its logarithm none."""
    matrix = np.array([[1e-20, 1.0], [1.0, 3.0], [2.0, 5.0]])
    found = answers_on_scale(Answers.from_matrix(matrix), Scale("log"))
    np.testing.assert_allclose(found.to_matrix(), np.log(matrix), rtol=1e-15)


def test_variances_that_are_none_on_the_scale_are_refused() -> None:
    rows = [("q", "a", 1e-170, 1.0), ("q", "b", 1.0, 1.0)]
    frame = pd.DataFrame(rows, columns=["question", "worker", "answer", "variance"])
    with pytest.raises(AnswersError, match=r"^answer_variance: 1 of 2 variances are too small"):
        estimate(frame, "mean", transform="log", answer_variance="variance")


def test_every_panel_may_have_a_scale_of_its_own() -> None:
    frame = pd.concat([table(seed).assign(panel=seed) for seed in range(4)])
    panels = Answers.from_frame(frame, panel="panel")
    log, plain, log1p = Scale("log"), Scale(), Scale("log1p", (0.0, 3.0))
    scales = PanelScales((log, plain, log1p), np.array([0, 1, 2, 0]))
    engine = MemoryEngine(panels, block_answers=60)
    gold = np.where(np.arange(panels.n_questions) % 3 == 0, 2.0, np.nan)
    engine.keep(vectors.GOLD, gold)
    scaled = on_scale(engine, scales)
    keep_gold(scaled, scales)
    found = scaled.gather()
    for number, scale in enumerate((log, plain, log1p, log)):
        mine, alone = found.panel(number), answers_on_scale(panels.panel(number), scale)
        np.testing.assert_array_equal(mine.values, alone.values)
        np.testing.assert_array_equal(mine.centre, alone.centre)
        questions = slice(*panels.panel_questions[[number, number + 1]])
        truths = scaled.kept(vectors.SCALED_GOLD)[questions]
        np.testing.assert_array_equal(truths, scale.forward(gold[questions]))
    for block in scaled.blocks:  # type: ignore[attr-defined]
        back = scales.backward(block, block.centre)
        centre = panels.centre[block.start : block.stop]
        inside = np.where(scales.number_of(block) == 2, np.clip(centre, 0.0, 3.0), centre)
        np.testing.assert_allclose(back, inside, rtol=1e-12)


def test_an_error_speaks_of_the_scale_of_its_panel() -> None:
    cube = np.ones((2, 3, 4))
    cube[1, 2, 3] = -0.5
    panels = Answers.from_matrix(cube)
    on_scale(MemoryEngine(panels), PanelScales((Scale("log"), Scale("log1p")), np.array([0, 1])))
    swapped = PanelScales((Scale("log"), Scale("log1p")), np.array([1, 0]))
    with pytest.raises(
        AnswersError, match=r"^transform: log needs .*worker 2 on question 3 \(-0.5\)"
    ):
        on_scale(MemoryEngine(panels), swapped)
