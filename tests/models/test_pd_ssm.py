"""PD-SSM: what its theorem promises, by hand-set weights, and what its states cannot leave."""

import torch
from choosing_net import NUM_CLASSES, NUM_STATES, NUM_SYMBOLS, draw_machine, machine_net

from lengthwise.layers.sparse_linear import PDSSMLayer


@torch.no_grad()
def test_any_machine_of_n_states_is_one_layer_of_n_numbers() -> None:
    table, outputs = draw_machine()
    inputs = torch.randint(NUM_SYMBOLS, (4, 10_000), generator=torch.Generator().manual_seed(0))
    state, expected = torch.zeros(4, dtype=torch.int64), []
    for symbols in inputs.unbind(1):
        state = table[state, symbols]
        expected.append(outputs[state])
    assert len(set(torch.stack(expected)[-8:].flatten().tolist())) == NUM_CLASSES
    logits = machine_net(table, outputs, "scatter")(inputs)
    assert torch.equal(logits.argmax(-1), torch.stack(expected, 1))


@torch.no_grad()
def test_gathered_rows_run_the_machine_on_the_string_read_backwards() -> None:
    """A number of the state says whether the machine gets from this state to its first one."""
    table, outputs = draw_machine()
    model = machine_net(table, outputs, "gather")
    model.layers[0].dictionary.copy_(model.layers[0].dictionary.mT.clone())
    inputs = torch.randint(NUM_SYMBOLS, (40, 3), generator=torch.Generator().manual_seed(0))
    ends = torch.arange(NUM_STATES).repeat(40, 1)
    for symbols in inputs.unbind(1):
        ends = table[ends, symbols[:, None]]
    assert len((ends == 0).unique(dim=0)) > 3
    assert torch.equal(model.last_state(inputs.flip(1))[:, :NUM_STATES], (ends == 0).float())


@torch.no_grad()
def test_transitions_enlarge_nothing() -> None:
    """Column sums (scatter) and row sums (gather) of sizes are max |d| at most: below 1, or 1 of angles alone."""
    features = torch.randn(50, 16, generator=torch.Generator().manual_seed(0))
    for diagonal, form in (("full", "scatter"), ("phase", "scatter"), ("full", "gather"), ("none", "gather")):
        settings = {"d_state": 8, "num_matrices": 4, "diagonal": diagonal, "driven": False, "form": form}
        layer = PDSSMLayer(d_model=16, **settings)
        layer.reset_parameters(torch.Generator().manual_seed(0))
        factors = layer.factors(features)
        if factors is None:
            assert layer.state_size == 8
        elif diagonal == "phase":
            torch.testing.assert_close(factors.norm(dim=-1), torch.ones(50, 8))
        else:
            assert 0 < float(factors.norm(dim=-1).max()) < 1
        state = torch.randn(50, layer.state_size, generator=torch.Generator().manual_seed(1))
        _, after = layer(features[:, None], state)
        before, after = (x.unflatten(1, (8, -1)).norm(dim=-1) for x in (state, after))
        order = 1.0 if form == "scatter" else torch.inf
        assert bool((after.norm(order, dim=1) <= before.norm(order, dim=1) * (1 + 1e-6)).all())


def test_the_paper_counts_the_same_parameters() -> None:
    """N (6 D + 2 N + K N + 4) + K D in matrices and the biases of diagonals; then the read-out's b and d."""
    layer = PDSSMLayer(d_model=16, d_state=8, num_matrices=4, diagonal="full", driven=True, form="scatter")
    expected = 8 * (6 * 16 + 2 * 8 + 4 * 8 + 4) + 4 * 16 + 2 * 16
    assert sum(parameter.numel() for parameter in layer.parameters()) == expected
