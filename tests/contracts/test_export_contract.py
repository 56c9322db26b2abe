"""Every recurrent model as a graph: it answers in onnxruntime, symbol by symbol, as the model does."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from lengthwise.export.onnx import onnx_model, runner
from lengthwise.models import MODELS, RecurrentModel, SequenceModel
from lengthwise.models.capabilities import AnswersUpTo

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
    small = {key: size for key, size in SMALL.items() if key in kind.model_fields}
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


@pytest.mark.parametrize("name", RECURRENT)
def test_a_step_in_onnxruntime_is_that_of_the_model(name: str) -> None:
    model = make(name)
    run = runner(onnx_model(model, {}), "step", model)
    check(model, run, 1, 1)
    check(model, run, 4, 40)
    check(model, run, 1, 5_000)
