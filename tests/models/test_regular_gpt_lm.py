"""RegularGPT as a language model beyond the shared contract."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from lengthwise.models.regular_gpt_lm import RegularGPTLM, RegularGPTLMConfig

GPT2 = 50_257
PADDED = 50_304
"""GPT-2's vocabulary, and nanoGPT's, which is a multiple of 64."""


def make(*, num_symbols: int = 5, **settings: Any) -> RegularGPTLM:
    """A small model in float64 that is far from its start: the offsets of all tables differ, and no bias is 0."""
    config = RegularGPTLMConfig(**{"d_model": 8, "num_heads": 2, "chunk_size": 3, "thickness": 2, **settings})
    model = RegularGPTLM(config, vocab_size=num_symbols, num_classes=num_symbols).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return model


def draw(length: int, batch_size: int = 2) -> torch.Tensor:
    return torch.randint(5, (batch_size, length), generator=torch.Generator().manual_seed(length))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "settings", [{}, {"depth": "input", "activations": "recomputed"}, {"max_levels": 2, "num_tables": 2}], ids=str
)
@pytest.mark.parametrize("length", [1, 2, 13, 63])
def test_forms_agree(length: int, settings: dict, dtype: torch.dtype) -> None:
    """All answers, and the last alone, by blocks and by the masks of eq. (1): values and all gradients."""
    model, inputs = make(**settings).to(dtype), draw(length)
    parameters = list(model.parameters())
    expected = model.forward_by_definition(inputs)
    tolerance = {"atol": 1e-3, "rtol": 1e-3} if dtype == torch.float32 else {}
    for one, other in ((model(inputs), expected), (model.last(inputs), expected[:, -1])):
        torch.testing.assert_close(one, other, **tolerance)
        gradients = [
            torch.autograd.grad(logits.square().sum(), parameters, retain_graph=True) for logits in (one, other)
        ]
        torch.testing.assert_close(*gradients, **tolerance)


def test_prefixes_are_inputs_of_their_own() -> None:
    """By default; with depth "input" only the last answer is, and the others depend on the length."""
    inputs = draw(40)
    prefix, whole = make(), make(depth="input")
    torch.testing.assert_close(prefix(inputs)[:, :20], prefix(inputs[:, :20]))
    torch.testing.assert_close(prefix.last(inputs), whole.last(inputs))
    assert not torch.allclose(whole(inputs)[:, :20], whole(inputs[:, :20]))


def test_levels_grow_with_the_length_up_to_their_limit() -> None:
    model = RegularGPTLM(RegularGPTLMConfig(chunk_size=64, d_model=4), vocab_size=2, num_classes=2)
    lengths = (1, 64, 65, 512, 4096, 4097, 8192)
    assert [model.num_levels(length) for length in lengths] == [1, 1, 2, 2, 2, 3, 3]
    held = model.with_max_levels(2)
    assert [held.num_levels(length) for length in lengths] == [1, 1, 2, 2, 2, 2, 2]
    assert held.embedding is model.embedding
    assert held.with_max_levels(None).config == model.config
    with pytest.raises(ValueError, match=r"model.max_levels: expected .*, got 0"):
        model.with_max_levels(0)


@torch.no_grad()
def test_an_answer_depends_on_the_receptive_field_and_on_all_of_it() -> None:
    """1 + K (C^L - 1) positions, with K=2, C=3, L=2, which is more than C^L."""
    model, inputs = make(max_levels=2), draw(40)
    assert (model.receptive_field, make().receptive_field) == (17, None)
    expected = model.last(inputs)
    torch.testing.assert_close(model.last(inputs[:, -17:]), expected)
    torch.testing.assert_close(model.last(torch.cat([(inputs[:, :-17] + 1) % 5, inputs[:, -17:]], 1)), expected)
    changed = inputs.clone()
    changed[:, -17] = (changed[:, -17] + 1) % 5
    assert float((model.last(changed) - expected).abs().min()) > 1e-9


def test_offsets_that_no_training_string_reaches_get_no_gradient() -> None:
    """At 3 C symbols the second level has windows of three states: with a table of its own, r_3, ... are never used."""
    model = make(chunk_size=8, num_tables=2)
    model(draw(24)).square().sum().backward()
    used = (model.offsets.grad != 0).all((1, 2))
    assert used[0].tolist() == [True] * 8
    assert used[1].tolist() == [True] * 3 + [False] * 5


def test_symbols_are_read_and_answered_by_one_table() -> None:
    """It is listed once, and stays one when a model is saved, loaded and copied."""
    model = make(num_symbols=7)
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    assert len(names) == len(set(names)) == len(model.state_dict())
    assert sum(tensor.shape[0] == 7 for tensor in model.parameters()) == 1
    changed = make(num_symbols=7)
    with torch.no_grad():
        changed.embedding.weight.add_(1.0)
    states = torch.ones(1, 8, dtype=torch.float64)
    before = model.readout(states)
    model.load_state_dict(changed.state_dict())
    assert not torch.allclose(model.readout(states), before)
    torch.testing.assert_close(model.readout[1](states), states @ changed.embedding.weight.T)


def test_starts_as_gpt2_does() -> None:
    """Standard deviations of all matrices: those into the residual are smaller by the square root of 2 K."""
    model = RegularGPTLM(RegularGPTLMConfig(d_model=128, thickness=2, chunk_size=64), vocab_size=500, num_classes=500)
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            expected = 0.01 if name.endswith(("output.weight", "narrow.weight")) else 0.02
            assert float(parameter.detach().std()) == pytest.approx(expected, rel=0.1), name
        else:
            assert bool((parameter == (0.0 if name.endswith("bias") else 1.0)).all()), name


@pytest.mark.parametrize(
    ("vocab_size", "thickness", "chunk_size", "millions"),
    [(GPT2, 6, 32, 81), (PADDED, 6, 64, 81), (PADDED, 6, 256, 81), (GPT2, 12, 128, 123), (PADDED, 12, 128, 123)],
)
def test_sizes_are_those_of_the_paper(vocab_size: int, thickness: int, chunk_size: int, millions: int) -> None:
    """81M and 123M, cut off (Table 5): V D in the table, 12 D^2 + 13 D a layer, a norm, and H C offsets a layer."""
    width = 768
    config = RegularGPTLMConfig(d_model=width, num_heads=12, thickness=thickness, chunk_size=chunk_size)
    with torch.device("meta"):
        model = RegularGPTLM(config, vocab_size=vocab_size, num_classes=vocab_size)
    count = sum(parameter.numel() for parameter in model.parameters())
    layer = 12 * width**2 + 13 * width + 12 * chunk_size
    assert count == vocab_size * width + thickness * layer + 2 * width
    assert count // 10**6 == millions


def test_a_step_lowers_the_loss_of_text() -> None:
    """Next symbols of a string that repeats: what AdamW makes of all gradients together."""
    model = RegularGPTLM(RegularGPTLMConfig(d_model=16, chunk_size=4), vocab_size=5, num_classes=5)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    text = torch.arange(41).remainder(5)[None]
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[0, 1:])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(math.log(5), abs=0.1)
    assert losses[-1] < 0.5
