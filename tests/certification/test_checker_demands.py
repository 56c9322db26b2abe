"""Each demand of the separate checker's methods rejects a forged proof with its own message."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from proved_nets import NETS, Arrays, Proof, prove

from lengthwise.certification import checker
from lengthwise.certification.checker import Rejected
from lengthwise.conventions import IGNORE

Forged = tuple[Arrays, dict[str, Any]]
"""The arrays of a proof file, and the changed parts of its certificate."""

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


SEVERAL = "a set of its holds states of several answers"
TIED = "two classes of a border or relation have one logit"
LEAVE = "states leave their balls before the largest length"
IN_TABLE = "expected classes of the machine in its table"
AMONG_CLASSES = "expected answers among its classes as outputs"
KEYS, QUERIES = "weights.layers.0.to_key_value.weight", "weights.layers.0.to_query.weight"
TEMPERATURE = "weights.layers.0.temperature"

FORGERIES: list[tuple[str, str, Forge]] = [
    ("expected a task with an answer to some string", "chunks of 2", without_answers),
    ("expected a task with an answer to some string", "rnn", without_answers),
    ("expected a task with an answer to some string", "choices", without_answers),
    ("its machine gives other answers", "codes", array("sets.outputs", lambda own: np.where(own < 0, own, 1 - own))),
    ("its machine gives other answers", "gru", array("sets.outputs", lambda own: np.where(own < 0, own, 1 - own))),
    ("its table lacks a window that some string shows", "compiled tree", each_entry("sets.table", -1)),
    ("expected sets ", "rnn", with_more("sets.x")),
    ("sets: expected ", "rnn", array("sets.table", lambda own: own[:, :1])),
    ("sets: expected ", "rnn", array("sets.low", lambda own: own[:, :1])),
    (IN_TABLE, "rnn", array("sets.table", put(-1, 0, 0))),
    (IN_TABLE, "rnn", array("sets.table", lambda own: put(len(own), -1, -1)(own))),
    (IN_TABLE, "chunks of 2", array("sets.table", put(-2, 0, 0))),
    (IN_TABLE, "chunks of 2", array("sets.table", lambda own: put(len(own), -1, -1)(own))),
    ("expected a class as the start", "rnn", array("sets.start", lambda own: own - 100)),
    ("expected a class as the start", "rnn", array("sets.start", lambda own: own + 100)),
    (AMONG_CLASSES, "rnn", array("sets.outputs", put(2, -1))),
    (AMONG_CLASSES, "rnn", array("sets.outputs", put(-5, -1))),
    (AMONG_CLASSES, "chunks of 2", array("sets.outputs", put(2, 0))),
    ("expected a class for the pad and each symbol", "chunks of 2", with_few_classes),
    ("expected a net of variant 'merge'", "compiled tree", by_method("enclosures")),
    ("expected a net without codes", "codes", by_method("enclosures")),
    ("expected leaves as first classes", "chunks of 2", array("sets.center", lambda own: own + 1)),
    ("expected leaves as first classes", "compiled tree", array("sets.points", lambda own: own + 1)),
    ("expected radii and orthonormal axes", "chunks of 2", array("sets.radius", put(-1e-9, -1, 0))),
    ("expected radii and orthonormal axes", "chunks of 2", array("sets.axes", put(1.5, -1, 0, 0))),
    ("a window leads out of its set", "chunks of 2", array("sets.radius", lambda own: 0 * own)),
    ("a window leads out of its set", "chunks of 2", each_class("sets.center", 3.0)),
    ("expected a net with codes", "chunks of 2", by_method("codes")),
    ("expected codes of the net as its classes", "codes", array("sets.codes", put(-1, 0))),
    ("expected codes of the net as its classes", "codes", array("sets.codes", put(99, 0))),
    ("a window is merged into a leaf", "codes", each_entry("sets.table", 0, 1, 2)),
    ("float32 rounds a merge, which this method does not bound", "compiled tree", array(KEYS, lambda own: own / 3)),
    ("expected a net of variant 'bare'", "chunks of 2", by_method("exact")),
    ("expected keys of 0, by which a head looks at one part", "compiled tree", array(KEYS, put(1.0, 0, 0))),
    ("a head does not look at one part alone", "compiled tree", array("weights.layers.0.bias", lambda own: 0 * own)),
    ("expected queries that are finite numbers", "compiled tree", array(QUERIES, lambda own: own + 1e20)),
    ("a window is merged into another state", "compiled tree", each_class("sets.points", 1.0)),
    (
        "expected boxes whose ends are in order",
        "rnn",
        array("sets.low", lambda own: own + 10.0),
    ),
    (
        "its set of the start lacks the first state",
        "rnn",
        array("sets.low", lambda own: own - 10.0, ("sets.high", lambda own: own - 10.0)),
    ),
    ("a step leads out of its set", "rnn", with_narrow_enclosures),
    ("a step leads out of its set", "wrapped lstm", with_narrow_enclosures),
    ("expected boxes of an rnn, gru, lstm or wrapped net", "one-hot", by_method("intervals")),
    (
        "expected a block-linear-rnn with columns 'stochastic'",
        "reflections",
        by_method("states", level="proved", max_length=None),
    ),
    ("expected positions in blocks as its states", "one-hot", array("sets.states", put(-1, -1, -1))),
    ("expected positions in blocks as its states", "one-hot", array("sets.states", put(99, -1, -1))),
    ("it starts in another state", "one-hot", each_entry("sets.states", 0, 1)),
    ("it starts in another state", "reflections", each_class("sets.points", 1.0)),
    ("a step leads to another state", "one-hot", each_entry("sets.states", 0, 1)),
    ("expected a temperature of at least 0", "one-hot", array(TEMPERATURE, lambda own: -1.0)),
    ("rounding may decide which vector one is", "one-hot", array(TEMPERATURE, lambda own: 1e6)),
    ("expected a pd-ssm, and no sets", "rnn", by_method("choices")),
    ("expected a pd-ssm, and no sets", "choices", with_more("sets.x")),
    (
        "expected a block-linear-rnn with columns 'reflected' and without hidden units",
        "one-hot",
        by_method("isometries", level="bounded", max_length=5),
    ),
    ("expected a temperature of 0", "reflections", array(TEMPERATURE, lambda own: 1.0)),
    (
        "expected directions and a first state whose norms are neither tiny nor huge",
        "reflections",
        array("weights.embedding.weight", lambda own: 0 * own),
    ),
    (LEAVE, "reflections", certificate(max_length=2**40)),
    (LEAVE, "reflections", array("sets.radius", lambda own: 0 * own)),
    ("expected a grid-recurrence, and no sets", "rule", with_more("sets.x")),
    ("its rule has another number for a row", "rule", array("weights.cell.per_row", lambda own: own + 1)),
    (
        "its rule and the task's are not shown to give the same numbers",
        "rule",
        array("weights.cell.per_class", lambda own: own + 1),
    ),
    ("expected a net at temperature 0", "rule", array("weights.cell.temperature", lambda own: 1.0)),
    ("expected a net at temperature 0", "rule", array("weights.cell.rounding", lambda own: 0.0)),
    (TIED, "rule", array("weights.cell.relations", lambda own: 0 * own)),
    (TIED, "rule", array("weights.cell.top", lambda own: 0 * own)),
    (TIED, "rule", array("weights.cell.left", lambda own: 0 * own)),
    ("two classes of a cell have one logit", "rule", array("weights.cell.table", lambda own: 0 * own)),
    (
        "expected numbers of classes that float32 can tell apart",
        "rule",
        array("weights.cell.per_class", lambda own: own + 2.0**24),
    ),
    ("expected a method of proof as evidence", "rnn", certificate(evidence={})),
    ("expected the net of the certificate, got another", "rnn", certificate(net="0" * 32)),
    ("expected the integers from 0 as classes", "rule", lambda proof: renamed(proof)),
    ("expected a certificate of level bounded", "reflections", certificate(level="proved")),
    ("expected a certificate of level proved", "rnn", certificate(level="bounded")),
    ("expected no largest length at level proved", "rnn", certificate(max_length=5)),
    ("expected a method among ", "rnn", by_method("magic")),
    *((SEVERAL, name, with_swapped_logits) for name in NETS if name != "rule"),
]
"""For each demand: the start of its message, the name of a net, and a function that yields forged proofs.

The demand rejects at least one of them.
"""

IMPLIED = {
    "expected a class for some code": "a file cannot contain an empty tensor",
    "expected merged states at the ends of strings": "an earlier demand rejects a window that is merged into a leaf",
    "expected fewer answers": "a file cannot contain 10^29 answers",
}
"""Demands that no file can trigger, each with the reason. They protect assumptions of the code that follows."""


def renamed(proof: Proof) -> Iterator[Forged]:
    yield proof.arrays, {"classes": [f"n{name}" for name in proof.certificate["classes"]]}


@pytest.mark.parametrize(("sentence", "name", "forge"), FORGERIES)
def test_each_demand_rejects_a_forged_proof(sentence: str, name: str, forge: Forge) -> None:
    proof = prove(*NETS[name])
    reasons = []
    for arrays, edited in forge(proof):
        try:
            proof.verdict(arrays, **edited)
        except Rejected as problem:
            reasons.append(str(problem))
    assert any(reason.startswith(f"proof: {sentence}") for reason in reasons), reasons[:3]


def demand_messages() -> set[str]:
    """Return the message of each demand of all methods, up to its first placeholder."""
    tree = ast.parse(inspect.getsource(checker))
    begin = next(node.lineno for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "demand_ahead")
    sentences = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "demand" and node.lineno >= begin:
            sentence = node.args[1]
            if isinstance(sentence, ast.JoinedStr):
                sentence = sentence.values[0]
            assert isinstance(sentence, ast.Constant)
            sentences.add(str(sentence.value))
    return sentences - FILE_DEMANDS


FILE_DEMANDS = {"expected a certificate", "expected a certificate as it was written, got an edited one"}
"""Demands on a certificate's file: `test_certificate_files.py` has their tests."""


def test_every_demand_of_a_method_has_a_forgery() -> None:
    assert demand_messages() == {sentence for sentence, _, _ in FORGERIES} | IMPLIED.keys()
    for sentence in IMPLIED:
        assert re.search(re.escape(sentence), inspect.getsource(checker))


@pytest.mark.parametrize("name", ["chunks of 2", "chunks of 3"])
@np.errstate(all="ignore")  # as in `checker.check`
def test_windows_that_lead_to_the_pad_are_checked(name: str) -> None:
    """Class 0 is the leaf of the pad; windows that lead to it are checked like all others."""
    proof = prove(*NETS[name])
    weights = {key.removeprefix("weights."): values for key, values in proof.arrays.items() if key[:7] == "weights"}
    net = checker.parse_net(proof.certificate["model"], weights, 2, 2)
    sets = {key.removeprefix("sets."): values for key, values in proof.arrays.items() if key[:5] == "sets."}
    assert checker.demand_windows_inside(net, sets)
    for entry in np.argwhere(sets["table"] > 0)[:10]:
        table = sets["table"].copy()
        table[tuple(entry)] = 0
        with pytest.raises(Rejected, match="a window leads out of its set"):
            checker.demand_windows_inside(net, sets | {"table": table})
