"""What must hold for any data: weights and copies, order, scale, limits."""

import numpy as np
import pytest
from conftest import blobs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from leastwise import LSPC, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVC, MultiTaskLSSVR

FORMS = st.fixed_dictionaries(
    {
        "norm": st.sampled_from(["function", "coefficients"]),
        "basis": st.sampled_from(["full", "class"]),
        "bias": st.sampled_from([None, "shared"]),
        "sigma": st.floats(0.5, 3),
        "alpha": st.floats(1e-3, 1),
    }
)
SEEDS = st.integers(0, 10_000)


def proba(X, y, new, form, **fit):
    return LSPC(**form).fit(X, y, **fit).predict_proba(new)


@given(FORMS, SEEDS)
def test_weights_are_repeated_rows(form, seed):
    X, y = blobs(24, seed=seed)
    times = np.random.default_rng(seed).integers(0, 4, 24)
    times[:6] += 1  # no class disappears
    y[:6] = [0, 1, 2, 0, 1, 2]
    a = proba(X, y, X, form, sample_weight=times)
    b = proba(np.repeat(X, times, axis=0), np.repeat(y, times), X, form)
    np.testing.assert_allclose(a, b, atol=1e-5)


@given(FORMS, SEEDS)
def test_order_of_rows_does_not_matter(form, seed):
    X, y = blobs(24, seed=seed)
    order = np.random.default_rng(seed).permutation(24)
    one, other = LSPC(**form).fit(X, y), LSPC(**form).fit(X[order], y[order])
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(one.heldout_scores_[order], other.heldout_scores_, atol=1e-7)


@given(FORMS, SEEDS)
def test_names_of_classes_do_not_matter(form, seed):
    X, y = blobs(24, seed=seed)
    order = np.random.default_rng(seed).permutation(3)
    np.testing.assert_allclose(proba(X, order[y], X, form)[:, order], proba(X, y, X, form), atol=1e-6)


@given(FORMS, SEEDS, st.floats(1e-3, 1e3))
def test_units_of_features_do_not_matter(form, seed, unit):
    X, y = blobs(24, seed=seed)
    scaled = form | {"sigma": form["sigma"] * unit}
    np.testing.assert_allclose(proba(unit * X, y, unit * X, scaled), proba(X, y, X, form), atol=1e-6)


@pytest.mark.parametrize("scale", [None, "auto"])
@given(SEEDS, st.floats(1e-2, 1e2))
@settings(max_examples=8)
def test_automatic_choice_does_not_depend_on_units_or_scale_of_weights(scale, seed, unit):
    X, y = blobs(24, seed=seed)
    one = LSPC(scale=scale).fit(X, y)
    other = LSPC(scale=scale).fit(unit * X + 5, y, sample_weight=np.full(24, unit))
    expected = unit * one.sigma_ if other.scale_ is None else one.sigma_
    assert (other.scale_, other.sigma_) == (one.scale_, pytest.approx(expected, rel=1e-6))
    assert other.alpha_ == pytest.approx(one.alpha_, rel=1e-6)


@pytest.mark.parametrize("norm", ["function", "coefficients"])
@pytest.mark.parametrize("calibration", ["blend", None])
def test_a_large_ridge_with_a_bias_gives_the_class_shares(norm, calibration):
    X, y = blobs(30)
    model = LSPC(1.0, 1e8, norm=norm, bias="shared", calibration=calibration).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), np.full((30, 3), 1 / 3), atol=1e-3)


def test_a_small_ridge_interpolates():
    X, y = blobs(30)
    for norm in ("function", "coefficients"):
        model = LSPC(0.3, 1e-13, norm=norm, calibration=None, cv=None).fit(X, y)
        np.testing.assert_allclose(model.scores(X), np.eye(3)[y], atol=1e-4)


def test_a_narrow_kernel_knows_only_the_training_rows():
    X, y = blobs(30)
    model = LSPC(1e-3, 0.1, calibration=None).fit(X, y)
    np.testing.assert_allclose(model.heldout_scores_, 0, atol=1e-12)
    np.testing.assert_allclose(model.heldout_proba_, np.full((30, 3), 1 / 3))


def test_bias_makes_two_scores_sum_to_one():
    X, y = blobs(40, c=2)
    model = LSPC(1.0, 0.1, bias="shared", calibration=None, cv=None).fit(X, y)
    np.testing.assert_allclose(model.scores(X + 0.3).sum(axis=1), 1, atol=1e-9)


def persons(seed):
    """Forty persons with eight rows each: rows of one person are almost equal, persons of one class are not."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(40), 8)
    label = rng.permutation(np.arange(40) % 2)
    face = rng.normal(size=(40, 6)) + 0.3 * label[:, None]
    return face[person] + 0.05 * rng.normal(size=(320, 6)), label[person], person


def test_groups_that_flatter_do_not_fool_the_calibration():
    """New persons are met later: leave-one-out is near perfect and wrong; holding out persons tells the truth."""
    believed, met = {"rows": [], "persons": []}, {"rows": [], "persons": []}
    for seed in range(6):
        X, y, person = persons(seed)
        old, new = person < 25, person >= 25
        for name, groups in (("rows", None), ("persons", person[old])):
            model = LSPC(random_state=0).fit(X[old], y[old], groups=groups)
            believed[name].append(-np.log(model.heldout_proba_[np.arange(old.sum()), y[old]]).mean())
            met[name].append(-np.log(model.predict_proba(X[new])[np.arange(new.sum()), y[new]]).mean())
    assert np.mean(believed["rows"]) < 0.1
    assert np.mean(met["persons"]) < 0.8  # the class shares give 0.69
    assert np.mean(met["persons"]) < np.mean(met["rows"])
    assert max(met["rows"] + met["persons"]) < 2  # wrong at times, but floor and smoothing keep it sane
    gap = {name: np.mean(met[name]) - np.mean(believed[name]) for name in met}
    assert gap["persons"] < gap["rows"] / 3


@pytest.mark.parametrize("factor", [0.01, 5.0, 1e300])
@pytest.mark.parametrize(
    "model",
    [
        MultiTaskLSSVC(0.8, 0.1, sharing=0.5, bias=0.3),
        MultiTaskLSSVR(0.8, 0.1, sharing=0.5, bias=0.3),
        MultiTaskLSSVR(scale="standard", kernel="rbf+linear", metric=None),
        LSPC(0.8, 0.1, norm="coefficients"),
        LSPC(0.8, 0.1, norm="coefficients", basis="class"),
        MultiTaskLSPC(0.8, 0.1, sharing=0.5, norm="coefficients"),
        MultiLabelLSPC(0.8, 0.1, sharing=0.5, norm="coefficients"),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.sigma}-{getattr(model, 'basis', '')}",
)
def test_equal_weights_say_nothing(model, factor):
    """Only integers that differ are counts."""
    X, y = blobs(30, c=2)
    y = y[:, None] if isinstance(model, MultiLabelLSPC) else y
    tasks = {"tasks": np.arange(30) % 3} if type(model).__name__.startswith("MultiTask") else {}
    plain = clone(model).fit(X, y, **tasks)
    weighted = clone(model).fit(X, y, sample_weight=np.full(30, factor), **tasks)
    for method in ("predict", "predict_proba") if hasattr(model, "predict_proba") else ("predict",):
        got, expected = (np.asarray(getattr(m, method)(X + 0.1, **tasks)) for m in (weighted, plain))
        np.testing.assert_allclose(got, expected, atol=1e-9)
