"""The page: template, style, script and data joined, and written at once or not at all."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from leastwise.report import sections, threshold_section, value_sections
from leastwise.report.data import report_data
from leastwise.report.sections import Section
from leastwise.utils.atomic_files import write_atomically

STYLE, SCRIPTS = "style.css", ("shared.js", "theme.js", "tables.js", "slider.js")


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
    """Write a page about a fitted model: one HTML file that needs no network and no other file.

    It shows what was trained and how it was chosen, whether probabilities can be believed, what a threshold would
    leave to a person (with a slider), tables of tasks, labels and classes, which of these go together, the rows that
    the model is least sure of, how familiar the data are, and what all that means. For quantities: predictions
    against the truth, and whether intervals hold what they say.

    Parameters
    ----------
    model : fitted estimator
        Of this library; or within a pipeline, :class:`leastwise.Recalibrated` or
        :class:`leastwise.Abstaining` (whose threshold the slider starts at); or a
        :class:`leastwise.tables.TableModel`.
    path : str or path
        The file. It is replaced at once: there is the old page, or the new one.
    title : str, optional
        What the page is called.
    names : mapping, optional
        What to call classes, such as ``{0: "healthy", 1: "ill"}``, or labels, or the tasks of a regressor; or
        ``{"classes": ..., "tasks": ..., "labels": ...}`` with a mapping for each. Others keep their names.
    rows : frame, mapping of columns, or array, optional
        Columns to be shown beside the rows to look at, ten at most: one line for each training row, or for each row
        of X. The page holds what it shows: choose no columns that its readers should not see.
    X, y : optional
        Rows that the model has not seen, and the truth. By default the page shows what was held out in training.
    tasks : array-like of shape (n,), optional
        The tasks of X, where the model takes them so. Without X those of the training rows, which are needed only for
        regressors of tasks with ``n_centers``, ``prune`` or ``solver="arrow"`` or ``"krylov"``.

    Returns
    -------
    pathlib.Path
        The file.

    Notes
    -----
    The page holds numbers, names of classes, tasks and labels, and the columns in ``rows``, but not the training
    data. Figures are of held-out rows, which also chose the parameters; that flatters a little.

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
        raise FileNotFoundError(f"path={str(path)!r}: there is no folder {str(path.parent)!r}. Make it first.")
    data = report_data(model, title=title, names=names, rows=rows, X=X, y=y, tasks=tasks)
    write_atomically(str(path), [report_html(data).encode()])
    return path


# ------------------------------------------------------------------------------------- page


def report_html(data: dict[str, Any]) -> str:
    """The page of what :func:`report_data` made."""
    parts = [part for part in _sections(data) if part is not None]
    style, script = page_file(STYLE), "\n".join(page_file(name) for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(script)}'; style-src 'sha256-{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    filled = {
        "policy": policy,
        "title": escape(data["title"]),
        "style": style,
        "contents": "".join(f'<li><a href="#{key}">{escape(name)}</a></li>' for key, name, _ in parts),
        "body": "\n".join(html for _, _, html in parts),
        "data": as_json(_live(data)),
        "script": script,
        "made": escape(data["facts"][-1][1]),
        "written": escape(data["facts"][-2][1]),
    }
    # In one go: what is filled in may hold what looks like a place to fill.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filled[found[1]], page_file("page.html"))


def _sections(data: dict[str, Any]) -> list[Section | None]:
    if data["source"] is None:
        return [sections.nothing(data), sections.trained(data), sections.similarity(data)]
    if data["kind"] == "values":
        made = [value_sections.summary(data), sections.trained(data), sections.selection(data)]
        made += [value_sections.predictions(data), value_sections.intervals(data), value_sections.tasks(data)]
        return [*made, sections.similarity(data), value_sections.worst(data), sections.meaning(data)]
    made = [sections.summary(data), sections.trained(data), sections.selection(data), sections.reliability(data)]
    made += [threshold_section.thresholds(data), *sections.tables(data), sections.similarity(data)]
    return [*made, sections.unsure(data), sections.familiarity(data), sections.meaning(data)]


def _live(data: dict[str, Any]) -> dict[str, Any]:
    """What the script needs."""
    found: dict[str, Any] = {}
    for known in data.get("tables", []):
        found[f"{known['what']}-table"] = known
    for k, known in enumerate(data.get("unsure", [])):
        found[f"unsure{k}"] = known
    if "values" in data:
        found["unsure0"] = data["values"]["worst"]
        if data["values"]["tasks"] is not None:
            found["tasks-table"] = data["values"]["tasks"]
    return {"tables": found, "thresholds": data.get("thresholds")}


def as_json(value: Any) -> str:
    """JSON that can stand in a script element: nothing in it ends one, or begins a comment."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_file(name: str) -> str:
    """A file of the page, as it came with the library."""
    return files("leastwise.report").joinpath("page", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()
