"""Which of four models is better? Five LLM judges scored their answers to 90 prompts from 0 to 10, two runs each.

One of the judges is of the same family as one of the models, and likes its style. The plain average of all scores falls
for it. `trueup.rank` compares the models, says how sure that is, names the judge, and knows what to do with human
labels for some of the answers. All scores are made up, so that we know which model is really better.
"""

import numpy as np

import trueup

# --- The scores: one row per prompt, model, judge and run -------------------------------------------------------------
rng = np.random.default_rng(4)
quality = {
    "alpha-4": 6.6,
    "beta-2": 7.0,
    "gamma-1": 6.9,
    "old": 6.0,
}  # beta-2 is the best, which nobody knows
severity = {"alpha-judge": 0.3, "beta-judge": -0.4, "delta": 0.0, "epsilon": 0.6, "zeta": -0.2}
columns: dict[str, list[object]] = {
    name: [] for name in ("prompt", "model", "judge", "run", "score")
}
human: dict[tuple[int, str], float] = {}
for prompt in range(90):
    difficulty = rng.normal(0, 0.8)
    for model, mean in quality.items():
        answer = mean + difficulty + rng.normal(0, 0.7)  # how good this answer is
        if prompt < 40:  # the prompts are in random order, so that these are a random sample of all
            human[prompt, model] = round(answer + rng.normal(0, 0.3), 1)
        for judge, shift in severity.items():
            # The judge of the family "alpha" gives 2.5 points too many to the model of its family, on every prompt.
            liking = 2.5 if (judge, model) == ("alpha-judge", "alpha-4") else 0.0
            opinion = answer + shift + liking + rng.normal(0, 0.5)
            for run in (1, 2):
                said = round(float(np.clip(opinion + rng.normal(0, 0.3), 0, 10)), 1)
                row = (prompt, model, judge, run, said)
                for column, value in zip(columns.values(), row, strict=True):
                    column.append(value)

# --- 1. What most people do -------------------------------------------------------------------------------------------
print("Plain averages:")
scores, models = np.array(columns["score"], dtype=float), np.array(columns["model"])
averages = {model: scores[models == model].mean() for model in quality}
for model in sorted(averages, key=lambda name: -averages[name]):
    print(f"  {model:8s} {averages[model]:.2f}")

# --- 2. The same with trueup ------------------------------------------------------------------------------------------
# A difference counts as clear only if other prompts and other judges would be likely to say the same.
ranking = trueup.rank(columns, by="model", item="prompt", run="run")
print("\nThe judges alone:")
print(ranking)

# --- 3. With human labels for some answers ----------------------------------------------------------------------------
# The labels say where the judges are wrong as a panel; the judges make the most of few labels.
labelled = trueup.rank(columns, by="model", item="prompt", run="run", gold=human)
print(f"\nWith {len(human)} human labels:")
print(labelled)

# --- 4. A gate --------------------------------------------------------------------------------------------------------
# `trueup rank ... --baseline old --fail-if not-better` does this in a pipeline, with exit code 3 where it fails.
print()
print(labelled.gate("old", fail_if="not-better"))

# --- Was it worth it? -------------------------------------------------------------------------------------------------
# Only possible because we made up the scores: the true difference of the two models in question.
truth = quality["alpha-4"] - quality["beta-2"]
naive = averages["alpha-4"] - averages["beta-2"]
print(f"\nalpha-4 - beta-2 is {truth:+.2f} in truth, and {naive:+.2f} by plain averages.")
for name, each in (("judges alone", ranking), ("with labels", labelled)):
    candidates = {row["system"]: row for row in each.gate("beta-2").candidates}
    row = candidates["alpha-4"]
    print(f"  {name:12s} {row['difference']:+.2f}, from {row['lower']:+.2f} to {row['upper']:+.2f}")
