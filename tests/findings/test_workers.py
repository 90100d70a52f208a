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
    assert "answers too low (harsh) by 1.77 ± 0.22" in text
    assert "14% of answers are far off" in text


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
    for worker, words_of in ((2, "high (lenient)"), (4, "low (harsh)")):
        (remark,) = logarithms.findings.workers.remarks(worker)
        said = re.fullmatch(rf"answers too {re.escape(words_of)} by (\d+)% ± \d%", remark)
        assert said
        assert abs(int(said[1]) - 50) < 5
    plain = trueup.estimate(np.log(x), transform="none").findings.workers
    assert "by 0.4" in plain.remarks(2)[0]
    assert "%" not in plain.remarks(2)[0]
