"""Test runs of DeepEval: scores of metrics, each computed with an evaluation model."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from trueup.io.readers.evaluations.records import numbered, objects, text_at

if TYPE_CHECKING:
    from trueup.io.readers.evaluations.records import Records

#: Where test cases stand, those of one turn and of several.
CASES = ("testCases", "conversationalTestCases")


def cases_of(document: Any) -> list[dict[str, Any]]:
    """Return the test cases of a document; none if it is something else."""
    run = document.get("testRunData", document) if isinstance(document, dict) else None
    if not isinstance(run, dict):
        return []
    return [case for key in CASES for case in objects(run.get(key))]


def is_test_run(document: Any) -> bool:
    """Tell whether a document is a test run."""
    return any("metricsData" in case for case in cases_of(document))


def read_test_run(document: Any, records: Records) -> None:
    """Read a test run; test cases go by their names where these differ, else by their order."""
    records.question = ("item", "metric")
    cases = cases_of(document)
    names = [text_at(case, "name") for case in cases]
    orders = [case.get("order") for case in cases]
    items: list[Any] = list(range(len(cases)))
    for candidates in (names, orders):
        plain = all(isinstance(each, int | str) for each in candidates)
        if plain and len(set(candidates)) == len(cases):
            items = candidates
            break
    for number, (case, item) in enumerate(zip(cases, items, strict=True), 1):
        place, metrics = f"test case {number}", objects(case.get("metricsData"))
        if not metrics:
            records.add(place, None, why="test case without metrics", item=item)
        seen: Counter[tuple[Any, str]] = Counter()
        for metric in metrics:
            judge = text_at(metric, "evaluationModel")
            why = "metric failed" if metric.get("error") else ""
            records.add(
                place,
                metric.get("score"),
                why=why or ("" if judge else "no model graded it"),
                item=item,
                worker=judge,
                metric=numbered(text_at(metric, "name") or "metric", judge, seen),
                cost=metric.get("evaluationCost"),
            )
