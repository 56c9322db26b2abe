"""Moduli of continuity points by search, against functions whose moduli are known, and against what all moduli obey."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from known_moduli import contextual_modulus, mixed, sequence_modulus, token_modulus

from lengthwise.analysis.continuity import Domain, ModulusPoint, continuity_modulus, on_embeddings, unit_domain
from lengthwise.models import make_model
from lengthwise.tasks import make_task

KINDS = ("sequence", "contextual", "token")
DISTANCES = [0.05, 0.1, 0.15, 0.3, 0.45]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


KNOWN = {"token": token_modulus, "contextual": contextual_modulus, "sequence": sequence_modulus}


def stairs(x: torch.Tensor) -> torch.Tensor:
    """Constant but for jumps: nothing to climb."""
    return (5 * x).floor() + (3 * x.sum(1, keepdim=True)).floor()


@pytest.mark.parametrize("kind", KINDS)
def test_the_search_finds_moduli_that_are_known(kind: str) -> None:
    points = continuity_modulus(mixed, kind, DISTANCES, unit_domain(2, 1), generator())
    assert [point.distance for point in points] == DISTANCES
    for point in points:
        known = KNOWN[kind](point.distance)
        assert 0.999 * known <= point.value <= known * (1 + 1e-12)


def test_the_moduli_of_a_linear_function_are_its_norms() -> None:
    own, other = torch.randn(2, 3, 3, generator=generator(), dtype=torch.float64)

    def linear(x: torch.Tensor) -> torch.Tensor:
        return x @ own + (x.sum(1, keepdim=True) - x) @ other

    whole = torch.kron(torch.eye(3), own) + torch.kron(torch.ones(3, 3) - torch.eye(3), other)
    norms = {"token": own, "contextual": torch.cat([other, other]), "sequence": whole}
    for kind, matrix in norms.items():
        (point,) = continuity_modulus(linear, kind, [0.2], unit_domain(3, 3), generator())
        norm = float(torch.linalg.matrix_norm(matrix, 2))
        assert 0.99 * norm <= point.value / 0.2 <= norm * (1 + 1e-12)


def assert_pairs_are_valid(function, kind: str, points: list[ModulusPoint], domain: Domain, p: float) -> None:
    for distance, value, pair, token in points:
        assert float((pair[0] - pair[1]).norm()) <= distance * (1 + 1e-9)
        assert bool((domain.low <= pair).all())
        assert bool((pair <= domain.high).all())
        change = function(pair)[0] - function(pair)[1]
        if kind == "sequence":
            assert token is None
        else:
            own = torch.arange(len(domain.low)) == token
            assert torch.equal(*pair[:, own if kind == "contextual" else ~own])
            change = change[token]
        assert float(change.norm(p=p)) == pytest.approx(value, rel=1e-9)


def assert_estimates_are_those_of_a_modulus(points: list[ModulusPoint]) -> None:
    for one in points:
        for other in points:
            count = round(other.distance / one.distance)
            if one.distance <= other.distance:
                assert one.value <= other.value
            if count >= 1 and other.distance == pytest.approx(count * one.distance):
                assert other.value <= count * one.value * (1 + 1e-9)


@given(st.sampled_from(KINDS), st.integers(0, 99), st.sampled_from([1.0, 2.0, 3.0]), st.booleans())
def test_pairs_and_estimates_keep_what_is_promised(kind: str, seed: int, p: float, jumps: bool) -> None:
    """w grows, w(k t) <= k w(t), and every value is that of a pair inside the domain; also after hardly any search."""
    domain = Domain(
        torch.tensor([[0.0, -1], [2, 0], [0, 0]]).double(), torch.tensor([[1.0, 1], [2, 3], [1, 1]]).double()
    )
    weights = torch.randn(3, 2, 3, 4, generator=generator(seed), dtype=torch.float64)

    def function(x: torch.Tensor) -> torch.Tensor:
        return stairs(x) if jumps else torch.sin(3 * torch.einsum("btd,tduy->buy", x, weights))

    points = continuity_modulus(
        function, kind, DISTANCES[::-1], domain, generator(seed), num_starts=4, num_steps=3, p=p
    )
    assert [point.distance for point in points] == DISTANCES
    assert_pairs_are_valid(function, kind, points, domain, p)
    assert_estimates_are_those_of_a_modulus(points)


@pytest.mark.parametrize(
    ("name", "config"),
    [("s4d", {}), ("lstm", {}), ("transformer", {}), ("looped-transformer", {"num_loops": 2, "gates": "open"})],
)
def test_a_model_is_a_function_of_its_embeddings(name: str, config: dict[str, object]) -> None:
    task = make_task("parity")
    model = make_model(name, task, **config)
    function, domain = on_embeddings(model)
    tokens = task.encode("abbab")[None]
    (embedding,) = (module for module in model.modules() if isinstance(module, torch.nn.Embedding))
    with torch.no_grad():
        torch.testing.assert_close(function(embedding(tokens)), model(tokens))
    low, high = domain(5)
    assert bool((low <= embedding(tokens)[0]).all())
    assert bool((embedding(tokens)[0] <= high).all())
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    points = continuity_modulus(function, "contextual", [0.1, 0.2], domain(3), generator(), num_starts=4, num_steps=4)
    assert 0 < points[0].value <= points[1].value <= 2 * points[0].value * (1 + 1e-5)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_models_that_read_their_embeddings_otherwise_are_refused() -> None:
    for name in ("regular-gpt", "block-linear-rnn"):
        with pytest.raises(ValueError, match="expected a model that reads its embedding only to embed symbols, got"):
            on_embeddings(make_model(name, make_task("parity")))
    with pytest.raises(ValueError, match="model: expected a model with a single embedding, got 0"):
        on_embeddings(make_model("rnn", make_task("parity")))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kind": "word"}, "kind: expected one of sequence, contextual, token, got 'word'"),
        ({"distances": []}, "distances: expected at least one distance, all positive and finite, got"),
        ({"distances": [0.1, 0.0]}, "distances: expected at least one distance, all positive and finite, got"),
        ({"distances": [float("inf")]}, "distances: expected at least one distance, all positive and finite, got"),
        ({"domain": Domain(torch.ones(2, 1), torch.zeros(2, 1))}, "domain: expected bounds of shape"),
        ({"domain": Domain(torch.ones(2, 1), torch.ones(2, 1))}, "domain: expected bounds of shape"),
        (
            {"domain": unit_domain(1, 4), "kind": "contextual"},
            "domain: expected at least 2 tokens for kind='contextual', got 1",
        ),
        ({"num_starts": 0}, "num_starts: expected a whole number of at least 1, got 0"),
        ({"p": 0.5}, "p: expected at least 1, got 0.5"),
        (
            {"function": lambda x: x / 0},
            "function: expected finite outputs on the whole domain, got NaN or infinity",
        ),
        (
            {"function": lambda x: x.sum((1, 2))},
            r"function: expected outputs of shape \[\d+, 2, D\] with any D",
        ),
    ],
)
@pytest.mark.unchecked
def test_what_makes_no_sense_is_refused(changed: dict, message: str) -> None:
    arguments = {
        "function": mixed,
        "kind": "token",
        "distances": [0.1],
        "domain": unit_domain(2, 1),
        "generator": generator(),
    }
    with pytest.raises(ValueError, match=message):
        continuity_modulus(**arguments | changed)
