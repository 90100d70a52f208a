"""pandas, polars, pyarrow or duckdb: whatever goes in, the same kind comes back.

You do not have to convert anything. Libraries that are not installed are skipped, with a message.
"""

import importlib
from typing import Any

import numpy as np

import trueup

# --- The answers: five people guess the calories of twelve dishes -----------------------------------------------------
rng = np.random.default_rng(1)
dishes = [
    "soup",
    "pizza",
    "salad",
    "curry",
    "cake",
    "pie",
    "stew",
    "rice",
    "fish",
    "bread",
    "tofu",
    "eggs",
]
typical_error = {"ann": 20, "bob": 60, "cat": 90, "dan": 150, "eve": 200}
columns: dict[str, list[Any]] = {"question": [], "worker": [], "answer": []}
for dish, calories in zip(dishes, rng.uniform(200, 900, len(dishes)), strict=True):
    for person, error in typical_error.items():
        columns["question"].append(dish)
        columns["worker"].append(person)
        columns["answer"].append(float(np.round(rng.normal(calories, error))))


# --- The same table in every library ----------------------------------------------------------------------------------
def table_of(name: str) -> Any:
    """Return the answers as a table of a library; raise ImportError if it is not installed."""
    library = importlib.import_module(name)
    if name in ("pandas", "polars"):
        return library.DataFrame(columns)
    if name == "pyarrow":
        return library.table(columns)
    connection = library.connect()
    connection.execute("CREATE TABLE answers (question VARCHAR, worker VARCHAR, answer DOUBLE)")
    rows = list(zip(*columns.values(), strict=True))
    connection.executemany("INSERT INTO answers VALUES (?, ?, ?)", rows)
    return connection.table("answers")


def kind(table: Any) -> str:
    """Return the library and the type of a table."""
    return f"{type(table).__module__.partition('.')[0]} {type(table).__name__}"


# A plain dict of columns, for comparison: the result must not depend on the kind of table.
plain = trueup.estimate(columns)
in_plain = dict(zip(plain.answers.question_ids.tolist(), plain.estimate.tolist(), strict=True))

print(f"{'goes in':24s}  {'est.questions':24s}  {'est.workers':24s}  largest difference")
for name in ("pandas", "polars", "pyarrow", "duckdb"):
    try:
        answers = table_of(name)
    except ImportError:
        print(f"{name} is not installed: left out. `pip install {name}` if you want to see it.")
        continue
    est = trueup.estimate(answers)
    # Rows of a database are unordered, so compare dish by dish.
    found = dict(zip(est.answers.question_ids.tolist(), est.estimate.tolist(), strict=True))
    gap = max(abs(found[dish] - in_plain[dish]) for dish in dishes)
    print(f"{kind(answers):24s}  {kind(est.questions):24s}  {kind(est.workers):24s}  {gap:.0e}")
