"""Proofs as VNN-LIB queries: a parser of its own gives the boxes back, and no sampled state breaks a claim."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from command import exit_code
from onnx.reference import ReferenceEvaluator
from proved_nets import wrapped
from safetensors.torch import save_file
from slow_nets import LAST, slow_net
from torch import nn
from vnnlib_queries import TASK, export_queries, is_satisfied, parse, save_certified

from lengthwise.certification.certify import certify
from lengthwise.constructions import construct
from lengthwise.models.base import RecurrentModel
from lengthwise.models.wrapped import WrappedRNN, wrap
from lengthwise.runs.compiled import save_compiled
from lengthwise.runs.described import parts_of
from lengthwise.tasks import make_task

KINDS = ("rnn", "gru", "lstm", "wrapped gru", "wrapped lstm")


# Each kind is certified and its queries are run for seconds; the slow ones differ in gates and head alone.
@pytest.fixture(params=["rnn", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind != "rnn")])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The queries of a net that says whether the last symbol is b."""
    monkeypatch.chdir(tmp_path)
    kind: str = request.param
    if kind.startswith("wrapped"):
        net: RecurrentModel = linear_head(wrapped(kind.split()[1]))
        save_file(parts_of(net), "net.safetensors")
        Path("net.toml").write_text('weights = "net.safetensors"\ntask = {name = "regex", pattern = "(a|b)*b"}\n')
        source = "net.toml"
        Path("net.certificate.json").write_text(certify(net, TASK).to_text())
    else:
        net, source = slow_net(kind, None, pace=0.02 if kind == "rnn" else 0.3), "net"
        save_certified(net, Path("net"))
    return export_queries(source)


def linear_head(net: WrappedRNN) -> WrappedRNN:
    """The same net with a head of one linear map, as files have it."""
    head = nn.Linear(8, 2)
    with torch.no_grad():
        head.weight.zero_()
        head.weight[:, LAST] = torch.tensor([-4.0, 4.0])
        head.bias.zero_()
    return wrap(net.embedding, net.core, head)


def is_satisfied_somewhere(folder: Path, graph: str, text: str) -> bool:
    """Whether corners and other states drawn from the box of a query satisfy it."""
    enclosure, failures = parse(text)
    run, drawn = ReferenceEvaluator(onnx.load(folder / graph)), np.random.default_rng(0)
    width = enclosure.shape[1]
    shares = np.concatenate([np.full((1, width), 0.5), drawn.integers(0, 2, (10, width)), drawn.random((10, width))])
    states = (enclosure[0] + shares * (enclosure[1] - enclosure[0])).astype(np.float32)
    return any(is_satisfied(failures, run.run(None, {"state": state[None]})[0][0]) for state in states)


@pytest.mark.usefixtures("fewer_strings")
def test_no_state_breaks_a_claim_and_wrong_claims_are_broken(folder: Path) -> None:
    facts = json.loads((folder / "proof.json").read_text())
    low, high, table = (np.array(facts[name]) for name in ("low", "high", "table"))
    lines = [line.split(",") for line in (folder / "instances.csv").read_text().splitlines()]
    assert len(lines) == table.size + sum(output is not None for output in facts["outputs"])
    for graph, name, _ in lines:
        text = (folder / name).read_text()
        enclosure, failures = parse(text)
        numbers = [int(number) for number in re.findall(r"\d+", name)]
        np.testing.assert_array_equal(enclosure, [low[numbers[0]], high[numbers[0]]])
        assert not is_satisfied_somewhere(folder, graph, text)
        if name.startswith("step"):
            target = table[numbers[0], numbers[1]]
            ends = [[float(end) for sign, _, end in failures if sign == side] for side in "<>"]
            np.testing.assert_array_equal(ends, [low[target], high[target]])
            middle = enclosure.mean(0, keepdims=True).astype(np.float32)
            reached = ReferenceEvaluator(onnx.load(folder / graph)).run(None, {"state": middle})[0][0]
            shrunk = re.sub(r"\(>= Y_2 \S+\)", f"(>= Y_2 {reached[2]:.9f})", text)
            assert shrunk != text
            assert is_satisfied_somewhere(folder, graph, shrunk)
        else:
            answer = facts["outputs"][numbers[0]]
            assert is_satisfied_somewhere(
                folder, graph, text.replace(f"Y_{1 - answer} Y_{answer}", f"Y_{answer} Y_{1 - answer}")
            )
    first = np.array(facts["first_state"])
    assert (low[facts["start"]] <= first).all()
    assert (first <= high[facts["start"]]).all()


@pytest.mark.usefixtures("fewer_strings")
def test_proofs_without_such_enclosures_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    save_compiled(construct("rnn", make_task("parity")), "net")
    assert exit_code("export", "net", "--to", "vnnlib", "--out", "queries") == 2
    assert "expected a certificate of level 'proved', got no certificate" in capsys.readouterr().err
    assert exit_code("certify", "net") == 0
    assert exit_code("export", "net", "--to", "vnnlib", "--out", "queries") == 2
    assert "boxes of positive width in the model's proof, because VNN-LIB" in capsys.readouterr().err
