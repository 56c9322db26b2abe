"""Check a proof that a net is right at every length: NumPy alone, and no other code of this package.

    python checker.py CERTIFICATE PROOF

A proof holds the weights, a machine, and a set of states for each of its classes. Shown is: the machine answers every
string as the certificate's transducer does; from the set of a class each step leads, whatever float32 rounds, into that
of the next; in the sets that strings end in, the answer is the machine's. By induction the net is right everywhere.
Taken on trust: that formulas are the net's and the transducer is its task's, that a sum of n terms, in any order, is
wrong by at most n + 2 units of 2^-24 of the sum of their sizes, and an elementwise function by at most `FUNCTION`.
Source: de Figueiredo & Stolfi, "Affine arithmetic: concepts and applications" (2004), for the images of sets.
"""

import hashlib
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator
from functools import cache, reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Tensors = dict[str, Array]
Content = dict[str, Any]
Node = tuple[int, tuple[int, ...]]

UNIT, FUNCTION, TINY, LARGEST, WINDOWS, IGNORE = 2.0**-24 * 1.01, 20, 1e-25, 1e15, 16, -100
GRID, ERF = np.linspace(-1, 1, 17), np.frompyfunc(math.erf, 1, 1)
TANH, SIGMOID = (np.tanh, 0.77), (lambda x: 1 / (1 + np.exp(-x)), 0.0963)
SOFTPLUS, GELU = (lambda x: np.logaddexp(x, 0), 0.25), (lambda x: x * (1 + ERF(x / 2**0.5).astype(float)) / 2, 0.798)


class Rejected(Exception):
    """What a proof does not show."""


def demand(is_so: bool | np.bool_, sentence: str) -> None:
    if not is_so:
        raise Rejected(f"proof: {sentence}")


class Form(NamedTuple):
    """All ``center + sum_p d_p slope[p] + e`` with |d_p| <= 1 and |e| <= rest, number by number: slope is [P, ...]."""

    center: Array
    slope: Array
    rest: Array

    @property
    def radius(self) -> Array:
        return np.asarray(np.abs(self.slope).sum(0) + self.rest)

    @property
    def size(self) -> Array:
        return np.abs(self.center) + self.radius

    @property
    def ends(self) -> tuple[Array, Array]:
        return self.center - self.radius, self.center + self.radius

    def each(self, change: Callable[[Array], Array]) -> "Form":
        return Form(*map(change, self))

    def part(self, start: int | None, stop: int | None) -> "Form":
        return self.each(lambda a: a[..., start:stop])

    def by_head(self, heads: int) -> "Form":
        return self.each(lambda a: a.reshape(*a.shape[:-1], heads, -1))

    @property
    def is_whole(self) -> bool:
        return not (self.radius.any() or (self.center % 1).any())  # below 2^24 float32 does not round known integers

    def rounded(self, size: Array, units: int, is_whole: bool = False) -> "Form":
        slack = np.where(size < LARGEST, units * UNIT * (size + TINY), np.inf)
        return self._replace(rest=self.rest + np.where(is_whole & (size < 2**24), 0, slack))

    def plus(self, other: "Form", sign: int = 1) -> "Form":
        slope = self.padded(len(other.slope)) + sign * other.padded(len(self.slope))
        total = Form(self.center + sign * other.center, slope, self.rest + other.rest)
        return total.rounded(self.size + other.size, 1, self.is_whole and other.is_whole)

    def times(self, other: "Form") -> "Form":
        if not len(self.slope) + len(other.slope):
            corners = np.stack([x * y for x in self.ends for y in other.ends])
            return between(corners.min(0), corners.max(0)).rounded(self.size * other.size, 1)
        slope = other.center * self.padded(len(other.slope)) + self.center * other.padded(len(self.slope))
        rest = np.abs(self.center) * other.rest + np.abs(other.center) * self.rest + self.radius * other.radius
        return Form(self.center * other.center, slope, rest).rounded(self.size * other.size, 1)

    def scaled(self, factor: Any, by: Any = 0.0) -> "Form":
        """Times a factor, plus another number, both known exactly."""
        form = Form(self.center * factor + by, self.slope * factor, self.rest * np.abs(factor))
        return form.rounded(self.size * np.abs(factor) + form.size, 2)

    def sum(self, axis: int) -> "Form":
        size = self.size.sum(axis, keepdims=True)
        return self.each(lambda a: a.sum(axis, keepdims=True)).rounded(size, self.center.shape[axis] + 1)

    def smooth(self, f: Callable[[Array], Array], curvature: Any) -> "Form":
        """f, where |f''| is at most `curvature`: seen at 17 points, between which it bends little, about its chord."""
        radius = self.radius
        points = self.center + radius * GRID.reshape(-1, *[1] * radius.ndim)
        values = f(points)
        if not len(self.slope):  # f is one that rises, or falls, wherever it is used here
            return between(values.min(0), values.max(0)).rounded(np.abs(values).max(0), FUNCTION)
        chord = np.where(radius > 0, (values[-1] - values[0]) / (2 * radius), 0.0)
        off = values - chord * points
        bent = curvature * radius**2 / 512 + 1e-14 * (np.abs(values) + np.abs(off)).max(0)
        rest = np.abs(chord) * self.rest + (off.max(0) - off.min(0)) / 2 + bent
        image = Form(chord * self.center + (off.max(0) + off.min(0)) / 2, chord * self.slope, rest)
        return image.rounded(np.abs(values).max(0), FUNCTION)

    def relu(self) -> "Form":
        return between(*(np.maximum(end, 0) for end in self.ends))

    def normed(self, weights: Tensors, name: str = "") -> "Form":
        """LayerNorm over the last axis, with the weight and bias of that name, if any."""
        count, largest = self.center.shape[-1], self.size.max(-1, keepdims=True)
        deviation = self.plus(self.sum(-1).scaled(1 / count), -1).rounded(largest, FUNCTION)
        c = deviation.center
        half = (deviation.radius**2).sum(-1, keepdims=True) / 2  # |c + v|^2 - |c|^2 - 2 c.v is between 0 and twice that
        square = Form(c**2, 2 * c * deviation.slope, 2 * np.abs(c) * deviation.rest).sum(-1)
        square = Form(square.center + half, square.slope, square.rest + half)
        square = square.rounded((deviation.size**2).sum(-1, keepdims=True), 2 * count + 4).scaled(1 / count, 1e-5)
        scale = square.smooth(lambda x: 1 / np.sqrt(x), 0.75 * np.maximum(square.ends[0], 0) ** -2.5)
        form = deviation.times(scale)
        return form.scaled(*(weights[name.format(part)] for part in ("weight", "bias"))) if name else form

    def owned(self, start: int) -> "Form":
        """The same set, with an input for what is left of each number of the last axis, from input `start` on."""
        width = self.center.shape[-1]
        own = np.eye(width).reshape(width, *[1] * (self.rest.ndim - 1), width) * self.rest
        return Form(self.center, np.concatenate([self.padded(start), own]), np.zeros_like(self.rest))

    def padded(self, count: int) -> Array:
        """Its slope for that number of inputs or more."""
        return np.concatenate([self.slope, np.zeros((max(0, count - len(self.slope)), *self.center.shape))])


def between(low: Array, high: Array | None = None) -> Form:
    low, high = low.astype(np.float64), (low if high is None else high).astype(np.float64)
    return Form((low + high) / 2, np.zeros((0, *low.shape)), (high - low) / 2 * (1 + 1e-14))


def total(weights: Tensors, *products: tuple[Form, str], rows: slice = slice(None)) -> Form:
    """The sum of forms times these rows of matrices, plus biases, in any order; without a name a form as it is."""
    parts, size, count, is_whole = [], np.zeros(1), 2, True
    for form, name in products:
        matrix = weights[name.format("weight")][rows].astype(np.float64).T if name else np.eye(form.center.shape[-1])
        shift = weights[bias][rows].astype(np.float64) if (bias := name.format("bias")) in weights else np.zeros(1)
        parts.append(Form(form.center @ matrix + shift, form.slope @ matrix, form.rest @ np.abs(matrix)))
        size, count = size + form.size @ np.abs(matrix) + np.abs(shift), count + len(matrix)
        is_whole &= form.is_whole and between(matrix).is_whole and between(shift).is_whole
    return reduce(Form.plus, parts).rounded(size, count, is_whole)


def demand_lead(weights: Tensors, name: str, features: Form, answers: Array) -> None:
    """The logit of each one's answer is ahead of every other."""
    logits, rows = total(weights, (features, name)), np.arange(len(answers))
    lead = logits.each(lambda a: a[..., rows, answers][..., None] - a)
    slack = np.abs(lead.slope).sum(0) + logits.rest + logits.rest[rows, answers][:, None]
    is_ahead = (np.arange(logits.center.shape[1]) == answers[:, None]) | (lead.center > slack)
    demand((is_ahead & np.isfinite(slack)).all(), "a set of its holds states of several answers")


def ends_after_symbols(sets: Tensors, task: Content) -> set[tuple[int, int]]:
    """Of all strings, for a machine that reads them symbol by symbol."""
    table = sets["table"]
    demand(0 <= table.min() <= table.max() < len(table), "expected one class for each class and symbol")
    seen, queue = set[tuple[int, int]](), [(int(sets["start"]), task["start"])]
    for klass, state in queue:
        new = set(zip(table[klass].tolist(), task["table"][state], strict=True)) - seen
        seen |= new
        queue += new
    return seen


def ends_at_roots(sets: Tensors, task: Content) -> Iterator[tuple[int, int]]:
    """Of all strings, for a machine that merges windows, oldest part first: class 0 is a pad, class 1 + v symbol v.

    A node is its class and where its symbols lead from each state of the task; nodes of a level are a pad, those that
    begin with pads (mixed) and those of symbols alone (full), until levels repeat.
    """
    table, chunk, moves = sets["table"], sets["table"].ndim, np.array(task["table"])
    demand(-1 <= table.min() <= table.max() < len(table), "expected a class for each window")

    @cache
    def merge(window: tuple[Node, ...]) -> Node:
        target = int(table[tuple(klass for klass, _ in window)])
        demand(target >= 0, "its table lacks a window that some string shows")
        return target, tuple(reduce(lambda state, node: node[1][state], window, state) for state in range(len(moves)))

    pad: Node = (0, tuple(range(len(moves))))
    full = frozenset((1 + v, tuple(after)) for v, after in enumerate(moves.T.tolist()))
    mixed, levels = frozenset[Node](), set[Any]()
    while (level := (pad, mixed, full)) not in levels:
        padded_nodes = set()
        for pads in range(chunk):
            parts = [[pad]] * pads + [mixed | full if pads else mixed] + [full] * (chunk - 1 - pads)
            nodes = set(map(merge, itertools.product(*parts)))
            if pads < chunk - 1 or not levels:  # else the roots of these strings are below
                yield from ((klass, states[task["start"]]) for klass, states in nodes)
            padded_nodes |= nodes
        levels.add(level)
        full = frozenset(map(merge, itertools.product(full, repeat=chunk)))
        yield from ((klass, states[task["start"]]) for klass, states in full)
        pad, mixed = merge((pad,) * chunk), frozenset(padded_nodes)


def merged(weights: Tensors, heads: int, parts: list[Form]) -> Form:
    """The states of windows [M, D] from those of their parts, oldest first: RegularGPT's layer of variant merge."""
    layer = {name.removeprefix("layers.0."): values for name, values in weights.items()}
    width = parts[0].center.shape[-1]
    starts = itertools.count(len(parts[0].slope), width)
    states = [part.scaled(layer["gain"]).smooth(*TANH).owned(next(starts)) for part in reversed(parts)]
    query = total(layer, (states[0], "to_query.{}")).by_head(heads)
    both = [total(layer, (state, "to_key_value.{}")) for state in states]
    keys, values = ([form.part(*half).by_head(heads) for form in both] for half in ((0, width), (width, None)))
    size = (width // heads) ** -0.5
    scores = [query.times(key).sum(-1).scaled(size, by[:, None]) for key, by in zip(keys, layer["bias"].T, strict=True)]
    mixed, score = values[0], scores[0]
    for value, other in zip(values[1:], scores[1:], strict=True):
        ahead = score.plus(other, -1)
        share, apart = ahead.smooth(*SIGMOID), mixed.plus(value, -1)  # weights are rounded each for itself
        mixed = value.plus(share.times(apart)).rounded(value.size + mixed.size, FUNCTION)
        score = other.plus(ahead.smooth(*SOFTPLUS))
    mixed = mixed.each(lambda a: a.reshape(*a.shape[:-2], width)).owned(len(mixed.slope))
    state = total(layer, (mixed, "to_output.{}"))
    for i in range(2):
        normed = state.normed(layer, f"norms.{i}.{{}}").owned(len(state.slope))
        wide = total(layer, (normed, f"feed_forwards.{i}.widen.{{}}"))
        hidden = wide.smooth(*GELU).rounded(wide.size, FUNCTION).owned(len(normed.slope))  # 1 + erf cancels for x < 0
        state = state.plus(total(layer, (hidden, f"feed_forwards.{i}.narrow.{{}}")))
    return state.normed(layer)


def check_enclosures(weights: Tensors, sets: Tensors, model: Content, supervised: Array) -> None:
    """Sets ``center + axes @ (radius * d)`` with |d| <= 1, whose axes are orthonormal up to rounding."""
    expected = {"name": "regular-gpt", "variant": "merge", "thickness": 1, "chunk_size": sets["table"].ndim}
    demand(expected.items() <= model.items() and not model.get("lower_chunk_sizes"), "expected merges as in its table")
    center, axes, radius = (sets[name].astype(np.float64) for name in ("center", "axes", "radius"))
    width, chunk, table, leaves = center.shape[1], sets["table"].ndim, sets["table"], weights["embedding.weight"]
    demand(np.array_equal(center[: 1 + model["num_symbols"]], leaves), "expected the leaves as its first classes")
    is_orthonormal = np.abs(axes.swapaxes(1, 2) @ axes - np.eye(width)).max() < 1e-12
    demand((radius >= 0).all() and is_orthonormal, "expected radii and orthonormal axes")
    slack = 1e-9 * (1 + np.linalg.norm(radius, axis=1, keepdims=True))  # of axes, and of float64

    def part_of(classes: Array, index: int) -> Form:
        slope = np.zeros((chunk * width, len(classes), width))
        slope[index * width : (index + 1) * width] = np.moveaxis(axes[classes] * radius[classes][:, None], -1, 0)
        return Form(center[classes], slope, np.broadcast_to(slack[classes], (len(classes), width)))

    for windows in np.array_split(np.argwhere(table >= 0), -(-(table >= 0).sum() // WINDOWS)):
        targets = table[tuple(windows.T)]
        image = merged(weights, model["num_heads"], [part_of(windows[:, i], i) for i in range(chunk)])
        turned, slope = axes[targets].swapaxes(1, 2), np.moveaxis(image.slope, 0, -1)
        offset = (turned @ (image.center - center[targets])[..., None])[..., 0]
        reach = np.abs(turned @ slope).sum(-1) + (np.abs(turned) @ image.rest[..., None])[..., 0]
        demand((np.abs(offset) + reach + slack[targets] <= radius[targets]).all(), "a window leads out of its set")
    states = part_of(supervised, 0).normed(weights, "readout.0.{}")
    demand_lead(weights, "readout.1.{}", states, sets["outputs"][supervised])


def step(weights: Tensors, model: Content, states: Form, symbol: int) -> Form:
    """The states [K, Z] of torch's rnn, gru or lstm after a symbol."""
    if model["name"] == "rnn":
        entered = between(weights["recurrence.weight_ih_l0"][None, :, symbol])
        after = total(weights, (states, "recurrence.{}_hh_l0"), (entered, ""))
        return after.smooth(*TANH) if model["activation"] == "tanh" else after.relu()
    width, is_lstm = model["d_model"], model["name"] == "lstm"
    features, parts = between(weights["embedding.weight"][symbol][None]), []
    for i, start in enumerate(range(0, states.center.shape[-1] - width, (1 + is_lstm) * width)):
        hidden, before = (states.part(start + k * width, start + (k + 1) * width) for k in (0, 1))
        entering = features.owned(0).normed(weights, f"norms.{i}.{{}}"), f"layers.{i}.cell.{{}}_ih_l0"
        both = between(*total(weights, entering, of_hidden := (hidden, f"layers.{i}.cell.{{}}_hh_l0")).ends)
        gates = [both.part(k * width, (k + 1) * width) for k in range(3 + is_lstm)]
        if is_lstm:
            enter, forget, content, leave = gates
            kept = forget.smooth(*SIGMOID).times(before).plus(enter.smooth(*SIGMOID).times(content.smooth(*TANH)))
            output = leave.smooth(*SIGMOID).times(kept.smooth(*TANH))
            parts += [output, kept]
        else:
            reset, update = (gate.smooth(*SIGMOID) for gate in gates[:2])
            scaled = reset.times(total(weights, of_hidden, rows=slice(2 * width, None)))
            new = total(weights, entering, (scaled, ""), rows=slice(2 * width, None))
            new = between(*new.ends).smooth(*TANH)
            shares = [np.clip(end, 0, 1) for end in update.ends]  # (1 - s) n + s h is linear in s, rises in n and h
            low, high = ([(1 - s) * n + s * h for s in shares] for n, h in zip(new.ends, hidden.ends, strict=True))
            output = between(np.minimum(*low), np.maximum(*high)).rounded(new.size + hidden.size, FUNCTION)
            parts.append(output)
        features = features.plus(output)
    return Form(*(np.concatenate(alike, -1) for alike in zip(*parts, features, strict=True)))


def demand_answers(weights: Tensors, width: int, states: Form, answers: Array) -> None:
    """Of a read-out with a norm and a hidden layer of ReLU, or of one linear map."""
    if "readout.weight" in weights:
        return demand_lead(weights, "readout.{}", states, answers)
    normed = states.part(-width, None).owned(0).normed(weights, "readout.1.{}")
    return demand_lead(weights, "readout.4.{}", total(weights, (normed, "readout.2.{}")).relu(), answers)


def check_intervals(weights: Tensors, sets: Tensors, model: Content, supervised: Array) -> None:
    """Sets of states between `low` and `high`."""
    low, high, start = sets["low"], sets["high"], int(sets["start"])
    count = {"rnn": 0, "gru": 1, "lstm": 2}.get(model["name"], math.nan) * model.get("num_layers", 1) + 1
    demand(low.shape[1] == count * model.get("d_model", 0), "expected bounds of an rnn, gru or lstm")
    first = weights.get("first_state", np.zeros(low.shape[1]))
    demand(((low[start] <= first) & (first <= high[start])).all(), "its set of the start lacks the first state")
    for symbol, targets in zip(range(model["num_symbols"]), sets["table"].T, strict=True):
        lowest, highest = step(weights, model, between(low, high), symbol).ends
        demand(((lowest >= low[targets]) & (highest <= high[targets])).all(), "a step leads out of its set")
    demand_answers(weights, model["d_model"], between(low[supervised], high[supervised]), sets["outputs"][supervised])


def check_states(weights: Tensors, sets: Tensors, model: Content, supervised: Array) -> None:
    """States of one-hot vectors: `states` has the position of the 1 in each block."""
    kind = {"name": "block-linear-rnn", "columns": "stochastic", "num_layers": 1}
    demand(kind.items() <= model.items(), "expected a BlockLinearRNN of one layer with one-hot columns")
    states, width, size = sets["states"], model["d_model"], model["block_dim"]
    features = between(weights["embedding.weight"])
    if model["hidden"]:
        hidden = total(weights, (features.normed(weights, "norms.0.{}"), "layers.0.transition_map.0.{}")).relu()
        features = total(weights, (hidden, "layers.0.transition_map.2.{}"))
    columns = features.each(lambda a: a.reshape(*a.shape[:-1], width // size, size, size).swapaxes(-1, -2))
    first, temperature = between(weights["layers.0.first_state"]), float(weights["layers.0.temperature"])
    never_seen = (112 if weights["embedding.weight"].itemsize == 4 else 770) * (temperature > 0)  # where softmax is 0
    for logits in [one.scaled(1 / temperature) if temperature else one for one in (columns, first)]:
        largest = logits.center.argmax(-1)[..., None]
        lead = np.take_along_axis(logits.center - logits.radius, largest, -1) - logits.center - logits.radius
        is_sure = (lead > never_seen) | ((np.arange(size) == largest) & ~np.isnan(lead))
        demand(temperature >= 0 and is_sure.all(), "rounding may decide which vector one is")
    blocks, maps = np.arange(width // size), columns.center.argmax(-1)
    demand(np.array_equal(states[int(sets["start"])], first.center.argmax(-1)), "it starts in another state")
    for symbol, targets in zip(range(model["num_symbols"]), sets["table"].T, strict=True):
        demand(np.array_equal(states[targets], maps[symbol][blocks, states]), "a step leads to another state")
    if model["read"] == "mixture":  # a probability of one state, whose logarithm is a few units wrong
        logits = between(weights["readout.weight"][states[supervised, 0]])
        count, spread = logits.center.shape[-1], np.ptp(logits.center, -1, keepdims=True)
        logits = logits.rounded(1 + spread + math.log(count), 2 * FUNCTION + 2 * count)
        demand_lead({"weight": np.eye(count)}, "{}", logits, sets["outputs"][supervised])
    else:
        one_hot = between(np.eye(size)[states[supervised]].reshape(len(supervised), width))
        demand_answers(weights, width, one_hot, sets["outputs"][supervised])


CHECKS: dict[str, Any] = {"enclosures": (ends_at_roots, check_enclosures)}
CHECKS |= {"intervals": (ends_after_symbols, check_intervals), "states": (ends_after_symbols, check_states)}


def read(content: bytes) -> tuple[Tensors, Tensors, str]:
    """Weights, sets, and the name that a certificate has for these weights."""
    types = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}
    start, tensors = 8 + int.from_bytes(content[:8], "little"), {}
    header, body = json.loads(content[8:start]), content[start:]
    names, digest = json.loads(header.pop("__metadata__")["weights"]), hashlib.blake2b(digest_size=16)
    for name, entry in header.items():
        numbers = body[slice(*entry["data_offsets"])]
        tensors[name] = np.frombuffer(numbers, types[entry["dtype"]]).reshape(entry["shape"])
    demand(not any(set(name) & set(" \n") for name in names), "expected names of weights without spaces, got others")
    weights = {name: tensors["weights." + name] for name in names}
    for name, array in weights.items():
        digest.update(f"{name} torch.{array.dtype.name} {list(array.shape)}\n".encode() + array.tobytes())
    sets = {name.removeprefix("sets."): array for name, array in tensors.items() if name.startswith("sets.")}
    return weights, sets, digest.hexdigest()


@np.errstate(all="ignore")
def check(certificate: Content, proof: bytes) -> str:
    """What the content of a proof's file shows of the net that a certificate is about, or a `Rejected`."""
    try:
        weights, sets, digest = read(proof)
        demand(certificate["level"] == "proved", "expected one of a certificate of level proved")
        demand(digest == certificate["weights"], "expected the net that the certificate is about, got another's")
        method, task, table = certificate["evidence"]["method"], certificate["transducer"], sets["table"]
        inputs = weights.get("embedding.weight", weights.get("recurrence.weight_ih_l0", table).T)
        counts = {len(task["symbols"]), *map(len, task["table"]), len(inputs) - (method == "enclosures")}
        is_full = len(counts) == 1 and {*range(len(task["table"]))} >= {state for row in task["table"] for state in row}
        demand(is_full, "expected a step of the transducer, and of the net, for each symbol")
        demand(method in CHECKS, f"those by method {method!r} cannot be checked here (known: {', '.join(CHECKS)})")
        ends_of, check_sets = CHECKS[method]
        ends = {(klass, right) for klass, state in ends_of(sets, task) if (right := task["outputs"][state]) != IGNORE}
        demand(all(sets["outputs"][klass] == right for klass, right in ends), "its machine gives other answers")
        model = certificate["model"] | {"num_symbols": len(task["symbols"])}
        check_sets(weights, sets, model, np.array(sorted({klass for klass, _ in ends})))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, MemoryError, RecursionError) as error:
        raise Rejected(f"proof: damaged, or of another version ({type(error).__name__}: {error})") from None
    return f"{(table >= 0).sum():,} steps lead from {len(table):,} sets of states into one another; answers are right"


if __name__ == "__main__":
    try:
        certificate, proof = (Path(name).read_bytes() for name in sys.argv[1:])
        sys.stdout.write(f"{check(given := json.loads(certificate), proof)}: {given['model']}, {given.get('task')}\n")
    except (Rejected, OSError, ValueError, LookupError) as problem:
        sys.exit(f"{problem} (python checker.py CERTIFICATE PROOF)")
