"""Types, functions, constants and column dtypes that are stored by name.

The lists are fixed: a name in a file that is not listed is an error, and nothing else is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.persistence.container import DTYPES, FileError

TYPES: dict[str, type] = {
    **{t.__name__: t for t in (bool, int, float, str, object)},
    **{f"numpy.{t.__name__}": t for t in (np.bool_, np.str_, np.float16, np.float32, np.float64)},
    **{f"numpy.{t.__name__}": t for t in (np.number, np.integer, np.floating)},
    **{f"numpy.{sign}int{bits}": getattr(np, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{
        f"scipy.{form}_{kind}": getattr(sparse, f"{form}_{kind}")
        for form in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
        for kind in ("matrix", "array")
    },
}
#: Functions of a FunctionTransformer: they compute an array of the same shape, and nothing else.
FUNCTIONS = {
    f"numpy.{f}": f"numpy:{f}" for f in ("abs", "exp", "expm1", "log", "log10", "log1p", "log2", "sqrt", "square")
}
CONSTANTS = {"pandas.NA": "pandas:NA", "pandas.NaT": "pandas:NaT"}
#: Dtypes of columns of pandas and polars frames; categories and enums have nodes of their own.
PANDAS = {
    *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)),
    *("Float32", "Float64", "boolean", "str", "string", "string[python]", "string[pyarrow]"),
}
POLARS = {
    *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)),
    *("Float32", "Float64", "Boolean", "String", "Categorical", "Object", "Date"),
}


def type_name(value: Any) -> str | None:
    """The name of a listed type; None for anything else."""
    return next((name for name, known in TYPES.items() if known is value), None) if isinstance(value, type) else None


def function_name(value: Any) -> str | None:
    """The name of a listed function; None for anything else."""
    short = getattr(value, "__name__", None)
    for name, path in FUNCTIONS.items() if callable(value) and isinstance(short, str) else ():
        if path.split(":")[0] in sys.modules and _import(path) is value:
            return name
    return None


def constant_name(value: Any) -> str | None:
    """The name of a constant of pandas; None for anything else."""
    loaded = "pandas" in sys.modules
    return next((name for name, path in CONSTANTS.items() if loaded and _import(path) is value), None)


@cache
def _import(path: str) -> Any:
    module, name = path.split(":")
    return getattr(import_module(module), name)


def find_type(name: Any) -> type:
    """The type with this name."""
    return TYPES[_checked(name, TYPES, "type")]


def find_function(name: Any) -> Callable:
    """The function with this name."""
    return _import(FUNCTIONS[_checked(name, FUNCTIONS, "function")])


def find_constant(name: Any) -> Any:
    """The constant with this name."""
    return _import(CONSTANTS[_checked(name, CONSTANTS, "constant")])


def _checked(name: Any, names: Any, what: str) -> str:
    if not isinstance(name, str) or name not in names:
        raise FileError(f"it has the {what} {str(name)[:80]!r}; allowed are {', '.join(names)}")
    return name


# ---------------------------------------------------------------- column dtypes


def dtype_node(value: Any) -> list | None:
    """A dtype of NumPy, pandas or polars as library, name and categories; None for anything else."""
    if isinstance(value, np.dtype):
        name = value.newbyteorder("<").str
        return ["numpy", name] if DTYPES.fullmatch(name) or name in ("|O", "<U0") else None
    module = type(value).__module__.split(".")[0]
    if module == "pandas" and hasattr(value, "name"):
        if hasattr(value, "categories"):
            return ["pandas", "category", list(value.categories), bool(value.ordered)]
        return ["pandas", str(value)] if str(value) in PANDAS else None
    if module == "polars" or str(getattr(value, "__module__", "")).startswith("polars"):
        if hasattr(value, "categories") and str(value).startswith("Enum"):
            return ["polars", "Enum", list(value.categories)]
        name = str(value).split("(")[0]
        return ["polars", name] if name in POLARS else None
    return None


def find_dtype(parts: Any) -> Any:
    """The dtype from library, name and categories."""
    match parts:
        case ["numpy", str(name)] if DTYPES.fullmatch(name) or name in ("|O", "<U0"):
            return np.dtype(name)
        case ["pandas", "category", list(values), bool(ordered)]:
            return import_module("pandas").CategoricalDtype(values, ordered=ordered)
        case ["pandas", str(name)] if name in PANDAS:
            return import_module("pandas").api.types.pandas_dtype(name)
        case ["polars", "Enum", list(values)]:
            return import_module("polars").Enum(values)
        case ["polars", str(name)] if name in POLARS:
            return getattr(import_module("polars"), name)()
    raise FileError(f"it has the column dtype {str(parts)[:80]}, which is not allowed")
