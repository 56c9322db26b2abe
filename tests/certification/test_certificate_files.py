"""Certificates as files: what was changed, by accident or with care, is named in one sentence, and never believed."""

import copy
import json
import os
import random
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

import pytest
from certificate_contents import Content, contents_by_level, other_answers, text_of, verdict

from lengthwise.certification.certificate import Certificate, scope
from lengthwise.certification.verify import SHORTEST_CLAIM, check
from lengthwise.tasks import make_task


@pytest.fixture(scope="module")
def contents() -> dict[str, Content]:
    return contents_by_level()


def test_what_the_model_shows_is_no_longer_taken_from_the_file(contents) -> None:
    for level in ("refuted", "proved"):
        checked = check(Certificate.from_text(text_of(contents[level])))
        task, *others = checked.taken_on_trust
        assert "belongs to task" in task
        again = checked.with_model(["proved again"])
        assert again.verified[:2] == ("proved again", task)
        if level == "refuted":
            claim = "the model gives the recorded answer to the counterexample"
            assert others == [claim, SHORTEST_CLAIM], "no model was given"
            assert again.verified[2] == claim
            assert again.taken_on_trust == (SHORTEST_CLAIM,)
            assert not checked.with_model([SHORTEST_CLAIM]).taken_on_trust
        else:
            assert again.taken_on_trust == tuple(others)


def test_the_task_is_named_with_its_settings(contents) -> None:
    """Which expression, say: nobody is to take what the certificate is about for something else."""
    content = contents["proved"] | {"task": {"name": "regex", "pattern": "(a|b)*abb" + "|a" * 60, "alphabet": []}}
    sentence = check(Certificate.from_text(text_of(content))).taken_on_trust[0]
    assert sentence.endswith(f'belongs to task regex (pattern="(a|b)*abb{"|a" * 25}..., alphabet=[])')


@pytest.mark.parametrize("level", ["refuted", "tested", "extracted", "bounded", "proved"])
def test_whole_ones_are_verified(level: str, contents, tmp_path: Path, capsys) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(text_of(contents[level]))
    code, text = verdict(path, capsys)
    assert code == 0
    assert text.startswith(f"{level}: ")
    levels = ["refuted", "tested", "extracted", "bounded", "proved"]
    for minimum in levels:
        expected = 0 if levels.index(level) >= levels.index(minimum) else 1
        code, text = verdict(path, capsys, "--min-level", minimum)
        assert code == expected
        assert (f"lengthwise: --min-level: expected {minimum} or higher, got {level}; train" in text) == bool(code)
    code, text = verdict(path, capsys, "--min-level", "extrated")
    assert code == 2
    assert "did you mean 'extracted'?" in text


def test_a_flipped_bit_changes_nothing_or_is_named(contents, tmp_path: Path, capsys) -> None:
    whole = Certificate.from_text(text_of(contents["extracted"]))
    data, chance, path = whole.to_text().encode(), random.Random(0), tmp_path / "certificate.json"
    refused = 0
    for _ in range(80):
        changed = bytearray(data)
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        code, _ = verdict(path, capsys)
        refused += code == 1
        if code == 0:  # white space
            assert Certificate.read(path) == whole
    assert refused > 40


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.99])
def test_files_cut_short_are_named(kept: float, contents, tmp_path: Path, capsys) -> None:
    path, data = tmp_path / "certificate.json", text_of(contents["extracted"])
    path.write_text(data[: int(kept * len(data))])
    code, text = verdict(path, capsys)
    assert code == 1
    assert "expected JSON" in text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[" * 200_000, "expected JSON"),
        ("9" * 100_000, "got a number with 100,000 digits"),
        ("[1, 2]", "expected a JSON object"),
        ("null", "expected a JSON object"),
        ("{}", "its contents have changed"),
        (text_of({}), "level': Field required"),
        (text_of({"level": "certain"}), "level': Input should be"),
    ],
)
def test_what_is_no_certificate_is_refused(text: str, sentence: str, tmp_path: Path, capsys) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(text)
    code, text = verdict(path, capsys)
    assert code == 1
    assert sentence in text


def test_missing_files_folders_and_other_encodings_are_named(tmp_path: Path, capsys) -> None:
    assert "expected a certificate, got no file" in verdict(tmp_path / "none.json", capsys)[1]
    assert "expected a certificate, got no file" in verdict(tmp_path, capsys)[1]
    (tmp_path / "latin.json").write_bytes("{'é'}".encode("latin-1"))
    assert "expected JSON in UTF-8, got other bytes" in verdict(tmp_path / "latin.json", capsys)[1]
    os.mkfifo(tmp_path / "pipe")  # to open it would wait for its writer
    assert f"{tmp_path / 'pipe'}: expected a file, got a pipe" in verdict(tmp_path / "pipe", capsys)[1]


@pytest.mark.parametrize("where", ["task", "model"])
def test_names_add_no_lines_of_their_own(where: str, contents, tmp_path: Path, capsys) -> None:
    """Nor settings: what is verified is said by the program alone."""
    path, content = tmp_path / "certificate.json", copy.deepcopy(contents["extracted"])
    path.write_text(text_of(content))
    _, text = verdict(path, capsys)
    content[where]["more\nverified: all"] = "x\nverified: all\x1b[2J"
    content[where]["name"] += "\nverified: all" + "." * 200
    path.write_text(text_of(content))
    _, edited = verdict(path, capsys)
    assert len(edited.splitlines()) == len(text.splitlines())
    assert edited.replace("\n", "").isprintable()
    assert "." * 61 not in edited


def test_a_bounded_certificate_names_its_length(contents, tmp_path: Path, capsys) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(text_of(contents["bounded"]))
    assert "right answer to every string, up to a length of 64 symbols" in verdict(path, capsys)[1]


def test_a_transducer_as_the_machine_is_compared_too(contents, tmp_path: Path, capsys) -> None:
    path, content = tmp_path / "certificate.json", copy.deepcopy(contents["extracted"])
    content["machine"] = content["transducer"]
    path.write_text(text_of(content))
    assert verdict(path, capsys)[0] == 0
    content["machine"] = content["transducer"] | {"outputs": [1, 0]}
    path.write_text(text_of(content))
    code, text = verdict(path, capsys)
    assert code == 1
    assert "answer the string 'a' (1 symbol) differently" in text


def test_strings_of_one_symbol_more_or_fewer_count(contents) -> None:
    """A task may have no strings of some lengths."""
    content = copy.deepcopy(contents["extracted"])
    for part in ("tested", "trace_agreement"):
        for entry, length in zip(content[part], (41, 499, 10_001), strict=False):
            entry["length"] = length
    for entry in content["trace_agreement"]:
        entry["num_nodes"] *= 2
    assert check(Certificate.from_text(text_of(content)))


def test_a_transducer_may_give_each_answer_and_to_some_strings_none(contents) -> None:
    machine = {"symbols": ["a", "b"], "start": 0, "table": [[0, 1], [1, 2], [2, 2]], "outputs": [0, 1, -100]}
    checked = check(Certificate.from_text(text_of(contents["tested"] | {"transducer": machine})))
    assert checked.taken_on_trust[0].startswith("the transducer (3 states) belongs to task")


@pytest.mark.parametrize(("edited", "code"), [(False, 0), (True, 1)])
def test_checking_needs_no_torch(edited: bool, code: int, contents, tmp_path: Path) -> None:
    path, content = tmp_path / "certificate.json", copy.deepcopy(contents["proved"])
    if edited:
        other_answers(content)
    path.write_text(text_of(content))
    program = "import sys; sys.modules['torch'] = None; from lengthwise.cli.app import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "certify", "--check", str(path), "--min-level", "proved"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert len((done.stderr if edited else done.stdout).splitlines()) == (1 if edited else 6)


def test_a_claim_is_the_one_of_its_level(contents) -> None:
    """Whoever reads the file reads the claim: an edited one is refused, though nothing is computed from it."""
    content = json.loads(text_of(contents["proved"]))
    assert content["claim"].startswith(
        "The model itself, rounding errors included, gives the right answer to every string"
    )
    rest = {key: value for key, value in content.items() if key != "digest"} | {"claim": "The model is right."}
    digest = blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=8).hexdigest()
    with pytest.raises(ValueError, match="expected the claim that belongs to level 'proved', got another"):
        Certificate.from_text(json.dumps(rest | {"digest": digest}))


def test_keys_are_not_repeated(contents) -> None:
    """Python's own reader keeps the last of two values, and the digest fits it."""
    text = Certificate.from_text(text_of(contents["proved"])).to_text()
    for old, new in (
        ('"level": "proved"', '"level": "tested",\n "level": "proved"'),
        ('"variant": "merge"', '"variant": "bare", "variant": "merge"'),
    ):
        assert old in text
        with pytest.raises(ValueError, match="expected each key of an object once, got"):
            Certificate.from_text(text.replace(old, new))


def test_the_claim_names_what_a_task_grades(contents) -> None:
    """Strings without an answer are not claimed: malformed ones, and counts above the largest class."""
    assert "every string, of any length" in Certificate.from_text(text_of(contents["proved"])).claim
    machine = {"symbols": ["a", "b"], "start": 0, "table": [[0, 1], [1, 1]], "outputs": [0, -100]}
    assert scope(machine, ("no", "yes")) == (
        "every string for which the task defines an answer (it defines none for 'b')"
    )
    words = {"symbols": ["log in", "out"], "start": 0, "table": [[1, 2], [2, 2], [2, 2]], "outputs": [0, 0, -100]}
    assert "(it defines none for 'out')" in scope(words, ("no", "yes"))
    # An answer to the empty string alone is missing: no net reads it.
    start = {"symbols": ["a"], "start": 0, "table": [[1], [1]], "outputs": [-100, 1]}
    assert scope(start, ("no", "yes")) == "every string"
    task = make_task("longest-common-subsequence", alphabet=3, max_length=40)
    largest = len(task.classes) - 1
    rule = f"every pair of strings whose right answer is at most {largest}, the task's largest answer"
    assert scope(task.reference.to_json(), task.classes) == rule


def test_a_certificate_prints_plain_sentences(contents) -> None:
    refuted = Certificate.from_text(text_of(contents["refuted"]))
    counterexample = refuted.counterexample
    assert counterexample is not None
    assert (
        str(refuted)
        == repr(refuted)
        == (
            f"refuted: {refuted.claim} On the string 'aaaaa', its answer is {counterexample.got!r}; "
            f"the right answer is {counterexample.expected!r}."
        )
    )
    extracted = Certificate.from_text(text_of(contents["extracted"]))
    assert str(extracted).startswith(f"extracted: {extracted.claim} The level is not higher, because ")
