"""Compiled models on disk."""

from pathlib import Path

import pytest
import torch
from command import exit_code

from lengthwise.automata import library
from lengthwise.constructions import CONSTRUCTIONS, construct
from lengthwise.files import read_json, write_json
from lengthwise.runs.compiled import load_compiled, save_compiled
from lengthwise.tasks import make_task


@pytest.mark.parametrize("name", CONSTRUCTIONS)
@pytest.mark.parametrize("machine", [make_task("tomita", index=3), library.tomita(2), library.cycle(3)])
def test_comes_back_as_it_was(name: str, machine, tmp_path: Path) -> None:
    saved = construct(name, machine)
    save_compiled(saved, tmp_path / "there")
    loaded = load_compiled(tmp_path / "there")
    assert type(loaded.model) is type(saved.model)
    assert loaded.model.config == saved.model.config
    weights = saved.model.state_dict()
    assert all(torch.equal(weights[key], tensor) for key, tensor in loaded.model.state_dict().items())
    assert loaded.task == saved.task
    assert loaded.target.classes == saved.target.classes
    assert loaded.target.machine.equivalent(saved.target.machine)
    assert loaded[2:] == saved[2:]


def test_another_machine_may_replace_one(tmp_path: Path) -> None:
    for task in ("parity", "even-pairs"):
        save_compiled(construct("rnn", make_task(task)), tmp_path)
    assert load_compiled(tmp_path).task == make_task("even-pairs")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["compiled.json", "model.safetensors"]


def test_damage_is_found(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"expected the folder of a compiled model, found no such folder; run `lengthwise compile`"
    ):
        load_compiled(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"expected the folder of a compiled model, found no compiled.json"):
        load_compiled(tmp_path)
    save_compiled(construct("rnn", make_task("parity")), tmp_path)
    weights = tmp_path / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ValueError, match=r"model.safetensors: damaged file .its contents have changed"):
        load_compiled(tmp_path)
    weights.unlink()
    with pytest.raises(ValueError, match=r"found no model.safetensors"):
        load_compiled(tmp_path)
    description = tmp_path / "compiled.json"
    description.write_text(description.read_text().replace('"start": 0', '"start": 1'))
    with pytest.raises(ValueError, match=r"compiled.json: damaged file .its contents have changed"):
        load_compiled(tmp_path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"max_length": 0}, r"compiled\.json\.max_length: expected a number greater than or equal to 1, got 0"),
        ({"machine": {"table": [[0]]}}, r"compiled\.json\.machine\.symbols: expected a value, got none"),
        ({"classes": 3}, r"compiled\.json\.classes: expected a valid tuple, got 3"),
        ({"model": {}}, r"unknown model 'None'"),
        ({"task": {"name": 3}}, r"unknown task '3'"),
        ({"task": {"name": "subset-sum"}}, r"task: expected a task that a finite machine solves, got subset-sum"),
    ],
)
def test_a_description_that_was_edited_is_refused(change: dict, problem: str, tmp_path: Path) -> None:
    """Also with a digest that is right: not damaged, but no description either."""
    save_compiled(construct("rnn", make_task("parity")), tmp_path)
    description = tmp_path / "compiled.json"
    write_json(description, read_json(description, "") | change)
    with pytest.raises(ValueError, match=problem):
        load_compiled(tmp_path)


def test_a_net_in_double_precision_stays_one(tmp_path: Path) -> None:
    saved = construct("rnn", make_task("parity"))
    saved.model.double()
    save_compiled(saved, tmp_path)
    weights = saved.model.state_dict()
    for key, tensor in load_compiled(tmp_path).model.state_dict().items():
        assert tensor.dtype == torch.float64
        assert torch.equal(weights[key], tensor)


def test_an_automaton_whose_symbols_are_words_is_compiled(tmp_path: Path) -> None:
    path = tmp_path / "door.att"
    path.write_text("0 1 open\n1 0 close\n0\n")
    assert exit_code("compile", str(path), "--to", "rnn", "--out", str(tmp_path / "net")) == 0
    construction = load_compiled(tmp_path / "net")
    task = construction.target.task
    assert task is not None
    strings = [task.encode(text)[None] for text in ("open", "open close", "close")]
    answers = [task.classes[int(construction.model.last(string).argmax())] for string in strings]
    assert [answer == answers[1] for answer in answers] == [False, True, False]
