"""Real answers with known truth, and sub-panels of them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from evidence.panel_estimates import seed_for
from trueup.answers.scale import Scale
from trueup.datasets import load
from trueup.pipeline.scaling import answers_on_scale
from trueup.study.sources import Drawn, Sampled

if TYPE_CHECKING:
    from trueup.core.arrays import Ints

#: Data sets in which few workers share many questions.
SPARSE = ("calories", "population")
RANDOM_WORKERS, RANDOM_ANSWERS, EVERYTHING = "workers", "answers", "everything"
FEWEST_QUESTIONS = 8


def load_source(name: str, data: str | None) -> Sampled:
    """Load a data set, restricted to the questions with known truth."""
    scale = Scale("log1p" if name == "population" else None)
    dataset = load(name, data=data)
    answers = answers_on_scale(dataset.answers, scale)
    if dataset.truth is None:
        return Sampled(name, answers, None)
    truth = scale.forward(dataset.truth_array)
    known = np.flatnonzero(np.isfinite(truth))
    if len(known) < answers.n_questions:
        answers = answers.subset(known)
    blocks: Ints | None = None
    if dataset.blocks is not None:
        names = [str(dataset.blocks[id_]) for id_ in answers.question_ids.tolist()]
        blocks = np.unique(names, return_inverse=True)[1]
    return Sampled(name, answers, truth[known], sparse=name in SPARSE, blocks=blocks)


source_of = lru_cache(maxsize=None)(load_source)


def draw(
    name: str, data: str | None, how: str, answers_each: int, panels: int, seed: int
) -> Drawn | None:
    """Draw sub-panels of all questions (of a block); everything is one panel. None where there are too few."""
    source = source_of(name, data)
    if how == EVERYTHING:
        return None if source.truth is None else Drawn(source.answers, source.truth)
    if how == RANDOM_WORKERS and source.sparse:
        return None
    questions = source.answers.n_questions
    if how == RANDOM_ANSWERS:
        source = replace(source, sparse=True, blocks=None)
        questions = int((source.answers.counts >= answers_each).sum())
    elif source.blocks is not None:
        questions = int(np.bincount(source.blocks).min())
    if questions < FEWEST_QUESTIONS or not source.fits(answers_each, questions):
        return None
    return source.draw(panels, answers_each, questions, seed_for(seed, name, how, answers_each))
