"""The separate checker: it needs NumPy alone, accepts proofs of right nets, and rejects what is not so."""

import ast
import copy
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from last_symbol import LastSymbol
from proved_nets import NETS, Arrays, Proof, packed, proof_of, prove
from slow_nets import slow_net

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification import checker
from lengthwise.certification.builder import net_digest
from lengthwise.certification.checker import Rejected
from lengthwise.constructions import construct
from lengthwise.files import json_text
from lengthwise.models.base import SequenceModel, make_model
from lengthwise.tasks import make_task
from lengthwise.tasks.base import MachineTask

STRINGS = {size: torch.cartesian_prod(*[torch.arange(2)] * size).reshape(-1, size) for size in range(1, 8)}


@pytest.fixture(scope="module", params=NETS)
def proof(request: pytest.FixtureRequest) -> Proof:
    return proof_of(request.param)


def test_needs_numpy_alone() -> None:
    path = Path(checker.__file__)
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(str(node.module))
    assert modules - sys.stdlib_module_names - {"collections.abc"} == {"numpy"}


def test_good_proofs_are_accepted(proof: Proof) -> None:
    assert proof.verdict()
    weights = checker.read(packed(proof.arrays)).weights
    assert (
        checker.net_digest(proof.certificate["model"], weights) == proof.certificate["net"] == net_digest(proof.model)
    )


@pytest.mark.parametrize(
    "proof",
    # What a process of its own adds does not depend on the net; the tests above check all of them in this process.
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in ("rnn", "chunks of 2", "one-hot"))) for name in NETS],
    indirect=True,
)
def test_a_proof_is_checked_by_python_alone(proof: Proof, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """As its users run it: a copy of one file, with nothing of this package; one damaged file stands for all."""
    (tmp_path / "certificate.json").write_text(json_text(proof.certificate))
    (tmp_path / "proof").write_bytes(packed(proof.arrays))
    (tmp_path / "checker.py").write_text(Path(checker.__file__).read_text())
    command = [sys.executable, "-I", "checker.py", "certificate.json", "proof"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    settings = [name for name in proof.certificate["model"] if name != "name"]
    assert all(f"{name}=" in done.stdout for name in settings), "every setting decides the formula, and is printed"
    assert proof.certificate["net"] in done.stdout
    if request.node.callspec.params["proof"] != "rnn":
        return
    (tmp_path / "proof").write_bytes(packed(proof.arrays)[:-8])
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("proof: expected an offset of tensor")
    assert len(done.stderr.splitlines()) == 1
    # A file name like an option does not end the check before it began.
    for arguments in ([], ["certificate.json", "no"], ["proof", "proof"], ["certificate.json", "no", "--help"]):
        done = subprocess.run([*command[:3], *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr.endswith("(python checker.py CERTIFICATE PROOF)\n")
        assert len(done.stderr.splitlines()) == 1
    done = subprocess.run([*command[:3], "--help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: python checker.py CERTIFICATE PROOF\n")
    assert "Exit codes: 0 if the proof is accepted; 1 if " in done.stdout


def errs(model: SequenceModel, task: MachineTask) -> bool:
    """Whether a net answers a string of up to 7 symbols wrongly, which shows that no proof of it is true."""
    with torch.no_grad():
        return any(
            not torch.equal(model.last(batch).argmax(-1), task.solve(batch)[:, -1]) for batch in STRINGS.values()
        )


def other_machines(proof: Proof, chance: np.random.Generator) -> Iterator[Arrays]:
    """Tables and outputs that do not fit the sets: a step leads to a set far from where it does."""
    table, outputs = proof.arrays["sets.table"], proof.arrays["sets.outputs"]
    reached = np.unique(table[table >= 0])
    for klass in set(reached.tolist()) & ends(proof):
        changed = outputs.copy()
        changed[klass] = 1 - changed[klass]
        yield proof.arrays | {"sets.outputs": changed}
    for entry in chance.permutation(np.argwhere(table >= 0))[:25]:
        for klass in range(len(outputs)):
            if are_apart(proof.arrays, klass, int(table[tuple(entry)])):
                changed = table.copy()
                changed[tuple(entry)] = klass
                yield proof.arrays | {"sets.table": changed}


def ends(proof: Proof) -> set[int]:
    """The classes of the whole strings of up to 7 symbols."""
    symbols = proof.task.symbols
    arrays = {name: proof.arrays[f"sets.{name}"] for name in ("table", "outputs")}
    classes = set()
    for batch in STRINGS.values():
        if "sets.start" in proof.arrays:
            states = np.full(len(batch), proof.arrays["sets.start"])
            for column in batch.numpy().T:
                states = arrays["table"][states, column]
        else:
            machine = TreeMachine(symbols, np.arange(1 + len(symbols)), **arrays)
            states = machine.final_classes(batch.numpy())
        classes |= set(states.tolist())
    return classes


def are_apart(arrays: Arrays, one: int, other: int) -> bool:
    if "sets.low" in arrays:
        low, high = arrays["sets.low"], arrays["sets.high"]
        return bool(((low[one] > high[other]) | (high[one] < low[other])).any())
    if "sets.states" in arrays:
        return bool((arrays["sets.states"][one] != arrays["sets.states"][other]).any())
    center, reach = arrays["sets.center"], np.linalg.norm(arrays["sets.radius"], axis=1)
    return bool(np.linalg.norm(center[one] - center[other]) > reach[one] + reach[other])


def other_sets(proof: Proof, chance: np.random.Generator) -> Iterator[Arrays]:
    """Sets that are elsewhere, and sets shrunk to a point on the edge of what they were."""
    arrays = proof.arrays
    for klass in range(len(arrays["sets.outputs"])):
        for _ in range(4):
            if "sets.states" in arrays:
                states = arrays["sets.states"].copy()
                states[klass] = (states[klass] + 1) % proof.certificate["model"]["block_dim"]
                yield arrays | {"sets.states": states}
                break
            if "sets.low" in arrays:
                low, high = arrays["sets.low"].copy(), arrays["sets.high"].copy()
                width = high[klass] - low[klass]
                unit = chance.integers(len(width))
                low[klass, unit] += 2.1 * width[unit] + 0.1
                high[klass, unit] += 2.1 * width[unit] + 0.1
                yield arrays | {"sets.low": low, "sets.high": high}
                if width[unit] > 0:
                    for name, end in (("sets.low", "sets.high"), ("sets.high", "sets.low")):
                        shrunk = arrays[name].copy()
                        shrunk[klass, unit] = arrays[end][klass, unit]
                        yield arrays | {name: shrunk}
            else:
                center, radius = arrays["sets.center"].copy(), arrays["sets.radius"].copy()
                axis = chance.integers(radius.shape[1])
                center[klass] += (2.1 * radius[klass, axis] + 0.1) * arrays["sets.axes"][klass, :, axis]
                yield arrays | {"sets.center": center}


def other_nets(proof: Proof, chance: np.random.Generator) -> Iterator[Arrays]:
    """Weights of nets that err, with the sets of the one that does not."""
    generator = torch.Generator().manual_seed(int(chance.integers(2**31)))
    for _ in range(40):
        model = copy.deepcopy(proof.model)
        with torch.no_grad():
            names = [name for name, _ in model.named_parameters()]
            parameter = model.get_parameter(names[chance.integers(len(names))])
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter += float(chance.choice([0.5, 3.0, 30.0])) * noise
        if errs(model, proof.task):
            weights = {f"weights.{name}": tensor.numpy() for name, tensor in model.state_dict().items()}
            yield proof.arrays | weights


def other_tasks(proof: Proof) -> Iterator[dict[str, Any]]:
    """Parts of a certificate about what the net does not do."""
    transducer = proof.certificate["transducer"]
    for state, output in enumerate(transducer["outputs"]):
        outputs = list(transducer["outputs"])
        outputs[state] = 1 - output
        yield {"transducer": transducer | {"outputs": outputs}}
        for symbol, target in enumerate(transducer["table"][state]):
            table = copy.deepcopy(transducer["table"])
            table[state][symbol] = 1 - target
            yield {"transducer": transducer | {"table": table}}
    yield {"net": "0" * 32}
    yield {"level": "extracted"}
    for name in sorted(checker.KINDS.keys() - {proof.certificate["model"]["name"]}):
        yield {"model": proof.certificate["model"] | {"name": name}}
    for method in sorted({*checker.METHODS, *checker.BOUNDED} - {proof.method}):
        yield {"evidence": proof.certificate["evidence"] | {"method": method}}


def rejected(proof: Proof, arrays: Arrays, **edited: Any) -> int:
    with pytest.raises(Rejected, match=r"\Aproof: .*"):
        proof.verdict(arrays, **edited)
    return 1


MIN_REJECTED = {"mixture": 40, "one-hot": 40}
"""Of other nets at least 75: together with those of `test_nets_that_err_far_out_are_rejected` 700."""

WITH_SETS = [
    *("chunks of 2", "chunks of 3", "float64", "rnn", "gru", "lstm", "wrapped gru", "wrapped lstm", "compiled rnn"),
    *("one-hot", "mixture"),
]
"""Nets whose proofs have sets of states around prototypes; `test_checker_mutations` changes all kinds of proofs."""


BY_DEFAULT = ("chunks of 2", "rnn", "gru", "compiled rnn", "one-hot", "mixture")
"""A net of each method of proof and reader; the others differ from one of these in size, precision or gates."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in BY_DEFAULT)) for name in WITH_SETS]
)
def test_what_is_not_so_is_rejected(name: str) -> None:
    proof = proof_of(name)
    chance, count = np.random.default_rng(0), 0
    for arrays in (*other_machines(proof, chance), *other_sets(proof, chance), *other_nets(proof, chance)):
        count += rejected(proof, arrays)
    for edited in other_tasks(proof):
        count += rejected(proof, proof.arrays, **edited)
    assert count >= MIN_REJECTED.get(name, 75)


@pytest.mark.sampled(2)
def test_a_proof_without_one_of_its_tensors_is_rejected(proof: Proof) -> None:
    for name in proof.arrays:
        rest = {other: array for other, array in proof.arrays.items() if other != name}
        rejected(proof, rest, net=proof.certificate["net"])
        if proof.model.name != "wrapped":  # whose maps may have no bias: that is another net, which is right here
            rejected(proof, rest)


def test_a_proof_about_some_of_the_symbols_is_rejected(proof: Proof) -> None:
    """Of a transducer, and a machine, that have no step for the last symbol."""
    transducer = proof.certificate["transducer"]
    if "cells" in transducer:
        return
    fewer = transducer | {"table": [row[:-1] for row in transducer["table"]]}
    arrays = proof.arrays
    if "sets.start" in arrays:
        arrays = arrays | {"sets.table": arrays["sets.table"][:, :-1]}
    with pytest.raises(Rejected, match="expected a step of the transducer from each state for each symbol"):
        proof.verdict(arrays, transducer=fewer)
    with pytest.raises(Rejected, match=r"weights: expected .* of shape"):
        proof.verdict(arrays, transducer=fewer | {"symbols": transducer["symbols"][:-1]})


def forged(proof: Proof, model: SequenceModel, arrays: Arrays) -> str:
    """What the checker says of a file, which someone made, for a certificate that names another net."""
    return checker.check(proof.certificate | {"net": net_digest(model)}, packed(arrays))


def test_weights_of_one_net_read_as_those_of_another_are_rejected() -> None:
    """The bits of a net's weights, all of them denormal numbers, are integers that make a right net."""
    proof = proof_of("compiled rnn")
    integers = {name: array.astype("<i4") for name, array in proof.arrays.items() if name.startswith("weights.")}
    model = copy.deepcopy(proof.model)
    model.load_state_dict({name[8:]: torch.from_numpy(array.view("<f4")) for name, array in integers.items()})
    with pytest.raises(Rejected, match="expected type F32, F64, I64, got 'I32'"):
        forged(proof, model, proof.arrays | integers)


def test_weights_hidden_in_the_name_of_others_are_rejected() -> None:
    """The bits of a bias end in what the hash takes for a name, a type and a shape: without it the net is right."""
    proof = prove(construct("rnn", make_task("cycle-navigation")).model, make_task("cycle-navigation"))
    model = copy.deepcopy(proof.model)
    assert isinstance(model.readout, torch.nn.Linear)
    hidden = b"x torch.float32 [0]\n"
    with torch.no_grad():
        model.readout.bias.copy_(torch.from_numpy(np.frombuffer(hidden, "<f4").copy()))
        assert not torch.equal(model.last(STRINGS[6]).argmax(-1), proof.task.solve(STRINGS[6])[:, -1])
    rest = {name: array for name, array in proof.arrays.items() if name != "weights.readout.bias"}
    name = "weights.readout.bias torch.float32 [5]\nx"
    with pytest.raises(Rejected, match="expected names of weights without spaces"):
        forged(proof, model, rest | {name: np.zeros(0, np.float32)})


def test_columns_that_are_not_quite_one_hot_are_rejected() -> None:
    proof = proof_of("one-hot")
    name = "weights.layers.0.temperature"
    assert rejected(proof, proof.arrays | {name: 1e4 * proof.arrays[name]})


@pytest.mark.parametrize("kind", ["rnn", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("gru", "lstm"))])
def test_nets_that_err_far_out_are_rejected(kind: str) -> None:
    """The weights of nets that err after 25 to 60 symbols, with the sets of a net that never does."""
    proof = prove(slow_net(kind, None, pace=0.04), LastSymbol())
    assert proof.verdict(proof.arrays)
    for num_right in range(24, 60):
        wrong = slow_net(kind, num_right, pace=0.04)
        rejected(proof, proof.arrays | {f"weights.{name}": array.numpy() for name, array in wrong.state_dict().items()})


def test_a_temperature_divides_logits_and_is_rounded(proof: Proof) -> None:
    """Divided by 0.64, two logits that are 65,536 apart are one float32 number, and columns are two halves."""
    if proof.method != "states" or proof.certificate["model"]["hidden"]:
        return
    large = 2.0**40
    columns = np.array([[large, large - 65536, large - 65536, large], [large - 65536, large, large, large - 65536]])
    changed = proof.arrays | {"weights.embedding.weight": columns.astype(np.float32)}
    first = {"weights.layers.0.first_state": np.array([[1000.0, -1000.0]], np.float32)}
    for temperature, is_right in ((0.0, True), (0.64, False)):
        arrays = changed | first | {"weights.layers.0.temperature": np.array(temperature, np.float32)}
        if is_right:
            assert proof.verdict(arrays)
        else:
            rejected(proof, arrays)


@pytest.mark.parametrize("temperature", [-1.0, math.nan])
def test_columns_of_no_distribution_are_rejected(proof: Proof, temperature: float) -> None:
    if proof.method == "states":
        changed = {"weights.layers.0.temperature": np.array(temperature, np.float32)}
        rejected(proof, proof.arrays | changed)
        name = "weights.layers.0.first_state"
        rejected(proof, proof.arrays | {name: np.full_like(proof.arrays[name], np.inf)})


def test_a_column_of_one_number_has_to_be_one() -> None:
    """Of one state nothing leads; a softmax of infinity is no number all the same."""
    always = make_task("machine", alphabet=("0", "1"), table=((0, 0),), outputs=(1,), answers=("no", "yes"), start=0)
    model = make_model("block-linear-rnn", always, d_model=4, block_dim=1, hidden=0)
    with torch.no_grad():
        model.layers[0].temperature.fill_(1.0)
        model.readout[-1].bias.copy_(torch.tensor([-9.0, 9.0]))
    proof = prove(model, always)
    assert proof.verdict(proof.arrays)
    name = "weights.embedding.weight"
    rejected(proof, proof.arrays | {name: np.full_like(proof.arrays[name], np.inf)})


def test_chunks_of_other_sizes_on_the_lowest_levels_are_rejected(proof: Proof) -> None:
    if proof.method == "enclosures":
        rejected(proof, proof.arrays, model=proof.certificate["model"] | {"lower_chunk_sizes": [2]})


def test_a_header_that_is_nested_without_end_is_rejected() -> None:
    text = b"[" * 200_000
    proof = proof_of("rnn")
    with pytest.raises(Rejected, match="damaged, expected JSON in the header"):
        checker.check(proof.certificate, len(text).to_bytes(8, "little") + text)
