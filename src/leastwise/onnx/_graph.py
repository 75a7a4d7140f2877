"""A graph under construction: nodes and constants, written down as if they were arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leastwise.utils.optional import needed

Array = np.ndarray

#: Operators and files of about 2022: runtimes since then know them.
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
#: The number of rows, in the shapes of inputs and outputs.
ROWS = "n"
#: Constants of up to so many entries are stored once.
SMALL = 64


class Value:
    """A tensor of the graph, with the operators of an array."""

    __slots__ = ("graph", "name")
    __array_ufunc__ = None  # an array on the left is an error, not a loop over its entries

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> Value:
        return self.graph.node("Add", self, other)

    def __sub__(self, other: Any) -> Value:
        return self.graph.node("Sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self.graph.node("Sub", other, self)

    def __mul__(self, other: Any) -> Value:
        if _is_lone(other):
            return self @ np.reshape(other, (1, 1))
        return self.graph.node("Mul", self, other)

    def __truediv__(self, other: Any) -> Value:
        if _is_lone(other):
            return self @ np.reshape(1 / other, (1, 1))
        return self.graph.node("Div", self, other)

    def __matmul__(self, other: Any) -> Value:
        return self.graph.node("MatMul", self, other)

    def __gt__(self, other: Any) -> Value:
        return self.graph.node("Greater", self, other)

    def __ge__(self, other: Any) -> Value:
        return self.graph.node("GreaterOrEqual", self, other)

    def __lt__(self, other: Any) -> Value:
        return self.graph.node("Less", self, other)

    def equals(self, other: Any) -> Value:
        """Where the two are equal; not for text."""
        return self.graph.node("Equal", self, other)

    def at_least(self, other: Any) -> Value:
        """The larger of the two."""
        return self.graph.node("Max", self, other)

    def at_most(self, other: Any) -> Value:
        """The smaller of the two."""
        return self.graph.node("Min", self, other)

    def sum(self, axis: int = 1, keep: bool = True) -> Value:
        """Sums over an axis."""
        return self.graph.node("ReduceSum", self, np.array([axis]), keepdims=int(keep))

    def min(self, axis: int = 1, keep: bool = True) -> Value:
        """Least values over an axis."""
        return self.graph.node("ReduceMin", self, axes=[axis], keepdims=int(keep))

    def max(self, axis: int = 1, keep: bool = True) -> Value:
        """Largest values over an axis."""
        return self.graph.node("ReduceMax", self, axes=[axis], keepdims=int(keep))

    def argmax(self, axis: int = 1) -> Value:
        """Places of the largest values, the first of several."""
        return self.graph.node("ArgMax", self, axis=axis, keepdims=0)

    def take(self, places: Any, axis: int = 1) -> Value:
        """Entries at some places of an axis."""
        return self.graph.node("Gather", self, places, axis=axis)

    def reshape(self, *shape: int) -> Value:
        """Another shape; -1 is what is left, 0 what it was."""
        return self.graph.node("Reshape", self, np.array(shape))

    def widened(self, *axes: int) -> Value:
        """With more axes of length 1."""
        return self.graph.node("Unsqueeze", self, np.array(axes))

    def squeezed(self, *axes: int) -> Value:
        """Without axes of length 1."""
        return self.graph.node("Squeeze", self, np.array(axes))

    def cast(self, dtype: Any) -> Value:
        """As another type."""
        return self.graph.node("Cast", self, to=self.graph.element(dtype))


def _is_lone(x: Any) -> bool:
    """Whether these are the factors of all columns, and there is one column.

    onnxruntime joins a product of matrices with a constant factor, and keeps that in single precision. So a lone
    factor is a matrix; and numbers that are no arrays must not stand beside a product, unless they are exact.
    """
    return isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.shape == (1,)


class Graph:
    """Nodes, constants, inputs and outputs.

    Parameters
    ----------
    real : dtype
        Of all numbers within.
    outer : dtype
        Of numbers that come in and go out.
    reserved : sequence of str
        Names that inputs may have later.
    """

    def __init__(self, real: Any = np.float64, outer: Any = np.float32, reserved: Sequence[str] = ()) -> None:
        self.onnx = needed("onnx", "onnx")
        self.real, self.outer = np.dtype(real), np.dtype(outer)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        #: What the inputs of a table hold, by name; and ids of tasks, where these are among its columns.
        self.kinds: dict[str, str] = {}
        self.ids: Value | None = None
        self._known: dict[tuple, Value] = {}
        self._names, self._count = set(reserved), 0

    # ---------------------------------------------------------------- building

    def node(self, kind: str, *inputs: Any, domain: str = "", label: str | None = None, **attributes: Any) -> Value:
        """The first output of a node; arrays and numbers among its inputs become constants."""
        out = self._fresh(label or kind.lower())
        names = [self.value(x).name for x in inputs]
        self.nodes.append(self.onnx.helper.make_node(kind, names, [out], name=out, domain=domain, **attributes))
        return Value(self, out)

    def nodes_of(self, kind: str, *inputs: Any, count: int, **attributes: Any) -> tuple[Value, ...]:
        """All outputs of a node that has several."""
        outs = [self._fresh(kind.lower()) for _ in range(count)]
        names = [self.value(x).name for x in inputs]
        self.nodes.append(self.onnx.helper.make_node(kind, names, outs, name=outs[0], **attributes))
        return tuple(Value(self, out) for out in outs)

    def value(self, x: Any) -> Value:
        """A value as it is; numbers, arrays and text as constants."""
        return x if isinstance(x, Value) else self.constant(x)

    def constant(self, x: Any) -> Value:
        """A constant: floats, and Python's own numbers, in the type of the graph, others as they are."""
        array = np.asarray(x)
        if array.dtype.kind == "f" or isinstance(x, int | float):
            array = array.astype(self.real)
        elif array.dtype.kind in "iu":
            array = array.astype(np.int64)
        elif array.dtype.kind in "US":
            array = array.astype(object)
        if array.size > SMALL:
            return self._stored(array)
        key = (array.shape, array.dtype.str, str(array.tolist()))
        if key not in self._known:
            self._known[key] = self._stored(array)
        return self._known[key]

    def _stored(self, array: Array) -> Value:
        name = self._fresh("constant")
        self.constants.append(self.onnx.numpy_helper.from_array(np.array(array, order="C"), name))
        return Value(self, name)

    def exp(self, x: Any) -> Value:
        """Exponentials."""
        return self.node("Exp", x)

    def log(self, x: Any) -> Value:
        """Logarithms."""
        return self.node("Log", x)

    def where(self, condition: Value, yes: Any, no: Any) -> Value:
        """One or the other; not for bool."""
        return self.node("Where", condition, yes, no)

    def beside(self, parts: Sequence[Any], axis: int = 1) -> Value:
        """Tensors side by side."""
        return self.value(parts[0]) if len(parts) == 1 else self.node("Concat", *parts, axis=axis)

    def lookup(self, x: Value, keys: list, missing: int = -1, values: list[int] | None = None) -> Value:
        """Places of entries among ``keys``, text or whole numbers, or their ``values``; ``missing`` for others."""
        text = isinstance(keys[0], str)
        table: dict[str, Any] = {"values_int64s": values or list(range(len(keys))), "default_int64": missing}
        table["keys_strings" if text else "keys_int64s"] = keys if text else [int(k) for k in keys]
        return self.node("LabelEncoder", x, domain="ai.onnx.ml", **table)

    def _fresh(self, stem: str) -> str:
        self._count += 1
        name = f"{stem}_{self._count}"
        return self._fresh(stem) if name in self._names else name

    # ------------------------------------------------------------ ins and outs

    def element(self, dtype: Any) -> int:
        """ONNX's number of a type of elements."""
        dtype = np.dtype(dtype)
        text = dtype.kind in "OUS"
        return self.onnx.TensorProto.STRING if text else self.onnx.helper.np_dtype_to_tensor_dtype(dtype)

    def input(self, name: str, dtype: Any, shape: Sequence[Any]) -> Value:
        """An input of the model."""
        if any(name == other.name for other in self.inputs):
            raise ValueError(f"Two inputs would have the name {name!r}: give that column of X another name.")
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, self.element(dtype), [ROWS, *shape]))
        return Value(self, name)

    def output(self, name: str, x: Value, dtype: Any, shape: Sequence[Any] = ()) -> None:
        """An output of the model, cast where it is a number within."""
        if name in self._names:
            raise ValueError(f"A column of X has the name of an output, {name!r}: give it another name.")
        kind = "Cast" if np.dtype(dtype).kind == "f" else "Identity"
        more = {"to": self.element(dtype)} if kind == "Cast" else {}
        self.nodes.append(self.onnx.helper.make_node(kind, [x.name], [name], name=f"{name}_out", **more))
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, self.element(dtype), [ROWS, *shape]))

    def model(self, name: str, version: str, notes: dict[str, str]) -> Any:
        """The whole as an ``onnx.ModelProto``, checked."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        proto = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        proto.producer_name, proto.producer_version = "leastwise", version
        helper.set_model_props(proto, notes)
        self.onnx.checker.check_model(proto)
        return proto
