"""Models of the library transformers, made from their configurations, as models."""

import pytest
import torch
import transformers
from second_device import DEVICE, OnDevice, second_device
from torch import nn

from lengthwise import Recipe, certify, make_task, train
from lengthwise.models.base import RecurrentModel
from lengthwise.models.hugging_face import HuggingFaceModel, wrap_hugging_face
from lengthwise.runs.spec import make_spec

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SMALL = {"vocab_size": 3, "hidden_size": 16, "num_hidden_layers": 2}
RECURRENT = {
    "mamba": (transformers.MambaConfig, {"state_size": 8, "intermediate_size": 32}),
    "mamba2": (transformers.Mamba2Config, {"state_size": 8, "num_heads": 4, "head_dim": 8, "n_groups": 1}),
    "falcon_mamba": (transformers.FalconMambaConfig, {"state_size": 8, "intermediate_size": 32}),
}
GROWING = {
    "gpt2": (transformers.GPT2Config, {"n_head": 2, "n_positions": 64}),
    "rwkv": (transformers.RwkvConfig, {"attention_hidden_size": 16}),
}


def made(kind: str) -> nn.Module:
    torch.manual_seed(0)
    config, settings = (RECURRENT | GROWING)[kind]
    return transformers.AutoModel.from_config(config(**SMALL, **settings)).eval()


def test_an_encoder_that_looks_ahead_is_refused() -> None:
    torch.manual_seed(0)
    settings = {"num_attention_heads": 2, "intermediate_size": 16}
    backbone = transformers.BertModel(transformers.BertConfig(**SMALL, **settings))
    with pytest.raises(ValueError, match="expected a causal model, got a BertModel"):
        wrap_hugging_face(backbone, nn.Linear(16, 2))
    assert backbone.training


def encoder(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    settings = {"num_attention_heads": 2, "intermediate_size": 16, "initializer_range": 1e-3}
    return transformers.BertModel(transformers.BertConfig(**{**SMALL, "vocab_size": 2}, **settings))


@pytest.mark.parametrize("seed", range(5))
def test_an_encoder_that_looks_ahead_by_less_than_rounding_is_refused(seed: int) -> None:
    for head in (nn.Linear(16, 2), nn.Linear(16, 2)):
        with torch.no_grad():
            head.weight *= 0
        with pytest.raises(ValueError, match="got a BertModel, whose answer to a prefix depends on what follows"):
            wrap_hugging_face(encoder(seed), head)


def test_a_model_that_looks_ahead_since_it_was_wrapped_is_refused() -> None:
    torch.manual_seed(0)
    settings = {"num_attention_heads": 2, "intermediate_size": 16, "is_decoder": True}
    decoder = transformers.BertModel(transformers.BertConfig(**{**SMALL, "vocab_size": 2}, **settings))
    model = wrap_hugging_face(decoder, nn.Linear(16, 2))
    model.backbone = encoder(0)
    recipe = make_spec("parity", "gru", {"train": {"steps": 1, "batch_size": 2}}).recipe
    for act in (certify, lambda net, task: train(net, task, recipe)):
        with pytest.raises(ValueError, match="expected a causal model, got a BertModel"):
            act(model, make_task("parity"))


@pytest.mark.parametrize(
    ("dtype", "head", "sentence"),
    [
        (
            torch.bfloat16,
            nn.Linear(16, 2),
            r"head: expected weights of torch.bfloat16, .* got torch.float32; make both",
        ),
        (torch.float16, nn.Linear(16, 2), r"head: expected weights of torch.float16, .* got torch.float32; make"),
        (torch.float64, nn.Linear(16, 2), r"head: expected weights of torch.float64, .* got torch.float32; make"),
        (torch.float32, nn.Linear(17, 2), r"head: expected a module that takes hidden states \[B, 16\]"),
        (torch.float32, nn.GRU(16, 2), r"head: expected logits \[B, Y\] from hidden states \[B, 16\], got tuple"),
    ],
)
def test_heads_that_do_not_fit_are_named(dtype: torch.dtype, head: nn.Module, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        wrap_hugging_face(made("gpt2").to(dtype), head)
    assert "\n" not in str(caught.value)


def test_a_model_that_cannot_read_on_from_its_cache_is_read_whole() -> None:
    torch.manual_seed(0)
    settings = {"num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 32}
    config = transformers.Lfm2Config(**SMALL, **settings, layer_types=["conv", "conv"])
    backbone, head = transformers.AutoModel.from_config(config).eval(), nn.Linear(16, 2)
    model, strings = wrap_hugging_face(backbone, head), torch.randint(3, (4, 9))
    assert type(model) is HuggingFaceModel
    with torch.no_grad():
        whole = head(backbone(strings, use_cache=False).last_hidden_state)
        torch.testing.assert_close(model(strings), whole)


@pytest.mark.parametrize("kind", RECURRENT)
def test_a_cache_of_fixed_size_is_a_state(kind: str) -> None:
    backbone, head = made(kind), nn.Linear(16, 2)
    model = wrap_hugging_face(backbone, head).eval()
    assert isinstance(model, RecurrentModel)
    with torch.no_grad():
        for length in (1, 2, 5, 63):
            strings = torch.randint(3, (4, length))
            whole = head(backbone(strings, use_cache=False).last_hidden_state)
            torch.testing.assert_close(model(strings), whole, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(model.last(strings), model(strings)[:, -1])
        first = model.initial_state(4)
        _, state = model.step(torch.tensor([0, 1, 2, 0]), first)
        kept = state.clone()
        model.step(torch.tensor([1, 1, 1, 1]), state)
        assert torch.equal(state, kept), "a step leaves the state before it as it was"
        assert not bool(first.any())


def test_a_recurrent_model_is_trained_on_whole_strings() -> None:
    model = wrap_hugging_face(made("mamba"), nn.Linear(16, 2), tokens=[1, 2])
    before = [parameter.detach().clone() for parameter in model.parameters()]
    with pytest.raises(ValueError, match=r"accepts no pads; .*, as in make_spec\('parity', 'gru'\)\.recipe"):
        train(model, make_task("parity"), Recipe(), seed=0)
    settings = {"steps": 2, "batch_size": 4, "min_length": 4, "max_length": 6}
    train(model, make_task("parity"), make_spec("parity", "gru", {"train": settings}).recipe, seed=0)
    assert not all(torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))


def test_tokens_have_to_be_named_where_there_are_more_than_symbols() -> None:
    """Else pads and other special tokens, which come first, would be read as the first symbols."""
    with pytest.raises(
        ValueError, match=r"got a model with 3 symbols, whose first 2 need not be the task's; pass tokens="
    ):
        certify(wrap_hugging_face(made("mamba"), nn.Linear(16, 2)), make_task("parity"))


@pytest.mark.parametrize("kind", GROWING)
def test_a_cache_that_grows_is_none(kind: str) -> None:
    backbone, head = made(kind), nn.Linear(16, 2)
    model, strings = wrap_hugging_face(backbone, head).eval(), torch.randint(3, (4, 9))
    assert type(model) is HuggingFaceModel
    with torch.no_grad():
        torch.testing.assert_close(model(strings), head(backbone(strings).last_hidden_state))
        if kind == "gpt2":
            with pytest.raises(ValueError, match="expected at most 64 symbols, the max_length of the model, got 65"):
                model(torch.zeros(1, 65, dtype=torch.long))


def causal(kind: str, vocab_size: int) -> nn.Module:
    config, settings = (RECURRENT | GROWING)[kind]
    described = config(**{**SMALL, "vocab_size": vocab_size}, **settings)
    return transformers.AutoModelForCausalLM.from_config(described).eval()


@pytest.mark.parametrize("kind", ["mamba", "gpt2"])
def test_tokens_answer_where_there_is_no_head(kind: str) -> None:
    language_model = causal(kind, 9)
    model = wrap_hugging_face(language_model, answers=[3, 4], tokens=[5, 6]).eval()
    strings = torch.randint(2, (4, 8))
    with torch.no_grad():
        expected = language_model(torch.tensor([5, 6])[strings]).logits[..., [3, 4]]
        torch.testing.assert_close(model(strings), expected, rtol=1e-4, atol=1e-5)


# It trains a net of another library; planted faults are refuted by default in tests/certification.
@pytest.mark.slow
def test_a_mamba_that_was_trained_on_parity_is_refuted() -> None:
    """Its states decay and never change sign, so that it cannot count: it has learned short strings."""
    torch.manual_seed(0)
    config = transformers.MambaConfig(vocab_size=2, hidden_size=16, num_hidden_layers=2, state_size=8)
    backbone, head, task = transformers.MambaModel(config), nn.Linear(16, 2), make_task("parity")
    optimizer = torch.optim.AdamW([*backbone.parameters(), *head.parameters()], lr=3e-3)
    for _ in range(100):
        strings = torch.randint(2, (32, int(torch.randint(1, 9, ()))))
        logits = head(backbone(strings, use_cache=False).last_hidden_state)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), (strings.cumsum(1) % 2).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    certificate = certify(wrap_hugging_face(backbone, head), task)
    assert certificate.level == "refuted"
    string = task.encode("".join(certificate.counterexample.string))
    with torch.no_grad():
        answer = head(backbone.eval()(string[None]).last_hidden_state[0, -1]).argmax()
    assert task.classes[int(answer)] == certificate.counterexample.got != certificate.counterexample.expected


class WithoutTheCache(transformers.MambaModel):
    """Its state is more than its cache."""

    def forward(self, tokens, cache=None, use_cache=None):
        outputs = super().forward(tokens, cache=cache, use_cache=use_cache)
        outputs.last_hidden_state = outputs.last_hidden_state * torch.arange(1, tokens.shape[1] + 1)[:, None]
        return outputs


@pytest.mark.parametrize(
    ("model", "settings", "sentence"),
    [
        (lambda: made("mamba"), {}, "head: expected either head or answers, got neither; give one"),
        (lambda: made("mamba"), {"head": nn.Linear(16, 2), "answers": [0]}, "got both; give one of them"),
        (
            lambda: made("mamba"),
            {"answers": [0, 1]},
            "model: expected a model with output embeddings, which answers= needs, got a Mamba",
        ),
        (
            lambda: causal("gpt2", 8),
            {"answers": [5, 8]},
            "answers: expected tokens of the model, 0 to 7, got 8",
        ),
        (lambda: made("gpt2"), {"head": nn.Linear(16, 2), "tokens": [0, 3]}, "tokens: expected .* 0 to 2, got 3"),
        (
            lambda: made("gpt2"),
            {"head": nn.Linear(16, 2), "tokens": []},
            "tokens: expected at least one token, got none",
        ),
        (lambda: causal("gpt2", 8), {"answers": []}, "answers: expected at least one token, got none"),
        (
            lambda: WithoutTheCache(made("mamba").config),
            {"head": nn.Linear(16, 2)},
            "expected a mamba whose logits are equal .*, got logits that differ by up to",
        ),
        (
            lambda: nn.LSTM(2, 2),
            {"head": nn.Linear(16, 2)},
            "model: expected a model with a config, from the package transformers, got an LSTM; for a net of",
        ),
    ],
)
def test_what_does_not_fit_is_named(model, settings, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        wrap_hugging_face(model(), **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.unchecked
@pytest.mark.parametrize("kind", ["mamba", pytest.param("gpt2", marks=pytest.mark.slow)])
def test_a_model_is_wrapped_on_the_device_where_it_is(kind: str) -> None:
    backbone, head, strings = made(kind), nn.Linear(16, 2), torch.tensor([[0, 1, 2, 2]])
    here = wrap_hugging_face(backbone, head).eval()(strings)
    with second_device() as visits:
        model = wrap_hugging_face(backbone.to(DEVICE), head.to(DEVICE)).eval()
        there = model(strings.to(DEVICE))
    assert isinstance(there, OnDevice)
    torch.testing.assert_close(there.held, here)
    assert not visits.mixed
    where = {name.rpartition(":")[2] for name in visits.trips}
    checks = {"_check_cache_is_the_state", "__torch_function__", "_are_strings", "_reaches", "is_close"}
    assert where <= {*checks, "_hidden", "_hidden_of"}, "the last two are the library's own"
