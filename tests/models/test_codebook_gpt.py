"""CodebookGPT beyond the shared contract."""

import pytest
import torch

from lengthwise.layers.codebook import QuantizingLayer
from lengthwise.models import make_model
from lengthwise.models.codebook_gpt import CodebookGPT
from lengthwise.tasks import make_task

SMALL = {"d_model": 16, "num_heads": 2}


def make(**config) -> CodebookGPT:
    return make_model("codebook-gpt", make_task("parity"), **SMALL | config)


def quantizing(num_codes: int = 6, **config) -> CodebookGPT:
    """A model with codes of its own scale, drawn at random."""
    model = make(**config)
    codes = torch.randn(num_codes, 16, generator=torch.Generator().manual_seed(1))
    model.codebook.fill(torch.nn.functional.layer_norm(codes, (16,)))
    return model


def strings(length: int, count: int = 4) -> torch.Tensor:
    return torch.randint(2, (count, length), generator=torch.Generator().manual_seed(length))


def test_the_largest_codebooks_are_accepted() -> None:
    assert [make(chunk_size=c, max_codes=n).config.max_codes for c, n in ((2, 547), (4, 23))] == [547, 23]


def test_is_a_regular_gpt_until_there_are_codes() -> None:
    model, plain = make(), make_model("regular-gpt", make_task("parity"), **SMALL)
    assert all(torch.equal(own, others) for own, others in zip(model.parameters(), plain.parameters(), strict=True))
    assert not any(isinstance(layer, QuantizingLayer) for layer in model.tree.layers)
    inputs = strings(63)
    assert torch.equal(model(inputs), plain(inputs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("chunk_size", [2, 3])
@pytest.mark.parametrize("length", [1, 2, 7, 63, 200])
def test_the_three_forms_are_one_function_of_codes(dtype: torch.dtype, chunk_size: int, length: int) -> None:
    model, inputs = quantizing(chunk_size=chunk_size).to(dtype), strings(length)
    with torch.no_grad():
        logits = model(inputs)
        torch.testing.assert_close(logits, model.forward_by_definition(inputs))
        torch.testing.assert_close(logits[:, -1], model.last(inputs))
        states = model.last_state(inputs)
    assert all(any(torch.equal(state, code) for code in model.codebook.known) for state in states)


@pytest.mark.parametrize("chunk_size", [2, 3])
@pytest.mark.parametrize("length", [1, 2, 7, 63, 200])
def test_the_three_forms_have_the_same_gradients(chunk_size: int, length: int) -> None:
    model, inputs = quantizing(chunk_size=chunk_size).double(), strings(length)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def gradients(logits: torch.Tensor) -> list[torch.Tensor]:
        return list(torch.autograd.grad(logits.logsumexp(-1).sum(), parameters, materialize_grads=True))

    torch.testing.assert_close(gradients(model(inputs)), gradients(model.forward_by_definition(inputs)))
    torch.testing.assert_close(gradients(model.last(inputs)), gradients(model(inputs)[:, -1]))


def test_noise_moves_codes_and_is_quantized_away() -> None:
    model, inputs = quantizing(), strings(100)
    tiny = 1e-5
    with torch.no_grad():
        moved = model.perturbed(lambda states: states + tiny).last_state(inputs)
        torch.testing.assert_close(moved - tiny, model.last_state(inputs))


def test_gradients_pass_through_the_codes() -> None:
    model = quantizing()
    model.last(strings(200)).logsumexp(-1).sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in model.layers.parameters())


def test_drawing_parameters_again_forgets_the_codes() -> None:
    model = quantizing().double()
    model.reset_parameters(torch.Generator().manual_seed(0))
    assert not model.codebook.count
    assert model.codebook.codes.dtype == torch.float64
