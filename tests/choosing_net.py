"""A PD-SSM with weights by hand whose states are those of a machine, as one-hot vectors."""

import torch

from lengthwise.layers.sparse_linear import PDSSMLayer
from lengthwise.models.pd_ssm import PDSSM, PDSSMConfig

NUM_STATES, NUM_SYMBOLS, NUM_CLASSES = 8, 3, 2


def machine_net(table: torch.Tensor, outputs: torch.Tensor, form: str) -> PDSSM:
    """One layer whose states are those of the machine `table` [Q, V], as one-hot vectors, and whose answers are its."""
    config = PDSSMConfig(
        d_model=NUM_SYMBOLS + NUM_STATES,
        d_state=NUM_STATES,
        num_matrices=NUM_SYMBOLS,
        diagonal="none",
        driven=False,
        form=form,
    )
    model = PDSSM(config, vocab_size=NUM_SYMBOLS, num_classes=NUM_CLASSES)
    (layer,) = model.layers
    assert isinstance(layer, PDSSMLayer)
    symbols, states = slice(0, NUM_SYMBOLS), slice(NUM_SYMBOLS, None)
    one_hot = torch.nn.functional.one_hot(table.T, NUM_STATES).float()  # [V, Q, successor]
    with torch.no_grad():
        for parameter in (*model.embedding.parameters(), *layer.parameters(), *model.readout[2:].parameters()):
            parameter.zero_()
        model.embedding.weight[:, symbols] = torch.eye(NUM_SYMBOLS)
        layer.mixture_map.weight[:, symbols] = 100 * torch.eye(NUM_SYMBOLS)
        layer.dictionary.copy_(one_hot.mT)
        layer.w.weight[states] = 10 * torch.eye(NUM_STATES)
        model.readout[2].weight.copy_(torch.eye(config.d_model))
        model.readout[4].weight[:, states] = torch.nn.functional.one_hot(outputs, NUM_CLASSES).T.float()
    return model


def draw_machine() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    table = torch.randint(NUM_STATES, (NUM_STATES, NUM_SYMBOLS), generator=generator)
    return table, torch.randint(NUM_CLASSES, (NUM_STATES,), generator=generator)
