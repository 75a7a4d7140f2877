"""Trust falls as a row leaves the data."""

import numpy as np
import pytest
from conftest import PLAIN, blobs

from leastwise import LSPC
from leastwise.calibration.extrapolation import (
    RANK,
    Extrapolation,
    fit_extrapolation,
    further_distances,
    heldout_distances,
)
from leastwise.datasets import make_three_class
from leastwise.problem.basis import make_basis
from leastwise.problem.centers import Recipe
from leastwise.problem.kernels import RBF, Laplace


def test_trust_is_one_within_the_radius_and_falls_to_zero():
    in_domain = Extrapolation(2.0).in_domain(np.array([0.0, 1.0, 2.0, 4.0, 100.0, np.inf]))
    np.testing.assert_allclose(in_domain[:4], [1, 1, 1, np.exp(-0.5)])
    assert in_domain[4] < 1e-100
    assert in_domain[5] == 0


@pytest.mark.parametrize("kernel", [RBF(), Laplace()])
@pytest.mark.parametrize("n_centers", [None, 10])
def test_heldout_distances_against_a_loop(kernel, n_centers, rng):
    X, y = blobs(40)
    fold = np.arange(40) % 7
    basis = make_basis(Recipe(n_centers=n_centers), X, y, np.ones(40), fold, np.arange(40), rng)
    held = np.arange(0, 40, 3)
    found = heldout_distances(kernel, X, basis, fold, np.arange(40))
    some = heldout_distances(kernel, X, basis, fold, held)
    np.testing.assert_allclose(some[held], found[held])
    assert np.isinf(np.delete(some, held)).all()
    further = further_distances(kernel, X, basis, fold, np.arange(40), np.arange(40))
    order = 2 if isinstance(kernel, RBF) else 1
    for i in range(40):
        others = [c for c in basis.rows if fold[c] != fold[i]]
        gaps = sorted(np.linalg.norm(X[i] - X[c], order) for c in others)
        assert found[i] == pytest.approx(gaps[0], abs=1e-7)
        if len(gaps) >= RANK:
            assert further[i] == pytest.approx(gaps[RANK - 1], abs=1e-7)


def test_radius_is_a_quantile_over_distinct_rows():
    distance, none = np.arange(1.0, 101), np.empty(0)
    assert fit_extrapolation(distance, none, np.arange(100)).radius == pytest.approx(np.quantile(distance, 0.99))
    doubled = np.r_[distance, distance[:50]]
    copies = np.r_[np.arange(100), np.arange(50)]
    assert fit_extrapolation(doubled, none, copies).radius == pytest.approx(np.quantile(distance, 0.99))
    assert fit_extrapolation(distance, np.array([300.0, np.inf]), np.arange(100)).radius == 300
    assert fit_extrapolation(np.zeros(5), none, np.arange(5)) is None
    assert fit_extrapolation(np.full(5, np.inf), np.full(2, np.inf), np.arange(5)) is None


@pytest.mark.parametrize("noise", [1e-6, 1e-2])
def test_rows_that_come_in_pairs_do_not_make_new_rows_foreign(noise):
    rng = np.random.default_rng(0)
    everyone, truth = make_three_class(1200, random_state=0)
    X, y, new = everyone[:200], truth[:200], everyone[200:]
    pairs, labels = np.vstack([X, X + noise * rng.normal(size=X.shape)]), np.r_[y, y]
    cautious = LSPC(**PLAIN, random_state=0).fit(pairs, labels)
    bold = LSPC(**PLAIN, random_state=0, extrapolate=True).fit(pairs, labels)
    assert cautious.score(new, truth[200:]) > bold.score(new, truth[200:]) - 0.02


@pytest.mark.parametrize("calibration", ["blend", "temperature", "isotonic"])
@pytest.mark.parametrize("bias", [None, "shared"])
def test_a_wide_kernel_is_not_sure_of_itself_beyond_the_data(calibration, bias):
    """A wide kernel with a small ridge extrapolates wildly; the probabilities do not."""
    X, y = make_three_class(200, random_state=1)
    shares = np.bincount(y) / 200
    angles = np.linspace(0, 2 * np.pi, 50)
    ring = 16 * np.column_stack([np.cos(angles), np.sin(angles)])
    model = LSPC(8.0, 1e-5, calibration=calibration, bias=bias).fit(X, y)
    assert np.abs(model.scores(ring)).max() > 2
    np.testing.assert_allclose(model.predict_proba(ring), np.tile(shares, (50, 1)), atol=1e-3)
    assert model.in_domain(ring).max() < 1e-3
    bold = LSPC(8.0, 1e-5, calibration=calibration, bias=bias, extrapolate=True).fit(X, y)
    assert bias is not None or bold.predict_proba(ring).max() > 0.9
    assert (bold.in_domain(ring) == 1).all()


def test_among_the_data_nothing_changes():
    X, y = make_three_class(400, random_state=0)
    new, _ = make_three_class(400, random_state=1)
    model = LSPC(2.0, 1e-3).fit(X, y)
    bold = LSPC(2.0, 1e-3, extrapolate=True).fit(X, y)
    in_domain = model.in_domain(new)
    assert np.mean(in_domain == 1) > 0.95
    inside = in_domain == 1
    np.testing.assert_array_equal(model.predict_proba(new)[inside], bold.predict_proba(new)[inside])


def test_confidence_falls_along_every_way_out():
    X, y = make_three_class(300, random_state=2)
    model = LSPC(**PLAIN, random_state=0).fit(X, y)
    for angle in np.linspace(0, 2 * np.pi, 12, endpoint=False):
        way = np.linspace(10, 60, 30)[:, None] * [np.cos(angle), np.sin(angle)]
        distance = np.abs(model.predict_proba(way) - model.calibrator_.shares).max(axis=1)
        assert (np.diff(distance) <= 1e-6).all() or distance[10:].max() < 0.01
        assert distance[-1] < 1e-6


def test_no_reach_without_distances_or_calibration():
    X, y = blobs(40)
    for model in (LSPC(kernel="linear", bias="shared"), LSPC(1.0, 0.1, calibration=None)):
        assert model.fit(X, y).extrapolation_ is None
        assert (model.in_domain(1e3 * X) == 1).all()
    assert LSPC(1.0, 0.1, n_centers=10, solver="sgd", random_state=0).fit(X, y).extrapolation_.radius > 0
    assert LSPC(1.0, 0.1, centers=X[:5] + 0.1).fit(X, y).extrapolation_.radius > 0
