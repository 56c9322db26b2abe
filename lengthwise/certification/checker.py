"""Check a proof that a net is right at every length, with NumPy alone and no other code of this package.

    python checker.py CERTIFICATE PROOF

The proof file contains the net's weights. For most methods it also contains a finite machine. The states of the machine
are called classes; in the certificate, `classes` are the names of answers. For each class of the machine, the file
contains a set of the net's states. The checker shows three things:

1. The machine answers every supervised string as the certificate's transducer does. A string is supervised if the
   transducer has an answer to it.
2. Each step of the net leads from the set of a class into the set of the next class, however floating point rounds.
3. In each set in which a supervised string ends, the logit of the machine's answer is larger than all other logits.

By induction on the length, the net answers every nonempty supervised string as the transducer does. Methods `choices`
and `rules` need no machine in the file: they follow the net and the task's machine side by side. Method `attention` has
no steps. It verifies bounds on attention along all paths of the file's machine, and that the right answer has the
largest logit within these bounds.

The checker assumes:

- The certificate's model settings and the proof file's weights belong to the net, and the certificate's transducer
  belongs to the task. The checker prints all settings and the certificate's `net`, a digest of settings and weights.
- The net computes the formulas below in float32 or float64, rounded to nearest, in any order of summation.
- An elementwise function (tanh, exp, erf, log1p, a power, 1/sqrt) is off by at most `FUNCTION` times `UNIT` times its
  largest absolute value. Certificates contain a measurement of this error on the processor that made them (`kernels`).
- An exponential inside attention is off by at most `ATTENTION` times `UNIT` times its value. Attention over t keys
  multiplies its running sums by such an exponential at most t / `CHUNK` + 1 times.
- exp(0) is 1, and exp(x) is 0 for x below `LOG_OF_ZERO`.

Nothing in the two files is ignored or converted: unknown keys, settings, names, types and shapes are rejected. Every
loop has a limit, and a message names the limit when it is reached. The parts of this program are, in this order:
parsing, settings and shapes, bounds, machines, a check for each method, and the whole check.

Source: de Figueiredo & Stolfi, "Affine arithmetic: concepts and applications" (2004), for the images of sets.
"""

import hashlib
import itertools
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Tensors = dict[str, Array]
Content = dict[str, Any]
Shapes = dict[str, tuple[int, ...]]

FORMAT = 3
"""The format of certificates that this program reads."""

IGNORE = -100
"""The output of a state in which the task defines no answer."""

UNIT = 2.0**-24 * 1.01
"""The unit of rounding errors: 1.01 u, where u = 2^-24 is the largest relative error of one float32 operation.

In any order of summation, a sum of n products is off by at most (1 + u)^(n + 1) - 1 times the sum of their absolute
values. For n up to `MAX_TERMS` this factor is at most 1.005 (n + 1) u. The rest of the factor 1.01 covers the float64
rounding of the bounds themselves: each of their n operations is off by 2^-53, which is 2^29 times smaller than u.
"""

MAX_TERMS = 2**16
"""The largest number of terms of a sum whose rounding error is bounded."""

FUNCTION = 20
"""The error of an elementwise function, in units (`UNIT`) of the function's largest absolute value over a set."""

ATTENTION = 64
"""The error of an exponential inside attention, in multiples of `UNIT` times the exponential's value."""

CHUNK = 64
"""Attention adds at least this number of keys between two rescalings of its sums."""

MAX_ATTENTION_ERROR = 0.02
"""The largest relative error of attention weights.

Up to this size, products of two errors add less than 5 % to the sum of the errors (`attention_error`).
"""

MAX_PIECES = 200_000
"""The largest number of regions into which `demand_one_answer` divides the attention masses of a range of lengths."""

REGIONS = 512
"""The largest number of regions of attention masses for which bounds are computed at once."""

MIN_PIECE = 1e-6
"""A region of attention masses is halved only if it has a side that is longer than this.

Within a smaller region, rounding changes a head's output more than the masses do.
"""

TINY = 1e-25
"""The number that `Form.rounded` adds to the size of a rounded number before it multiplies the size by `UNIT`.

Below 2^-126, float32 has fewer digits, and no digits at all if the processor flushes denormal numbers to zero. So an
operation loses up to 2^-126 = 1.2e-38. `UNIT` times `TINY` is 6e-33, and covers more than `MAX_TERMS` such operations.
"""

LARGEST = 1e15
"""Numbers of at least this size get no finite bound.

A sum of `MAX_TERMS` squares of smaller numbers stays in float32's range.
"""

LOG_OF_ZERO = {"float32": -112.0, "float64": -770.0}
"""For each type, exp(x) rounds to 0 if x is below this number.

For these x, exp(x) is below half of the type's smallest positive number: 2^-149 in float32 and 2^-1074 in float64.
"""

MIN_PROBABILITY = 1e-30
"""The floor of a mixture's probabilities: before the logarithm, the net raises smaller probabilities to this number."""

MIN_EXPONENTIAL = 1e-290
"""The floor of upper bounds on exponentials: smaller bounds are raised to this number, so that none underflows to 0.

Float64 has all its digits at this size, which is far below `TINY`.
"""

MIN_NORM = 1e-6
"""The norm of a reflection's direction must be above this bound, so that neither the norm nor its square underflows."""

MAX_FILE = 2**30
"""The largest proof or certificate, in bytes."""

MAX_ELEMENTS = 2**22
"""The largest array of bounds, in numbers. A method holds a few dozen such arrays at once."""

MAX_SIZE = 2**18
"""The largest width of a net, and the largest number of symbols, of classes, and of a machine's rows."""

MAX_PAIRS = 500_000
"""The largest number of pairs that a check follows, and of nodes in one level of trees.

A pair consists of a class (or a state of the net) and a state of the task's machine.
"""

MAX_MOVES = 50_000_000
"""The largest number of moves that a check enumerates.

A move is the step of a machine from one state for one symbol.
"""

MAX_WORK = 4 * 10**12
"""The largest number of multiplications in a check. They take some minutes."""

MAX_CLOSURE = 2 * 10**11
"""The largest number of multiplications in the rounds that search for pairs of edges of a grid (`check_rules`)."""

MAX_HEAD = 2_000
"""The largest number of characters of the setting `head`, which lists the parts of a wrapped net's read-out."""

MAX_LENGTH = 2**40
"""The largest length that a proof at level bounded may cover, in symbols."""


class Rejected(Exception):
    """An error that gives the reason why a proof was not accepted."""


def demand(is_so: bool | np.bool_, sentence: str) -> None:
    """Reject the proof unless a condition holds. No inequality with NaN holds, so a bound that is NaN is rejected."""
    if not is_so:
        raise Rejected(f"proof: {sentence}")


def demand_limit(number: int, limit: int, what: str) -> None:
    demand(number <= limit, f"expected at most {limit:,} {what}, got {number:,}; this checker stops there")


# Files are not trusted: keys and types must match exactly, nothing is converted, and no key may occur twice.


def parse_json(text: bytes, what: str) -> Any:
    """Return the value of a JSON text; reject repeated keys and numbers that are not finite."""

    def unique(pairs: list[tuple[str, Any]]) -> Content:
        content: Content = {}
        for name, value in pairs:
            demand(name not in content, f"expected each key of {what} once, got {name[:60]!r} twice")
            content[name] = value
        return content

    def finite(digits: str) -> float:
        number = float(digits)
        demand(math.isfinite(number), f"expected finite numbers in {what}, got {digits[:40]}")
        return number

    try:
        # By default Python reads NaN and Infinity, which are not JSON.
        return json.loads(text.decode(), object_pairs_hook=unique, parse_constant=finite, parse_float=finite)
    except (ValueError, RecursionError) as problem:
        raise Rejected(f"proof: damaged, expected JSON in {what} ({type(problem).__name__})") from None


def mapping(value: Any, what: str, required: Iterable[str], optional: Iterable[str] = ()) -> Content:
    """Return a JSON object; reject it if a required key is missing, or if a key is neither required nor optional."""
    demand(type(value) is dict and all(type(name) is str for name in value), f"expected an object as {what}")
    known, needed = {*required, *optional}, [*required]
    for name in value:
        demand(name in known, f"{what}: unknown key {name[:60]!r}")
    for name in needed:
        demand(name in value, f"{what}: expected a key {name!r}, got none")
    return dict(value)


def whole(value: Any, what: str, low: int, high: int) -> int:
    """Return a JSON value; reject anything but an integer from `low` to `high` (True and 1.0 are rejected)."""
    demand(type(value) is int and low <= value <= high, f"expected {what} in {low}..{high}, got {value!r:.60}")
    return int(value)


def texts(value: Any, what: str) -> list[str]:
    """Return a JSON value; reject anything but a nonempty list of distinct, nonempty texts."""
    are_texts = type(value) is list and all(type(one) is str and one for one in value)
    demand(are_texts and 0 < len(value) <= MAX_SIZE, f"expected a list of names as {what}")
    demand(len(set(value)) == len(value), f"expected distinct {what}, got one of them twice")
    return list(value)


class Task(NamedTuple):
    """The task's machine: ``table[state][symbol]`` is the next state, and an output is an answer or `IGNORE`."""

    symbols: list[str]
    start: int
    table: list[list[int]]
    outputs: list[int]


def parse_transducer(value: Any, num_classes: int) -> Task:
    content = mapping(value, "transducer", ("symbols", "start", "table", "outputs"))
    symbols = texts(content["symbols"], "symbols of the transducer")
    table, outputs = content["table"], content["outputs"]
    are_lists = type(table) is list and type(outputs) is list and len(outputs) == len(table) > 0
    demand(are_lists, "expected an output of the transducer for each row of its table")
    demand_limit(len(table), MAX_SIZE, "states of the transducer")
    for row in table:
        is_full = type(row) is list and len(row) == len(symbols)
        demand(is_full, "expected a step of the transducer from each state for each symbol")
        for state in row:
            whole(state, "a state of the transducer", 0, len(table) - 1)
    for output in outputs:
        is_answer = type(output) is int and (output == IGNORE or 0 <= output < num_classes)
        demand(is_answer, f"expected outputs of the transducer among {num_classes} answers, got {output!r:.60}")
    start = whole(content["start"], "the start of the transducer", 0, len(table) - 1)
    return Task(symbols, start, table, outputs)


class GridTask(NamedTuple):
    """A rule over a grid with one row for each letter of a string, and one column for each letter of another string.

    A cell with letters a (row) and b (column) gets class p from above and class q from the left. ``cells[p, q, a, b]``
    contains the classes that the cell passes downwards and to the right. The borders pass `top` and `left`. The answer
    is the sum of the `numbers` of the classes that leave the last row, plus `per_row` for each row.
    """

    symbols: list[str]
    cells: Array
    top: int
    left: int
    numbers: Array
    per_row: int


def parse_grid(value: Any) -> GridTask:
    content = mapping(value, "rule", ("letters", "cells", "top", "left", "numbers", "per_row"))
    letters = texts(content["letters"], "letters of the rule")
    cells, numbers = (
        integers(content[name], f"{name} of the rule", axes) for name, axes in (("cells", 5), ("numbers", 1))
    )
    (down, right), size = cells.shape[:2], len(letters)
    demand(cells.shape == (down, right, size, size, 2), "expected cells of the rule for each class and letter")
    demand(numbers.shape == (down,), "expected a number of the rule for each class that goes down")
    are_classes = (cells >= 0).all() and (cells[..., 0] < down).all() and (cells[..., 1] < right).all()
    demand(are_classes, "expected classes of the rule in its cells")
    top, left = (
        whole(content[name], f"{name} of the rule", 0, last - 1) for name, last in (("top", down), ("left", right))
    )
    return GridTask(
        letters, cells, top, left, numbers, whole(content["per_row"], "per_row of the rule", -(2**31), 2**31)
    )


def integers(value: Any, what: str, num_axes: int) -> Array:
    """Return lists of integers, nested `num_axes` deep, as an array; reject ragged lists."""
    level, shape = [value], []
    for _ in range(num_axes):
        are_lists = all(type(part) is list for part in level)
        demand(are_lists and len({*map(len, level)}) == 1 and level[0], f"expected lists of equal lengths as {what}")
        shape.append(len(level[0]))
        # The limit is checked at each depth before `level` grows, so that `level` never exceeds the limit.
        demand_limit(math.prod(shape), MAX_ELEMENTS, f"numbers as {what}")
        level = [one for part in level for one in part]
    numbers = [whole(one, f"a number of {what}", -(2**31), 2**31) for one in level]
    return np.array(numbers, np.int64).reshape(shape)


class Proof(NamedTuple):
    """The content of a proof file: the net's tensors in the order of the state dict, and all other tensors, `sets`.

    The sets describe the machine, and either the net's states in each class or bounds on attention. Methods `choices`
    and `rules` have no sets.
    """

    weights: Tensors
    sets: Tensors


def read(content: bytes) -> Proof:
    """Return the tensors of a safetensors file, whose header must account for every byte."""
    demand_limit(len(content), MAX_FILE, "bytes of a proof")
    start = 8 + int.from_bytes(content[:8], "little")
    demand(len(content) >= start > 8, "damaged: it ends within its header")
    header = parse_json(content[8:start], "the header")
    demand(type(header) is dict and "__metadata__" in header, "damaged: it lacks the names of its weights")
    metadata = mapping(header.pop("__metadata__"), "metadata", ("weights",))
    demand(type(metadata["weights"]) is str, "expected a text as the names of weights")
    names = texts(parse_json(metadata["weights"].encode(), "the names of weights"), "names of weights")
    # The digest separates names and shapes by spaces and newlines. A name that contains them could imitate a shape.
    demand(all(re.fullmatch(r"[\w.]+", name) for name in names), "expected names of weights without spaces")
    body = memoryview(content)[start:]  # a slice of bytes would copy them for each tensor
    layouts = {name: layout_of(f"tensor {name[:60]!r}", entry, len(body)) for name, entry in header.items()}
    spans = sorted((layout.first, layout.last) for layout in layouts.values())
    # Each span must begin at the end of the span before it. Then the spans cover every byte once, and no byte can hide
    # between them.
    is_whole = [0, *(last for _, last in spans)] == [*(first for first, _ in spans), len(body)]
    demand(is_whole, "damaged: its tensors overlap, or some of its bytes belong to no tensor")
    tensors = {name: tensor_of(f"tensor {name[:60]!r}", layout, body) for name, layout in layouts.items()}
    # Weights and sets have prefixes of their own, so that a set can never replace a weight.
    weights = {f"weights.{name}" for name in names}
    are_known = all(name in weights or name.startswith("sets.") for name in tensors)
    demand(weights <= tensors.keys() and are_known, "expected all named weights, the sets, and no other tensors")
    sets = {name.removeprefix("sets."): array for name, array in tensors.items() if name.startswith("sets.")}
    return Proof({name: tensors[f"weights.{name}"] for name in names}, sets)


DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "I64": np.dtype("<i8")}


class Layout(NamedTuple):
    """A tensor's type and shape, and the span of its bytes in a proof file."""

    dtype: str
    shape: list[int]
    first: int
    last: int


def layout_of(what: str, entry: Any, num_bytes: int) -> Layout:
    """Return the layout of a tensor, whose type, shape and number of bytes must agree."""
    fields = mapping(entry, what, ("dtype", "shape", "data_offsets"))
    dtype = fields["dtype"]
    shape = fields["shape"]
    offsets = fields["data_offsets"]
    demand(type(dtype) is str and dtype in DTYPES, f"{what}: expected type {', '.join(DTYPES)}, got {dtype!r:.20}")
    is_shape = type(shape) is list and len(shape) <= 64 and all(type(one) is int and one > 0 for one in shape)
    demand(is_shape, f"{what}: expected a shape of whole numbers above 0")
    demand(type(offsets) is list and len(offsets) == 2, f"{what}: expected two offsets")
    first, last = (whole(offset, f"an offset of {what}", 0, num_bytes) for offset in offsets)
    demand(
        last - first == math.prod(shape) * DTYPES[dtype].itemsize, f"{what}: damaged, its bytes do not fit its shape"
    )
    return Layout(dtype, shape, first, last)


def tensor_of(what: str, layout: Layout, body: memoryview) -> Array:
    """Return a tensor of a proof file; reject infinite numbers and NaN."""
    array = np.frombuffer(body[layout.first : layout.last], DTYPES[layout.dtype]).reshape(layout.shape)
    # No bound holds for infinity or NaN: 0 times either of them is NaN.
    demand(layout.dtype == "I64" or np.isfinite(array).all(), f"{what}: expected finite numbers")
    return array


def net_digest(model: Mapping[str, Any], weights: Tensors) -> str:
    """Return the digest of all settings and all tensors, which identifies the net in a certificate."""
    digest = hashlib.blake2b(json.dumps(model, sort_keys=True).encode() + b"\n", digest_size=16)
    for name, array in weights.items():
        # Type and shape are part of the digest, because the same bytes can be other numbers of another type.
        digest.update(f"{name} {array.dtype.name} {list(array.shape)}\n".encode() + array.tobytes())
    return digest.hexdigest()


# Each kind of net has a fixed list of settings. They imply every tensor's name and shape, and the formula to check.


class Setting(NamedTuple):
    """The values that a setting may have. Certificates omit an optional setting that has its default value."""

    expected: str
    allows: Callable[[Any], bool]
    is_optional: bool = False


def one_of(*values: Any, is_optional: bool = False) -> Setting:
    """Return a setting that allows only these values. The type must also match: 1 is neither True nor 1.0."""
    expected = ", ".join(map(repr, values))
    return Setting(expected, lambda given: any(type(given) is type(v) and given == v for v in values), is_optional)


def integer(low: int, high: int = MAX_SIZE, *, is_optional: bool = False) -> Setting:
    expected = f"a whole number in {low}..{high}"
    return Setting(expected, lambda given: type(given) is int and low <= given <= high, is_optional)


def real(low: float, high: float, *, is_optional: bool = False) -> Setting:
    """Return a setting that allows numbers from `low` to `high`.

    No value in this range can change a proof. The value is still checked and printed.
    """
    expected = f"a number in {low:g}..{high:g}"
    return Setting(expected, lambda given: type(given) in (int, float) and low <= given <= high, is_optional)


class Net(NamedTuple):
    """A net whose settings and tensors fit each other."""

    name: str
    settings: Content
    weights: Tensors
    num_symbols: int
    num_classes: int

    @property
    def dtype(self) -> str:
        return next(array.dtype.name for array in self.weights.values() if array.dtype.kind == "f")


class Kind(NamedTuple):
    """A kind of net: its settings, and the shapes of its tensors."""

    settings: dict[str, Setting]
    shapes: Callable[[Net], Shapes]


def linear_shapes(name: str, num_out: int, num_in: int, *, bias: bool = True) -> Shapes:
    return {f"{name}.weight": (num_out, num_in)} | ({f"{name}.bias": (num_out,)} if bias else {})


def norm_shapes(name: str, width: int) -> Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def tree_shapes(net: Net) -> Shapes:
    """Return the tensor shapes of RegularGPT in variant merge or bare. Row 0 of the embedding belongs to the pad."""
    width, heads = net.settings["d_model"], net.settings["num_heads"]
    demand(width % heads == 0, f"model: expected num_heads that divides {width}, got {heads}")
    is_merge = net.settings["variant"] == "merge"
    num_blocks = 2 if is_merge else 1
    # The hidden units are divided between the two blocks of variant merge.
    hidden = net.settings.get("hidden", 4 * width) // num_blocks
    shapes: Shapes = {"embedding.weight": (net.num_symbols + 1, width)}
    shapes["layers.0.bias"] = (heads, net.settings["chunk_size"])
    shapes |= {"layers.0.gain": (width,)} if is_merge else {}
    for part, size in (("to_query", width), ("to_key_value", 2 * width), ("to_output", width)):
        shapes |= linear_shapes(f"layers.0.{part}", size, width, bias=not is_merge)
    for i in range(num_blocks):
        shapes |= linear_shapes(f"layers.0.feed_forwards.{i}.widen", hidden, width)
        shapes |= linear_shapes(f"layers.0.feed_forwards.{i}.narrow", width, hidden)
        shapes |= norm_shapes(f"layers.0.norms.{i}", width) if is_merge else {}
    shapes |= norm_shapes("readout.0", width) if is_merge else {}
    if net.name == "codebook-gpt":
        shapes |= {"codebook.codes": (net.settings["max_codes"], width), "codebook.count": ()}
    return shapes | linear_shapes("readout.1", net.num_classes, width)


def rnn_shapes(net: Net) -> Shapes:
    width = net.settings["d_model"]
    shapes: Shapes = {"first_state": (width,), "recurrence.weight_ih_l0": (width, net.num_symbols)}
    shapes["recurrence.weight_hh_l0"] = (width, width)
    return shapes | linear_shapes("readout", net.num_classes, width)


def hidden_readout_shapes(net: Net) -> Shapes:
    """Return the tensor shapes of a norm, a hidden layer with ReLU, and the layer that returns logits."""
    width = net.settings["d_model"]
    shapes = norm_shapes("readout.1", width) | linear_shapes("readout.2", width, width)
    return shapes | linear_shapes("readout.4", net.num_classes, width)


NUM_GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def stacked_shapes(net: Net) -> Shapes:
    width, rows = net.settings["d_model"], NUM_GATES[net.name] * net.settings["d_model"]
    shapes: Shapes = {"embedding.weight": (net.num_symbols, width)}
    for i in range(net.settings["num_layers"]):
        shapes |= norm_shapes(f"norms.{i}", width)
        for part in ("ih", "hh"):
            shapes[f"layers.{i}.cell.weight_{part}_l0"] = (rows, width)
            shapes[f"layers.{i}.cell.bias_{part}_l0"] = (rows,)
    return shapes | hidden_readout_shapes(net)


def block_linear_shapes(net: Net) -> Shapes:
    """Return the tensor shapes of a BlockLinearRNN with one layer.

    Without hidden units, the embedding of a symbol contains the numbers that determine the symbol's matrix.
    """
    width, size, hidden = (net.settings[name] for name in ("d_model", "block_dim", "hidden"))
    demand(width % size == 0, f"model: expected block_dim that divides {width}, got {size}")
    is_reflected = net.settings["columns"] == "reflected"
    numbers = width + width // size if is_reflected else width * size
    shapes: Shapes = {"embedding.weight": (net.num_symbols, width if hidden else numbers)}
    shapes |= {"layers.0.first_state": (width // size, size), "layers.0.temperature": ()}
    if hidden:
        shapes |= norm_shapes("norms.0", width)
        shapes |= linear_shapes("layers.0.transition_map.0", hidden, width)
        shapes |= linear_shapes("layers.0.transition_map.2", numbers, hidden)
    if net.settings["read"] != "mixture":
        return shapes | hidden_readout_shapes(net)
    is_one_block = size == width and not is_reflected
    demand(is_one_block, "model: expected one block of columns 'stochastic' with read='mixture'")
    return shapes | {"readout.weight": (width, net.num_classes)}


def pd_ssm_shapes(net: Net) -> Shapes:
    width, states, matrices = (net.settings[name] for name in ("d_model", "d_state", "num_matrices"))
    shapes: Shapes = {"embedding.weight": (net.num_symbols, width), "layers.0.dictionary": (matrices, states, states)}
    shapes |= linear_shapes("layers.0.mixture_map", matrices, width, bias=False) | {"layers.0.d": (width,)}
    shapes |= linear_shapes("layers.0.w", width, states) | norm_shapes("norms.0", width)
    return shapes | hidden_readout_shapes(net)


def grid_shapes(net: Net) -> Shapes:
    """Return the tensor shapes of a grid recurrence: its logits, its constants, and the number that each class adds."""
    size, relations = net.settings["num_messages"], net.settings["num_relations"]
    shapes: Shapes = {"cell.relations": (net.num_symbols, net.num_symbols, relations)}
    shapes["cell.table"] = (size, size, relations, 2, size)
    shapes |= {f"cell.{name}": (size,) for name in ("top", "left", "per_class")}
    return shapes | {f"cell.{name}": () for name in ("per_row", "temperature", "rounding")}


def transformer_shapes(net: Net) -> Shapes:
    """Return the tensor shapes of a transformer of width D, whose feed-forward blocks have 4 D hidden units."""
    width, heads = net.settings["d_model"], net.settings["num_heads"]
    demand(width % heads == 0, f"model: expected num_heads that divides {width}, got {heads}")
    shapes: Shapes = {"read_in.embedding.weight": (net.num_symbols, width)}
    shapes |= encoding_shapes(net)
    shapes |= norm_shapes("read_in.norm", width) if "read_in" not in net.settings else {}
    for i in range(net.settings["num_layers"]):
        for part, size, num_in in (
            *(("query_key_value", 3 * width, width), ("output", width, width)),
            *(("widen", 4 * width, width), ("narrow", width, 4 * width)),
        ):
            shapes |= linear_shapes(f"layers.{i}.{part}", size, num_in)
        shapes |= norm_shapes(f"layers.{i}.norms.0", width) | norm_shapes(f"layers.{i}.norms.1", width)
    return shapes | norm_shapes("readout.0", width) | linear_shapes("readout.1", net.num_classes, width)


def encoding_shapes(net: Net) -> Shapes:
    """Return the shapes of the parameters of a transformer's encoding of positions."""
    width, heads, num_layers = (net.settings[name] for name in ("d_model", "num_heads", "num_layers"))
    positions, prefix = net.settings["positions"], "read_in.positions"
    demand(positions != "rotary" or width // heads % 2 == 0, "model: expected heads of an even number of units")
    shapes: Shapes = {}
    if positions == "t5":
        shapes |= {f"{prefix}.table": (heads, NUM_BUCKETS)}
    elif positions.startswith("kerple"):
        shapes |= {f"{prefix}.p": (heads,), f"{prefix}.a": (heads,)}
    elif positions == "xl":
        shapes |= {f"{prefix}.u": (heads, width // heads), f"{prefix}.v": (heads, width // heads)}
        shapes |= {f"{prefix}.maps.{i}.weight": (width, width) for i in range(num_layers)}
    elif positions == "fire":
        for name in (f"{prefix}.layers.{i}" for i in range(num_layers)):
            shapes |= {f"{name}.c": (), f"{name}.limit": ()} | linear_shapes(f"{name}.net.0", NUM_RELUS, 1)
            shapes |= linear_shapes(f"{name}.net.2", heads, NUM_RELUS)
    return shapes


def wrapped_shapes(net: Net) -> Shapes:
    """Return the shapes of a user's net that consists of torch modules.

    The tensors in the proof file show whether the modules have biases.
    """
    core, size, layers = (net.settings[name] for name in ("core", "hidden_size", "num_layers"))
    demand(core == "rnn" or "nonlinearity" not in net.settings, "model.nonlinearity: expected only for core rnn")
    rows = NUM_GATES[core] * size
    width = net.weights["embedding.weight"].shape[-1] if "embedding.weight" in net.weights else 0
    shapes: Shapes = {"embedding.weight": (net.num_symbols, width)}
    for i in range(layers):
        shapes |= {f"core.weight_ih_l{i}": (rows, size if i else width), f"core.weight_hh_l{i}": (rows, size)}
        if "core.bias_ih_l0" in net.weights:
            shapes |= {f"core.bias_{part}_l{i}": (rows,) for part in ("ih", "hh")}
    width = size
    for part, prefix in head_parts(net):
        if part == "Linear":
            matrix, has_bias = net.weights[f"{prefix}.weight"], f"{prefix}.bias" in net.weights
            shapes |= linear_shapes(prefix, matrix.shape[0], width, bias=has_bias)
            width = matrix.shape[0]
        elif prefix:
            shapes |= norm_shapes(prefix, width)
    demand(width == net.num_classes, "model: expected a head that ends in a logit for each class")
    return shapes


def head_parts(net: Net) -> list[tuple[str, str]]:
    """Return the parts of a wrapped net's head in order, each with the prefix of its tensors ("" if it has none)."""
    prefixes: dict[str, None] = {}  # in the order of the state dict, which is the order of the parts
    for name in net.weights:
        if name.startswith("readout.1"):
            prefixes[name.rpartition(".")[0]] = None
    parts, left = net.settings["head"].split(", "), list(prefixes)
    own = [part for part in parts if part == "Linear" or part.startswith("LayerNorm")]
    demand(
        len(own) == len(left) and parts[-1] == "Linear",
        "model: expected a head that ends in Linear, with tensors for each Linear and LayerNorm",
    )
    return [(part, left.pop(0) if part in own else "") for part in parts]


NUM_BUCKETS = 32
NUM_RELUS = 32
EPSILON = 1e-5
HEAD = r"(Linear|LayerNorm(\(eps=\d+(\.\d+)?(e-\d\d?)?\))?|ReLU|Tanh|Sigmoid|Dropout|Identity)"


def epsilon_of(part: str) -> float:
    """Return the epsilon of a norm in a head; the norm's name contains the epsilon unless it is torch's default."""
    return float(part.partition("eps=")[2].rstrip(")") or EPSILON)


def is_head(given: Any) -> bool:
    """Return whether a text lists parts that the head of a wrapped net may have; norms need an epsilon in 1e-12..1."""
    if type(given) is not str or len(given) > MAX_HEAD or not re.fullmatch(f"({HEAD}, )*{HEAD}", given):
        return False
    return all(1e-12 <= epsilon_of(part) <= 1 for part in given.split(", "))


TREE = {"d_model": integer(1), "num_heads": integer(1), "chunk_size": integer(2, 32), "thickness": one_of(1)}
HIDDEN = {"hidden": integer(2, is_optional=True)}
STACKED = {"d_model": integer(1), "num_layers": integer(1, 128)}

KINDS: dict[str, Kind] = {
    "regular-gpt": Kind(TREE | {"variant": one_of("merge", "bare")} | HIDDEN, tree_shapes),
    "codebook-gpt": Kind(
        TREE
        | {"variant": one_of("merge"), "max_codes": integer(1), "quantize_after": real(0.0, 1 - 2.0**-53)}
        | HIDDEN,
        tree_shapes,
    ),
    "rnn": Kind({"d_model": integer(1), "activation": one_of("tanh", "relu")}, rnn_shapes),
    "gru": Kind(STACKED, stacked_shapes),
    "lstm": Kind(STACKED, stacked_shapes),
    "block-linear-rnn": Kind(
        {
            "d_model": integer(1),
            "block_dim": integer(1),
            "num_layers": one_of(1),
            "columns": one_of("stochastic", "reflected"),
            "p": one_of(1.2),  # unused with these columns, so only the default is accepted
            "hidden": integer(0),
            "read": one_of("all", "last", "mixture"),
            "alignment": real(5e-324, 30.0, is_optional=True),  # used only for the initial weights
            "end_temperature": real(1e-30, 1.0),
        },
        block_linear_shapes,
    ),
    "pd-ssm": Kind(
        {
            "d_model": integer(1),
            "num_layers": one_of(1),
            "d_state": integer(1),
            "num_matrices": integer(1),
            "diagonal": one_of("none"),
            "driven": one_of(False),
            "form": one_of("scatter"),
        },
        pd_ssm_shapes,
    ),
    "grid-recurrence": Kind(
        {
            "messages": one_of("categorical"),
            "num_messages": integer(2, 64),
            "num_relations": integer(1, 64),
            "end_temperature": real(5e-324, 1.0),
            "d_model": one_of(16),  # unused with these messages, so only the default is accepted
            "hidden": one_of(64),  # unused as well
            "sharpness": real(0.5, 1e6),
        },
        grid_shapes,
    ),
    "transformer": Kind(
        {
            "d_model": integer(1),
            "num_heads": integer(1),
            "num_layers": integer(1, 16),
            "positions": one_of("none", "alibi", "t5", "kerple-log", "kerple-power", "fire", "rotary", "xl"),
            "learned_positions": one_of(0),
            "initialization": one_of("torch", "gpt2"),  # used only for the initial weights
            "read_in": one_of("plain", is_optional=True),
        },
        transformer_shapes,
    ),
    "wrapped": Kind(
        {
            "core": one_of("rnn", "gru", "lstm"),
            "hidden_size": integer(1),
            "num_layers": integer(1, 128),
            "head": Setting("the parts of a head", is_head),
            "nonlinearity": one_of("relu", is_optional=True),
        },
        wrapped_shapes,
    ),
}


def parse_net(model: Any, weights: Tensors, num_symbols: int, num_classes: int) -> Net:
    """Return a net; reject unknown settings, and tensors that differ from those that the settings imply."""
    demand(type(model) is dict and type(model.get("name")) is str, "expected a name as model.name")
    name = model["name"]
    demand(name in KINDS, f"expected a model among {', '.join(KINDS)}, got {name[:60]!r}")
    settings = {key: setting for key, setting in KINDS[name].settings.items() if not setting.is_optional}
    given = mapping(model, "model", ("name", *settings), KINDS[name].settings)
    for key, setting in KINDS[name].settings.items():
        if key in given:
            demand(setting.allows(given[key]), f"model.{key}: expected {setting.expected}, got {given[key]!r:.60}")
    net = Net(name, given, weights, num_symbols, num_classes)
    shapes = KINDS[name].shapes(net)
    for key in sorted(shapes.keys() | weights.keys()):
        shape = weights[key].shape if key in weights else None
        demand(shape == shapes.get(key), f"weights: expected {key[:60]} of shape {shapes.get(key)}, got {shape}")
    # The bounds assume that one type rounds every operation. A mixture of types would round some operations
    # differently.
    types = {array.dtype.name for key, array in weights.items() if key != "codebook.count"}
    demand(
        len(types) == 1 and types <= LOG_OF_ZERO.keys(), f"weights: expected float32 or float64, got {sorted(types)}"
    )
    if name == "codebook-gpt":
        demand(weights["codebook.count"].dtype.kind == "i", "weights: expected a whole number as codebook.count")
    return net


# Bounds on real numbers are computed in float64. `rounded` adds the rounding errors of float32 for each operation.


class Form(NamedTuple):
    """Affine forms: the set of all arrays ``center + sum_p d_p slope[p] + e`` with |d_p| <= 1 and |e| <= rest.

    The unknown numbers d_p are called inputs. All forms of one computation share the inputs, so that common terms of
    two forms cancel in a difference. With P inputs and arrays of shape [..., D], the shapes are center [..., D], slope
    [P, ..., D] and rest [..., D].
    """

    center: Array
    slope: Array
    rest: Array

    @property
    def radius(self) -> Array:
        # A float64 sum of P absolute slopes is off by P units of 2^-53, relative to itself. Every form that is compared
        # was `rounded` with float32's units, whose factor 1.01 covers this error, or has the slack of `slack_of`.
        return np.asarray(np.abs(self.slope).sum(0) + self.rest)

    @property
    def size(self) -> Array:
        """Return the largest absolute value that each number of this form may have."""
        return np.abs(self.center) + self.radius

    @property
    def ends(self) -> tuple[Array, Array]:
        return self.center - self.radius, self.center + self.radius

    def each(self, change: Callable[[Array], Array]) -> "Form":
        """Apply one function, which changes shapes or sums along an axis, to the center, the slope and the rest."""
        return Form(*map(change, self))

    def part(self, start: int | None, stop: int | None) -> "Form":
        return self.each(lambda a: a[..., start:stop])

    def by_head(self, heads: int) -> "Form":
        # The last size is not left to `reshape` as -1, because the slope of a form without inputs has no elements.
        return self.each(lambda a: a.reshape(*a.shape[:-1], heads, a.shape[-1] // heads))

    @property
    def digits(self) -> float:
        """Return how many binary digits this form's numbers need after the point; infinity for inexact numbers."""
        return math.inf if self.radius.any() else binary_digits(self.center)

    def rounded(self, size: Array, units: int, digits: float = math.inf) -> "Form":
        """Add the rounding errors of float32: `units` times `UNIT` times the size of what is rounded.

        The rest of a form contains these errors. If a size is not below `LARGEST`, the rest becomes infinite, so that
        every later comparison fails. A sum of exactly known multiples of 2^-digits is exact if the sizes of its terms
        add up to at most 2^(24 - digits). Every partial sum is then also exact, in any order.
        """
        demand_limit(units, 4 * MAX_TERMS, "terms of a sum")
        slack = np.where(size < LARGEST, units * UNIT * (size + TINY), np.inf)
        return self._replace(rest=self.rest + np.where(size <= 2.0 ** (24 - digits), 0, slack))

    def plus(self, other: "Form", sign: int = 1) -> "Form":
        """Return bounds on x + y (x - y if `sign` is -1) for x in this form and y in `other`, rounding included.

        The rounded sum fl(x + y) is off by at most u |x + y| <= u (|x| + |y|) with u = 2^-24.
        """
        slope = self.padded(len(other.slope)) + sign * other.padded(len(self.slope))
        total = Form(self.center + sign * other.center, slope, self.rest + other.rest)
        # A sum of multiples of 2^-a and of 2^-b is a multiple of the smaller of the two.
        return total.rounded(self.size + other.size, 1, max(self.digits, other.digits))

    def times(self, other: "Form") -> "Form":
        """Return bounds on the float32 product of x in this form and y in `other`.

        The rounded product fl(x y) is off by at most u |x| |y| with u = 2^-24.

        Let x = c + s + e, with its center c, a combination s of its slopes, and |e| <= rest. Let y = c' + s' + e' in
        the same way. The form keeps c c' + c s' + c' s. The remaining terms are c e' + c' e and (s + e)(s' + e'). With
        |s + e| <= radius, their sum has a size of at most |c| rest' + |c'| rest + radius radius'.
        """
        if not len(self.slope) + len(other.slope):  # intervals: the extremes of a product are at corners
            # A product is linear in each factor, so over a box it has its extremes at corners, whatever the signs.
            corners = np.stack([x * y for x in self.ends for y in other.ends])
            return between(corners.min(0), corners.max(0)).rounded(self.size * other.size, 1)
        slope = other.center * self.padded(len(other.slope)) + self.center * other.padded(len(self.slope))
        rest = np.abs(self.center) * other.rest + np.abs(other.center) * self.rest + self.radius * other.radius
        return Form(self.center * other.center, slope, rest).rounded(self.size * other.size, 1)

    def scaled(self, factor: Any, shift: Any = 0.0) -> "Form":
        """Return the form times a known factor plus a known number. Two operations round: the product and the sum."""
        form = Form(self.center * factor + shift, self.slope * factor, self.rest * np.abs(factor))
        # The product is rounded relative to |factor x|, and the sum relative to the result. A net that divides by n,
        # instead of multiplying by 1 / n, rounds once less.
        return form.rounded(self.size * np.abs(factor) + form.size, 2)

    def sum(self, axis: int) -> "Form":
        """Return the sum of n terms along an axis of the center, in any order. The axis is kept with length 1."""
        size = self.size.sum(axis, keepdims=True)
        # Every partial sum is at most the sum of the sizes, in any order. The factor n + 1 is explained at `UNIT`.
        return self.each(lambda a: a.sum(axis, keepdims=True)).rounded(size, self.center.shape[axis] + 1)

    def monotone(self, f: Callable[[Array], Array]) -> "Form":
        """Return the image of this form under an elementwise function that rises everywhere or falls everywhere.

        The extremes are at the ends. If the radius is not finite, float32 may have computed inf - inf, which is NaN. So
        both ends of the image are then NaN.
        """
        # NumPy computes f in float64. Its own error is far below `FUNCTION` units of float32.
        images = np.stack([np.where(np.isfinite(self.radius), f(end), np.nan) for end in self.ends])
        return between(images.min(0), images.max(0)).rounded(np.abs(images).max(0), FUNCTION)

    def smooth(self, f: Callable[[Array], Array], curvature: Any) -> "Form":
        """Return a form that contains f(x) for all x in this form, for an elementwise f with |f''| <= curvature there.

        Each number of x lies in an interval of length 2 radius. f is evaluated at 17 of its points, h = radius / 8
        apart. Between two neighboring points, f differs from its secant by at most curvature h^2 / 8 = curvature
        radius^2 / 512. This also holds for f(x) - chord x, with any slope `chord`, since subtracting a line does not
        change the difference. So f(x) - chord x leaves the range of its values at the points by at most this bound.
        The form is chord x plus the middle of the range. Its rest contains chord e, half of the range, and the bound.
        """
        radius = self.radius
        points = self.center + radius * GRID.reshape(-1, *[1] * radius.ndim)
        values = f(points)
        # Every slope is sound. The slope of the secant over the whole set gives a small rest. A single point needs no
        # slope.
        chord = np.where(radius > 0, (values[-1] - values[0]) / (2 * radius), 0.0)
        off = values - chord * points
        # NumPy's functions and these differences are off by some units of 2^-53 = 1.1e-16; 1e-14 is 90 such units.
        bent = curvature * radius**2 / 512 + 1e-14 * (np.abs(values) + np.abs(off)).max(0)
        rest = np.abs(chord) * self.rest + (off.max(0) - off.min(0)) / 2 + bent
        image = Form(chord * self.center + (off.max(0) + off.min(0)) / 2, chord * self.slope, rest)
        # On the set, |f| exceeds its largest value at the points by at most `bent`.
        return image.rounded(np.abs(values).max(0) + bent, FUNCTION)

    def relu(self) -> "Form":
        """Return max(x, 0), which float32 does not round."""
        return between(*(np.maximum(end, 0) for end in self.ends))

    def normed(self, weights: Tensors, name: str = "", epsilon: float = EPSILON) -> "Form":
        """Return LayerNorm over the last axis, with the weight and bias of `name` (without both if `name` is empty)."""
        count = self.center.shape[-1]
        # The mean keeps the inputs of its terms, so that their common part cancels in x - mean.
        mean = self.sum(-1).scaled(1 / count)
        # A kernel may compute x s - mean s instead of (x - mean) s, for the scale s. Its error is then relative to x,
        # not to x - mean.
        deviation = self.plus(mean, -1).rounded(self.size.max(-1, keepdims=True), FUNCTION)
        c = deviation.center
        # A deviation is c + v, where the size of v is at most the radius. In |c + v|^2 = |c|^2 + 2 c.v + |v|^2, the
        # last term is between 0 and the sum of the squared radii.
        half = (deviation.radius**2).sum(-1, keepdims=True) / 2
        square = Form(c**2, 2 * c * deviation.slope, 2 * np.abs(c) * deviation.rest).each(
            lambda a: a.sum(-1, keepdims=True)
        )
        square = Form(square.center + half, square.slope, square.rest + half)
        # There are n squares and n - 1 additions. Kernels with running means update each term once more, so the units
        # are doubled.
        square = square.rounded((deviation.size**2).sum(-1, keepdims=True), 2 * count + 4)
        variance = square.scaled(1 / count, epsilon)
        # (x^-1/2)'' = 3/4 x^-5/2 is largest at the lower end. If the lower end is not positive, the bound is infinite.
        scale = variance.smooth(lambda x: 1 / np.sqrt(x), 0.75 * np.maximum(variance.ends[0], 0) ** -2.5)
        normed = deviation.times(scale).or_narrower(deviation.normed_intervals(epsilon))
        return normed.scaled(weights[f"{name}.weight"], weights[f"{name}.bias"]) if name else normed

    def normed_intervals(self, epsilon: float) -> "Form":
        """Return (x - mean) / sqrt(variance + epsilon) by intervals, which are narrower than forms if x varies much."""
        count, (low, high) = self.center.shape[-1], self.ends
        # x^2 is largest at an end. It is smallest at 0 if the interval contains 0, and otherwise at the other end.
        most = np.maximum(np.abs(low), np.abs(high)) ** 2
        least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)) ** 2)
        square = between(least.sum(-1, keepdims=True), most.sum(-1, keepdims=True))
        variance = square.rounded(square.size, 2 * count + 4).scaled(1 / count, epsilon)
        # A sum of squares is never negative, whatever is rounded. So at least epsilon remains, up to its rounding.
        lowest, highest = variance.ends
        return as_intervals(self).times(
            between(np.maximum(lowest, epsilon / 2), highest).monotone(lambda x: 1 / np.sqrt(x))
        )

    def or_narrower(self, other: "Form") -> "Form":
        """Return this form; for each number whose bounds are narrower in `other`, use the bounds of `other`."""
        count = max(len(self.slope), len(other.slope))
        # Both bounds contain the true number, so each number may take either bound. NaN is not a bound.
        is_other = (other.radius < self.radius) | np.isnan(self.radius)
        slope = np.where(is_other, other.padded(count), self.padded(count))
        pairs = ((other.center, self.center), (other.rest, self.rest))
        center, rest = (np.where(is_other, new, old) for new, old in pairs)
        return Form(center, slope, rest)

    def owned(self, start: int) -> "Form":
        """Return this form with slopes in place of its rest: one new input for each index of the last axis.

        The new inputs are numbered from `start`. Each e with |e| <= rest is d rest for some |d| <= 1. The rows of a
        form may share d, because no two rows are compared.
        """
        width = self.center.shape[-1]
        own = np.eye(width).reshape(width, *[1] * (self.rest.ndim - 1), width) * self.rest
        return Form(self.center, np.concatenate([self.padded(start), own]), np.zeros_like(self.rest))

    def padded(self, count: int) -> Array:
        """Return this form's slope, padded with zeros to `count` inputs."""
        if count <= len(self.slope):
            return self.slope
        return np.concatenate([self.slope, np.zeros((count - len(self.slope), *self.center.shape))])


MAX_DIGITS = 24


def binary_digits(numbers: Array) -> float:
    """Return how many binary digits the numbers need after the point; infinity if more than `MAX_DIGITS`."""
    # A product with a power of two and a remainder by 1 are exact in float64, so no tolerance is needed. A product that
    # overflows gives NaN, which counts as a remainder.
    if (numbers * 2.0**MAX_DIGITS % 1).any():
        return math.inf
    return float(next(digits for digits in range(MAX_DIGITS + 1) if not (numbers * 2.0**digits % 1).any()))


GRID, ERF = np.linspace(-1, 1, 17), np.frompyfunc(math.erf, 1, 1)


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(x, 0))


def gelu(x: Array) -> Array:
    return np.asarray(x * (1 + np.asarray(ERF(x / 2**0.5), np.float64)) / 2)


def tanh_gelu(x: Array) -> Array:
    return np.asarray(x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2)


# Pairs of a function f and a bound on |f''|. The largest |f''| is 4 / (3 sqrt 3) = 0.7698 for tanh, 1 / (6 sqrt 3) =
# 0.0962 for sigmoid, and 1/4 for softplus. For GELU and its approximation by tanh, it is 2 / sqrt(2 pi) = 0.7979, at 0.
TANH = (np.tanh, 0.77)
SIGMOID = (sigmoid, 0.0963)
SOFTPLUS = (softplus, 0.25)
GELU = (gelu, 0.798)
TANH_GELU = (tanh_gelu, 0.798)


def between(low: Array, high: Array | None = None) -> Form:
    """Return a form that contains all numbers from `low` to `high`; without `high`, it contains only `low`."""
    low, high = low.astype(np.float64), (low if high is None else high).astype(np.float64)
    # Half of a sum or difference of two float64 numbers is off by at most 2^-53 times the larger size of the two. Equal
    # ends are one exact number, which gets radius 0, so that sums of such numbers can be exact (`digits`).
    radius = np.where(low == high, 0.0, (high - low) / 2 + 1e-14 * np.maximum(np.abs(low), np.abs(high)))
    return Form(np.where(low == high, low, (low + high) / 2), np.zeros((0, *low.shape)), radius)


def as_intervals(form: Form) -> Form:
    """Return a form without inputs (intervals) that contains all numbers of this form."""
    return between(*form.ends) if len(form.slope) else form


def total(
    weights: Tensors,
    *products: tuple[Form, str],
    rows: slice = slice(None),
    shapes: Callable[[Form], Form] = lambda f: f,
) -> Form:
    """Return the sum of forms that are multiplied by matrices, plus biases, with all terms added in any order.

    Each product is a form and the name of a linear map. The name "readout.{}" selects the matrix "readout.weight" and,
    if there is one, the bias "readout.bias". If the name is empty, the form itself is added. `rows` selects rows of all
    matrices. The function `shapes` is applied to each product before the sum, for example to turn it into intervals.
    """
    parts = list[Form]()
    size = np.zeros(1)
    count = 2
    digits = 0.0
    for form, name in products:
        matrix = weights[name.format("weight")][rows].astype(np.float64).T if name else np.eye(form.center.shape[-1])
        has_bias = bool(name) and name.format("bias") in weights
        shift = weights[name.format("bias")][rows].astype(np.float64) if has_bias else np.zeros(1)
        part = Form(form.center @ matrix + shift, form.slope @ matrix, form.rest @ np.abs(matrix))
        parts.append(shapes(part))
        # `size` sums up the sizes of all terms. At most `count` terms add up to one number.
        size, count = size + form.size @ np.abs(matrix) + np.abs(shift), count + len(matrix)
        digits = max(digits, form.digits)
        # Once `digits` is infinite, it stays infinite, so the digits of a large matrix need not be computed.
        if digits < math.inf:
            digits = max(digits, form.digits + binary_digits(matrix), binary_digits(shift))
    # The kernel may fuse the products and mix their terms. The bound of one sum over all terms covers every order.
    return reduce(Form.plus, parts).rounded(size, count, digits)


def demand_lead(weights: Tensors, name: str, features: Form, answers: Array) -> None:
    """Demand that for each row of features the right answer has the largest logit (`name` maps features to logits).

    All logits of a row are linear in the same features. The independent errors of the features (`rest`) become inputs,
    which the logits share, so that they cancel in differences of logits.
    """
    demand_ahead(total(weights, (features.owned(len(features.slope)), name)), answers)


def demand_ahead(logits: Form, answers: Array) -> None:
    """Demand that in each row of logits the right answer's logit is the largest, for all values in the forms."""
    demand(are_ahead(logits, answers).all(), "one of its sets may contain states with several answers")


def are_ahead(logits: Form, answers: Array) -> Array:
    """Return for each row of logits whether the right answer's logit is the largest, for all values in the forms.

    The slope of a difference is the difference of the slopes, so that shared inputs cancel.
    """
    rows = np.arange(len(answers))
    # `own` is the lead of the answer's logit over each logit, at the center. `slack` is how far this lead can shrink,
    # by the rests of both logits and by shared inputs.
    own = logits.center[rows, answers][:, None] - logits.center
    slack = logits.rest + logits.rest[rows, answers][:, None]
    # Inputs are taken one at a time. All at once would need an array of inputs by rows by classes.
    for slope in logits.slope:
        slack = slack + np.abs(slope[rows, answers][:, None] - slope)
    # The lead has to be strict: among equal logits the order of the classes would decide.
    is_ahead = (np.arange(logits.center.shape[1]) == answers[:, None]) | (own > slack)
    return np.asarray((is_ahead & np.isfinite(slack)).all(1))


def in_parts(count: int, numbers_each: int) -> list[Array]:
    """Return the indices 0..count-1 in parts, so that the bounds of each part have at most `MAX_ELEMENTS` numbers.

    The bounds have `numbers_each` numbers for each index.
    """
    demand_limit(numbers_each, MAX_ELEMENTS, "numbers in the bounds of one state")
    return np.array_split(np.arange(count), -(-count // max(1, MAX_ELEMENTS // numbers_each)))


def ends_after_symbols(sets: Tensors, task: Task) -> set[tuple[int, int]]:
    """Return the pairs (class, state of the task's machine) in which nonempty strings end."""
    table, start = sets["table"].tolist(), int(sets["start"])
    # The search begins at the start, which counts as an end only if a symbol leads back to it. A pair has the same
    # successors for every string that leads to it, so it is enough to follow each pair once.
    seen, queue = set[tuple[int, int]](), [(start, task.start)]
    for klass, state in queue:
        new = set(zip(table[klass], task.table[state], strict=True)) - seen
        seen |= new
        queue += new
        demand_limit(len(seen), MAX_PAIRS, "pairs of a class and a state of the task")
        demand_limit(len(queue) * len(task.symbols), MAX_MOVES, "steps of pairs of a class and a state of the task")
    return seen


Node = tuple[int, tuple[int, ...]]
"""A node of a tree: its class and, for each state of the task's machine, the state to which the node's symbols lead."""


def ends_at_roots(sets: Tensors, task: Task) -> Iterator[tuple[int, int]]:
    """Yield the pairs (class, state of the task's machine) in which strings end, for a machine that merges windows.

    A window consists of `chunk` neighboring nodes of one level of a tree. The machine's table maps their classes to the
    class of one node of the next level. Class 0 is the pad, and class 1 + v is symbol v. A string of T symbols is
    padded in front to chunk^L symbols, with the least L >= 1 for which chunk^L >= T.

    The nodes of a level are a node of pads alone (pad), nodes of pads and symbols (mixed), and nodes of symbols alone
    (full). Each level depends only on the level below. So no new pair appears after a level repeats.
    """
    table = sets["table"]
    chunk = sets["table"].ndim
    moves = np.array(task.table)
    num_moves = 0

    def spend(num_windows: int) -> None:
        """Count the task machine's moves along windows before they are made; reject the proof if there are too many."""
        nonlocal num_moves
        num_moves += num_windows * chunk * len(moves)
        demand_limit(num_moves, MAX_MOVES, "moves of the task's machine along windows")

    def merge(window: tuple[Node, ...]) -> Node:
        target = int(table[tuple(klass for klass, _ in window)])
        demand(target >= 0, "its table lacks a window that occurs in a string")
        return target, tuple(reduce(lambda state, node: node[1][state], window, state) for state in range(len(moves)))

    def windows(parts: list[frozenset[Node]]) -> set[Node]:
        spend(math.prod(map(len, parts)))
        nodes = set[Node]()
        for window in itertools.product(*parts):
            nodes.add(merge(window))
            demand_limit(len(nodes), MAX_PAIRS, "nodes of one level")
        return nodes

    pad: Node = (0, tuple(range(len(moves))))
    full = frozenset((1 + v, tuple(after)) for v, after in enumerate(moves.T.tolist()))
    mixed, levels = frozenset[Node](), set[Any]()
    # There are finitely many levels, since a node is a class and a map of the finitely many states of the task.
    while (level := (pad, mixed, full)) not in levels:
        is_first = not levels
        levels.add(level)
        now_mixed = set[Node]()
        for pads in range(chunk):
            first = mixed | full if pads else mixed
            nodes = windows([*[frozenset([pad])] * pads, first, *[full] * (chunk - 1 - pads)])
            # If the first chunk - 1 nodes of a window are pads, all symbols are in its last node. Then the string needs
            # fewer levels.
            if pads < chunk - 1 or is_first:
                yield from ((klass, states[task.start]) for klass, states in nodes)
            now_mixed |= nodes
        full = frozenset(windows([full] * chunk))
        yield from ((klass, states[task.start]) for klass, states in full)
        (pad,), mixed = windows([frozenset([pad])] * chunk), frozenset(now_mixed)


def supervised_ends(ends: Iterable[tuple[int, int]], sets: Tensors, task: Task) -> Array:
    """Return the classes in which strings with a right answer end; demand that the machine gives these answers."""
    # Answers depend only on the class and the state in which a string ends, so the pairs represent all strings.
    pairs = {(klass, task.outputs[state]) for klass, state in ends}
    supervised = [(klass, answer) for klass, answer in pairs if answer != IGNORE]
    demand(bool(supervised), "expected a task with an answer to some string")
    demand(
        all(sets["outputs"][klass] == answer for klass, answer in supervised),
        "its machine gives other answers than the task",
    )
    return np.array(sorted({klass for klass, _ in supervised}))


def machine_shapes(net: Net, count: int) -> Shapes:
    """Return the shapes of the arrays that describe a machine that reads symbol by symbol."""
    return {"table": (count, net.num_symbols), "start": (), "outputs": (count,)}


def check_machine(net: Net, sets: Tensors, shapes: Shapes) -> None:
    """Demand that a proof file has exactly the sets with these names and shapes.

    Each entry of the machine's table must be a class of the machine. Each output must be an answer or `IGNORE`.
    """
    demand(
        sets.keys() == shapes.keys(), f"expected sets {', '.join(sorted(shapes))}, got {', '.join(sorted(sets))[:200]}"
    )
    for name, shape in shapes.items():
        is_machine = name in ("table", "start", "outputs", "states", "codes", "lengths")
        expected = ("int64" if is_machine else "float64", shape)
        got = (sets[name].dtype.name, sets[name].shape)
        demand(got == expected, f"sets: expected {name} of type and shape {expected}, got {got}")
    count = len(sets["outputs"])
    table = sets["table"]
    outputs = sets["outputs"]
    demand_limit(count, MAX_SIZE, "classes")
    least = -1 if "start" not in sets else 0  # a tree's machine may lack windows that occur in no string
    demand(least <= table.min() and table.max() < count, "expected classes of the machine in its table")
    demand(0 <= int(sets.get("start", np.array(0))) < count, "expected a class as the start")
    are_answers = (outputs == IGNORE) | ((outputs >= 0) & (outputs < net.num_classes))
    demand(are_answers.all(), f"expected the machine's outputs among {net.num_classes} answers")


def check_tree(net: Net, sets: Tensors, shapes: Shapes) -> int:
    """Demand that the proof has the arrays of a machine that merges windows; return the machine's number of classes.

    `ends_at_roots` describes such a machine. The first classes are the leaves of trees: the pad and each symbol.
    """
    count = len(sets.get("outputs", ()))
    table = {"table": (count,) * net.settings["chunk_size"], "outputs": (count,)}
    check_machine(net, sets, table | shapes)
    demand(count > net.num_symbols, "expected a class for the pad and each symbol")
    return count


def check_enclosures(net: Net, sets: Tensors, task: Task) -> str:
    """Check RegularGPT's merge variant: each window of enclosures is merged into the enclosure of the window's class.

    The machine's table names the window's class (see `ends_at_roots`). An enclosure is ``center + axes @ (radius * d)``
    with |d_i| <= 1. Its axes are orthonormal up to rounding.
    """
    demand(net.settings.get("variant") == "merge", "expected a net of variant 'merge'")
    # A net with codes replaces each merged state by a code, which this method does not follow.
    demand(int(net.weights.get("codebook.count", np.array(0))) == 0, "expected a net without codes")
    weights = net.weights
    width = net.settings["d_model"]
    chunk = net.settings["chunk_size"]
    count = len(sets.get("outputs", ()))
    check_tree(net, sets, {"center": (count, width), "axes": (count, width, width), "radius": (count, width)})
    center, axes, radius = (sets[name] for name in ("center", "axes", "radius"))
    demand(
        # The net copies a leaf without rounding. The leaf is the center of its enclosure, which may have any radius.
        np.array_equal(center[: 1 + net.num_symbols], weights["embedding.weight"]),
        "expected embeddings as centers of the first classes",
    )
    is_orthonormal = all(
        np.abs(axes[part].swapaxes(1, 2) @ axes[part] - np.eye(width)).max() < 1e-12
        for part in in_parts(count, width * width)
    )
    demand((radius >= 0).all() and is_orthonormal, "expected radii of at least 0, and orthonormal axes")
    supervised = supervised_ends(ends_at_roots(sets, task), sets, task)
    num_windows = demand_windows_inside(net, sets)
    for part in in_parts(len(supervised), chunk * width * max(width, net.num_classes)):
        states = enclosures_of(sets, supervised[part], 0).normed(weights, "readout.0")
        demand_lead(weights, "readout.1.{}", states, sets["outputs"][supervised[part]])
    return f"all {num_windows:,} windows of {count:,} enclosures are merged into these enclosures"


def slack_of(sets: Tensors, classes: Array) -> Array:
    """Return the slack of enclosures, which covers the rounding of float64, and axes that are not quite orthonormal.

    A coordinate of an enclosure of width D is a sum of D products of an axis and a radius. Axes are orthonormal up to
    1e-12. So the error of a coordinate is at most (1e-12 + D 2^-53) times the sum of the radii. That sum is at most
    sqrt(D) times the norm of the radii. So the error is below 1e-9 of the norm for D up to 2,000. `MAX_ELEMENTS` does
    not allow wider enclosures.
    """
    radius, center = sets["radius"][classes], sets["center"][classes]
    return np.asarray(1e-9 * (1 + np.linalg.norm(radius, axis=1) + np.abs(center).max(1))[:, None])


def enclosures_of(sets: Tensors, classes: Array, index: int) -> Form:
    """Return the enclosures of `classes`, which are the classes of part `index` of each window.

    An enclosure has one input (a number in [-1, 1]) for each of its axes. No two parts of a window share an input.
    """
    (_, width), chunk = sets["center"].shape, sets["table"].ndim
    slope = np.zeros((chunk * width, len(classes), width))
    sides = sets["axes"][classes] * sets["radius"][classes][:, None]
    slope[index * width : (index + 1) * width] = np.moveaxis(sides, -1, 0)
    return Form(sets["center"][classes], slope, np.broadcast_to(slack_of(sets, classes), (len(classes), width)))


def demand_windows_inside(net: Net, sets: Tensors) -> int:
    """Demand that the net merges each window into the enclosure of the window's class; return the number of windows."""
    table, (_, width) = sets["table"], sets["center"].shape
    windows = np.argwhere(table >= 0)
    num_inputs, hidden = inputs_of_merges(net)
    demand_limit(len(windows) * num_inputs * num_parameters(net), MAX_WORK, "multiplications")
    for part in in_parts(len(windows), num_inputs * max(2 * width, hidden)):
        targets = table[tuple(windows[part].T)]
        image = merged(net, [enclosures_of(sets, windows[part, i], i) for i in range(table.ndim)])
        # `offset` is the offset of the image's center along the axes of the target. `reach` is how far the image
        # extends around its center.
        turned, slope = sets["axes"][targets].swapaxes(1, 2), np.moveaxis(image.slope, 0, -1)
        offset = (turned @ (image.center - sets["center"][targets])[..., None])[..., 0]
        reach = np.abs(turned @ slope).sum(-1) + (np.abs(turned) @ image.rest[..., None])[..., 0]
        # For orthonormal axes A, x is in the enclosure if no number of A^T (x - center) is larger in size than its
        # radius. The slack covers axes that are orthonormal only up to 1e-12.
        is_inside = np.abs(offset) + reach + slack_of(sets, targets) <= sets["radius"][targets]
        demand(is_inside.all(), "the net merges a window into a state outside the set of the window's class")
    return len(windows)


def num_parameters(net: Net) -> int:
    return sum(array.size for array in net.weights.values())


def inputs_of_merges(net: Net) -> tuple[int, int]:
    """Return the number of inputs of the forms that `merged` returns, and the number of hidden units of one block.

    Each axis of each part has an input. `merged` also turns rests into inputs: the rests of the parts after tanh, of
    attention, and of the norm and the hidden layer in both blocks.
    """
    width, chunk = net.settings["d_model"], net.settings["chunk_size"]
    hidden = net.settings.get("hidden", 4 * width) // 2
    return (2 * chunk + 3) * width + 2 * hidden, hidden


def merged(net: Net, parts: list[Form]) -> Form:
    """Return the states [M, D] of width D into which RegularGPT's merge variant merges M windows, oldest part first."""
    layer = {name.removeprefix("layers.0."): values for name, values in net.weights.items()}
    width, heads = parts[0].center.shape[-1], net.settings["num_heads"]
    starts = itertools.count(len(parts[0].slope), width)
    # The layer counts positions from the newest part, but windows begin with the oldest part. Rests after tanh become
    # inputs, so that query, keys and values share them.
    states = [part.scaled(layer["gain"]).smooth(*TANH).owned(next(starts)) for part in reversed(parts)]
    query = total(layer, (states[0], "to_query.{}")).by_head(heads)
    both = [total(layer, (state, "to_key_value.{}")) for state in states]
    keys, values = ([form.part(*half).by_head(heads) for form in both] for half in ((0, width), (width, None)))
    scale = (width // heads) ** -0.5
    scores = [query.times(key).sum(-1).scaled(scale, r[:, None]) for key, r in zip(keys, layer["bias"].T, strict=True)]
    # Softmax adds one part at a time. The mixture of a and b with scores s and t is b + sigmoid(s - t) (a - b). The
    # score with which this mixture is added to the next part is log(e^s + e^t) = t + softplus(s - t).
    mixture, score = values[0], scores[0]
    for value, other in zip(values[1:], scores[1:], strict=True):
        # Only differences of scores enter the softmax, so the common inputs of two scores cancel.
        ahead = score.plus(other, -1)
        step = ahead.smooth(*SIGMOID).times(mixture.plus(value, -1))
        # The net rounds each weight of the softmax separately, so the error is relative to a and b, not to a - b. A
        # weight has the error of an exponential, and its denominator adds a unit for each part. The sum of the products
        # adds another unit for each part.
        mixture = value.plus(step).rounded(value.size + mixture.size, FUNCTION + 2 * len(parts))
        score = other.plus(ahead.smooth(*SOFTPLUS))
    # If a rest becomes an input, it can cancel in the sum with the residual, and in differences of logits.
    mixed = mixture.each(lambda a: a.reshape(*a.shape[:-2], width)).owned(len(mixture.slope))
    state = total(layer, (mixed, "to_output.{}"))
    for i in range(2):
        normed = state.normed(layer, f"norms.{i}").owned(len(state.slope))
        wide = total(layer, (normed, f"feed_forwards.{i}.widen.{{}}"))
        # GELU(x) = x (1 + erf(x / sqrt 2)) / 2. For x < 0 the sum 1 + erf cancels, so the error is relative to x.
        hidden = wide.smooth(*GELU).rounded(wide.size, FUNCTION).owned(len(normed.slope))
        state = state.plus(total(layer, (hidden, f"feed_forwards.{i}.narrow.{{}}")))
    return state.normed(layer)


def check_codes(net: Net, sets: Tensors, task: Task) -> str:
    """Check a CodebookGPT with codes: each window of leaves and codes is merged into the code that the machine names.

    The net replaces a merged state by a copy of the nearest code, without rounding. So every state is a leaf or a code.
    The code c that is nearest to a merged state y has the largest c.y - |c|^2 / 2.
    """
    demand(net.name == "codebook-gpt", "expected a net with codes")
    weights, num_leaves = net.weights, 1 + net.num_symbols
    num_codes = whole(int(weights["codebook.count"]), "the number of codes", 1, net.settings["max_codes"])
    count = len(sets.get("outputs", ()))
    demand(count > num_leaves, "expected a class for some code")
    check_tree(net, sets, {"codes": (count - num_leaves,)})
    codes = weights["codebook.codes"][:num_codes].astype(np.float64)
    chosen = sets["codes"]
    table = sets["table"]
    demand((chosen >= 0).all() and (chosen < num_codes).all(), "expected numbers of the net's codes as `codes`")
    # Leaves and codes are known to the last bit, so a window is a point, without a radius.
    points = np.concatenate([weights["embedding.weight"].astype(np.float64), codes[chosen]])
    supervised = supervised_ends(ends_at_roots(sets, task), sets, task)
    windows = np.argwhere(table >= 0)
    num_inputs, hidden = inputs_of_merges(net)
    demand_limit(len(windows) * num_inputs * num_parameters(net), MAX_WORK, "multiplications")
    half_squares = (codes**2).sum(1) / 2
    for part in in_parts(len(windows), num_inputs * max(2 * net.settings["d_model"], hidden, num_codes)):
        targets = table[tuple(windows[part].T)] - num_leaves
        demand((targets >= 0).all(), "a window is merged into a leaf")
        image = merged(net, [between(points[windows[part, i]]) for i in range(table.ndim)])
        # |y - c|^2 = |y|^2 - 2 (c.y - |c|^2 / 2): the part |y|^2 is the same for all codes.
        scores = total({"weight": codes, "bias": -half_squares}, (image, "{}"))
        # The net computes |c|^2 / 2 in float32. It is a sum of one square for each number of a code.
        scores = scores.rounded(half_squares, codes.shape[1] + 2)
        demand_ahead(scores, chosen[targets])
    demand((supervised >= num_leaves).all(), "expected merged states at the ends of strings")
    states = between(points[supervised]).normed(weights, "readout.0")
    demand_lead(weights, "readout.1.{}", states, sets["outputs"][supervised])
    return f"all {len(windows):,} windows of {num_leaves:,} leaves and {len(chosen):,} codes are merged into codes"


def exact_map(weights: Tensors, name: str, columns: Array) -> Array:
    """Return W x + b for columns x; reject the proof if float32 could round the result.

    All entries are multiples of powers of two. So, for some whole number `digits`, all products and partial sums are
    multiples of 2^-digits. In any order of summation, their sizes are at most |W| |x| + |b|. Float32 represents up to
    2^24 multiples of 2^-digits exactly. So does float64, in which the result is computed here.
    """
    matrix = weights[f"{name}.weight"].astype(np.float64)
    shift = weights[f"{name}.bias"].astype(np.float64)[:, None]
    digits = max(binary_digits(matrix) + binary_digits(columns), binary_digits(shift))
    size = np.abs(matrix) @ np.abs(columns).max(1, keepdims=True) + np.abs(shift)
    demand((size <= 2.0 ** (24 - digits)).all(), "float32 rounds a merge, which this method does not bound")
    return np.asarray(matrix @ columns + shift)


def check_exact(net: Net, sets: Tensors, task: Task) -> str:
    """Check the bare variant of RegularGPT: float32 computes each merge without an error.

    All keys are 0, so a head's score for a position is the position's bias alone. One position must lead by so much
    that all other exponentials are 0. Then this position has weight 1, all others have weight 0, and the head returns
    the value at this position. All other operations are linear maps, which `exact_map` checks, and ReLU.
    """
    demand(net.settings.get("variant") == "bare", "expected a net of variant 'bare'")
    weights = net.weights
    width = net.settings["d_model"]
    chunk = net.settings["chunk_size"]
    count = len(sets.get("outputs", ()))
    check_tree(net, sets, {"points": (count, width)})
    points, table = sets["points"], sets["table"]
    demand(
        np.array_equal(points[: 1 + net.num_symbols], weights["embedding.weight"]),
        "expected embeddings as points of the first classes",
    )
    supervised = supervised_ends(ends_at_roots(sets, task), sets, task)
    layer, heads = "layers.0", net.settings["num_heads"]
    keys = {part: weights[f"{layer}.to_key_value.{part}"] for part in ("weight", "bias")}
    demand(
        not any(array[:width].any() for array in keys.values()),
        "expected keys of 0, so that a head attends to one part",
    )
    scores = weights[f"{layer}.bias"].astype(np.float64)
    first = scores.argmax(1)
    others = np.where(np.arange(chunk) == first[:, None], -np.inf, scores).max(1)
    # exp(x) rounds to 0 below -104 in float32, and below -746 in float64. `LOG_OF_ZERO` is lower by 8 and by 24.
    # Rounding changes a difference of such a size by far less than 8.
    is_alone = others - scores[np.arange(heads), first] < LOG_OF_ZERO[net.dtype]
    demand(is_alone.all(), "a head attends to more than one part")
    queries = total(weights, (between(points), f"{layer}.to_query.{{}}"))
    # Keys are 0, so a query has no effect as long as it is finite.
    demand((queries.size < LARGEST).all(), "expected queries that are finite numbers")  # 0 times infinity is NaN
    values = exact_map({f"v.{part}": array[width:] for part, array in keys.items()}, "v", points.T)
    values = values.reshape(heads, width // heads, count)
    windows = np.argwhere(table >= 0)
    demand_limit(len(windows) * num_parameters(net), MAX_WORK, "multiplications")
    for part in in_parts(len(windows), max(width, len(weights[f"{layer}.feed_forwards.0.widen.bias"]))):
        # Scores begin with the newest part, but windows begin with the oldest part.
        seen = [values[head][:, windows[part, chunk - 1 - int(first[head])]] for head in range(heads)]
        hidden = exact_map(weights, f"{layer}.to_output", np.concatenate(seen))
        hidden = np.maximum(exact_map(weights, f"{layer}.feed_forwards.0.widen", hidden), 0)
        image = exact_map(weights, f"{layer}.feed_forwards.0.narrow", hidden)
        targets = table[tuple(windows[part].T)]
        demand(
            np.array_equal(image, points[targets].T),
            "the net merges a window into another state than the machine names",
        )
    demand_lead(weights, "readout.1.{}", between(points[supervised]), sets["outputs"][supervised])
    return f"{len(windows):,} windows of {count:,} states are merged without rounding"


def check_intervals(net: Net, sets: Tensors, task: Task) -> str:
    """Check an rnn, gru, lstm or wrapped net: each step maps the box of a class into the box of the next class."""
    count, width = len(sets.get("outputs", ())), state_width(net)
    check_machine(net, sets, machine_shapes(net, count) | {"low": (count, width), "high": (count, width)})
    low = sets["low"]
    high = sets["high"]
    start = int(sets["start"])
    demand((low <= high).all(), "expected boxes whose lower ends are not above their upper ends")
    # Nets without a weight for the first state begin with zeros.
    first = net.weights.get("first_state", np.zeros(width))
    demand(
        ((low[start] <= first) & (first <= high[start])).all(),
        "the box of the machine's start lacks the net's first state",
    )
    supervised = supervised_ends(ends_after_symbols(sets, task), sets, task)
    # In a layer above the first, each weight is multiplied by one slope for each number of a state.
    num_slopes = width if net.settings.get("num_layers", 1) > 1 else 1
    num_steps = count * net.num_symbols * num_slopes
    num_readouts = len(supervised) * max(readout_widths(net))
    demand_limit((num_steps + num_readouts) * num_parameters(net), MAX_WORK, "multiplications")
    for symbol in range(net.num_symbols):
        for part in in_parts(count, step_numbers(net)):
            targets = sets["table"][part, symbol]
            lowest, highest = step(net, between(low[part], high[part]), symbol).ends
            # The bounds of the step contain every rounding, also the rounding of float64 (see `UNIT`). So the box needs
            # no slack.
            demand(
                ((lowest >= low[targets]) & (highest <= high[targets])).all(),
                "a step of the net leads out of the set of the next class",
            )
    for part in in_parts(len(supervised), readout_numbers(net)):
        states = between(low[supervised[part]], high[supervised[part]])
        demand_answers(net, states, sets["outputs"][supervised[part]])
    return f"all {count * net.num_symbols:,} steps lead from {count:,} boxes of states into these boxes"


def readout_numbers(net: Net) -> int:
    """Return the square of the read-out's largest width, which limits how many numbers the bounds on one state need."""
    widest = max(readout_widths(net))
    return widest * widest


def readout_widths(net: Net) -> list[int]:
    """Return the widths that occur in a read-out: of its features, its hidden layers and its logits."""
    if net.name != "wrapped":
        return [feature_width(net), net.num_classes]
    linear = [net.weights[f"{prefix}.weight"].shape[0] for part, prefix in head_parts(net) if part == "Linear"]
    return [feature_width(net), *linear]


def feature_width(net: Net) -> int:
    """Return the number of features that a layer passes to the next layer or to the read-out."""
    return int(net.settings["hidden_size" if net.name == "wrapped" else "d_model"])


def step_numbers(net: Net) -> int:
    """Return how many numbers a step's bounds contain for each state.

    The features that enter a layer above the first have one slope for each feature. Up to four gates use each slope.
    """
    has_slopes = net.settings.get("num_layers", 1) > 1
    return max(8 * state_width(net), 4 * feature_width(net) ** 2 if has_slopes else 0)


def state_width(net: Net) -> int:
    """Return how many numbers a state of the net contains."""
    if net.name == "wrapped":
        return int(net.settings["hidden_size"] * net.settings["num_layers"] * (1 + (net.settings["core"] == "lstm")))
    demand(net.name in NUM_GATES, "expected boxes of an rnn, gru, lstm or wrapped net")
    if net.name == "rnn":
        return int(net.settings["d_model"])
    # After the states of all layers, gru and lstm keep the last layer's features of the latest symbol.
    num_parts = net.settings["num_layers"] * (1 + (net.name == "lstm")) + 1
    return int(num_parts * net.settings["d_model"])


def step(net: Net, states: Form, symbol: int) -> Form:
    """Return the states [K, Z] after a symbol, given K states of Z numbers each."""
    if net.name == "rnn":
        entered = between(net.weights["recurrence.weight_ih_l0"][None, :, symbol])
        after = total(net.weights, (states, "recurrence.{}_hh_l0"), (entered, ""))
        return after.monotone(np.tanh) if net.settings["activation"] == "tanh" else after.relu()
    return (wrapped_step if net.name == "wrapped" else stacked_step)(net, states, symbol)


def stacked_step(net: Net, states: Form, symbol: int) -> Form:
    """Return the states of all layers of a `gru` or `lstm` after a symbol, and the last layer's features.

    Each layer has a norm in front and a residual connection around it.
    """
    width, is_lstm = net.settings["d_model"], net.name == "lstm"
    features, after = between(net.weights["embedding.weight"][symbol][None]), []
    for i in range(net.settings["num_layers"]):
        first = i * (1 + is_lstm) * width
        hidden = states.part(first, first + width)
        cell = f"layers.{i}.cell.{{}}_{{}}_l0"
        # The rest of each feature becomes an input, so that it cancels in x - mean.
        entering = features.owned(0).normed(net.weights, f"norms.{i}")
        if is_lstm:
            content = states.part(first + width, first + 2 * width)
            output, kept = lstm_cell(net.weights, cell, entering, hidden, content)
            after += [output, kept]
        else:
            output = gru_cell(net.weights, cell, entering, hidden)
            after.append(output)
        features = as_intervals(features.plus(output))
    return joined([*after, features])


def wrapped_step(net: Net, states: Form, symbol: int) -> Form:
    """Return the states after a symbol, given the states before it, for torch's recurrent layers.

    The state of an lstm contains the cell contents of all layers, then the outputs of all layers.
    """
    core, size, layers = (net.settings[name] for name in ("core", "hidden_size", "num_layers"))
    features = between(net.weights["embedding.weight"][symbol][None])
    parts = [states.part(first, first + size) for first in range(0, states.center.shape[-1], size)]
    contents, outputs = parts[:-layers], []
    for i, hidden in enumerate(parts[-layers:]):
        cell = f"core.{{}}_{{}}_l{i}"
        if core == "lstm":
            features, contents[i] = lstm_cell(net.weights, cell, features, hidden, contents[i])
        elif core == "gru":
            features = gru_cell(net.weights, cell, features, hidden)
        else:
            entered = total(net.weights, *cell_terms(cell, features, hidden), shapes=as_intervals)
            features = entered.relu() if "nonlinearity" in net.settings else entered.monotone(np.tanh)
        outputs.append(features)
    return joined([*contents, *outputs])


def joined(parts: list[Form]) -> Form:
    """Return one form of intervals that contains the given forms, one after another along the last axis."""
    rows = max(len(part.center) for part in parts)
    wide = [
        part.each(lambda a: np.broadcast_to(a, (*a.shape[:-2], rows, a.shape[-1]))) for part in map(as_intervals, parts)
    ]
    return Form(*(np.concatenate(alike, -1) for alike in zip(*wide, strict=True)))


def cell_terms(cell: str, entering: Form, hidden: Form) -> list[tuple[Form, str]]:
    """Return W x and U h with their biases, for a cell's input x (`entering`) and state h (`hidden`).

    A kernel may add the terms of both sums in any order.
    """
    return [(entering, cell.format("{}", "ih")), (hidden, cell.format("{}", "hh"))]


def lstm_cell(weights: Tensors, cell: str, entering: Form, hidden: Form, content: Form) -> tuple[Form, Form]:
    """Return the next output h' = o tanh(c') and content c' = f c + i g of an LSTM cell.

    Here x is the cell's input, h its output and c its content. The gates are `i, f, o = sigmoid(W x + U h + b)`, and `g
    = tanh(W x + U h + b)`. Each of i, f, o and g has its own W, U and b.
    """
    size = hidden.center.shape[-1]
    # The forms of x and h share no inputs (see `Form`), and the image of an increasing function depends on the ends
    # alone. So intervals lose nothing here.
    both = total(weights, *cell_terms(cell, entering, hidden), shapes=as_intervals)
    enter, forget, update, leave = (both.part(k * size, (k + 1) * size) for k in range(4))
    added = enter.monotone(sigmoid).times(update.monotone(np.tanh))
    # Products of intervals have their extremes at corners, so no sign has to be assumed.
    kept = forget.monotone(sigmoid).times(content).plus(added)
    return leave.monotone(sigmoid).times(kept.monotone(np.tanh)), kept


def gru_cell(weights: Tensors, cell: str, entering: Form, hidden: Form) -> Form:
    """Return the next state h' = (1 - z) n + z h of a GRU cell.

    Here x is the cell's input and h its state. The gates are `r, z = sigmoid(W x + U h + b)`, and `n = tanh(W x + b + r
    (U h + b))`. Each of r, z and n has its own W, U and biases.
    """
    size = hidden.center.shape[-1]
    gates, last = slice(0, 2 * size), slice(2 * size, None)
    of_input, of_state = cell_terms(cell, entering, hidden)
    both = total(weights, of_input, of_state, rows=gates, shapes=as_intervals).monotone(sigmoid)
    reset, share = both.part(0, size), both.part(size, None)
    # The bias of U h is inside the product with r, so U h + b is a separate sum.
    scaled = reset.times(total(weights, of_state, rows=last))
    new = total(weights, of_input, (scaled, ""), rows=last, shapes=as_intervals).monotone(np.tanh)
    # h' is linear in z. For z in 0..1, it also rises in n and h, so its extremes are at the ends of z, n and h.
    shares = [np.clip(end, 0, 1) for end in share.ends]
    low, high = ([(1 - z) * n + z * h for z in shares] for n, h in zip(new.ends, hidden.ends, strict=True))
    # Kernels compute h' in different orders, such as n + z (h - n), and a rounded z may leave 0..1 by some units.
    return between(np.minimum(*low), np.maximum(*high)).rounded(new.size + hidden.size, 2 * FUNCTION)


def demand_answers(net: Net, states: Form, answers: Array) -> None:
    """Demand that the net's read-out of states gives these answers."""
    weights = net.weights
    if net.name == "wrapped":
        features = states.part(-net.settings["hidden_size"], None)
        *parts, (_, last) = head_parts(net)
        for part, prefix in parts:
            if part == "Linear":
                features = total(weights, (features, f"{prefix}.{{}}"))
            elif prefix:
                # Inputs that the form has from earlier parts of the head are dropped. One input for each feature is
                # enough to cancel in x - mean, and takes less memory.
                features = as_intervals(features).owned(0).normed(weights, prefix, epsilon_of(part))
            elif part == "ReLU":
                features = features.relu()
            elif part in ("Tanh", "Sigmoid"):
                features = features.monotone(np.tanh if part == "Tanh" else sigmoid)
        return demand_lead(weights, f"{last}.{{}}", features, answers)
    if net.name == "rnn":
        return demand_lead(weights, "readout.{}", states, answers)
    normed = states.part(-net.settings["d_model"], None).owned(0).normed(weights, "readout.1")
    return demand_lead(weights, "readout.4.{}", total(weights, (normed, "readout.2.{}")).relu(), answers)


def check_states(net: Net, sets: Tensors, task: Task) -> str:
    """Check a BlockLinearRNN with one-hot columns. A state consists of blocks, each of which contains a single 1.

    The file's `states` contain the position of the 1 in each block, for each class. A product of a one-hot matrix and a
    one-hot vector adds zeros to a 1. No order of summation rounds this sum.
    """
    demand(net.settings.get("columns") == "stochastic", "expected a block-linear-rnn with columns 'stochastic'")
    weights = net.weights
    width = net.settings["d_model"]
    size = net.settings["block_dim"]
    count, num_blocks = len(sets.get("outputs", ())), width // size
    check_machine(net, sets, machine_shapes(net, count) | {"states": (count, num_blocks)})
    states = sets["states"]
    demand((states >= 0).all() and (states < size).all(), "expected positions within a block as `states`")
    supervised = supervised_ends(ends_after_symbols(sets, task), sets, task)
    # The first state is a softmax at the temperature of the matrices' columns, so it must also be one-hot.
    first = one_hot_positions(net, between(weights["layers.0.first_state"]))
    demand(np.array_equal(states[int(sets["start"])], first), "the machine's start is not the net's first state")
    demand_limit(net.num_symbols * (width + 1) * num_parameters(net), MAX_WORK, "multiplications")
    demand_limit(count * net.num_symbols * num_blocks, MAX_MOVES, "moves of blocks")
    for symbol in range(net.num_symbols):
        features = between(weights["embedding.weight"][symbol][None])
        if net.settings["hidden"]:
            hidden = total(weights, (features.normed(weights, "norms.0"), "layers.0.transition_map.0.{}")).relu()
            features = total(weights, (hidden, "layers.0.transition_map.2.{}"))
        # Row i, column j of a block is logit [i, j]: each column is a softmax over its rows.
        columns = features.each(lambda a: a.reshape(*a.shape[:-2], num_blocks, size, size).swapaxes(-1, -2))
        moves = one_hot_positions(net, columns)
        targets = sets["table"][:, symbol]
        demand(
            np.array_equal(states[targets], moves[np.arange(num_blocks), states]),
            "a step of the net leads to another state than the machine's step",
        )
    if net.settings["read"] == "mixture":
        demand_mixture(weights["readout.weight"][states[supervised, 0]], sets["outputs"][supervised])
    else:
        for part in in_parts(len(supervised), max(width * size, readout_numbers(net))):
            one_hot = between(np.eye(size)[states[supervised[part]]].reshape(len(part), width))
            demand_answers(net, one_hot, sets["outputs"][supervised[part]])
    return f"all {count * net.num_symbols:,} steps lead from {count:,} states to these states"


def one_hot_positions(net: Net, logits: Form) -> Array:
    """Return the index of the 1 in softmax(logits / temperature), which must be one-hot to the last bit.

    At temperature 0, return the index of the maximum.
    """
    temperature, size = float(net.weights["layers.0.temperature"]), logits.center.shape[-1]
    demand(temperature >= 0, "expected a temperature of at least 0")
    scaled = logits.scaled(1 / temperature) if temperature else logits
    low, high = scaled.ends
    # The largest center is only a guess; the comparison of ends below decides.
    largest = scaled.center.argmax(-1)[..., None]
    behind = high - np.take_along_axis(low, largest, -1)
    is_other = np.arange(size) != largest
    # Softmax subtracts the largest logit. A logit this far behind gives exp(x) = 0, and the largest logit gives
    # exp(0) / 1 = 1. Rounding changes the difference by at most u of itself. The limit is 8 below the number that
    # float32 needs, and 24 below the number that float64 needs, so the computed difference still has an exp of 0. At
    # temperature 0, the net takes a maximum, so a strict lead is enough.
    is_sure = behind < (LOG_OF_ZERO[net.dtype] if temperature else 0)
    demand(
        (is_sure | ~is_other).all() and np.isfinite(high).all(), "rounding may decide where a one-hot vector has its 1"
    )
    return np.asarray(largest[..., 0])


def demand_mixture(logits: Array, answers: Array) -> None:
    """Demand that each answer has the largest log p, for p = softmax(logits) of one state.

    The state is one-hot, so all other terms of the mixture are 0. Errors are in units of u = 2^-24, for n classes whose
    logits differ by at most `spread`. The exp of a rounded difference has a relative error of spread + FUNCTION. A sum
    and a quotient add n + 2. A logarithm turns this into an absolute error, and adds FUNCTION times |log p| <= spread +
    log n. `MIN_PROBABILITY` changes no answer: the right answer has p >= 1 / n, and a probability that is raised to
    `MIN_PROBABILITY` stays far below 1 / n.
    """
    form = between(logits)
    count, spread = logits.shape[-1], np.ptp(form.center, -1, keepdims=True)
    demand(1 / count > 2 * MIN_PROBABILITY, "expected fewer answers")
    # `rounded` multiplies the units by this size, which is at least each of the three errors named above.
    form = form.rounded(1 + spread + math.log(count), 2 * FUNCTION + 2 * count)
    demand_ahead(form, answers)


def check_choices(net: Net, sets: Tensors, task: Task) -> str:
    """Check a PD-SSM whose state is one-hot: follow each step that the net may take, next to the task's machine.

    A step moves the state's 1 from position j, without rounding, to the row of the largest entry in a matrix's column
    j. If rounding may decide which entry is the largest, all entries that may be the largest are followed.
    """
    demand(net.name == "pd-ssm" and not sets, "expected a pd-ssm, and no sets")
    weights = net.weights
    size = net.settings["d_state"]
    num_symbols = net.num_symbols
    features = between(weights["embedding.weight"]).normed(weights, "norms.0")
    shares = softmax_shares(total(weights, (features, "layers.0.mixture_map.{}")))
    demand_limit(num_symbols * size**2 * len(weights["layers.0.dictionary"]), MAX_WORK, "multiplications")
    demand_limit(num_symbols * size**2, MAX_MOVES, "entries of columns")
    targets: list[list[list[int]]] = []
    for symbol in range(num_symbols):
        dictionary = {"weight": weights["layers.0.dictionary"].reshape(-1, size * size).T}
        low, high = (end.reshape(size, size) for end in total(dictionary, (rows_of(shares, [symbol]), "{}")).ends)
        # An entry cannot be the largest of its column if another entry is larger, however both are rounded.
        is_possible = ~(high < low.max(0))
        targets.append([np.flatnonzero(column).tolist() for column in is_possible.T])
    # The state of a PD-SSM begins with its 1 at position 0. Each pair of a state of the net and a state of the task is
    # followed once.
    seen = {(0, task.start)}
    queue = [(0, task.start)]
    ends = set[tuple[int, int, int]]()
    num_steps = 0
    for state, in_task in queue:
        for symbol in range(num_symbols):
            after = task.table[in_task][symbol]
            num_steps += len(targets[symbol][state])
            demand_limit(num_steps, MAX_MOVES, "steps")
            for target in targets[symbol][state]:
                if task.outputs[after] != IGNORE:
                    # The read-out also gets the latest symbol, so an end consists of the state, the symbol and the
                    # answer.
                    ends.add((target, symbol, task.outputs[after]))
                if (target, after) not in seen:
                    seen.add((target, after))
                    queue.append((target, after))
        demand_limit(len(seen), MAX_PAIRS, "pairs of a state of the net and a state of the task")
    demand(bool(ends), "expected a task with an answer to some string")
    last, latest, answers = (np.array(column) for column in zip(*sorted(ends), strict=True))
    embedded = between(weights["embedding.weight"])
    for part in in_parts(len(last), max(size, readout_numbers(net))):
        # For state x and the latest symbol, the read-out gets embedding + (W x + b + d * features). The features are
        # the symbol's normalized embedding.
        read = total(weights, (between(np.eye(size)[last[part]]), "layers.0.w.{}"))
        skipped, stream = (rows_of(form, latest[part]) for form in (features, embedded))
        made = stream.plus(read.plus(skipped.times(between(weights["layers.0.d"]))))
        demand_answers(net, as_intervals(made), answers[part])
    return f"all {num_steps:,} steps that rounding allows were followed, from {len(seen):,} pairs of states"


def rows_of(form: Form, rows: Any) -> Form:
    return form.each(lambda a: a[..., rows, :])


def softmax_shares(logits: Form) -> Form:
    """Return bounds on the softmax along the last axis; its outputs are called shares.

    A share is largest if its logit is at its upper end and all other logits are at their lower ends. The net first
    subtracts the largest logit, which rounds by u (|x| + |max|) with u = 2^-24. Each share is an exponential over a sum
    of n exponentials, all positive. The relative errors add up: FUNCTION units for the exponential, FUNCTION + n for
    the sum, and 1 for the quotient.
    """
    logits = logits.rounded(2 * logits.size.max(-1, keepdims=True), 2)
    low, high = logits.ends
    count, shift = low.shape[-1], high.max(-1, keepdims=True)
    # The shift cancels in a share, and keeps every exponential at most 1. An upper end must not underflow: its share
    # can be large if all other exponentials are equally small. A lower end may underflow to 0: `others_high` is at
    # least 1e-9, so no share divides by 0.
    low, high = np.exp(low - shift), np.maximum(np.exp(high - shift), MIN_EXPONENTIAL)
    # A float64 sum minus one of its terms is off by n units of 2^-53 of the sum, which is below 1e-11 of the sum.
    (sum_low, sum_high), slack = (end.sum(-1, keepdims=True) for end in (low, high)), 1e-9
    others_low, others_high = sum_low * (1 - slack) - low, sum_high * (1 + slack) - high
    # A share x / (x + rest) rises in x and falls in the rest. The ends of x and of the rest may belong to different
    # points of the set, which only widens the bounds. The slack can make `others_low` negative, but a sum of
    # exponentials is never negative.
    shares = between(low / (low + others_high), high / (high + np.maximum(others_low, 0)))
    return shares.rounded(shares.size, 3 * FUNCTION + 2 * count)


def drift_and_growth(numbers: Array, norms: Array, points: Array, table: Array) -> tuple[float, float]:
    """Return bounds on |A' p - p'| for all steps from p to p', and on |A' - A| for all symbols.

    A is a symbol's matrix in real numbers, and A' the matrix that float32 computes (`check_isometries`). A step of the
    machine leads from prototype p to prototype p'. There are V symbols, K prototypes and N blocks of size S. Shapes:
    numbers [V, N, S + 1] (a direction k and a switch for each block), norms [V, N, 1], points [K, N, S].
    """
    size = points.shape[-1]
    drift = growth = 0.0
    for symbol in range(len(numbers)):
        direction = numbers[symbol, :, :-1] / norms[symbol]
        is_reflected = numbers[symbol, :, -1] > 0  # otherwise the block is the identity, which is not rounded
        removed = 2 * direction[:, :, None] * direction[:, None, :] * is_reflected[:, None, None]
        # The norm is off by (S + 4) / 2 units: S squares, their sum, and a root. So 2 k_i k_j is off by S + 7 units of
        # its size. The difference from the identity adds one unit of 2 k_i k_j and one unit of the identity. 1e-15
        # covers squares that underflow.
        error = UNIT * ((size + 8) * (np.abs(removed) + 1e-15) + np.eye(size)) * is_reflected[:, None, None]
        wrong = np.linalg.norm(error, axis=(1, 2))  # the Frobenius norm of each block, at least its spectral norm
        growth = max(growth, float(wrong.max()))
        # A p = p - 2 k (k.p) is an isometry, so |A| = 1 and |A'| <= 1 + |A' - A|.
        images = points - np.einsum("nij,knj->kni", removed, points)
        # |A' p - p'| <= |A p - p'| + |(A' - A) p|. Matrices have blocks, so the last norm is the root of a sum of
        # squares over blocks, in each of which |(A' - A) p| <= |A' - A| |p|.
        missed = np.linalg.norm((images - points[table[:, symbol]]).reshape(len(points), -1), axis=1)
        moved = np.linalg.norm(wrong * np.linalg.norm(points, axis=2), axis=1)
        drift = max(drift, float((missed + moved).max()))
    return drift, growth


def check_isometries(net: Net, sets: Tensors, task: Task, max_length: int) -> str:
    """Check a BlockLinearRNN of reflections: states stay in balls around the prototypes for `max_length` steps.

    Let A be a symbol's matrix in real numbers, and A' the matrix that float32 computes. Let s be the norm of the first
    state. Let g >= |A'|, and e >= |A' p - p'| for each step of the machine from prototype p to prototype p'. Then n
    steps of A' end within e (g^n - 1) / (g - 1) of the prototype that the machine reaches.

    Products are also rounded. Let |fl(A B) - A B| <= r |A| |B|. Then a product of n matrices is off by at most
    g^n ((1 + r)^(n-1) - 1). This holds by induction, in any order of multiplication, since
    (1 + r)^(a-1) (1 + r)^(b-1) (1 + r) = (1 + r)^(a+b-1). The product with the first state rounds once more. So the
    distance of a state from its prototype is at most e (g^n - 1) / (g - 1) + s g^n ((1 + r)^n - 1).
    """
    is_kind = net.settings.get("columns") == "reflected" and net.settings["hidden"] == 0
    demand(is_kind, "expected a block-linear-rnn with columns 'reflected' and without hidden units")
    weights = net.weights
    width = net.settings["d_model"]
    size = net.settings["block_dim"]
    count, num_blocks = len(sets.get("outputs", ())), width // size
    check_machine(net, sets, machine_shapes(net, count) | {"points": (count, width), "radius": ()})
    points = sets["points"].reshape(count, num_blocks, size)
    radius = float(sets["radius"])
    supervised = supervised_ends(ends_after_symbols(sets, task), sets, task)
    demand_limit(count * net.num_symbols * width * size, MAX_WORK, "multiplications")
    first = weights["layers.0.first_state"].astype(np.float64)
    demand(np.array_equal(points[int(sets["start"])], first), "the machine's start is not the net's first state")
    demand(float(weights["layers.0.temperature"]) == 0, "expected a temperature of 0")
    numbers = weights["embedding.weight"].astype(np.float64).reshape(net.num_symbols, num_blocks, size + 1)
    norms = np.linalg.norm(numbers[..., :-1], axis=-1, keepdims=True)
    scale = float(np.linalg.norm(first))
    are_usual = (norms > MIN_NORM).all() and (norms < LARGEST).all() and MIN_NORM < scale < LARGEST
    demand(are_usual, "expected directions and a first state whose norms are neither tiny nor huge")
    drift, growth = drift_and_growth(numbers, norms, points, sets["table"])
    # The factors and the term below cover the float64 rounding in `drift_and_growth`, and products that underflow.
    drift, growth = drift * (1 + 1e-9) + 1e-12 * scale * UNIT, growth * (1 + 1e-9)
    # An entry of A B is a sum of S products, so |fl(A B) - A B| <= (S + 1) u |A|_F |B|_F. Also, |A|_F <= sqrt(S) |A|.
    rounding = size * (size + 1) * UNIT
    # `log1p` and `expm1` keep all digits of growths near 1e-6. The sum 1 + growth and a difference of powers would lose
    # digits. Below 700, `stretched` and `rolled` are off by less than 1e-12. So their exponentials are off by less than
    # 1e-12 of the exponentials' size.
    stretched = max_length * math.log1p(growth)
    rolled = max_length * math.log1p(rounding)
    # exp(709) is the limit of float64. Beyond it, `reach` would be infinite.
    demand(stretched + rolled < 700, "states leave their balls before the largest length")
    # (g^n - 1) / (g - 1) is 1 + g + ... + g^(n-1), which is n if no step enlarges distances (g = 1).
    num_steps = math.expm1(stretched) / growth if growth else max_length
    reach = drift * num_steps + scale * math.exp(stretched) * math.expm1(rolled)
    # Relative to `reach`, 1e-9 is far above its float64 error.
    demand(reach * (1 + 1e-9) <= radius, "states leave their balls before the largest length")
    flat = sets["points"]
    for part in in_parts(len(supervised), readout_numbers(net)):
        center = flat[supervised[part]]
        # A ball lies in the box of the same radius.
        demand_answers(net, between(center - radius, center + radius), sets["outputs"][supervised[part]])
    return f"states stay within {radius:.3g} of {count:,} prototypes for {max_length:,} steps"


def check_attention(net: Net, sets: Tensors, task: Task, max_length: int) -> str:
    """Check a transformer: bounds on attention imply the right answer to all strings of up to `max_length` symbols.

    A head's output at the last position is a mean of the values of all positions, weighted by e^s. Here s is the score
    of a position. In the first layer, a value depends on the position's symbol. A score depends on the last symbol, the
    position's symbol, and the distance between the two positions. The mass of a symbol is the weight of its positions
    in this mean. The file divides the lengths into ranges, called blocks. Consider all strings of a block that end with
    symbol x in class p of the file's machine. For these strings, the file has a lower and an upper bound on the mass of
    each symbol in each head. The checker verifies these bounds (`demand_masses`).

    So the checker has, for each pair (x, p), a set that contains the layer's results at the last position, for all
    strings of the block and of shorter lengths (`results`). These sets are the inputs of the next layer. In the next
    layer, values and scores depend on the pair (x, p) of a position instead of its symbol. The kind of a position is
    its symbol in the first layer, and its pair in later layers. In the last layer, the right answer must have the
    largest logit for all masses within their bounds (`demand_one_answer`).
    """
    demand(net.name == "transformer", "expected a transformer")
    count, num_blocks = len(sets.get("outputs", ())), len(sets.get("lengths", ()))
    num_layers = net.settings["num_layers"]
    shapes: Shapes = {"lengths": (num_blocks,)}
    for i in range(num_layers):
        num_kinds = net.num_symbols * (count if i else 1)
        bounds = (num_blocks, net.num_symbols, count, net.settings["num_heads"], num_kinds)
        shapes |= dict.fromkeys(names_of_bounds(i, num_layers), bounds)
    check_machine(net, sets, machine_shapes(net, count) | shapes)
    lengths = sets["lengths"]
    demand_limit(max_length, MAX_TERMS, "symbols of a string")
    # The range of the lengths is checked before their differences, so that no difference overflows.
    are_rising = (lengths >= 1).all() and (lengths <= max_length).all() and (np.diff(lengths) > 0).all()
    demand(are_rising and lengths[-1] == max_length, "expected lengths that rise to the largest length")
    if net.settings["positions"] == "fire":  # a query after the limit divides by its own position
        limit = min(fire_limit(net, i) for i in range(num_layers))
        demand(max_length - 1 <= limit, f"expected positions up to FIRE's limit {limit:g}, got {max_length - 1:,}")
    supervised = supervised_ends(ends_after_symbols(sets, task), sets, task)
    pairs = np.array([(x, p) for x in range(net.num_symbols) for p in np.unique(sets["table"][:, x])])
    layers = [layer_bounds(sets, i, num_layers, pairs) for i in range(num_layers)]
    symbols = inputs_of_symbols(net)
    first_heads = heads_of(net, 0, symbols, max_length)
    num_pieces = 0
    for block, length in enumerate(lengths):
        heads, inputs = first_heads, symbols
        first = 1 if block == 0 else int(lengths[block - 1]) + 1
        for i, layer in enumerate(layers):
            heads = heads_of(net, i, inputs, int(length)) if i else heads
            layer.exists[block] = demand_masses(sets, heads, layer, block, first, int(length))
            if i < num_layers - 1:
                inputs = results(net, i, heads, layer.up_to(block), int(length))
        ends = np.flatnonzero(layer.exists[block] & np.isin(pairs[:, 1], supervised))
        ends, piece = (axis.ravel() for axis in np.meshgrid(ends, np.arange(inputs.center.shape[1]), indexing="ij"))
        low, high = (bounds[block, ends] for bounds in (layer.low, layer.high))
        regions = Regions(low, high, layer.last[ends], piece, sets["outputs"][pairs[ends, 1]])
        num_pieces += demand_one_answer(net, heads, regions, int(length))
    return (
        f"one answer leads in each of {num_pieces:,} regions of attention masses, for {num_blocks:,} ranges of lengths"
    )


def names_of_bounds(i: int, num_layers: int) -> tuple[str, str]:
    """Return the names of layer i's bounds in a proof file; the last layer's names contain no layer number."""
    return ("low", "high") if i == num_layers - 1 else (f"low.{i}", f"high.{i}")


class LayerBounds(NamedTuple):
    """The file's bounds `low` and `high` on one layer's masses, for each block, pair, head and kind [B, P, H, K].

    `pairs` [P, 2] contains the pairs (last symbol, class) of `check_attention`. `kinds[q, u]` is the kind of a position
    whose symbol u is read in class q. `last` contains, for each pair, the kind of the last position of the strings that
    end in this pair. Once a block is checked, `exists` is True for each pair in which a string of the block ends.
    """

    pairs: Array
    low: Array
    high: Array
    kinds: Array
    last: Array
    exists: Array

    def up_to(self, block: int) -> tuple[Array, Array, Array]:
        """Return bounds on attention masses for all lengths up to the end of a block, and the kinds of last positions.

        If no string ends in a pair, the pair gets the bounds of another pair. The bounds of a pair without strings are
        never used, because no path has positions of its kind.
        """
        exists = self.exists[: block + 1]
        low = np.where(exists[..., None, None], self.low[: block + 1], np.inf).min(0)
        high = np.where(exists[..., None, None], self.high[: block + 1], -np.inf).max(0)
        has_strings = np.asarray(exists.any(0))
        source = np.where(has_strings, np.arange(has_strings.size), has_strings.argmax())
        return low[source], high[source], self.last[source]


def layer_bounds(sets: Tensors, i: int, num_layers: int, pairs: Array) -> LayerBounds:
    """Return the file's bounds on attention masses in layer i.

    Each bound must be between 0 and 1, and no positive lower bound may be below 1e-17.
    """
    low, high = (sets[name] for name in names_of_bounds(i, num_layers))
    demand((low >= 0).all() and (high <= 1).all(), "expected masses between 0 and 1")
    # A lower bound between 0 and 1e-17, times an exponential of at least `MIN_EXPONENTIAL`, may underflow to 0. Then
    # `demand_masses` would compare the mass with 0 instead of the bound.
    demand(((low == 0) | (low >= 1e-17)).all(), "expected lower bounds of 0, or of at least 1e-17")
    table, exists = sets["table"], np.zeros((len(low), len(pairs)), np.bool_)
    low, high = (bounds[:, pairs[:, 0], pairs[:, 1]] for bounds in (low, high))
    if i == 0:
        return LayerBounds(pairs, low, high, np.tile(np.arange(table.shape[1]), (len(table), 1)), pairs[:, 0], exists)
    numbers = pairs[:, 0] * len(table) + pairs[:, 1]  # the file's kinds, in ascending order
    kinds = np.searchsorted(numbers, np.arange(table.shape[1]) * len(table) + table)
    return LayerBounds(pairs, low[..., numbers], high[..., numbers], kinds, np.arange(len(pairs)), exists)


class Heads(NamedTuple):
    """Bounds on one layer: intervals of its scores [K, K, H, T] and inputs [K, M, D], and enclosures of its values.

    There are K kinds of positions, and H heads of width E. The axes of scores are the kind of the last position, the
    kind of the key, the head, and the distance between the two positions. Distances are below T, and T is 1 without an
    encoding of positions. M pieces of width D cover the inputs of each kind. A value is its `center` [K, H, E] plus
    ``sides @ a`` for some vector a with entries in [-1, 1]. The sides are [K, H, E, E].
    """

    scores: Form
    center: Array
    sides: Array
    inputs: Form

    @property
    def size(self) -> Array:
        return np.asarray(np.abs(self.center) + np.abs(self.sides).sum(-1)) * (1 + 1e-12)


def inputs_of_symbols(net: Net) -> Form:
    """Return the first layer's inputs for each of V symbols, as a form [V, 1, D] of vectors of width D."""
    symbols = between(net.weights["read_in.embedding.weight"][:, None])
    return symbols if "read_in" in net.settings else symbols.normed(net.weights, "read_in.norm")


def heads_of(net: Net, i: int, inputs: Form, max_length: int) -> Heads:
    """Return bounds on the scores and values of layer i, however float32 rounds; reject scores that may overflow."""
    (num_kinds, num_pieces, width), num_heads = inputs.center.shape, net.settings["num_heads"]
    rows = num_kinds * num_pieces
    demand_limit(rows * max(4 * width, num_pieces * num_heads), MAX_ELEMENTS, "products of queries and keys")
    demand_limit(num_kinds**2 * num_heads * max_length, MAX_ELEMENTS, "scores")
    mapped = as_one_axis([query_key_value(net, i, of_kind(inputs, kind, -3)) for kind in range(num_kinds)])
    query, key, value = (mapped.part(start, start + width).by_head(num_heads) for start in (0, width, 2 * width))
    scores = scores_of(net, i, query, key, max_length)
    # If a score overflows, the softmax is NaN, whatever the other scores are.
    is_finite = np.isfinite(scores.radius).all() and np.isfinite(value.radius).all()
    demand(is_finite, "expected scores and values that float32 can represent")
    return Heads(scores, *directed_enclosures(value), inputs)


def query_key_value(net: Net, i: int, inputs: Form) -> Form:
    """Return intervals of layer i's queries, keys and values, given intervals of its inputs."""
    demand_limit(inputs.center.size * 3 * inputs.center.shape[-1], MAX_ELEMENTS, "sides of queries, keys and values")
    # The norm and the map subtract numbers of one layer input from each other. So each number becomes an input of the
    # form, which can cancel.
    normed = inputs.owned(0).normed(net.weights, f"layers.{i}.norms.0")
    return as_intervals(total(net.weights, (normed, f"layers.{i}.query_key_value.{{}}")))


def of_kind(form: Form, kind: int, axis: int) -> Form:
    """Return the part of a form for one kind of position: one index of `axis`, which then has length 1."""
    return form.each(lambda a: np.take(a, [kind], axis))


def as_one_axis(forms: list[Form]) -> Form:
    """Join forms that have no inputs into one form, along their first axis."""
    center, rest = (np.concatenate(arrays) for arrays in zip(*((f.center, f.rest) for f in forms), strict=True))
    return Form(center, np.zeros((0, *center.shape)), rest)


def directed_enclosures(value: Form) -> tuple[Array, Array]:
    """Return enclosures of values [K, M, H, E]: the enclosures' centers [K, H, E] and sides [K, H, E, E] (see `Heads`).

    One enclosure covers the M pieces of a kind and a head. Its sides are along the directions in which the pieces
    differ most. Sides along the axes would be longer.
    """
    points, off, size = (np.swapaxes(a, 1, 2) for a in (value.center, value.radius, value.size))  # [K, H, M, E]
    middle = points.mean(2, keepdims=True)
    around = points - middle
    basis = np.linalg.svd(np.swapaxes(around, 2, 3) @ around)[0]
    # For a value v and a = (v - middle) basis, a basis^T differs from v - middle by (v - middle) (basis basis^T - 1).
    # `lost` bounds this difference, so nothing depends on how `svd` rounds. In float64, a number loses at most 1e-13 of
    # `size`.
    part = np.abs(basis @ np.swapaxes(basis, 2, 3) - np.eye(basis.shape[-1])).sum((2, 3)) + 1e-13
    demand((part < 1e-9).all(), "expected values whose directions float64 can represent")
    lost = part[:, :, None] * 4 * (size.max((2, 3))[..., None] + TINY)
    along, spread = around @ basis, off @ np.abs(basis)
    low, high = (along - spread).min(2), (along + spread).max(2)
    center = middle[:, :, 0] + (basis @ ((low + high) / 2)[..., None])[..., 0]
    return center, basis * (((high - low) / 2) + basis.shape[-1] * lost)[..., None, :]


def scores_of(net: Net, i: int, query: Form, key: Form, max_length: int) -> Form:
    """Return the scores [K, K, H, T] of queries and keys [K, M, H, E] at distances 0, 1, ... T - 1, for layer i.

    `Heads` explains these shapes. Without an encoding of positions, T is 1.
    """
    positions, head_dim = net.settings["positions"], query.center.shape[-1]
    # A score is a sum of E products, which may be off by E + 1 units. Some kernels first multiply query and key by the
    # square root of the scale. These two products and the two roots round each term four more times. Eight more units
    # are allowed.
    units = head_dim + 1 + 8
    if positions == "rotary":
        return rotated(query, key, max_length, units).scaled(head_dim**-0.5)
    by_distance = between(np.zeros((1, 1, 1, 1)))
    if positions == "xl":
        u, v = (between(net.weights[f"read_in.positions.{name}"][None, None]) for name in "uv")
        relative = vectors_of_distances(net, i, max_length)
        _, num_pieces, num_heads, _ = query.center.shape  # one kind at a time
        demand_limit(num_pieces * num_heads * max_length, MAX_ELEMENTS, "products of queries and distances")
        by_distance = products(query.plus(v), relative, units).each(lambda a: np.swapaxes(a, -1, -2)[..., None, :, :])
        by_distance, query = by_distance.scaled(head_dim**-0.5), query.plus(u)
    elif positions != "none":
        bias = biases(net, i, max_length)
        by_distance = bias.rounded(bias.size, 1).each(lambda a: a[..., None, None, :, :])
    return products(query, key, units).scaled(head_dim**-0.5).each(lambda a: a[..., None]).plus(by_distance)


def products(query: Form, key: Form, units: int) -> Form:
    """Return intervals [K, N, H] that contain all products of queries [K, M, H, E] and keys [N, O, H, E] over axis E.

    For each head, one interval covers the products of all M pieces of a query with all O pieces of a key.
    """
    num_kinds, num_pieces = query.center.shape[:2]
    num_keys, num_key_pieces = key.center.shape[:2]
    rows = num_keys * num_key_pieces
    flat = key.each(lambda a: np.moveaxis(a.reshape(*a.shape[:-4], rows, *a.shape[-2:]), -2, -3))  # [H, N O, E]
    lowest, highest = [], []
    for kind in range(num_kinds):
        own = of_kind(query, kind, -4).each(lambda a: np.moveaxis(a[..., 0, :, :, :], -2, -3))  # [H, M, E]
        # Each number of a query is c + v, and each number of a key is c' + v', with the centers c and c'. A product is
        # a sum over E of (c + v)(c' + v') = c c' + c v' + v (c' + v').
        center, size = (x @ y.swapaxes(1, 2) for x, y in ((own.center, flat.center), (own.size, flat.size)))
        radius = np.abs(own.center) @ flat.radius.swapaxes(1, 2) + own.radius @ flat.size.swapaxes(1, 2)
        sums = between(center - radius, center + radius).rounded(size, units)
        low, high = (end.reshape(len(end), num_pieces, num_keys, num_key_pieces) for end in sums.ends)
        lowest.append(low.min((1, 3)).T)
        highest.append(high.max((1, 3)).T)
    return between(np.array(lowest), np.array(highest))


def rotated(query: Form, key: Form, max_length: int, units: int) -> Form:
    """Return the products [K, K, H, T] of queries and keys [K, M, H, E] that rotary encoding rotates.

    `Heads` explains these shapes. The E numbers of a head form pairs. At distance n, pair m turns by n 10000^(-2m/E).
    As complex numbers, a query a + bi and a key c + di at distance n give Re((a + bi)(c - di) e^(ix)) with x = n
    10000^(-2m/E). This is (ac + bd) cos x + (ad - bc) sin x, and ad - bc is the product of (a, b) and (d, -c).
    """
    distances, head_dim = np.arange(max_length), query.center.shape[-1]
    low = high = size = np.zeros(1)
    for m in range(head_dim // 2):
        one, other = (form.part(2 * m, 2 * m + 2) for form in (query, key))
        turned = other.each(lambda a: a[..., ::-1])  # (d, c), and then (d, -c)
        turned = turned._replace(center=turned.center * [1, -1], slope=turned.slope * [1, -1])
        x = distances * 10_000.0 ** (-2 * m / head_dim)
        for keys, wave in ((other, np.cos(x)), (turned, np.sin(x))):
            # One unit is more than enough for these sums in float64.
            ends = [end[..., None] * wave for end in products(one, keys, 1).ends]
            low, high = low + np.minimum(*ends), high + np.maximum(*ends)
        # The rotation of a pair (a, b) consists of two numbers, each of size at most |a| + |b|.
        largest = one.size.sum(-1).max(1)[:, None] * other.size.sum(-1).max(1)
        size = size + 2 * largest[..., None]
    # A rotated number is rounded by three units of |a| + |b|: for its cosine or sine, the products, and their sum. The
    # query and the key are both rotated, which adds six units to the product. Two more units cover the angles, which
    # float64 computes to 1e-11.
    return between(low, high).rounded(np.broadcast_to(size, low.shape), units + 8)


def vectors_of_distances(net: Net, i: int, max_length: int) -> Form:
    """Return Transformer-XL's vectors of T distances in layer i, [T, 1, H, E]: linear images of sines and cosines."""
    width, num_heads = net.settings["d_model"], net.settings["num_heads"]
    demand_limit(max_length * width, MAX_ELEMENTS, "numbers of vectors of distances")
    angles = np.arange(max_length)[:, None] * 10_000.0 ** (-2 * np.arange((width + 1) // 2) / width)
    waves = between(np.concatenate([np.sin(angles), np.cos(angles)], 1)[:, :width])
    mapped = total(net.weights, (waves.rounded(waves.size, 1), f"read_in.positions.maps.{i}.{{}}"))
    return mapped.by_head(num_heads).each(lambda a: a[..., None, :, :])


def biases(net: Net, i: int, max_length: int) -> Form:
    """Return the biases [H, T] of layer i's scores at distances 0, 1, ... T - 1, for queries up to position T - 1."""
    positions, distances = net.settings["positions"], np.arange(max_length)
    if positions == "alibi":
        return between(-np.array(alibi_slopes(net.settings["num_heads"]))[:, None] * distances)
    if positions == "t5":
        # Distance n is in bucket n below 16, and otherwise in bucket 16 + floor(16 log_8(n / 16)), at most 31. Integers
        # decide this without rounding: b <= 16 log_8(n / 16) means 2^(64 + 3 b) <= n^16.
        limits = [next(n for n in range(16, 129) if n**16 >= 2 ** (64 + 3 * b)) for b in range(1, 16)]
        buckets = np.where(distances < 16, distances, 16 + np.searchsorted(limits, distances, side="right"))
        return between(net.weights["read_in.positions.table"][:, buckets])
    if positions == "fire":
        return fire_biases(net, i, distances)
    # At distance n, KERPLE's bias is -p ln(1 + a n) or -a n^p, with positive parameters p and a.
    p, a = (limited(net, name) for name in "pa")
    if positions == "kerple-log":
        return a.times(between(distances[None])).monotone(np.log1p).times(p).scaled(-1.0)
    # n^p rises with p for n >= 1, and is 0 for n = 0.
    low, high = (distances.astype(np.float64) ** end for end in p.ends)
    return between(low, high).rounded(high, FUNCTION).times(a).scaled(-1.0)


def limited(net: Net, name: str) -> Form:
    """Return KERPLE's parameter x of each head, [H, 1], cut to its limits as in the net: x + (limited x - x).

    The lower limit is 0.01. An exponent also has the upper limit 2. Within the limits, the difference is 0. Outside of
    them, the limit, the difference and the sum are rounded.
    """
    numbers = net.weights[f"read_in.positions.{name}"].astype(np.float64)[:, None]
    is_power = net.settings["positions"] == "kerple-power" and name == "p"
    near = np.clip(numbers, 0.01, 2.0 if is_power else None)
    off = np.where(near == numbers, 0.0, 4 * UNIT * (np.abs(numbers) + near))
    return between(near - off, near + off)


def fire_biases(net: Net, i: int, distances: Array) -> Form:
    """Return FIRE's biases f(psi(n) / (psi(L) + 1e-6)) at distances n.

    Here psi(x) = ln(1 + |c x|) with the layer's weight c, L is the layer's limit (`fire_limit`), and f is a net with
    one layer of ReLUs. The denominator contains L as long as the query's position is at most L, which `check_attention`
    demands.
    """
    name = f"read_in.positions.layers.{i}"
    c, limit = (between(np.array([size])) for size in (abs(float(net.weights[f"{name}.c"])), fire_limit(net, i)))
    # A limit that overflows is infinite in float32. So `rounded` gives limits above `LARGEST` no finite bound.
    limit = limit.rounded(limit.size, 1)
    above, below = (c.times(x).monotone(np.log1p) for x in (between(distances), limit))
    # The exact numbers here are not negative, and 1e-6 is far above the rounding errors of a denominator near 0.
    lowest, highest = below.plus(between(np.array([1e-6]))).ends
    ratio = between(np.maximum(above.ends[0], 0) / highest, above.ends[1] / lowest)
    inputs = ratio.rounded(ratio.size, 1).each(lambda a: a[..., None])
    hidden = total(net.weights, (inputs, f"{name}.net.0.{{}}")).relu()
    return total(net.weights, (hidden, f"{name}.net.2.{{}}")).each(lambda a: np.swapaxes(a, -1, -2))


def fire_limit(net: Net, i: int) -> float:
    """Return FIRE's limit L = |512 l|, where l is layer i's tensor `limit`.

    L is exact unless the product overflows, because 512 is a power of two.
    """
    return abs(512 * float(net.weights[f"read_in.positions.layers.{i}.limit"]))


def alibi_slopes(num_heads: int) -> list[float]:
    """Return 2^(-8 h / H) for heads h = 1 ... H, if H is a power of two.

    Otherwise, let P be the largest power of two below H. Then all slopes for P heads come first. The first, third, ...
    of the slopes for 2 P heads follow.
    """
    power = 2 ** (num_heads.bit_length() - 1)
    own, finer = (range(1, power + 1), 8 / power), (range(1, 2 * power, 2), 4 / power)
    return [2.0 ** (-h * step) for numbers, step in (own, finer) for h in numbers][:num_heads]


def demand_masses(sets: Tensors, heads: Heads, layer: LayerBounds, block: int, first: int, last: int) -> Array:
    """Demand that the bounds on masses hold for a block of lengths; return a mask of the pairs in which strings end.

    The mass of kind v is at most c on a string if the sum of e^s (1[kind is v] - c) over the string's positions is at
    most 0. The mass is at least c if the sum of e^s (c - 1[kind is v]) is at most 0. Each such inequality is a claim. A
    term of the sum depends on a position's kind and its distance from the end. So the largest sum over all strings is a
    longest path, which is followed from the end. `best[claim, pair, head, class]` is the largest sum over strings that
    lead from the class to the pair.
    """
    table, start = sets["table"], int(sets["start"])
    pairs, kinds = layer.pairs, layer.kinds
    # Each kind gives one claim for `low` and one for `high`, so the axis of kinds comes first: [K, P, H, 1].
    low, high = (np.moveaxis(bounds[block], -1, 0)[..., None] for bounds in (layer.low, layer.high))
    demand_limit(2 * low.size * max(len(table), len(low)), MAX_ELEMENTS, "sums along paths")
    demand_limit(2 * low.size * len(table) * table.shape[1] * last, MAX_WORK, "multiplications")
    # The largest score of a query in a head is subtracted from all scores of the query in this head, so that no
    # exponential overflows. All terms of a sum are thereby multiplied by the same positive factor, which does not
    # change the sign of the sum. An exponential that is an upper bound must not underflow.
    least, most = (end - heads.scores.ends[1].max((1, 3), keepdims=True) for end in heads.scores.ends)
    least, most = np.exp(least)[layer.last], np.maximum(np.exp(most), MIN_EXPONENTIAL)[layer.last]
    exists = np.zeros(len(pairs), np.bool_)
    column, best = -1, np.zeros(0)
    for distance in range(last):
        if column != (column := min(distance, least.shape[-1] - 1)):
            terms = terms_of(low, high, least[..., column], most[..., column])
        if distance == 0:
            # The last symbol of a string is the symbol of its pair, and leads to the class of its pair.
            ends = np.where(table[:, pairs[:, 0]] == pairs[:, 1], 0.0, -np.inf).T[:, None]
            best = np.stack([terms[:, p, :, kind, None] for p, kind in enumerate(layer.last)], 1) + ends
        else:
            best = reduce(
                np.maximum, (best[..., to] + terms[..., kind] for to, kind in zip(table.T, kinds.T, strict=True))
            )
        if distance + 1 >= first:
            sums = best[..., start]
            exists |= sums[0, :, 0] > -np.inf
            demand((sums <= 0).all(), "an attention mass leaves its bounds on some string")
    return exists


def terms_of(low: Array, high: Array, least: Array, most: Array) -> Array:
    """Return upper bounds [2 K, P, H, K] on a position's term for each kind u, in both claims on each kind v.

    `demand_masses` explains terms and claims. The terms of the first K claims are e^s (1[u is v] - high), and the terms
    of the last K claims are e^s (low - 1[u is v]). `low` and `high` have shape [K, P, H, 1]. `least` and `most` are
    bounds on e^s, of shape [P, K, H].
    """
    least, most = (np.swapaxes(exponentials, 1, 2)[None] for exponentials in (least, most))
    own = np.eye(len(low), dtype=np.bool_)[:, None, None]
    # A term is largest at the upper end of e^s if its factor is positive, and otherwise at the lower end.
    above = np.where(own, (1 - high) * most, -high * least)
    below = np.where(own, (low - 1) * least, low * most)
    terms = np.concatenate([above, below])
    # A float64 sum of `MAX_TERMS` terms is off by 1e-11 of the sum of their sizes. The slack of 1e-9 is far larger, and
    # also covers the rounding of exponentials and factors.
    return np.asarray(terms + 1e-9 * np.abs(terms))


class Regions(NamedTuple):
    """N regions of masses, with bounds `low` and `high` [N, H, K] on the mass of each kind in each head.

    For each region [N], `last` is the kind of the last position, `piece` the index of a piece of this position's input,
    and `answers` the right answer.
    """

    low: Array
    high: Array
    last: Array
    piece: Array
    answers: Array

    def at(self, index: Array | slice) -> "Regions":
        return Regions(*(array[index] for array in self))

    def in_halves(self, heads: Heads) -> "Regions":
        """Return both halves of each region, whose longest side is halved.

        A side belongs to a head and a kind of position. Before sides are compared, the length of each side is
        multiplied by the spread of the head's values.
        """
        spread = np.linalg.norm(np.ptp(heads.center, axis=0), axis=-1)
        sides = self.high - self.low
        widest = (sides * spread[:, None]).reshape(len(sides), -1).argmax(1)
        is_widest = (np.arange(sides[0].size) == widest[:, None]).reshape(sides.shape)
        middle = np.where(is_widest, (self.low + self.high) / 2, np.nan)
        halves = self._replace(high=np.fmin(self.high, middle)), self._replace(low=np.fmax(self.low, middle))
        return Regions(*(np.concatenate(arrays) for arrays in zip(*halves, strict=True)))


HALVINGS = 8
"""The number of times that regions of the first layer's masses are halved before the next layer uses its results."""


def results(net: Net, i: int, heads: Heads, masses: tuple[Array, Array, Array], length: int) -> Form:
    """Return intervals [P, M, D] that contain the results of layer i, for all masses that the bounds allow.

    The masses and inputs of each of the P pairs (last symbol, class) are divided into M regions. Each region gives
    intervals for the D numbers of a result.
    """
    error, num_inputs = attention_error(heads, length), heads.inputs.center.shape[1]
    low, high, last = masses
    halvings = HALVINGS if num_inputs == 1 else 0
    pieces = []
    for pair in range(len(low)):
        rows = np.full(num_inputs, pair)
        regions = narrowed(heads, Regions(low[rows], high[rows], last[rows], np.arange(num_inputs), rows))
        for _ in range(halvings):
            regions = narrowed(heads, regions.in_halves(heads))
        demand(len(regions.low) > 0, "expected masses that add up to 1")
        parts = in_parts(len(regions.low), numbers_each(net, heads))
        ends = [result(net, i, heads, regions.at(indices), error).ends for indices in parts]
        # Empty regions were dropped. Copies of the first region replace them, so that all pairs have M regions.
        fill = np.r_[: len(regions.low), np.zeros(num_inputs * 2**halvings - len(regions.low), int)]
        pieces.append([np.concatenate(side)[fill] for side in zip(*ends, strict=True)])
    return between(*(np.array(side) for side in zip(*pieces, strict=True)))


def demand_one_answer(net: Net, heads: Heads, regions: Regions, length: int) -> int:
    """Demand that the right answer has the largest logit in all regions; return the number of regions with a proof.

    A region in which the bounds do not prove this is halved. The masses of a string lie in one of the two halves, so a
    proof for both halves is enough.
    """
    error, i = attention_error(heads, length), net.settings["num_layers"] - 1
    num_pieces = 0
    while len(regions.low):
        demand_limit(num_pieces + len(regions.low), MAX_PIECES, "regions of masses")
        # The newest regions are checked first. So a region with several answers is found before many other regions are
        # halved.
        part = narrowed(heads, regions.at(slice(-REGIONS, None)))
        regions = regions.at(slice(-REGIONS))
        is_ahead = np.zeros(len(part.low), np.bool_)
        for indices in in_parts(len(part.low), numbers_each(net, heads)) if len(part.low) else []:
            state = result(net, i, heads, part.at(indices), error)
            features = state.normed(net.weights, "readout.0")
            logits = total(net.weights, (features.owned(len(features.slope)), "readout.1.{}"))
            is_ahead[indices] = are_ahead(logits, part.answers[indices])
        num_pieces += int(is_ahead.sum())
        part = part.at(~is_ahead)
        is_wide = ((part.high - part.low).max((1, 2)) > MIN_PIECE).all()
        demand(is_wide, "bounds on attention do not show that the right answer leads")
        if len(part.low):
            halves = part.in_halves(heads)
            regions = Regions(*(np.concatenate(arrays) for arrays in zip(regions, halves, strict=True)))
    return num_pieces


def numbers_each(net: Net, heads: Heads) -> int:
    """Return how many numbers the largest array of bounds contains for one region of masses."""
    width = net.settings["d_model"]
    num_sides = heads.sides.size if heads.inputs.center.shape[1] > 1 else 0
    num_inputs = heads.center.shape[0] * heads.center.shape[1] + num_sides + 7 * width
    return int((num_inputs + 17) * max(4 * width, net.num_classes))


def attention_error(heads: Heads, length: int) -> float:
    """Return a bound on the error of attention, relative to the largest value, for strings of up to `length` symbols.

    From scores s_i and values v_i, a kernel computes sum_i e_i v_i / sum_i e_i with e_i = exp(s_i - largest score so
    far). When the largest score grows, the kernel multiplies the sums so far by an exponential, called a factor. The
    errors of numerator and denominator are bounded separately:

    - The exponents of e_i and of the factors that multiply it are differences of scores. For scores of size S, the
      sizes of these differences add up to at most 2 S. Each difference rounds once.
    - e_i and each factor have the error of an exponential, and are multiplied once.
    - A sum of t terms rounds at most t + 1 times in any order. The quotient, and the products with v, round less than
      eight times.
    """
    num_factors = length // CHUNK + 2
    units = 2 * (2 * float(heads.scores.size.max()) + num_factors * (ATTENTION + 2) + length + 9)
    demand(units * UNIT <= MAX_ATTENTION_ERROR, "expected attention that float32 rounds by at most two percent")
    # For relative errors a of the numerator and b of the denominator, (1 + a) / (1 - b) - 1 is at most (a + b) (1 + 2
    # (a + b)), which is less than 1.05 (a + b) for a + b up to 0.02.
    return 1.05 * units * UNIT


def narrowed(heads: Heads, regions: Regions) -> Regions:
    """Cut away masses that no string can have, and drop regions that become empty.

    The masses of a head add up to 1. All heads see the same positions. Let n_v be the sum of the first head's e^s over
    the positions of kind v, and s' the scores of another head. The other head's sum of e^s' is n_v r_v, with r_v
    between the bounds on e^(s' - s). If the first head has mass m_v, the other head has mass m_v r_v / (m_v r_v + sum
    of m_u r_u for all other u). This mass rises with m_v r_v, and falls with all other m_u r_u.
    """
    low, high = regions.low, regions.high
    own = np.eye(low.shape[-1], dtype=np.bool_)

    def others(numbers: Array) -> Array:
        # No number is subtracted from a sum that contains it, so small sums keep their digits.
        return np.asarray(np.where(own, 0.0, numbers[..., None, :]).sum(-1))

    if low.shape[1] > 1:
        ends = heads.scores.ends
        ratios = (ends[0] - ends[1][:, :, :1]).min(-1), (ends[1] - ends[0][:, :, :1]).max(-1)
        # A common factor of all r_v changes no mass. The factor e^-shift prevents an overflow of exponentials. An
        # overflow would give a false bound, since finite / inf is 0. Products that are upper bounds must not underflow
        # to 0 either.
        shift = ratios[1].max(1, keepdims=True)
        least, most = (np.exp(ratio - shift).swapaxes(1, 2)[regions.last] for ratio in ratios)
        least, most = low[:, :1] * least, np.maximum(high[:, :1] * most, MIN_EXPONENTIAL)
        tied_low, tied_high = least / (least + others(most)), most / (most + others(least))
        # The size of scores is at most 2^17 (`attention_error`), so exponents are off by less than 1e-10, and masses by
        # less than 1e-9. A bound that is 0 / 0 is NaN, which `fmax` and `fmin` ignore.
        low, high = np.fmax(low, tied_low - 1e-9), np.fmin(high, tied_high + 1e-9)
    low, high = np.maximum(low, 1 - others(high) - 1e-12), np.minimum(high, 1 - others(low) + 1e-12)
    return regions._replace(low=low, high=high).at(np.asarray((low <= high).all((1, 2))))


def result(net: Net, i: int, heads: Heads, regions: Regions, error: float) -> Form:
    """Return the result of layer i at the last position, for all masses of each region and all inputs of its piece.

    In each head, one kind u is left out: its mass is 1 minus all other masses. So the head's output is value_u plus the
    sum of m_v (value_v - value_u) over all other kinds v. The deviation of each m_v from the middle of its bounds is an
    input of the form.
    """
    (count, num_heads, _), weights = regions.low.shape, net.weights
    value = heads.center.swapaxes(0, 1)  # [H, K, E]
    middle, radius = (regions.low + regions.high) / 2, (regions.high - regions.low) / 2
    left_out = radius.argmax(-1)
    base = value[np.arange(num_heads), left_out]
    ahead = value - base[:, :, None]  # [N, H, K, E], with zeros for the kind that is left out
    output = base + (middle[..., None] * ahead).sum(2)
    slopes = [by_inputs(radius[..., None, None] * ahead[..., None])]
    # A value of kind v differs from its center by sides_v a, with |a| <= 1. In the mean, kind v adds at most
    # high_v sides_v a. Errors of weights are relative to the values. The term 1e-12 covers the rounding of float64.
    rest = np.broadcast_to((error + 1e-12) * heads.size.max(0), output.shape)
    sides = np.swapaxes(heads.sides, 0, 1)  # [H, K, E, E]
    if heads.inputs.center.shape[1] > 1:
        slopes.append(by_inputs(regions.high[..., None, None] * sides))
    else:  # Sides come from rounding alone, and a mean of sides is at most the largest side.
        rest = rest + np.abs(sides).sum(-1).max(1)
    attended = Form(output.reshape(count, -1), np.concatenate(slopes), rest.reshape(count, -1))
    before = heads.inputs.each(lambda a: a[..., regions.last, regions.piece, :])
    # A rest only grows in later matrices, while an input can cancel. So rests become inputs before each matrix.
    before = before.owned(len(attended.slope))
    mixed = attended.owned(len(before.slope))
    state = total(weights, (mixed, f"layers.{i}.output.{{}}"), (before, ""))
    normed = state.normed(weights, f"layers.{i}.norms.1")
    wide = total(weights, (normed.owned(len(normed.slope)), f"layers.{i}.widen.{{}}"))
    # GELU(x) = x (1 + tanh u) / 2, where u is a polynomial in x. For x < 0 the sum 1 + tanh cancels, so the error is
    # relative to x.
    hidden = wide.smooth(*TANH_GELU).rounded(wide.size, FUNCTION)
    return total(weights, (hidden.owned(len(hidden.slope)), f"layers.{i}.narrow.{{}}"), (state, ""))


def by_inputs(sides: Array) -> Array:
    """Return enclosures' sides [N, H, K, E, S] as slopes of H K S inputs; each changes the E numbers of its head."""
    count, num_heads, size, head_dim, num_sides = sides.shape
    slope = np.zeros((num_heads, size, num_sides, count, num_heads, head_dim))
    for head in range(num_heads):
        slope[head, :, :, :, head] = sides[:, head].transpose(1, 3, 0, 2)
    return slope.reshape(num_heads * size * num_sides, count, num_heads * head_dim)


def check_rules(net: Net, sets: Tensors, task: GridTask) -> str:
    """Check a grid recurrence at temperature 0: its rule gives the task's numbers on all pairs of strings.

    The net takes the class of the largest logit, looks up classes, and adds integers. None of these operations rounds.
    Let y be the sum. The logits of answers k are -s (k - y)^2 with a factor s > 0. If y is an answer, its logit is the
    largest.

    The net's rule and the task's rule both pass a class over every edge of the grid. A path from the lower left corner
    to the upper right corner is a sequence of edges. Each edge has the letter of its column or row, and one class of
    each rule. The first path goes up the left border and then along the upper border.

    If an edge upwards and then an edge to the right follow each other in a path, a cell lies between them. The cell
    replaces these two edges by its two other edges: an edge to the right and then an edge upwards. All paths arise from
    the first path in this way. `follows[x, y]` is True if edge y can follow edge x in a path. At first only edges of
    the borders follow each other, and replacements add pairs until no pair is new. If both rules have the same number
    on each edge to the right that a cell makes, their sums over the last row are equal.
    """
    demand(net.name == "grid-recurrence" and not sets, "expected a grid-recurrence, and no sets")
    rule, size = rule_of(net), net.num_symbols
    demand(rule.per_row == task.per_row, "its rule adds another number for each row than the task's rule")
    cells = rule.cells
    shapes = [(size, cells.shape[axis], task.cells.shape[axis]) for axis in (0, 1)]
    num_below, num_upward = map(math.prod, shapes)
    count = num_below + num_upward
    demand_limit(count * count, MAX_ELEMENTS, "pairs of edges of its rule and the task's")
    # An edge, to the right or upwards, has a letter, a class of the net's rule and a class of the task's rule.
    (b, p, p2), (a, q, q2) = (np.indices(shape).reshape(3, -1) for shape in shapes)
    at_top, at_left = (p == rule.top) & (p2 == task.top), (q == rule.left) & (q2 == task.left)
    corner = (p[None], q[:, None], a[:, None], b[None]), (p2[None], q2[:, None], a[:, None], b[None])
    made, made2 = cells[corner[0]], task.cells[corner[1]]
    lower = np.ravel_multi_index((b[None] + 0 * made[..., 0], made[..., 0], made2[..., 0]), shapes[0]) + num_upward
    right = np.ravel_multi_index((a[:, None] + 0 * made[..., 1], made[..., 1], made2[..., 1]), shapes[1])
    is_up, is_made = np.arange(count) < num_upward, np.zeros(count, np.bool_)
    border = np.concatenate([at_left, at_top])
    # At first, edges follow each other only in the first path, up the left border and then along the upper border.
    follows = border[:, None] & border & (is_up[:, None] | ~is_up)
    num_found, num_rounds = -1, 0
    while num_found < (num_found := int(follows.sum())):
        num_rounds += 1
        demand_limit(num_rounds * 2 * count**3, MAX_CLOSURE, "multiplications until no pair of edges is new")
        upward, over = np.nonzero(follows[:num_upward, num_upward:])
        low = lower[upward, over]
        high = right[upward, over]
        over = over + num_upward
        is_made[low] = True
        follows[low, high] = True
        # The cell's lower edge replaces the edge upwards as first edge, so the same edges can precede it. The cell's
        # right edge replaces the edge to the right as second edge, so the same edges can follow it.
        to_lower = np.zeros((count, count), np.float32)
        to_right = np.zeros((count, count), np.float32)
        to_lower[upward, low] = to_right[high, over] = 1
        # A sum of zeros and ones is above 0 if one of them is 1, however float32 rounds.
        follows |= (follows.astype(np.float32) @ to_lower > 0) | (to_right @ follows.astype(np.float32) > 0)
    differs = rule.numbers[p] != task.numbers[p2]
    demand(
        not np.any(np.asarray(differs) & is_made[num_upward:]),
        "its rule and the task's are not shown to give the same numbers",
    )
    return f"{int(is_made.sum()):,} edges, all that a path over a grid can have, get the same number from both rules"


def rule_of(net: Net) -> GridTask:
    """Return the rule of a net; reject a tie for the largest logit of a border, a relation or a cell that can occur."""
    weights = net.weights
    demand(weights["cell.temperature"] == 0 and weights["cell.rounding"] == 1, "expected a net at temperature 0")
    relations, relations_sure = largest_alone(weights["cell.relations"])
    table, table_sure = largest_alone(weights["cell.table"])
    (top, is_top), (left, is_left) = (largest_alone(weights[f"cell.{name}"]) for name in ("top", "left"))
    demand(
        relations_sure.all() and bool(is_top) and bool(is_left),
        "two classes of a border or relation have the same logit",
    )
    cells, is_sure = table[:, :, relations], np.asarray(table_sure[:, :, relations])
    # Only classes that the borders and cells pass on can occur. Cells of other classes may have ties.
    down, right = {int(top)}, {int(left)}
    count = 0
    while count < (count := len(down) + len(right)):
        reached = np.ix_(sorted(down), sorted(right))
        demand(is_sure[reached].all(), "two classes of a cell have the same logit")
        down |= {*cells[reached][..., 0].ravel().tolist()}
        right |= {*cells[reached][..., 1].ravel().tolist()}
    # torch.round and np.rint both round halves to the even neighbor, so these integers are the net's. The net adds them
    # as int64, and no string that fits on a computer is long enough for an overflow.
    numbers, per_row = np.rint(weights["cell.per_class"]), np.rint(weights["cell.per_row"])
    is_exact = max(np.abs(numbers).max(), np.abs(per_row)) < 2**24
    demand(is_exact, "expected numbers of classes below 2^24, which float32 represents exactly")
    return GridTask([], cells, int(top), int(left), numbers.astype(np.int64), int(per_row))


def largest_alone(logits: Array) -> tuple[Array, Array]:
    """Return the index of the largest number along the last axis, and True if no other number is equal to it."""
    largest = logits.max(-1, keepdims=True)
    return logits.argmax(-1), np.asarray((logits == largest).sum(-1) == 1)


DECISIVE = ("format", "level", "max_length", "task", "model", "net", "classes", "transducer", "evidence")
"""The keys of a certificate that this program uses. In `evidence`, it reads only the method."""

OTHER = (
    *(
        "claim",
        "weights",
        "reason",
        "machine",
        "laws",
        "closure",
        "tested",
        "trace_agreement",
        "counterexample",
        "kernels",
    ),
    *("independently_checked", "seconds", "versions", "digest"),
)
"""The other keys of a certificate, whose values this program does not use."""

BOUNDED: dict[str, Callable[[Net, Tensors, Task, int], str]] = {
    "isometries": check_isometries,
    "attention": check_attention,
}
"""The methods that reach level bounded. Each method proves the claim up to a largest length."""

METHODS: dict[str, Callable[[Net, Tensors, Any], str]] = {
    "enclosures": check_enclosures,
    "codes": check_codes,
    "exact": check_exact,
    "intervals": check_intervals,
    "states": check_states,
    "choices": check_choices,
    "rules": check_rules,
}
"""The methods that reach level proved."""


@np.errstate(all="ignore")  # overflow and NaN are results, which no comparison accepts
def check(certificate: Content, proof: bytes) -> str:
    """Check a proof about the net of a certificate, and return the result as a sentence.

    Raises:
        Rejected: the proof does not show that the certificate's claim is true.
    """
    try:
        given = mapping(certificate, "certificate", DECISIVE, OTHER)
        whole(given["format"], "format of the certificate", FORMAT, FORMAT)
        evidence = given["evidence"]
        demand(type(evidence) is dict and type(evidence.get("method")) is str, "expected a method of proof as evidence")
        method, classes = evidence["method"], texts(given["classes"], "classes")
        weights, sets = read(proof)
        # Settings and weights come from two files. The digest shows that they belong together before either is used.
        demand(net_digest(given["model"], weights) == given["net"], "expected the net of the certificate, got another")
        is_grid = method == "rules"
        task = parse_grid(given["transducer"]) if is_grid else parse_transducer(given["transducer"], len(classes))
        net = parse_net(given["model"], weights, len(task.symbols), len(classes))
        if is_grid:
            demand(classes == [*map(str, range(len(classes)))], "expected the integers from 0 as classes")
        if method in BOUNDED:
            demand(given["level"] == "bounded", "expected a certificate of level bounded")
            max_length = whole(given["max_length"], "max_length", 1, MAX_LENGTH)
            assert isinstance(task, Task)  # only the method `rules` has another kind of task
            return BOUNDED[method](net, sets, task, max_length)
        demand(given["level"] == "proved", "expected a certificate of level proved")
        demand(given["max_length"] is None, "expected no largest length at level proved")
        demand(method in METHODS, f"expected a method among {', '.join([*METHODS, *BOUNDED])}, got {method[:60]!r}")
        return METHODS[method](net, sets, task)
    # Files are not trusted and can break any step. Each of these errors must reject the proof, not end the program.
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, MemoryError, RecursionError) as error:
        raise Rejected(f"proof: damaged ({type(error).__name__}: {error!s:.200})") from None


def described(description: Content) -> str:
    """Return the name of a net or a task with all its settings, including empty settings."""
    # A name that is not a plain word could contain line breaks, and imitate lines of the checker's own output.
    words = {name if re.fullmatch(r"[a-z_]\w*", name) else repr(name): value for name, value in description.items()}
    settings = ", ".join(f"{name}={value!r}" for name, value in words.items() if name != "name")
    return f"{description.get('name')!r} with {settings or 'no settings'}"


def statement(certificate: Content, result: str) -> str:
    """Return the lines that the program prints: the claim, the net, the task, and the result of the method."""
    symbols = certificate["transducer"].get("symbols", certificate["transducer"].get("letters"))
    classes, max_length = certificate["classes"], certificate["max_length"]
    lengths = "" if max_length is None else f" of up to {max_length:,} symbols"
    answers = ", ".join(map(repr, classes[:20])) + (", ..." if len(classes) > 20 else "")
    return "\n".join(
        [
            f"The net is right on every nonempty string{lengths} to which the task gives one of these answers: "
            f"{answers}.",
            f"net: {described(certificate['model'])}; digest {certificate['net']}",
            f"task: {described(certificate['task'])}; symbols {', '.join(map(repr, symbols[:50]))}",
            f"method {certificate['evidence']['method']}: {result}",
        ]
    )


def read_certificate(content: bytes) -> Content:
    """Return the content of a certificate's file; reject the file if its digest does not fit its content."""
    demand_limit(len(content), MAX_FILE, "bytes of a certificate")
    given = parse_json(content, "the certificate")
    demand(type(given) is dict and type(given.get("task")) is dict, "expected a certificate")
    rest = {name: value for name, value in given.items() if name != "digest"}
    digest = hashlib.blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=8).hexdigest()
    demand(given.get("digest") == digest, "expected a certificate as it was written, got an edited one")
    return dict(given)


USAGE = """usage: python checker.py CERTIFICATE PROOF

CERTIFICATE is the JSON file of a certificate, and PROOF is the .safetensors file next to it.
Exit codes: 0 if the proof is accepted; 1 if it is rejected, or if a file is missing or cannot be read."""


def main(arguments: list[str]) -> None:
    if arguments in (["-h"], ["--help"]):
        sys.stdout.write(USAGE + "\n")
        return
    try:
        certificate, proof = (Path(name).read_bytes() for name in arguments)
        given = read_certificate(certificate)
        sys.stdout.write(statement(given, check(given, proof)) + "\n")
    except (Rejected, OSError, ValueError) as problem:
        sys.exit(f"{problem} (python checker.py CERTIFICATE PROOF)")


if __name__ == "__main__":
    main(sys.argv[1:])
