"""Proofs as VNN-LIB queries: a parser of its own gives the boxes back, and no sampled state breaks a claim."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import exit_code
from onnx.reference import ReferenceEvaluator
from slow_nets import slow_net

from lengthwise.certification.certificate import CERTIFICATE
from lengthwise.certification.certify import certify
from lengthwise.constructions import construct
from lengthwise.runs.compiled import save_compiled
from lengthwise.runs.hub import save_hub
from lengthwise.tasks import make_task


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The queries of a tanh RNN that says whether the last symbol is b."""
    monkeypatch.chdir(tmp_path)
    net, task = slow_net("rnn", None), make_task("regex", pattern="(a|b)*b")
    save_hub(Path("net"), net, task, ("compiled", "slow"))
    Path("net", CERTIFICATE).write_text(certify(net, task).to_text())
    assert exit_code("export", "net", "--to", "vnnlib", "--out", "queries") == 0
    return Path("queries")


def parse(text: str) -> tuple[np.ndarray, list[tuple[str, int, str]]]:
    """The box of the inputs [2, Z], and the comparisons of which one must hold for the query to be satisfied."""
    enclosure = np.zeros((2, len(re.findall(r"declare-const X_", text))))
    bounds, _, failures = text.partition("(assert (or")
    for sign, index, number in re.findall(r"\(assert \(([<>])= X_(\d+) (\S+)\)\)", bounds):
        enclosure[int(sign == "<"), int(index)] = float(number)
    return enclosure, [
        (sign, int(index), end) for sign, index, end in re.findall(r"\(([<>])= Y_(\d+) (\S+?)\)", failures)
    ]


def is_satisfied(failures: list[tuple[str, int, str]], output: np.ndarray) -> bool:
    """Whether one of the comparisons holds."""
    ends = [output[int(end[2:])] if end.startswith("Y_") else float(end) for _, _, end in failures]
    numbers = [(sign, output[index]) for sign, index, _ in failures]
    return any(one <= end if sign == "<" else one >= end for (sign, one), end in zip(numbers, ends, strict=True))


def is_satisfied_somewhere(folder: Path, graph: str, text: str) -> bool:
    """Whether corners and other states drawn from the box of a query satisfy it."""
    enclosure, failures = parse(text)
    run, drawn = ReferenceEvaluator(onnx.load(folder / graph)), np.random.default_rng(0)
    shares = np.concatenate([drawn.integers(0, 2, (30, enclosure.shape[1])), drawn.random((30, enclosure.shape[1]))])
    states = (enclosure[0] + shares * (enclosure[1] - enclosure[0])).astype(np.float32)
    return any(is_satisfied(failures, run.run(None, {"state": state[None]})[0][0]) for state in states)


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
            middle = (low[target] + high[target])[2] / 2  # of the last symbol's unit
            shrunk = re.sub(r"\(>= Y_2 \S+\)", f"(>= Y_2 {middle - 1e-2})", text)
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


def test_proofs_without_such_enclosures_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    save_compiled(construct("rnn", make_task("parity")), "net")
    assert exit_code("export", "net", "--to", "vnnlib", "--out", "queries") == 2
    assert "expected a certificate of level proved, got no certificate" in capsys.readouterr().err
    assert exit_code("certify", "net") == 0
    assert exit_code("export", "net", "--to", "vnnlib", "--out", "queries") == 2
    assert "single states of a net in exact arithmetic" in capsys.readouterr().err
