"""Hubs of forecasts (hubverse): a folder per model, a row per task and output type.

A model's answer to a task is its median, or the quantile 0.5, or the mean, the first of these that it gives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trueup.io.encode import encode
from trueup.io.readers.evaluations.records import REASON, LeftOut, number_of
from trueup.io.series import to_list

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from trueup.io.readers.source import Source
    from trueup.io.series import Series

TYPE, LEVEL, VALUE = OUTPUT = ("output_type", "output_type_id", "value")
#: The column of the models, where files of several are joined already.
MODEL = "model_id"
#: What can be a model's answer, best first.
POINTS = ("median", "quantile 0.5", "mean")


def is_hub(names: Collection[str]) -> bool:
    """Tell whether these are the columns of a file of forecasts."""
    return all(name in names for name in OUTPUT)


def hub_source(source: Source, worker: str) -> Source:
    """Return a source whose questions are the tasks; `worker` is the column of the models."""
    tasks = tuple(name for name in source.names if name not in (*OUTPUT, worker))
    names = [*tasks, worker, "answer", TYPE, LEVEL]

    def load(wanted: Sequence[str], ids: Collection[str]) -> dict[str, Series]:
        judged = [*tasks, worker, TYPE, LEVEL] if REASON in wanted else []
        own = {VALUE if name == "answer" else name: name for name in wanted if name != REASON}
        columns = source.load(list(dict.fromkeys([*own, *judged])) or [VALUE], [*ids, *judged])
        found = {name: columns[key] for key, name in own.items()}
        if REASON in wanted:
            found[REASON] = _reasons(columns, [*tasks, worker])
        return found

    return replace(source, names=names, load=load, question=tasks, reasons=REASON)


def _reasons(columns: Mapping[str, Series], ids: Sequence[str]) -> NDArray[np.object_]:
    """Say of each row why it is no model's answer to a task; None where it is."""
    kinds = _kinds(columns)
    why = np.full(len(kinds), "", dtype=object)
    for kind in set(kinds) - set(POINTS):
        why[kinds == kind] = f"{kind}, no point forecast"
    rank = np.full(len(kinds), len(POINTS))
    for place, point in enumerate(POINTS):
        rank[kinds == point] = place
    group = np.zeros(len(kinds), dtype=np.int64)
    for name in ids:
        codes = encode(columns[name], column=name).codes.astype(np.int64) + 1
        group = np.unique(group * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    best = np.full(int(group.max(initial=0)) + 1, len(POINTS))
    np.minimum.at(best, group, rank)
    for place, point in enumerate(POINTS):
        worse = (rank == place) & (best[group] < place)
        why[worse] = f"{point} beside a better point forecast"
    known = {text: LeftOut(text, None) if text else None for text in set(why)}
    return np.fromiter((known[text] for text in why), dtype=object, count=len(why))


def _kinds(columns: Mapping[str, Series]) -> NDArray[np.object_]:
    """Return the output type of each row; quantiles other than 0.5 are one kind."""
    kinds = []
    for kind, level in zip(to_list(columns[TYPE]), to_list(columns[LEVEL]), strict=True):
        name = str(kind)
        if name == "quantile":
            middle = number_of(level) == 0.5
            name = "quantile 0.5" if middle else "quantile other than 0.5"
        kinds.append(name if len(name) <= 40 else "other output type")
    return np.array(kinds, dtype=object)
