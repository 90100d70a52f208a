"""What is learned about workers, in pieces."""

from __future__ import annotations

import numpy as np
from scipy.special import polygamma

from trueup.algorithms import worker_learning


def test_trigamma_is_that_of_scipy() -> None:
    x = np.concatenate([np.geomspace(0.25, 1e6, 999), np.arange(1, 41) / 2.0])
    np.testing.assert_allclose(worker_learning._trigamma(x), polygamma(1, x), rtol=1e-14)
