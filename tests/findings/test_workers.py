"""The verdict on each worker: what is flagged, how often wrongly, and whether intervals cover."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import trueup
from trueup import TrueupError
from trueup.findings import worker_table as words
from trueup.findings.collection import Findings
from trueup.variance.correlated import sample

if TYPE_CHECKING:
    from pathlib import Path


def odd_panel() -> trueup.Estimate:
    """Twelve workers, some of them odd, each in a way of its own."""
    x = trueup.simulate(workers=13, questions=80, variance="fixed", seed=3).answers.to_matrix()
    x[2] = 0.5
    x[3] -= 2.0
    x[4] += 2.0
    x[5] += 5.0 * np.random.default_rng(1).normal(size=80)
    x[7] = x[6]
    x[8, ::8] += 30.0
    x[9, 3:] = np.nan
    x[10] = np.nan
    alone = np.full((13, 2), np.nan)
    alone[10] = (1.0, 2.0)
    return trueup.estimate(np.hstack([x, alone]))


def test_every_oddity_is_named_and_nobody_else() -> None:
    table = odd_panel().findings.workers
    flags = dict(enumerate(table.flags))
    assert flags[2] == (words.SAME_ANSWER,)
    assert flags[3] == (words.HARSH,)
    assert flags[4] == (words.LENIENT,)
    assert words.NOISY in flags[5]
    assert words.COPIES in flags[6]
    assert words.COPIES in flags[7]
    assert words.FAR_OFF in flags[8]
    assert flags[9] == (words.TOO_FEW,)
    assert flags[10] == (words.SHARES_NOTHING,)
    assert [flags[i] for i in (0, 1, 11, 12)] == [()] * 4
    assert table.partner[6] == 7
    text = str(table)
    assert "too few answers to judge: fewer than 5 to questions that others answered too" in text
    assert "identical answers with 7" in text
    assert "answers about 1.7 ± 0.24 too low; corrected" in text
    assert "12% of answers are far off" in text


@pytest.mark.parametrize("many", [2_000_000, 400])
@pytest.mark.parametrize("bias", [False, True])
def test_verdicts_on_disk_are_those_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int, bias: bool
) -> None:
    """Of all questions, and of a sample of them."""
    disk = pytest.importorskip("trueup.disk", reason='needs pip install "trueup[files]"')
    pq = pytest.importorskip("pyarrow.parquet")
    from trueup.cli.tables import answers_table

    answers = answers_table(odd_panel().answers)
    pq.write_table(answers, tmp_path / "answers.parquet")
    monkeypatch.setattr(sample, "MANY", many)
    monkeypatch.setattr(sample, "ENOUGH", 600)
    monkeypatch.setattr(sample, "EACH", 1)
    here = trueup.estimate(answers, "median", bias=bias).findings.workers
    there = disk.estimate(
        tmp_path / "answers.parquet", tmp_path / "truths.parquet", "median", bias=bias
    ).findings.workers
    order = here.worker_ids.sort_order()
    assert ("a sample of" in here.note) == (many == 400)
    assert there.note == here.note
    assert there.worker_ids.tolist() == here.worker_ids.tolist(order)
    assert there.flags == tuple(here.flags[i] for i in order.tolist())
    assert sum(map(len, there.flags)) > 8
    names, others = ([*each.worker_ids.tolist(), None] for each in (here, there))
    assert [names[i] for i in here.partner[order]] == [others[i] for i in there.partner]
    for name in ("variance", "variance_lower", "bias", "bias_std_error", "far_off", "weight"):
        ours, theirs = getattr(here, name)[order], getattr(there, name)
        np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-12, err_msg=name)
    assert len(there.correlated.pairs) == len(there.correlated) == len(here.correlated)
    assert there.workers.column("flag").to_pylist() == there.flag


@pytest.mark.parametrize("known", [True, False])
def test_of_very_many_answers_a_sample_of_questions_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """Whether the estimate has the noise of the workers or not."""
    x = trueup.simulate(workers=14, questions=400, variance="fixed", seed=3).answers.to_matrix()
    x[3] -= 2.0
    x[5] += 5.0 * np.random.default_rng(1).normal(size=400)
    x[7] = x[6]
    x[8, ::8] += 30.0
    x[0, 1:] = np.nan
    est = trueup.estimate(x, "crh", "normal")
    solution = est.solution
    if not known:
        shrunk = replace(est.second_step, noise=None)
        solution = replace(solution, shrunk=lambda: shrunk)
    whole = Findings(solution, "pandas").workers
    monkeypatch.setattr(sample, "MANY", 4000)
    monkeypatch.setattr(sample, "ENOUGH", 2000)
    part = Findings(solution, "pandas").workers
    assert part.flags == whole.flags
    assert part.flags[0] == (words.TOO_FEW,)
    assert part.partner[7] == 6
    assert "Based on a sample of 153 of 400 questions." in str(part)
    assert "a sample of" not in str(whole)
    assert np.array_equal(part.variance, whole.variance, equal_nan=True) == known
    ours = part.bias[1:] - whole.bias[1:]
    assert np.abs(ours / part.bias_std_error[1:]).max() < 4.0
    assert len(part.workers) == 14


def test_the_frame_has_a_row_per_worker() -> None:
    table = odd_panel().findings.workers
    frame = table.workers
    assert len(frame["worker"]) == 13
    assert frame["flag"][2] == "always the same answer"
    assert frame["partner"][6] == "7"
    assert np.isnan(frame["variance"][10])
    assert frame["n_shared"][9] == 3
    assert not frame["bias_clear"][9]


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({"variance": "fixed"}, 0.03),
        ({"variance": "normal"}, 0.03),
        ({"noise": "laplace"}, 0.05),
        ({"workers": 30, "questions": 100, "answers_per_question": 5}, 0.03),
    ],
)
def test_ordinary_workers_are_rarely_flagged(options: dict[str, object], most: float) -> None:
    """Few of normal workers, some with heavier tails, most of these for answers that are far off."""
    flagged = total = 0
    for seed in range(12):
        settings: dict[str, object] = {"workers": 10, "questions": 50, **options}
        answers = trueup.simulate(seed=seed, **settings).answers  # type: ignore[arg-type]
        table = trueup.estimate(answers, "native", "normal").findings.workers
        flagged += len(table.remarkable)
        total += answers.n_workers
    assert flagged <= most * total + 2


def test_biases_clear_of_zero_have_the_right_sign() -> None:
    wrong = clear = total = 0
    for seed in range(12):
        sim = trueup.simulate(workers=12, questions=40, bias=0.5, seed=seed)
        table = trueup.estimate(sim.answers, "native", "normal").findings.workers
        bias = sim.bias - sim.bias.mean()
        wrong += int((table.bias_clear & (np.sign(bias) != np.sign(table.bias))).sum())
        clear += int(table.bias_clear.sum())
        total += 12
    assert clear > 0.4 * total
    assert wrong <= 0.025 * total


@pytest.mark.parametrize(
    ("noise", "least"), [("normal", 0.9), ("student", 0.85)], ids=["normal", "tails"]
)
def test_variance_intervals_cover(noise: str, least: float) -> None:
    inside = []
    for seed in range(16):
        sim = trueup.simulate(workers=10, questions=50, noise=noise, seed=seed)  # type: ignore[arg-type]
        table = trueup.estimate(sim.answers, "native", "normal").findings.workers
        inside += (
            (table.variance_lower <= sim.worker_variance)
            & (sim.worker_variance <= table.variance_upper)
        ).tolist()
    assert least <= np.mean(inside) <= 0.99


def test_a_noisy_worker_is_noticed_with_enough_answers_only() -> None:
    x = trueup.simulate(workers=10, questions=60, variance="fixed", seed=6).answers.to_matrix()
    x[0] += 4.0 * np.random.default_rng(2).normal(size=60)
    assert words.NOISY in trueup.estimate(x).findings.workers.flags[0]
    x[0, 4:] = np.nan
    assert trueup.estimate(x).findings.workers.flags[0] == (words.TOO_FEW,)


def test_biases_taken_off_are_still_shown() -> None:
    x = trueup.simulate(workers=8, questions=60, variance="fixed", seed=7).answers.to_matrix()
    x[1] += 3.0
    table = trueup.estimate(x, bias=True).findings.workers
    assert table.flags[1] == (words.LENIENT,)
    assert table.bias[1] == pytest.approx(2.6, abs=0.5)


@pytest.mark.parametrize(
    "x",
    [
        [[5.0]],
        [[1.0, 2.0, 3.0]],
        np.ones((4, 12)),
        np.tile(np.arange(12.0), (4, 1)),
        np.arange(12.0) + np.arange(4.0)[:, None],
        [[1.0, 2.0], [2.0, 1.0]],
        np.array([[1.0, np.nan], [np.nan, 2.0]]),
    ],
)
def test_any_answers_give_words(x: object) -> None:
    table = trueup.estimate(x).findings.workers
    assert str(table)
    assert len(table.flag) == len(table.flags)


def test_panels_are_refused() -> None:
    est = trueup.estimate(trueup.simulate(panels=2).answers, method="mean")
    with pytest.raises(TrueupError, match="panels"):
        len(est.findings.workers.flags)


def test_biases_of_logarithms_are_said_in_per_cent() -> None:
    rng = np.random.default_rng(1)
    x = np.exp(rng.normal(4.0, 1.0, 60) + rng.normal(0.0, 0.1, (6, 60)))
    x[2] *= 1.5
    x[4] *= 0.5
    logarithms = trueup.estimate(x)
    assert logarithms.diagnosis.transform == "proportional"
    for worker, side in ((2, "high"), (4, "low")):
        (remark,) = logarithms.findings.workers.remarks(worker)
        said = re.fullmatch(rf"answers about (\d+)% ± \d% too {side}; corrected", remark)
        assert said
        assert abs(int(said[1]) - 50) < 5
    plain = trueup.estimate(np.log(x), transform="none").findings.workers
    assert "about 0.4" in plain.remarks(2)[0]
    assert "%" not in plain.remarks(2)[0]


# -- typical answers, whatever slips there are --------------------------------------------------------


def positive_panel(seed: int, slips: int = 0, factor: float = 10.0) -> np.ndarray:
    """Eight workers with errors of 10%, the last one of 35%; some of the others slip once each."""
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(4.0, 1.0, 30) + rng.normal(0.0, 0.1, (8, 30)))
    x[7] *= np.exp(rng.normal(0.0, 0.35, 30))
    for worker in range(slips):
        x[worker, 3 + 4 * worker] *= factor
    return x


@pytest.mark.parametrize("slips", [1, 3, 5])
@pytest.mark.parametrize("factor", [10.0, 1000.0])
@pytest.mark.parametrize("method", ["auto", "mean"])
def test_a_slip_neither_condemns_a_worker_nor_hides_another(
    slips: int, factor: float, method: str
) -> None:
    for seed in range(3):
        found = trueup.estimate(positive_panel(seed, slips, factor), method).findings
        assert [flags for flags in found.workers.flags[:7] if flags] == []
        assert words.NOISY in found.workers.flags[7]
        assert found.answers is not None
        listed = zip(
            found.answers.question_ids.tolist(), found.answers.worker_ids.tolist(), strict=True
        )
        assert {(3 + 4 * i, i) for i in range(slips)} <= set(listed)
        assert found.workers.n_suspicious is not None
        assert found.workers.n_suspicious[:slips].tolist() == [1] * slips


def test_verdicts_without_slips_are_those_of_all_answers() -> None:
    clean, slipped = (
        trueup.estimate(positive_panel(1, slips)).findings.workers for slips in (0, 1)
    )
    np.testing.assert_allclose(slipped.variance, clean.variance, rtol=0.35)
    np.testing.assert_allclose(slipped.bias, clean.bias, atol=0.03)


def test_slips_are_set_aside_on_disk_too(tmp_path: Path) -> None:
    disk = pytest.importorskip("trueup.disk", reason='needs pip install "trueup[files]"')
    pq = pytest.importorskip("pyarrow.parquet")
    from trueup.cli.tables import answers_table

    answers = answers_table(trueup.Answers.of(positive_panel(2, 3)))
    pq.write_table(answers, tmp_path / "answers.parquet")
    here = trueup.estimate(answers).findings.workers
    there = disk.estimate(
        tmp_path / "answers.parquet", tmp_path / "truths.parquet"
    ).findings.workers
    order = here.worker_ids.sort_order()
    assert there.flags == tuple(here.flags[i] for i in order.tolist())
    np.testing.assert_allclose(there.variance, here.variance[order], rtol=1e-9)


def test_many_slips_are_still_pointed_out() -> None:
    x = positive_panel(4)
    x[2, ::6] *= 10.0
    table = trueup.estimate(x).findings.workers
    assert words.FAR_OFF in table.flags[2]
    assert table.far_off[2] == pytest.approx(5 / 30, abs=0.04)


@pytest.mark.parametrize("slips", [0, 1, 2])
def test_always_the_same_answer_survives_two_slips(slips: int) -> None:
    rng = np.random.default_rng(5)
    x = np.round(rng.normal(60.0, 10.0, 40) + rng.normal(0.0, 4.0, (7, 40)))
    x[3] = 60.0
    x[3, [4, 9][:slips]] = [600.0, 72.0][:slips]
    expected = words.NEARLY_SAME if slips else words.SAME_ANSWER
    est = trueup.estimate(x)
    assert est.findings.workers.flags[3] == (expected,)
    assert est.findings.flags[3] == expected
    assert est.findings.workers.remarkable[0] == 3
    x[3, [20, 21, 22]] = [55.0, 71.0, 80.0]
    assert expected not in trueup.estimate(x).findings.workers.flags[3]


def test_an_answer_that_everybody_mostly_gives_is_nothing_special() -> None:
    rng = np.random.default_rng(6)
    x = np.where(rng.random((6, 40)) < 0.96, 5.0, 4.0)
    x[0] = 5.0
    x[0, [3, 4]] = 4.0
    assert words.NEARLY_SAME not in trueup.estimate(x).findings.workers.flags[0]


def test_biases_say_whether_they_were_corrected_and_come_after_what_needs_action() -> None:
    x = trueup.simulate(workers=9, questions=60, variance="fixed", seed=7).answers.to_matrix()
    x[1] += 3.0
    x[5] += 6.0 * np.random.default_rng(1).normal(size=60)
    corrected, left = (
        trueup.estimate(x, "mean", bias=bias).findings.workers for bias in (True, False)
    )
    assert re.fullmatch(
        r"answers about \d(\.\d)? ± 0\.\d+ too high; corrected", corrected.remarks(1)[0]
    )
    assert left.remarks(1)[0].endswith(" too high; not corrected")
    assert corrected.remarkable[0] == 5
    assert 1 in corrected.remarkable[1:]
    assert trueup.estimate(x).findings.workers.remarks(1)[0].endswith("; corrected")
