"""Certificates as files: what was changed, by accident or with care, is named in one sentence, and never believed."""

import contextlib
import copy
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from command import exit_code
from fewer_strings import draw_fewer_strings
from planted import LabelsChange
from table_model import table_model, with_separate_leaves

from lengthwise.automata.tree_machine import tree_machine
from lengthwise.certification.certificate import Certificate, scope
from lengthwise.certification.certify import certify
from lengthwise.certification.verify import MIN_LENGTHS, MIN_STRINGS, SHORTEST_CLAIM, check
from lengthwise.tasks import make_task

Content = dict[str, Any]


@pytest.fixture(scope="module")
def contents() -> dict[str, Content]:
    """A certificate of each level, as its file says it; the evidence of those that are proved is made up.

    And what is said of a thousand strings of each length: reading 10,000 symbols of each takes seconds.
    """
    task = make_task("parity")
    model = table_model(with_separate_leaves(tree_machine(task.transducer)))
    with pytest.MonkeyPatch.context() as patch:
        draw_fewer_strings(patch.setattr)
        extracted = json.loads(certify(model, task).to_text())
    right = extracted["tested"][0] | dict.fromkeys(("num_strings", "num_graded", "num_correct"), MIN_STRINGS)
    traced = extracted["trace_agreement"][0] | {"num_strings": MIN_STRINGS}
    extracted["tested"] = [right | {"length": length} for length in MIN_LENGTHS]
    extracted["trace_agreement"] = [
        traced | {"length": length, "num_nodes": MIN_STRINGS * (length + 5)} for length in MIN_LENGTHS
    ]
    enclosed = extracted | {
        "model": {"name": "regular-gpt", "variant": "merge", "thickness": 1, "chunk_size": 2},
        "evidence": {"method": "enclosures", "num_prototypes": 5, "radius": 0.1, "logit_margin": 2.0},
    }
    kernels = {
        "kernels": [{"name": "exp", "dtype": "float32", "measured": 0.5, "assumed": 8.0}],
        "torch": "2.13.0",
        "cpu_capability": "AVX2",
        "num_threads": 1,
    }
    enclosed["kernels"] = kernels
    made = {
        "extracted": extracted,
        "refuted": json.loads(certify(LabelsChange(model, 5), task).to_text()),
        "proved": enclosed | {"level": "proved", "reason": ""},
        "bounded": extracted
        | {
            "level": "bounded",
            "max_length": 64,
            "kernels": kernels,
            "model": {"name": "block-linear-rnn", "columns": "reflected", "num_layers": 1, "hidden": 0},
            "machine": dict(extracted["transducer"]),
            "evidence": {
                "method": "isometries",
                "num_prototypes": 5,
                "radius": 0.1,
                "drift": 0.001,
                "max_length": 64,
                "logit_margin": 2.0,
            },
        },
        "tested": extracted | {"level": "tested"},
    }
    assert {name: content["level"] for name, content in made.items()} == {name: name for name in made}
    return made


def text_of(content: Content) -> str:
    """The file of an edited certificate, by someone who knows how its claim and its digest are made."""
    rest = {key: value for key, value in content.items() if key not in ("claim", "digest")}
    with contextlib.suppress(ValueError):
        rest["claim"] = Certificate.model_validate(rest).claim
    digest = blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=8).hexdigest()
    return json.dumps(rest | {"digest": digest})


def verdict(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    """Exit code of `lengthwise certify --check`, and what it says."""
    code = exit_code("certify", "--check", str(path), *more)
    captured = capsys.readouterr()
    if code == 2 or (code and not more):
        assert not captured.out
        assert captured.err.startswith("lengthwise: ")
        assert len(captured.err.splitlines()) == 1, captured.err
    return code, captured.out + captured.err


def test_what_the_model_shows_is_no_longer_taken_from_the_file(contents) -> None:
    for level in ("refuted", "proved"):
        checked = check(Certificate.from_text(text_of(contents[level])))
        task, *others = checked.taken_on_trust
        assert "belongs to task" in task
        again = checked.with_model(["proved again"])
        assert again.verified[:2] == ("proved again", task)
        if level == "refuted":
            assert others == ["the model gives the answer that the file contains", SHORTEST_CLAIM], "no model was given"
            assert again.verified[2] == "the model gives the answer that the file contains"
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
        assert (f"lengthwise: --min-level: expected {minimum} or higher, got {level}\n" in text) == bool(code)
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
        ("9" * 100_000, "got one of 100,000 digits"),
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


def with_codes(**fields: Any) -> Callable[[Content], None]:
    """Merges of codes in place of enclosures."""

    def edit(content: Content) -> None:
        content["model"] = {"name": "codebook-gpt", "chunk_size": 2}
        content["evidence"] = {"method": "codes", "num_codes": 2, "num_merges": 8, "logit_margin": 1.0, "slack": 1.0}
        content["evidence"] |= fields

    return edit


def with_states(**fields: Any) -> Callable[[Content], None]:
    """States of a recurrence in place of enclosures, and the transducer as its machine."""

    def edit(content: Content) -> None:
        the_transducer_as_machine(content)
        content["model"] = {"name": "block-linear-rnn", "columns": "stochastic", "num_layers": 1}
        content["evidence"] = {"method": "states", "num_states": 5, "num_steps": 10, "logit_margin": 1.0, "slack": 1.0}
        content["evidence"] |= fields

    return edit


NAN, HUGE = float("nan"), 10**30
LEAD_REQUIRED = "expected a positive logit margin, got "
EDITS = [
    ("extracted", other_answers, "its machine and its transducer answer"),
    ("extracted", one_entry_less, "table: has no entry for the classes"),
    ("extracted", set_to(["b", "a"], "machine", "symbols"), "expected one over the symbols"),
    ("extracted", set_to([0, 0], "transducer", "outputs"), "its machine and its transducer answer"),
    ("extracted", set_to([7, 8], "transducer", "outputs"), "answers that have no name"),
    ("extracted", set_to([0, -7], "transducer", "outputs"), "answers that have no name"),
    ("extracted", set_to(None, "machine"), "requires a machine, got none"),
    ("extracted", set_to([], "trace_agreement"), "requires 1,000 strings of 40 symbols"),
    ("extracted", left_out("trace_agreement", 2), "requires 1,000 strings of 10,000 symbols"),
    ("extracted", set_to(999, "trace_agreement", 1, "num_strings"), "requires 1,000 strings of 500 symbols"),
    ("extracted", set_to(1, "trace_agreement", 0, "num_disagreements"), "with every state in its class"),
    ("extracted", set_to(3, "tested", 0, "num_correct"), "requires no wrong answer"),
    ("extracted", set_to("proved", "level"), "level proved requires evidence, got none"),
    ("extracted", set_to("refuted", "level"), "requires counterexample, got none"),
    ("proved", set_to(None, "evidence"), "level proved requires evidence, got none"),
    ("proved", set_to("extracted", "level"), "expected no evidence at level extracted, got one"),
    ("proved", set_to(0.0, "evidence", "logit_margin"), LEAD_REQUIRED),
    ("proved", set_to(None, "evidence", "logit_margin"), LEAD_REQUIRED),
    ("proved", set_to(NAN, "evidence", "logit_margin"), "expected finite numbers, got NaN"),
    (
        "proved",
        set_to("magic", "evidence", "method"),
        "unknown method of proof 'magic' (known: attention, choices, codes, ",
    ),
    ("proved", left_out("evidence", "method"), "expected the name of a method of proof, got None"),
    (
        "proved",
        set_to("gru", "model", "name"),
        "and a tree machine, got model 'gru'; certify again",
    ),
    (
        "proved",
        set_to("bare", "model", "variant"),
        "method 'enclosures' expects regular-gpt with variant='merge', thickness=1 or codebook-gpt with ",
    ),
    ("proved", set_to(True, "model", "thickness"), "got regular-gpt with thickness=True"),
    ("proved", set_to(2, "model", "thickness"), "got regular-gpt with thickness=2; certify again"),
    ("bounded", set_to(2, "model", "num_layers"), "got block-linear-rnn with num_layers=2; certify"),
    ("bounded", set_to(8, "model", "hidden"), "got block-linear-rnn with hidden=8; certify again"),
    ("proved", set_to("a\x1b[31mb", "model", "name"), r"got model 'a\x1b[31mb'; certify again"),
    ("proved", set_to({}, "model"), "expected the name of its model, got none"),
    ("proved", set_to(["even", "even"], "classes"), "expected different names of all classes, got one twice"),
    ("proved", set_to(64, "max_length"), "expected no max_length at level proved, got one"),
    ("bounded", set_to(None, "max_length"), "level bounded requires max_length, got none"),
    ("bounded", set_to(0, "max_length"), "level bounded requires max_length, got none"),
    ("bounded", set_to(-1, "max_length"), "max_length: Input should be greater than or equal to 0"),
    ("bounded", set_to(None, "evidence"), "level bounded requires evidence, got none"),
    ("bounded", other_answers, "its machine and its transducer answer"),
    ("bounded", set_to(65, "max_length"), "expected the largest length of its evidence, got another"),
    ("bounded", set_to(0.002, "evidence", "drift"), "expected states that stay in their balls, got a longer drift"),
    ("bounded", set_to("stochastic", "model", "columns"), "got block-linear-rnn with columns='stochastic'"),
    ("bounded", set_to("proved", "level"), "expected no max_length at level proved, got one"),
    ("proved", with_codes(logit_margin=0.0), LEAD_REQUIRED),
    ("proved", with_codes(slack=0.0), "got no margin"),
    ("proved", with_codes(slack=NAN), "expected finite numbers, got NaN"),
    ("proved", with_states(num_states=4), "expected one prototype for each state, got another number"),
    ("proved", with_states(slack=-1.0), "got no margin"),
    ("proved", with_states(logit_margin=-1.0), LEAD_REQUIRED),
    ("extracted", set_to(0, "tested", 0, "num_strings"), "tested.0.num_strings: Input should be greater than"),
    ("extracted", set_to(0, "trace_agreement", 0, "num_strings"), "trace_agreement.0.num_strings: Input should be gr"),
    ("extracted", set_to(-1.0, "trace_agreement", 0, "max_distance"), "greater than or equal to 0"),
    ("extracted", set_to(-1.0, "closure", "radius"), "closure.radius: Input should be greater than or equal to 0"),
    ("extracted", set_to(-1.0, "closure", "gap"), "closure.gap: Input should be greater than or equal to 0"),
    ("extracted", set_to(0, "closure", "num_prototypes"), "closure.num_prototypes: Input should be greater than or eq"),
    ("extracted", set_to(2_000, "tested", 0, "num_graded"), "expected no more correct than graded answers"),
    ("proved", other_answers, "its machine and its transducer answer"),
    ("refuted", set_to("tested", "level"), "expected no counterexample at level tested"),
    ("refuted", set_to("extracted", "level"), "expected no counterexample at level extracted"),
    ("refuted", set_to(None, "counterexample"), "requires counterexample, got none"),
    ("refuted", set_to([], "counterexample", "string"), "is not a string over the task's symbols"),
    ("refuted", set_to(["a", "c"], "counterexample", "string"), "is not a string over the task's symbols"),
    ("refuted", set_to(["a"] * 4 + ["b"], "counterexample", "string"), "does not answer its counterexample with"),
    ("refuted", set_to("0", "counterexample", "got"), "'0' is not a wrong answer to its counterexample"),
    ("refuted", set_to("maybe", "counterexample", "got"), "'maybe' is not a wrong answer to its counterexample"),
    ("refuted", set_to([-100, -100], "transducer", "outputs"), "supervises no string"),
    ("refuted", set_to("of the machine", "counterexample", "shortest"), "is not the shortest error of its machine"),
    ("extracted", set_to([-100, -100], "transducer", "outputs"), "supervises no string"),
    ("extracted", set_to(None, "closure"), "requires a closure, got none"),
    ("extracted", set_to([], "tested"), "requires answers to strings of 40 symbols, got none"),
    ("extracted", left_out("tested", 1), "requires answers to strings of 500 symbols, got none"),
    ("extracted", set_to(0, "trace_agreement", 0, "num_nodes"), "requires 1,000 strings of 40 symbols"),
    ("extracted", set_to(42, "trace_agreement", 0, "length"), "requires 1,000 strings of 40 symbols"),
    ("extracted", set_to(42, "tested", 0, "length"), "requires answers to strings of 40 symbols, got none"),
    ("extracted", set_to(1_000_000, "trace_agreement", 2, "num_nodes"), "requires 1,000 strings of 10,000 symbols"),
    (
        "extracted",
        set_to([4], "model", "lower_chunk_sizes"),
        "machine's chunk size at every level, got chunk sizes [4] at the lowest",
    ),
    ("extracted", set_to(3, "model", "chunk_size"), "expected a machine with chunks of 3, as its model has, got 2"),
    ("extracted", one_entry_twice, "table: expected one entry for a window, got several"),
    ("proved", set_to(-1.0, "evidence", "radius"), "evidence.radius: Input should be greater than or equal to 0"),
    (
        "proved",
        set_to(4, "evidence", "num_prototypes"),
        "one set around each prototype, got another",
    ),
    ("proved", the_transducer_as_machine, "and a tree machine, got transducer machine"),
    ("proved", with_codes(slack=None), "got no margin"),
    ("proved", with_codes(num_merges=0), "evidence.num_merges: Input should be greater than or equal to 1"),
    ("extracted", left_out("transducer"), "transducer: Field required"),
    ("extracted", left_out("transducer", "start"), "transducer.start: Field required"),
    ("extracted", left_out("machine", "chunk_size"), "machine."),
    ("extracted", left_out("machine", "outputs"), "machine."),
    ("extracted", set_to("ab", "transducer", "symbols"), "transducer.symbols: Input should be a valid array"),
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
    ("extracted", set_to(40, "machine", "chunk_size"), "chunk_size: Input should be less than or equal to 32"),
    ("extracted", set_to(30, "machine", "chunk_size"), "table: expected one row or more, each of 31 numbers"),
    ("extracted", set_to([0] * 100_000, "machine", "outputs"), "expected a table of at most 20,000,000 entries"),
    ("extracted", set_to([0, 1], "machine"), "machine"),
    ("extracted", set_to({}, "machine"), "machine."),
    (
        "extracted",
        set_to(-1, "tested", 0, "num_graded"),
        "tested.0.num_graded: Input should be greater than or equal to 0",
    ),
    (
        "extracted",
        set_to(HUGE, "trace_agreement", 0, "num_nodes"),
        "num_nodes: Input should be less than",
    ),
    (
        "extracted",
        set_to(NAN, "trace_agreement", 0, "max_distance"),
        "expected finite numbers, got NaN",
    ),
    ("extracted", set_to("many", "tested", 0, "num_strings"), "tested.0.num_strings: Input should be a valid integer"),
    ("extracted", set_to(2, "format"), "expected format 3, got format 2, of another version; certify again"),
    ("extracted", set_to(4, "format"), "expected format 3, got format 4, of another version; certify again"),
    ("extracted", set_to("3", "format"), "format: Input should be 2 or 3"),
    ("extracted", set_to("1000", "tested", 0, "num_strings"), "num_strings: Input should be a valid integer"),
    ("extracted", set_to(1000.0, "tested", 0, "num_strings"), "num_strings: Input should be a valid integer"),
    ("extracted", set_to("0.5", "closure", "radius"), "closure.radius: Input should be a valid number"),
    ("extracted", set_to(1, "laws", "pad_is_identity"), "pad_is_identity: Input should be a valid boolean"),
    ("extracted", set_to(7, "weights"), "weights: Input should be a valid string"),
    ("extracted", set_to(None, "net"), "expected the digest of its net, got none"),
    ("extracted", set_to(1, "closure", "num_prototypes"), "expected at least one prototype for each of"),
    ("extracted", left_out("closure", "points", 0), "expected a map of its 5 prototypes, got one of 4"),
    ("extracted", set_to(9, "closure", "points", 0, 2), "expected classes of its machine on the map of prototypes"),
    ("extracted", set_to(True, "independently_checked"), "level extracted has no proof that could be checked"),
    ("extracted", set_to(1, "independently_checked"), "independently_checked: Input should be a valid boolean"),
    ("proved", set_to(None, "kernels"), "level proved requires kernels, got none"),
    ("proved", set_to([], "kernels", "kernels"), "expected measured kernels, got none"),
    ("proved", set_to(8.5, "kernels", "kernels", 0, "measured"), "its float32 exp was off by 8.5 units; proofs assume"),
    ("extracted", set_to({"kernels": [], "torch": ""}, "kernels"), "kernels.cpu_capability: Field required"),
    ("proved", set_to("why", "reason"), "expected no reason at level proved"),
    ("extracted", set_to("", "reason"), "expected a reason at level extracted"),
    ("proved", set_to("2.0", "evidence", "logit_margin"), "logit_margin: Input should be a valid number"),
    ("proved", set_to(5.0, "evidence", "num_prototypes"), "num_prototypes: Input should be a valid integer"),
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
    code, text = verdict(path, capsys)
    assert code == 1
    assert sentence in text
    path.write_text(json.dumps(content | {"digest": contents["extracted"]["digest"]}))
    code, text = verdict(path, capsys)
    assert code == 1
    assert "it was edited" in text


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


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (with_codes(), "the model merges codes as the machine does"),
        (with_states(), "states and steps are those enumerated"),
    ],
)
def test_each_method_states_what_is_to_be_trusted(edit, sentence: str, contents, tmp_path: Path, capsys) -> None:
    path, content = tmp_path / "certificate.json", copy.deepcopy(contents["proved"])
    edit(content)
    path.write_text(text_of(content))
    code, text = verdict(path, capsys)
    assert code == 0
    assert sentence in text


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
    assert "answer 'a' (1 symbols) differently" in text


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
    assert len((done.stderr if edited else done.stdout).splitlines()) == (1 if edited else 5)


def test_a_claim_is_the_one_of_its_level(contents) -> None:
    """Whoever reads the file reads the claim: an edited one is refused, though nothing is computed from it."""
    content = json.loads(text_of(contents["proved"]))
    assert content["claim"].startswith("The model itself, as it rounds, gives the right answer to every string")
    rest = {key: value for key, value in content.items() if key != "digest"} | {"claim": "The model is right."}
    digest = blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=8).hexdigest()
    with pytest.raises(ValueError, match="expected the claim of level proved, got another"):
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
        "every string to which the task defines an answer (it defines none to 'b')"
    )
    words = {"symbols": ["log in", "out"], "start": 0, "table": [[1, 2], [2, 2], [2, 2]], "outputs": [0, 0, -100]}
    assert "(it defines none to 'out')" in scope(words, ("no", "yes"))
    # An answer to the empty string alone is missing: no net reads it.
    start = {"symbols": ["a"], "start": 0, "table": [[1], [1]], "outputs": [-100, 1]}
    assert scope(start, ("no", "yes")) == "every string"
    task = make_task("longest-common-subsequence", alphabet=3, max_length=40)
    largest = len(task.classes) - 1
    rule = f"every pair of strings whose right answer is at most {largest}, the task's largest"
    assert scope(task.reference.to_json(), task.classes) == rule


def test_a_certificate_prints_plain_sentences(contents) -> None:
    refuted = Certificate.from_text(text_of(contents["refuted"]))
    counterexample = refuted.counterexample
    assert counterexample is not None
    assert (
        str(refuted)
        == repr(refuted)
        == (
            f"refuted: {refuted.claim} On the string 'aaaaa' its answer is {counterexample.got!r}; "
            f"the right answer is {counterexample.expected!r}."
        )
    )
    extracted = Certificate.from_text(text_of(contents["extracted"]))
    assert str(extracted).startswith(f"extracted: {extracted.claim} The level is not higher, because ")
