"""Messages of the library with the options of the command line in place of keywords."""

from __future__ import annotations

import shlex

from trueup.core.keywords import flag_of
from trueup.errors import Comma, Mention, Message, quoted

#: Options that are no keywords of `trueup.estimate`.
OPTIONS = (
    "engine", "force", "keep", "memory_limit", "methods", "out", "strict", "target_se", "truth",
    "work_dir",
    "answers_per_question", "correlation", "density", "noise", "questions", "spammers", "truth_mean", "truth_scale",
    "variance_scale", "workers",
    "baseline", "by", "cluster", "cost_answer", "cost_item", "fail_if", "item", "judges", "margin", "run",
)  # fmt: skip
#: Values that an option writes in another way.
VALUES = {
    ("wide", True): "questions",
    ("wide", False): "long",
    ("bias", True): "on",
    ("bias", False): "off",
}


def as_options(text: str) -> str:
    """Return a message in which keywords are options; other text stays as it is.

    Examples
    --------
    >>> from trueup.errors import option
    >>> print(as_options("Pass " + option("decimal", ",") + " or " + option("wide", True) + "."))
    Pass --decimal ',' or --wide questions.
    """
    parts = text.parts if isinstance(text, Message) else (text,)
    return "".join(map(_written, parts))


def _written(part: str | Mention) -> str:
    if isinstance(part, Mention):
        return _option(part)
    return " " if isinstance(part, Comma) else part


def is_option(name: str) -> bool:
    """Tell whether a keyword is an option of some command."""
    from trueup.request import KEYWORDS  # most texts mention none, and this import takes time

    return name in OPTIONS or (name in KEYWORDS and KEYWORDS[name].option is not None)


def _option(mention: Mention) -> str:
    if not is_option(mention.name):
        return str(mention)
    match mention.value:
        case bool() as value:
            text = VALUES.get((mention.name, value), "")
        case (float() as low, float() as high):
            text = f"{low:g} {high:g}"
        case [*names]:
            text = shlex.quote(",".join(map(str, names)))
        case int() as value:
            text = str(value)
        case str() as value if value != "...":
            text = shlex.quote(quoted(value)[1:-1].replace('\\"', '"').replace("\\\\", "\\"))
            # A mark at the end of a sentence would be taken for more than one.
            text = text if any(map(str.isalnum, text)) or "'" in text else f"'{text}'"
        case _:
            text = ""
    return f"{flag_of(mention.name)} {text}".rstrip()
