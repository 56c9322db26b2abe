"""Loops by hand, the identity at the start, parameters counted, memory saved, pads and vectors."""

from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch

from lengthwise.conventions import PAD
from lengthwise.models.looped_transformer import LoopedTransformer, LoopedTransformerConfig, Variant
from lengthwise.models.transformer import Transformer, TransformerConfig
from lengthwise.ops.sinusoids import position_sinusoids
from lengthwise.presets import PRESETS
from lengthwise.runs.spec import make_spec

VARIANTS = get_args(Variant)


def make(*, loops: int = 3, seed: int = 0, vectors: bool = False, **settings: Any) -> LoopedTransformer:
    """A small model in float64 whose gates are open: every parameter is drawn."""
    config = LoopedTransformerConfig(d_model=8, num_heads=2, num_loops=loops, **settings)
    sizes: dict[str, int] = {"input_dim": 5} if vectors else {"vocab_size": 6}
    model = LoopedTransformer(config, num_classes=4, generator=torch.Generator().manual_seed(seed), **sizes).double()
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return model


def draw(length: int = 9) -> torch.Tensor:
    return torch.randint(6, (3, length), generator=torch.Generator().manual_seed(2))


def count(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("trained_with", [1, 4])
@pytest.mark.parametrize("injection", ["none", "input"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_loops_at_run_time_are_the_layer_by_hand(variant: Variant, injection: str, trained_with: int) -> None:
    model, inputs = make(loops=trained_with, variant=variant, injection=injection), draw()
    for num_loops in (1, 2, 5):
        read = model.read_in(inputs)
        state = torch.zeros_like(read)
        scales = model.scales(num_loops) if model.scales is not None else [None] * num_loops
        for loop, of_loop in enumerate(scales):
            before = model.readout[0](state) if loop else state
            into = before + read if injection == "input" else (state if loop else read)
            state = model.layers[0].by_definition(into, of_loop)
        torch.testing.assert_close(model.with_loops(num_loops)(inputs), model.readout(state))
    assert model.config.num_loops == trained_with


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    centered = x - x.mean(-1, keepdim=True)
    return centered / (centered.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def rms_norm(x: torch.Tensor) -> torch.Tensor:
    return x / (x.square().mean(-1, keepdim=True) + torch.finfo(torch.float64).eps).sqrt()


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": lambda x: x / (1 + torch.exp(-x)),
    "gelu": lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2,
    "tanh": lambda x: x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2,
}


@pytest.mark.parametrize(
    ("variant", "norm", "activation"),
    [
        ("timestep", rms_norm, "silu"),
        ("timestep-in-context", rms_norm, "tanh"),
        ("timestep-language", rms_norm, "gelu"),
        ("control", rms_norm, "silu"),
        ("control-in-context", rms_norm, "tanh"),
        ("control-language", rms_norm, "gelu"),
        ("code", rms_norm, "tanh"),
        ("code-in-context", layer_norm, "tanh"),
        ("code-language", rms_norm, "gelu"),
    ],
)
def test_variants_have_the_norms_and_activations_of_the_published_code(
    variant: Variant, norm: Callable[[torch.Tensor], torch.Tensor], activation: str
) -> None:
    """One loop without attention is x + g W_2 f(W_1 (a norm(x))), with the norm's own gain where it has one."""
    model = make(loops=1, variant=variant)
    layer = model.layers[0]
    with torch.no_grad():
        layer.output.weight.zero_()
        layer.output.bias.zero_()
    state = model.read_in(draw())
    (scales,) = model.scales(1) if model.scales is not None else [None]
    assert (scales is None) == variant.startswith("code")
    normed = norm(state)
    for name, parameter in layer.norms[1].named_parameters():
        normed = normed * parameter if name == "weight" else normed + parameter
    normed = normed if scales is None else scales.feed_forward_gain * normed
    answer = layer.narrow(ACTIVATIONS[activation](layer.widen(normed)))
    answer = answer if scales is None else scales.feed_forward_gate * answer
    torch.testing.assert_close(model(draw()), model.readout(state + answer))
    gained = {"code": 1, "code-in-context": 2}
    assert len(list(layer.norms[1].parameters())) == gained.get(variant, 0)


def test_in_language_time_is_all_that_tells_the_variants_apart() -> None:
    """With gains and gates of 1 the loop with timestep encoding is the plain loop, which the other fields lack."""
    for ending, equal in (("", False), ("-in-context", False), ("-language", True)):
        timed = make(variant=f"timestep{ending}", gates="open")
        plain = make(variant=f"code{ending}")
        weights = {name: value for name, value in timed.state_dict().items() if not name.startswith("scales.")}
        assert not plain.load_state_dict(weights, strict=False).unexpected_keys
        with torch.no_grad():
            timed.scales.heads.weight.zero_()
            timed.scales.heads.bias.zero_()
        assert bool(torch.allclose(timed(draw()), plain(draw()))) == equal


def test_runs_of_older_variants_have_the_ids_that_they_had() -> None:
    ids = {
        variant: make_spec("edit-distance", "looped-transformer", {"model": {"variant": variant}}, preset="plain").id
        for variant in ("timestep", "control", "code", "code-in-context")
    }
    assert ids == {
        "timestep": "edit-distance-looped-transformer-seed0-54bea6a4eb",
        "control": "edit-distance-looped-transformer-seed0-a3cedc24ab",
        "code": "edit-distance-looped-transformer-seed0-854d53ee24",
        "code-in-context": "edit-distance-looped-transformer-seed0-150e0af2c3",
    }


def test_models_of_other_loops_share_their_parameters() -> None:
    model = make(loops=2)
    other = model.with_loops(7)
    other(draw()).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    with pytest.raises(ValueError, match=r"model.num_loops: expected a number greater than or equal to 1, got 0"):
        model.with_loops(0)


@pytest.mark.parametrize("variant", ["timestep", "control"])
@pytest.mark.parametrize("num_loops", [1, 10, 100])
def test_at_the_start_loops_are_exactly_the_identity(variant: Variant, num_loops: int) -> None:
    config = LoopedTransformerConfig(d_model=16, num_loops=num_loops, variant=variant)
    model = LoopedTransformer(config, vocab_size=6, num_classes=4, generator=torch.Generator().manual_seed(0))
    inputs = draw()
    assert torch.equal(model(inputs), model.readout(model.read_in(inputs)))
    assert torch.equal(model.last_state(inputs), model.read_in(inputs)[:, -1])


@pytest.mark.sampled
@pytest.mark.parametrize("injection", ["none", "input"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("num_loops", [1, 2, 3, 10])
def test_recomputed_activations_give_the_same_gradients(variant: Variant, injection: str, num_loops: int) -> None:
    results = []
    for activations in ("kept", "recomputed"):
        model = make(loops=num_loops, variant=variant, injection=injection, activations=activations)
        logits = torch.cat([model(draw()).flatten(0, 1), model.last(draw())])
        results.append([logits, *torch.autograd.grad(logits.square().sum(), list(model.parameters()))])
    for kept, recomputed in zip(*results, strict=True):
        torch.testing.assert_close(recomputed, kept)


def test_recomputing_keeps_the_states_of_a_root_of_the_loops() -> None:
    """What autograd saves between forward and backward, in numbers: 100 loops in segments of 10."""
    saved = {}
    for activations, num_loops in (("kept", 5), ("kept", 100), ("recomputed", 100)):
        model, sizes = make(loops=num_loops, activations=activations), []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, s=sizes: s.append(t.numel()) or t, lambda t: t):
            model(draw(40))
        saved[activations, num_loops] = sum(sizes)
    assert saved["recomputed", 100] < saved["kept", 5] < saved["kept", 100] / 15


@pytest.mark.parametrize("injection", ["none", "input"])
def test_pads_at_the_end_change_nothing_before_them(injection: str) -> None:
    for model in (make(injection=injection), transformer()):
        inputs = draw()
        padded = torch.cat([inputs, torch.full((3, 4), PAD)], 1)
        torch.testing.assert_close(model(padded)[:, :9], model(inputs))
        torch.testing.assert_close(model.logits_at(padded, torch.tensor([8, 8, 8])), model.last(inputs))


def transformer(num_layers: int = 3, **settings: Any) -> Transformer:
    config = TransformerConfig(d_model=8, num_heads=2, num_layers=num_layers, **settings)
    return Transformer(config, vocab_size=6, num_classes=4).double()


def test_a_transformer_of_equal_layers_is_a_plain_loop() -> None:
    looped = make(loops=3, variant="code-in-context")
    stacked = transformer(3)
    stacked.read_in.load_state_dict(looped.read_in.state_dict())
    stacked.readout.load_state_dict(looped.readout.state_dict())
    for layer in stacked.layers:
        layer.load_state_dict(looped.layers[0].state_dict())
    torch.testing.assert_close(stacked(draw()), looped(draw()))
    torch.testing.assert_close(stacked.last(draw()), looped.last(draw()))


def test_parameters_are_those_of_the_published_models() -> None:
    """Dynamic programming: D=256, 211 symbols, the answers among them. In context: 20 dimensions, 203 positions."""
    wide = {"d_model": 256, "num_heads": 4}
    symbols = {"vocab_size": 211, "num_classes": 211}
    counts = {
        variant: count(LoopedTransformer(LoopedTransformerConfig(variant=variant, **wide), **symbols))
        for variant in ("code", "control", "timestep")
    }
    assert round(counts["code"] / 1e6, 3) == 0.899
    assert round(counts["timestep"] / 1e6, 3) == 1.293
    assert counts["timestep"] - (counts["code"] - 2 * 256) == 5 * 256**2 + 262 * 256
    assert counts["control"] - (counts["code"] - 2 * 256) == 4 * 256
    assert round(count(Transformer(TransformerConfig(num_layers=12, **wide), **symbols)) / 1e6, 3) == 9.586
    wide, vectors = {"d_model": 256, "num_heads": 8, "learned_positions": 203}, {"input_dim": 20, "num_classes": 1}
    assert round(count(Transformer(TransformerConfig(num_layers=12, **wide), **vectors)) / 1e6, 2) == 9.54
    for variant, millions in (("code-in-context", 0.848), ("timestep-in-context", 1.242)):
        config = LoopedTransformerConfig(variant=variant, injection="input", **wide)
        assert round(count(LoopedTransformer(config, **vectors)) / 1e6, 3) == millions


def test_language_models_have_the_sizes_of_the_published_ones() -> None:
    """Width 2,048, 1,024 positions, one table for symbols and answers; published maps and norms have no biases."""
    width, size = 2048, 50_304
    counts = {}
    for variant in ("code-language", "timestep-language"):
        settings = PRESETS["xu2024-language"].models["looped-transformer"] | {"variant": variant}
        config = LoopedTransformerConfig(**settings)
        with torch.device("meta"):
            counts[variant] = count(LoopedTransformer(config, vocab_size=size, num_classes=size))
    biases = 10 * width
    assert round((counts["code-language"] - biases) / 1e6, 2) == 155.45
    assert round((counts["timestep-language"] - biases) / 1e6, 2) == 176.96
    # Time adds an encoding and heads, and nothing else.
    assert counts["timestep-language"] - counts["code-language"] == 5 * width**2 + 262 * width


def test_a_tied_looped_model_is_read_out_by_its_embedding_at_any_number_of_loops() -> None:
    for variant in ("code", "timestep"):
        model = make(variant=variant, readout="tied", read_in="plain", initialization="gpt2")
        for num_loops in (1, 5):
            deeper = model.with_loops(num_loops)
            read = model.read_in.embedding.weight[draw()] + position_sinusoids(9, 8).double()
            state = model.readout[0](deeper.states(read))
            torch.testing.assert_close(deeper(draw()), state @ model.read_in.embedding.weight[:4].T)


def test_vectors_are_read_in() -> None:
    model = make(vectors=True, learned_positions=9)
    inputs = torch.randn(3, 9, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert model(inputs).shape == (3, 9, 4)
    torch.testing.assert_close(model(inputs)[:, :4], model(inputs[:, :4]))
    torch.testing.assert_close(model.last(inputs), model(inputs)[:, -1])


@pytest.mark.unchecked
def test_bad_inputs_and_sizes_are_one_sentence() -> None:
    model = make(vectors=True, learned_positions=9)
    with pytest.raises(
        ValueError, match=r"length: expected at most 9 positions, .*, got 10; make the model with a larger"
    ):
        model(torch.zeros(1, 10, 5).double())
    for wrong in (torch.zeros(1, 4, 6), torch.zeros(1, 0, 5), torch.zeros(1, 4)):
        with pytest.raises(ValueError, match=r"inputs: expected shape \[B, T, 5\] with B and T of at least 1, got \["):
            model(wrong.double())
    with pytest.raises(ValueError, match="inputs: expected finite numbers"):
        model(torch.full((1, 4, 5), torch.nan).double())
    with pytest.raises(ValueError, match="vocab_size: expected either the number of symbols or"):
        LoopedTransformer(LoopedTransformerConfig(), num_classes=2)
    with pytest.raises(ValueError, match="num_heads: expected a divisor of d_model=64, got 5"):
        TransformerConfig(num_heads=5)
    with pytest.raises(ValueError, match="readout: expected 'linear' in a model for vectors, which has no"):
        LoopedTransformer(LoopedTransformerConfig(readout="tied"), input_dim=2, num_classes=2)


def test_gpt2s_initialization_is_smaller_into_the_residual() -> None:
    config = TransformerConfig(d_model=128, num_layers=8, initialization="gpt2", learned_positions=50)
    model = Transformer(config, input_dim=20, num_classes=1, generator=torch.Generator().manual_seed(0))
    model.requires_grad_(False)
    for layer in model.layers:
        for linear, std in ((layer.query_key_value, 0.02), (layer.widen, 0.02), (layer.output, 0.005)):
            assert float(linear.weight.std()) == pytest.approx(std, rel=0.05)
            assert not linear.bias.any()
        assert float(layer.narrow.weight.std()) == pytest.approx(0.005, rel=0.05)
    assert float(model.read_in.positions.table.std()) == pytest.approx(0.02, rel=0.05)
