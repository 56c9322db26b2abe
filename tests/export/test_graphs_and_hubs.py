"""Commands on graphs and on folders for hubs: what is written is what the model is."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from command import exit_code
from safetensors.torch import save_model
from torch import nn

from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.constructions import construct
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.export.agreement import agreement
from lengthwise.export.facts import graph_facts
from lengthwise.export.hub_folder import model_card
from lengthwise.models import make_model
from lengthwise.runs.compiled import save_compiled
from lengthwise.runs.execute import Interrupted, execute
from lengthwise.runs.folder import RunFolder, load_run
from lengthwise.runs.hub import load_hub, save_hub
from lengthwise.runs.spec import make_spec
from lengthwise.runs.stored import load_stored
from lengthwise.tasks import make_task


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save_compiled(construct("rnn", make_task("parity")), tmp_path / "net")
    return Path("net")


def test_the_command_writes_a_graph_that_knows_its_names(net: Path, capsys) -> None:
    assert exit_code("export", "net", "--to", "onnx", "--out", "net.onnx") == 0
    assert "on 1,000 strings of 40 symbols" in capsys.readouterr().out
    facts = onnxruntime.InferenceSession("net.onnx").get_modelmeta().custom_metadata_map
    assert json.loads(facts["symbols"]) == ["a", "b"]
    assert json.loads(facts["classes"]) == ["0", "1"]
    first = load_stored(net).model.initial_state(1)[0].tolist()
    assert json.loads(facts["initial_state"]) == first
    assert "certificate_level" not in facts


def test_the_command_writes_a_program_that_torch_reads(net: Path) -> None:
    assert exit_code("export", "net", "--to", "torch", "--out", "net.pt2") == 0
    extra = {"lengthwise.json": ""}
    program = torch.export.load("net.pt2", extra_files=extra).module()
    model = load_stored(net).model
    state = model.initial_state(2)
    logits, after = program(torch.tensor([0, 1]), state.contiguous())
    expected = model.step(torch.tensor([0, 1]), state)
    torch.testing.assert_close((logits, after), expected)
    facts = json.loads(extra["lengthwise.json"])
    assert facts["initial_state"] == json.dumps(state[0].tolist())
    assert facts["form"] == "step"
    assert b".py" not in Path("net.pt2").read_bytes()


def test_a_graph_of_another_model_is_found_out() -> None:
    model, other = (make_model("rnn", make_task("parity"), seed=seed) for seed in (0, 1))

    def run(inputs):
        with torch.no_grad():
            return other(torch.from_numpy(inputs)).numpy()

    with pytest.raises(RuntimeError, match="graph: expected the model's logits, got logits that differ by up to"):
        agreement(model, run, 2)
    with torch.no_grad():  # differences count in relation to the logits, however small these are
        for parameter in model.readout.parameters():
            parameter *= 1e-6
    with pytest.raises(RuntimeError, match="graph: expected the model's logits, got logits that differ by up to"):
        agreement(model, lambda inputs: np.zeros((*inputs.shape, 2), np.float32), 2)


@pytest.mark.parametrize(("units", "bound"), [(0, "0"), (8, "1e-06"), (10, "2e-06"), (24, "3e-06")])
def test_the_bound_on_differences_is_never_below_the_largest(units: int, bound: str) -> None:
    """All logits of the model are 1, next to which float32 has multiples of 2^-23, 1.2e-7."""
    model = make_model("rnn", make_task("parity"))
    nn.init.zeros_(model.readout.weight)
    nn.init.ones_(model.readout.bias)

    def run(inputs: np.ndarray) -> np.ndarray:
        return np.full((*inputs.shape, 2), 1 + units / 2**23, np.float32)

    assert agreement(model, run, 2).startswith(f"logits within {bound} of torch's")


def test_a_page_for_hubs_shows_an_expression_as_it_is(tmp_path: Path) -> None:
    save_compiled(construct("rnn", make_task("regex", pattern="(a*b)*|a")), tmp_path / "net")
    assert r"pattern=(a\*b)\*\|a" in model_card(load_stored(tmp_path / "net"), None)


def test_a_run_comes_back_from_a_folder_for_hubs(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    training = {"steps": 2, "batch_size": 4, "min_length": 1, "max_length": 6}
    spec = make_spec("parity", "gru", {"model": {"d_model": 8}, "train": training})
    execute(spec, tmp_path / "runs", EvaluationPlan(dense=(7, 9), dense_strings=4, long=(), structured=()))
    run = next((tmp_path / "runs").iterdir())
    assert exit_code("export", str(run), "--to", "hub-folder", "--out", "hub") == 0
    stored, inputs = load_stored(Path("hub")), torch.tensor([[0, 1, 1]])
    with torch.no_grad():
        assert torch.equal(stored.model(inputs), load_run(run).model(inputs))
    assert stored.task == spec.task
    assert stored.trained_to == 6
    card = Path("hub/README.md").read_text(encoding="utf-8")
    assert "| seed | 0 |" in card
    assert "after step 2 of 2, up to length 6" in card
    assert "| 7 to 9 | " in card
    assert " | 4 | " in card
    capsys.readouterr()
    assert exit_code("predict", "hub", "abba") == 0
    assert capsys.readouterr().out.startswith("abba\t")
    assert exit_code("evaluate", "hub", "--lengths", "3", "--strings", "4") == 0
    header = b'{"x":{"dtype":"F8_E8M0","shape":[2],"data_offsets":[0,2]}}'  # a type that torch lacks
    for content in (b"none", len(header).to_bytes(8, "little") + header + bytes(2)):
        Path("hub/model.safetensors").write_bytes(content)
        assert exit_code("predict", "hub", "abba") == 2
        assert "expected safetensors, got something else" in capsys.readouterr().err


def test_what_is_exported_of_a_run_is_the_size_of_its_last_attempt_and_unfinished_weights(
    tmp_path: Path, capsys
) -> None:
    """A run that goes on until it is proved begins with other sizes than its specification says."""
    training = {"steps": 9, "batch_size": 4, "pace": {"contract_steps": 1}}
    spec = make_spec("parity", "block-linear-rnn", {"train": training}, preset="machine", goal="proved")
    size = spec.attempt(0).to_json()["model"]["d_model"]
    assert size != spec.to_json()["model"]["d_model"]
    stop = iter([False, True])
    with pytest.raises(Interrupted):
        execute(spec, tmp_path / "runs", stop_requested=lambda: next(stop, True))
    run = next((tmp_path / "runs").iterdir())
    assert exit_code("export", str(run), "--to", "hub-folder", "--out", str(tmp_path / "hub")) == 0
    captured = capsys.readouterr()
    assert f"{run}: weights after " in captured.err
    card = (tmp_path / "hub/README.md").read_text(encoding="utf-8")
    assert f"d_model={size}, " in card
    facts = graph_facts(str(run), load_stored(run))
    assert json.loads(facts["model"])["d_model"] == size
    assert facts["weights"].endswith("of an attempt, before training was over")


@pytest.mark.usefixtures("fewer_strings")
def test_the_machine_of_a_run_needs_no_weights(tmp_path: Path) -> None:
    """Its certificate has it."""
    model, task = construct("rnn", make_task("parity")).model, make_task("parity")
    spec = make_spec("parity", "gru", {"model": {"d_model": 8}})
    run = tmp_path / spec.id
    RunFolder(run).create(spec)
    (run / "certificate.json").write_text(certify(model, task).to_text(), encoding="utf-8")
    assert exit_code("export", str(run), "--to", "dot", "--out", str(tmp_path / "m.dot")) == 0
    assert "digraph" in (tmp_path / "m.dot").read_text(encoding="utf-8")


@pytest.mark.usefixtures("fewer_strings")
def test_a_net_of_ones_own_keeps_its_certificate(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    core = nn.RNN(2, 3, nonlinearity="relu", batch_first=True)
    parts = nn.ModuleDict({"embedding": nn.Embedding(2, 2), "core": core, "head": nn.Linear(3, 2)})
    save_model(parts, "net.safetensors")
    Path("net.toml").write_text(
        'weights = "net.safetensors"\nnonlinearity = "relu"\ntask = {name = "parity"}\n', encoding="utf-8"
    )
    assert exit_code("certify", "net.toml", "--min-level", "refuted") == 0
    assert exit_code("export", "net.toml", "--to", "hub-folder", "--out", "hub") == 0
    inputs = torch.tensor([[0, 1, 1, 0]])
    with torch.no_grad():
        assert torch.equal(load_stored(Path("hub")).model(inputs), load_stored(Path("net.toml")).model(inputs))
    certificate = Certificate.read(Path("hub/certificate.json"))
    assert f"**{certificate.level}**" in Path("hub/README.md").read_text(encoding="utf-8")
    capsys.readouterr()
    assert exit_code("certify", "hub", "--check", "hub/certificate.json") in (0, 1)
    assert "another" not in capsys.readouterr().err
    text = Path("net.toml").read_text(encoding="utf-8")
    for old, new, what in (('"relu"', '"tanh"', "model"), ("parity", "even-pairs", "task")):
        Path("net.toml").write_text(text.replace(old, new), encoding="utf-8")
        assert exit_code("export", "net.toml", "--to", "hub-folder", "--out", "hub") == 2
        assert f"net.toml: its certificate is about another {what}; certify net" in capsys.readouterr().err
    Path("net.toml").write_text(text, encoding="utf-8")
    core.weight_hh_l0.data[0, 0] += 1
    save_model(parts, "net.safetensors")
    assert exit_code("export", "net.toml", "--to", "onnx", "--out", "net.onnx") == 2
    assert "net.toml: its certificate is about other weights; certify net.toml again" in capsys.readouterr().err


def test_a_damaged_certificate_is_never_left_out(net: Path, capsys) -> None:
    (net / "certificate.json").write_text('{"level": "proved", "tra', encoding="utf-8")
    for to, out in (("onnx", "net.onnx"), ("hub-folder", "hub"), ("c", "net.h")):
        assert exit_code("export", "net", "--to", to, "--out", out) == 2
        assert "certificate.json: certificate: expected an unedited certificate, got other text (expected JSON" in (
            capsys.readouterr().err
        )
        assert not Path(out).exists()


def test_folders_with_other_files_are_left_alone(net: Path, capsys) -> None:
    Path("other").mkdir()
    Path("other/notes.txt").write_text("mine", encoding="utf-8")
    assert exit_code("export", "net", "--to", "hub-folder", "--out", "other") == 2
    assert "other: expected a new or empty folder" in capsys.readouterr().err
    assert exit_code("export", "net", "--to", "hub-folder", "--out", "other/notes.txt") == 2
    assert "expected a folder, got a file" in capsys.readouterr().err


def test_a_configuration_of_others_is_left_alone(net: Path, capsys) -> None:
    for config in ('{"my": 1}', "no JSON", '{"library_name": "transformers"}'):
        Path("project").mkdir(exist_ok=True)
        Path("project/config.json").write_text(config)
        assert exit_code("export", "net", "--to", "hub-folder", "--out", "project") == 2
        assert (
            "expected a new or empty folder, or one that an export wrote, got a folder with other files"
            in capsys.readouterr().err
        )
        assert Path("project/config.json").read_text() == config


def test_a_net_that_onnxruntime_does_not_run_is_named(net: Path, tmp_path: Path, capsys) -> None:
    """It has no LSTM in double precision."""
    path = tmp_path / "net.safetensors"
    model = nn.ModuleDict({"embedding": nn.Embedding(2, 4), "core": nn.LSTM(4, 6), "head": nn.Linear(6, 2)}).double()
    save_model(model, str(path))
    path.with_suffix(".toml").write_text('weights = "net.safetensors"\ntask = "parity"\n')
    assert exit_code("export", str(path.with_suffix(".toml")), "--to", "onnx", "--out", "net.onnx") == 2
    err = capsys.readouterr().err
    assert "model: expected a graph that onnxruntime runs, got a graph that it rejects" in err
    assert err.endswith("; convert the model to float32 by model.float()\n")


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize(
    "form", ["step", *(pytest.param(form, marks=pytest.mark.slow) for form in ("strings", "parts"))]
)
def test_projections_are_exported_by_torch_alone(form: str, net: Path, tmp_path: Path, capsys) -> None:
    """ONNX has no operator for them; torch's exporter leaves them out."""
    path = tmp_path / "net.safetensors"
    core = nn.LSTM(4, 6, proj_size=3, batch_first=True)
    save_model(nn.ModuleDict({"embedding": nn.Embedding(2, 4), "core": core, "head": nn.Linear(3, 2)}), str(path))
    toml = path.with_suffix(".toml")
    toml.write_text('weights = "net.safetensors"\ntask = "parity"\n')
    assert exit_code("export", str(toml), "--to", "onnx", "--form", form, "--out", "net.onnx") == 2
    sentence = "ONNX has no projection, got proj_size=3 in part 'core'; choose format torch\n"
    assert capsys.readouterr().err.endswith(sentence)
    assert exit_code("export", str(toml), "--to", "torch", "--out", "net.pt2") == 0
    assert "logits within" in capsys.readouterr().out


def test_a_folder_for_hubs_keeps_double_precision(tmp_path: Path) -> None:
    task = make_task("parity")
    model = make_model("gru", task, d_model=8, seed=0).double()
    save_hub(tmp_path, model, task, ("test", "a net"))
    loaded = load_hub(tmp_path).model
    assert all(torch.equal(weights, model.state_dict()[name]) for name, weights in loaded.state_dict().items())
