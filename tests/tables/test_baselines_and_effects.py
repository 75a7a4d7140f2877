"""Baselines beside a fit, against refits by hand; what the columns do, against predictions by hand."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from leastwise import TableModel
from leastwise.tables.linear import RIDGES, baseline_note, compare_baselines
from leastwise.tables.prepare import prepare


def table(n=240, seed=0, power=1):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    site = rng.choice(["north", "south", "west"], n)
    score = a**power + (site == "north") + 0.5 * rng.normal(size=n)
    return {
        "a": a,
        "b": b,
        "site": site,
        "who": np.arange(n) // 4,
        "y": np.where(score > 0.5, "yes", "no"),
        "z": score,
    }


def features(data):
    """Standardised numbers and one-hot sites."""
    X = np.column_stack([(data[name] - data[name].mean()) / data[name].std() for name in "ab"])
    return np.hstack([X, (data["site"][:, None] == np.unique(data["site"])).astype(float)])


def fitted(target, **more):
    data = table()
    ignore = [name for name in ("y", "z") if name != target] + ([] if "group" in more else ["who"])
    model = TableModel(target, task="site", ignore=ignore, kernel="rbf", **more)
    return model.fit(data), data


@pytest.mark.parametrize("group", [None, "who"])
def test_classes_are_compared_with_shares_and_logistic_regression(group):
    model, data = fitted("y", **({} if group is None else {"group": "who"}))
    X, y = features(data), data["y"]
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(y, y)
    if group:
        folds = GroupKFold(5).split(y, groups=data["who"])
    P, shares = np.empty((len(y), 2)), np.empty((len(y), 2))
    for train, test in folds:
        P[test] = LogisticRegression(max_iter=300).fit(X[train], y[train]).predict_proba(X[test])
        shares[test] = [(np.sum(y[train] == name) + 0.5) / (len(train) + 1) for name in ("no", "yes")]
    found = model.baselines_
    assert found["linear"]["loss"] == pytest.approx(log_loss(y, P), rel=1e-4)
    assert found["constant"]["loss"] == pytest.approx(log_loss(y, shares))
    assert found["loss"] == pytest.approx(model.heldout_["log_loss"])
    assert found["measure"] == "log_loss"
    assert found["rows"] == len(y)
    assert found["constant"]["better"]
    assert found["constant"]["interval"][0] > 0


def test_numbers_are_compared_with_the_mean_and_ridge_regression():
    model, data = fitted("z")
    X, z = features(data), data["z"]
    predicted, mean = np.empty(len(z)), np.empty(len(z))
    for train, test in KFold(5, shuffle=True, random_state=0).split(z):
        predicted[test] = RidgeCV(RIDGES).fit(X[train], z[train]).predict(X[test])
        mean[test] = z[train].mean()
    found = model.baselines_
    assert found["linear"]["loss"] == pytest.approx(np.mean((z - predicted) ** 2), rel=1e-6)
    assert found["constant"]["loss"] == pytest.approx(np.mean((z - mean) ** 2))
    assert np.sqrt(found["loss"]) == pytest.approx(model.heldout_["rmse"])


def test_labels_with_unknown_cells():
    data = table()
    data["l"], data["m"] = (data["z"] > 0).astype(float), (data["b"] > 0).astype(float)
    data["m"][::3] = np.nan
    model = TableModel(labels=["l", "m"], ignore=["y", "z", "who"], kernel="rbf").fit(data)
    found = model.baselines_
    assert found["linear"]["loss"] < found["constant"]["loss"]
    assert found["constant"]["loss"] == pytest.approx(np.log(2), rel=0.15)
    assert found["loss"] == pytest.approx(model.heldout_["log_loss"])  # both count every known cell once


def test_a_fit_that_is_no_better_says_so():
    data = table()
    rng = np.random.default_rng(1)
    noise = {"a": data["a"], "b": data["b"], "y": rng.permutation(data["y"])}
    model = TableModel("y", kernel="rbf").fit(noise)
    assert any(n.startswith("On held-out rows the model is no better than the class shares") for n in model.notes_)
    curved = table(300, power=2)
    model = TableModel("y", kernel="rbf", ignore=["z", "who"]).fit(curved)
    assert model.baselines_["linear"]["better"]
    assert not any("no better" in note for note in model.notes_)
    found = {"measure": "log_loss", "loss": 0.4, "constant": {"better": True}}
    found["linear"] = {"loss": 0.3, "interval": [-0.2, -0.05], "better": False}
    text = baseline_note("classes", found, {"model": 12.0, "linear": 0.1})
    assert text.startswith("On held-out rows the model is worse than logistic regression: log-loss 0.4 against 0.3.")
    assert text.endswith("this fit took 12 s.")


def test_few_rows_and_single_groups_have_no_baselines():
    model, data = fitted("y")
    found = prepare(model, model._read(data))
    few = np.full((240, 2), np.nan)
    few[:6] = 0.5
    assert compare_baselines(found, "classes", few) is None


# ------------------------------------------------------------------------------ effects


def test_partial_dependence_is_the_mean_prediction():
    model, data = fitted("y")
    effects = model.effects_
    assert next(iter(effects["importance"])) == "a"
    assert effects["importance"]["a"] > 3 * effects["importance"]["b"]
    line = effects["lines"][0]
    assert line["column"] == "a"
    assert line["kind"] == "number"
    assert line["of"] in ("no", "yes")
    low, high = np.quantile(data["a"], [0.05, 0.95])
    assert low - 0.01 <= line["at"][0] < line["at"][-1] <= high + 0.01
    rows = np.sort(np.random.default_rng(0).choice(240, 100, replace=False))
    for at, value in list(zip(line["at"], line["value"], strict=True))[::4]:
        some = {name: values[rows] for name, values in data.items()} | {"a": np.full(100, at)}
        assert model.predict_table(some)[f"p_{line['of']}"].mean() == pytest.approx(value)
    assert not set(line["at"]) & set(data["a"].tolist())  # no cell of a row


def test_effects_of_numbers_categories_and_booleans():
    data = table()
    data |= {"odd": np.where(np.arange(240) % 2, "yes", "no"), "kind": np.where(data["a"] > 0, "up", "down")}
    data["kind"][:2] = "rare"
    model = TableModel("z", ignore=["y", "who", "a"], kernel="rbf").fit(data)
    lines = {line["column"]: line for line in model.effects_["lines"]}
    assert lines["odd"]["at"] == ["no", "yes"]
    assert sorted(lines["kind"]["at"]) == ["down", "up"]  # not the category with two rows
    up = dict(zip(lines["kind"]["at"], lines["kind"]["value"], strict=True))
    assert up["up"] > up["down"] + 0.5
    assert lines["kind"]["of"] == ""
