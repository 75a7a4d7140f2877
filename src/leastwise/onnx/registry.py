"""The registry of converters to ONNX, by the class of the object that they convert.

A converter is a function that adds nodes to a :class:`~leastwise.onnx.graph.Graph`. It is registered with a
decorator, also by other packages and at run time::

    from leastwise.onnx import registry
    from leastwise.onnx.models import KernelMatrix, squared_distances

    @registry.kernels.register(Cauchy)
    def cauchy(g, kernel, X, C, sigma):
        D = squared_distances(X, C)
        return KernelMatrix(1.0 / (D * (1 / sigma**2) + 1.0), D, squared=True)

Objects of other classes are refused with an error that lists the registered ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Converter = Callable[..., Any]


@dataclass(frozen=True)
class Entry:
    """A converter, and the options that it supports."""

    convert: Converter
    options: tuple[str, ...] = ()


class Converters:
    """Converters of one kind of object.

    Parameters
    ----------
    what : str
        The kind of object, for error messages.
    table : str
        The name of this table in the module, for error messages.
    subclasses : bool, default=True
        Convert objects of subclasses by the converter of their class. Without, a subclass must be registered itself:
        it may compute something else.
    error : type of Exception, default=TypeError
        Raised for objects that are not registered.
    advice : str
        The end of that message.
    """

    def __init__(
        self,
        what: str,
        table: str,
        *,
        subclasses: bool = True,
        error: type[Exception] = TypeError,
        advice: str = "",
    ) -> None:
        self.what, self.table, self.subclasses, self.error, self.advice = what, table, subclasses, error, advice
        self.entries: dict[type, Entry] = {}

    def register(self, *classes: type, options: tuple[str, ...] = ()) -> Callable[[Converter], Converter]:
        """Decorator that registers a converter for some classes, instead of any they had.

        ``options`` are the fields of :class:`ExportOptions` that a converter of estimators supports.
        """

        def add(converter: Converter) -> Converter:
            self.entries.update(dict.fromkeys(classes, Entry(converter, options)))
            return converter

        return add

    def find(self, obj: Any) -> Entry:
        """The entry of an object; an error that lists the registered classes if there is none."""
        for cls in type(obj).__mro__ if self.subclasses else (type(obj),):
            if cls in self.entries:
                return self.entries[cls]
        names = ", ".join(sorted(cls.__name__ for cls in self.entries))
        raise self.error(
            f"The {self.what} {type(obj).__name__} has no ONNX converter; there are converters for {names}. "
            f"{self.advice} A converter of your own is added with leastwise.onnx.registry.{self.table}.register."
        )


#: ``convert(g, kernel, X, C, sigma)``: the kernel between rows X, a Value of shape (n, d), and centres C, an array of
#: shape (b, d), as a :class:`~leastwise.onnx.models.KernelMatrix` or :class:`~leastwise.onnx.models.InnerProducts`,
#: or a list of such terms of a sum.
kernels = Converters(
    "kernel",
    "kernels",
    subclasses=False,
    error=ValueError,
    advice=(
        "A kernel function cannot be exported, and a precomputed kernel needs the training rows: use one of these by "
        "name."
    ),
)
#: ``convert(g, rule, X)``: scaled rows from rows X, both of shape (n, d).
scales = Converters("scale", "scales", subclasses=False)
#: ``convert(g, calibrator, F, in_domain)``: probabilities of shape (n, c) from scores F of the same shape and domain
#: weights of shape (n, 1), or None where all are 1.
calibrators = Converters("calibrator", "calibrators", subclasses=False)
#: ``convert(g, calibrator, F, in_domain, labels, columns)``: probabilities of shape (n, L, c) of L labels with c
#: classes each; ``columns``, of shape (L, c), are their places among the scores F of all labels, of shape (n, O).
label_calibrators = Converters("label calibrator", "label_calibrators", subclasses=False)
#: ``convert(g, map, entries)``: recalibrated probabilities of shape (n, L, c) from
#: :class:`~leastwise.onnx.calibrators.Entries`.
recalibration_maps = Converters("recalibration map", "recalibration_maps", subclasses=False)
#: ``convert(g, transformer, columns)``: the output of a fitted transformer; both are
#: :class:`~leastwise.onnx.transformers.Columns`.
transformers = Converters(
    "transformer",
    "transformers",
    advice="Or transform the rows before, and convert the model alone.",
)
#: ``convert(g, model, columns, options)``: adds the outputs of a fitted estimator; ``options`` are
#: :class:`ExportOptions`.
estimators = Converters(
    "estimator",
    "estimators",
    advice="Pipelines may end in one of these. (skl2onnx converts estimators of scikit-learn.)",
)


@dataclass(frozen=True)
class ExportOptions:
    """Outputs that are added or changed on request.

    Attributes
    ----------
    interval : float or None
        Coverage of prediction intervals of regressors.
    class_prior : mapping, array-like, "uniform" or None
        Class prior where the graph is used.
    coverage : float or None
        Coverage of prediction sets of classifiers.
    abstaining : Abstaining or None
        The fitted wrapper around the model.
    mark_rejected : bool
        Labels of rejected rows are replaced, as in ``Abstaining.predict``.
    """

    interval: float | None = None
    class_prior: Any = None
    coverage: float | None = None
    abstaining: Any = None
    mark_rejected: bool = True

    def check(self, model: Any, supported: tuple[str, ...]) -> None:
        """Raise an error if an option is invalid, or not among those that the estimator supports."""
        name = type(model).__name__
        if self.interval is not None and "interval" not in supported:
            raise ValueError(f"interval={self.interval!r} is for regressors such as LSSVR; {name} is not one.")
        if self.class_prior is not None and "class_prior" not in supported:
            raise ValueError(f"class_prior= is for classifiers whose predict_proba takes it; {name} does not.")
        if self.coverage is not None and "coverage" not in supported:
            raise ValueError(
                f"coverage={self.coverage!r} is for classifiers with predict_set; {name} does not have it. "
                "(Regressors have interval=.)"
            )
        if self.abstaining is not None and "abstaining" not in supported:
            raise TypeError(f"Abstaining around {name} has no ONNX converter: convert the estimator alone.")
        if self.coverage is not None and self.class_prior is not None:
            raise ValueError(
                "coverage= and class_prior= cannot be combined: held-out rows determine the size of sets for the "
                "class shares of the training data. Export two graphs."
            )
        for option in ("interval", "coverage"):
            value = getattr(self, option)
            if value is not None and not 0 < value < 1:
                raise ValueError(f"{option}={value!r} must be above 0 and below 1, such as 0.9.")
