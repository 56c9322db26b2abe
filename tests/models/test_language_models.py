"""Causal language models that answer with sets of symbols: in Python, and in files on the command line."""

import json
import os
import re
from pathlib import Path
from types import ModuleType

import pytest
import torch
from command import exit_code
from torch import nn

from lengthwise import SetAnswers, attack, make_task
from lengthwise.models.base import RecurrentModel
from lengthwise.models.hugging_face import wrap_hugging_face
from lengthwise.runs.described import load_described

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def made_by() -> ModuleType:
    """The library, whose import takes seconds, so that only the tests that use it wait."""
    import transformers

    return transformers


ENDS_IN_B = make_task("next-symbols", base={"name": "regex", "pattern": "(a|b)*b"}, with_end=True, with_other=True)
A, B, BEGIN = 0, 1, 2
RARE = 0.85


def gpt2(num_positions: int = 64, **settings: object) -> nn.Module:
    torch.manual_seed(0)
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": num_positions, "tie_word_embeddings": False}
    return made_by().GPT2LMHeadModel(made_by().GPT2Config(vocab_size=3, **sizes | settings)).eval()


def almost_right() -> nn.Module:
    """A GPT-2 for strings that end in b. It forbids the end after b if more than 85 % of the tokens are a.

    Symbols are pairs (1, -1) of dimensions, so that norms only scale. Attention is uniform, and writes the fraction of
    a into the third pair. The head subtracts it from the second pair, which is b at the last position.
    """
    model = gpt2()
    pair = torch.tensor([1.0, -1.0])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.transformer.wte.weight[A, :2] = model.transformer.wte.weight[B, 2:4] = pair
        (block,) = model.transformer.h
        block.ln_1.weight.fill_(1)
        block.attn.c_attn.weight[0, 16 + 4 : 16 + 6] = pair / 2  # the norm doubles a symbol's pair
        block.attn.c_proj.weight.copy_(torch.eye(8))
        model.transformer.ln_f.weight.fill_(1)
        model.transformer.ln_f.bias[6] = 1
        model.lm_head.weight[:2, 6] = 1
        model.lm_head.weight[BEGIN, 2], model.lm_head.weight[BEGIN, 4] = 1, -1 / RARE
    return model


def test_a_language_model_that_answers_with_sets_is_refuted_on_a_rare_string() -> None:
    """After a^n b, n of n + 2 tokens are a, which is more than 85 % for n = 12 and above; 12 symbols are enumerated."""
    net = wrap_hugging_face(almost_right(), answers=SetAnswers(ENDS_IN_B, above=0.0), begin=BEGIN, tokens=[A, B])
    with torch.no_grad():
        strings = torch.randint(2, (200, 40), generator=torch.Generator().manual_seed(0))
        assert torch.equal(net(strings).argmax(2), ENDS_IN_B.solve(strings)), "it is right on random strings"
    result = attack(net, ENDS_IN_B, budget=60.0)
    assert result.string == ("a",) * 12 + ("b",)
    assert (result.expected, result.got) == ("a, b or end", "a, b")
    assert (net.max_length, result.max_length) == (63, 63)


def test_nothing_is_said_beyond_the_positions_of_a_model() -> None:
    """The shortest wrong string has 13 symbols, one more than a model of 13 positions reads after its first token."""
    model = almost_right()
    model.config.n_positions = 13
    net = wrap_hugging_face(model, answers=SetAnswers(ENDS_IN_B, above=0.0), begin=BEGIN, tokens=[A, B])
    assert net.max_length == 12
    assert not attack(net, ENDS_IN_B, budget=0.3).is_refuted
    sets = SetAnswers(ENDS_IN_B, above=0.0)
    longer = wrap_hugging_face(model, answers=sets, begin=BEGIN, tokens=[A, B], max_length=63)
    with torch.no_grad():
        assert longer(torch.tensor([[A] * 12 + [B]])).argmax(2)[0, -1] == ENDS_IN_B.classes.index("a, b")
    with pytest.raises(ValueError, match=r"max_length: expected at most 63 symbols, because the GPT2Model has no more"):
        wrap_hugging_face(gpt2(), nn.Linear(8, 2), tokens=[A, B], begin=BEGIN, max_length=64)


def test_the_sets_of_a_language_model_are_those_of_its_probabilities() -> None:
    model, sets = gpt2(initializer_range=1.0), SetAnswers(ENDS_IN_B, score="softmax", above=0.3, tokens=[A, B, BEGIN])
    net = wrap_hugging_face(model, answers=sets, begin=BEGIN, tokens=[B, A])
    strings = torch.randint(2, (50, 20), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        ids = torch.cat([torch.full((50, 1), BEGIN), 1 - strings], 1)
        is_in = model(ids).logits.softmax(2)[:, 1:] > 0.3
        members = torch.from_numpy(ENDS_IN_B.members.copy())
        expected = torch.full(strings.shape, len(members))
        for index, row in enumerate(members):
            expected[(is_in == row).all(2)] = index
        assert torch.equal(net(strings).argmax(2), expected)
    assert len(set(expected.flatten().tolist())) > 1
    with_head = wrap_hugging_face(model, model.lm_head, answers=sets, begin=BEGIN, tokens=[B, A])
    assert with_head.config == net.config, "a head of scores can be given as well"


def test_a_recurrent_model_can_answer_with_sets() -> None:
    library = made_by()
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "state_size": 8, "intermediate_size": 32}
    mamba = library.MambaModel(library.MambaConfig(vocab_size=2, **sizes)).eval()
    strings = torch.randint(2, (2, 4), generator=torch.Generator().manual_seed(0))
    recurrent = wrap_hugging_face(mamba, nn.Linear(16, 3), answers=SetAnswers(ENDS_IN_B, above=0.0))
    assert isinstance(recurrent, RecurrentModel)
    with torch.no_grad():
        torch.testing.assert_close(recurrent(strings)[:, -1], recurrent.last(strings))


@pytest.mark.parametrize("change", ["forward", "settings"])
def test_a_language_model_that_changes_the_logits_of_its_head_is_refused(change: str) -> None:
    model = gpt2()
    if change == "settings":
        model.config.final_logit_softcapping = 30.0  # as Gemma 2 has, whose logits are small before training
    else:
        model.forward = lambda *given, **named: made_by().modeling_outputs.CausalLMOutput(
            logits=1.001 * type(model).forward(model, *given, **named).logits
        )
    with pytest.raises(
        ValueError, match="model: expected a model that returns the logits of its last linear map unchanged"
    ):
        wrap_hugging_face(model, answers=SetAnswers(ENDS_IN_B, above=0.0), begin=BEGIN, tokens=[A, B])


LINES = {
    "hugging_face": "gpt2",
    "tokens": [A, B],
    "begin": BEGIN,
    "sets": {"above": 0.0},
    "task": {"name": "next-symbols", "base": {"name": "regex", "pattern": "(a|b)*b"}, "with_end": True}
    | {"with_other": True},
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    almost_right().save_pretrained(folder / "gpt2")
    return folder


def description_in(folder: Path, lines: dict[str, object]) -> Path:
    path = folder / "net.toml"
    path.write_text("".join(f"{key} = {toml(value)}\n" for key, value in lines.items()))
    return path


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


def test_a_language_model_in_files_is_attacked_and_certified(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = description_in(saved, LINES)
    net, task = load_described(path)
    sets = SetAnswers(ENDS_IN_B, above=0.0)
    same = wrap_hugging_face(almost_right(), answers=sets, begin=BEGIN, tokens=[A, B])
    strings = torch.randint(2, (4, 30), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(net(strings), same(strings))
    assert (task, net.config) == (ENDS_IN_B, same.config)
    capsys.readouterr()
    assert exit_code("attack", str(path), "--budget", "60") == 1
    assert "a^12 b: the model says a, b, right is a, b or end" in capsys.readouterr().out
    assert exit_code("certify", str(description_in(saved, LINES | {"max_length": 12}))) == 0
    out = capsys.readouterr().out
    assert "the model reads strings of at most 12 symbols" in out
    assert exit_code("certify", "--check", str(saved / "net.certificate.json"), str(saved / "net.toml")) == 0


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ({"bgin": 2}, "bgin: no such setting; did you mean 'begin'"),
        ({"sets": {"above": 0.0, "scor": "logit"}}, "sets.scor: no such setting; did you mean 'score'"),
        ({"sets": {"above": "0"}}, "sets.above: expected a valid number, got '0'"),
        ({"begin": "2"}, "begin: expected a valid integer, got '2'"),
        ({"answers": [0, 1]}, "expected either `answers` .* or a table `sets` .*, got both; give one of them"),
        ({"sets": None}, "expected either `answers` .* or a table `sets` .*, got neither; give one of them"),
        ({"sets": {"above": 2, "score": "softmax"}}, "sets: above: expected a probability from 0 to 1"),
        ({"task": "parity"}, "sets: task: expected the task next-symbols with with_other=True, .* got parity"),
        ({"task": ""}, "task: expected the task of the net"),
        ({"tokens": [0, 3]}, "tokens: expected tokens of the model, 0 to 2, got 3"),
        ({"tokens": [0, 1, 2]}, "expected a model with the 2 symbols of the task, got a model with 3"),
        ({"max_length": 64}, "max_length: expected at most 63 symbols"),
        ({"hugging_face": "nothing"}, "hugging_face: expected a folder with config.json and model.safetensors, got no"),
    ],
)
def test_what_does_not_fit_a_language_model_is_named(saved: Path, lines: dict[str, object], sentence: str) -> None:
    given = {key: value for key, value in (LINES | lines).items() if value is not None}
    with pytest.raises(ValueError, match=sentence) as caught:
        load_described(description_in(saved, given))
    assert str(caught.value).startswith(str(saved / "net.toml"))
    assert "\n" not in str(caught.value)


def test_damaged_folders_of_language_models_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from safetensors.torch import load_file, save_file

    path = description_in(tmp_path, LINES | {"hugging_face": "."})
    almost_right().save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    capfd.readouterr()

    def sentence() -> str:
        with pytest.raises(ValueError) as caught:  # noqa: PT011  # its sentence is compared
            load_described(path)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    left_out = {name: tensor for name, tensor in weights.items() if "ln_f.bias" not in name}
    save_file(left_out, file, metadata={"format": "pt"})
    assert "expected exactly the weights of a GPT2LMHeadModel in" in sentence()
    assert "but transformer.ln_f.bias is missing" in sentence()
    save_file(weights | {"more.weight": torch.zeros(1)}, file, metadata={"format": "pt"})
    assert "but more.weight is unexpected" in sentence()
    file.write_bytes(b"nothing")
    assert "expected a causal language model of transformers in" in sentence()
    assert capfd.readouterr().err == "", "the library's warnings are left out"
    file.unlink()
    os.mkfifo(file)
    assert "expected a file, got a pipe or a device" in sentence()
    file.unlink()
    assert "got no model.safetensors in" in sentence()


def test_python_of_the_page_that_trains_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The page as a whole trains nets, and is slow (`tests/test_examples.py`)."""
    page = (Path(__file__).parents[2] / "docs" / "your-own-net.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    names: dict[str, object] = {"__name__": "page", "torch": torch, "transformers": made_by(), "make_task": make_task}
    names |= {"wrap_hugging_face": wrap_hugging_face, "task": make_task("parity")}
    capsys.readouterr()
    for word in ("wrap_module", "SetAnswers"):
        (code,) = (block for block in blocks if word in block)
        exec(code, names)
    string, result, *_ = capsys.readouterr().out.splitlines()
    assert string == " ".join("b" * 13)
    assert result.startswith("wrong answer: ")
