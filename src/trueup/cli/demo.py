"""trueup demo: twelve jars of beans, eight people guessing, two of them without looking."""

from __future__ import annotations

import numpy as np

from trueup._estimate import estimate
from trueup.answers.answers import Answers
from trueup.datasets import simulate

PEOPLE = ("Ana", "Ben", "Chloe", "Dev", "Emi", "Farid", "Gus", "Hana")
METHODS = ("mean", "median", "crh", "gtm", "dtd", "native")
VARIANCES = (20.0**2, 25.0**2, 30.0**2, 40.0**2, 50.0**2, 60.0**2, 150.0**2, 250.0**2)


def demo() -> None:
    """Make guesses whose truth is known, estimate, and compare with the truth."""
    guesses, truth = simulate(
        workers=len(PEOPLE),
        questions=12,
        truth_mean=500.0,
        truth_scale=150.0,
        variance=VARIANCES,
        density=0.8,
        seed=7,
    )
    matrix = guesses.to_matrix()
    worker, jar = np.nonzero(~np.isnan(matrix))
    table = {
        "question": [f"jar {number + 1}" for number in jar],
        "worker": [PEOPLE[number] for number in worker],
        "answer": matrix[worker, jar].round(),
    }
    print("Eight people guess how many beans are in twelve jars; not everybody guesses every jar.")
    print("Nobody knows who is good at it. trueup finds out from the guesses alone.\n")
    print(est := estimate(table))
    print("\nWho to listen to (weight, and the typical error it is based on):")
    weights = est.aggregate.weight
    for who in np.argsort(-weights).tolist():
        name = str(est.answers.worker_ids.tolist(np.array([who]))[0])
        print(
            f"  {name:6} {weights[who]:5.1%}  about {np.sqrt(est.aggregate.noise[who]):.0f} beans"
        )

    print("\nHow far the estimates are from the true numbers (root mean squared error, in beans):")
    answers = Answers.of(table)
    true = truth[[int(str(name).split()[1]) - 1 for name in answers.question_ids.tolist()]]
    for method in METHODS:
        error = np.sqrt(np.mean((estimate(answers, method=method).estimate - true) ** 2))
        print(f"  {method:10} {error:5.1f}")
    print("\nOne made-up example proves nothing; it shows what the tool does.")
