"""Every model comes back from a folder for hubs as it was, by the export of the command and by its inverse."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from lengthwise.certification.certificate import CERTIFICATE
from lengthwise.certification.certify import certify
from lengthwise.constructions import construct
from lengthwise.export.base import export
from lengthwise.files import read_json, write_json
from lengthwise.models import MODELS, SequenceModel, make_model
from lengthwise.models.wrapped_module import wrap_module
from lengthwise.runs.hub import CONFIG, WEIGHTS, load_hub, save_hub
from lengthwise.tasks import make_task

TASK = make_task("cycle-navigation")
SMALL = {"d_model": 8, "d_state": 6, "hidden": 8, "num_heads": 2, "block_dim": 4}

pytestmark = pytest.mark.unchecked


def make(name: str) -> SequenceModel:
    kind = MODELS[name].Config
    return make_model(name, TASK, seed=0, **{key: size for key, size in SMALL.items() if kind.uses(key, {})})


@pytest.mark.parametrize("name", list(MODELS))
def test_a_model_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    model, inputs = make(name).eval(), torch.randint(3, (2, 7), generator=torch.Generator().manual_seed(1))
    save_hub(tmp_path / "first", model, TASK, ("test", name))
    export(tmp_path / "first", "hub-folder", tmp_path / "second")
    loaded = load_hub(tmp_path / "second")
    assert type(loaded.model) is type(model)
    assert (loaded.model.config, loaded.task, loaded.certificate) == (model.config, TASK, None)
    assert not loaded.model.training
    weights = model.state_dict()
    assert list(loaded.model.state_dict()) == list(weights)
    assert all(torch.equal(tensor, weights[key]) for key, tensor in loaded.model.state_dict().items())
    with torch.no_grad():
        assert torch.equal(loaded.model(inputs), model(inputs))


def test_only_models_that_can_be_read_back_are_saved(tmp_path: Path) -> None:
    model, mixed, other = make("gru"), make("gru"), make_task("parity")
    mixed.get_submodule("readout").double()
    for wrong, task, sentence in (
        (model, other, r"model: expected a model that can be read back, got gru for parity \("),
        (mixed, TASK, r"got gru for .* \(its weights have several number types\); save"),
        (wrap_module(model, num_classes=5, num_symbols=3), TASK, r"model: expected a registered model or a net from"),
    ):
        with pytest.raises(ValueError, match=sentence):
            save_hub(tmp_path / "new", wrong, task)
    assert not (tmp_path / "new").exists()
    (tmp_path / CONFIG).write_text("{}")
    with pytest.raises(ValueError, match=r"folder: expected a folder without a config.json of another library, got "):
        save_hub(tmp_path, model, TASK)
    with pytest.raises(ValueError, match="folder: expected a folder, got the file "):
        save_hub(tmp_path / CONFIG, model, TASK)
    with pytest.raises(OSError, match=r"^/dev/fd/nope: cannot be written: "):
        save_hub("/dev/fd/nope", model, TASK)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_hub(tmp_path, make_model("gru", TASK, d_model=4), TASK, ("test", "a net"))
    return tmp_path


def change(folder: Path, *path: str, value: object) -> None:
    """Set an entry of the configuration, with the digest that such a file needs."""
    content = entry = read_json(folder / CONFIG, "")
    for key in path[:-1]:
        entry = entry[key]
    entry[path[-1]] = value
    write_json(folder / CONFIG, content)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("surprise",), 1, "surprise: no such setting"),
        (("model", "surprise"), 1, "model.surprise: no such setting"),
        (("task", "surprise"), 1, "surprise: no such setting"),
        (("model", "d_model"), 5, "expected the weights of .*config.json, got other weights"),
        (("task", "name"), "no-such-task", "unknown task"),
        (("model", "name"), "no-such-model", "unknown model"),
        (("library_name",), "transformers", "expected a model of lengthwise, got a model of transformers"),
        (("weights",), "0" * 32, "damaged file"),
    ],
)
def test_a_configuration_is_read_strictly(folder: Path, path: tuple[str, ...], value: object, sentence: str) -> None:
    change(folder, *path, value=value)
    with pytest.raises((ValueError, LookupError), match=sentence):
        load_hub(folder)


def test_weights_are_read_strictly(folder: Path) -> None:
    weights = load_file(folder / WEIGHTS)
    first, *_, last = weights
    for changed, sentence in (
        (weights | {"other": torch.zeros(1)}, "got other weights"),
        ({name: tensor for name, tensor in weights.items() if name != last}, "got other weights"),
        (weights | {last: torch.zeros(3, 3, 3)}, "got other weights"),
        (weights | {last: weights[last].double()}, "expected torch.float(32|64) for .*, got torch.float(64|32)"),
        ({name: tensor.double() for name, tensor in weights.items()}, "damaged file"),
        (weights | {first: weights[first] + 1}, "damaged file"),
    ):
        save_file(changed, folder / WEIGHTS)
        with pytest.raises(ValueError, match=sentence):
            load_hub(folder)
    (folder / WEIGHTS).unlink()
    with pytest.raises(ValueError, match=f"expected a folder with {WEIGHTS}, found no {WEIGHTS}"):
        load_hub(folder)
    (folder / CONFIG).unlink()
    with pytest.raises(ValueError, match=f"expected a folder with {CONFIG}, found no {CONFIG}"):
        load_hub(folder)


@pytest.mark.usefixtures("fewer_strings")
def test_the_certificate_comes_with_the_model_that_it_is_about(tmp_path: Path) -> None:
    compiled = construct("block-linear-rnn", make_task("parity"))
    certificate = certify(compiled.model, compiled.task)
    save_hub(tmp_path, compiled.model, compiled.task, ("test", "a net"))
    (tmp_path / CERTIFICATE).write_text(certificate.to_text(), encoding="utf-8")
    assert load_hub(str(tmp_path)).certificate == certificate
    save_hub(tmp_path, make_model("gru", compiled.task, d_model=4), compiled.task, ("test", "another"))
    with pytest.raises(ValueError, match="expected a certificate about this model, got a difference in weights"):
        load_hub(tmp_path)
    (tmp_path / CERTIFICATE).write_text(json.dumps({"level": "proved"}), encoding="utf-8")
    with pytest.raises(ValueError, match="certificate"):
        load_hub(tmp_path)


def test_links_and_additional_files_are_accepted(folder: Path, tmp_path_factory) -> None:
    """Caches of downloads have links, and folders of hubs have pickles of other libraries, which are never opened."""
    cache = tmp_path_factory.mktemp("cache")
    for name in (CONFIG, WEIGHTS):
        (cache / name).symlink_to(folder / name)
    (cache / "pytorch_model.bin").write_bytes(b"\x80\x04no pickle")
    assert load_hub(cache).model.name == "gru"
