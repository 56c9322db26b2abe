"""Sizes that no machine holds are rejected in one sentence, before anything is built."""

import re
import time

import pytest
import torch
from torch import nn

from lengthwise.models import MODELS
from lengthwise.models.base import MAX_PARAMETERS, _outline, make_model, outline
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task

ABSURD = [2**31, 2**62, 10**20, 10**400]
COUNTS = [
    (name, field)
    for name in MODELS
    for field, info in MODELS[name].Config.model_fields.items()
    if "int" in str(info.annotation) and "Literal" not in str(info.annotation)
]


@pytest.mark.parametrize("size", ABSURD, ids=["2^31", "2^62", "10^20", "10^400"])
@pytest.mark.parametrize(("name", "field"), COUNTS)
def test_every_count_of_every_model_has_a_bound(name: str, field: str, size: int) -> None:
    start = time.process_time()
    several = "tuple" in str(MODELS[name].Config.model_fields[field].annotation)
    entry = rf"{field}\.0" if several else field
    with pytest.raises(ValueError, match=rf"model\.{entry}: expected a number less than or equal to \d+, got"):
        make_model(name, make_task("parity"), **{field: (size,) if several else size})
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gru", {"d_model": 65_536}),
        ("gru", {"d_model": 2048, "num_layers": 128}),
        ("linear-rnn", {"d_state": 262_144}),
        ("transformer", {"d_model": 262_144, "num_layers": 128}),
        ("block-linear-rnn", {"d_model": 262_144, "block_dim": 262_144, "hidden": 262_144}),
        ("s4", {"d_state": 262_144, "d_model": 262_144}),
        ("regular-gpt", {"d_model": 4096, "thickness": 128}),
    ],
)
def test_nets_of_too_many_parameters_are_rejected_before_they_are_built(name: str, settings: dict) -> None:
    sentence = r"model: expected at most 200,000,000 parameters, got [\d,]+; lower its width"
    start = time.process_time()
    with pytest.raises(ValueError, match=sentence):
        make_spec("parity", name, {"model": settings})
    with pytest.raises(ValueError, match=sentence):
        make_model(name, make_task("parity"), **settings)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("name", list(MODELS))
def test_an_outline_has_the_shapes_of_the_model_and_no_numbers(name: str) -> None:
    task, config = make_task("parity"), MODELS[name].Config()
    made, drawn = make_model(name, task), outline(name, config, task)
    for own in (nn.Module.named_parameters, nn.Module.named_buffers, lambda model: model.state_dict().items()):
        shapes = {key: tensor.shape for key, tensor in own(made)}
        assert {key: tensor.shape for key, tensor in own(drawn)} == shapes
    assert {parameter.device for parameter in drawn.parameters()} == {torch.device("meta")}
    assert sum(parameter.numel() for parameter in made.parameters()) < MAX_PARAMETERS
    assert vars(drawn).keys() == vars(made).keys()
    assert type(drawn) is MODELS[name]


def test_what_another_model_does_as_it_draws_is_in_its_outline() -> None:
    """It may check its sizes there, make parameters, or look at its type; and it is called as its author wrote it."""

    class MakesMore(MODELS["gru"]):
        def __init__(self, config, **sizes) -> None:
            super().__init__(config, **sizes)
            assert type(self) is MakesMore

        def reset_parameters(self, generator, std=1.0) -> None:
            super().reset_parameters(generator)
            self.more = nn.Parameter(torch.zeros(1_000))
            if self.config.d_model == 7:
                raise ValueError("d_model: expected another, got 7")

    sizes = {"vocab_size": 2, "num_classes": 2}
    assert dict(_outline(MakesMore, MODELS["gru"].Config(d_model=4), **sizes).named_parameters())["more"].shape == (
        1_000,
    )
    with pytest.raises(ValueError, match="expected another"):
        _outline(MakesMore, MODELS["gru"].Config(d_model=7), **sizes)


@pytest.mark.parametrize("name", list(MODELS))
def test_an_outline_draws_no_normal_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing some on the device "meta" imports torch's compiler, in a second."""

    def drawn(*given: object) -> None:
        raise AssertionError("drawn")

    monkeypatch.setattr(torch.nn.init, "_no_grad_normal_", drawn)
    _outline.cache_clear()
    outline(name, MODELS[name].Config(), make_task("parity"))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"max_length": 10**9}, "train.max_length: expected a number less than or equal to 10000, got 1000000000"),
        ({"max_length": 10**20}, "train.max_length: expected a number less than or equal to 10000"),
        ({"steps": 10**20}, "train.steps: expected a number less than or equal to"),
        ({"batch_size": 10**12}, "train.batch_size: expected a number less than or equal to"),
        ({"augmentation": {"leading_pads": 10**12}}, "train.augmentation.leading_pads: expected a number less than"),
        ({"batch_size": 10**6}, "train: expected at most 8,589,934,592 activations in a step, got"),
        (
            {"batch_size": 10**4, "max_length": 10**4},
            "train: expected at most 8,589,934,592 activations in a step, got",
        ),
        (
            {"batch_size": 10**4, "augmentation": {"leading_pads": 10**6}},
            "train: expected at most 8,589,934,592 activations in a step, got",
        ),
    ],
)
def test_batches_that_no_memory_holds_are_rejected(settings: dict, sentence: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match=re.escape(sentence)):
        make_spec("parity", "regular-gpt", {"train": settings})
    assert time.process_time() - start < 2


@pytest.mark.unchecked
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", ["vocab_size", "num_classes"])
@pytest.mark.parametrize("wrong", [0, -1, 1.5])
def test_sizes_below_one_are_rejected(name: str, size: str, wrong: float) -> None:
    with pytest.raises(ValueError, match=f"{size}: expected a whole number of at least 1, got {wrong}; "):
        MODELS[name](MODELS[name].Config(), **{"vocab_size": 2, "num_classes": 2, size: wrong})
