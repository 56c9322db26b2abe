"""Certificates as files: what was changed, by accident or with care, is named in one sentence, and never believed."""

import copy
import json
import random
import subprocess
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from planted import LabelsChange
from table_model import table_model, with_separate_leaves

from lengthwise.automata.tree_machine import tree_machine
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.cli.app import main
from lengthwise.tasks import make_task

Content = dict[str, Any]


@pytest.fixture(scope="module")
def contents() -> dict[str, Content]:
    """A certificate of each level, as its file says it; the boxes of the one that is proved are made up."""
    task = make_task("parity")
    model = table_model(with_separate_leaves(tree_machine(task.transducer)))
    extracted = json.loads(certify(model, task).to_text())
    made = {
        "extracted": extracted,
        "refuted": json.loads(certify(LabelsChange(model, 5), task).to_text()),
        "proved": extracted
        | {"level": "proved", "enclosures": {"num_prototypes": 5, "enclosure_radius": 0.1, "margin": 2.0}},
        "tested": extracted | {"level": "tested"},
    }
    assert {name: content["level"] for name, content in made.items()} == {name: name for name in made}
    return made


def text_of(content: Content) -> str:
    """The file of an edited certificate, by someone who knows how its digest is made."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    digest = blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=8).hexdigest()
    return json.dumps(rest | {"digest": digest})


def verdict(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    """Exit code of `lengthwise certify --check`, and what it says."""
    with pytest.raises(SystemExit) as stopped:
        main(["certify", "--check", str(path), *more])
    said = capsys.readouterr()
    code = int(stopped.value.code or 0)
    if code == 2:
        assert not said.out
        assert said.err.startswith("lengthwise: ")
        assert len(said.err.splitlines()) == 1, said.err
    return code, said.out + said.err


@pytest.mark.parametrize("level", ["refuted", "tested", "extracted", "proved"])
def test_whole_ones_are_verified(level: str, contents, tmp_path: Path, capsys) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(text_of(contents[level]))
    code, said = verdict(path, capsys)
    assert code == 0
    assert said.startswith(f"{level}: ")
    levels = ["refuted", "tested", "extracted", "proved"]
    for minimum in levels:
        expected = 0 if levels.index(level) >= levels.index(minimum) else 1
        assert verdict(path, capsys, "--at-least", minimum)[0] == expected
    code, said = verdict(path, capsys, "--at-least", "extrated")
    assert code == 2
    assert "did you mean 'extracted'?" in said


def test_a_flipped_bit_changes_nothing_or_is_named(contents, tmp_path: Path, capsys) -> None:
    whole = Certificate.from_text(text_of(contents["extracted"]))
    data, chance, path = whole.to_text().encode(), random.Random(0), tmp_path / "certificate.json"
    refused = 0
    for _ in range(200):
        changed = bytearray(data)
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        code, _ = verdict(path, capsys)
        refused += code == 2
        if code == 0:  # white space
            assert Certificate.read(path) == whole
    assert refused > 100


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.99])
def test_files_cut_short_are_named(kept: float, contents, tmp_path: Path, capsys) -> None:
    path, data = tmp_path / "certificate.json", text_of(contents["extracted"])
    path.write_text(data[: int(kept * len(data))])
    code, said = verdict(path, capsys)
    assert code == 2
    assert "expected JSON" in said


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[" * 200_000, "expected JSON"),
        ("9" * 100_000, "expected JSON"),
        ("[1, 2]", "expected a JSON object"),
        ("null", "expected a JSON object"),
        ("{}", "its contents have changed"),
        (text_of({}), "level: Field required"),
        (text_of({"level": "certain"}), "level: Input should be"),
    ],
)
def test_what_is_no_certificate_is_refused(text: str, sentence: str, tmp_path: Path, capsys) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(text)
    code, said = verdict(path, capsys)
    assert code == 2
    assert sentence in said


def test_missing_files_folders_and_other_encodings_are_named(tmp_path: Path, capsys) -> None:
    assert "there is no such file" in verdict(tmp_path / "none.json", capsys)[1]
    assert "cannot be read" in verdict(tmp_path, capsys)[1]
    (tmp_path / "latin.json").write_bytes("{'é'}".encode("latin-1"))
    assert "cannot be read" in verdict(tmp_path / "latin.json", capsys)[1]


def set_to(value: object, *index: str | int) -> Callable[[Content], None]:
    def edit(content: Content) -> None:
        inner: Any = content
        for step in index[:-1]:
            inner = inner[step]
        inner[index[-1]] = value

    return edit


def left_out(*index: str | int) -> Callable[[Content], None]:
    def edit(content: Content) -> None:
        inner: Any = content
        for step in index[:-1]:
            inner = inner[step]
        del inner[index[-1]]

    return edit


def other_answers(content: Content) -> None:
    content["machine"]["outputs"] = [1 - answer for answer in content["machine"]["outputs"]]


def one_entry_less(content: Content) -> None:
    content["machine"]["table"].pop()


def one_entry_twice(content: Content) -> None:
    first = content["machine"]["table"][0]
    content["machine"]["table"].append([*first[:-1], 1 - min(first[-1], 1)])


def the_transducer_as_machine(content: Content) -> None:
    content["machine"] = content["transducer"]


def with_codes(margin: float = 1.0, slack: float | None = 1.0, num_merges: int = 8) -> Callable[[Content], None]:
    """Merges of codes in place of boxes."""

    def edit(content: Content) -> None:
        content["enclosures"] = None
        content["codes"] = {"num_codes": 2, "num_merges": num_merges, "margin": margin, "slack": slack}

    return edit


NAN, HUGE = float("nan"), 10**30
PROOF_REQUIRED = "wants a tree machine and boxes with a positive margin, one for each representative, or merges"
EDITS = [
    ("extracted", other_answers, "its machine and its transducer answer"),
    ("extracted", one_entry_less, "table: has no entry for the classes"),
    ("extracted", set_to(["b", "a"], "machine", "symbols"), "expected one over the symbols"),
    ("extracted", set_to([0, 0], "transducer", "outputs"), "its machine and its transducer answer"),
    ("extracted", set_to([7, 8], "transducer", "outputs"), "answers that have no name"),
    ("extracted", set_to([0, -7], "transducer", "outputs"), "answers that have no name"),
    ("extracted", set_to(None, "machine"), "wants a machine, got none"),
    ("extracted", set_to([], "followed"), "wants 1,000 strings of 40 symbols"),
    ("extracted", left_out("followed", 2), "wants 1,000 strings of 10,000 symbols"),
    ("extracted", set_to(999, "followed", 1, "num_strings"), "wants 1,000 strings of 500 symbols"),
    ("extracted", set_to(1, "followed", 0, "num_disagreements"), "with every state in its class"),
    ("extracted", set_to(3, "tested", 0, "num_correct"), "wants no wrong answer"),
    ("extracted", set_to("proved", "level"), PROOF_REQUIRED),
    ("extracted", set_to("refuted", "level"), "wants a counterexample, got none"),
    ("proved", set_to(None, "enclosures"), PROOF_REQUIRED),
    ("proved", set_to(0.0, "enclosures", "margin"), PROOF_REQUIRED),
    ("proved", set_to(NAN, "enclosures", "margin"), "enclosures.margin: Input should be a finite number"),
    ("proved", with_codes(margin=0.0), PROOF_REQUIRED),
    ("proved", with_codes(slack=0.0), PROOF_REQUIRED),
    ("proved", with_codes(slack=NAN), "codes.slack: Input should be a finite number"),
    ("proved", other_answers, "its machine and its transducer answer"),
    ("refuted", set_to("tested", "level"), "wants no counterexample"),
    ("refuted", set_to("extracted", "level"), "wants"),
    ("refuted", set_to(None, "counterexample"), "wants a counterexample, got none"),
    ("refuted", set_to([], "counterexample", "string"), "is no string over the task's symbols"),
    ("refuted", set_to(["a", "c"], "counterexample", "string"), "is no string over the task's symbols"),
    ("refuted", set_to(["a"] * 4 + ["b"], "counterexample", "string"), "does not answer its counterexample with"),
    ("refuted", set_to("0", "counterexample", "got"), "'0' is no wrong answer to its counterexample"),
    ("refuted", set_to("maybe", "counterexample", "got"), "'maybe' is no wrong answer to its counterexample"),
    ("refuted", set_to([-100, -100], "transducer", "outputs"), "asks nothing of any string"),
    ("refuted", set_to("of the machine", "counterexample", "shortest"), "is no shortest one of its machine"),
    ("extracted", set_to([-100, -100], "transducer", "outputs"), "asks nothing of any string"),
    ("extracted", set_to(None, "closure"), "wants a closure, got none"),
    ("extracted", set_to([], "tested"), "wants answers to strings of 40 symbols, got none"),
    ("extracted", left_out("tested", 1), "wants answers to strings of 500 symbols, got none"),
    ("extracted", set_to(0, "followed", 0, "num_nodes"), "wants 1,000 strings of 40 symbols"),
    ("extracted", set_to(1_000_000, "followed", 2, "num_nodes"), "wants 1,000 strings of 10,000 symbols"),
    ("extracted", set_to(3, "model", "chunk_size"), "expected a machine with chunks of 3, as its model has, got 2"),
    ("extracted", one_entry_twice, "table: expected one entry for a window, got several"),
    ("proved", set_to(-1.0, "enclosures", "enclosure_radius"), PROOF_REQUIRED),
    ("proved", set_to(4, "enclosures", "num_prototypes"), PROOF_REQUIRED),
    ("proved", the_transducer_as_machine, PROOF_REQUIRED),
    ("proved", with_codes(slack=None), PROOF_REQUIRED),
    ("proved", with_codes(num_merges=0), PROOF_REQUIRED),
    ("extracted", left_out("transducer"), "transducer: Field required"),
    ("extracted", left_out("transducer", "start"), "transducer.start: Field required"),
    ("extracted", left_out("machine", "chunk_size"), "machine."),
    ("extracted", left_out("machine", "outputs"), "machine."),
    ("extracted", set_to("ab", "transducer", "symbols"), "transducer.symbols: Input should be a valid list"),
    ("extracted", set_to([1, 2], "transducer", "symbols"), "transducer.symbols.0: Input should be a valid string"),
    ("extracted", set_to("0", "transducer", "start"), "transducer.start: Input should be a valid integer"),
    ("extracted", set_to(0.5, "transducer", "start"), "transducer.start: Input should be a valid integer"),
    ("extracted", set_to(2, "transducer", "start"), "start: expected a state in 0..1, got 2"),
    ("extracted", set_to([[0, 1]], "transducer", "table"), "table: expected next states in 0..0"),
    ("extracted", set_to([[0, 1], [1]], "transducer", "table"), "table: expected one row or more, each of 2 numbers"),
    ("extracted", set_to([], "transducer", "table"), "table: expected one row or more"),
    ("extracted", set_to([[0, HUGE], [1, 0]], "transducer", "table"), "less than 2147483648"),
    ("extracted", set_to([[0, 0]], "machine", "table"), "table: expected one row or more, each of 3 numbers"),
    ("extracted", set_to([[0, 0, HUGE]], "machine", "table"), "machine."),
    ("extracted", set_to([[0, 0, -1]], "machine", "table"), "table: expected classes in"),
    ("extracted", set_to(True, "machine", "chunk_size"), "machine."),
    ("extracted", set_to(40, "machine", "chunk_size"), "table: expected one row or more, each of 41 numbers"),
    ("extracted", set_to([0] * 100_000, "machine", "outputs"), "expected a table of at most 20,000,000 entries"),
    ("extracted", set_to([0, 1], "machine"), "machine"),
    ("extracted", set_to({}, "machine"), "machine."),
    (
        "extracted",
        set_to(-1, "tested", 0, "num_graded"),
        "tested.0.num_graded: Input should be greater than or equal to 0",
    ),
    ("extracted", set_to(HUGE, "followed", 0, "num_nodes"), "followed.0.num_nodes: Input should be less than"),
    ("extracted", set_to(NAN, "followed", 0, "farthest"), "followed.0.farthest: Input should be a finite number"),
    ("extracted", set_to("many", "tested", 0, "num_strings"), "tested.0.num_strings: Input should be a valid integer"),
    ("extracted", set_to(2, "format"), "format: Input should be 1"),
    ("extracted", set_to("yes", "signed"), "signed: Extra inputs are not permitted"),
]


@pytest.mark.parametrize(("level", "edit", "sentence"), EDITS)
def test_edits_are_refused_whatever_the_digest(
    level: str, edit: Callable[[Content], None], sentence: str, contents, tmp_path: Path, capsys
) -> None:
    path = tmp_path / "certificate.json"
    content = copy.deepcopy(contents[level])
    edit(content)
    path.write_text(text_of(content))
    code, said = verdict(path, capsys)
    assert code == 2
    assert sentence in said
    path.write_text(json.dumps(content | {"digest": contents["extracted"]["digest"]}))
    code, said = verdict(path, capsys)
    assert code == 2
    assert "it was edited" in said


def test_merges_of_codes_are_proved_as_boxes_are(contents, tmp_path: Path, capsys) -> None:
    path, content = tmp_path / "certificate.json", copy.deepcopy(contents["proved"])
    with_codes()(content)
    path.write_text(text_of(content))
    code, said = verdict(path, capsys)
    assert code == 0
    assert "merges codes as the machine says" in said


def test_a_transducer_in_place_of_the_machine_is_compared_too(contents, tmp_path: Path, capsys) -> None:
    path, content = tmp_path / "certificate.json", copy.deepcopy(contents["extracted"])
    content["machine"] = content["transducer"]
    path.write_text(text_of(content))
    assert verdict(path, capsys)[0] == 0
    content["machine"] = content["transducer"] | {"outputs": [1, 0]}
    path.write_text(text_of(content))
    code, said = verdict(path, capsys)
    assert code == 2
    assert "answer 'a' (1 symbols) differently" in said


@pytest.mark.parametrize(("edited", "code"), [(False, 0), (True, 2)])
def test_checking_needs_no_torch(edited: bool, code: int, contents, tmp_path: Path) -> None:
    path, content = tmp_path / "certificate.json", copy.deepcopy(contents["extracted"])
    if edited:
        other_answers(content)
    path.write_text(text_of(content))
    program = "import sys; sys.modules['torch'] = None; from lengthwise.cli.app import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "certify", "--check", str(path), "--at-least", "extracted"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert len((done.stderr if edited else done.stdout).splitlines()) == (1 if edited else 4)
