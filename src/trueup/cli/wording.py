"""What the library says of its arguments, said of the options of the command line."""

from __future__ import annotations

import re
import shlex

OPTIONS = (
    "question", "worker", "answer", "wide", "sep", "decimal", "encoding", "sql", "duplicates", "transform", "bounds",
    "worker_variance", "answer_variance", "method", "shrink", "variance", "groups", "covariates", "gold", "bias",
    "caution", "level", "seed", "truth", "engine", "out", "strict", "work_dir", "keep", "memory_limit",
)  # fmt: skip
# Values that an option writes in another way.
VALUES = {
    ("wide", "True"): "questions",
    ("wide", "False"): "long",
    ("bias", "True"): "",
}
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_NAME = rf"(?:{'|'.join(OPTIONS)})"
# What stands in quotes is the user's own, unless it is the value of an argument.
_ARGUMENT = re.compile(
    rf"(?<!\w)(?P<name>{_NAME})=(?P<value>{_QUOTED}|True|False|\.\.\.|(?=[\s,.;:)]|$))|{_QUOTED}"
)
_ABOUT = re.compile(rf"{_NAME}: ")


def as_options(text: str) -> str:
    """Write arguments as options.

    Examples
    --------
    >>> print(as_options('sep: found "ab". Pass decimal=",", wide=True or encoding=...'))
    --sep: found "ab". Pass --decimal ,, --wide questions or --encoding
    """
    if _ABOUT.match(text):
        text = f"--{text.replace('_', '-', text.partition(':')[0].count('_'))}"
    return _ARGUMENT.sub(_option, text)


def _option(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    if name is None:
        return found[0]
    if value.startswith('"'):
        value = shlex.quote(value[1:-1].replace('\\"', '"').replace("\\\\", "\\"))
    value = VALUES.get((name, value), value.removeprefix("..."))
    return f"--{name.replace('_', '-')} {value}".rstrip()
