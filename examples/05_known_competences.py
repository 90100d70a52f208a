"""When you know how good each source is: instruments with a data sheet, laboratories with a track record.

Then nothing has to be learned about the sources. The best weighted mean is known ("blue", best linear unbiased
estimate), and a second step can still help: it pulls the estimates of many similar quantities toward each other;
uncertain estimates move further.

- `method="blue", shrink="none"`: the best weighted mean;
- `method="blue", shrink="paper"`: the same, followed by the second step of the paper (its Algorithm 1);
- `target="consensus"`: with `worker_variance=`, trueup uses "blue" and its own, more careful second step. Instruments
  share no error, so what infinitely many of them would say is the truth; people who guess do, see `target`.
"""

from typing import Any

import numpy as np

import trueup

# --- 60 studies, each of 8 instruments that measure 20 samples --------------------------------------------------------
# A single study shows mostly luck, so we do it 60 times and take the average.
# The squared standard errors from the data sheets.
variances = np.array([0.5, 1.0, 1.0, 2.0, 4.0, 4.0, 9.0, 16.0])
known = dict(enumerate(variances.tolist()))  # instrument -> variance
ways: dict[str, dict[str, Any]] = {
    "plain mean": {"method": "mean", "shrink": "none"},
    "blue": {"method": "blue", "shrink": "none", "worker_variance": known},
    "blue, shrink='paper'": {"method": "blue", "shrink": "paper", "worker_variance": known},
    "target='consensus'": {"worker_variance": known, "target": "consensus"},
}
total = dict.fromkeys(ways, 0.0)
inside = 0
n_studies, n_samples = 60, 20
for study in range(n_studies):
    answers, truth = trueup.simulate(
        workers=8, questions=n_samples, variance=variances, truth_scale=0.7, seed=study
    )
    table = answers.to_matrix()  # a row per instrument, a column per sample
    for name, way in ways.items():
        est = trueup.estimate(table, **way)
        total[name] += float(np.mean((est.estimate - truth) ** 2)) / n_studies
        if name == "target='consensus'":
            inside += int(np.sum((est.lower <= truth) & (truth <= est.upper)))

print(f"Mean squared error over {n_studies} studies, compared with the best weighted mean:")
for name, error in total.items():
    print(f"  {name:22s} {error:.4f}   {error / total['blue'] - 1:+.0%}")
print(f"Its own 95% intervals contain the truth in {inside / n_studies / n_samples:.1%} of cases.")

# --- Algorithm 1 of the paper by hand, on the last study --------------------------------------------------------------
# It takes five lines, so that you can see what shrink="paper" does here.
precision = 1 / variances
aggregate = precision @ table / precision.sum()  # the best weighted mean of each sample
variance = 1 / precision.sum()  # how uncertain it is
centre = aggregate.mean()
share = (n_samples - 3) * variance / np.sum((aggregate - centre) ** 2)
by_hand = aggregate - share * (aggregate - centre)
paper = trueup.estimate(table, **ways["blue, shrink='paper'"])
print(f"\nAlgorithm 1 by hand moves every sample {share:.1%} of the way to the common mean,")
gap = np.abs(paper.estimate - by_hand).max()
print(f"and differs from shrink='paper' by {gap:.0e} at most.")
own = trueup.estimate(table, **ways["target='consensus'"])
print(f"With target='consensus' ({own.diagnosis.method}: {own.diagnosis.why}) it says:")
print(" ", own.diagnosis.second_step)
