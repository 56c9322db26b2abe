"""Each demand of the separate checker rejects a forged proof with its own message."""

import ast
import inspect
import json
import re
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from attending_net import WIDTH
from forging import (
    Forge,
    Forged,
    array,
    as_type,
    by_method,
    certificate,
    code_behind_the_last,
    each_class,
    each_entry,
    first_entry,
    header,
    model,
    of_three_logits,
    put,
    renamed,
    spaced,
    start_behind_the_last,
    transducer,
    with_few_classes,
    with_larger_scores,
    with_more,
    with_narrow_enclosures,
    with_swapped_logits,
    without_answers,
)
from proved_nets import NETS, Proof, proof_of

from lengthwise.certification import checker
from lengthwise.certification.checker import Rejected
from lengthwise.layers.positions.base import PositionSizes
from lengthwise.layers.positions.fire import FIRE

SEVERAL = "one of its sets may contain states with several answers"
UNDECIDED = "bounds on attention do not show that the right answer leads"
TIED = "two classes of a border or relation have the same logit"
LEAVE = "states leave their balls before the largest length"
IN_TABLE = "expected classes of the machine in its table"
AMONG_ANSWERS = "expected the machine's outputs among "
KEYS, QUERIES = "weights.layers.0.to_key_value.weight", "weights.layers.0.to_query.weight"
OUTSIDE = "an attention mass leaves its bounds on some string"
MAPPED = "weights.layers.0.query_key_value.weight"
TEMPERATURE = "weights.layers.0.temperature"


def with_a_small_limit(proof: Proof) -> Iterator[Forged]:
    """Give FIRE's positions to a net without positions, with a limit of five symbols."""
    encoding = FIRE(PositionSizes(WIDTH, 1, 1, 0))
    encoding.reset_parameters(torch.Generator().manual_seed(0))
    weights = {f"weights.read_in.positions.{name}": value.numpy() for name, value in encoding.state_dict().items()}
    weights["weights.read_in.positions.layers.0.limit"] = np.float32(0.01)
    yield proof.arrays | weights, {"model": proof.certificate["model"] | {"positions": "fire"}}


FORGERIES: list[tuple[str, str, Forge]] = [
    ("expected a task with an answer to some string", "chunks of 2", without_answers),
    ("expected a task with an answer to some string", "rnn", without_answers),
    ("expected a task with an answer to some string", "choices", without_answers),
    (
        "its machine gives other answers than the task",
        "codes",
        array("sets.outputs", lambda own: np.where(own < 0, own, 1 - own)),
    ),
    (
        "its machine gives other answers than the task",
        "gru",
        array("sets.outputs", lambda own: np.where(own < 0, own, 1 - own)),
    ),
    ("its table lacks a window that occurs in a string", "compiled tree", each_entry("sets.table", -1)),
    ("expected sets ", "rnn", with_more("sets.x")),
    (" of type and shape ", "rnn", array("sets.table", lambda own: own[:, :1])),
    (" of type and shape ", "rnn", array("sets.low", lambda own: own[:, :1])),
    (IN_TABLE, "rnn", array("sets.table", put(-1, 0, 0))),
    (IN_TABLE, "rnn", array("sets.table", lambda own: put(len(own), -1, -1)(own))),
    (IN_TABLE, "chunks of 2", array("sets.table", put(-2, 0, 0))),
    (IN_TABLE, "chunks of 2", array("sets.table", lambda own: put(len(own), -1, -1)(own))),
    ("expected a class as the start", "rnn", array("sets.start", lambda own: -1)),
    ("expected a class as the start", "rnn", start_behind_the_last),
    (AMONG_ANSWERS, "rnn", array("sets.outputs", put(2, -1))),
    (AMONG_ANSWERS, "rnn", array("sets.outputs", put(-5, -1))),
    (AMONG_ANSWERS, "chunks of 2", array("sets.outputs", put(2, 0))),
    ("expected a class for the pad and each symbol", "chunks of 2", with_few_classes),
    ("expected a net of variant 'merge'", "compiled tree", by_method("enclosures")),
    ("expected a net without codes", "codes", by_method("enclosures")),
    ("expected embeddings as centers of the first classes", "chunks of 2", array("sets.center", lambda own: own + 1)),
    ("expected embeddings as points of the first classes", "compiled tree", array("sets.points", lambda own: own + 1)),
    ("expected radii of at least 0, and orthonormal axes", "chunks of 2", array("sets.radius", put(-1e-9, -1, 0))),
    ("expected radii of at least 0, and orthonormal axes", "chunks of 2", array("sets.axes", put(1.5, -1, 0, 0))),
    (
        "the net merges a window into a state outside the set of the window's class",
        "chunks of 2",
        array("sets.radius", lambda own: 0 * own),
    ),
    (
        "the net merges a window into a state outside the set of the window's class",
        "chunks of 2",
        each_class("sets.center", 3.0),
    ),
    ("expected a net with codes", "chunks of 2", by_method("codes")),
    ("expected numbers of the net's codes as `codes`", "codes", array("sets.codes", put(-1, 0))),
    ("expected numbers of the net's codes as `codes`", "codes", code_behind_the_last),
    ("a window is merged into a leaf", "codes", each_entry("sets.table", 0, 1, 2)),
    ("float32 rounds a merge, which this method does not bound", "compiled tree", array(KEYS, lambda own: own / 3)),
    ("expected a net of variant 'bare'", "chunks of 2", by_method("exact")),
    ("expected keys of 0, so that a head attends to one part", "compiled tree", array(KEYS, put(1.0, 0, 0))),
    ("a head attends to more than one part", "compiled tree", array("weights.layers.0.bias", lambda own: 0 * own)),
    ("expected queries that are finite numbers", "compiled tree", array(QUERIES, lambda own: own + 1e20)),
    (
        "the net merges a window into another state than the machine names",
        "compiled tree",
        each_class("sets.points", 1.0),
    ),
    (
        "expected boxes whose lower ends are not above their upper ends",
        "rnn",
        array("sets.low", lambda own: own + 10.0),
    ),
    (
        "the box of the machine's start lacks the net's first state",
        "rnn",
        array("sets.low", lambda own: own - 10.0, ("sets.high", lambda own: own - 10.0)),
    ),
    ("a step of the net leads out of the set of the next class", "rnn", with_narrow_enclosures),
    ("a step of the net leads out of the set of the next class", "wrapped lstm", with_narrow_enclosures),
    ("expected boxes of an rnn, gru, lstm or wrapped net", "one-hot", by_method("intervals")),
    (
        "expected a block-linear-rnn with columns 'stochastic'",
        "reflections",
        by_method("states", level="proved", max_length=None),
    ),
    ("expected positions within a block as `states`", "one-hot", array("sets.states", put(-1, -1, -1))),
    ("expected positions within a block as `states`", "one-hot", array("sets.states", put(2, -1, -1))),
    ("the machine's start is not the net's first state", "one-hot", each_entry("sets.states", 0, 1)),
    ("the machine's start is not the net's first state", "reflections", each_class("sets.points", 1.0)),
    ("a step of the net leads to another state than the machine's step", "one-hot", each_entry("sets.states", 0, 1)),
    ("expected a temperature of at least 0", "one-hot", array(TEMPERATURE, lambda own: -1.0)),
    ("rounding may decide where a one-hot vector has its 1", "one-hot", array(TEMPERATURE, lambda own: 1e6)),
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
    ("expected a transformer", "one-hot", by_method("attention", level="bounded", max_length=5)),
    ("expected lengths that rise to the largest length", "attention", certificate(max_length=55)),
    ("expected lengths that rise to the largest length", "attention", certificate(max_length=53)),
    ("expected lengths that rise to the largest length", "attention", array("sets.lengths", put(0, 0))),
    ("expected lengths that rise to the largest length", "attention", array("sets.lengths", put(2**63 - 1, 1))),
    ("expected lengths that rise to the largest length", "attention", array("sets.lengths", put(1, 1))),
    ("expected masses between 0 and 1", "attention", array("sets.low", put(-1e-9, 0, 0, 0, 0, 0))),
    ("expected masses between 0 and 1", "attention", array("sets.high", put(1 + 1e-9, 0, 0, 0, 0, 0))),
    ("expected lower bounds of 0, or of at least 1e-17", "attention", array("sets.low", put(2e-34, 0, 0, 0, 0, 0))),
    ("expected scores and values that float32 can represent", "attention", array(MAPPED, lambda own: own * 1e18)),
    ("expected attention that float32 rounds by at most two percent", "attention", with_larger_scores),
    (OUTSIDE, "attention", array("sets.low", lambda own: own + 1e-5)),
    (OUTSIDE, "attention", array("sets.high", lambda own: own * (1 - 1e-5))),
    (OUTSIDE, "attention", array("sets.high", lambda own: own[..., ::-1])),
    (UNDECIDED, "attention", array("sets.low", lambda own: own[:, ::-1], ("sets.high", lambda own: own[:, ::-1]))),
    (OUTSIDE, "attention", array("weights.layers.0.query_key_value.bias", lambda own: own * 1.01)),
    (UNDECIDED, "attention", array("sets.low", lambda own: 0 * own, ("sets.high", lambda own: 0 * own + 1))),
    ("expected a grid-recurrence, and no sets", "rule", with_more("sets.x")),
    (
        "its rule adds another number for each row than the task's rule",
        "rule",
        array("weights.cell.per_row", lambda own: own + 1),
    ),
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
    ("two classes of a cell have the same logit", "rule", array("weights.cell.table", lambda own: 0 * own)),
    (
        "expected numbers of classes below 2^24, which float32 represents exactly",
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
    ("expected ", "rnn", certificate(format=2)),
    ("expected an object as ", "rnn", certificate(transducer=[])),
    ("expected a list of names as ", "rnn", certificate(classes=[])),
    ("expected a list of names as ", "rnn", certificate(classes=["a", 1])),
    (", got one of them twice", "rnn", certificate(classes=["a", "a"])),
    (
        "expected an output of the transducer for each row of its table",
        "rnn",
        transducer(lambda machine: machine["outputs"].pop()),
    ),
    (
        "expected a step of the transducer from each state for each symbol",
        "rnn",
        transducer(lambda machine: machine["table"][0].pop()),
    ),
    (
        "expected outputs of the transducer among ",
        "rnn",
        transducer(lambda machine: machine.update(outputs=[2] * len(machine["outputs"]))),
    ),
    (
        "expected outputs of the transducer among ",
        "rnn",
        transducer(lambda machine: machine.update(outputs=[-1] * len(machine["outputs"]))),
    ),
    (
        "expected cells of the rule for each class and letter",
        "rule",
        transducer(lambda rule: rule["letters"].append("x")),
    ),
    (
        "expected a number of the rule for each class that goes down",
        "rule",
        transducer(lambda rule: rule["numbers"].append(0)),
    ),
    (
        "expected classes of the rule in its cells",
        "rule",
        transducer(lambda rule: rule["cells"][0][0][0][0].__setitem__(0, len(rule["cells"]))),
    ),
    (
        "expected classes of the rule in its cells",
        "rule",
        transducer(lambda rule: rule["cells"][0][0][0][0].__setitem__(1, len(rule["cells"][0]))),
    ),
    (
        "expected classes of the rule in its cells",
        "rule",
        transducer(lambda rule: rule["cells"][0][0][0][0].__setitem__(1, -1)),
    ),
    ("expected lists of equal lengths as ", "rule", transducer(lambda rule: rule["cells"][0][0].pop())),
    ("damaged: it ends within its header", "rnn", lambda proof: iter([(b"", {}), (bytes(8), {})])),
    ("damaged: it lacks the names of its weights", "rnn", header(lambda entries: [])),
    ("damaged: it lacks the names of its weights", "rnn", header(lambda entries: entries.pop("__metadata__") and None)),
    (
        "expected a text as the names of weights",
        "rnn",
        header(lambda entries: entries["__metadata__"].update(weights=1)),
    ),
    ("expected names of weights without spaces", "rnn", header(lambda entries: spaced(entries))),
    (
        "damaged: its tensors overlap, or some of its bytes belong to no tensor",
        "rnn",
        header(lambda entries: None, bytes(4)),
    ),
    ("expected all named weights, the sets, and no other tensors", "rnn", with_more("x")),
    (": expected type ", "rnn", header(lambda entries: first_entry(entries, dtype="BF16"))),
    (": expected a shape of whole numbers above 0", "rnn", header(lambda entries: first_entry(entries, shape=[0]))),
    (": expected two offsets", "rnn", header(lambda entries: first_entry(entries, data_offsets=[0]))),
    (": damaged, its bytes do not fit its shape", "rnn", header(lambda entries: first_entry(entries, shape=[1]))),
    (": expected finite numbers", "rnn", array("sets.low", put(np.nan, 0, 0))),
    (
        "expected finite numbers in ",
        "rnn",
        header(lambda entries: json.dumps(entries).replace('"shape": [', '"shape": [1e999, ', 1)),
    ),
    ("expected each key of ", "rnn", header(lambda entries: '{"a": 1, "a": 2}')),
    (": unknown key ", "rnn", certificate(x=1)),
    (": expected a key ", "rnn", certificate(evidence={"method": "intervals"}, model={"name": "rnn"})),
    ("expected a name as model.name", "rnn", model(name=1)),
    ("expected a model among ", "rnn", model(name="magic")),
    (": expected ", "rnn", model(activation="Tanh")),
    ("weights: expected ", "rnn", array("weights.readout.bias", lambda own: own[:1])),
    ("weights: expected float32 or float64, got ", "rnn", as_type("weights.readout.bias", "<f8")),
    ("weights: expected a whole number as codebook.count", "codes", as_type("weights.codebook.count", "<f4")),
    ("model: expected num_heads that divides ", "chunks of 2", model(num_heads=3)),
    ("model: expected num_heads that divides ", "attention", model(num_heads=3)),
    ("model: expected heads of an even number of units", "attention", model(positions="rotary", num_heads=WIDTH)),
    ("expected positions up to FIRE's limit ", "attention", with_a_small_limit),
    ("model: expected block_dim that divides ", "reflections", model(block_dim=3)),
    ("model: expected one block of columns 'stochastic' with read='mixture'", "mixture", model(block_dim=1)),
    ("model.nonlinearity: expected only for core rnn", "wrapped gru", model(nonlinearity="relu")),
    (
        "model: expected a head that ends in Linear, with tensors for each Linear and LayerNorm",
        "wrapped gru",
        model(head="Linear"),
    ),
    (
        "model: expected a head that ends in a logit for each class",
        "wrapped gru",
        lambda proof: iter([(proof.arrays | of_three_logits(proof), {})]),
    ),
    *((UNDECIDED if name == "attention" else SEVERAL, name, with_swapped_logits) for name in NETS if name != "rule"),
]
"""For each demand: the start of its message, the name of a net, and a function that yields forged proofs.

The demand rejects at least one of them.
"""

IMPLIED = {
    "expected a class for some code": "a file cannot contain an empty tensor",
    "expected merged states at the ends of strings": "an earlier demand rejects a window that is merged into a leaf",
    "expected masses that add up to 1": "an earlier demand rejects bounds that exclude a string's masses",
    "expected values whose directions float64 can represent": "singular vectors are orthogonal to about 1e-15",
    "expected fewer answers": "a file cannot contain 10^29 answers",
}
"""Demands that no file can trigger, each with the reason. They protect assumptions of the code that follows."""


@pytest.mark.parametrize(("sentence", "name", "forge"), FORGERIES)
def test_each_demand_rejects_a_forged_proof(sentence: str, name: str, forge: Forge) -> None:
    proof = proof_of(name)
    reasons = []
    for arrays, edited in forge(proof):
        try:
            if isinstance(arrays, bytes):
                checker.check(proof.certificate | edited, arrays)
            else:
                proof.verdict(arrays, **edited)
        except Rejected as problem:
            reasons.append(str(problem))
    assert any(sentence in reason for reason in reasons), reasons[:3]


def demand_messages() -> set[str]:
    """Return the longest part of the message of each demand that is the same for all files."""
    sentences = set()
    for node in ast.walk(ast.parse(inspect.getsource(checker))):
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", "") == "demand"
            and isinstance(node.args[1], ast.Constant)
        ):
            sentences.add(str(node.args[1].value))
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", "") == "demand"
            and isinstance(node.args[1], ast.JoinedStr)
        ):
            parts = [str(part.value) for part in node.args[1].values if isinstance(part, ast.Constant)]
            sentences.add(max(parts, key=len))
    return sentences - FILE_DEMANDS


FILE_DEMANDS = {
    "; this checker stops there",
    "expected a certificate",
    "expected a certificate as it was written, got an edited one",
}
"""Demands on a certificate's file and limits: `test_certificate_files.py` and `test_checker_limits.py` test these."""


def test_every_demand_has_a_forgery() -> None:
    assert demand_messages() == {sentence for sentence, _, _ in FORGERIES} | IMPLIED.keys()
    for sentence in IMPLIED:
        assert re.search(re.escape(sentence), inspect.getsource(checker))


@pytest.mark.parametrize("name", ["chunks of 2", "chunks of 3"])
@np.errstate(all="ignore")  # as in `checker.check`
def test_windows_that_lead_to_the_pad_are_checked(name: str) -> None:
    """Class 0 is the leaf of the pad; windows that lead to it are checked like all others."""
    proof = proof_of(name)
    weights = {key.removeprefix("weights."): values for key, values in proof.arrays.items() if key[:7] == "weights"}
    net = checker.parse_net(proof.certificate["model"], weights, 2, 2)
    sets = {key.removeprefix("sets."): values for key, values in proof.arrays.items() if key[:5] == "sets."}
    assert checker.demand_windows_inside(net, sets)
    for entry in np.argwhere(sets["table"] > 0)[:10]:
        table = sets["table"].copy()
        table[tuple(entry)] = 0
        with pytest.raises(
            Rejected, match="the net merges a window into a state outside the set of the window's class"
        ):
            checker.demand_windows_inside(net, sets | {"table": table})
