"""A user's own net in files: what TOML says of weights in safetensors."""

from pathlib import Path
from typing import Any

import pytest
import torch
from command import exit_code
from safetensors.torch import load_file, save_file, save_model
from torch import nn

from lengthwise import wrap
from lengthwise.peak_memory import peak_megabytes
from lengthwise.runs.described import load_described

CORES = {
    "rnn": (nn.RNN, {}),
    "relu": (nn.RNN, {"nonlinearity": "relu"}),
    "gru": (nn.GRU, {"num_layers": 2}),
    "lstm": (nn.LSTM, {"num_layers": 3}),
    "no bias": (nn.LSTM, {"bias": False}),
    "projected": (nn.LSTM, {"proj_size": 3}),
}


def net_of(kind: type[nn.RNNBase] = nn.GRU, **options: Any) -> nn.Module:
    net = nn.Module()
    torch.manual_seed(0)
    net.symbols, net.memory = nn.Embedding(2, 4), kind(4, 6, batch_first=True, **options)
    net.answers = nn.Linear(options.get("proj_size", 6), 2)
    return net


def save(net: nn.Module, folder: Path, **more: str) -> Path:
    save_model(net, str(folder / "net.safetensors"))
    lines = {"weights": "net.safetensors", "embedding": "symbols", "core": "memory", "head": "answers"} | more
    text = "".join(f'{name} = "{value}"\n' for name, value in lines.items() if value)
    path = folder / "net.toml"
    path.write_text(text + ("" if "task" in more else 'task = {name = "parity"}\n'))
    return path


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("name", CORES)
def test_a_net_is_what_it_was(name: str, tmp_path: Path) -> None:
    kind, options = CORES[name]
    net = net_of(kind, **options)
    nonlinearity = {"nonlinearity": options["nonlinearity"]} if "nonlinearity" in options else {}
    loaded, task = load_described(save(net, tmp_path, **nonlinearity))
    strings = torch.randint(2, (4, 9))
    assert torch.equal(loaded(strings), wrap(net.symbols, net.memory, net.answers)(strings))
    assert task.name == "parity"


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            (2, 1),
            "expected a model for the 2 answers of the task, got one for 1; make the model for this task (replace "
            "the one logit z by the two logits 0 and z)",
        ),
        ((2, 5), "expected a model for the 2 answers of the task, got one for 5; make the model for this task"),
        ((1, 2), "expected a model that reads the 2 symbols of the task, got an error"),
    ],
)
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_net_of_another_size_is_refused(sizes: tuple[int, int], message: str, command: str, tmp_path: Path, capsys):
    net = net_of()
    net.symbols, net.answers = nn.Embedding(sizes[0], 4), nn.Linear(6, sizes[1])
    path = save(net, tmp_path)
    assert exit_code(command, str(path), *(["ab"] if command == "predict" else [])) == 2
    assert f"{path}: model: {message}" in capsys.readouterr().err


def test_a_file_of_its_task_is_named_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net").mkdir()
    assert exit_code("convert", "(a|b)*b", str(tmp_path / "net" / "ends.dot")) == 0
    path = save(net_of(), tmp_path / "net", task="")
    with path.open("a") as file:
        file.write('task = {name = "dfa", file = "ends.dot"}\n')
    monkeypatch.chdir(tmp_path)
    assert load_described(path)[1].symbols == ("a", "b")


def test_the_command_certifies_it(tmp_path: Path, capsys) -> None:
    path = save(net_of(), tmp_path)
    assert exit_code("certify", str(path)) == 1
    assert "refuted: " in capsys.readouterr().out
    certificate = tmp_path / "net.certificate.json"
    assert exit_code("certify", str(path), "--check", str(certificate)) == 0
    with torch.no_grad():
        net = net_of()
        net.answers.bias += 1
    save(net, tmp_path)
    assert exit_code("certify", str(path), "--check", str(certificate)) == 1
    assert "that the certificate is about, got a difference in weights" in capsys.readouterr().err


def error_of(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert exit_code("certify", str(path)) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1, error
    return error


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            {"core": ""},
            "expected weights of the net's three parts (embedding = 'symbols', core = 'core', head = 'answers')",
        ),
        (
            {"weights": "other.safetensors"},
            "other.safetensors: expected a file of weights, found no such file; in the program that trained the net",
        ),
        ({"weights": "net.toml"}, "net.toml: expected safetensors, got something else"),
        (
            {"task": ""},
            'task: expected the task of the net, such as task = "parity" or task = {name = "regex"',
        ),
        ({"task": "paritty"}, "unknown task 'paritty'; did you mean 'parity'?"),
        ({"nonlinearity": "relu"}, "nonlinearity: expected no nonlinearity with an nn.GRU, got 'relu'; leave out"),
        ({"nonlinearity": "gelu"}, "nonlinearity: expected 'tanh' or 'relu', got 'gelu'"),
        ({"corr": "memory"}, "corr: no such setting; did you mean 'core'?"),
    ],
)
def test_mistakes_are_named(more: dict[str, str], sentence: str, tmp_path: Path, capsys) -> None:
    assert sentence in error_of(save(net_of(), tmp_path, **more), capsys)


@pytest.mark.parametrize(
    ("key", "tensor", "sentence"),
    [
        (
            "symbols.weight",
            torch.zeros(2, 4, dtype=torch.int8),
            "got symbols.weight of torch.int8 and shape [2, 4]; save",
        ),
        (
            "memory.weight_hh_l0",
            torch.zeros(18, 6).double(),
            "of one number type, got torch.float32, torch.float64; convert",
        ),
        ("memory.weight_ih_l0", torch.zeros(18), "core: expected a weight_ih_l0 of two dimensions, got shape [18]"),
        (
            "memory.bias_ih_l0",
            torch.zeros(17),
            "net.toml: core: expected bias_ih_l0 of shape [18], got [17]",
        ),
        ("memory.gain", torch.zeros(18), "net.toml: core: expected only the weights of an nn.GRU, but also got gain"),
        ("symbols.weight", torch.zeros(2), "net.toml: embedding: expected a weight of two dimensions, got shape [2]"),
        ("memory.weight_hh_l0", torch.zeros(18, 0), "got memory.weight_hh_l0 of torch.float32 and shape [18, 0]; save"),
    ],
)
def test_weights_of_other_kinds_are_named(
    key: str, tensor: torch.Tensor, sentence: str, tmp_path: Path, capsys
) -> None:
    path = save(net_of(), tmp_path)
    weights = load_file(tmp_path / "net.safetensors")
    save_file(weights | {key: tensor}, tmp_path / "net.safetensors")
    assert sentence in error_of(path, capsys)


def test_a_bidirectional_core_and_parts_that_do_not_fit_are_named(tmp_path: Path, capsys) -> None:
    error = error_of(save(net_of(bidirectional=True), tmp_path), capsys)
    assert "net.toml: core: expected a core that reads forwards, got the weights of a bidirectional core" in error
    net = net_of()
    net.answers = nn.Linear(7, 2)
    assert "net.toml: head: expected a module that takes hidden states" in error_of(save(net, tmp_path), capsys)
    net.answers = nn.LayerNorm((2, 3))
    assert "net.toml: head: " in error_of(save(net, tmp_path), capsys)
    path = save(net_of(), tmp_path)
    weights = {name: tensor for name, tensor in net_of().state_dict().items() if not name.startswith("answers")}
    save_file(weights, tmp_path / "net.safetensors")
    assert (
        "expected weights of head 'answers', found no such weights; set `head` to the prefix of its weights"
        in error_of(path, capsys)
    )


@pytest.mark.parametrize("is_legacy", [False, True])
def test_what_is_pickled_is_never_opened(is_legacy: bool, tmp_path: Path, capsys) -> None:
    path = save(net_of(), tmp_path, weights="net.pt")
    torch.save(net_of().state_dict(), tmp_path / "net.pt", _use_new_zipfile_serialization=not is_legacy)
    for given in (path, tmp_path / "net.pt"):
        error = error_of(given, capsys)
        assert (
            "net.pt: expected safetensors, got a file written by torch.save or pickle; in the program that trained"
            in error
        )


@pytest.mark.parametrize(
    ("key", "part", "name"),
    [
        ("symbols.weight", "embedding", ""),
        ("memory.weight_hh_l0", "core", "weight_hh_l0"),
        ("memory.weight_ih_l0", "core", "weight_ih_l0"),
        ("memory.bias_ih_l1", "core", "bias_ih_l1"),
        ("answers.weight", "head", "weight"),
    ],
)
def test_a_missing_weight_is_named(key: str, part: str, name: str, tmp_path: Path, capsys) -> None:
    path = save(net_of(num_layers=2), tmp_path)
    weights = load_file(tmp_path / "net.safetensors")
    del weights[key]
    save_file(weights, tmp_path / "net.safetensors")
    expected = f"{part}: expected {name!r} among its weights, got " if name else f"expected weights of {part} 'symbols'"
    assert expected in error_of(path, capsys)


def test_tied_weights_are_read_under_all_their_names(tmp_path: Path) -> None:
    """`save_model` writes one of two tied tensors, and the other one's name into the header."""
    net = net_of()
    net.symbols = nn.Embedding(2, 6)
    net.memory = nn.GRU(6, 6, batch_first=True)
    net.answers.weight = net.symbols.weight
    loaded, _ = load_described(save(net, tmp_path))
    assert not {"symbols.weight", "answers.weight"} <= load_file(tmp_path / "net.safetensors").keys()
    strings = torch.randint(2, (4, 9))
    assert torch.equal(loaded(strings), wrap(net.symbols, net.memory, net.answers)(strings))


def test_the_index_of_several_files_is_named(tmp_path: Path, capsys) -> None:
    path = save(net_of(), tmp_path, weights="model.safetensors.index.json")
    (tmp_path / "model.safetensors.index.json").write_text('{"metadata": {}, "weight_map": {}}')
    sentence = "model.safetensors.index.json: expected a file of weights, got the index of several files; in"
    assert sentence in error_of(path, capsys)


def with_notes(path: Path, weights: dict[str, torch.Tensor], notes: dict[str, str]) -> None:
    save_file(weights, path, metadata={"format": "pt", **notes})


@pytest.mark.parametrize(
    ("notes", "got"),
    [
        ({"answers.bias": "answers.gone"}, "got no tensor answers.gone"),
        ({"answers.bias": "answers.bias"}, "got no tensor answers.bias"),
        ({"answers.bias": "memory.x", "memory.x": "answers.bias"}, "got no tensor "),
        ({"memory.bias_hh_l0": "memory.bias_ih_l0"}, "got a separate tensor memory.bias_hh_l0"),
    ],
)
def test_other_names_that_lead_nowhere_are_named(notes: dict[str, str], got: str, tmp_path: Path, capsys) -> None:
    """Else a bias that is missing would be none, and the net another one."""
    path = save(net_of(), tmp_path)
    weights = load_file(tmp_path / "net.safetensors")
    del weights["answers.bias"]
    with_notes(tmp_path / "net.safetensors", weights, notes)
    assert got in error_of(path, capsys)
    with_notes(tmp_path / "net.safetensors", weights, {"trained by": "me", "epochs": "3"})
    assert load_described(path)[0].readout[1].bias is None


@pytest.mark.parametrize("start", [b"\x80", b"PK"])
def test_a_header_of_any_length_is_no_pickle(start: bytes, tmp_path: Path) -> None:
    """The length comes first, and may begin as a pickle or an archive does."""
    path = save(net_of(), tmp_path)
    weights = load_file(tmp_path / "net.safetensors")
    for size in range(0, 20_000, 8):
        with_notes(tmp_path / "net.safetensors", weights, {"note": "x" * size})
        if (tmp_path / "net.safetensors").read_bytes()[: len(start)] == start:
            break
    else:
        raise AssertionError("no such header")
    load_described(path)


def test_weights_that_are_no_numbers_are_named(tmp_path: Path, capsys) -> None:
    for value in (float("nan"), float("inf")):
        net = net_of()
        with torch.no_grad():
            net.symbols.weight[0, 0] = value
        assert "expected finite weights, got NaN or infinity in symbols.weight" in error_of(save(net, tmp_path), capsys)


def test_a_type_that_torch_lacks_and_a_task_of_vectors_are_named(tmp_path: Path, capsys) -> None:
    path = save(net_of(), tmp_path)
    content = (tmp_path / "net.safetensors").read_bytes()
    (tmp_path / "net.safetensors").write_bytes(content.replace(b'"F32"', b'"I32"'))
    assert "expected weights that are floating-point numbers" in error_of(path, capsys)
    header = b'{"symbols.weight":{"dtype":"F8_E8M0","shape":[2,4],"data_offsets":[0,8]}}'
    (tmp_path / "net.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    assert "expected number types that torch knows, got type 'F8_E8M0'" in error_of(path, capsys)
    net = net_of()
    net.symbols, net.answers = nn.Embedding(2, 4), nn.Linear(6, 2)
    assert "expected a task over symbols, got decision-tree" in error_of(
        save(net, tmp_path, task="decision-tree"), capsys
    )


def test_shapes_are_compared_before_memory_is_taken(tmp_path: Path) -> None:
    """A matrix of one row says that the core reads ten million numbers: 60 GB, if a core were made for that."""
    path = save(net_of(), tmp_path)
    weights = load_file(tmp_path / "net.safetensors") | {"memory.weight_ih_l0": torch.zeros(1, 10_000_000)}
    weights["memory.weight_hh_l0"] = torch.zeros(1_500, 500)
    save_file(weights, tmp_path / "net.safetensors")
    before = peak_megabytes()
    with pytest.raises(
        ValueError, match=r"core: expected weight_ih_l0 of shape \[1500, 10000000\], got \[1, 10000000\]"
    ):
        load_described(path)
    assert peak_megabytes() - before < 500


@pytest.mark.parametrize("value", ["[1]", "3", "true"])
def test_a_task_is_a_name_or_a_table(value: str, tmp_path: Path) -> None:
    path = save(net_of(), tmp_path)
    path.write_text(path.read_text().replace('task = {name = "parity"}', f"task = {value}"))
    with pytest.raises(
        ValueError, match=r'task: expected a name, such as "parity", or a table with a name, got'
    ) as error:
        load_described(path)
    assert "\n" not in str(error.value)
