"""Names of the formats of evaluations, as callers give them."""

from __future__ import annotations

from typing import Any

from trueup.core.parameters import one_of

#: Formats that are one document; `formats` says how each is read.
DOCUMENTS = ("inspect", "promptfoo", "promptfoo-all", "deepeval", "label-studio", "argilla")
#: The format of files of forecasts, which are tables, and that of tables which are nothing else.
HUBVERSE, TABLE = "hubverse", "table"


def check_format(name: Any) -> None:
    """Check that a format has this name; None: it is found from the content."""
    if name is not None:
        one_of("from_format", name, (*DOCUMENTS, HUBVERSE, TABLE))
