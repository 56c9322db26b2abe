"""Each edit of a certificate's content is refused, also if its digest and its claim were made again."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from certificate_contents import Content, contents_by_level, other_answers, text_of, the_transducer_as_machine, verdict


@pytest.fixture(scope="module")
def contents() -> dict[str, Content]:
    return contents_by_level()


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


def one_entry_less(content: Content) -> None:
    content["machine"]["table"].pop()


def one_entry_twice(content: Content) -> None:
    first = content["machine"]["table"][0]
    content["machine"]["table"].append([*first[:-1], 1 - min(first[-1], 1)])


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
    ("extracted", other_answers, "its machine and its transducer answer the string"),
    ("extracted", one_entry_less, "table: expected an entry for the classes"),
    ("extracted", set_to(["b", "a"], "machine", "symbols"), "expected a transducer over the symbols"),
    ("extracted", set_to([0, 0], "transducer", "outputs"), "its machine and its transducer answer the string"),
    ("extracted", set_to([7, 8], "transducer", "outputs"), "expected a name in `classes` for each answer"),
    ("extracted", set_to([0, -7], "transducer", "outputs"), "expected a name in `classes` for each answer"),
    ("extracted", set_to(None, "machine"), "requires a machine, got none"),
    ("extracted", set_to([], "trace_agreement"), "requires 1,000 strings of 40 symbols"),
    ("extracted", left_out("trace_agreement", 2), "requires 1,000 strings of 10,000 symbols"),
    ("extracted", set_to(999, "trace_agreement", 1, "num_strings"), "requires 1,000 strings of 500 symbols"),
    ("extracted", set_to(1, "trace_agreement", 0, "num_disagreements"), "every state is in the class that the"),
    ("extracted", set_to(3, "tested", 0, "num_correct"), "allows no wrong answer"),
    ("extracted", set_to("proved", "level"), "level 'proved' requires `evidence`, got none"),
    ("extracted", set_to("refuted", "level"), "requires `counterexample`, got none"),
    ("proved", set_to(None, "evidence"), "level 'proved' requires `evidence`, got none"),
    ("proved", set_to("extracted", "level"), "expected no `evidence` at level 'extracted', got a value"),
    ("proved", set_to(0.0, "evidence", "logit_margin"), LEAD_REQUIRED),
    ("proved", set_to(None, "evidence", "logit_margin"), LEAD_REQUIRED),
    ("proved", set_to(NAN, "evidence", "logit_margin"), "expected finite numbers, got NaN"),
    (
        "proved",
        set_to("magic", "evidence", "method"),
        "unknown method of proof 'magic' (known: attention, choices, codes, ",
    ),
    ("proved", left_out("evidence", "method"), "expected one of attention, choices, codes, "),
    (
        "proved",
        set_to("gru", "model", "name"),
        "thickness=1), got model 'gru'; certify again",
    ),
    (
        "proved",
        set_to("bare", "model", "variant"),
        "method 'enclosures' expects a tree machine and model regular-gpt (variant='merge', thickness=1) or ",
    ),
    ("proved", set_to(True, "model", "thickness"), "got regular-gpt (thickness=True)"),
    ("proved", set_to(2, "model", "thickness"), "got regular-gpt (thickness=2); certify again"),
    ("bounded", set_to(2, "model", "num_layers"), "got block-linear-rnn (num_layers=2); certify"),
    ("bounded", set_to(8, "model", "hidden"), "got block-linear-rnn (hidden=8); certify again"),
    ("proved", set_to("a\x1b[31mb", "model", "name"), r"got model 'a\x1b[31mb'; certify again"),
    ("proved", set_to({}, "model"), "expected the name of its model, got none"),
    ("proved", set_to(["even", "even"], "classes"), "expected a different name for each class, got one name twice"),
    ("proved", set_to(64, "max_length"), "expected no `max_length` at level 'proved', got a value"),
    ("bounded", set_to(None, "max_length"), "level 'bounded' requires `max_length`, got none"),
    ("bounded", set_to(0, "max_length"), "level 'bounded' requires `max_length`, got none"),
    ("bounded", set_to(-1, "max_length"), "max_length': Input should be greater than or equal to 0"),
    ("bounded", set_to(None, "evidence"), "level 'bounded' requires `evidence`, got none"),
    ("bounded", other_answers, "its machine and its transducer answer the string"),
    ("bounded", set_to(65, "max_length"), "expected the same max_length as in its evidence, got another"),
    ("bounded", set_to(0.002, "evidence", "drift"), "a drift of at most radius / max_length, got a larger drift"),
    ("bounded", set_to("stochastic", "model", "columns"), "got block-linear-rnn (columns='stochastic')"),
    ("bounded", set_to("proved", "level"), "expected no `max_length` at level 'proved', got a value"),
    ("proved", with_codes(logit_margin=0.0), LEAD_REQUIRED),
    ("proved", with_codes(slack=0.0), "expected a positive slack, or None for a single code, got 0.0"),
    ("proved", with_codes(slack=NAN), "expected finite numbers, got NaN"),
    ("proved", with_states(num_states=4), "expected one prototype for each state, got a different number"),
    ("proved", with_states(slack=-1.0), "expected a positive slack, or None for blocks of one entry, got -1.0"),
    ("proved", with_states(logit_margin=-1.0), LEAD_REQUIRED),
    ("extracted", set_to(0, "tested", 0, "num_strings"), "tested.0.num_strings': Input should be greater than"),
    ("extracted", set_to(0, "trace_agreement", 0, "num_strings"), "trace_agreement.0.num_strings': Input should be gr"),
    ("extracted", set_to(-1.0, "trace_agreement", 0, "max_distance"), "greater than or equal to 0"),
    ("extracted", set_to(-1.0, "closure", "radius"), "closure.radius': Input should be greater than or equal to 0"),
    ("extracted", set_to(-1.0, "closure", "gap"), "closure.gap': Input should be greater than or equal to 0"),
    (
        "extracted",
        set_to(0, "closure", "num_prototypes"),
        "closure.num_prototypes': Input should be greater than or",
    ),
    ("extracted", set_to(2_000, "tested", 0, "num_graded"), "expected num_correct <= num_graded <= num_strings, got "),
    ("proved", other_answers, "its machine and its transducer answer the string"),
    ("refuted", set_to("tested", "level"), "expected no `counterexample` at level 'tested'"),
    ("refuted", set_to("extracted", "level"), "expected no `counterexample` at level 'extracted'"),
    ("refuted", set_to(None, "counterexample"), "requires `counterexample`, got none"),
    ("refuted", set_to([], "counterexample", "string"), "is empty, or contains a symbol that the task"),
    ("refuted", set_to(["a", "c"], "counterexample", "string"), "is empty, or contains a symbol that the task"),
    (
        "refuted",
        set_to(["a"] * 4 + ["b"], "counterexample", "string"),
        "is not the transducer's answer to the",
    ),
    (
        "refuted",
        set_to("0", "counterexample", "got"),
        "a wrong answer in its counterexample, got '0', which is the right answer",
    ),
    (
        "refuted",
        set_to("maybe", "counterexample", "got"),
        "a wrong answer in its counterexample, got 'maybe', which is not an answer of the task",
    ),
    ("refuted", set_to([-100, -100], "transducer", "outputs"), "its transducer has no answer to any nonempty string"),
    (
        "refuted",
        set_to("of the machine", "counterexample", "shortest"),
        "is recorded as a shortest error of its machine",
    ),
    ("extracted", set_to([-100, -100], "transducer", "outputs"), "its transducer has no answer to any nonempty string"),
    ("extracted", set_to(None, "closure"), "requires states in finitely many classes (`closure`)"),
    ("extracted", set_to([], "tested"), "requires answers to strings of 40 symbols, got none"),
    ("extracted", left_out("tested", 1), "requires answers to strings of 500 symbols, got none"),
    ("extracted", set_to(0, "trace_agreement", 0, "num_nodes"), "requires 1,000 strings of 40 symbols"),
    ("extracted", set_to(42, "trace_agreement", 0, "length"), "requires 1,000 strings of 40 symbols"),
    ("extracted", set_to(42, "tested", 0, "length"), "requires answers to strings of 40 symbols, got none"),
    ("extracted", set_to(1_000_000, "trace_agreement", 2, "num_nodes"), "requires 1,000 strings of 10,000 symbols"),
    (
        "extracted",
        set_to([4], "model", "lower_chunk_sizes"),
        "model with the machine's chunk size at every level, got chunk sizes [4] at the lowest",
    ),
    (
        "extracted",
        set_to(3, "model", "chunk_size"),
        "expected a machine of chunk size 3, as its model has, got chunk size 2",
    ),
    ("extracted", one_entry_twice, "table: expected one entry for each window, got several"),
    ("proved", set_to(-1.0, "evidence", "radius"), "evidence.radius': Input should be greater than or equal to 0"),
    (
        "proved",
        set_to(4, "evidence", "num_prototypes"),
        "one set around each prototype, got a different",
    ),
    ("proved", the_transducer_as_machine, "thickness=1), got a transducer machine"),
    ("proved", with_codes(slack=None), "expected a positive slack, or None for a single code, got None"),
    ("proved", with_codes(num_merges=0), "evidence.num_merges': Input should be greater than or equal to 1"),
    ("extracted", left_out("transducer"), "transducer': Field required"),
    ("extracted", left_out("transducer", "start"), "transducer.start': Field required"),
    ("extracted", left_out("machine", "chunk_size"), "machine."),
    ("extracted", left_out("machine", "outputs"), "machine."),
    ("extracted", set_to("ab", "transducer", "symbols"), "transducer.symbols': Input should be a valid array"),
    ("extracted", set_to([1, 2], "transducer", "symbols"), "transducer.symbols.0': Input should be a valid string"),
    ("extracted", set_to("0", "transducer", "start"), "transducer.start': Input should be a valid integer"),
    ("extracted", set_to(0.5, "transducer", "start"), "transducer.start': Input should be a valid integer"),
    ("extracted", set_to(2, "transducer", "start"), "start: expected a state in 0..1, got 2"),
    ("extracted", set_to([[0, 1]], "transducer", "table"), "table: expected next states in 0..0"),
    ("extracted", set_to([[0, 1], [1]], "transducer", "table"), "table: expected one or more rows of 2 numbers"),
    ("extracted", set_to([], "transducer", "table"), "table: expected one or more rows"),
    ("extracted", set_to([[0, HUGE], [1, 0]], "transducer", "table"), "less than 2147483648"),
    ("extracted", set_to([[0, 0]], "machine", "table"), "table: expected one or more rows of 3 numbers"),
    ("extracted", set_to([[0, 0, HUGE]], "machine", "table"), "machine."),
    ("extracted", set_to([[0, 0, -1]], "machine", "table"), "table: expected classes in"),
    ("extracted", set_to(True, "machine", "chunk_size"), "machine."),
    ("extracted", set_to(40, "machine", "chunk_size"), "chunk_size': Input should be less than or equal to 32"),
    ("extracted", set_to(30, "machine", "chunk_size"), "table: expected one or more rows of 31 numbers"),
    ("extracted", set_to([0] * 100_000, "machine", "outputs"), "expected a table of at most 20,000,000 entries"),
    ("extracted", set_to([0, 1], "machine"), "machine"),
    ("extracted", set_to({}, "machine"), "machine."),
    (
        "extracted",
        set_to(-1, "tested", 0, "num_graded"),
        "tested.0.num_graded': Input should be greater than or equal to 0",
    ),
    (
        "extracted",
        set_to(HUGE, "trace_agreement", 0, "num_nodes"),
        "num_nodes': Input should be less than",
    ),
    (
        "extracted",
        set_to(NAN, "trace_agreement", 0, "max_distance"),
        "expected finite numbers, got NaN",
    ),
    ("extracted", set_to("many", "tested", 0, "num_strings"), "tested.0.num_strings': Input should be a valid integer"),
    ("extracted", set_to(2, "format"), "expected format 3, got format 2, which this version does not read"),
    ("extracted", set_to(3.0, "format"), "expected format 3, got format 3.0, which this version does not read"),
    ("extracted", set_to(2.0, "format"), "expected format 3, got format 2.0, which this version does not read"),
    ("extracted", set_to(4, "format"), "expected format 3, got format 4, which this version does not read"),
    ("extracted", left_out("format"), "expected format 3, got no format; certify again"),
    ("extracted", set_to("3", "format"), "format': Input should be 2 or 3"),
    ("extracted", set_to("1000", "tested", 0, "num_strings"), "num_strings': Input should be a valid integer"),
    ("extracted", set_to(1000.0, "tested", 0, "num_strings"), "num_strings': Input should be a valid integer"),
    ("extracted", set_to("0.5", "closure", "radius"), "closure.radius': Input should be a valid number"),
    ("extracted", set_to(1, "laws", "pad_is_identity"), "pad_is_identity': Input should be a valid boolean"),
    ("extracted", set_to(7, "weights"), "weights': Input should be a valid string"),
    ("extracted", set_to(None, "net"), "expected the digest of its net, got none"),
    ("extracted", set_to(1, "closure", "num_prototypes"), "expected at least one prototype for each of"),
    ("extracted", left_out("closure", "points", 0), "expected a map of its 5 prototypes, got a map of 4"),
    ("extracted", set_to(9, "closure", "points", 0, 2), "expected only classes of its machine on the map"),
    ("extracted", set_to(True, "independently_checked"), "which has no proof, got true"),
    ("extracted", set_to(1, "independently_checked"), "independently_checked': Input should be a valid boolean"),
    ("proved", set_to(None, "kernels"), "level 'proved' requires `kernels`, got none"),
    (
        "proved",
        set_to([], "kernels", "kernels"),
        "expected measured errors of the CPU's functions (`kernels`), got none",
    ),
    ("proved", set_to(8.5, "kernels", "kernels", 0, "measured"), "the float32 exp was off by 8.5 machine epsilons"),
    ("extracted", set_to({"kernels": [], "torch": ""}, "kernels"), "kernels.cpu_capability': Field required"),
    ("proved", set_to("why", "reason"), "expected no `reason` at level 'proved', got one; certify"),
    ("extracted", set_to("", "reason"), "expected a `reason` at level 'extracted', got none; certify"),
    ("proved", set_to("2.0", "evidence", "logit_margin"), "logit_margin': Input should be a valid number"),
    ("proved", set_to(5.0, "evidence", "num_prototypes"), "num_prototypes': Input should be a valid integer"),
    ("extracted", set_to("yes", "signed"), "signed': Extra inputs are not permitted"),
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
    assert "expected an unedited certificate, got other text" in text


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (with_codes(), "the model merges codes as the machine does"),
        (with_states(), "the model has exactly the enumerated states and steps"),
    ],
)
def test_each_method_states_what_is_to_be_trusted(edit, sentence: str, contents, tmp_path: Path, capsys) -> None:
    path, content = tmp_path / "certificate.json", copy.deepcopy(contents["proved"])
    edit(content)
    path.write_text(text_of(content))
    code, text = verdict(path, capsys)
    assert code == 0
    assert sentence in text
