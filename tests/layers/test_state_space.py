"""State-space layers against the recurrences that they stand for, step by step in float64."""

import math

import pytest
import torch

from lengthwise.layers.linear_recurrence import DenseLinearLayer, InputDependentLayer, LRULayer, S5Layer
from lengthwise.layers.recurrent_layer import Gated, RecurrentLayer, as_complex
from lengthwise.layers.state_space import LiquidS4Layer, S4DLayer, S4Layer, eigenvalues, legs, legs_pairs

WIDTH, SIZE = 3, 8


def made(layer: RecurrentLayer) -> RecurrentLayer:
    layer = layer.double()
    layer.reset_parameters(torch.Generator().manual_seed(0))
    return layer


def draw(length: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(2, length, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def outputs(layer: RecurrentLayer, features: torch.Tensor) -> torch.Tensor:
    actual, _ = layer(features, layer.initial_state(features[:, 0]))
    return actual


LAYERS = {
    "s4": lambda: S4Layer(d_model=WIDTH, d_state=SIZE),
    "s4d": lambda: S4DLayer(d_model=WIDTH, d_state=SIZE, start="lin"),
    "liquid": lambda: LiquidS4Layer(d_model=WIDTH, d_state=SIZE),
    "s5": lambda: S5Layer(d_model=WIDTH, d_state=SIZE),
    "lru": lambda: LRULayer(d_model=WIDTH, d_state=SIZE),
    "dense": lambda: DenseLinearLayer(d_model=WIDTH, d_state=SIZE),
    "input-dependent": lambda: InputDependentLayer(d_model=WIDTH, hidden=16),
}


def expected(name: str, layer: RecurrentLayer, features: torch.Tensor) -> torch.Tensor:
    """The layer's equation, one position after another, from its parameters and the maps that make transitions."""
    if name == "dense":
        actual, state = [], torch.zeros(2, SIZE, dtype=torch.float64)
        for u in features.unbind(1):
            state = state @ layer.a.T + u @ layer.b.weight.T
            actual.append(state @ layer.c.weight.T + layer.c.bias)
        return torch.stack(actual, 1)
    if name == "input-dependent":
        actual, state = [], torch.zeros(2, WIDTH, dtype=torch.float64)
        for u in features.unbind(1):
            state = torch.tanh(layer.transition_map(u)) * state + layer.b(u)
            actual.append(state)
        return torch.stack(actual, 1)
    if name in ("s5", "lru"):
        if name == "lru":
            a = torch.exp(-layer.nu.exp()) * torch.exp(1j * layer.theta.exp())
            b, scale = layer.log_gain.exp()[:, None] * as_complex(layer.b), 1
        else:
            rates = torch.complex(-layer.log_decay.exp(), layer.frequency)
            a = torch.exp(rates * layer.log_step.exp())
            b, scale = ((a - 1) / rates)[:, None] * as_complex(layer.b), 2
        actual, state = [], torch.zeros(2, len(a), dtype=torch.complex128)
        for u in features.unbind(1):
            state = a * state + (u + 0j) @ b.T
            actual.append(scale * (state @ as_complex(layer.c).T).real + layer.d * u)
        return torch.stack(actual, 1)
    rates, steps = torch.complex(-layer.log_decay.exp(), layer.frequency), layer.log_step.exp()[:, None]
    actual, state = [], torch.zeros(2, WIDTH, SIZE // 2, dtype=torch.complex128)
    if name == "s4":
        return s4_step_by_step(layer, features, rates, steps[..., None])
    if name == "liquid":
        a, b, c = layer.discrete()
        state = torch.zeros(2, WIDTH, SIZE, dtype=torch.float64)
        for u in features.unbind(1):
            transitions = a + (b * u[..., None]).diag_embed()
            state = (transitions @ state[..., None]).squeeze(-1) + b * u[..., None]
            actual.append((c * state).sum(-1) + layer.d * u)
        return torch.stack(actual, 1)
    a = torch.exp(rates * steps)
    for u in features.unbind(1):
        state = a * state + (a - 1) / rates * u[..., None]
        actual.append(2 * (as_complex(layer.c) * state).sum(-1).real + layer.d * u)
    return torch.stack(actual, 1)


def s4_step_by_step(layer: S4Layer, features: torch.Tensor, rates: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """With all N complex states, each pair written out: A = diag(L) - p p*."""
    both = lambda half: torch.cat([half, half.conj()], -1)  # noqa: E731
    p, b, c = (both(as_complex(pairs)) for pairs in (layer.p, layer.b, layer.c))
    a = both(rates).diag_embed() - p[..., None] * p.conj()[:, None]
    one = torch.eye(SIZE, dtype=torch.complex128)
    inverse = torch.linalg.inv(one - steps / 2 * a)
    a_step, b_step = inverse @ (one + steps / 2 * a), (inverse @ (steps * b[..., None])).squeeze(-1)
    actual, state = [], torch.zeros(2, WIDTH, SIZE, dtype=torch.complex128)
    for u in features.unbind(1):
        state = (a_step @ state[..., None]).squeeze(-1) + b_step * u[..., None]
        assert (c * state).sum(-1).imag.abs().max() < 1e-9
        actual.append((c * state).sum(-1).real + layer.d * u)
    return torch.stack(actual, 1)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("length", [1, 2, 7, 63])
def test_a_layer_is_its_equation(name: str, length: int) -> None:
    layer, features = made(LAYERS[name]()), draw(length)
    torch.testing.assert_close(outputs(layer, features), expected(name, layer, features))
    by = [
        torch.autograd.grad(actual.square().sum(), list(layer.parameters()), materialize_grads=True)
        for actual in (outputs(layer, features), expected(name, layer, features))
    ]
    torch.testing.assert_close(*by)


@pytest.mark.parametrize("name", LAYERS)
def test_a_string_may_be_read_in_parts(name: str) -> None:
    layer, features = made(LAYERS[name]()), draw(20)
    first, state = layer(features[:, :7], layer.initial_state(features[:, 0]))
    rest, after = layer(features[:, 7:], state)
    whole, at_once = layer(features, layer.initial_state(features[:, 0]))
    torch.testing.assert_close(torch.cat([first, rest], 1), whole)
    torch.testing.assert_close(after, at_once)


@pytest.mark.parametrize("size", [2, 8, 64])
def test_s4_starts_as_hippo_legs(size: int) -> None:
    """The answer to an impulse, read out by B itself, is that of the dense real matrix by the same rule."""
    layer = made(S4Layer(d_model=1, d_state=size))
    with torch.no_grad():
        layer.c.copy_(layer.b * torch.tensor([1.0, -1.0]))  # the conjugate: B^T V is (V* B)*
        layer.d.zero_()
    impulse = torch.zeros(1, 40, 1, dtype=torch.float64)
    impulse[0, 0] = 1
    a, b = legs(size)
    half, one = float(layer.log_step.detach().exp()) / 2, torch.eye(size, dtype=torch.float64)
    inverse = torch.linalg.inv(one - half * a)
    state, answers = 2 * half * inverse @ b, []
    for _ in range(40):
        answers.append(b @ state)
        state = inverse @ (one + half * a) @ state
    torch.testing.assert_close(outputs(layer, impulse)[0, :, 0], torch.stack(answers), rtol=1e-7, atol=1e-9)


def test_eigenvalues_are_those_of_the_sources() -> None:
    assert eigenvalues("lin", 6).imag.tolist() == [0, math.pi, 2 * math.pi]
    assert eigenvalues("inv", 4).imag.tolist() == pytest.approx([4 / math.pi * 3, 4 / math.pi / 3])
    for name in ("legs", "lin", "inv"):
        assert (eigenvalues(name, 64).real + 0.5).abs().max() < 1e-9
    a, _ = legs(16)
    start, p, _ = legs_pairs(16)
    rank_one = torch.linalg.eigvals(torch.cat([start, start.conj()]).diag() - outer(p))
    assert (rank_one.real.sort().values - torch.linalg.eigvals(a).real.sort().values).abs().max() < 1e-2


def outer(p: torch.Tensor) -> torch.Tensor:
    both = torch.cat([p, p.conj()])
    return both[:, None] * both.conj()


@torch.no_grad()
def test_layers_start_as_their_papers_say() -> None:
    lru, s5, s4d = (made(LAYERS[name]()) for name in ("lru", "s5", "s4d"))
    a, gain = lru.discrete()
    assert 0.9 <= float(a.abs().min()) <= float(a.abs().max()) <= 0.999
    torch.testing.assert_close(gain, (1 - a.abs().square()).sqrt())
    start = torch.complex(-s5.log_decay.exp(), s5.frequency)
    torch.testing.assert_close(start, eigenvalues("legs", SIZE))
    for layer in (s5, s4d):
        assert 1e-3 <= float(layer.log_step.exp().min()) <= float(layer.log_step.exp().max()) <= 1e-1


def test_a_gate_is_its_equation() -> None:
    gated = made(Gated(LAYERS["s5"](), d_model=WIDTH))
    features = draw(9)
    one, other = gated.widen(torch.nn.functional.gelu(outputs(gated.layer, features))).chunk(2, -1)
    torch.testing.assert_close(outputs(gated, features), one * torch.sigmoid(other))
