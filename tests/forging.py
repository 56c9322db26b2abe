"""Ways to change a proof, so that the separate checker has to reject it."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from proved_nets import Arrays, Proof, packed

from lengthwise.conventions import IGNORE

Forged = tuple[Arrays | bytes, dict[str, Any]]
"""The arrays of a proof file, or its content, and the changed parts of its certificate."""

Forge = Callable[[Proof], Iterator[Forged]]

Change = Callable[[np.ndarray], object]


def array(name: str, change: Change, *more: tuple[str, Change]) -> Forge:
    """Change arrays in place, or replace them."""

    def forge(proof: Proof) -> Iterator[Forged]:
        arrays = dict(proof.arrays)
        for key, alter in ((name, change), *more):
            own = arrays[key].copy()
            replaced = alter(own)
            arrays[key] = own if replaced is None else np.asarray(replaced, dtype=own.dtype)
        yield arrays, {}

    return forge


def put(value: float, *index: int) -> Callable[[np.ndarray], None]:
    """Set one number of an array."""

    def change(own: np.ndarray) -> None:
        own[index] = value

    return change


def each_entry(name: str, *values: int) -> Forge:
    """Set each entry of an array, one at a time."""

    def forge(proof: Proof) -> Iterator[Forged]:
        for index in np.ndindex(proof.arrays[name].shape):
            for value in values:
                changed = proof.arrays[name].copy()
                changed[index] = value
                if changed[index] != proof.arrays[name][index]:
                    yield proof.arrays | {name: changed}, {}

    return forge


def each_class(name: str, shift: float) -> Forge:
    """Move the set of each class, one at a time."""

    def forge(proof: Proof) -> Iterator[Forged]:
        for klass in range(len(proof.arrays[name])):
            changed = proof.arrays[name].copy()
            changed[klass] += np.asarray(shift, changed.dtype)
            yield proof.arrays | {name: changed}, {}

    return forge


def certificate(**parts: Any) -> Forge:
    return lambda proof: iter([(proof.arrays, parts)])


def by_method(method: str, **parts: Any) -> Forge:
    """Let another method read the proof."""
    return lambda proof: iter([(proof.arrays, {"evidence": {"method": method}, **parts})])


def model(**settings: Any) -> Forge:
    """Change settings of the net."""
    return lambda proof: iter([(proof.arrays, {"model": proof.certificate["model"] | settings})])


def transducer(change: Callable[[dict[str, Any]], object]) -> Forge:
    """Change a copy of the task's machine in place."""

    def forge(proof: Proof) -> Iterator[Forged]:
        machine = copy.deepcopy(proof.certificate["transducer"])
        change(machine)
        yield proof.arrays, {"transducer": machine}

    return forge


def header(change: Callable[[dict[str, Any]], object], more: bytes = b"") -> Forge:
    """Change the header of the proof file, or replace it, and add bytes at its end."""

    def forge(proof: Proof) -> Iterator[Forged]:
        content = packed(proof.arrays)
        end = 8 + int.from_bytes(content[:8], "little")
        entries = json.loads(content[8:end])
        given = change(entries)
        text = (given if isinstance(given, str) else json.dumps(entries if given is None else given)).encode()
        yield len(text).to_bytes(8, "little") + text + content[end:] + more, {}

    return forge


def first_entry(entries: dict[str, Any], **parts: Any) -> None:
    """Change the entry of a tensor."""
    name = next(name for name in entries if name != "__metadata__")
    entries[name] |= parts


def as_type(name: str, dtype: str) -> Forge:
    return lambda proof: iter([(proof.arrays | {name: proof.arrays[name].astype(dtype)}, {})])


def with_more(name: str) -> Forge:
    return lambda proof: iter([(proof.arrays | {name: np.zeros(1)}, {})])


def without_answers(proof: Proof) -> Iterator[Forged]:
    transducer = proof.certificate["transducer"]
    yield proof.arrays, {"transducer": transducer | {"outputs": [IGNORE] * len(transducer["outputs"])}}


def with_swapped_logits(proof: Proof) -> Iterator[Forged]:
    """Reverse the rows of the last map, so that the two answers are swapped."""
    count = len(proof.certificate["classes"])
    names = [
        name
        for name, values in proof.arrays.items()
        if name.startswith("weights.readout") and name.endswith("weight") and values.shape[0] == count
    ]
    bias = names[-1].removesuffix("weight") + "bias"
    yield (
        proof.arrays | {name: proof.arrays[name][::-1].copy() for name in (names[-1], bias) if name in proof.arrays},
        {},
    )


def with_larger_scores(proof: Proof) -> Iterator[Forged]:
    """Give attention scores of about 10^5, whose exponents rounding changes, and bounds on masses that hold anyway."""
    bias = "weights.layers.0.query_key_value.bias"
    low, high = (proof.arrays[f"sets.{name}"] for name in ("low", "high"))
    sets = {"sets.low": 0 * low, "sets.high": 0 * high + 1}
    yield proof.arrays | sets | {bias: proof.arrays[bias] * np.float32(1e5)}, {}


def with_few_classes(proof: Proof) -> Iterator[Forged]:
    """Give the machine as many classes as there are symbols, so that the pad has no class."""
    count, width = 2, proof.arrays["sets.center"].shape[1]
    shapes = {"center": (count, width), "axes": (count, width, width), "radius": (count, width)}
    small = {f"sets.{name}": np.zeros(shape) for name, shape in shapes.items()}
    yield (
        proof.arrays
        | small
        | {"sets.table": np.zeros((count, count), np.int64), "sets.outputs": np.zeros(count, np.int64)},
        {},
    )


def with_narrow_enclosures(proof: Proof) -> Iterator[Forged]:
    """Shrink every box except the start's to its midpoint."""
    low, high = proof.arrays["sets.low"].copy(), proof.arrays["sets.high"].copy()
    others = np.arange(len(low)) != proof.arrays["sets.start"]
    low[others] = high[others] = (low[others] + high[others]) / 2
    yield proof.arrays | {"sets.low": low, "sets.high": high}, {}


def spaced(entries: dict[str, Any]) -> None:
    """Put a space into the name of a weight."""
    names = json.loads(entries["__metadata__"]["weights"])
    entries["__metadata__"]["weights"] = json.dumps([f"{names[0]} x", *names[1:]])


def of_three_logits(proof: Proof) -> Arrays:
    """The last map of a head with one row more."""
    last = [name for name in proof.arrays if name.startswith("weights.readout") and name.endswith("weight")][-1]
    names = (last, last.removesuffix("weight") + "bias")
    return {name: np.concatenate([proof.arrays[name], proof.arrays[name][:1]]) for name in names}


def renamed(proof: Proof) -> Iterator[Forged]:
    yield proof.arrays, {"classes": [f"n{name}" for name in proof.certificate["classes"]]}


def start_behind_the_last(proof: Proof) -> Iterator[Forged]:
    """The start is the number of classes."""
    yield proof.arrays | {"sets.start": np.array(len(proof.arrays["sets.outputs"]))}, {}


def code_behind_the_last(proof: Proof) -> Iterator[Forged]:
    """A class has the number of codes as its code."""
    codes = proof.arrays["sets.codes"].copy()
    codes[0] = proof.arrays["weights.codebook.count"]
    yield proof.arrays | {"sets.codes": codes}, {}
