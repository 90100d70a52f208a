"""From files to buckets of rows: read once, in order, by several threads."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from trueup.answers.build import NAMED
from trueup.answers.faults import listed_answers, two_variances
from trueup.answers.repeats import MOST_COLUMNS, explain, mixed_error
from trueup.core.libraries import need
from trueup.engines.disk.buckets import MOST_FILES, ROWS, SAMPLE, Borders, Spool
from trueup.engines.disk.files import EXAMPLES, PLACES, Malformed, common_type
from trueup.engines.disk.numbers import NO_NUMBER, examples_of
from trueup.engines.disk.rows import NotWholeNumbersError, Registry, RowPlan, prepare
from trueup.engines.threads import in_turn
from trueup.errors import AnswersError, counted, option, quoted
from trueup.io.columns import check_titles, choose
from trueup.io.encode import encode
from trueup.io.number_advice import advise
from trueup.io.numbers import check_units, to_numbers, unit_of
from trueup.io.read_options import ANSWER_OPTIONS
from trueup.io.readers.answer_column import PLAIN_RULES, AnswerRules
from trueup.io.readers.join import check_columns
from trueup.io.readers.source import about, labelled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trueup.core.arrays import Floats, Indices
    from trueup.engines.disk.buckets import Bucket
    from trueup.engines.disk.files import File, Limits
    from trueup.engines.disk.folder import Folder
    from trueup.engines.disk.rows import Rows
    from trueup.io.question_data import QuestionColumns
    from trueup.io.read_options import ReadOptions
    from trueup.io.readers.delimited import Layout

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class IntakeOptions:
    """How files are read into a working folder."""

    read: ReadOptions
    columns: QuestionColumns
    layout: Layout
    strict: bool
    limits: Limits
    progress: Progress

    @property
    def mark(self) -> dict[str, Any]:
        """All options that change the result."""
        read, known = self.read, self.read.worker_variance
        if hasattr(known, "items"):
            pairs = sorted((repr(who), repr(variance)) for who, variance in known.items())
            known = hashlib.sha256(json.dumps(pairs).encode()).hexdigest()
        return {
            "question": read.question,
            "worker": read.worker,
            "answer": read.answer,
            "duplicates": read.duplicates,
            "answer_variance": read.answer_variance,
            "worker_variance": None if known is None else str(known),
            **self.columns._asdict(),
            **{name: getattr(read, name) for name in ANSWER_OPTIONS},
            "valid": None if read.valid is None else list(read.valid),
            "sep": self.layout.sep,
            "encoding": self.layout.encoding,
            "anonymous": read.anonymous,
            "skip_lines": self.layout.skip_lines,
        }


def make_plan(files: Sequence[File], options: IntakeOptions) -> RowPlan:
    """Find the columns that are wanted, and the types of the ids."""
    read, columns = options.read, options.columns
    known = read.worker_variance if isinstance(read.worker_variance, str) else None
    with labelled(files[0].label):
        roles = choose(
            files[0].names,
            question=read.question,
            worker=read.worker,
            answer=read.answer,
            panel=None,
            numbers=[name for name in (read.answer_variance, known) if name],
            is_number=partial(_is_number, files[0], options.limits),
        )
        check_titles(roles.id_titles)
        question = roles.one_question
    columns.check(files[0].names, question, files[0].label)
    check_columns(files, [*roles.names, *columns.names])
    return RowPlan(
        question=question,
        worker=roles.worker,
        answer=roles.answer,
        answer_variance=read.answer_variance,
        worker_variance=known,
        group=columns.groups,
        covariates=columns.covariates,
        gold=columns.gold,
        rules=read.rules,
        question_type=common_type(files, question),
        worker_type=common_type(files, roles.worker),
        whole=files[0].untyped,
    )


def _is_number(file: File, limits: Limits, name: str) -> bool:
    """Tell whether the first values of a column are numbers."""
    if not file.untyped:
        types = need("pyarrow", "files").types
        kind = file.kind(name)
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
    try:
        for part in file.sample(name, 1, limits):
            to_numbers(part, name)
    except AnswersError:
        return False
    return True


@dataclass
class Read:
    """What came out of the files.

    Attributes
    ----------
    buckets
        The rows.
    workers, groups
        Their ids, as they came.
    known
        Known variance of each worker, NaN where it is not.
    n_rows, n_missing
        Rows, and rows without an answer.
    malformed
        Rows that cannot be used.
    units
        How often each unit stood beside the numbers of a column: of answers, covariates and truths.
    """

    buckets: list[Bucket] = field(default_factory=list)
    workers: Registry = field(default_factory=Registry)
    groups: Registry = field(default_factory=Registry)
    known: Floats = field(default_factory=lambda: np.empty(0))
    n_rows: int = 0
    n_missing: int = 0
    malformed: Malformed = field(default_factory=Malformed)
    units: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


def read_all(files: Sequence[File], plan: RowPlan, folder: Folder, options: IntakeOptions) -> Read:
    """Read all files into buckets."""
    expected = max(sum(file.rows() for file in files), 1)
    pieces = min(MOST_FILES, 1 + expected // ROWS)
    borders = Borders(_sampled(files, plan, options.limits), pieces)
    spool = Spool(folder.spool, "", plan.schema, len(borders))
    read = Read()
    for file in files:
        _read_file(file, plan, borders, spool, read, options, expected)
    _check_units(plan, read.units)
    refuse(read.malformed, read.n_rows, strict=options.strict, rules=plan.rules)
    if not len(read.workers):
        dropped = read.n_missing + read.malformed.count
        found = (
            f"all {counted(dropped, 'value')} are missing{' or cannot be used' * bool(read.malformed.count)}"
            if dropped
            else "the table has 0 rows"
        )
        raise AnswersError(
            f"Column {quoted(plan.answer)}: no answers, {found}. Give at least one answer."
        )
    read.buckets = spool.close()
    return read


def _check_units(plan: RowPlan, units: Mapping[str, Counter[str]]) -> None:
    """Check that each column has one unit, and truths that of the answers."""
    check_units(plan.answer, units[plan.answer])
    for name in plan.covariates:
        with about("covariates"):
            check_units(name, units[name])
    if plan.gold:
        with about("gold"):
            check_units(plan.gold, units[plan.gold], unit_of(units[plan.answer]))


def check_merging(file: File, plan: RowPlan, limits: Limits) -> None:
    """See to it that the mean of repeated answers does not mix what another column tells apart, in the first rows."""
    times = Counter(file.names)
    others = [name for name in file.names if name not in plan.names and times[name] == 1]
    wanted = [plan.question, plan.worker, *others[:MOST_COLUMNS]]
    if not others:
        return
    batches = file.batches(wanted, limits, Malformed())
    batch = next(batches, None)
    batches.close()  # type: ignore[attr-defined]
    if batch is None:
        return
    columns = dict(zip(wanted, batch.columns, strict=True))
    question, worker = (encode(columns.pop(name))[0] for name in (plan.question, plan.worker))
    pair = question.astype(np.int64) * (int(worker.max(initial=0)) + 1) + worker
    first = np.unique(pair, return_index=True)[1]
    again = np.delete(np.arange(len(pair)), first)
    if not len(again):
        return
    shown = again[:NAMED]
    ids = [batch.column(at).take(shown).to_pylist() for at in (1, 0)]
    among = f" of the first {len(pair):,}" if len(pair) > 1 else ""
    error = mixed_error(
        explain(question, worker, columns), len(again), listed_answers(*ids), plan.question, among
    )
    if error is not None:
        raise error.labelled(file.label)


def _read_file(
    file: File,
    plan: RowPlan,
    borders: Borders,
    spool: Spool,
    read: Read,
    options: IntakeOptions,
    expected: int,
) -> None:
    bad = Malformed()

    def numbered() -> Iterator[tuple[Any, int]]:
        first = 0
        for batch in file.batches(plan.names, options.limits, None if options.strict else bad):
            yield batch, first
            first += len(batch)

    def go(item: tuple[Any, int]) -> Rows:
        return prepare(plan, *item, borders)

    with labelled(file.label):
        for rows in in_turn(go, numbered(), options.limits.threads, ahead=1):
            _take_in(rows, file, plan, spool, read)
            if options.strict and read.malformed.count:
                break
            options.progress("reading", min(read.n_rows / expected, 1.0))
    read.n_rows += bad.count
    examples = bad.examples
    if options.read.anonymous:  # lines have ids in them
        examples = [each.partition(' ("')[0] for each in examples]
    read.malformed.add(bad.count, examples)
    refuse(read.malformed, read.n_rows, strict=options.strict, so_far=True, rules=plan.rules)


def _take_in(rows: Rows, file: File, plan: RowPlan, spool: Spool, read: Read) -> None:
    """Give workers and groups the numbers they have in all files, and write the rows."""
    pyarrow = need("pyarrow", "files")
    read.n_rows += rows.n_rows
    read.n_missing += rows.n_missing
    for name, units in rows.units.items():
        read.units[name].update(units)
    if rows.n_malformed:
        enough = len(read.malformed.examples) >= EXAMPLES
        read.malformed.add(rows.n_malformed, [] if enough else examples_of(file, rows.cells))
    columns = rows.columns
    if len(rows.workers):
        number = read.workers.numbers(rows.workers)
        columns["worker"] = _renumbered(columns["worker"], number)
        if rows.known is not None:
            _merge_known(rows.known, number, read, cast("str", plan.worker_variance))
    if rows.groups is not None and len(rows.groups):
        columns["group"] = _renumbered(columns["group"], read.groups.numbers(rows.groups))
    arrays = [columns[name] for name in plan.schema.names]
    if len(arrays[0]):
        spool.write(pyarrow.record_batch(arrays, schema=plan.schema), rows.counts)


def _renumbered(codes: Any, number: Indices) -> Any:
    """Replace codes of a batch by those of all; -1 stays."""
    return need("pyarrow", "files").array(np.append(number, np.int32(-1))[codes.to_numpy()])


def _merge_known(known: Floats, number: Indices, read: Read, column: str) -> None:
    if len(read.known) < len(read.workers):
        more = np.full(len(read.workers) - len(read.known), np.nan)
        read.known = np.concatenate([read.known, more])
    old = read.known[number]
    differs = ~np.isnan(old) & ~np.isnan(known) & (old != known)
    if differs.any():
        at = int(np.argmax(differs))
        who = read.workers.values[int(number[at])].as_py()
        found = f"worker {quoted(who)} has two different variances, {old[at]:g} and {known[at]:g}"
        raise two_variances(column, found)
    read.known[number] = np.where(np.isnan(old), known, old)


def _sampled(files: Sequence[File], plan: RowPlan, limits: Limits) -> Any:
    """Return ids of questions from several places of the files."""
    pyarrow = need("pyarrow", "files")
    chosen = files[:: max(1, len(files) // PLACES)]
    parts = []
    for file in chosen:
        with labelled(file.label):
            for part in file.sample(plan.question, PLACES // len(chosen), limits):
                ids = part.drop_null()
                if pyarrow.types.is_dictionary(ids.type):
                    ids = ids.cast(ids.type.value_type)
                try:
                    parts.append(ids.cast(plan.key_type))
                except pyarrow.ArrowInvalid as error:
                    if plan.whole:
                        raise NotWholeNumbersError from error
                    raise AnswersError(
                        f"Column {quoted(plan.question)}: holds whole numbers beyond 64 bits. Turn them into text."
                    ) from error
    if not parts:
        return pyarrow.array([], plan.key_type)
    sample = pyarrow.concat_arrays(parts)
    return sample.take(np.arange(0, len(sample), 1 + len(sample) // SAMPLE))


def refuse(
    bad: Malformed,
    n_rows: int,
    *,
    strict: bool,
    so_far: bool = False,
    rules: AnswerRules = PLAIN_RULES,
) -> None:
    """Stop if rows that cannot be used are not allowed, or, once all are read, more than half.

    Numbers that are only written in another way stop it as well, unless rows are to be set aside: a file without its
    answers of 1,000 and more is not the same file.
    """
    if not bad.count or (so_far and not strict):
        return
    values = [
        each.rpartition('("')[2].removesuffix('")') for each in bad.examples if NO_NUMBER in each
    ]
    told = advise(values, range(len(values)), rules.writing, skips=False)
    written_otherwise = told.notation and not rules.skip_bad
    if not (strict or written_otherwise or 2 * bad.count > n_rows):
        return
    advice = "Fix them, or leave strict out to go on without them."
    if rules.valid is not None and not rules.skip_bad:
        advice = "Fix them, or pass " + option("skip_bad", True) + " to set them aside."
    if not strict:
        advice = "That is more than half: check that these are the right columns and files."
    if told.notation:
        advice = told.remedy
    rows = "row" if n_rows == 1 else "rows"
    raise AnswersError(
        f"{bad.count:,} of {n_rows:,} {rows} cannot be used, first {bad.examples[0]}.",
        remedy=advice,
    )
