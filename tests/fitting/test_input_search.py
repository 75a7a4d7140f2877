"""Scale, kernel and feature weights chosen on held-out rows, for all estimators."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

import leastwise as lw
from leastwise.fitting import feature_weights, input_search
from leastwise.fitting.direct import make_problem
from leastwise.fitting.fit import prepare
from leastwise.fitting.input_search import rungs
from leastwise.model_selection.search import Search
from leastwise.problem.kernels import RBF, Laplace, Sum
from leastwise.solvers.evaluator import Candidate
from leastwise.solvers.heldout import HeldOut
from leastwise.solvers.newton import RefitEvaluator

RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=(N, 3))
Y = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=N) > 0).astype(int)
V = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=N)
L = np.column_stack([Y, X[:, 1] > 0])
TASK = np.arange(N) % 4
RAW = X * [1e-4, 1e3, 7.0] + [5, -100, 0]

AUTO = {"kernel": "auto", "scale": "auto", "metric": "auto", "random_state": 0}
MODELS = {
    "LSPC": (lw.LSPC(**AUTO), Y, {}),
    "LSSVC": (lw.LSSVC(**AUTO), Y, {}),
    "LSSVR": (lw.LSSVR(**AUTO), V, {}),
    "KLR": (lw.KernelLogisticRegression(**AUTO), Y, {}),
    "MultiTaskLSPC": (lw.MultiTaskLSPC(**AUTO), Y, {"tasks": TASK}),
    "MultiTaskLSSVC": (lw.MultiTaskLSSVC(**AUTO), Y, {"tasks": TASK}),
    "MultiTaskLSSVR": (lw.MultiTaskLSSVR(**AUTO), V, {"tasks": TASK}),
    "MultiTaskKLR": (lw.MultiTaskKernelLogisticRegression(**AUTO), Y, {"tasks": TASK}),
    "MultiLabelLSPC": (lw.MultiLabelLSPC(**AUTO), L, {}),
}
all_models = pytest.mark.parametrize("name", list(MODELS))


def answer(model, rows, given):
    return model.predict_proba(rows, **given) if hasattr(model, "predict_proba") else model.predict(rows, **given)


@all_models
def test_units_and_origins_of_columns_make_no_difference(name):
    model, y, given = MODELS[name]
    one, other = clone(model).fit(X, y, **given), clone(model).fit(RAW, y, **given)
    assert (one.scale_, type(one.kernel_)) == (other.scale_, type(other.kernel_))
    np.testing.assert_allclose(answer(one, X, given), answer(other, RAW, given), atol=1e-6)


@all_models
def test_a_number_for_sigma_leaves_the_rows_as_they_are(name):
    model, y, given = MODELS[name]
    model = clone(model).set_params(sigma=1.5).fit(X, y, **given)
    assert model.scale_ is None
    assert model.feature_weights_ is None
    assert model.inputs_(X) is X
    assert isinstance(model.kernel_.ruler, RBF)


@all_models
def test_names_are_used_as_they_are_given(name):
    model, y, given = MODELS[name]
    model = clone(model).set_params(kernel="laplace", scale="robust", metric=None).fit(RAW, y, **given)
    assert model.scale_ == "robust"
    assert isinstance(model.kernel_, Laplace)
    assert model.feature_weights_ is None
    np.testing.assert_allclose(model.inputs_(RAW).std(axis=0), 1)


@all_models
def test_files_hold_the_inputs(name, tmp_path):
    model, y, given = MODELS[name]
    model = clone(model).set_params(metric="diagonal", kernel="rbf").fit(RAW, y, **given)
    assert model.feature_weights_.shape == (3,)
    lw.save(model, tmp_path / "model.lw")
    loaded = lw.load(tmp_path / "model.lw")
    np.testing.assert_array_equal(answer(loaded, RAW, given), answer(model, RAW, given))
    assert loaded.inputs_.same_as(model.inputs_)


def test_the_search_shows_scales_and_kernels():
    model = lw.LSPC(**AUTO).fit(RAW, Y)
    tried = model.cv_results_
    assert {"standard", "quantile"} <= set(tried["param_scale"])
    assert {"rbf", "laplace"} <= set(tried["param_kernel"])
    best = int(np.argmin(tried["rank_test_score"]))
    assert tried["param_scale"][best] == model.scale_
    assert tried["param_sigma"][best] == model.sigma_


def test_the_kernel_is_chosen():
    """Steps along single features suit the Laplace kernel, a smooth ring the Gaussian."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(-1, 1, size=(250, 2))
    ring = (np.hypot(*rows.T) < 0.7).astype(int)
    assert isinstance(lw.LSPC(**AUTO | {"metric": None}).fit(rows, ring).kernel_, RBF)
    steps = (np.floor(6 * rows[:, 0]) % 2).astype(int)
    assert isinstance(lw.LSPC(**AUTO | {"metric": None}).fit(rows, steps).kernel_, Laplace)


def test_heavy_tails_are_bent():
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(300, 3))
    rows, y = np.exp(3 * Z), (Z[:, 0] + np.sin(2 * Z[:, 1]) > 0).astype(int)
    assert lw.LSPC(**AUTO).fit(rows, y).scale_ == "quantile"


def test_more_rows_go_up_the_ladder(monkeypatch):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(700, 3))
    y = (np.sin(2 * rows[:, 0]) + rows[:, 1] > 0).astype(int)
    monkeypatch.setattr(input_search, "FIRST_ROWS", 100)
    model = lw.LSPC(**AUTO, search_rows=300).fit(rows, y)
    sizes = np.unique(model.cv_results_["n_rows"])
    assert len(sizes) == 3
    assert np.all(np.abs(sizes - [100, 300, 700]) <= 10)


def test_noise_features_get_small_weights():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(250, 42))
    y = (rows[:, 0] + rows[:, 1] > 0).astype(int)
    new = rng.normal(size=(500, 42))
    truth = (new[:, 0] + new[:, 1] > 0).astype(int)
    model, plain = lw.LSPC(**AUTO).fit(rows, y), lw.LSPC(**AUTO | {"metric": None}).fit(rows, y)
    weights = model.feature_weights_
    assert weights[:2].min() > 3 * weights[2:].max()
    assert log_loss(truth, model.predict_proba(new)) < 0.6 * log_loss(truth, plain.predict_proba(new))


def test_weights_are_not_kept_where_there_is_nothing_to_learn():
    rng = np.random.default_rng(5)
    rows, y = rng.normal(size=(150, 8)), rng.integers(0, 2, 150)
    assert lw.LSPC(**AUTO).fit(rows, y).feature_weights_ is None


def test_constant_columns_have_no_weight():
    rows = np.column_stack([np.full(N, 3.0), X])
    model = lw.LSPC(random_state=0, scale="standard", metric="diagonal").fit(rows, Y)
    assert model.feature_weights_[0] == 0
    assert model.feature_weights_.shape == (4,)


@pytest.mark.parametrize("model", [lw.LSPC(**AUTO, n_centers=20), lw.LSSVR(**AUTO, n_centers=20)])
def test_streams_scale_by_their_sample(model):
    y = V if isinstance(model, lw.LSSVR) else Y
    memory = clone(model).set_params(solver="moments").fit(RAW, y)
    stream = clone(model).fit_stream(RAW, y, block_rows=50)
    assert memory.scale_ == stream.scale_
    np.testing.assert_allclose(answer(memory, RAW, {}), answer(stream, RAW, {}), atol=0.05)


def test_sums_of_kernels_may_be_chosen():
    assert isinstance(lw.LSSVR(**AUTO, linear_weight=1.0).fit(X, V).kernel_, Sum)


def test_centres_are_given_in_the_units_of_x():
    model = lw.LSPC(centers=RAW[:15], random_state=0, scale="standard").fit(RAW, Y)
    np.testing.assert_allclose(model.centers_, model.inputs_(RAW[:15]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scale": "minmax"}, "scale='minmax'"),
        ({"metric": "full"}, "metric='full'"),
        ({"kernel": "gauss"}, "gauss"),
    ],
)
def test_unknown_names(parameters, message):
    with pytest.raises(ValueError, match=message):
        lw.LSPC(**parameters).fit(X, Y)


def test_search_rows_are_the_rows_of_the_comparisons():
    assert rungs("auto", 5000) == (300, 1000)
    assert rungs("auto", 120) == (120, 120)
    assert rungs(None, 5000) == (5000, 5000)
    assert rungs(2000, 5000) == (300, 2000)
    assert rungs(100, 5000) == (100, 100)


@pytest.mark.parametrize(("search_rows", "expected"), [(None, {400}), (150, {150, 400}), ("auto", {300, 400})])
def test_points_of_the_search_say_how_many_rows_they_had(search_rows, expected):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3))
    y = (rows[:, 0] + rng.normal(size=400) > 0).astype(int)
    model = lw.LSPC(**AUTO, search_rows=search_rows).fit(rows, y)
    assert set(model.cv_results_["n_rows"]) == expected


# ------------------------------------------------------------------- what the choice does not compute


def test_linear_functions_are_evaluated_once_for_all_kernels(monkeypatch):
    steps, step = [], Search._at

    def counted(self, sigma, sharing, strategy, count, what="", ahead=None):
        if self.evaluator.weight == np.inf and what == "":
            steps.append((count, self.evaluator.settings.inputs.scale))
        return step(self, sigma, sharing, strategy, count, what, ahead)

    monkeypatch.setattr(Search, "_at", counted)
    lw.LSSVR(random_state=0).fit(X, X @ [1.0, 2.0, 3.0] + 0.1 * np.cos(Y))
    assert steps
    assert len(set(steps)) == len(steps)


def test_a_candidate_is_hopeless_if_its_losses_are_clearly_worse():
    model = lw.LSSVR(sigma=1.0, alpha=1e-3, random_state=0)
    data, settings = prepare(model, model._spec(), X, V)
    problem = make_problem(model._spec(), data, settings)
    exact = problem.rows.values
    good, bad = (Candidate(1.0, 1.0, 0.0, exact + shift, None) for shift in (0.1, 0.5))
    noise = Candidate(1.0, 1.0, 0.0, exact + 0.1 * np.where(np.arange(N) % 2, 1.01, 0.99)[:, None], None)
    assert input_search._hopeless(problem, bad, good)
    assert not input_search._hopeless(problem, good, bad)
    assert not input_search._hopeless(problem, noise, good)


@pytest.mark.parametrize("name", ["KLR", "MultiTaskKLR"])
def test_logistic_regression_compares_inputs_by_least_squares(name, monkeypatch):
    model, y, given = MODELS[name]
    seen, compare = [], input_search._compare

    def compared(problem, candidates):
        with monkeypatch.context() as inside:
            inside.setattr(RefitEvaluator, "_heldout", None)  # fails where a logistic regression is fitted
            seen.append(compare(problem, candidates))
        return seen[-1]

    monkeypatch.setattr(input_search, "_compare", compared)
    fitted = clone(model).fit(X, y, **given)
    best, start, points = seen[0]
    assert points == []
    assert start.alpha >= 1e-6
    assert fitted.scale_ == best.scale
    assert set(fitted.cv_results_["param_kernel"]) == {best.kernel}


# ------------------------------------------------------------------- fewer steps


@all_models
def test_a_named_kernel_is_searched_on_few_rows_first(name, monkeypatch):
    monkeypatch.setattr(input_search, "FIRST_ROWS", 60)
    model, y, given = MODELS[name]
    given = {"tasks": np.arange(N) % 20} if given else {}  # whole tasks are sampled
    model = clone(model).set_params(kernel="rbf", scale="standard", metric=None).fit(X, y, **given)
    rows = model.cv_results_["n_rows"]
    assert rows.max() == N
    if "KernelLogistic" in type(model).__name__:  # points of another loss are not listed
        return
    assert rows.min() < N
    assert set(model.cv_results_["param_kernel"]) == {"rbf"}


@pytest.mark.parametrize("name", ["LSPC", "LSSVR", "MultiTaskLSPC", "MultiLabelLSPC"])
def test_a_line_search_over_alpha_finds_the_best_of_the_grid(name, monkeypatch):
    model, y, given = MODELS[name]
    walked = clone(model).fit(X, y, **given)
    monkeypatch.setattr(input_search, "Search", lambda *args, walks=False, **more: Search(*args, **more))
    whole = clone(model).fit(X, y, **given)
    assert len(walked.cv_results_["n_rows"]) < len(whole.cv_results_["n_rows"])
    for attribute in ("scale_", "alpha_", "sigma_"):
        assert getattr(walked, attribute) == getattr(whole, attribute)
    np.testing.assert_allclose(answer(walked, X, given), answer(whole, X, given), atol=1e-9)


@pytest.mark.parametrize("helps", [False, True])
def test_feature_weights_are_given_up_where_they_are_worse(helps, monkeypatch):
    """Twelve columns that matter alike, or two of four that matter."""
    rows = np.random.default_rng(0).normal(size=(240, 4 if helps else 12))
    y = (rows[:, 0] ** 2 + rows[:, 1] ** 2 > 1.4 if helps else np.sin(2 * rows).sum(axis=1) > 0).astype(int)
    learned, learn = [], feature_weights.learn_weights
    monkeypatch.setattr(feature_weights, "learn_weights", lambda *args: learned.append(1) or learn(*args))
    model = lw.LSPC(random_state=0).fit(rows, y)
    count = len(learned)
    monkeypatch.setattr(feature_weights, "_hopeless", lambda *args: False)
    whole = lw.LSPC(random_state=0).fit(rows, y)
    assert (model.feature_weights_ is not None) == (whole.feature_weights_ is not None) == helps
    np.testing.assert_allclose(model.predict_proba(rows), whole.predict_proba(rows), atol=1e-9)
    assert (count < len(learned) - count) == (not helps)


def test_losses_of_rows_by_a_known_calibrator_are_the_same():
    for name in ("LSPC", "MultiLabelLSPC"):
        model, y, given = MODELS[name]
        data, settings = prepare(clone(model), clone(model)._spec(), X, y, **given)
        held = HeldOut(np.random.default_rng(2).normal(size=(N, settings.n_outputs)))
        calibrator = settings.objective(data.rows, held, None)[1]
        losses = settings.objective.row_losses(data.rows, held, calibrator)
        np.testing.assert_array_equal(losses, settings.objective.row_losses(data.rows, held))
