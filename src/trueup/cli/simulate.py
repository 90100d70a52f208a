"""trueup simulate: answers with a known truth, as files."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from trueup.cli.integers import Whole


def simulate(
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    truth_out: Path | None = None,
    workers: Whole = 10,
    questions: Whole = 50,
    density: float = 1.0,
    answers_per_question: Whole | None = None,
    truth: Literal["normal", "constant", "uniform", "exponential", "heavy", "clustered"] = "normal",
    truth_mean: float = 0.0,
    truth_scale: float = 1.0,
    variance: Literal["normal", "fixed", "square", "inverse_gamma"] = "normal",
    variance_scale: float = 1.0,
    noise: Literal["normal", "laplace", "student", "exponential"] = "normal",
    bias: float = 0.0,
    spammers: float = 0.0,
    correlation: float = 0.0,
    seed: Whole = 0,
) -> None:
    """Draw workers, questions with a known truth, and answers.

    Example: trueup simulate -o answers.csv --truth-out truth.csv --workers 20 --density 0.5

    Parameters
    ----------
    out
        Where the answers go: .csv or .parquet.
    truth_out
        Where the true values go.
    workers
        Number of workers.
    questions
        Number of questions.
    density
        Probability that a worker answers a question.
    answers_per_question
        Give every question this many answers instead.
    truth
        Distribution of the true values.
    truth_mean
        Where it lies.
    truth_scale
        How wide it is.
    variance
        Distribution of the variances of the workers.
    variance_scale
        Times this.
    noise
        Shape of the errors.
    bias
        Standard deviation of the biases of the workers.
    spammers
        Probability that a worker answers without looking.
    correlation
        Share of the error variance that all workers have in common on a question.
    seed
        Another number gives other answers.
    """
    from trueup.cli.tables import answers_table, write_files
    from trueup.core.libraries import need
    from trueup.datasets.simulate import simulate
    from trueup.io.formats import PARQUET, TEXT
    from trueup.io.outputs import check_outputs

    pyarrow = need("pyarrow", "files")
    endings = (TEXT.written, PARQUET.written)
    check_outputs({"--out": (out, endings), "--truth-out": (truth_out, endings)})
    drawn = simulate(
        workers,
        questions,
        truth=truth,
        truth_mean=truth_mean,
        truth_scale=truth_scale,
        variance=variance,
        variance_scale=variance_scale,
        noise=noise,
        bias=bias,
        spammers=spammers,
        correlation=correlation,
        density=density,
        answers_per_question=answers_per_question,
        seed=seed,
    )
    contents = {out: answers_table(drawn.answers)}
    if truth_out is not None:
        ids = drawn.answers.question_ids.tolist()
        contents[truth_out] = pyarrow.table({"question": ids, "truth": drawn.truth})
    write_files(contents)
    for path, table in contents.items():
        print(f"Written: {path}, {len(table):,} rows")
