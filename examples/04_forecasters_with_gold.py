"""Forecasters who are all too optimistic: questions that are already resolved reveal and correct it.

Twelve people forecast how many weeks each of 80 projects will take. People who plan are optimistic: everybody's numbers
are too small. No number of forecasts can show an error that all forecasters share, unless you know how some of the
projects ended. These known truths are called gold; every one of them helps.
"""

import numpy as np

import trueup

# --- The forecasts: a row per forecaster, a column per project, NaN where there is none -------------------------------
rng = np.random.default_rng(2)
n_people, n_projects, n_resolved = 12, 80, 25
true_weeks = rng.normal(40, 9, n_projects)
optimism = rng.normal(6, 1.5, n_people)  # all of them are about six weeks too low
typical_error = rng.uniform(2, 10, n_people)
forecasts = true_weeks - optimism[:, None]
forecasts += rng.normal(size=forecasts.shape) * typical_error[:, None]
forecasts[rng.random(forecasts.shape) < 0.3] = np.nan

# The first 25 projects have ended: we know how long they took. Projects are numbered from 0.
gold = {project: true_weeks[project] for project in range(n_resolved)}
still_open = slice(n_resolved, None)

# --- Without and with gold --------------------------------------------------------------------------------------------
without = trueup.estimate(forecasts)
with_gold = trueup.estimate(forecasts, gold=gold)

print("What the resolved projects showed:")
print(" ", with_gold.diagnosis.gold)

# --- Was it worth it? On the projects that are still open -------------------------------------------------------------
truth = true_weeks[still_open]
print(f"\nOn the {len(truth)} projects that are still open:")
for name, est in (("without gold", without), ("with gold", with_gold)):
    estimate, lower, upper = est.estimate[still_open], est.lower[still_open], est.upper[still_open]
    off = estimate - truth
    inside = np.mean((lower <= truth) & (truth <= upper))
    print(
        f"  {name:12s}  on average {off.mean():+.1f} weeks from the outcome, typical error "
        f"{np.sqrt(np.mean(off**2)):.1f}; 95% intervals contain {inside:.0%} of the outcomes"
    )
