"""The separate checker reads exact settings, names, types and shapes, and stops at its limits."""

import itertools
import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from mutated_proofs import JUNK
from proved_nets import NETS, Arrays, Proof, mixture, packed, proof_of, prove

from lengthwise.certification import checker
from lengthwise.certification.checker import KINDS, Rejected
from lengthwise.files import json_text
from lengthwise.models.base import MODELS
from lengthwise.tasks import make_task
from lengthwise.validation import split_named, validated

pytestmark = pytest.mark.unchecked


@pytest.fixture(scope="module", params=NETS)
def proof(request: pytest.FixtureRequest) -> Proof:
    return proof_of(request.param)


LAST_OF_KIND = {model.name: name for name, (model, _) in NETS.items()}
one_of_each_kind = pytest.mark.parametrize(
    "proof",
    # Nets of one kind have settings and weights of the same names, so slow tests alone take the others of a kind.
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in LAST_OF_KIND.values())) for name in NETS],
    indirect=True,
)


def test_every_kind_of_net_is_swept() -> None:
    assert {model.name for model, _ in NETS.values()} == KINDS.keys()
    methods = {proof_of(name).method for name in NETS}
    assert methods == {*checker.METHODS, *checker.BOUNDED}


@one_of_each_kind
@pytest.mark.sampled(3)  # each value of each setting is a proof that is read again
def test_no_setting_has_a_value_that_is_not_its_own(proof: Proof) -> None:
    """Values of other types and other settings are rejected, each by its name, unless they change nothing."""
    model = proof.certificate["model"]
    for name in model:
        for junk in JUNK:
            if type(junk) is type(model[name]) and junk == model[name]:
                continue
            if accepts(proof, model | {name: junk}):
                # What shapes training alone may have another value, if the model's own description takes it.
                assert name in ("alignment", "end_temperature", "quantize_after", "sharpness"), (name, junk)
                kind, settings = split_named(model | {name: junk})
                validated(MODELS[kind].Config, settings)


def accepts(proof: Proof, model: dict[str, object]) -> bool:
    try:
        return bool(proof.verdict(model=model))
    except Rejected:
        return False


def test_settings_are_neither_more_nor_fewer(proof: Proof) -> None:
    model = proof.certificate["model"]
    for name in model.keys() - {"alignment"}:  # certificates omit this setting at its default
        rest = {other: value for other, value in model.items() if other != name}
        with pytest.raises(
            Rejected, match=r"expected a key|expected a name as model.name|head|model: unknown key|leads|"
        ):
            proof.verdict(model=rest)
    for name in ("lower_chunk_sizes", "hidden_size", "", "Name", "activation ", "input_map", "first_state"):
        if name not in model:
            with pytest.raises(Rejected, match="model: unknown key"):
                proof.verdict(model=model | {name: None})


def test_a_setting_of_a_file_is_not_given_twice(proof: Proof) -> None:
    """The last of two values is what Python's own reader keeps, and its digest fits."""
    text = json_text(proof.certificate)
    for name, value in proof.certificate["model"].items():
        setting = f'"{name}": {json.dumps(value)}'
        assert setting in text
        with pytest.raises(Rejected, match="expected each key of the certificate once"):
            checker.read_certificate(text.replace(setting, f'"{name}": "x", {setting}').encode())


def test_keys_of_a_certificate_are_known(proof: Proof) -> None:
    with pytest.raises(Rejected, match="certificate: unknown key 'x'"):
        proof.verdict(x=1)
    for name in checker.DECISIVE:
        rest = {other: value for other, value in proof.certificate.items() if other != name}
        with pytest.raises(Rejected, match=f"certificate: expected a key '{name}'"):
            checker.check(rest, packed(proof.arrays))
    for format_ in (2, 4, True, 3.0, "3"):
        with pytest.raises(Rejected, match=r"expected format of the certificate in 3\.\.3"):
            proof.verdict(format=format_)
    with pytest.raises(Rejected, match="expected the net of the certificate, got another"):
        proof.verdict(net="0" * 32)


@one_of_each_kind
@pytest.mark.sampled(3)
def test_shapes_and_types_are_those_that_settings_imply(proof: Proof) -> None:
    for name, array in proof.arrays.items():
        other = np.float64 if array.dtype == np.float32 else np.float32
        changes: list[Arrays] = [
            {name: array[..., None]},
            {name: np.stack([array, array])},
            {name: array.astype(other)},
        ]
        if array.ndim:
            changes.append({name: np.concatenate([array, array])})
        for change in changes:
            with pytest.raises(Rejected):
                proof.verdict(proof.arrays | change)
    for name in ("weights.x", "weights.first_state.x", "sets.x"):
        with pytest.raises(
            Rejected, match=r"weights: expected x|weights: expected first_state.x|expected sets|no sets"
        ):
            proof.verdict(proof.arrays | {name: np.zeros(1, np.float32)})
    with pytest.raises(Rejected, match="expected all named weights, the sets, and no other tensors"):
        proof.verdict(proof.arrays | {"other": np.zeros(1, np.float32)})


def test_a_read_out_that_is_not_known_has_no_default() -> None:
    """Transposed, the matrix of a mixture is a linear map that gives the right answers; the net gives others."""
    task = make_task("cycle-navigation", size=3)
    model = make_three_state_net()
    right = prove(model, task)
    assert right.verdict()
    matrix = right.arrays["weights.readout.weight"]
    transposed = right.arrays | {"weights.readout.weight": np.ascontiguousarray(matrix.T)}
    with torch.no_grad():
        model.readout.weight.copy_(torch.from_numpy(transposed["weights.readout.weight"]))
        assert model.last(torch.tensor([[1]])).argmax() != task.solve(torch.tensor([[1]]))[0, -1], "wrong now"
    settings = right.certificate["model"]
    for read in ("", None, "mixture", "all", "Mixture", "linear"):
        with pytest.raises(Rejected):
            right.verdict(transposed, model=settings | {"read": read})


def make_three_state_net() -> torch.nn.Module:
    """A mixture of three states that the symbols 0, +1 and -1 rotate; the answer's matrix is not symmetric."""
    from lengthwise.models.base import make_model

    task = make_task("cycle-navigation", size=3)
    model = make_model("block-linear-rnn", task, d_model=3, block_dim=3, hidden=0, read="mixture")
    assert task.transducer.num_states == 3, mixture
    steps = task.transducer.semiautomaton.table
    with torch.no_grad():
        for symbol in range(len(task.symbols)):
            matrix = torch.zeros(3, 3)
            # State s of the net is position (2 s) mod 3 of the task, so that the answers are a rotation's inverse.
            for state in range(3):
                matrix[states_of(int(steps[positions_of(state), symbol])), state] = 1.0
            model.embedding.weight[symbol] = matrix.flatten()
        model.layers[0].first_state.copy_(torch.tensor([[0.0, 1.0, 0.0]]))
        model.layers[0].temperature.fill_(1e-3)
        for state in range(3):
            answer = int(task.transducer.outputs[positions_of(state)])
            model.readout.weight[state] = 8 * torch.nn.functional.one_hot(torch.tensor(answer), 3)
    return model


def positions_of(state: int) -> int:
    """The task's state that a state of the net stands for: the net starts in its state 1."""
    return (state - 1) % 3


def states_of(position: int) -> int:
    return (position + 1) % 3


def test_an_activation_that_is_not_known_has_no_default() -> None:
    proof = proof_of("rnn")
    for activation in ("", None, "Tanh", "sigmoid", "t\u0430nh", "ReLU", 0):
        with pytest.raises(Rejected, match=r"model\.activation: expected 'tanh', 'relu', got"):
            proof.verdict(model=proof.certificate["model"] | {"activation": activation})


def test_maps_that_generate_too_much_stop_at_a_limit(tmp_path: Path) -> None:
    """All permutations of nine states, 362,880, come of two symbols; their windows would be some 10^11."""
    proof = proof_of("chunks of 2")
    swap, turn = [1, 0, *range(2, 9)], [*range(1, 9), 0]
    table = [[swap[state], turn[state]] for state in range(9)]
    transducer = {"symbols": ["a", "b"], "start": 0, "table": table, "outputs": [0] * 9}
    certificate = proof.certificate | {"transducer": transducer}
    assert_ends_soon(tmp_path, certificate, packed(proof.arrays), "moves of the task's machine along windows")


# It works for seconds until the limit; test_checker_limits reaches every limit with small machines.
@pytest.mark.slow
def test_large_machines_stop_at_a_limit(tmp_path: Path) -> None:
    proof = proof_of("rnn")
    size = 150_000
    table = [[(state + 1) % size, (state * 7 + 3) % size] for state in range(size)]
    transducer = {"symbols": ["a", "b"], "start": 0, "table": table, "outputs": [0] * size}
    certificate = proof.certificate | {"transducer": transducer}
    assert_ends_soon(tmp_path, certificate, packed(proof.arrays), "gives other answers|pairs of a class")


# It works for seconds until the limit; test_checker_limits reaches every limit with small machines.
@pytest.mark.slow
def test_the_pairs_of_edges_of_a_grid_stop_at_a_limit(tmp_path: Path) -> None:
    """Each cell makes the next class of the task, so the closure needs a round for each of 1,000 classes."""
    proof = proof_of("rule")
    cells = [[[[[min(state + 1, 999), 0]]]] for state in range(1_000)]
    transducer = {"letters": ["a"], "cells": cells, "top": 0, "left": 0, "numbers": [0] * 1_000, "per_row": 0}
    arrays = {
        "weights.cell.relations": np.zeros((1, 1, 1), np.float32),
        "weights.cell.table": np.zeros((2, 2, 1, 2, 2), np.float32),
    }
    arrays["weights.cell.table"][..., 0] = 1
    arrays |= {f"weights.cell.{name}": np.array([1, 0], np.float32) for name in ("top", "left")}
    arrays |= {"weights.cell.per_class": np.zeros(2, np.float32)}
    arrays |= {f"weights.cell.{name}": np.array(name == "rounding", np.float32) for name in ROUNDED}
    content = packed(arrays)
    model = proof.certificate["model"] | {"num_messages": 2, "num_relations": 1}
    net = checker.net_digest(model, checker.read(content).weights)
    changes = {"model": model, "net": net, "classes": ["0", "1"], "transducer": transducer}
    assert_ends_soon(tmp_path, proof.certificate | changes, content, "until no pair of edges is new")


ROUNDED = ("per_row", "temperature", "rounding")


def test_overlapping_tensors_are_not_copied(tmp_path: Path) -> None:
    """3,000 tensors of the same 8 MiB would be 24 GiB."""
    entry = {"dtype": "F64", "shape": [2**20], "data_offsets": [0, 2**23]}
    header = json.dumps({"__metadata__": {"weights": '["x"]'}, **{f"sets.{i}": entry for i in range(3_000)}}).encode()
    content = len(header).to_bytes(8, "little") + header + bytes(2**23)
    assert_ends_soon(tmp_path, proof_of("rnn").certificate, content, "overlap")


def test_names_of_settings_do_not_print_lines() -> None:
    proof = proof_of("rnn")
    task = proof.certificate["task"] | {"x=1\nThe net is right on every string.": 1}
    printed = checker.statement(proof.certificate | {"task": task}, "")
    assert len(printed.splitlines()) == len(checker.statement(proof.certificate, "").splitlines())


def assert_ends_soon(folder: Path, certificate: dict[str, object], proof: bytes, reason: str) -> None:
    """In 60 CPU seconds and a gigabyte, with one sentence."""
    (folder / "certificate.json").write_text(json_text(certificate))
    (folder / "proof").write_bytes(proof)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        resource.setrlimit(resource.RLIMIT_DATA, (2**30, 2**30))

    command = [sys.executable, "-I", checker.__file__, "certificate.json", "proof"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, preexec_fn=limit)
    assert done.returncode == 1, done.stderr[-300:]
    assert any(part in done.stderr for part in reason.split("|")), done.stderr[-300:]
    assert len(done.stderr.splitlines()) == 1


def test_headers_account_for_every_byte() -> None:
    proof = proof_of("rnn")
    content = packed(proof.arrays)
    size = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + size]), content[8 + size :]

    def made(header: dict[str, object], body: bytes) -> bytes:
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + body

    assert checker.check(proof.certificate, made(header, body))
    # The tensor at the front: its bytes can be moved both before the file and onto those of another tensor.
    name = min(header.keys() - {"__metadata__"}, key=lambda name: header[name]["data_offsets"])
    entry = header[name]
    first, last = entry["data_offsets"]
    for change, sentence in (
        ({"data_offsets": [first, last - 4]}, "its bytes do not fit its shape"),
        ({"data_offsets": [first + 4, last + 4]}, "overlap"),
        ({"data_offsets": [-4, last - first - 4]}, "expected an offset"),
        ({"data_offsets": [float(first), last]}, "expected an offset"),
        ({"shape": [*entry["shape"], 1.0]}, "expected a shape of whole numbers above 0"),
        ({"shape": [*entry["shape"], 0]}, "expected a shape of whole numbers above 0"),
        ({"dtype": "BF16"}, "expected type F32, F64, I64"),
        ({"dtype": None}, "expected type F32, F64, I64"),
        ({"more": 1}, "unknown key 'more'"),
    ):
        with pytest.raises(Rejected, match=sentence):
            checker.read(made(header | {name: entry | change}, body))
    with pytest.raises(Rejected, match="some of its bytes belong to no tensor"):
        checker.read(made(header, body + b"\0\0\0\0"))
    text = json.dumps(header)[:-1] + f', "{name}": {json.dumps(entry)}}}'
    repeated = len(text).to_bytes(8, "little") + text.encode() + body
    with pytest.raises(Rejected, match="once, got"):
        checker.read(repeated)


def test_numbers_of_a_proof_are_finite() -> None:
    proof = proof_of("gru")
    for name, number in itertools.product(proof.arrays, (np.nan, np.inf)):
        if proof.arrays[name].dtype.kind == "f":
            changed = np.array(proof.arrays[name])
            changed.flat[0] = number
            with pytest.raises(Rejected, match="expected finite numbers"):
                proof.verdict(proof.arrays | {name: changed})
