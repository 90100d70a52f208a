"""Exports of Label Studio: ratings and numbers that annotators and models gave to tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueup.io.readers.evaluations.records import is_email, number_of, objects, text_at

if TYPE_CHECKING:
    from trueup.io.readers.evaluations.records import Records

#: Types of results that are numbers.
NUMERIC = ("rating", "number")
UNNAMED = "annotator has no id besides an e-mail address"


def is_tasks(document: Any) -> bool:
    """Tell whether a document is a list of tasks."""
    first = objects(document)[:1]
    return any(
        isinstance(each.get("annotations"), list)
        or ("data" in each and isinstance(each.get("predictions"), list))
        for each in first
    )


def read_tasks(document: Any, records: Records) -> None:
    """Read tasks; what is marked as ground truth is gold and no answer."""
    records.question = ("item", "metric")
    for number, task in enumerate(objects(document), 1):
        place, item = f"task {number}", task.get("id")
        annotations = objects(task.get("annotations"))
        gold = _gold(annotations)
        for annotation in annotations:
            worker = annotation.get("completed_by")
            worker = worker.get("id") if isinstance(worker, dict) else worker
            why = UNNAMED if worker is None or is_email(worker) else ""
            worker = None if why else worker
            if annotation.get("was_cancelled"):
                why = "annotation was cancelled"
            elif annotation.get("ground_truth"):
                why = "ground truth, not an answer (column gold)"
            _add_results(annotation, place, item, worker, gold, why, records)
        for prediction in objects(task.get("predictions")):
            model = text_at(prediction, "model_version")
            why = "" if model else "prediction without a model version"
            _add_results(prediction, place, item, model, gold, why, records)


def _add_results(
    annotation: dict[str, Any],
    place: str,
    item: Any,
    worker: Any,
    gold: dict[str, float | None],
    why: str,
    records: Records,
) -> None:
    results = objects(annotation.get("result"))
    if not results:
        records.add(place, None, why=why or "annotation without a result", item=item, worker=worker)
    for result in results:
        kind, name = text_at(result, "type") or "unknown", text_at(result, "from_name")
        numeric = kind in NUMERIC
        records.add(
            place,
            _value(result),
            why=why or ("" if numeric else f"neither a rating nor a number: {kind}"),
            item=item,
            worker=worker,
            metric=name or kind,
            gold=gold.get(name or kind),
        )


def _value(result: dict[str, Any]) -> Any:
    """Return what stands for the answer: the number, or whatever there is."""
    value, kind = result.get("value"), result.get("type")
    return value.get(kind) if isinstance(value, dict) and isinstance(kind, str) else None


def _gold(annotations: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return the known truth of each question of a task; None where several truths differ."""
    truths: dict[str, set[float]] = {}
    for annotation in annotations:
        if annotation.get("ground_truth") and not annotation.get("was_cancelled"):
            for result in objects(annotation.get("result")):
                number = number_of(_value(result)) if result.get("type") in NUMERIC else None
                if number is not None:
                    name = text_at(result, "from_name") or str(result["type"])
                    truths.setdefault(name, set()).add(number)
    return {name: min(found) if len(found) == 1 else None for name, found in truths.items()}
