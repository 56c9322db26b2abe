"""Every recurrent model as a graph: it answers in onnxruntime, symbol by symbol, as the model does."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from lengthwise.export.graphs import trace
from lengthwise.export.onnx import onnx_model
from lengthwise.export.onnx import runner as onnx_runner
from lengthwise.export.torch_program import runner as torch_runner
from lengthwise.models import MODELS, RecurrentModel, SequenceModel
from lengthwise.models.capabilities import AnswersUpTo, FollowsTraining, QuantizesStates
from lengthwise.models.stacked_rnn import StackedRNN
from lengthwise.models.wrapped import wrap

pytestmark = pytest.mark.unchecked

RECURRENT = [name for name in MODELS if issubclass(MODELS[name], RecurrentModel)]
UP_TO = [name for name in MODELS if issubclass(MODELS[name], AnswersUpTo)]
OTHERS = [name for name in MODELS if name not in RECURRENT + UP_TO]
SMALL = {"d_model": 8, "d_state": 6, "hidden": 8, "num_heads": 2, "block_dim": 4}


@pytest.fixture(autouse=True, scope="module")
def one_table_of_operators():
    """Of torch's translations to ONNX, which are otherwise collected again, in a second, for each export."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(cache(ONNXRegistry.from_torchlib)))
        yield


def make(name: str, **settings: Any) -> SequenceModel:
    """A small one, so that thousands of steps take no time."""
    kind = MODELS[name].Config
    small = {key: size for key, size in SMALL.items() if kind.uses(key, settings)}
    generator = torch.Generator().manual_seed(0)
    return MODELS[name](kind(**small | settings), vocab_size=3, num_classes=5, generator=generator).eval()


def draw(size: int, length: int) -> torch.Tensor:
    return torch.randint(3, (size, length), generator=torch.Generator().manual_seed(1))


def check(model: SequenceModel, run: Any, size: int, length: int) -> None:
    inputs = draw(size, length)
    with torch.no_grad():
        expected = model(inputs).numpy()
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(run(inputs.numpy()), expected, rtol=1e-5, atol=1e-5)


STACKS = [name for name in RECURRENT if issubclass(MODELS[name], StackedRNN)]
STEPS = [
    *(
        pytest.param(name, "torch", id=f"{name}-torch", marks=[pytest.mark.slow] * (n > 0))
        for n, name in enumerate(STACKS)
    ),
    *(pytest.param(name, "onnx", id=f"{name}-onnx", marks=[pytest.mark.slow] * (name in STACKS)) for name in RECURRENT),
]
"""Of stacks, of which there are many, one is traced; the others, and all of them in ONNX, are slow tests."""

LOOPS = [
    pytest.param(name, marks=[pytest.mark.slow] * issubclass(MODELS[name], (StackedRNN, FollowsTraining)))
    for name in RECURRENT
]
"""Those whose step is a few operations, and all others among the slow tests."""


@pytest.mark.parametrize(("name", "runtime"), STEPS)
def test_a_step_is_that_of_the_model(name: str, runtime: str) -> None:
    model = make(name)
    if runtime == "onnx":
        run = onnx_runner(onnx_model(model, {}), "step", model)
        with torch.no_grad():  # states of some models grow with every symbol, and overflow after a thousand
            check(model, run, 1, 2_000 if model(draw(1, 2_000)).isfinite().all() else 500)
    else:
        run = torch_runner(trace(model), model)
    check(model, run, 1, 1)
    check(model, run, 4, 40)


def check_parts(model: SequenceModel) -> None:
    """Strings in parts of 1, 12 and 27 symbols, each read from the state where the last one ended, and all at once."""
    content = onnx_model(model, {}, "parts")
    check(model, onnx_runner(content, "parts", model), 3, 40)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    state = np.tile(json.loads(session.get_modelmeta().custom_metadata_map["initial_state"]), (3, 1))
    state, strings, parts = state.astype(np.float32), draw(3, 40), []
    for part in strings.split([1, 12, 27], 1):
        logits, state = session.run(["logits_of_prefixes", "last_state"], {"inputs": part.numpy(), "state": state})
        parts.append(logits)
    with torch.no_grad():
        np.testing.assert_allclose(np.concatenate(parts, 1), model(strings).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_in_onnx_answers_whole_strings(name: str) -> None:
    model = make(name)
    content = onnx_model(model, {"task": "{}"}, "strings")
    run = onnx_runner(content, "strings", model)
    check(model, run, 1, 1)
    check(model, run, 4, 40)
    check_parts(model)
    assert str(Path.cwd()).encode() not in content
    assert b".py" not in content
    assert onnx_model(model, {"task": "{}"}, "strings") == content, "the same weights give the same file"


@pytest.mark.slow
@pytest.mark.parametrize("name", RECURRENT)
def test_a_loop_in_torch_answers_whole_strings(name: str) -> None:
    model = make(name)
    run = torch_runner(trace(model, "strings"), model)
    check(model, run, 1, 2)
    check(model, run, 4, 40)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * issubclass(MODELS[name], QuantizesStates)) for name in UP_TO]
)
@pytest.mark.parametrize("runtime", ["torch", pytest.param("onnx", marks=pytest.mark.slow)])
def test_strings_up_to_a_length(name: str, runtime: str) -> None:
    model = make(name)
    if runtime == "onnx":
        run = onnx_runner(onnx_model(model, {}, max_length=13), "strings", model)
    else:
        run = torch_runner(trace(model, max_length=13), model)
    for length in (1, 6, 13):
        check(model, run, 3, length)


@pytest.mark.parametrize("name", UP_TO)
def test_what_is_exported_of_strings_up_to_a_length_is_the_model(name: str) -> None:
    model, inputs = make(name).double(), draw(3, 9)
    with torch.no_grad():
        torch.testing.assert_close(model.forward_bounded(inputs, 20), model(inputs))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_nets_of_ones_own_are_exported_too(kind: type[nn.RNNBase]) -> None:
    torch.manual_seed(0)
    model = wrap(nn.Embedding(3, 4), kind(4, 6, 2), nn.Linear(6, 5)).eval()
    check(model, onnx_runner(onnx_model(model, {}), "step", model), 4, 40)


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match=f"model: expected a recurrent model, or a model whose graph .*, got {name}; if"
    ):
        trace(make(name))


PARTS = r"form: expected 'step' or 'strings', got 'parts', which only recurrent models in format onnx have"


@pytest.mark.parametrize("name", UP_TO)
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "max_length: expected the length of the longest strings, because the graph of a {name} grows"),
        ({"max_length": 1}, "max_length: expected at least 2, because a graph takes strings of sever"),
        ({"form": "step"}, "form: expected 'strings', because {name} does not read symbol by symbol, got 'step'"),
        ({"form": "parts"}, PARTS),
    ],
)
def test_strings_up_to_a_length_have_no_other_form(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence.format(name=name)):
        trace(make(name), **options)


@pytest.mark.parametrize("name", RECURRENT)
@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"form": "parts"}, PARTS), ({"max_length": 9}, "max_length: expected no value for {name} in form step")],
)
def test_a_step_has_no_largest_length(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence.format(name=name)):
        trace(make(name), **options)
