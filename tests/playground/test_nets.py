"""Nets in JavaScript against PyTorch: the same logits for every prefix of 200 strings."""

from typing import Any

import numpy as np
import pytest
import torch
from scripts import needs_node, run_script
from torch import nn

from lengthwise.models.base import MODELS, SequenceModel, make_model
from lengthwise.models.wrapped import wrap
from lengthwise.ops.answers import answers_of
from lengthwise.playground.nets import EXPORTS, net_json
from lengthwise.tasks import make_task

TASK = make_task("cycle-navigation")  # three symbols, five classes
LENGTHS = (1, 2, 5, 17)

SMALL = {"d_model": 8}
TREE = {"d_model": 8, "num_heads": 2}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("regular-gpt", TREE),
    ("regular-gpt", {**TREE, "chunk_size": 3, "hidden": 12}),
    ("regular-gpt", {**TREE, "variant": "paper", "thickness": 2}),
    ("regular-gpt", {**TREE, "variant": "code", "lower_chunk_sizes": (4,)}),
    ("regular-gpt", {**TREE, "variant": "bare"}),
    ("block-linear-rnn", {**SMALL, "block_dim": 4, "hidden": 16}),
    ("block-linear-rnn", {**SMALL, "block_dim": 4, "hidden": 16, "columns": "clamped"}),
    ("block-linear-rnn", {**SMALL, "block_dim": 4, "hidden": 16, "columns": "unit", "p": 8.0}),
    ("block-linear-rnn", {**SMALL, "block_dim": 8, "hidden": 0, "read": "mixture"}),
    ("gru", {**SMALL, "num_layers": 2}),
    ("lstm", {**SMALL, "num_layers": 2}),
    ("rnn", SMALL),
    ("rnn", {**SMALL, "activation": "tanh"}),
    ("transformer", {**SMALL, "num_heads": 2, "positions": "t5"}),
]

PER_PREFIX = """
const result = given.map(({ net, strings }) => {
  const player = opened({ net, machine: null, task: null, prototypes: null });
  return strings.map((string) => analyzed(player, string).prefixes.map(({ logits, answer }) => ({ logits, answer })));
});
"""


def models() -> list[SequenceModel]:
    """Untrained nets of every kind, with weights large enough that states and answers differ."""
    nets = [make_model(name, TASK, seed=index, **fields) for index, (name, fields) in enumerate(CASES)]
    torch.manual_seed(0)
    cores = [nn.LSTM(4, 6, 2), nn.GRU(4, 6, batch_first=True), nn.RNN(4, 6, nonlinearity="relu", bias=False)]
    nets += [wrap(nn.Embedding(3, 4), core, nn.Linear(6, 5)) for core in cores]
    for net in nets:
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape))
    return [net.eval() for net in nets]


@needs_node
def test_every_prefix_has_the_logits_and_answers_of_pytorch() -> None:
    nets = models()
    assert {type(net) for net in nets} == set(EXPORTS), "every kind that is exported is tested"
    generator = np.random.default_rng(0)
    strings = [generator.integers(3, size=(200 // len(LENGTHS), length)) for length in LENGTHS]
    flat = [string.tolist() for batch in strings for string in batch]
    assert len(flat) == 200
    results = run_script(PER_PREFIX, [{"net": net_json(net), "strings": flat} for net in nets])
    for net, of_net in zip(nets, results, strict=True):
        with torch.no_grad():
            expected = [row for batch in strings for row in net(torch.from_numpy(batch))]
        # Sums are as exact as their largest terms are: those of trees without norms grow with the string.
        rounding = 1e-4 * max(1.0, *(float(logits.abs().max()) for logits in expected))
        for of_string, logits in zip(of_net, expected, strict=True):
            computed = torch.tensor([prefix["logits"] for prefix in of_string])
            torch.testing.assert_close(computed, logits, rtol=1e-4, atol=rounding)
            lead = logits.topk(2).values.diff(dim=-1).abs()[:, 0]
            answers = torch.tensor([prefix["answer"] for prefix in of_string])
            is_sure = lead > 10 * rounding
            assert torch.equal(answers[is_sure], answers_of(logits)[is_sure])
        assert torch.stack([logits[-1] for logits in expected]).std(0).max() > 0.01, "strings have different logits"


def test_other_models_are_refused_with_the_list() -> None:
    names = "regular-gpt, block-linear-rnn, gru, lstm, rnn, transformer, nets of your own in TOML"
    expected = rf"the playground can run \({names}\)"
    for name in ("s5", "looped-transformer", "codebook-gpt"):
        assert name in MODELS
        with pytest.raises(ValueError, match=f"{expected}, got {name}; evaluate this model with"):
            net_json(make_model(name, TASK))
    with pytest.raises(ValueError, match="expected a block-linear-rnn of one layer"):
        net_json(make_model("block-linear-rnn", TASK, num_layers=2, columns="clamped"))
    with pytest.raises(ValueError, match="got other parts, which the playground"):
        net_json(wrap(nn.Embedding(3, 4), nn.LSTMCell(4, 6), nn.Linear(6, 5)))
