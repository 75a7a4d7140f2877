"""Parts of dates: their features against the calendar, which of them are kept, and models that use them."""

from datetime import date, timedelta

import numpy as np
import pytest

from leastwise import TableModel, load, save
from leastwise.tables import TableEncoder
from leastwise.tables.date_parts import part_features, phases, useful_parts

FIRST = date(2020, 1, 1)


def days_of(moments):
    return np.array([(day - date(1970, 1, 1)).days for day in moments], dtype=float)


def test_phases_are_those_of_the_calendar():
    moments = [FIRST + timedelta(days=int(k)) for k in np.random.default_rng(0).integers(0, 3000, 200)]
    days = days_of(moments)
    assert np.array_equal(np.round(7 * phases(days, "weekday")), [day.weekday() for day in moments])
    year = [(day - date(day.year, 1, 1)).days / 365.25 for day in moments]
    distance = np.abs(phases(days, "time of year") - year)
    assert np.minimum(distance, 1 - distance).max() < 0.006  # within two days
    assert phases(np.array([0.25, 10.75]), "time of day").tolist() == [0.25, 0.75]
    X = part_features(days, ("time of year", "weekday"))
    assert X.shape == (200, 5)
    assert np.array_equal(X[:, 4], [day.weekday() >= 5 for day in moments])
    np.testing.assert_allclose(X[:, 0] ** 2 + X[:, 1] ** 2, 1)
    assert np.isnan(part_features(np.array([np.nan]), ("weekday",))).all()


def test_parts_are_kept_if_dates_span_more_than_a_cycle_and_targets_are_related():
    rng = np.random.default_rng(0)
    days = rng.integers(18_000, 19_200, 800).astype(float)
    assert useful_parts(days) == ("time of year", "weekday")
    assert useful_parts(days[days < 18_200]) == ("weekday",)
    assert useful_parts(days + rng.random(800)) == ("time of year", "weekday", "time of day")
    assert useful_parts(np.full(5, np.nan)) == ()
    weekend, winter = phases(days, "weekday") > 4.5 / 7, np.cos(2 * np.pi * phases(days, "time of year")) > 0.5
    noise = rng.random(800) < 0.2
    assert useful_parts(days, np.where(weekend ^ noise, "late", "fine")) == ("weekday",)
    assert useful_parts(days, winter + rng.normal(size=800)) == ("time of year",)
    labels = np.column_stack([rng.random(800) < 0.5, winter ^ noise]).astype(float)
    labels[::3, 0] = np.nan
    assert useful_parts(days, labels) == ("time of year",)
    kept = [useful_parts(days, rng.permutation(weekend)) for _ in range(200)]
    assert sum(map(len, kept)) <= 14  # 1 % of 400 tests


def seasons(n, seed=0):
    rng = np.random.default_rng(seed)
    moments = [FIRST + timedelta(days=int(k)) for k in rng.integers(0, 1100, n)]
    winter = np.cos(2 * np.pi * phases(days_of(moments), "time of year"))
    size = rng.normal(size=n)
    when = np.array([f"{day:%d/%m/%Y}" for day in moments], dtype=object)
    when[::17] = None
    return {
        "when": when,
        "size": size,
        "y": np.where(size + 2 * winter + 0.3 * rng.normal(size=n) > 0, "ill", "well"),
    }


@pytest.fixture(scope="module")
def model():
    return TableModel("y", kernel="rbf").fit(seasons(400))


def test_a_season_is_learned_and_said(model, tmp_path):
    column = model.columns_[0]
    assert column.parts == ("time of year",)
    assert column.note == "format %d/%m/%Y, read as days since 1970-01-01; time of year too"
    assert model.encoder_.describe()["features"].tolist() == [3, 1]
    plain = TableModel("y", kernel="rbf", ignore=["when"]).fit(seasons(400))
    new = seasons(500, 1)
    assert model.evaluate(new)["log_loss"] < 0.6 * plain.evaluate(new)["log_loss"]
    save(model, tmp_path / "m.lw")
    np.testing.assert_array_equal(
        load(tmp_path / "m.lw").predict_table(new)["p_ill"], model.predict_table(new)["p_ill"]
    )


def test_features_for_other_estimators():
    table = {name: values for name, values in seasons(200).items() if name != "y"}
    encoder = TableEncoder().fit(table)
    names = encoder.get_feature_names_out().tolist()
    assert names[:3] == ["when", "when: time of year, sine", "when: time of year, cosine"]
    assert names[-2:] == ["when=(missing)", "size"]
    X = encoder.transform(table)
    assert X.shape == (200, len(names))
    assert not X[0, 1:6].any()  # a missing date is at the centre of its cycles


@pytest.mark.parametrize("inner", [None, "other"])
def test_onnx_has_the_parts(inner, model):
    runtime = pytest.importorskip("onnxruntime")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from leastwise import LSPC
    from leastwise.onnx import to_onnx

    if inner is not None:
        model = TableModel("y", model=make_pipeline(StandardScaler(), LSPC(sigma=2.0, alpha=1e-3))).fit(seasons(300))
    new = seasons(60, 2)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    moments = [None if text is None else date(int(text[6:]), int(text[3:5]), int(text[:2])) for text in new["when"]]
    days = np.array([np.nan if day is None else (day - date(1970, 1, 1)).days for day in moments])
    inputs = {"when": days[:, None], "size": new["size"][:, None]}
    shapes = {part.name: part for part in session.get_inputs()}
    given = {
        name: values.astype(float if "double" in shapes[name].type else np.float32) for name, values in inputs.items()
    }
    P = session.run(["probabilities"], given)[0]
    np.testing.assert_allclose(P[:, 0], model.predict_table(new)["p_ill"], atol=2e-6)
