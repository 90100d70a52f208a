"""One file per judge: a folder of exports, read as it is, for scores of documents and for a comparison of systems.

Each judge works alone and hands in a file of its own. No file says who wrote it; its name does. Four judges rate how
well the documents that two search engines found answer a query, from 0 to 3. Some rows were only for practice.
"""

import csv
import tempfile
from pathlib import Path

import numpy as np

import trueup

# --- The files: judges/NAME.csv, written into a temporary folder ------------------------------------------------------
rng = np.random.default_rng(9)
typical_error = {"ann": 0.3, "bob": 0.4, "cat": 0.5, "dan": 2.0}  # dan does not read the documents
relevance = {}
for query in range(1, 46):
    easy = rng.normal(0, 0.4)
    for engine, mean in (("new", 1.9), ("old", 1.3)):
        for position in (1, 2, 3):
            shown = np.clip(rng.normal(mean + easy, 0.6), 0, 3)
            relevance[f"{query}-{position}", engine] = float(shown)

with tempfile.TemporaryDirectory() as folder:
    for judge, error in typical_error.items():
        with (Path(folder) / f"{judge}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["query", "slot", "engine", "label", "part"])
            for (slot, engine), true in relevance.items():
                query = int(slot.partition("-")[0])
                label = int(np.clip(np.round(rng.normal(true, error)), 0, 3))
                writer.writerow([query, slot, engine, label, "practice" if query <= 5 else "test"])
    files = f"{folder}/*.csv"

    # --- How relevant is each document? -------------------------------------------------------------------------------
    # worker_from="file" takes the name of a file for the judge; where= keeps some of the rows.
    question = ["slot", "engine"]
    est = trueup.estimate(
        files, question=question, worker_from="file", answer="label", where={"part": "test"}
    )
    plain = trueup.estimate(
        files,
        "mean",
        "none",
        question=question,
        worker_from="file",
        answer="label",
        where={"part": "test"},
    )

    # --- Which engine is better? --------------------------------------------------------------------------------------
    # The three documents of one query are easy or hard together: cluster= says so, or the answer would look too sure.
    ranking = trueup.rank(
        files,
        by="engine",
        item="slot",
        cluster="query",
        worker_from="file",
        answer="label",
        where={"part": "test"},
    )

print(est.answers)
print("\nThe judges, and how much each of them counts:")
workers = est.workers.sort_values("weight", ascending=False)
for judge, weight in zip(workers["worker"], workers["weight"], strict=True):
    print(f"  {judge}  {weight:.2f}")

# --- Was it worth it? -------------------------------------------------------------------------------------------------
# Only possible because we made up how relevant the documents are.
print()
for name, each in (("mean of the judges", plain), ("trueup", est)):
    table = each.questions
    true = np.array([relevance[key] for key in zip(table["slot"], table["engine"], strict=True)])
    error = np.sqrt(np.mean((table["estimate"] - true) ** 2))
    print(f"{name:18s} typical error {error:.2f}")

print("\nThe engines:")
print(ranking)
