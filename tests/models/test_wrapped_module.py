"""Any net of a user: a module or a function from token ids to logits, measured, attacked and certified as it is."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from lengthwise import attack, certify, make_task, wrap_module
from lengthwise.certification.builder import net_digest
from lengthwise.models.base import ModelConfig, RecurrentModel

PARITY = make_task("parity")


def right(ids: Tensor) -> Tensor:
    return functional.one_hot(ids.cumsum(1) % 2, 2).float()


def wrong_after_12(ids: Tensor) -> Tensor:
    """Right except on a^12 b, one symbol more than all short strings; hardly any random string begins so."""
    ones = ids.cumsum(1)
    is_wrong = (torch.arange(ids.shape[1]) == 12) & (ones == 1) & (ids == 1)
    return right(ids) * torch.where(is_wrong, -1.0, 1.0)[..., None]


class Causal(nn.Module):
    """One layer of attention over earlier positions; with `ahead`, later positions also have a little weight."""

    def __init__(self, ahead: float = 0.0, num_positions: int = 64) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.positions = nn.Embedding(5, 8), nn.Embedding(num_positions, 8)
        self.head, self.ahead = nn.Linear(8, 2), ahead

    def forward(self, ids: Tensor) -> Tensor:
        features = self.embedding(ids) + self.positions(torch.arange(ids.shape[1]))
        scores = features @ features.transpose(1, 2)
        later = torch.ones_like(scores).triu(1)
        weights = scores.exp() * (1 - later + self.ahead * later)
        return self.head(weights / weights.sum(2, keepdim=True) @ features)


def test_a_function_is_refuted_on_a_string_that_random_strings_do_not_contain() -> None:
    result = attack(wrap_module(wrong_after_12, num_classes=2, num_symbols=2), PARITY, budget=60.0)
    assert result.string == ("a",) * 12 + ("b",)


def test_a_right_function_is_tested_at_best_up_to_the_length_it_reads() -> None:
    net = wrap_module(right, num_classes=2, num_symbols=2, max_length=20)
    assert not isinstance(net, RecurrentModel)
    result = attack(net, PARITY, budget=0.3)
    assert (result.is_refuted, result.max_length) == (False, 20)
    certificate = certify(net, PARITY)
    assert certificate.level == "tested"
    assert certificate.reason == "the model reads strings of at most 20 symbols"
    with pytest.raises(ValueError, match="inputs: expected at most 20 symbols, the max_length of the net, got 21"):
        net(torch.zeros(1, 21, dtype=torch.int64))


def test_symbols_are_read_as_their_tokens_after_the_first_token() -> None:
    module = Causal()
    net = wrap_module(module, num_classes=2, tokens=[4, 2], begin=3, max_length=63)
    with torch.no_grad():
        assert torch.equal(net(torch.tensor([[0, 1, 1]])), module(torch.tensor([[3, 4, 2, 2]]))[:, 1:])
        torch.testing.assert_close(net.last(torch.tensor([[0, 1]])), module(torch.tensor([[3, 4, 2]]))[:, -1])
    # The ids are not weights, but two nets with other ids compute other functions.
    others = [
        {"tokens": [4, 2], "begin": 3},
        {"tokens": [2, 4], "begin": 3},
        {"tokens": [4, 2]},
        {"num_symbols": 2},
    ]
    digests = {net_digest(wrap_module(module, num_classes=2, max_length=60, **given)) for given in others}
    assert len(digests) == len(others)


def looks_ahead_a_little(ids: Tensor) -> Tensor:
    """A function of a table, whose sum over later positions is far below float32's rounding."""
    features = functional.embedding(ids, torch.tensor([[1.0, -1.0], [0.5, 2.0]]))
    return features.cumsum(1) + 1e-12 * features.sum(1, keepdim=True)


def looks_ahead_by_index(ids: Tensor) -> Tensor:
    features = torch.tensor([[1.0, -1.0], [0.5, 2.0]])[ids]
    return features.cumsum(1) + 1e-12 * features.sum(1, keepdim=True)


@pytest.mark.parametrize(
    ("module", "clause"),
    [
        (Causal(ahead=1e-12), "depends on what follows"),
        (lambda ids: Causal(ahead=1e-12)(ids), "depends on what follows"),
        (looks_ahead_a_little, "depends on what follows"),
        (looks_ahead_by_index, "depends on what follows"),
        (lambda ids: right(ids) + (ids[:, -1:] == 1)[..., None], "depends on what follows"),
        (lambda ids: right(ids.roll(1, 0)), "depends on other strings of the batch"),
        (lambda ids: right(ids) * (ids.shape[1] < 20) * 1.0, "depends on the length of the string"),
        (lambda ids: right(ids) + torch.rand(2), "changes from call to call"),
    ],
)
@pytest.mark.parametrize("begin", [None, 1])
def test_nets_that_do_not_read_forwards_are_refused(module, clause: str, begin: int | None) -> None:
    with pytest.raises(ValueError, match=f"module: expected a causal net, .* {clause}"):
        wrap_module(module, num_classes=2, num_symbols=2, begin=begin, max_length=40)


def test_a_module_that_looks_ahead_since_it_was_wrapped_is_refused() -> None:
    module = Causal()
    net = wrap_module(module, num_classes=2, num_symbols=2, max_length=64)
    module.ahead = 1e-12
    for act in (certify, attack):
        with pytest.raises(ValueError, match="whose answer to a prefix depends on what follows"):
            act(net, PARITY)
    net.module = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="expected the same module as when the model was wrapped, got another"):
        attack(net, PARITY)


@pytest.mark.unchecked  # the package itself refuses them, without beartype
@pytest.mark.parametrize(
    ("module", "settings", "sentence"),
    [
        (3, {}, "module: expected a torch module or a function of token ids, got 3; give a module or"),
        (Causal().forward, {}, "module: expected a torch module, got a method of a Causal; give the module itself"),
        (right, {"num_classes": 3}, r"expected logits of shape \[3, 6, 3\].* got torch.float32 \[3, 6, 2\]"),
        (lambda ids: ids, {}, r"expected logits of shape \[3, 6, 2\].* got torch.int64 \[3, 6\]"),
        (lambda ids: (right(ids),), {}, "expected logits .* got tuple; return a tensor"),
        (
            Causal(num_positions=9),
            {},
            r"an error for shape \[1, 41\] \(IndexError: .*\); if the net reads",
        ),
        (right, {"tokens": [0, 1]}, "num_symbols: expected either num_symbols .*, got both; give one of them"),
        (right, {"num_symbols": None}, "num_symbols: expected either num_symbols .*, got neither; give one of them"),
        (right, {"num_symbols": None, "tokens": [0, -1]}, "tokens: expected tokens of the model, .* got -1"),
        (right, {"max_length": 0}, "max_length: expected a whole number from 1 to"),
    ],
)
def test_what_does_not_fit_is_named(module, settings, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        wrap_module(module, **{"num_classes": 2, "num_symbols": 2} | settings)
    assert "\n" not in str(caught.value)


def test_a_net_of_another_task_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"with the 2 symbols of the task, got a model with 5 symbols, .*; pass num_symbols="
    ):
        attack(wrap_module(Causal(), num_classes=2, num_symbols=5, max_length=64), PARITY)
    assert isinstance(wrap_module(right, num_classes=2, num_symbols=2).config, ModelConfig)
