"""What earlier versions wrote is converted whole, once, and to what holds today.

``format_1.jsonl.gz`` has results as version 6fff3f2 wrote them, one of each kind of certificate and one of settings
that have other names now; of curves, probes and maps only the first points were kept.
"""

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lengthwise.certification.certificate import Certificate
from lengthwise.certification.verify import check
from lengthwise.files import write_json
from lengthwise.presets.base import UNAUGMENTED
from lengthwise.runs.convert import convert, convert_result, convert_spec, main
from lengthwise.runs.folder import RunFolder, RunResult, load_run
from lengthwise.runs.records import read_records
from lengthwise.runs.spec import make_spec, spec_from_json
from lengthwise.training.checkpoint import save_checkpoint
from lengthwise.training.loop import TrainingState

OLD = Path(__file__).parent / "format_1.jsonl.gz"
RECORDS = sorted((Path(__file__).parents[2] / "docs" / "results" / "records").glob("*.jsonl.gz"))


def old_results() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(OLD.read_bytes()).splitlines()]


def old_result(model: str, level: str | None) -> dict[str, Any]:
    return next(
        result
        for result in old_results()
        if result["spec"]["model"]["name"] == model and (result["certificate"] or {"level": None})["level"] == level
    )


@pytest.mark.parametrize(
    ("model", "old_level", "level", "method"),
    [
        ("regular-gpt", "robust", "proved", "enclosures"),
        ("codebook-gpt", "robust", "proved", "codes"),
        ("block-linear-rnn", "robust", "proved", "states"),
        ("regular-gpt", "finite", "extracted", None),
        ("regular-gpt", "refuted", "refuted", None),
        ("regular-gpt", "tested", "tested", None),
    ],
)
def test_certificates_say_the_same_in_other_words(model: str, old_level: str, level: str, method: str | None) -> None:
    old = old_result(model, old_level)
    untouched = copy.deepcopy(old)
    certificate = RunResult(**convert_result(old)).certificate
    assert old == untouched
    assert certificate is not None
    assert certificate.level == level
    assert (certificate.evidence and certificate.evidence.method) == method
    assert certificate.machine == old["certificate"]["machine"]
    before = old["certificate"]
    nodes = [part["num_nodes"] for part in before["followed"]]
    assert [agreement.num_nodes for agreement in certificate.trace_agreement] == nodes
    if certificate.evidence is not None:
        numbers = (before["boxes"] or before["codes"]).values()
        assert set(numbers) == set(certificate.evidence.model_dump(exclude={"method"}).values())
    check(certificate)


def test_reasons_are_in_the_words_of_today() -> None:
    reasons = [convert_result(result)["certificate"]["reason"] for result in old_results() if result["certificate"]]
    assert (
        "no enclosures were found that the model maps into one another, with a logit margin (extraction: expected no "
        "more than 748 merges in 4 rounds, got 1,760)"
    ) in reasons
    assert not any(word in reason for reason in reasons for word in ("boxes", "wanted", "representative"))


@pytest.mark.parametrize(
    ("model", "level", "field", "value"),
    [("codebook-gpt", "robust", "quantize_after", 0.9), ("looped-transformer", None, "initialization", "torch")],
)
def test_ids_are_those_of_the_converted_settings(model: str, level: str | None, field: str, value: object) -> None:
    old = old_result(model, level)
    new = convert_result(old)
    assert new["spec"]["model"][field] == value
    assert new["run_id"] == spec_from_json(new["spec"]).id != old["run_id"]


def test_other_ids_stay() -> None:
    for result in old_results():
        if result["spec"]["model"]["name"] in ("regular-gpt", "block-linear-rnn"):
            assert convert_result(result)["run_id"] == result["run_id"]


@pytest.mark.parametrize("path", [OLD, *RECORDS], ids=lambda path: path.name)
@pytest.mark.sampled(4)
def test_records_are_converted_once(path: Path, tmp_path: Path) -> None:
    copied = tmp_path / path.name
    copied.write_bytes(path.read_bytes())
    if path == OLD:
        assert convert(copied) == [copied]
    content = copied.read_bytes()
    for result in read_records(copied):
        if result.certificate is not None:
            check(result.certificate)
    assert convert(copied) == []
    assert copied.read_bytes() == content


def test_a_run_folder_is_converted_with_its_checkpoint_and_name(tmp_path: Path) -> None:
    old = old_result("codebook-gpt", "robust")
    folder = tmp_path / "runs" / old["run_id"]
    folder.mkdir(parents=True)
    write_json(folder / "run.json", {"id": old["run_id"], "spec": old["spec"], "versions": {}})
    write_json(folder / "result.json", old)
    write_json(folder / "certificate.json", old["certificate"])
    spec = spec_from_json(convert_result(old)["spec"])
    save_checkpoint(TrainingState(spec.make_model(), spec.recipe), folder / "checkpoint.safetensors", old["run_id"])
    with pytest.raises(ValueError, match=r"expected format 2, got format 1.*python -m lengthwise.runs.convert"):
        Certificate.read(folder / "certificate.json")
    assert convert(tmp_path)
    (converted,) = (tmp_path / "runs").iterdir()
    assert converted.name == spec.id
    result = RunFolder(converted).read_result()
    assert result is not None
    assert result.certificate == Certificate.read(converted / "certificate.json")
    assert load_run(converted).spec == spec
    assert convert(tmp_path) == []


def test_what_cannot_be_converted_is_named(tmp_path: Path, capsys) -> None:
    assert main([str(tmp_path / "none.json")]) == 2
    assert "there is no such file or folder" in capsys.readouterr().err
    for name, content in (("records.jsonl.gz", b"no"), ("certificate.json", b"{}"), ("list.json", b"[]")):
        (tmp_path / name).write_bytes(content)
        assert main([str(tmp_path / name)]) == 2
        assert "damaged file" in capsys.readouterr().err
    (tmp_path / "run").mkdir()
    write_json(tmp_path / "run" / "run.json", {})
    assert main([str(tmp_path / "run")]) == 2
    assert "damaged file (KeyError)" in capsys.readouterr().err
    assert main([]) == 0


def test_a_folder_of_the_present_id_is_not_overwritten(tmp_path: Path) -> None:
    old = old_result("codebook-gpt", "robust")
    folder, now = tmp_path / old["run_id"], spec_from_json(convert_result(old)["spec"]).id
    for path in (folder, tmp_path / now):
        path.mkdir()
    write_json(folder / "run.json", {"id": old["run_id"], "spec": old["spec"], "versions": {}})
    with pytest.raises(ValueError, match=f"expected no other run of its present id, got {now} next to it; remove one"):
        convert(folder)


def test_the_command_says_what_it_converted(tmp_path: Path, capsys) -> None:
    copied = tmp_path / OLD.name
    copied.write_bytes(OLD.read_bytes())
    assert main([str(copied)]) == 0
    assert capsys.readouterr().out == f"converted {copied}\n"
    assert main([str(copied)]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("model", "ran"), [("gru", "adamw"), ("regular-gpt", "muon")])
def test_a_specification_names_the_optimizer_that_ran(model: str, ran: str) -> None:
    """AdamW used to take the place of Muon where a model names no hidden matrices."""
    train = {"train": {"optimizer": {"name": ran}, **UNAUGMENTED}}
    honest = make_spec("parity", model, train).to_json()
    recorded = copy.deepcopy(honest)
    recorded["train"]["optimizer"]["name"] = "muon"
    assert convert_spec(recorded) == convert_spec(honest) == honest
