"""Receptive fields of language models: the answer that is differentiated is the model's, and ends where it does."""

from typing import Any

import pytest
import torch

from lengthwise.analysis.embedded import looking_up
from lengthwise.analysis.receptive_field import receptive_window
from lengthwise.analysis.text_field import embedded_answer, text_fields
from lengthwise.models import make_model
from lengthwise.models.causal_transformer import CausalTransformer
from lengthwise.tasks import make_task
from lengthwise.text.language import LanguageTask

TIED = {"initialization": "gpt2", "read_in": "plain", "readout": "tied"}

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "regular-gpt-lm": ("regular-gpt-lm", {"d_model": 8, "num_heads": 2, "chunk_size": 3}),
    "alibi": ("transformer", {"d_model": 8, "num_heads": 2, "positions": "alibi", **TIED}),
    "learned": ("transformer", {"d_model": 8, "num_heads": 2, "positions": "learned", "learned_positions": 9}),
    "looped": ("looped-transformer", {"d_model": 8, "num_heads": 2, "positions": "t5", **TIED}),
}


TEXT = make_task("text")


def net(name: str) -> Any:
    model, settings = MODELS[name]
    made = make_model(model, TEXT, **settings).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=torch.Generator().manual_seed(parameter.numel()))
    return made.eval()


@pytest.mark.parametrize("name", MODELS)
def test_the_answer_to_what_symbols_are_looked_up_as_is_the_answer_to_them(name: str) -> None:
    model = net(name)
    inputs = torch.randint(256, (4, 9), generator=torch.Generator().manual_seed(1))
    module = model.read_in if isinstance(model, CausalTransformer) else model
    torch.testing.assert_close(embedded_answer(model)(module.embedding.weight[inputs]), model.last(inputs))


def test_nothing_stays_behind_in_the_model() -> None:
    model = net("alibi")
    inputs = torch.randint(256, (4, 9), generator=torch.Generator().manual_seed(1))
    before = model.last(inputs)
    embedded_answer(model)(torch.zeros(4, 9, 8, dtype=torch.float64))
    assert torch.equal(model.last(inputs), before)


def test_gradients_end_where_the_windows_of_the_model_do() -> None:
    assert isinstance(TEXT, LanguageTask)
    model = make_model("regular-gpt-lm", TEXT, d_model=8, num_heads=2, chunk_size=4, thickness=2, max_levels=1)
    reach = model.receptive_field
    assert reach == 7
    short, long = text_fields(model, TEXT, (5, 40), num_chunks=6)
    assert (short.cumulative.shape, long.cumulative.shape) == ((6, 4), (6, 39))
    for field in (short, long):
        assert torch.equal(field.cumulative[:, 0], torch.ones(6))
        assert receptive_window(field.cumulative, 1 - 1e-6).max() <= reach
    assert (long.cumulative[:, -reach] == 1).all()
    assert (long.cumulative[:, -reach + 1] < 1).all()


def test_a_model_without_one_table_is_refused() -> None:
    model = make_model("lstm", TEXT, d_model=4)
    with pytest.raises(ValueError, match=r"^model: expected a regular-gpt-lm or a transformer that reads symbols, got"):
        embedded_answer(model)


def test_a_string_that_is_read_in_parts_has_the_vectors_of_its_parts() -> None:
    embedding, embedded = torch.nn.Embedding(3, 2), torch.randn(4, 5, 2, generator=torch.Generator().manual_seed(0))
    with looking_up(embedding, embedded):
        parts = [embedding(torch.zeros(4, size, dtype=torch.long)) for size in (2, 3)]
    assert torch.equal(torch.cat(parts, 1), embedded)
    assert embedding(torch.zeros(4, 5, dtype=torch.long)).eq(embedding.weight[0]).all()
