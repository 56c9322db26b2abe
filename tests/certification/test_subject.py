"""Settings of torch, and models that hide what they compute with, are refused in a sentence."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from last_symbol import LastSymbol, last_symbol_net
from slow_nets import slow_net
from torch import nn

from lengthwise import construct, make_model, make_task, wrap
from lengthwise.certification.certify import certify
from lengthwise.certification.confirm import confirm
from lengthwise.certification.subject import check_made_by_settings
from lengthwise.models.base import SequenceModel

TASK = LastSymbol()


@pytest.fixture
def backends() -> Iterator[Any]:
    """Precisions of oneDNN, restored afterwards."""
    before = {name: getattr(torch.backends.mkldnn, name).fp32_precision for name in ("matmul", "rnn", "conv")}
    yield torch.backends.mkldnn
    for name, precision in before.items():
        getattr(torch.backends.mkldnn, name).fp32_precision = precision


@pytest.mark.parametrize("name", ["rnn", "conv"])
def test_lower_precisions_of_one_backend_are_refused(name: str, backends: Any) -> None:
    getattr(backends, name).fp32_precision = "bf16"
    option = f"torch.backends.mkldnn.{name}.fp32_precision"
    sentence = f"precision: expected 'ieee' for {option}, got 'bf16'; set it to 'ieee'"
    with pytest.raises(ValueError, match=sentence):
        certify(slow_net("lstm", None, pace=0.3), TASK)


def test_another_default_device_is_refused() -> None:
    model = last_symbol_net()
    torch.set_default_device("meta")
    try:
        with pytest.raises(
            ValueError, match=r"device: expected the CPU as torch's default, got meta; call torch\.set_de"
        ):
            certify(model, TASK)
    finally:
        torch.set_default_device(None)


def in_float32(module: torch.nn.Module, state: dict[str, torch.Tensor], prefix: str, metadata: Any) -> None:
    for name in list(state):
        state[name] = state[name].float()


def zeroed(module: torch.nn.Module, state: dict[str, torch.Tensor], prefix: str, metadata: Any) -> None:
    state["readout.bias"] = 0 * state["readout.bias"]


def test_state_dicts_that_hide_the_weights_are_refused() -> None:
    half = slow_net("rnn", None, pace=0.3).bfloat16()
    half.register_state_dict_post_hook(in_float32)
    with pytest.raises(ValueError, match=r"expected weights in float32 or float64, got torch\.bfloat16"):
        certify(half, TASK)
    other = slow_net("rnn", None, pace=0.3)
    other.register_state_dict_post_hook(zeroed)
    with pytest.raises(
        ValueError, match=r"a state dict of the model's own parameters and buffers, but readout\.bias differs; rem"
    ):
        certify(other, TASK)


@pytest.mark.usefixtures("fewer_strings")
def test_nothing_is_proved_of_a_net_that_its_settings_and_weights_do_not_make() -> None:
    """A certificate names its model by these, and the epsilon of a norm is neither."""
    model = last_symbol_net()
    assert certify(model, TASK).level == "proved"
    changed = [part for part in model.modules() if isinstance(part, torch.nn.LayerNorm)]
    for part in changed:
        part.eps = 1e-3
    certificate = certify(model, TASK)
    assert changed
    assert certificate.level == "extracted"
    assert (
        "expected eps=1e-05 in its part 'layers.0.norms.0', as its settings imply, got 0.001; build"
        in certificate.reason
    )


@pytest.mark.usefixtures("fewer_strings")
def test_a_net_may_read_more_symbols_than_the_task_has() -> None:
    table = {"outputs": (0, 1), "answers": ("even", "odd")}
    three = make_task("machine", alphabet=("a", "b", "c"), table=((0, 1, 0), (1, 0, 1)), **table)
    two = make_task("machine", alphabet=("a", "b"), table=((0, 1), (1, 0)), **table)
    model = construct("rnn", three).model
    assert certify(model, two).level == "proved"
    model.register_buffer("more", torch.zeros(1))
    assert certify(model, two).level == "extracted"


def more_tensors(model: SequenceModel) -> None:
    model.register_buffer("more", torch.zeros(1))


def other_name(model: SequenceModel) -> None:
    model.name = "other"


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (more_tensors, "that its settings imply, but tensor 'more' differs; certify"),
        (other_name, "expected name=None in its part 'regular-gpt'"),
    ],
)
def test_settings_are_compared_whatever_else_is_in_a_model(
    change: Callable[[SequenceModel], None], sentence: str
) -> None:
    model = last_symbol_net()
    proved = certify(model, TASK)
    change(model)
    for part in model.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = 1e-3
    certificate = certify(model, TASK)
    assert certificate.level == "extracted"
    assert sentence in certificate.reason
    with pytest.raises(ValueError, match=r"could not be repeated \(model: expected "):
        confirm(proved, model, TASK)


def test_one_part_may_be_used_twice() -> None:
    """The settings are compared place by place."""
    model = make_model("gru", TASK, num_layers=2, d_model=4)
    model.norms[1] = model.norms[0]
    check_made_by_settings(model, TASK)
    model.readout[4] = model.readout[2]
    with pytest.raises(ValueError, match="with the names and shapes that its settings imply, but "):
        check_made_by_settings(model, TASK)
    model = make_model("gru", TASK)
    model.extra = nn.ReLU()
    with pytest.raises(ValueError, match="expected the parts that its settings imply, but part 'extra' is missing or"):
        check_made_by_settings(model, TASK)


@pytest.mark.usefixtures("fewer_strings")
def test_nothing_is_proved_of_a_part_that_stands_before_another() -> None:
    """An attribute is used before the part of that name, which alone the state dict and the settings name."""
    model = slow_net("rnn", None, pace=0.3)
    assert certify(model, TASK).level == "proved"
    model.__dict__["recurrence"] = copy.deepcopy(model.recurrence)
    certificate = certify(model, TASK)
    assert certificate.level == "extracted"
    assert "got two parts called recurrence" in certificate.reason


def test_a_certificate_names_the_epsilon_of_a_user_s_norm() -> None:
    parts = (nn.Embedding(2, 2), nn.RNN(2, 2, batch_first=True))
    usual, other = (wrap(*parts, nn.Sequential(nn.LayerNorm(2, eps=eps), nn.Linear(2, 2))) for eps in (1e-5, 1e-3))
    assert usual.config.head == "LayerNorm, Linear"
    assert other.config.head == "LayerNorm(eps=0.001), Linear"


@pytest.mark.usefixtures("fewer_strings")
def test_the_model_of_a_run_is_the_one_that_its_settings_make() -> None:
    """Its precision is set once it is made."""
    model = slow_net("rnn", None, pace=0.3)
    model.precision = "float32"
    assert certify(model, TASK).level == "proved"
