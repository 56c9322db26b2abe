"""What every setting of every model promises: it changes the net, or a value other than its default is refused."""

import typing
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from typing import Any, Literal

import pytest
import torch

from lengthwise.layers.positions.base import POSITIONS
from lengthwise.models import MODELS
from lengthwise.models.base import ModelConfig
from lengthwise.models.capabilities import FollowsTraining, HasPenalty

BASE: dict[str, Any] = {"d_model": 16, "num_layers": 2, "num_loops": 2, "hidden": 8, "num_heads": 2}
"""Small, and with more than one of what there may be one of."""


def literals(annotation: object) -> list[Any]:
    """The values that a type lists."""
    if typing.get_origin(annotation) is Literal:
        return list(typing.get_args(annotation))
    return [value for part in typing.get_args(annotation) for value in literals(part)]


def others(config: type[ModelConfig], name: str, value: Any) -> list[Any]:
    """Values that a setting may have in place of this one, among them some that it may not have."""
    listed = [each for each in literals(config.model_fields[name].annotation) if each != value]
    if listed:
        return listed
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return ["sm", "rotary"]
    if isinstance(value, int | float):
        numbers = [2 * value, value / 2, value + 1, 4, 0.5, 1]
        return [type(value)(number) for number in numbers if type(value)(number) != value]
    return [(4,), 8, 1, 0.5]


def configuration(name: str, **settings: Any) -> ModelConfig | None:
    """The description with these settings; None where it is refused."""
    kind = MODELS[name].Config
    try:
        return kind(**{key: BASE[key] for key in BASE if kind.uses(key, settings)} | settings)
    except ValueError:
        return None


@cache
def numbers(name: str, config: ModelConfig) -> list[torch.Tensor]:
    """What there is to see of a net: its first weights, and, with others, penalty and answers, in training, too.

    With others, since of first weights that are zeros nothing may be seen.
    """
    model = MODELS[name](config, vocab_size=4, num_classes=3, generator=torch.Generator().manual_seed(0))
    seen = [weights.clone() for weights in model.state_dict().values()]
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
        if isinstance(model, FollowsTraining):
            model.set_progress(0.7)
        if isinstance(model, HasPenalty):
            seen.append(model.penalty())
        strings = torch.randint(4, (2, min(37, model.max_length or 37)), generator=generator)
        return [*seen, model.eval()(strings), model.train()(strings)]


def is_same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(
        a is not None and b is not None and a.shape == b.shape and torch.equal(a, b) for a, b in zip_longest(one, other)
    )


def choices(name: str) -> Iterator[dict[str, Any]]:
    """The defaults, and each other value of each setting whose values are listed."""
    kind = MODELS[name].Config
    yield {}
    for key, field in kind.model_fields.items():
        values = literals(field.annotation) or ([True, False] if isinstance(field.default, bool) else [])
        yield from ({key: value} for value in values if value != field.default)


# By default each setting is changed next to the defaults of the others; pairs of settings are many more nets.
@pytest.mark.parametrize("with_choices", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", list(MODELS))
def test_every_setting_changes_the_net_or_is_refused(name: str, with_choices: bool) -> None:
    kind = MODELS[name].Config
    assert configuration(name)
    for choice in choices(name) if with_choices else [{}]:
        config = configuration(name, **choice)
        if config is None:
            continue
        before = numbers(name, config)
        for key in kind.model_fields.keys() - choice.keys() - kind.other_effects.keys():
            values = others(kind, key, getattr(config, key))
            changed = [made for value in values if (made := configuration(name, **choice, **{key: value}))]
            assert not changed or not all(is_same(before, numbers(name, each)) for each in changed), (
                f"{key} does nothing with {choice}, and is not refused; name it in used_with"
            )


@pytest.mark.parametrize("name", list(MODELS))
def test_settings_that_change_no_number_have_another_effect(name: str) -> None:
    kind = MODELS[name].Config
    assert kind.other_effects.keys() <= kind.model_fields.keys()
    assert all(effect.strip() for effect in kind.other_effects.values())


@pytest.mark.parametrize("name", list(MODELS))
def test_true_is_no_number(name: str) -> None:
    kind = MODELS[name].Config
    numbers = [key for key, field in kind.model_fields.items() if type(field.default) in (int, float)]
    for key in numbers:
        with pytest.raises(ValueError, match=f"^{key}: expected a number, got True; write a number$"):
            kind(**{key: True})


@pytest.mark.parametrize("name", [name for name in MODELS if MODELS[name].Config.used_with])
def test_a_setting_that_would_do_nothing_is_refused_in_one_sentence(name: str) -> None:
    kind = MODELS[name].Config
    for key, (other, values) in kind.used_with.items():
        known = literals(kind.model_fields[other].annotation) or list(POSITIONS)
        unused = [value for value in known if value not in values]
        assert len(unused) < len(known)
        for value in unused:
            given = next(each for each in others(kind, key, kind.model_fields[key].default) if each)
            with pytest.raises(ValueError, match=f"^{key}: expected its default, .* because it has no effect with "):
                kind(**{other: value, key: given})
