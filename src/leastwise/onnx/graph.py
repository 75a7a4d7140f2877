"""An ONNX graph under construction: nodes and constants, written with the operators of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leastwise.utils.optional import needed

Array = np.ndarray

#: Operator sets and file version of about 2022, which runtimes since then support.
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
#: Name of the row dimension in the shapes of inputs and outputs.
ROWS = "n"
#: Constants of up to this many entries are stored once.
SMALL = 64


class Value:
    """A tensor of the graph, with operators of an array that add nodes."""

    __slots__ = ("graph", "name")
    __array_ufunc__ = None  # an array on the left is an error, instead of a loop over its entries

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> Value:
        return self.graph.node("Add", self, other)

    def __sub__(self, other: Any) -> Value:
        return self.graph.node("Sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self.graph.node("Sub", other, self)

    def __mul__(self, other: Any) -> Value:
        if _is_single_factor(other):
            return self @ np.reshape(other, (1, 1))
        return self.graph.node("Mul", self, other)

    def __truediv__(self, other: Any) -> Value:
        if _is_single_factor(other):
            return self @ np.reshape(1 / other, (1, 1))
        return self.graph.node("Div", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return self.graph.node("Div", other, self)

    def __matmul__(self, other: Any) -> Value:
        return self.graph.node("MatMul", self, other)

    def __gt__(self, other: Any) -> Value:
        return self.graph.node("Greater", self, other)

    def __ge__(self, other: Any) -> Value:
        return self.graph.node("GreaterOrEqual", self, other)

    def __lt__(self, other: Any) -> Value:
        return self.graph.node("Less", self, other)

    def equal(self, other: Any) -> Value:
        """Elementwise equality; not for text."""
        return self.graph.node("Equal", self, other)

    def maximum(self, other: Any) -> Value:
        """Elementwise maximum."""
        return self.graph.node("Max", self, other)

    def minimum(self, other: Any) -> Value:
        """Elementwise minimum."""
        return self.graph.node("Min", self, other)

    def sum(self, axis: int = 1, keep: bool = True) -> Value:
        """Sum over an axis."""
        return self.graph.node("ReduceSum", self, np.array([axis]), keepdims=int(keep))

    def min(self, axis: int = 1, keep: bool = True) -> Value:
        """Minimum over an axis."""
        return self.graph.node("ReduceMin", self, axes=[axis], keepdims=int(keep))

    def max(self, axis: int = 1, keep: bool = True) -> Value:
        """Maximum over an axis."""
        return self.graph.node("ReduceMax", self, axes=[axis], keepdims=int(keep))

    def argmax(self, axis: int = 1) -> Value:
        """Index of the maximum over an axis, the first of several."""
        return self.graph.node("ArgMax", self, axis=axis, keepdims=0)

    def take(self, indices: Any, axis: int = 1) -> Value:
        """Entries at some indices of an axis."""
        return self.graph.node("Gather", self, indices, axis=axis)

    def reshape(self, *shape: int) -> Value:
        """Reshape; -1 is inferred, 0 keeps the length of the axis."""
        return self.graph.node("Reshape", self, np.array(shape))

    def unsqueeze(self, *axes: int) -> Value:
        """Insert axes of length 1."""
        return self.graph.node("Unsqueeze", self, np.array(axes))

    def squeeze(self, *axes: int) -> Value:
        """Remove axes of length 1."""
        return self.graph.node("Squeeze", self, np.array(axes))

    def cast(self, dtype: Any) -> Value:
        """Convert to another dtype."""
        return self.graph.node("Cast", self, to=self.graph.element_type(dtype))


def _is_single_factor(x: Any) -> bool:
    """True for an array of one factor per column with a single column.

    onnxruntime fuses a matrix product with a constant scalar factor and keeps the factor in single precision. So a
    single factor becomes a 1 x 1 matrix; and Python numbers must not be multiplied with a matrix product, unless
    float32 represents them exactly.
    """
    return isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.shape == (1,)


class Graph:
    """Nodes, constants, inputs and outputs.

    Parameters
    ----------
    dtype : dtype
        Of constants and of all computations.
    io_dtype : dtype
        Of numeric inputs and outputs.
    reserved : sequence of str
        Names that inputs may get later.

    Attributes
    ----------
    column_kinds : dict of str to str
        Kinds of the columns of a table, by the names of their inputs.
    task_ids : Value or None
        Task ids, if they are a column of a table.
    """

    def __init__(self, dtype: Any = np.float64, io_dtype: Any = np.float32, reserved: Sequence[str] = ()) -> None:
        self.onnx = needed("onnx", "onnx")
        self.dtype, self.io_dtype = np.dtype(dtype), np.dtype(io_dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.column_kinds: dict[str, str] = {}
        self.task_ids: Value | None = None
        self._known: dict[tuple, Value] = {}
        self._names, self._count = set(reserved), 0

    # ------------------------------------------------------- nodes and constants

    def node(self, kind: str, *inputs: Any, domain: str = "", label: str | None = None, **attributes: Any) -> Value:
        """Add a node and return its first output; arrays and numbers among its inputs become constants."""
        out = self._unique_name(label or kind.lower())
        names = [self.value(x).name for x in inputs]
        self.nodes.append(self.onnx.helper.make_node(kind, names, [out], name=out, domain=domain, **attributes))
        return Value(self, out)

    def node_outputs(self, kind: str, *inputs: Any, count: int, **attributes: Any) -> tuple[Value, ...]:
        """Add a node with several outputs and return them all."""
        outs = [self._unique_name(kind.lower()) for _ in range(count)]
        names = [self.value(x).name for x in inputs]
        self.nodes.append(self.onnx.helper.make_node(kind, names, outs, name=outs[0], **attributes))
        return tuple(Value(self, out) for out in outs)

    def value(self, x: Any) -> Value:
        """A Value is returned unchanged; numbers, arrays and text become constants."""
        return x if isinstance(x, Value) else self.constant(x)

    def constant(self, x: Any, dtype: Any = None) -> Value:
        """Add a constant. Floats and Python numbers get ``dtype``, by default that of the graph."""
        array = np.asarray(x)
        if array.dtype.kind == "f" or isinstance(x, int | float):
            array = array.astype(dtype or self.dtype)
        elif array.dtype.kind in "iu":
            array = array.astype(np.int64)
        elif array.dtype.kind in "US":
            array = array.astype(object)
        if array.size > SMALL:
            return self._store(array)
        key = (array.shape, array.dtype.str, str(array.tolist()))
        if key not in self._known:
            self._known[key] = self._store(array)
        return self._known[key]

    def _store(self, array: Array) -> Value:
        name = self._unique_name("constant")
        self.constants.append(self.onnx.numpy_helper.from_array(np.array(array, order="C"), name))
        return Value(self, name)

    def exp(self, x: Any) -> Value:
        """Exponential."""
        return self.node("Exp", x)

    def log(self, x: Any) -> Value:
        """Natural logarithm."""
        return self.node("Log", x)

    def where(self, condition: Value, yes: Any, no: Any) -> Value:
        """Elementwise choice; not for bool."""
        return self.node("Where", condition, yes, no)

    def concat(self, parts: Sequence[Any], axis: int = 1) -> Value:
        """Concatenate tensors along an axis."""
        return self.value(parts[0]) if len(parts) == 1 else self.node("Concat", *parts, axis=axis)

    def lookup(self, x: Value, keys: list, missing: int = -1, values: list[int] | None = None) -> Value:
        """Positions of entries among ``keys``, text or integers, or their ``values``; ``missing`` for others."""
        text = isinstance(keys[0], str)
        table: dict[str, Any] = {"values_int64s": values or list(range(len(keys))), "default_int64": missing}
        table["keys_strings" if text else "keys_int64s"] = keys if text else [int(k) for k in keys]
        return self.node("LabelEncoder", x, domain="ai.onnx.ml", **table)

    def _unique_name(self, stem: str) -> str:
        self._count += 1
        name = f"{stem}_{self._count}"
        return self._unique_name(stem) if name in self._names else name

    # --------------------------------------------------------- inputs and outputs

    def element_type(self, dtype: Any) -> int:
        """The ONNX code of a dtype."""
        dtype = np.dtype(dtype)
        text = dtype.kind in "OUS"
        return self.onnx.TensorProto.STRING if text else self.onnx.helper.np_dtype_to_tensor_dtype(dtype)

    def input(self, name: str, dtype: Any, shape: Sequence[Any]) -> Value:
        """Add an input of the model."""
        if any(name == other.name for other in self.inputs):
            raise ValueError(f"Two inputs would have the name {name!r}: rename that column of X.")
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, self.element_type(dtype), [ROWS, *shape]))
        return Value(self, name)

    def output(self, name: str, x: Value, dtype: Any, shape: Sequence[Any] = ()) -> None:
        """Add an output of the model; floats are cast to its dtype."""
        if name in self._names:
            raise ValueError(f"A column of X has the name of an output, {name!r}: rename that column.")
        kind = "Cast" if np.dtype(dtype).kind == "f" else "Identity"
        more = {"to": self.element_type(dtype)} if kind == "Cast" else {}
        self.nodes.append(self.onnx.helper.make_node(kind, [x.name], [name], name=f"{name}_out", **more))
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, self.element_type(dtype), [ROWS, *shape]))

    def to_proto(self, name: str, version: str, metadata: dict[str, str]) -> Any:
        """The graph as a checked ``onnx.ModelProto``."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        proto = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        proto.producer_name, proto.producer_version = "leastwise", version
        helper.set_model_props(proto, metadata)
        self.onnx.checker.check_model(proto)
        return proto
