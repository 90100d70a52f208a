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
#: Parts of the reason of a grade of 0 which is none: the grader could not be asked, or said something else.
NO_GRADE = (
    "Could not extract JSON", "Could not perform remote grading", "did not match expected format",
    "does not propose any evaluation step", "Embedding not found", "Error parsing output", "Invalid category value",
    "Invalid select-best verdict", "malformed response", "Moderation API error", "No embedding", "No output",
    "not in JSON format", "Unknown error fetching",
)  # fmt: skip
#: Kinds of tasks for which a test may name graders of their own.
KINDS = ("text", "embedding", "classification", "moderation")
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
    prompts: dict[str, list[Any]] = {}
    for each in results:
        known = prompts.setdefault(_provider(each), [])
        if _prompt(each) not in known:
            known.append(_prompt(each))
    usual = document.get("config") if isinstance(document, dict) else None
    usual_grader = _grader(_at(usual, "defaultTest", "options", "provider"))
    tests = Tests()
    for number, each in enumerate(results, 1):
        system, prompt = _provider(each), _prompt(each)
        if len(prompts[system]) > 1:
            # Its number among all pairs of a prompt and a system, as promptfoo has it.
            place = prompts[system].index(prompt) if isinstance(prompt, str) else prompt
            system = f"{system} (prompt {place})"
        item, run = tests.find(each, number, system)
        ids = {"item": item, "system": system, "run": run, "cost": each.get("cost")}
        _add_grades(each, f"result {number}", ids, usual_grader, records, every=every)


class Tests:
    """The tests of an evaluation; `--repeat` gives a test a further number, and is a further run of it."""

    def __init__(self) -> None:
        self._items: dict[str, Any] = {}
        self._runs: Counter[tuple[Any, str]] = Counter()

    def find(self, result: dict[str, Any], number: int, system: str) -> tuple[Any, int]:
        """Return the item and the run of a result, which is the `number`th of the file."""
        given, test, variables = result.get("testIdx"), result.get("testCase"), result.get("vars")
        numbered_test = isinstance(given, int) and not isinstance(given, bool)
        key = _key([test if isinstance(test, dict) else None, variables])
        if numbered_test and not (variables and isinstance(test, dict)):
            return given, 1  # nothing tells whether another test is the same
        if not numbered_test:
            key = _key(result.get("vars", number))
        item = self._items.setdefault(key, given if numbered_test else len(self._items))
        self._runs[item, system] += 1
        return item, self._runs[item, system]


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
        if not isinstance(assertion, dict):
            records.add(place, None, why="grade without its assertion: its grader failed", **ids)
            continue
        kind = text_at(assertion, "type") or "assertion"
        own = _grader(_at(assertion, "provider"))
        graded = own is not None or kind.removeprefix("not-") in GRADED
        worker = own or ((grader or DEFAULT) if graded and kind != "human" else kind)
        metric = text_at(assertion, "metric") or kind
        why = "" if graded or every else f"no model graded it: {kind}"
        if not why and graded and _failed(component):
            why = "grader failed"
        records.add(
            place,
            component.get("score"),
            why=why,
            worker=worker,
            metric=numbered(metric, worker, seen),
            **ids,
        )


def _components(grading: Any) -> list[dict[str, Any]]:
    """Return the grades of single assertions, those inside sets of assertions too.

    What a set holds comes once more behind it, in files of newer versions.
    """
    if not isinstance(grading, dict):
        return []
    found, inside = objects(grading.get("componentResults")), []
    for place, each in enumerate(found, 1):
        deeper = objects(each.get("componentResults"))
        if not deeper or text_at(each.get("assertion"), "type"):
            inside.append(each)
        elif found[place : place + len(deeper)] != deeper:
            inside += deeper
    return inside


def _failed(component: dict[str, Any]) -> bool:
    """Tell whether a grade of 0 only says that the grader gave none."""
    if component.get("score") != 0 or component.get("pass") is not False:
        return False
    metadata = component.get("metadata")  # newer versions mark such a grade there
    if isinstance(metadata, dict) and metadata.get("graderError") is True:
        return True
    reason = component.get("reason")
    return isinstance(reason, str) and any(text in reason[:200] for text in NO_GRADE)


def _prompt(result: dict[str, Any]) -> Any:
    """Return what tells prompts apart: a number, or in older files a text; None if nothing does."""
    number = result.get("promptIdx")
    if isinstance(number, int):
        return number
    return text_at(result, "prompt", "label") or text_at(result, "prompt", "display")


def _provider(result: dict[str, Any]) -> str:
    provider = result.get("provider")
    if isinstance(provider, dict):
        provider = first_text([provider.get("label"), provider.get("id")])
    return provider if isinstance(provider, str) and provider.strip() else "system"


def _grader(provider: Any) -> str | None:
    if isinstance(provider, dict):
        # One for each kind of task has those of text in front.
        named = first_text([provider.get("label"), provider.get("id")])
        provider = named or next(
            (_grader(provider[each]) for each in KINDS if each in provider), None
        )
    return provider if isinstance(provider, str) and provider.strip() else None


def _at(document: Any, *keys: str) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
