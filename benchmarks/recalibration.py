"""What does a second calibration on held-out predictions bring, beside refits for it?

as it comes        the model with its own calibration
auto               Recalibrated(model): one fit, the family chosen on held-out predictions
by folds, ...      CalibratedClassifierCV(model, method=..., ensemble=False, cv=5): five more fits, with the sigma and
                   alpha that the model had chosen on all rows

Seconds are those beyond a fit of the model. ``harm`` is by how much the log-loss on test rows rose over the model as
it comes; negative is a gain. Log-loss, calibration error (debiased) and their intervals are of test rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV

from benchmarks._common import capped, parse, parser, peer_split, print_table, write_json
from leastwise import LSPC, LSSVC
from leastwise.calibration import Recalibrated
from leastwise.calibration_reports import calibration_report
from leastwise.reproduction._common.data import Split, available
from leastwise.reproduction._common.text import spread
from leastwise.reproduction._common.timing import timed

SETS = ("usps", "satimage", "letter", "digits")
MODELS = {"LSPC()": LSPC(), "LSPC(calibration=None)": LSPC(calibration=None), "LSSVC()": LSSVC()}
ROWS = 1500
PLAIN, AUTO = "as it comes", "auto"
FOLDED = ("sigmoid", "isotonic")


def fitted(split: Split, model: Any) -> Iterator[tuple[str, Any, float, str]]:
    """Name, model, seconds beyond a plain fit, and the family chosen."""
    plain = timed(lambda: clone(model).fit(split.X, split.y))
    yield PLAIN, plain.value, 0.0, ""
    again = timed(lambda: Recalibrated(model).fit(split.X, split.y))
    yield AUTO, again.value, max(again.cpu - plain.cpu, 0.0), str(again.value.method_)
    fixed = clone(model).set_params(sigma=plain.value.sigma_, alpha=plain.value.alpha_)
    for method in FOLDED:
        peer = CalibratedClassifierCV(fixed, method=method, ensemble=False, cv=5)
        done = timed(lambda p=peer: p.fit(split.X, split.y))
        alone = timed(lambda: clone(fixed).fit(split.X, split.y))
        yield f"by folds, {method}", done.value, max(done.cpu - alone.cpu, 0.0), ""


def measured(split: Split, model: Any) -> dict[str, float]:
    """Measures of test rows, with intervals."""
    P = np.asarray(model.predict_proba(split.X_test), dtype=float)
    report = calibration_report(split.y_test, P, classes=model.classes_, n_boot=200)
    parts = {"": report.values, "_low": report.low, "_high": report.high}
    return {f"{name}{end}": float(table[name][0]) for end, table in parts.items() for name in table}


def run(args: argparse.Namespace) -> Iterator[dict]:
    rows = 300 if args.quick else args.rows
    for seed in range(args.runs):
        for data, split in available(args.sets, lambda name, s=seed: peer_split(name, args.data, s, rows)):
            for title, model in MODELS.items():
                before = None
                for name, found, seconds, family in fitted(split, model.set_params(random_state=seed)):
                    values = measured(split, found)
                    before = values["log_loss"] if before is None else before
                    line = {"data": data, "model": title, "method": name, "run": seed, "rows": len(split.y)}
                    yield line | {"family": family, "seconds": seconds, "harm": values["log_loss"] - before} | values
                print(f"{data}, {title}, run {seed}", flush=True)


def report(found: list[dict]) -> None:
    for data in dict.fromkeys(f["data"] for f in found):
        lines = []
        for model in MODELS:
            here = [f for f in found if (f["data"], f["model"]) == (data, model)]
            for method in dict.fromkeys(f["method"] for f in here):
                runs = [f for f in here if f["method"] == method]
                names = "/".join(dict.fromkeys(f["family"] for f in runs))
                figures = [spread([f[k] for f in runs]) for k in ("log_loss", "ece", "classwise_ece")]
                worst = max(f["harm"] for f in runs)
                lines.append([model, method, names, *figures, worst, float(np.mean([f["seconds"] for f in runs]))])
        header = ["model", "method", "family", "log_loss", "ece", "classwise_ece", "worst harm", "seconds"]
        print_table(data, header, lines)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.recalibration", __doc__, threads=1, runs=2)
    p.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    p.add_argument("--rows", type=int, default=ROWS, help="training rows, and test rows, at most")
    args = parse(p, argv)
    with capped(args):
        found = list(run(args))
    report(found)
    write_json(args, {"runs": found})


if __name__ == "__main__":
    main()
