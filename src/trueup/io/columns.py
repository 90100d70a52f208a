"""Which column holds the questions, which the workers, which the answers.

Names that the caller passed come first, then "question", "worker" and "answer" as they are, then "task" and "label";
only then other names people use, in any case and with any of "_", "-", "." and blanks between words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from difflib import get_close_matches
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from trueup.errors import (
    MOST_NAMES,
    AnswersError,
    Message,
    listing,
    missing_column,
    nearest,
    option,
    options,
    quoted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Names that other crowdsourcing tools use, for columns that the caller did not name.
OTHER_NAMES = {"question": "task", "answer": "label"}
# Names people use for each role, as `plain_name` writes them.
KNOWN_NAMES = {
    "question": (
        "question", "item", "task", "taskid", "questionid", "itemid", "sample", "sampleid", "id", "stimulus", "clip",
        "video", "image", "object", "entity", "target", "docid", "hitid",
    ),
    "worker": (
        "worker", "workerid", "rater", "annotator", "judge", "grader", "evaluator", "user", "userid", "subject",
        "participant", "expert", "forecaster", "source", "sensor", "modelid", "completedby",
    ),
    "answer": (
        "answer", "label", "score", "rating", "value", "estimate", "response", "grade", "vote", "prediction",
        "forecast", "measurement", "mos",
    ),
}  # fmt: skip
# The same as names of ids, and those that tools for tracing write.
_ID_FORMS = {
    "question": {*(f"{name}id" for name in KNOWN_NAMES["question"]), "traceid"},
    "worker": {*(f"{name}id" for name in KNOWN_NAMES["worker"]), "authoruserid"},
}
# Columns as crowdsourcing platforms write them: "Input.image", "Answer.score".
PATTERNS = {
    "question": re.compile(r"input\..+", re.IGNORECASE),
    "answer": re.compile(r"answer\..+", re.IGNORECASE),
}
# Names of columns with a role of their own: they are no guess for a question, worker or answer.
GOLD_NAMES = ("gold", "truth", "groundtruth", "reference", "human")
SYSTEM_NAMES = ("system", "model", "variant", "candidate", "policy")
RUN_NAMES = ("run", "epoch", "repeat", "trial", "seed")
OTHER_ROLES = frozenset((*SYSTEM_NAMES, *RUN_NAMES, *GOLD_NAMES))
#: Names of columns that may hold the items on which systems were tried.
ITEM_NAMES = (*KNOWN_NAMES["question"], "prompt")
NOUNS = {"question": "questions", "worker": "workers", "answer": "answers"}


#: Types of DuckDB that a frame of another library cannot hold as they are.
SQL_TYPES = (
    "BIGNUM", "BIT", "HUGEINT", "INTERVAL", "JSON", "TIME WITH TIME ZONE", "UHUGEINT", "UUID", "VARINT",
)  # fmt: skip


def is_sql_type(name: object) -> bool:
    """Tell whether this is one of those types, or one of a list of words: nothing else is put into a statement."""
    words = r"ENUM\('(?:[^']|'')*'(?:, '(?:[^']|'')*')*\)"
    return isinstance(name, str) and (
        name in SQL_TYPES or re.fullmatch(words, name, re.DOTALL) is not None
    )


class IdNames(NamedTuple):
    """What the caller calls questions and workers: the columns that hold their ids, in results too."""

    question: tuple[str, ...] = ("question",)
    worker: str = "worker"
    #: Types of a database that its frames have and no other library, by column.
    sql_types: tuple[tuple[str, str], ...] = ()

    @property
    def question_title(self) -> str:
        """What the questions are called where there is room for one title."""
        return ", ".join(self.question)


#: Questions and workers of which nobody said what they are called.
PLAIN_NAMES = IdNames()
# Columns that the tables of questions and of workers have.
OUTPUT_NAMES = {
    "question": (
        "panel", "estimate", "lower", "upper", "truth_lower", "truth_upper", "std_error", "base", "base_std_error",
        "shrinkage", "n_answers",
    ),
    "worker": ("panel", "weight", "variance", "bias", "n_answers", "flag", "bias_std_error"),
}  # fmt: skip


def check_titles(names: IdNames) -> None:
    """Check that columns of ids can keep their names in the tables of a result."""
    for part, titles in (("question", names.question), ("worker", (names.worker,))):
        clash = [name for name in titles if name in OUTPUT_NAMES[part]]
        if clash:
            raise AnswersError(
                f"column {quoted(clash[0])} holds ids of {part}s, and the table of the {part}s in the result has a "
                "column of this name.",
                argument=part,
                remedy="Rename it.",
            )


class Roles(NamedTuple):
    """The columns of questions, workers, answers and so on, all of them present and different."""

    question: tuple[str, ...]
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
        return [*self.question, self.worker] + ([] if self.panel is None else [self.panel])

    @property
    def one_question(self) -> str:
        """The column of the questions, for engines that know one only."""
        if len(self.question) > 1:
            raise AnswersError(
                f"found the columns {listing(self.question, MOST_NAMES)}; several are for answers in memory.",
                argument="question",
                remedy="Join them into one column first.",
            )
        return self.question[0]

    @property
    def id_titles(self) -> IdNames:
        """What results call questions and workers."""
        return IdNames(tuple(map(str, self.question)), str(self.worker))


class Resolved(NamedTuple):
    """What the names of the columns alone say.

    Attributes
    ----------
    columns
        The columns of each role that is clear.
    rivals
        For each role that is not, the columns that compete for it; none where no name is known.
    """

    columns: dict[str, tuple[str, ...]]
    rivals: dict[str, list[str]]


def plain_name(name: object) -> str:
    """Return a name of a column without case and without what stands between its words."""
    return re.sub(r"[\s_.\-]", "", name.casefold()) if isinstance(name, str) else ""


def recognised(found: Iterable[object], part: str) -> list[Any]:
    """Return the columns with a name that people use for a role; "rater id" counts where there is no "rater"."""
    names = [name for name in found if isinstance(name, str)]
    pattern = PATTERNS.get(part)
    usual = [
        name
        for name in names
        if plain_name(name) in KNOWN_NAMES[part]
        or (pattern is not None and pattern.fullmatch(name))
    ]
    return usual or [name for name in names if plain_name(name) in _ID_FORMS.get(part, ())]


def find_gold_column(found: Iterable[object]) -> str:
    """Return the first column that may hold known truths; empty where there is none."""
    names = (name for name in found if isinstance(name, str))
    return next((name for name in names if plain_name(name) in GOLD_NAMES), "")


def question_columns(given: Any, found: Sequence[object]) -> tuple[Any, ...]:
    """Return the columns that name a question: one, several in a list, or several in a text with commas."""
    if isinstance(given, str):
        parts = tuple(part.strip() for part in given.split(","))
        several = given not in found and len(parts) > 1 and all(parts)
        return parts if several else (given,)
    if isinstance(given, Sequence):
        if not given:
            raise AnswersError(
                "found no column.", argument="question", remedy="Name one column or more."
            )
        return tuple(given)
    return (given,)


def check_names(found: Sequence[object], asked: Iterable[tuple[str, object]]) -> None:
    """Check that each name can be one: an array, for example, cannot be compared with the names there are."""
    for argument, name in asked:
        if not isinstance(name, Hashable):
            raise missing_column(name, found, argument)


def resolve(
    found: Sequence[object], asked: Mapping[str, Any], taken: Iterable[object] = ()
) -> Resolved:
    """Find the columns of questions, workers and answers by their names.

    Parameters
    ----------
    found
        The columns there are.
    asked
        What the caller asks for as "question", "worker" and "answer"; these words themselves mean any name.
    taken
        Columns that have other roles.
    """
    columns: dict[str, tuple[Any, ...]] = {}
    rivals: dict[str, list[Any]] = {}
    for part in KNOWN_NAMES:
        given = asked[part]
        passed = question_columns(given, found) if part == "question" else (given,)
        check_names(found, ((part, name) for name in passed))
        other = OTHER_NAMES.get(part)
        if passed != (part,) or part in found:
            columns[part] = passed
        elif other is not None and other in found:
            columns[part] = (other,)
    used = {*taken, *(name for names in columns.values() for name in names)}
    for part in KNOWN_NAMES.keys() - columns.keys():
        candidates = [name for name in recognised(found, part) if name not in used]
        if len(candidates) == 1:
            columns[part] = (candidates[0],)
        else:
            rivals[part] = candidates
    return Resolved(columns, rivals)


def choose(
    found: Sequence[object],
    *,
    question: Any,
    worker: str,
    answer: str,
    panel: str | None,
    numbers: Sequence[str],
    is_number: Callable[[str], bool] = lambda _name: True,
) -> Roles:
    """Find the columns asked for among those there are.

    Parameters
    ----------
    found
        The columns there are.
    question, worker, answer, panel, numbers
        The columns that the caller asks for.
    is_number
        Tells whether a column holds numbers, for guesses about columns of unknown names.

    Raises
    ------
    AnswersError
        When a column is missing, exists twice, or is asked for in two roles. One error tells everything.
    """
    check_names(found, (("", each) for each in numbers))
    further = tuple(dict.fromkeys(numbers))
    others = [*([] if panel is None else [("panel", panel)]), *(("", name) for name in further)]
    asked = {"question": question, "worker": worker, "answer": answer}
    resolved = resolve(found, asked, (name for _, name in others))
    numeric = [name for name in resolved.rivals.get("answer", ()) if is_number(name)]
    if len(numeric) == 1:  # columns of words do not compete
        resolved.columns["answer"] = (numeric[0],)
        del resolved.rivals["answer"]
    elif numeric:
        resolved.rivals["answer"] = numeric
    wanted = [(part, name) for part in asked for name in resolved.columns.get(part, ())] + others
    missing = [(part, name) for part, name in wanted if name not in found]
    if missing or resolved.rivals:
        raise _not_found(found, wanted, missing, resolved, is_number)
    _check_once(found, wanted)
    columns = resolved.columns
    return Roles(columns["question"], columns["worker"][0], columns["answer"][0], panel, further)


def _check_once(found: Sequence[object], wanted: Sequence[tuple[str, str]]) -> None:
    """Check that each column exists once, and has one role."""
    taken: dict[str, str] = {}
    occurrences = Counter(found)
    for argument, name in wanted:
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


# -- what is said about columns that were not found --------------------------------------------------


def _not_found(
    found: Sequence[object],
    wanted: Sequence[tuple[str, Any]],
    missing: Sequence[tuple[str, Any]],
    resolved: Resolved,
    is_number: Callable[[str], bool],
) -> AnswersError:
    """Build one error for all roles without a column, with the best guess for each."""
    rivals = {part: names for part, names in resolved.rivals.items() if names}
    unknown = [part for part in KNOWN_NAMES if part in resolved.rivals and part not in rivals]
    here = [name for _, name in wanted if name in found]
    here += [name for names in rivals.values() for name in names]
    guesses = guess(
        found, [*(part for part, _ in missing), *unknown], here, is_number, dict(missing)
    )
    several = resolved.columns.get("question", ())
    if len(several) > 1 and "question" in guesses:
        gone = dict(missing)["question"]
        guesses["question"] = [guesses["question"] if name == gone else name for name in several]
    if len(missing) == 1 and not resolved.rivals:
        ((part, name),) = missing
        return missing_column(name, found, part, guesses.get(part))
    columns = [f"Column {quoted(name)}: not found." for _, name in missing]
    columns += [f"Column {quoted(part)}: not found." for part in unknown]
    columns += [
        f"Columns {' and '.join(map(quoted, names))}: each may hold the {NOUNS[part]}."
        for part, names in rivals.items()
    ]
    there = f"The columns are {listing(found, MOST_NAMES)}." if found else "There are no columns."
    best = {part: guesses.get(part, ...) for part in (*(p for p, _ in missing if p), *unknown)}
    known = {part: value for part, value in best.items() if value is not ...}
    remedies: list[str] = []
    if known:
        remedies.append("Did you mean " + options(known) + "?")
    open_ = [part for part in best if part not in known]
    if open_:
        ways = Message(", ").join(option(part, "...") for part in open_)
        what = "column that holds it: " if len(open_) == 1 else "columns that hold them: "
        remedies.append(f"Name the {what}" + ways + ".")
    for part, names in rivals.items():
        either = Message(" or ").join(option(part, name) for name in names)
        remedies.append("Pass " + either + ".")
    error = AnswersError(" ".join([*columns, there]), remedy=Message(" ").join(remedies))
    error.columns = tuple(found)
    pairs = product(*rivals.values())
    if open_:
        return error
    return error.mended_by(*({**known, **dict(zip(rivals, way, strict=True))} for way in pairs))


def guess(
    found: Sequence[object],
    parts: Sequence[str],
    used: Sequence[object],
    is_number: Callable[[str], bool],
    passed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Guess the columns of roles whose names are unknown, each of them another one.

    A name that is spelled alike comes first. The others are taken in order: questions, workers, then the first column
    of numbers.
    """
    occurrences = Counter(found)
    free = [
        name
        for name in found
        if isinstance(name, str) and name.strip() and name not in used and occurrences[name] == 1
    ]
    guesses: dict[str, Any] = {}
    for part in parts:
        likely = _alike(part, (passed or {}).get(part), free)
        if likely is not None and (part != "answer" or is_number(likely)):
            guesses[part] = likely
            free.remove(likely)
    free = [name for name in free if plain_name(name) not in OTHER_ROLES]
    rest = [part for part in KNOWN_NAMES if part in parts and part not in guesses]
    if len(free) < len(rest):
        rest = []  # what is there is something else
    if "answer" in rest:
        rest.remove("answer")
        numeric = [*filter(is_number, free[len(rest) :]), *filter(is_number, free[: len(rest)])]
        if numeric:
            guesses["answer"] = numeric[0]
            free.remove(numeric[0])
    guesses |= dict(zip(rest, free, strict=False))
    order = [*KNOWN_NAMES, *parts]
    return dict(sorted(guesses.items(), key=lambda each: order.index(each[0])))


def _alike(part: str, passed: Any, free: Sequence[str]) -> str | None:
    """Return the column whose name is spelled like the one asked for, or like one that people use."""
    if isinstance(passed, str):
        likely = nearest(passed, free)
        if likely is not None:
            return likely
    by_name = {plain_name(name): name for name in reversed(free)}
    for known in KNOWN_NAMES.get(part, ()):
        close = get_close_matches(known, list(by_name), n=1, cutoff=0.8) if len(known) > 3 else []
        if close:
            return by_name[close[0]]
    return None
