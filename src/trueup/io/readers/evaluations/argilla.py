"""Records of Argilla: responses of users, and suggestions of models, to the questions of a dataset."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from trueup.io.readers.evaluations.records import is_email, objects, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trueup.io.readers.evaluations.records import Records

RESPONSES, SUGGESTION = ".responses", ".suggestion"
#: States of a response that was not submitted.
NOT_GIVEN = ("discarded", "draft")


def is_records(document: Any) -> bool:
    """Tell whether a document is a list of records."""
    return any(
        _is_nested(each.get("responses"))
        or any(key.endswith(RESPONSES) and _is_flat(each, key) for key in each)
        for each in objects(document)[:1]
    )


def _is_nested(responses: Any) -> bool:
    return isinstance(responses, dict) and all(
        isinstance(each, list) for each in responses.values()
    )


def _is_flat(record: dict[str, Any], key: str) -> bool:
    """Tell whether a key holds responses; where nobody responded yet it is empty, beside that of the users."""
    return isinstance(record[key], list) or (record[key] is None and f"{key}.users" in record)


def read_records(document: Any, records: Records) -> None:
    """Read records in either form: nested, or with flat keys such as "quality.responses"."""
    records.question = ("item", "metric")
    for number, record in enumerate(objects(document), 1):
        place, item = f"record {number}", record.get("id")
        found = [*_responses(record), *_suggestions(record)]
        if not found:
            records.add(place, None, why="record without responses", item=item)
        for metric, worker, value, why in found:
            records.add(place, value, why=why, item=item, worker=worker, metric=metric)


def _responses(record: dict[str, Any]) -> Iterator[tuple[str, Any, Any, str]]:
    """Yield question, user, value and reason to leave it out of each response."""
    nested = record.get("responses")
    for metric, given in nested.items() if isinstance(nested, dict) else ():
        for each in objects(given):
            yield metric, *_response(each.get("user_id"), each.get("value"), each.get("status"))
    for key, given in record.items():
        if not key.endswith(RESPONSES) or not isinstance(given, list):
            continue
        metric = key.removesuffix(RESPONSES)
        users = _list(record, f"{key}.users") or _list(record, f"{metric}.users")
        states = _list(record, f"{key}.status")
        for value, user, state in zip_longest(given, users[: len(given)], states[: len(given)]):
            yield metric, *_response(user, value, state)


def _response(user: Any, value: Any, state: Any) -> tuple[Any, Any, str]:
    if state in NOT_GIVEN:
        return user if not is_email(user) else None, value, f"response is {state}"
    if user is None or is_email(user):
        return None, value, "user has no id besides an e-mail address"
    return user, value, ""


def _suggestions(record: dict[str, Any]) -> Iterator[tuple[str, Any, Any, str]]:
    """Yield question, model, value and reason to leave it out of each suggestion."""
    nested = record.get("suggestions")
    found = {
        metric: (given.get("agent"), given.get("value"))
        for metric, given in (nested.items() if isinstance(nested, dict) else ())
        if isinstance(given, dict)
    }
    for key, value in record.items():
        if key.endswith(SUGGESTION):
            found[key.removesuffix(SUGGESTION)] = record.get(f"{key}.agent"), value
    for metric, (agent, value) in found.items():
        if value is not None:
            named = text_at({"agent": agent}, "agent")
            yield metric, named, value, "" if named else "suggestion without an agent"


def _list(record: dict[str, Any], key: str) -> list[Any]:
    value = record.get(key)
    return value if isinstance(value, list) else []
