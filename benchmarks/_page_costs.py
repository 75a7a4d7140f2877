"""Tables of time and memory."""

from __future__ import annotations

from typing import Any

from benchmarks._page_format import NONE, best, names_of, origin, results, short, table


def search_rows() -> str:
    """What the number of rows of the search changes."""
    lines = [
        [
            f["data"],
            f["setting"].removeprefix("search_rows="),
            f"{f['seconds']:.1f}",
            f"{f['sigma']:.2f}",
            f"{f['alpha']:.1e}",
            f"{f['log_loss']:.4f}",
            f"{f['accuracy']:.4f}",
        ]
        for f in results("search_plans")["plans"]
    ]
    return table(["data", "search_rows", "seconds", "sigma", "alpha", "log-loss", "accuracy"], lines)


def search_defaults() -> str:
    """Defaults with one parameter changed at a time."""
    found = results("search_plans")["defaults"]
    sets = names_of(found, "data")
    lines = []
    for setting in names_of(found, "setting"):
        here = {f["data"]: f for f in found if f["setting"] == setting}
        lines.append(
            [setting, *(" / ".join(f"{here[s][k]:.3f}" for k in ("log_loss", "ece", "accuracy")) for s in sets)]
        )
    return table(["log-loss / calibration error / accuracy", *sets], lines)


def task_rows() -> str:
    """2,000 rows in more and more tasks."""
    found = results("task_scale")["tasks_at_fixed_rows"]
    counts = names_of(found, "tasks")
    lines = [[fit, *(short(f["seconds"]) for f in found if f["fit"] == fit)] for fit in names_of(found, "fit")]
    header = ["seconds of a fit", *(f"{n:,} task{'s' if n > 1 else ''}" for n in counts)]
    return f"{origin('task_scale')}\n\n{table(header, lines)}"


def task_counts() -> str:
    """More and more tasks of as many rows each."""
    lines = []
    for f in results("task_scale_rows")["rows_per_task_fixed"]:
        lines.append([f["fit"], f"{f['tasks']:,}", short(f["seconds"]), short(1000 * f["seconds"] / f["tasks"])])
        lines[-1] += [f"{f['peak_mb']:,.0f}", *(short(f[k]) for k in ("data_mb", "coef_mb"))]
        lines[-1].append(f"{f['fraction']:.3f}" if f.get("fraction") else NONE)
    header = ["fit", "tasks", "seconds", "s / 1,000 tasks", "peak MB", "data MB", "coefficients MB", "share of GEMM"]
    return f"{origin('task_scale_rows')}\n\n{table(header, lines)}"


def krylov() -> str:
    """Iterations against a factorisation, for two alphas."""
    found = results("krylov_scale")["figures"]
    alphas = sorted(names_of(found, "alpha"), reverse=True)
    lines = []
    for n in names_of(found, "rows"):
        direct, iterated = (
            [next(f for f in found if (f["rows"], f["alpha"], f["solver"]) == (n, a, s)) for a in alphas]
            for s in ("cholesky", "krylov")
        )
        lines.append([f"{n:,}", _both(direct, "seconds"), f"{max(f['peak_mb'] for f in direct):,.0f}"])
        lines[-1] += [_both(iterated, "seconds"), f"{max(f['peak_mb'] for f in iterated):,.0f}"]
        lines[-1] += [" / ".join(str(f["iterations"]) for f in iterated)]
        ratios = [a["seconds"] / b["seconds"] for a, b in zip(direct, iterated, strict=True)]
        lines[-1] += [" / ".join(short(r, 2) for r in ratios)]
    header = ["rows", "Cholesky, s", "MB", "Krylov, s", "MB", "iterations", "Cholesky / Krylov"]
    return f"{origin('krylov_scale')}\n\n{table(header, lines)}"


def _both(found: list[dict[str, Any]], key: str) -> str:
    return " / ".join(short(f[key], 2) for f in found)


def jobs() -> str:
    """Wall seconds of a fit with jobs and with threads."""
    found = results("jobs")["fits"]
    ways = {(1, 2, "threading"): "one job, 2 threads", (1, 1, "threading"): "one job, 1 thread"}
    ways |= {(2, 1, "threading"): "`n_jobs=2`, 1 thread each", (2, 1, "loky"): "processes (loky)"}
    lines = []
    for n in names_of(found, "n"):
        here = {(f["jobs"], f["threads"], f["backend"]): f["seconds"] for f in found if f["n"] == n}
        lines.append([f"{n:,}", *best([here[way] for way in ways], True, 2)])
    return f"{origin('jobs')}\n\n{table(['rows', *ways.values()], lines)}"


def streams() -> str:
    """A million rows and more."""
    lines = []
    for f in results("stream_scale")["figures"]:
        lines.append([f"{f['rows']:,}", f["from"], short(f["seconds"]), f"{1e6 * f['seconds'] / f['rows']:.0f}"])
        lines[-1] += [f"{f[k]:,.0f}" for k in ("peak_mb", "bare_mb")] + [f"{f['fraction']:.2f}"]
        lines[-1] += [f"{100 * (1 - f['accuracy']):.2f}", f"{f['log_loss']:.3f}"]
    header = ["rows", "from", "s", "µs a row", "peak MB", "MB before the fit", "fraction of GEMM"]
    return f"{origin('stream_scale')}\n\n{table([*header, 'error, %', 'log-loss'], lines)}"


def mnist() -> str:
    """All of MNIST."""
    lines = []
    for f in results("mnist_whole")["figures"]:
        lines.append([f["method"], f"{f['centers']:,}" if f.get("centers") else "", f"{f['rows']:,}"])
        lines[-1] += [f"{100 * (1 - f['accuracy']):.2f}", f"{f['log_loss']:.4f}", short(f["seconds"], 2)]
        lines[-1] += [short(f["predict_seconds"], 2), f"{f['peak_mb']:,.0f}"]
    header = ["method", "centres", "rows", "error, %", "log-loss", "s", "test s", "peak MB"]
    return f"{origin('mnist_whole')}\n\n{table(header, lines)}"


def label_counts() -> str:
    """Time and memory against the number of labels, at given parameters and with a search."""
    found = results("label_scale")["figures"]
    lines, searched = [], []
    for f in found:
        start = [f"{f['rows']:,}", f"{f['labels']:,}"]
        if f["kind"] == "search":
            searched.append([*start, short(f["seconds"], 2), str(f["points"]), f"{f['peak_mb']:,.0f}"])
        else:
            times = [short(f[k], 2) for k in ("seconds", "limit", "lapack")]
            lines.append([f["kind"], *start, *times, f"{f['peak_mb']:,.0f}"])
    first = table(["kind", "rows", "labels", "seconds", "limit, s", "LAPACK, s", "peak MB"], lines)
    second = table(["rows", "labels", "seconds", "points", "peak MB"], searched)
    return (
        f"{origin('label_scale')}\n\n{first}\n\n`MultiLabelLSPC().fit` with its search and calibration:\n\n{second}"
    )


def predictions() -> str:
    """One row and many, and the same by ONNX."""
    lines = []
    for f in results("prediction")["figures"]:
        lines.append([f"`{f['model']}`", *(f"{f[k]:.2f}" for k in ("one_row_ms", "checks_ms", "beyond_ms"))])
        lines[-1] += [f"{f['rows_per_second']:,.0f}", f"{100 * f['fraction']:.0f} %"]
        known = f.get("onnx_one_row_ms") is not None
        lines[-1] += [f"{f['onnx_one_row_ms']:.3f}", f"{f['onnx_rows_per_second']:,.0f}"] if known else [NONE] * 2
    header = ["model", "one row, ms", "checks", "beyond", "rows/s", "of GEMM", "ONNX, one row, ms", "ONNX, rows/s"]
    return f"{origin('prediction')}\n\n{table(header, lines)}"


def plans() -> str:
    """Planned and measured seconds and memory."""
    found = results("plan")["figures"]
    lines = []
    for f in found:
        tasks = f", {f['tasks']} tasks" if f["tasks"] > 1 else ""
        parameters = ", ".join(f"`{key}={value}`" for key, value in f["parameters"].items())
        lines.append([f"`{f['estimator']}`{tasks}", f"{f['rows']:,}", str(f["features"]), str(f["outputs"])])
        lines[-1] += [parameters, f["solver"], *(short(f[k], 2) for k in ("planned_seconds", "seconds"))]
        lines[-1] += [f"{f[k]:.0f}" for k in ("planned_mb", "mb")]
    header = ["estimator", "rows", "features", "outputs", "parameters", "solver", "planned s", "s"]
    ratios = [[f[f"planned_{key}"] / f[key] for f in found] for key in ("seconds", "mb")]
    (low, high), (least, most) = ((min(r), max(r)) for r in ratios)
    said = f"Planned / measured: seconds {low:.2f} to {high:.2f}, memory {least:.2f} to {most:.2f}."
    return f"{origin('plan')}\n\n{table([*header, 'planned MB', 'MB'], lines)}\n\n{said}"


def graphs() -> str:
    """Accuracy, size and speed of ONNX graphs."""
    lines = []
    for f in results("onnx_graphs")["figures"]:
        lines.append([f["data"], f["model"], *(f"{f['difference'][k]:.0e}" for k in ("default", "double", "single"))])
        lines[-1] += [f"{f['kilobytes'][k]:,.0f}" for k in ("default", "single")]
        lines[-1] += [f"{float(format(f['rows_per_second'][k], '.2g')):,.0f}" for k in ("default", "single", "model")]
    header = ["data", "model", "default", '`dtype="float64"`', '`inside="float32"`', "kB", "kB, float32"]
    return f"{origin('onnx_graphs')}\n\n{table([*header, 'rows/s', 'rows/s, float32', 'rows/s, Python'], lines)}"


def workers() -> str:
    """One fit to many tasks, in one process and with Dask."""
    lines = []
    for f in results("dask_tasks")["runs"]:
        lines.append([f["how"], f"{f['tasks']:,}", short(f["seconds"]), f"{f['client_mb']:,.0f}"])
        lines[-1] += [f"{f[k]:,.0f}" if k in f else NONE for k in ("worker_mb", "sent_mb", "coef_mb")]
    header = ["fit", "tasks", "s", "peak MB, this process", "peak MB, a worker", "MB sent", "of them coefficients"]
    return f"{origin('dask_tasks')}\n\n{table(header, lines)}"


TABLES = {
    "plans": plans,
    "onnx-graphs": graphs,
    "dask-tasks": workers,
    "search-rows": search_rows,
    "search-defaults": search_defaults,
    "task-rows": task_rows,
    "task-counts": task_counts,
    "krylov": krylov,
    "jobs": jobs,
    "streams": streams,
    "mnist": mnist,
    "label-counts": label_counts,
    "predictions": predictions,
}
