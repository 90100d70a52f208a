"""Harsh and lenient viewers: every subject rates every clip from 1 (bad) to 5 (excellent).

The usual score of a clip is the mean of its ratings. But some subjects never give a 5, some never give a 1, and some
hardly pay attention. There are two ways to correct that:

- `method="subject_bias"`: the model of the standard ITU-T P.910, with a bias and an inconsistency for every subject;
- the default: subtract the bias of each subject as well, but only as far as the ratings prove it.
"""

import numpy as np

import trueup

# --- The ratings: a table with a row per subject and a column per clip ------------------------------------------------
# Yours come from a file. Here they are made up, so that the true quality is known; trueup never sees it.
rng = np.random.default_rng(3)
n_subjects, n_clips = 16, 30
true_quality = rng.uniform(1.5, 4.5, n_clips)
harshness = rng.normal(0.0, 0.6, n_subjects)  # below zero: harsh; above: lenient
harshness -= harshness.mean()  # a bias that all subjects share is invisible, so there is none here
inconsistency = rng.uniform(0.3, 1.2, n_subjects)
noise = rng.normal(size=(n_subjects, n_clips)) * inconsistency[:, None]
everybody = np.clip(np.round(true_quality + harshness[:, None] + noise), 1, 5)

# The same panel if each clip had been shown to five random subjects only; a missing rating is NaN. Here harshness does
# more harm, because a clip may be unlucky with its judges.
five_each = everybody.copy()
for clip in range(n_clips):
    five_each[rng.permutation(n_subjects)[5:], clip] = np.nan


# --- Three ways to a score --------------------------------------------------------------------------------------------
def show(title: str, ratings: object) -> None:
    """Score the clips in three ways and print how far off the scores are."""
    print(title)
    # No score should leave the scale, so say what the scale is: bounds=(1, 5).
    ways = {
        "mean opinion score": trueup.estimate(ratings, "mean", "none", bounds=(1, 5)),
        "method='subject_bias'": trueup.estimate(ratings, "subject_bias", bounds=(1, 5)),
        "the default": trueup.estimate(ratings, bounds=(1, 5)),
    }
    for name, est in ways.items():
        error = np.sqrt(np.mean((est.estimate - true_quality) ** 2))
        inside = np.sum((est.lower <= true_quality) & (true_quality <= est.upper))
        print(f"  {name:22s} {error:.3f}   true quality inside {inside} of {n_clips} intervals")


print("How far off the scores are, on a scale of 1 to 5")
show("every subject rates every clip:", everybody)
show("five subjects rate each clip:", five_each)

# --- Who is harsh, and how sure is that? ------------------------------------------------------------------------------
# The table est.workers has the bias of each subject, est.findings.workers also how sure it is: a bias of less than
# twice its standard error may well be chance, and is subtracted only in part.
standard = trueup.estimate(five_each, method="subject_bias", bounds=(1, 5))
shrunk = trueup.estimate(five_each, bounds=(1, 5))
by_standard = np.array(standard.workers["bias"])
bias = shrunk.findings.workers.bias
sure = shrunk.findings.workers.bias_std_error
print("\nThe two harshest and the two most lenient subjects, from five ratings of each clip:")
print("  subject  true bias  subject_bias  the default")
for who in np.argsort(harshness)[[0, 1, -2, -1]]:
    print(
        f"  {who:7d}  {harshness[who]:9.2f}  {by_standard[who]:12.2f}  {bias[who]:.2f} ± {sure[who]:.2f}"
    )
clear = np.abs(bias) > 2 * sure
print(f"Clearly harsh or lenient: {clear.sum()} of {n_subjects} subjects.")
