"""How many rows Spark hands to Python at a time."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
ONE = "1"


@contextmanager
def one_row_at_a_time(session: Any) -> Iterator[None]:
    """Let tasks that start here get one row in each Arrow batch.

    A row is a block, about two megabytes. By default Spark joins 10,000 rows, which is all blocks of a partition: both
    sides then fill fresh memory for every pass, which takes longer than the pass itself. There is an option of the
    session for it, but none of a job, so it is set for as long as a job runs. Other jobs that the session plans in the
    meantime give the same results in smaller batches.
    """
    try:
        before = session.conf.get(ROWS_PER_BATCH, None)
        # If it is there, another thread in here has set it, and sets it back.
        changes = before != ONE
        if changes:
            session.conf.set(ROWS_PER_BATCH, ONE)
    except Exception:  # some clusters refuse options, each in its own way; it works without, too
        changes = False
    try:
        yield
    finally:
        if changes:
            with suppress(Exception):  # a session that was stopped has no options
                if before is None:
                    session.conf.unset(ROWS_PER_BATCH)
                else:
                    session.conf.set(ROWS_PER_BATCH, before)
