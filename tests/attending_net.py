"""Transformers with weights by hand, which see whether a symbol occurs; the gap of their scores decides how far."""

from typing import Any

from lengthwise.layers.positions.base import PositionEncoding
from lengthwise.models.base import SequenceModel, make_model
from lengthwise.tasks import make_task
from lengthwise.tasks.base import RegularTask

OCCURS: RegularTask = make_task("tomita", index=1)
"""Strings are in the language as long as 0 does not occur."""

WIDTH = 8


def attending_net(gap: float, task: RegularTask = OCCURS, **config: Any) -> SequenceModel:
    """Symbol 0 has a score that is larger by `gap`, so it gets most of the attention among up to e^gap symbols.

    A value is 1 for symbol 0 and -1 for all others. The logits of "out" and "in" are their mean and its negative, so
    the net errs if there are more than e^gap other symbols and one 0.
    """
    settings = {"d_model": WIDTH, "num_heads": 1, "num_layers": 1, "positions": "none", **config}
    model = make_model("transformer", task, **settings).requires_grad_(False)
    layer, num_heads = model.layers[0], settings["num_heads"]
    size = WIDTH // num_heads
    for linear in (layer.query_key_value, layer.output, layer.widen, layer.narrow, model.readout[1]):
        linear.weight.zero_()
        linear.bias.zero_()
    table = model.read_in.embedding.weight
    table.zero_()
    table[:, 0], table[0, 0] = -1.0, 1.0
    table[:, 1] = -table[:, 0]  # with mean 0 and equal sizes, so that norms only scale
    # A norm makes each of the two numbers of size 1 the root of half the width.
    scaled = (WIDTH / 2) ** 0.5
    for head in range(num_heads):
        number = scored_number(model, head)
        layer.query_key_value.bias[number] = gap * size**0.5 / 2 / scaled
        layer.query_key_value.weight[WIDTH + number, 0] = 1.0
        layer.query_key_value.weight[2 * WIDTH + head * size, 0] = 1.0 / scaled
        layer.output.weight[2, head * size] = 1.0
        layer.output.weight[3, head * size] = -1.0
    if "read_in" in config:  # without the first norm
        table *= scaled
    out = task.classes.index("out")
    model.readout[1].weight[out, 2] = model.readout[1].weight[1 - out, 3] = 1.0
    hush(model.read_in.positions)
    return model.eval()


def hush(positions: PositionEncoding) -> None:
    """Set the parameters of an encoding to numbers with which scores hardly depend on distances."""
    for name, parameter in positions.named_parameters():
        if "limit" not in name:
            # KERPLE limits its numbers from below.
            parameter.zero_()


def scored_number(model: SequenceModel, head: int) -> int:
    """Return the number of a head that is not 0 in queries and keys; rotary positions hardly turn the last pair."""
    size = WIDTH // model.config.num_heads
    return head * size + (size - 2 if model.config.positions == "rotary" else 0)


def deeper_net(gap: float, task: RegularTask = OCCURS, **config: Any) -> SequenceModel:
    """The first layer is that of `attending_net`; the second one attends to positions at which symbol 0 has occurred.

    So the second layer's scores and values depend on the first layer's results.
    """
    model = attending_net(gap, task, num_layers=2, **config)
    layer, num_heads = model.layers[1], model.config.num_heads
    size = WIDTH // num_heads
    for linear in (layer.query_key_value, layer.output, layer.widen, layer.narrow, model.readout[1]):
        linear.weight.zero_()
        linear.bias.zero_()
    for head in range(num_heads):
        number = scored_number(model, head)
        layer.query_key_value.bias[number] = gap * size**0.5 / 2
        layer.query_key_value.weight[WIDTH + number, 2] = 1.0
        layer.query_key_value.weight[2 * WIDTH + head * size, 2] = 1.0
        layer.output.weight[4, head * size] = 1.0
        layer.output.weight[5, head * size] = -1.0
    out = task.classes.index("out")
    model.readout[1].weight[out, 4] = model.readout[1].weight[1 - out, 5] = 1.0
    return model.eval()
