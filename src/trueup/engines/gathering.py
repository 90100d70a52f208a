"""Chosen questions of many blocks as one problem in memory; what `Engine.gather` has in common on all engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.arrays import compact, expand, narrow, offsets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trueup.answers.block import Block
    from trueup.core.arrays import Floats, Ints
    from trueup.engines.protocol import Engine


def chosen_arrays(block: Block, questions: Ints) -> dict[str, NDArray[Any]]:
    """Return the arrays of some questions of a block."""
    counts = block.counts[questions]
    indices = expand(block.indptr[questions].astype(np.int64), counts)
    per_answer = {
        "workers": block.workers,
        "values": block.values,
        "precision": block.precision,
        "given": block.given,
    }
    arrays = {name: each[indices] for name, each in per_answer.items() if each is not None}
    return {"counts": counts, "centre": block.centre[questions], **arrays}


def joined_arrays(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Join the arrays of several blocks; answers as given are kept if any block has them apart."""
    if any("given" in part for part in parts):
        parts = [{"given": _as_given(part), **part} for part in parts]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _as_given(part: dict[str, NDArray[Any]]) -> Floats:
    answers: Floats = part["values"] + np.repeat(part["centre"], part["counts"])
    return answers


def answer_fields(arrays: dict[str, NDArray[Any]], engine: Engine) -> tuple[dict[str, Any], Ints]:
    """Return the fields of one panel of Answers, all but where they came from, and the workers that are left."""
    counts, known = arrays["counts"], engine.problem.worker_variance
    worker, present = compact(arrays["workers"].astype(np.int64), engine.problem.n_workers)
    fields = {
        "indptr": offsets(counts),
        "workers": narrow(worker, len(present)),
        "values": arrays["values"],
        "centre": arrays["centre"],
        "given": arrays.get("given"),
        "precision": arrays.get("precision"),
        "answer_variance": engine.answer_variance,
        "worker_variance": None if known is None else known[present],
        "panel_questions": np.array([0, len(counts)]),
        "panel_workers": np.array([0, len(present)]),
    }
    return fields, present
