"""Results of promptfoo: grades that assertions gave to outputs, those of models above all."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from trueup.io.readers.evaluations.records import first_text, numbered, objects, text_at

if TYPE_CHECKING:
    from trueup.io.readers.evaluations.records import Records

#: Assertions that a model, or a person, grades; "not-" may stand in front.
GRADED = {
    "agent-rubric", "answer-relevance", "classifier", "context-faithfulness", "context-recall", "context-relevance",
    "conversation-relevance", "factuality", "g-eval", "human", "llm-rubric", "model-graded-closedqa",
    "model-graded-factuality", "moderation", "pi", "search-rubric", "select-best", "similar", "video-rubric",
}  # fmt: skip
#: The grader of assertions that name none.
DEFAULT = "default grader"


def results_of(document: Any) -> list[dict[str, Any]]:
    """Return the results of a document of any version; none if it is something else."""
    results = document.get("results") if isinstance(document, dict) else None
    if isinstance(results, dict):
        results = results.get("results")
    return objects(results)


def is_results(document: Any) -> bool:
    """Tell whether a document holds results of promptfoo."""
    return any("gradingResult" in each or "promptIdx" in each for each in results_of(document))


def read_results(document: Any, records: Records, *, every: bool = False) -> None:
    """Read results; with `every`, also grades that no model gave."""
    records.question = ("item", "system", "metric")
    results = results_of(document)
    prompts: dict[str, set[Any]] = {}
    for each in results:
        prompts.setdefault(_provider(each), set()).add(_key(each.get("promptIdx")))
    usual = document.get("config") if isinstance(document, dict) else None
    usual_grader = _grader(_at(usual, "defaultTest", "options", "provider"))
    tests: dict[str, int] = {}
    for number, each in enumerate(results, 1):
        system = _provider(each)
        if len(prompts[system]) > 1:
            system = f"{system} (prompt {_key(each.get('promptIdx'))})"
        item = each.get("testIdx")
        if not isinstance(item, int):
            item = tests.setdefault(_key(each.get("vars", number)), len(tests))
        ids = {"item": item, "system": system, "cost": each.get("cost")}
        _add_grades(each, f"result {number}", ids, usual_grader, records, every=every)


def _add_grades(
    result: dict[str, Any],
    place: str,
    ids: dict[str, Any],
    usual_grader: str | None,
    records: Records,
    *,
    every: bool,
) -> None:
    components = _components(result.get("gradingResult"))
    if not components:
        failed = isinstance(result.get("error"), str) and not result.get("gradingResult")
        why = "result failed" if failed else "result without assertions"
        records.add(place, None, why=why, **ids)
        return
    grader = _grader(_at(result, "testCase", "options", "provider")) or usual_grader
    seen: Counter[tuple[Any, str]] = Counter()
    for component in components:
        assertion = component.get("assertion")
        kind = text_at(assertion, "type") or "assertion"
        own = _grader(_at(assertion, "provider"))
        graded = own is not None or kind.removeprefix("not-") in GRADED
        worker = own or ((grader or DEFAULT) if graded and kind != "human" else kind)
        metric = text_at(assertion, "metric") or kind
        why = "" if graded or every else f"no model graded it: {kind}"
        records.add(
            place,
            component.get("score"),
            why=why,
            worker=worker,
            metric=numbered(metric, worker, seen),
            **ids,
        )


def _components(grading: Any) -> list[dict[str, Any]]:
    """Return the grades of single assertions, those inside sets of assertions too."""
    if not isinstance(grading, dict):
        return []
    inside = []
    for each in objects(grading.get("componentResults")):
        deeper = objects(each.get("componentResults"))
        inside += deeper if deeper and not text_at(each.get("assertion"), "type") else [each]
    return inside


def _provider(result: dict[str, Any]) -> str:
    provider = result.get("provider")
    if isinstance(provider, dict):
        provider = first_text([provider.get("label"), provider.get("id")])
    return provider if isinstance(provider, str) and provider.strip() else "system"


def _grader(provider: Any) -> str | None:
    if isinstance(provider, dict):
        provider = first_text([provider.get("id"), provider.get("label")])
    return provider if isinstance(provider, str) and provider.strip() else None


def _at(document: Any, *keys: str) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
