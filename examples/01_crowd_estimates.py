"""How tall are these people? Many guesses, one good answer for each photograph.

You showed 24 photographs to 15 people, asked each of them for the height of whoever is in the picture, and now have a
table of guesses. Some guessers are good, some are careless, one did not look at all. You do not know who is who.
"""

import numpy as np
import pandas as pd

import trueup

# --- The guesses ------------------------------------------------------------------------------------------------------
# Yours come from a file: `answers = pd.read_csv("guesses.csv")`. Here we make them up, so that we know the true heights
# and can see afterwards how well it went. trueup never sees the true heights.
rng = np.random.default_rng(7)
photos = [f"photo {number:02d}" for number in range(1, 25)]
true_height = rng.normal(171, 8, len(photos))
# Typical error of each person, in centimetres.
typical_error = {"ann": 3, "bea": 3, "cem": 4, "dan": 4, "eli": 5, "fay": 6, "gus": 8, "hal": 8}
typical_error |= {"ida": 10, "jo": 12, "kim": 14, "lee": 16, "max": 18, "ned": 20}

rows = []
for photo, height in zip(photos, true_height, strict=True):
    for person, error in typical_error.items():
        if rng.random() < 0.6:  # nobody sees all photographs, which is no problem
            rows.append((photo, person, round(rng.normal(height, error))))
    rows.append((photo, "zoe", 170))  # zoe always says 170
answers = pd.DataFrame(rows, columns=["photo", "person", "height"])

# --- One line does it -------------------------------------------------------------------------------------------------
est = trueup.estimate(answers, question="photo", worker="person", answer="height")

print(est)

# --- What you get: two tables -----------------------------------------------------------------------------------------
# One row for each photograph. The true height should be between `lower` and `upper` in 95 of 100 cases, unless all
# people err in the same way: the guesses cannot show that (example 04 does, with a few known heights).
print("\nest.questions, the first three:")
questions = est.questions[["photo", "estimate", "lower", "upper", "n_answers"]]
print(questions.head(3).round(1).to_string(index=False))

# One row for each person. `weight` is how much a guess of this person counts. `variance` is how far its guesses
# scatter: its square root is the typical error in centimetres. `flag` marks people to look at.
workers = est.workers.sort_values("weight", ascending=False)
workers["typical_error"] = workers["variance"] ** 0.5
workers["flag"] = workers["flag"].fillna("")
print("\nest.workers, the best first:")
print(
    workers[["person", "weight", "typical_error", "n_answers", "flag"]]
    .round(2)
    .to_string(index=False)
)

# --- Was it worth it? -------------------------------------------------------------------------------------------------
# Only possible because we made up the true heights: how far off is each method, on average?
plain_mean = answers.groupby("photo", sort=False)["height"].mean().to_numpy()
error_of_mean = np.abs(plain_mean - true_height).mean()
error_of_trueup = np.abs(est.estimate - true_height).mean()
print(f"\nThe plain average is off by {error_of_mean:.2f} cm, trueup by {error_of_trueup:.2f} cm.")
covered = (est.lower <= true_height) & (true_height <= est.upper)
print(f"The true height is inside the interval for {covered.sum()} of {len(photos)} photographs.")
