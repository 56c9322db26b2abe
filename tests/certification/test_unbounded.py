"""What bounds must not claim: anything beyond float32's range, or of parts whose formulas are not bounded."""

import pytest
import torch
from last_symbol import LastSymbol, last_symbol_net
from torch import nn

from lengthwise.certification.equivalence import first_error
from lengthwise.certification.methods.affine import Affine
from lengthwise.certification.methods.enclosures.prover import invariant_enclosures
from lengthwise.extraction.base import radii_of
from lengthwise.extraction.tree import extract_tree
from lengthwise.extraction.tree_traces import build_trees, compare_traces
from lengthwise.models.regular_gpt import RegularGPT, RegularGPTConfig


def overflowing_net() -> RegularGPT:
    """Like `last_symbol_net`, but its projections are so large that LayerNorm overflows in float32 and goes on.

    The variance of its first norm is infinite, so that the norm returns its bias. In real numbers the feed-forward
    block cancels what the states hold in the directions q; in float32 it is a constant, and q doubles at every level.
    """
    model = RegularGPT(RegularGPTConfig(d_model=32, num_heads=2, chunk_size=2, hidden=16), vocab_size=2, num_classes=2)
    layer = model.layers[0]
    large, huge, first = [0, 16], 2.0**65, torch.zeros(32)
    in_p, in_q = [*range(1, 9), *range(17, 25)], [9, 10, 11, 12, 25, 26, 27, 28]
    p, q, size = torch.zeros(32), torch.zeros(32), torch.zeros(32)
    p[in_p], q[in_q] = torch.tensor([1.0, -1.0] * 8), torch.tensor([1.0, -1.0] * 4)
    first[large] = torch.tensor([1.0, -1.0])
    size[in_p], size[large], size[in_q] = 2.0**60, huge, 1.5 * 2.0**60
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        for norm in layer.norms:
            norm.weight.fill_(1.0)
        layer.gain.fill_(3.0)
        layer.gain[large], layer.gain[in_q] = 20.0, 1.0
        layer.bias[:, 0] = 20.0
        layer.to_key_value.weight[32:] = torch.eye(32)
        layer.to_output.weight.copy_(size.diag())
        block = layer.feed_forwards[0]
        for unit, index in enumerate(in_q):
            block.widen.weight[unit, index], block.widen.bias[unit] = 1.0, 8.0
            block.narrow.weight[index, unit], block.narrow.bias[index] = -(2.0**63), 8 * 2.0**63
        block.narrow.bias[large] = torch.tensor([-1.0, 1.0]) * (huge - 2.0**60)
        model.embedding.weight.copy_(1.3333 * torch.stack([first - p, first - p, first + p]))
        model.embedding.weight[2] += 4e-6 * q
        model.readout[1].weight.copy_(torch.stack([6 * q - p, p]))
    return model.eval().requires_grad_(False)


def test_what_overflows_in_float32_is_never_bounded() -> None:
    """Right on all strings that are tried, wrong on b^524288: only bounds can know, and they must not say yes."""
    model, task = overflowing_net(), LastSymbol()
    extraction = extract_tree(
        model, task.symbols, radius=radii_of(model.last_state(torch.zeros(1, 40, dtype=torch.int64)))[0]
    )
    assert first_error(extraction.machine, task.transducer) is None
    assert (
        compare_traces(model, extraction, [build_trees(model, torch.randint(2, (20, 10_000)))]).num_disagreements == 0
    )
    assert int(model.last(torch.ones(1, 1 << 19, dtype=torch.int64)).argmax()) == 0
    assert invariant_enclosures(model, extraction).evidence is None


def test_large_numbers_are_never_bounded() -> None:
    center = torch.tensor([[1e16, 0.0, 1.0, -1e16]], dtype=torch.float64)
    large = Affine(center, torch.zeros(1, 4, 1), center.new_zeros(1, 4))
    for image in (large.scaled(torch.ones(4).double()), large.shifted(1.0), large.layer_norm(), large + large):
        assert not bool(image.radius.isfinite().all())


def with_a_bias(model: RegularGPT) -> None:
    model.layers[0].to_output = nn.Linear(8, 8)


def with_its_own_norm(model: RegularGPT) -> None:
    class Shifted(nn.LayerNorm):
        def forward(self, states: torch.Tensor) -> torch.Tensor:
            return super().forward(states) + 1

    model.layers[0].norms[0] = Shifted(8)


def with_a_hook(model: RegularGPT) -> None:
    model.layers[0].to_query.register_forward_hook(lambda module, given, output: output + 1)


@pytest.mark.parametrize("change", [with_a_bias, with_its_own_norm, with_a_hook])
def test_parts_that_nobody_bounded_are_refused(change) -> None:
    model = last_symbol_net()
    extraction = extract_tree(model, LastSymbol().symbols, radius=0.5)
    assert invariant_enclosures(model, extraction).evidence is not None
    change(model)
    with pytest.raises(
        ValueError, match=r"model: expected (attention projections without|only parts that|forward passes without)"
    ):
        invariant_enclosures(model, extraction)
