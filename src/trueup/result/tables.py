"""The tables of an estimate: questions, workers, parts; as columns, and as frames of the caller's library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.answers.scale import LOGARITHMS
from trueup.engines import vectors
from trueup.engines.protocol import Visit
from trueup.io.frames_out import make_frame
from trueup.io.table import concatenated
from trueup.pipeline.solution import COLUMNS, UNKNOWN
from trueup.shrinkage.adaptive_prior import AdaptivePrior

if TYPE_CHECKING:
    from trueup.answers.block import Block
    from trueup.core.arrays import Floats, Ints
    from trueup.engines.protocol import Kept
    from trueup.io.table import Ids
    from trueup.result.estimate import Estimate

#: Columns of the workers that may be unknown.
UNKNOWN_OF_WORKERS = ("variance", "bias", "flag", "bias_std_error")
#: Parts a question belongs to with less than this probability are not listed.
SMALLEST_SHARE = 0.001


def question_frame(est: Estimate, kind: str) -> Any:
    """Return the questions as a frame of a library; on a cluster as a lazy frame of the cluster."""
    if kind == "spark":
        return _cluster_frame(est)
    problem, more = est.problem, unanswered(est)
    columns: dict[str, Any] = {
        **_panel_column(est, "question_panel"),
        "question": problem.question_ids,
        **{name: getattr(est, name) for name in COLUMNS},
        "n_answers": problem.counts,
    }
    if more is None:
        return make_frame(kind, columns, null_columns=UNKNOWN, names=problem.names)
    columns["question"] = concatenated(problem.question_ids, more)
    for name in COLUMNS:
        columns[name] = np.append(columns[name], np.full(len(more), np.nan))
    columns["n_answers"] = np.append(problem.counts, np.zeros(len(more), dtype=np.int64))
    return make_frame(kind, columns, null_columns=tuple(COLUMNS), names=problem.names)


def unanswered(est: Estimate) -> Ids | None:
    """Return the questions that nobody answered, of a table that lists them; None where there are none."""
    origin = getattr(est.problem, "origin", None)
    whole = origin is not None and getattr(est.problem, "question_source", None) is None
    return origin.unanswered if origin is not None and whole else None


def worker_frame(est: Estimate, kind: str) -> Any:
    """Return the workers as a frame of a library."""
    columns = {**_panel_column(est, "worker_panel"), **est.worker_columns}
    library = "pyarrow" if kind == "spark" else kind
    table = make_frame(library, columns, null_columns=UNKNOWN_OF_WORKERS, names=est.problem.names)
    if kind != "spark":
        return table
    cluster: Any = est.solution.root
    return cluster.to_frame(table)


def worker_columns(est: Estimate) -> dict[str, Any]:
    """Return the columns of the workers; the variance is unknown where there is nothing to learn it from."""
    aggregate, biases = est.aggregate, est.biases
    facts = aggregate.facts
    if est.worker_values is not None:
        variance, bias = est.worker_values["variance"], est.worker_values["bias"]
    else:
        # The bias that was removed, by us or by the method; NaN where none was looked for.
        bias = np.full(facts.n_workers, np.nan) if aggregate.bias is None else aggregate.bias
        if biases is not None and not aggregate.algorithm.concludes:
            bias = biases.value if aggregate.bias is None else biases.value + bias
        known, noise = aggregate.algorithm.needs_variance, est.second_step.noise
        own = known or noise is None or aggregate.algorithm.concludes
        variance = aggregate.noise if own or noise is None else noise.variance
        variance = np.where((facts.spread(facts.overlap) > 0) | known, variance, np.nan)
    columns: dict[str, Any] = {
        "worker": est.problem.worker_ids,
        "weight": aggregate.weight,
        "variance": variance,
        "bias": bias,
        "n_answers": facts.n_answers.astype(np.int64),
        "flag": est.findings.flags,
    }
    # Not where the data decide: columns are to be the same for all data.
    if est.request.plan.bias is True:
        unknown = np.full(facts.n_workers, np.nan)
        columns["bias_std_error"] = unknown if biases is None else biases.std_error
    return columns


def partition_frame(est: Estimate) -> Any:
    """Return the parts that questions belong to, with probabilities; None where no partition was found."""
    prior, sure, problem = est.second_step.prior, est.second_step.certainty, est.problem
    if not isinstance(prior, AdaptivePrior) or problem.n_panels > 1:
        return None
    columns: dict[str, Any]
    groups = est.groups
    if prior.model[0].startswith("group") and groups is not None:
        labelled = np.flatnonzero(groups.codes >= 0)
        columns = {
            "question": problem.question_ids.take(labelled),
            "part": groups.ids.take(groups.codes[labelled]),
            "probability": np.ones(len(labelled)),
        }
        return make_frame(est.kind, columns, names=problem.names)
    belongs = prior.partition(est.aggregate.x, sure.v)[0]
    if belongs is None:
        return None
    question, part = np.nonzero(belongs > SMALLEST_SHARE)
    columns = {
        "question": problem.question_ids.take(question),
        "part": part + 1,
        "probability": belongs[question, part],
    }
    return make_frame(est.kind, columns, names=problem.names)


def least_certain(est: Estimate, count: int) -> Ints:
    """Return the numbers of the questions with the largest standard errors, unknown ones first.

    Where logarithms were combined errors grow with the value, and count relative to it.
    """
    relative = est.solution.scale.transform in LOGARITHMS

    def visit(block: Block, kept: Kept) -> Visit:
        error = kept[vectors.STD_ERROR]
        if relative:
            error = error / np.maximum(np.abs(kept[vectors.ESTIMATE]), 1e-300)
        error = np.where(np.isnan(error), np.inf, error)
        worst = _largest(error, count)
        number = (block.start + worst).astype(np.float64)
        return Visit(rows={"error": error[worst], "number": number})

    reads = (vectors.STD_ERROR, vectors.ESTIMATE)
    rows = est.solution.engine.sweep(visit, reads=reads, answers=False).rows
    return rows["number"][_largest(rows["error"], count)].astype(np.int64)


def _largest(values: Floats, count: int) -> Ints:
    """Return where the largest values are, the largest first, equal ones in order."""
    places = np.arange(len(values))
    if len(values) > count > 0:
        places = np.flatnonzero(values >= np.partition(values, -count)[-count])
    return places[np.argsort(-values[places], kind="stable")[:count]]


def _panel_column(est: Estimate, name: str) -> dict[str, Any]:
    """Return the column that tells panels apart, where there are several or they have names."""
    origin = getattr(est.problem, "origin", None)
    ids = None if origin is None else origin.panel_ids
    if est.problem.n_panels == 1 and ids is None:
        return {}
    panel = getattr(est.problem, name)
    return {"panel": panel if ids is None else ids.take(panel)}


def _cluster_frame(est: Estimate) -> Any:
    """Return a frame of the cluster, made of its blocks whenever it is asked for."""
    cluster: Any = est.solution.engine  # the one whose blocks were combined
    pooled = [] if est.pooling is None else [vectors.ANSWERED]
    return cluster.frame(
        _reported,
        (*COLUMNS.values(), *pooled),
        columns={**dict.fromkeys(COLUMNS, "double"), "n_answers": "long"},
    )


def _reported(block: Block, kept: Kept) -> Visit:
    """Return the columns of the questions under the names they are reported by."""
    columns = {column: kept[name] for column, name in COLUMNS.items()}
    # Blocks of pooled workers have fewer answers than were given.
    answered = kept.get(vectors.ANSWERED, block.counts.astype(float))
    return Visit(questions={**columns, "n_answers": answered})
