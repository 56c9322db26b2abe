"""A RegularGPT with weights by hand whose states two fixed points attract: bounds on it close."""

import numpy as np
import torch

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.models.regular_gpt import RegularGPT, RegularGPTConfig
from lengthwise.tasks.regular.parity import Parity


class LastSymbol(Parity):
    """Is the last symbol b? On the strings of `Parity`."""

    name = "last-symbol"

    @property
    def transducer(self) -> Transducer:
        return Transducer(Semiautomaton(np.array([[0, 1], [0, 1]]), ("a", "b")), 0, np.array([0, 1]))

    def solve(self, inputs):
        return inputs.clone()


def last_symbol_net(chunk_size: int = 2, gain: float = 3.0) -> RegularGPT:
    """Every head looks at the newest part, whose state, p for b and -p for a and the pad, is passed on.

    ``LayerNorm(tanh(g y))`` is y for the vectors y = p and -p of signs that cancel, and all that lies near one of them
    is drawn to it.
    """
    model = RegularGPT(RegularGPTConfig(d_model=8, num_heads=2, chunk_size=chunk_size), vocab_size=2, num_classes=2)
    layer, pattern = model.layers[0], torch.tensor([1.0, -1.0] * 4)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.gain.fill_(gain)
        layer.bias[:, 0] = 20.0
        layer.to_key_value.weight[8:] = torch.eye(8)
        layer.to_output.weight.copy_(torch.eye(8))
        model.embedding.weight.copy_(torch.stack([-pattern, -pattern, pattern]))
        model.readout[1].weight.copy_(torch.stack([-pattern, pattern]))
    return model
