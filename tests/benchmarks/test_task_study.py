"""The study of tasks: unseen tasks are really unseen, and every method that is installed gives figures."""

import importlib.util
import json

import numpy as np
import pytest

from benchmarks import task_study

PACKAGES = {
    "GPBoost": "gpboost",
    "mixed model (GPBoost)": "gpboost",
    "mixed model (statsmodels)": "statsmodels",
    "MERF": "merf",
    "hierarchical (scikit-lego)": "sklego",
    "CatBoost + task": "catboost",
}


def test_unseen_tasks_have_no_training_rows():
    data = task_study.draw("related-0.6", None, 0, quick=True)
    assert set(np.unique(data.task_test[data.unseen])) == {4}
    assert not np.isin(data.task, [4]).any()
    assert set(np.unique(data.task_test)) == {0, 1, 2, 3, 4}


def test_our_model_and_a_pooled_one(tmp_path):
    out = tmp_path / "study.json"
    task_study.main(["--quick", "--sets", "related-0.6", "--methods", "ours", "pooled", "--output", str(out)])
    ours, pooled = json.loads(out.read_text())["figures"]
    assert ours["log_loss_known"] < pooled["log_loss_known"]
    assert (ours["tasks"], ours["unseen_tasks"], ours["rows"]) == (4, 1, 160)
    ((title, header, lines),) = task_study.tables([ours, pooled])
    assert "1 unseen tasks" in title
    assert [len(line) for line in lines] == [len(header)] * 2


@pytest.mark.parametrize("name", PACKAGES)
def test_peers(name):
    if importlib.util.find_spec(PACKAGES[name]) is None:
        pytest.skip(f"{PACKAGES[name]} is not installed (extra bench)")
    args = task_study.parse(task_study.parser("benchmarks.task_study", "", threads=1), ["--quick"])
    for which, key in (("related-0.6", "log_loss_unseen"), ("slopes-0.3", "r2_unseen")):
        found = task_study.measured(name, task_study.draw(which, None, 0, True), 0, args)
        assert found is None if name == "MERF" and which == "related-0.6" else np.isfinite(found[key])
