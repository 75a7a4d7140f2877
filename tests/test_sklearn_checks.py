"""scikit-learn's own checks, for every estimator; no expected failures."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from leastwise import LSPC, KernelLogisticRegression

ESTIMATORS = [
    LSPC(),
    KernelLogisticRegression(),
    KernelLogisticRegression(n_centers=20, random_state=0),
    LSPC(norm="coefficients", bias="shared"),
    LSPC(basis="class", n_centers=20, random_state=0),
    LSPC(norm="coefficients", basis="class", calibration=None, cv=2, scoring="accuracy"),  # the paper
]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
