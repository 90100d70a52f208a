"""Five LLM judges score 150 answers from 0 to 10, three runs each: one score, and how certain it is.

Two things go wrong with panels of LLM judges, and both happen here:

- running a judge again is not a second opinion: three runs of one judge share what this judge gets wrong;
- two judges of one model family get the same answers wrong, so five judges are not five independent opinions.
"""

import numpy as np

import trueup

# --- The scores: one row per answer, judge and run --------------------------------------------------------------------
# Yours come from the log of your evaluation. Here they are made up, with two judges of one family, "alpha".
rng = np.random.default_rng(11)
judges = {"alpha-large": 1.0, "alpha-small": 1.2, "beta": 1.0, "gamma": 1.4, "delta": 1.8}
n_answers, n_runs = 150, 3
true_score = np.clip(rng.normal(6.0, 1.5, n_answers), 0, 10)
rows = []
for number in range(n_answers):
    family_error = rng.normal()  # what both judges of the family get wrong about this answer
    for judge, size in judges.items():
        own = rng.normal()
        wrong = np.sqrt(0.8) * family_error + np.sqrt(0.2) * own if "alpha" in judge else own
        for _ in range(n_runs):
            run_error = rng.normal(0, 0.4)  # a judge does not always say the same
            score = np.clip(true_score[number] + size * wrong + run_error, 0, 10)
            rows.append((f"answer {number:03d}", judge, score))
# A dict of columns will do; a data frame or a file works as well.
question, judge_of_row, score_of_row = map(list, zip(*rows, strict=True))
table = {"question": question, "worker": judge_of_row, "answer": score_of_row}

# --- 1. Repeated runs -------------------------------------------------------------------------------------------------
# trueup refuses repeated answers until you say what they are. duplicates="mean" counts the three runs as one opinion.
try:
    trueup.estimate(table)
except trueup.TrueupError as problem:
    print("Without duplicates= trueup says:")
    print(" ", problem, "\n")
est = trueup.estimate(table, duplicates="mean", bounds=(0, 10))

# --- 2. Who errs together? --------------------------------------------------------------------------------------------
print(est.findings.correlated, "\n")

# --- 3. One family, one opinion ---------------------------------------------------------------------------------------
# Errors that correlate so clearly are not counted twice: by default the two judges count as one. In a small panel the
# answers do not always show who errs together. If you know the families, give the judges of each family one name;
# duplicates="mean" then turns all their runs into one opinion.
print(est.diagnosis.pooling, "\n")
family = {"alpha-large": "alpha", "alpha-small": "alpha"}
named = {**table, "worker": [family.get(judge, judge) for judge in judge_of_row]}
merged = trueup.estimate(named, duplicates="mean", bounds=(0, 10))

# --- Was it worth it? -------------------------------------------------------------------------------------------------
# Only possible because we made up the true scores. The 95% intervals should contain 95% of them. A method that you
# name counts every judge separately. Look at the second line: two judges who agree because they err together look
# better than they are, get more weight than they deserve, and make the intervals too short.
mean = trueup.estimate(table, method="mean", shrink="none", duplicates="mean")
five = trueup.estimate(table, method="native", duplicates="mean", bounds=(0, 10))
shown = {
    "plain mean": mean,
    "five judges": five,
    "found by trueup": est,
    "family is one judge": merged,
}
for name, each in shown.items():
    error = np.sqrt(np.mean((each.estimate - true_score) ** 2))
    covered = np.mean((each.lower <= true_score) & (true_score <= each.upper))
    width = np.mean(each.upper - each.lower)
    print(
        f"{name:20s} typical error {error:.3f}; 95% intervals, {width:.1f} wide, contain {covered:.0%}"
    )
