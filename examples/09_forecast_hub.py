"""A hub of forecasts: a folder per model, a file per week, read as it is and combined.

Hubs that follow the hubverse conventions keep `model-output/MODEL/DATE-MODEL.csv`, with a row for every quantile of
every forecast. trueup recognises such a folder: a model is a worker, its median is the answer, and the other columns
together are the question. Here six models forecast hospital admissions in twelve places, eight weeks in a row.
"""

import csv
import tempfile
from datetime import date, timedelta
from pathlib import Path

import numpy as np

import trueup

QUANTILES = {0.1: -1.28, 0.25: -0.67, 0.5: 0.0, 0.75: 0.67, 0.9: 1.28}
HEAD = ["reference_date", "target", "location", "output_type", "output_type_id", "value"]

# --- The hub: written into a temporary folder -------------------------------------------------------------------------
rng = np.random.default_rng(6)
places = [
    f"{number:02d}" for number in range(1, 13)
]  # ids with a leading zero: they stay as they are
weeks = [date(2025, 11, 1) + timedelta(weeks=number) for number in range(8)]
truth = {(week, place): float(rng.uniform(100, 900)) for week in weeks for place in places}
typical_error = {"arima": 0.10, "baseline": 0.35, "compart": 0.15, "deep": 0.12, "expert": 0.20}
typical_error["flat"] = 0.60  # says nearly anything

with tempfile.TemporaryDirectory() as folder:
    hub = Path(folder) / "model-output"
    for model, error in typical_error.items():
        (hub / model).mkdir(parents=True)
        for week in weeks:
            if model == "deep" and week == weeks[3]:
                continue  # did not submit that week
            with (hub / model / f"{week}-{model}.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(HEAD)
                for place in places:
                    middle = truth[week, place] * np.exp(error * rng.normal())
                    for quantile, z in QUANTILES.items():
                        value = round(middle * np.exp(error * z), 1)
                        writer.writerow([week, "admissions", place, "quantile", quantile, value])

    # --- Combine all of it --------------------------------------------------------------------------------------------
    est = trueup.estimate(hub, kind="forecast")
    plain = trueup.estimate(hub, "mean", "none")
    # Only some places: where= takes any column of the hub.
    few = trueup.estimate(hub, kind="forecast", where={"location": ["01", "02", "03"]})

print(est.answers)
print("Left out:", "; ".join(f"{count:,} x {what}" for what, count in est.rejects.counts))

# --- The two tables ---------------------------------------------------------------------------------------------------
# Errors grow with the value here, so that variances are those of logarithms: 0.01 is a typical error of 10%.
print("\nThe models, the most exact first:")
workers = est.workers.sort_values("variance")
for model, variance in zip(workers["worker"], workers["variance"], strict=True):
    print(f"  {model:9s} off by {variance**0.5:4.0%}, made up with {typical_error[model]:4.0%}")

print(f"\nThe week of {weeks[-1]}, with 95% intervals for what happens:")
questions = est.questions
latest = questions[questions["reference_date"].astype(str) == str(weeks[-1])]
print(
    latest[["location", "estimate", "truth_lower", "truth_upper"]]
    .head(4)
    .round(0)
    .to_string(index=False)
)
print(f"\nThree places alone: {few.answers}")

# --- Was it worth it? -------------------------------------------------------------------------------------------------
# Only possible because we made up what happened.
print()
for name, each in (("mean of the models", plain), ("trueup", est)):
    questions = each.questions
    keys = zip(questions["reference_date"], questions["location"], strict=True)
    outcome = np.array([truth[date.fromisoformat(str(week)[:10]), place] for week, place in keys])
    off = questions["estimate"].to_numpy() / outcome - 1
    print(f"{name:18s} typical error {np.sqrt(np.mean(off**2)):.1%}")
