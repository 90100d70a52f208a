"""Which column holds the questions, which the workers, which the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

from trueup.errors import AnswersError, missing_column, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Names that other crowdsourcing tools use, for columns that the caller did not name.
OTHER_NAMES = {"question": "task", "answer": "label"}


class Roles(NamedTuple):
    """The columns of questions, workers, answers and so on, all of them present and different."""

    question: str
    worker: str
    answer: str
    panel: str | None
    numbers: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """All columns needed."""
        return [*self.id_names, self.answer, *self.numbers]

    @property
    def id_names(self) -> list[str]:
        """The columns that hold ids."""
        return [self.question, self.worker] + ([] if self.panel is None else [self.panel])


def check_names(found: Sequence[object], asked: Iterable[tuple[str, object]]) -> None:
    """Check that each name can be one: an array, for example, cannot be compared with the names there are."""
    for argument, name in asked:
        if not isinstance(name, Hashable):
            raise missing_column(name, found, argument)


def choose(
    found: Sequence[object],
    *,
    question: str,
    worker: str,
    answer: str,
    panel: str | None,
    numbers: Sequence[str],
) -> Roles:
    """Find the columns asked for among those there are.

    Raises
    ------
    AnswersError
        When a column is missing, exists twice, or is asked for in two roles.
    """
    asked = {"question": question, "worker": worker, "answer": answer}
    check_names(found, (*asked.items(), *(("", each) for each in numbers)))
    for part, other in OTHER_NAMES.items():
        if asked[part] == part and part not in found and other in found:
            asked[part] = other
    if panel is not None:
        asked["panel"] = panel
    further = dict.fromkeys(numbers)
    taken: dict[str, str] = {}
    occurrences = Counter(found)
    wanted = [*asked.items(), *(("", name) for name in further)]
    for argument, name in wanted:
        if name not in occurrences:
            raise missing_column(name, found, argument)
        if occurrences[name] > 1:
            raise AnswersError(
                f"Column {quoted(name)}: there are {occurrences[name]} columns of this name. "
                "Rename all but one."
            )
        use = argument or "further numbers"
        if name in taken:
            raise AnswersError(
                f"Column {quoted(name)}: asked for as {taken[name]} and as {use}. "
                "Give each its own column."
            )
        taken[name] = use
    return Roles(
        question=asked["question"],
        worker=asked["worker"],
        answer=asked["answer"],
        panel=panel,
        numbers=tuple(further),
    )
