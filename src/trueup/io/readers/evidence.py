"""What names and values of columns say about their roles: ids, answers of one worker, or something else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from trueup.io.columns import KNOWN_NAMES, plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

# A column with one of these names is not a worker: such a table has one answer per row. As `plain_name` writes them.
LONG_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
        respondent forecast truth gold groundtruth reference time timestamp date year index row key name number weight
        variance std count n nr no q w id system model run epoch group
        """,
    )
).union(*KNOWN_NAMES.values())
# Names of columns that say they hold ids, besides those of questions.
ID_NAMES = frozenset(["index", "row", "key", "name", "number", "nr", "no", "", "unnamed0"])
# Given names that often head the columns of small tables; two of them are needed.
GIVEN_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
        ada adam alan alex alice amy ana andrew ann anna anne barbara ben bob brian carl carol charles chris claire cyd
        dan daniel dave david diana dora ed elena ellen emily emma erik eva eve fay frank fred george grace hannah heidi
        helen henry ivan jack james jan jane jean jim joan joe john jon jose julia karen kate ken kim laura lea lee lena
        leo linda lisa liz lucy luke maria marie mark martin mary matt max maya mia michael mike nancy nick nina noah
        olivia oscar pat paul peter rachel ray rob robert rosa ruth ryan sam sara sarah simon sofia sophie steve sue
        susan tim tom tony una victor wendy will zoe
        """,
    )
)
# Times that one column of a scale may spread wider than another.
ONE_SCALE = 10.0
# A number, perhaps with a currency or a unit.
NUMBER_WITH_UNIT = re.compile(r"\s*\W?[+-]?\d[\d.,' ]*\s*[^\d\W]*%?\s*")


def speaks_for_long(name: object) -> bool:
    """Tell whether the name of a column speaks for one row per answer."""
    return isinstance(name, str) and (
        not plain_name(name)
        or plain_name(name) in LONG_NAMES
        or re.search(r"(?:[a-z]I|[\W_]i|^I|^i)[Dd]$", name) is not None
    )


def names_ids(name: object) -> bool:
    """Tell whether a name says that its column holds ids of questions or of rows."""
    plain = plain_name(name).replace(":", "")
    return isinstance(name, str) and (plain in ID_NAMES or plain in KNOWN_NAMES["question"])


def is_text_of_ids(values: Iterable[object]) -> bool:
    """Tell whether texts are clearly ids, none of them a number in another dress, such as "3,5" or "172 cm"."""
    return not any(NUMBER_WITH_UNIT.fullmatch(str(value)) for value in values)


def are_whole(values: NDArray[np.float64]) -> bool:
    """Tell whether numbers can be ids: whole, and none of them missing."""
    return bool(np.all(values == np.floor(values)))


def on_one_scale(columns: Sequence[NDArray[np.float64]]) -> bool:
    """Tell whether columns of numbers can be answers on one scale: about the same values, about as spread."""
    known = [values[~np.isnan(values)] for values in columns]
    known = [values for values in known if len(values)]
    if not known:
        return True
    low, high = (np.array([end(values) for values in known]) for end in (np.min, np.max))
    width = high - low
    if width.max(initial=0.0) == 0:
        return bool(np.ptp(low) == 0)
    # Each column reaches into the range that the widest one has, which is not many times that of another.
    widest = int(np.argmax(width))
    reach = (low <= high[widest]) & (high >= low[widest])
    return bool(reach.all()) and bool(width.max() <= ONE_SCALE * np.median(width))


def named_alike(names: Sequence[object], *, strictly: bool = False) -> bool:
    """Tell whether names are those of several workers: numbered, e-mail addresses, or given names, at least half."""
    texts = [str(name).strip().casefold() for name in names]
    if all(re.fullmatch(r"\d+", text) for text in texts):
        return True
    if _stem(names):
        return True
    if all(re.fullmatch(r"[^@\s]+@[^@\s]+\.\w+", text) for text in texts):
        return True
    given = [text for text in texts if re.split(r"[\s_.\-]", text)[0] in GIVEN_NAMES]
    return len(given) >= 2 and (1 if strictly else 2) * len(given) >= len(texts)


def is_no_header(cells: Sequence[object], ids: tuple[str, ...]) -> bool:
    """Tell whether a first line is no header, but has numbers such as 3.5."""
    return not ids and any(
        isinstance(name, str) and re.fullmatch(r"[+-]?\d*\.\d+", name) for name in cells
    )


def named_like_questions(names: Sequence[object]) -> bool:
    """Tell whether names are those of several questions, such as "q1", "q2", or are questions."""
    asked = [name for name in names if isinstance(name, str) and name.strip().endswith("?")]
    return len(asked) > 1 or plain_name(_stem(names)) in ("q", *KNOWN_NAMES["question"])


def _stem(names: Sequence[object]) -> str:
    """Return what all names begin with, where a number or letter follows: "rater" of "rater 1", "rater 2"."""
    texts = [str(name).strip().casefold() for name in names]
    stems = {re.sub(r"[\s_.\-#]*(?:\d+|(?<=[\s_.\-#])[a-z])$", "", text) for text in texts}
    return stems.pop() if len(stems) == 1 and len(texts) > 1 and len(set(texts)) > 1 else ""
