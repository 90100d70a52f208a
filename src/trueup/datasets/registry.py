"""The public data sets, and what is known about each: the entries of `registry.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from trueup.datasets.convert import CONVERTERS
from trueup.errors import TrueupError, listing, nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trueup.datasets.convert import Tables


@dataclass(frozen=True)
class Recipe:
    """How to build a data set from files of its repository: (path, SHA-256) at a commit, and the converter."""

    commit: str
    files: tuple[tuple[str, str], ...]
    convert: Callable[[Sequence[bytes]], Tables]


@dataclass(frozen=True)
class Entry:
    """Facts about a data set; `print` it to read them.

    Attributes
    ----------
    name, description, citation : str
    repository : str
        Owner and name of the repository it comes from.
    workers, questions, answers, truths : int
        Numbers of these after conversion; `truths` are questions with a known true value.
    recipe : Recipe or None
        How to download it; None if it can only be read from a folder.
    """

    name: str
    description: str
    citation: str
    repository: str
    workers: int
    questions: int
    answers: int
    truths: int
    recipe: Recipe | None = None

    @property
    def address(self) -> str:
        """Address of its repository."""
        return f"https://github.com/{self.repository}"

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Numbers of workers, questions, answers, and questions with a known truth."""
        return self.workers, self.questions, self.answers, self.truths

    def __str__(self) -> str:
        how = "downloaded at first use" if self.recipe else "read from a folder only"
        return (
            f"{self.name}: {self.description}\n"
            f"{self.workers:,} workers, {self.questions:,} questions, {self.answers:,} answers, "
            f"truth of {self.truths:,} questions\n"
            f"Cite: {self.citation}\n"
            f"From: {self.address} ({how})"
        )


def _entry(name: str, record: dict[str, Any]) -> Entry:
    """Return an entry from its table in `registry.toml`; a data set with a commit can be downloaded."""
    commit, sums = record.pop("commit", None), record.pop("files", {})
    recipe = Recipe(commit, tuple(sums.items()), CONVERTERS[name]) if commit else None
    return Entry(name=name, recipe=recipe, **record)


_TABLES = tomllib.loads(
    files("trueup.datasets").joinpath("registry.toml").read_text(encoding="utf-8")
)
REGISTRY = {name: _entry(name, record) for name, record in _TABLES.items()}


def names() -> tuple[str, ...]:
    """Return the names of the public data sets."""
    return tuple(REGISTRY)


def describe(name: str) -> Entry:
    """Return the facts about a public data set.

    Examples
    --------
    >>> print(describe("groceries"))
    groceries: Price in dollars of ten bundles of groceries, guessed by passers-by, all of whom answered all. ...
    49 workers, 10 questions, 490 answers, truth of 10 questions
    Cite: Palley and Soll, Extracting the Wisdom of Crowds When Information Is Shared, ...
    From: https://github.com/cran/metaggR (read from a folder only)
    """
    if isinstance(name, str) and name in REGISTRY:
        return REGISTRY[name]
    likely = nearest(str(name), names())
    hint = f"Did you mean {quoted(likely)}? " if likely else ""
    raise TrueupError(
        f"Data set {quoted(name)}: not found. {hint}The public ones are "
        f"{listing(names(), len(REGISTRY))}; one of yours is a folder: load(name, data=FOLDER) "
        "reads FOLDER/name/answers.csv."
    )
