"""The HTML page of a report: jinja2 templates filled with the data, and written to a file atomically.

The templates escape everything, except charts, which :mod:`leastwise.utils.svg` has escaped already, and the style
and the script of this package. A content security policy with the hashes of these two forbids any other style or
script.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from leastwise.report import charts
from leastwise.report.data import report_data
from leastwise.report.formatting import cell_text, column, figures, number, percent, table, whole
from leastwise.report.tables import novelty_table
from leastwise.report.thresholds import outcome, threshold_table
from leastwise.utils.atomic_files import write_atomically
from leastwise.utils.optional import needed
from leastwise.utils.svg import Markup

#: Lines of a table that are shown at a time, and without the script.
MAX_LINES = 50


def write_report(
    model: Any,
    path: Any,
    *,
    title: str | None = None,
    names: Any = None,
    rows: Any = None,
    X: Any = None,
    y: Any = None,
    tasks: Any = None,
) -> Path:
    """Write a report on a fitted model: one self-contained HTML file.

    For classifiers it shows the fit and its hyperparameter search, error measures with intervals, reliability
    diagrams, abstention at every threshold (with a slider), tables of tasks, labels and classes, their similarities,
    rows to check, and the distance of rows from the training data. For regressors: predictions against true values,
    residuals, and the coverage of intervals. It needs jinja2, which the extras "report" and "cli" install.

    Parameters
    ----------
    model : fitted estimator
        Of this library, alone or in a pipeline, :class:`leastwise.Recalibrated` or :class:`leastwise.Abstaining` (the
        slider starts at its threshold); or a :class:`leastwise.tables.TableModel`.
    path : str or path
        The file. It is replaced atomically.
    title : str, optional
        The title of the report.
    names : mapping, optional
        Display names of classes, such as ``{0: "healthy", 1: "ill"}``, of labels, or of the tasks of a regressor; or
        ``{"classes": ..., "tasks": ..., "labels": ...}`` with a mapping for each. Others keep their names.
    rows : frame, mapping of columns, or array, optional
        Columns to show for the rows to check, at most ten: one entry for each training row, or for each row
        of X. The file contains what it shows: do not pass columns that its readers should not see.
    X, y : optional
        Rows that the model was not trained on, and their true values. By default the report is on held-out rows.
    tasks : array-like of shape (n,), optional
        The tasks of X, if the model takes them. Without X, those of the training rows, which are needed only for
        multi-task regressors with ``n_centers``, ``prune`` or ``solver="arrow"`` or ``"krylov"``.

    Returns
    -------
    pathlib.Path
        The file.

    Notes
    -----
    The file contains measures, names of classes, tasks and labels, and the columns in ``rows``, but not the training
    data. The hyperparameters were chosen on the held-out rows too, which makes the figures slightly optimistic.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSPC
    >>> from leastwise.report import write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> path = write_report(LSPC(random_state=0).fit(X, y), mkdtemp() + "/iris.html", title="Iris")
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path={str(path)!r}: there is no folder {str(path.parent)!r}. Create it first.")
    environment()  # fail early if jinja2 is missing
    data = report_data(model, title=title, names=names, rows=rows, X=X, y=y, tasks=tasks)
    write_atomically(str(path), [report_html(data).encode()])
    return path


def report_html(data: dict[str, Any]) -> str:
    """Return the HTML of what :func:`report_data` returns."""
    style, script = (package_file(name) for name in ("style.css", "script.js"))
    hashes = (b64encode(sha256(text.encode()).digest()).decode() for text in (script, style))
    policy = (
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    ).format(*hashes)
    return (
        environment()
        .get_template("report.html")
        .render(
            data=data,
            sections=_sections(data),
            live=_live_data(data),
            policy=policy,
            style=Markup(style),
            script=Markup(script),
        )
    )


@cache
def environment() -> Any:
    """The jinja2 environment of the templates, with automatic escaping."""
    jinja2 = needed("jinja2", "report")
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(package_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    formats = {"percent": percent, "number": number, "figures": figures}
    made.filters |= {**formats, "whole": whole, "cell": cell_text}
    made.globals |= {**formats, "charts": charts, "max_lines": MAX_LINES, "outcome": outcome}
    made.globals |= {"comparison_table": comparison_table, "novelty_table": novelty_table}
    made.globals |= {"threshold_table": threshold_table}
    return made


def package_file(name: str) -> str:
    """A template, style or script of this package."""
    return files("leastwise.report").joinpath("templates", name).read_text(encoding="utf-8")


def _sections(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Key, title, macro of sections.html and contents of every section, in order."""
    known: Any = data["similarity"]
    similarity = [] if known is None else [("similarity", f"Similarity of {known['by']}s", "similarity", known)]
    model = ("model", "Model", "model", data["facts"])
    notes = ("notes", "How to read this report", "notes", None)
    chosen = data["selection"]
    searched = chosen is not None and bool(chosen["searched"])
    search = [("selection", "Hyperparameter search", "search", chosen)] if searched else []
    effects = [] if data["effects"] is None else [("columns", "What the columns do", "effects", data["effects"])]
    if data["source"] is None:
        sections = [("nothing", "No rows were held out", "no_rows", None), model, *similarity]
    elif data["kind"] == "values":
        values = data["values"]
        by_task = [] if values["tasks"] is None else [("tasks", "Tasks", "part_table", values["tasks"])]
        sections = [
            ("summary", "Summary", "value_summary", values),
            *effects,
            model,
            *search,
            ("predictions", "Predictions and true values", "predictions", values["outputs"]),
            ("intervals", "Coverage of prediction intervals", "intervals", coverage_tables(values["outputs"])),
            *by_task,
            *similarity,
            ("rows", "Rows to check", "rows", [values["largest_errors"]]),
            notes,
        ]
    else:
        sections = [
            ("summary", "Summary", "summary", data["measures"]),
            *effects,
            model,
            *search,
            ("reliability", "Reliability of the probabilities", "reliability", data["reliability"]),
            ("thresholds", "Abstention threshold", "thresholds", data["thresholds"]),
            *((one["what"], one["what"].capitalize(), "part_table", one) for one in data["tables"]),
            *similarity,
            ("rows", "Rows to check", "rows", data["uncertain_rows"]),
            ("novelty", "Distance from the training data", "novelty", data["novelty"]),
            notes,
        ]
    return [dict(zip(("key", "title", "body", "contents"), section, strict=True)) for section in sections]


def _live_data(data: dict[str, Any]) -> dict[str, Any]:
    """What the script needs: the sortable tables by their keys, and the thresholds."""
    by_part, rows = data.get("tables", []), data.get("uncertain_rows", [])
    if "values" in data:
        by_part = [one for one in [data["values"]["tasks"]] if one is not None]
        rows = [data["values"]["largest_errors"]]
    if data["effects"] is not None:
        by_part = [*by_part, data["effects"]["table"]]
    tables = {f"{one['what']}-table": one for one in by_part} | {f"rows{k}": one for k, one in enumerate(rows)}
    return {"tables": tables, "thresholds": data.get("thresholds")}


def with_ends(found: dict[str, Any], show: Any) -> str:
    """A value with its interval, as text."""
    return f"{show(found['value'])} ({show(found['low'])} to {show(found['high'])})"


def comparison_table(data: dict[str, Any]) -> dict[str, Any]:
    """The measures of given rows, next to those of held-out rows."""
    measures = [("Errors", "error", percent), ("Log-loss", "log_loss", number), ("Brier score", "brier", number)]
    measures.append(("Calibration error", "ece", number))
    if "classwise_ece" in data["measures"]:
        measures.append(("Classwise ECE", "classwise_ece", number))
    columns = [column("Rows", "text"), *(column(title, "text") for title, _, _ in measures)]
    lines = [
        [rows, *(with_ends(m[key], show) for _, key, show in measures)]
        for rows, m in (("given", data["measures"]), ("held out", data["heldout_measures"]))
    ]
    return table("Compared with the held-out training rows", columns, lines, "lines")


def coverage_tables(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Nominal and observed coverage of the intervals of every output."""
    columns = [column("Nominal", "percent", 0), column("Observed", "percent", 1), column("Mean width", "figures", 4)]
    several = len(outputs) > 1
    return [
        table("Coverage of intervals" + f" of output {j}" * several, columns, output["coverage"], "lines")
        for j, output in enumerate(outputs)
    ]
