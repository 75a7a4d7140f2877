"""Uses an installed leastwise as its users do: fits, files and the command line. Needs what it installs, no more."""

import argparse
import csv
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_iris

import leastwise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cli", action="store_true", help="test the command line, which needs the extra cli")
    chosen = parser.parse_args()
    assert "site-packages" in leastwise.__file__, f"{leastwise.__file__} is not an installed package"
    assert leastwise.__version__ == version("leastwise")
    with tempfile.TemporaryDirectory() as folder:
        command_line(Path(folder)) if chosen.cli else library(Path(folder))
    print("The", "command line" if chosen.cli else "library", f"of leastwise {leastwise.__version__} works.")


def library(folder: Path) -> None:
    """One task, many tasks, many labels, regression; a model file gives the same probabilities to the last bit."""
    X, y = load_iris(return_X_y=True)
    model = leastwise.LSPC().fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9
    leastwise.save(model, folder / "iris.lw")
    assert np.array_equal(leastwise.load(folder / "iris.lw").predict_proba(X), model.predict_proba(X))
    tasks = np.arange(len(y)) % 3
    assert leastwise.MultiTaskLSPC().fit(X, y, tasks=tasks).score(X, y, tasks=tasks) > 0.9
    Y = np.eye(3)[y]
    assert leastwise.MultiLabelLSPC().fit(X, Y).predict_proba(X).shape == Y.shape
    X, y = load_diabetes(return_X_y=True)
    assert leastwise.LSSVR().fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.3


def command_line(folder: Path) -> None:
    """A table is fitted, a model file predicts it, and both ways to start the program agree."""
    data = load_iris()
    with open(folder / "iris.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*data.feature_names, "species"])
        rows.writerows([*row, data.target_names[k]] for row, k in zip(data.data, data.target, strict=True))
    program = str(Path(sys.executable).with_name("leastwise"))
    for command in (
        [program, "fit", "iris.csv", "--target", "species", "-o", "iris.lw"],
        [sys.executable, "-m", "leastwise", "predict", "iris.lw", "iris.csv", "-o", "out.csv"],
    ):
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with open(folder / "out.csv", newline="") as file:
        right = [
            row["prediction"] == data.target_names[k]
            for row, k in zip(csv.DictReader(file), data.target, strict=True)
        ]
    assert len(right) == 150
    assert sum(right) > 135


if __name__ == "__main__":
    main()
