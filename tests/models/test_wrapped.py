"""A user's own net of torch's modules, as a model."""

import pytest
import torch
from torch import nn

from lengthwise import certify, length_curve, make_task, wrap
from lengthwise.models.wrapped import CORES

CORE_OPTIONS = {
    "one layer": {},
    "three layers": {"num_layers": 3, "dropout": 0.5},
    "batch first": {"batch_first": True, "num_layers": 2},
    "no bias": {"bias": False},
}


def core_of(kind: type[nn.Module], options: dict[str, object]) -> nn.Module:
    if not issubclass(kind, nn.RNNBase):
        options = {name: value for name, value in options.items() if name == "bias"}
    return kind(5, 7, **options)


@pytest.mark.sampled
@pytest.mark.parametrize("options", CORE_OPTIONS)
@pytest.mark.parametrize("kind", CORES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_computes_what_the_net_does(kind: type[nn.Module], options: str, dtype: torch.dtype) -> None:
    """Its own forward pass in one go, `step` repeated, and the last answer alone: values and all gradients."""
    torch.manual_seed(0)
    embedding, core, head = nn.Embedding(3, 5), core_of(kind, CORE_OPTIONS[options]), nn.Linear(7, 4)
    model = wrap(embedding, core, head).to(dtype).eval()
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for length in (1, 2, 7, 63, 1100):
        strings = torch.randint(3, (4, length))
        with torch.set_grad_enabled(length <= 63):
            logits = model(strings)
            torch.testing.assert_close(logits, plain(embedding, core, head, strings), rtol=tolerance, atol=tolerance)
            torch.testing.assert_close(model.last(strings), logits[:, -1], rtol=tolerance, atol=tolerance)
        if length > 63:
            continue
        state, steps, states = model.initial_state(4), [], []
        for token in strings.unbind(1):
            answer, state = model.step(token, state)
            steps.append(answer)
            states.append(state)
        read = torch.cat(list(model.states(strings)), 1)
        torch.testing.assert_close(read, torch.stack(states, 1), rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(torch.stack(steps, 1), logits, rtol=tolerance, atol=tolerance)
        weights = torch.randn(logits.shape, dtype=dtype)
        gradients = [
            torch.autograd.grad((weights * values).sum(), list(model.parameters()))
            for values in (torch.stack(steps, 1), plain(embedding, core, head, strings))
        ]
        for one, another in zip(*gradients, strict=True):
            torch.testing.assert_close(one, another, rtol=100 * tolerance, atol=100 * tolerance)


def plain(embedding: nn.Module, core: nn.Module, head: nn.Module, strings: torch.Tensor) -> torch.Tensor:
    """What its user wrote."""
    features = embedding(strings)
    if isinstance(core, nn.RNNBase):
        outputs = core(features)[0] if core.batch_first else core(features.transpose(0, 1))[0].transpose(0, 1)
        return head(outputs)
    state, outputs = None, []
    for feature in features.unbind(1):
        state = core(feature, state)
        outputs.append(state[0] if isinstance(core, nn.LSTMCell) else state)
    return head(torch.stack(outputs, 1))


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
def test_projections_are_read() -> None:
    embedding, core, head = nn.Embedding(3, 5), nn.LSTM(5, 7, 2, proj_size=4), nn.Linear(4, 2)
    model, strings = wrap(embedding, core, head), torch.randint(3, (4, 9))
    torch.testing.assert_close(model(strings), plain(embedding, core, head, strings))


def test_weights_are_shared() -> None:
    core = nn.GRU(4, 6)
    model = wrap(nn.Embedding(2, 4), core, nn.Linear(6, 2))
    before = model(torch.ones(1, 3, dtype=torch.long))
    with torch.no_grad():
        core.weight_hh_l0 += 1
    assert not torch.equal(before, model(torch.ones(1, 3, dtype=torch.long)))


def test_a_head_that_writes_into_what_it_is_given_leaves_states_alone() -> None:
    """Repeated steps give what the whole string gives."""
    model = wrap(nn.Embedding(2, 4), nn.GRU(4, 6), nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 2))).eval()
    state, strings = model.initial_state(3), torch.randint(2, (3, 9))
    with torch.no_grad():
        for token in strings.unbind(1):
            logits, state = model.step(token, state)
        torch.testing.assert_close(logits, model(strings)[:, -1])
        assert bool((state < 0).any())


def test_heads_that_compute_something_else_have_other_names() -> None:
    """Weights say nothing of what stands between them; chains in chains name their parts, too."""
    names = [
        wrap(nn.Embedding(2, 4), nn.GRU(4, 6), nn.Sequential(nn.Sequential(between), nn.Linear(6, 2))).config.head
        for between in (nn.ReLU(), nn.Tanh())
    ]
    assert names == ["ReLU, Linear", "Tanh, Linear"]


def test_other_embeddings_say_how_many_symbols_there_are() -> None:
    embedding = nn.Sequential(nn.Embedding(2, 4), nn.Tanh())
    model = wrap(embedding, nn.GRU(4, 6), nn.Linear(6, 2), num_symbols=2)
    assert model(torch.tensor([[0, 1]])).shape == (1, 2, 2)
    with pytest.raises(
        ValueError, match=r"num_symbols: expected the number of symbols, because the .* but a Sequential, got none"
    ):
        wrap(embedding, nn.GRU(4, 6), nn.Linear(6, 2))
    with pytest.raises(ValueError, match="symbol"):
        model(torch.tensor([[2]]))


@pytest.mark.unchecked
def test_parts_that_are_no_modules_are_named() -> None:
    with pytest.raises(ValueError, match=r"^embedding: expected a torch module, got int; give an nn.Module$"):
        wrap(1, 2, 3)


class Neighbors(nn.Module):
    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return tokens[..., None].cumsum(1).float()


EMBEDDING, CORE, HEAD = nn.Embedding(2, 4), nn.LSTM(4, 6), nn.Linear(6, 2)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            (EMBEDDING, nn.LSTM(4, 6, bidirectional=True), nn.Linear(12, 2)),
            "reads forwards, got a bidirectional nn.LSTM",
        ),
        (
            (EMBEDDING, nn.Conv1d(4, 6, 3), HEAD),
            "core: expected an nn.RNN, nn.GRU, nn.LSTM or one of their cells, got a",
        ),
        ((EMBEDDING, nn.LSTM(5, 6), HEAD), "core: expected input_size=4, the width of the embedding, got 5"),
        ((EMBEDDING, CORE, nn.Linear(7, 2)), "head: expected a module that takes hidden states .*, got an error"),
        ((EMBEDDING, CORE, nn.Sequential(HEAD, nn.Flatten(0))), r"head: expected logits \[B, Y\] from states \[B, H\]"),
        ((EMBEDDING, CORE, nn.LSTM(6, 2)), "head: expected a module that returns a tensor, got tuple"),
        ((nn.Embedding(2, 4, max_norm=1.0), CORE, HEAD), "embedding: expected an embedding without max_norm"),
        ((Neighbors(), nn.LSTM(1, 6), HEAD, 2), "computed for each symbol by itself"),
    ],
)
def test_parts_that_do_not_fit_are_named(parts, sentence: str) -> None:
    embedding, core, head, *num_symbols = parts
    with pytest.raises(ValueError, match=sentence) as caught:
        wrap(embedding, core, head, num_symbols=num_symbols[0] if num_symbols else None)
    assert "\n" not in str(caught.value)


def test_a_head_of_other_classes_is_named() -> None:
    with pytest.raises(ValueError, match="expected a model for the 2 answers of the task, got one for 3"):
        certify(wrap(EMBEDDING, CORE, nn.Linear(6, 3)), make_task("parity"))
    with pytest.raises(ValueError, match="model: expected a model that initializes its weights, got a wrapped net"):
        wrap(EMBEDDING, CORE, HEAD).reset_parameters(torch.Generator())


def test_a_part_that_was_exchanged_since_is_named() -> None:
    """A certificate names a net by its parts."""
    for name, part in (
        ("core", nn.RNNCell(4, 6)),
        ("head", nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))),
    ):
        net = wrap(nn.Embedding(2, 4), nn.GRUCell(4, 6), nn.Linear(6, 2))
        if name == "core":
            net.core = part
        else:
            net.readout[1] = part
        with pytest.raises(
            ValueError,
            match=r"model: expected the same parts as when .*, got other parts; call wrap with the new parts",
        ):
            certify(net, make_task("parity"))


# It trains a net for 700 steps; the LSTM of the README is refuted by default in tests/test_examples.py.
@pytest.mark.usefixtures("fewer_strings")
def test_a_net_trained_by_a_plain_loop_is_refuted() -> None:
    """Of few steps, because whether more teach the task depends on the rounding of the processor."""
    torch.manual_seed(0)
    task = make_task("parity")
    embedding, core, head = nn.Embedding(2, 8), nn.LSTM(8, 24, batch_first=True), nn.Linear(24, 2)
    net = wrap(embedding, core, head)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(20):
        strings = torch.randint(2, (64, int(torch.randint(1, 21, ()))))
        logits = head(core(embedding(strings))[0])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), (strings.cumsum(1) % 2).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    certificate = certify(net, task)
    assert certificate.level == "refuted"
    string = "".join(certificate.counterexample.string)
    with torch.no_grad():
        answer = task.classes[int(net.last(task.encode(string)[None]).argmax())]
    assert answer == certificate.counterexample.got != certificate.counterexample.expected


HEADS = {
    "a softmax over the second axis": lambda: nn.Sequential(nn.Linear(4, 2), nn.LogSoftmax(dim=1)),
    "statistics of a batch": lambda: nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)),
    "another shape in between": lambda: nn.Sequential(nn.Unflatten(1, (2, 2)), nn.Flatten(), nn.Linear(4, 2)),
}


@pytest.mark.parametrize("head", HEADS)
def test_heads_read_one_state_each(head: str) -> None:
    """As `wrap` asks of them, [B, H] to [B, Y], whatever they would make of states [B, T, H]."""
    torch.manual_seed(0)
    net = wrap(nn.Embedding(2, 3), nn.GRU(3, 4, batch_first=True), HEADS[head]()).eval()
    strings = torch.randint(2, (5, 7))
    logits = net(strings)
    assert logits.shape == (5, 7, 2)
    for length in (1, 2, 7):
        torch.testing.assert_close(logits[:, length - 1], net.last(strings[:, :length]))
    assert certify(net, make_task("parity")).level == "refuted"


@pytest.mark.unchecked
def test_inputs_that_are_no_batch_of_ids_are_named() -> None:
    net = wrap(nn.Embedding(2, 4), nn.GRU(4, 6), nn.Linear(6, 2))
    for inputs in (torch.tensor([0, 1]), torch.zeros(1, 3), torch.zeros(1, 3, 1, dtype=torch.int64)):
        with pytest.raises(ValueError, match=r"^inputs: expected ids of symbols \[B, T\], torch.int64, got "):
            net(inputs)


def test_parts_of_two_kinds_of_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"parts of one dtype, got torch.float32, torch.float64"):
        wrap(nn.Embedding(2, 4).double(), nn.GRU(4, 6), nn.Linear(6, 2))


def test_an_embedding_with_rows_for_more_than_the_symbols_is_refused() -> None:
    """Its first row is that of a pad, which would be read as the first symbol."""
    net = wrap(nn.Embedding(3, 4, padding_idx=0), nn.GRU(4, 6), nn.Linear(6, 2))
    for measure in (certify, lambda net, task: length_curve(net, task, [5])):
        with pytest.raises(
            ValueError, match=r"with the 2 symbols of the task, got a model with 3 symbols, .* keep only"
        ):
            measure(net, make_task("parity"))


@pytest.mark.parametrize(
    ("embedding", "head", "num_symbols", "sentence"),
    [
        (
            nn.Sequential(nn.Embedding(2, 4)),
            nn.Linear(6, 2),
            -1,
            "num_symbols: expected a whole number from 1 to 10,000,000, got -1",
        ),
        (nn.Embedding(2, 4), "x", None, "head: expected a torch module, got str; give an nn.Module"),
        (None, nn.Linear(6, 2), 2, "embedding: expected a torch module, got NoneType; give an nn.Module"),
    ],
)
def test_wrong_parts_and_sizes_are_named(embedding, head, num_symbols: int | None, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        wrap(embedding, nn.GRU(4, 6), head, num_symbols=num_symbols)


def test_parts_that_are_not_of_torch_are_other_nets() -> None:
    """They have torch's weights, and other answers: a certificate names a net by its settings and weights."""

    class Sequential(nn.Sequential):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return -super().forward(values)

    class Embedding(nn.Embedding):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return -super().forward(ids)

    core = nn.RNN(4, 4, batch_first=True)

    def kind_of(embedding: nn.Module, head: nn.Module) -> dict[str, object]:
        return wrap(embedding, core, head).config.model_dump(mode="json")

    linear, hooked = nn.Linear(4, 2), nn.Linear(4, 2)
    hooked.register_forward_hook(lambda part, given, made: -made)
    plain = kind_of(nn.Embedding(2, 4), nn.Sequential(linear))
    assert plain["head"] == "Linear"
    assert "embedding" not in plain
    for embedding, head in (
        (Embedding(2, 4), nn.Sequential(linear)),
        (nn.Embedding(2, 4), Sequential(linear)),
        (nn.Embedding(2, 4), hooked),
    ):
        other = kind_of(embedding, head)
        assert other != plain
        assert "." in other.get("embedding", other["head"])
