"""The content of a certificate file of each level, which tests edit, and the check of an edited file."""

import contextlib
import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from command import exit_code
from fewer_strings import draw_fewer_strings
from planted import LabelsChange
from table_model import table_model, with_separate_leaves

from lengthwise.automata.tree_machine import tree_machine
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.verify import MIN_LENGTHS, MIN_STRINGS
from lengthwise.tasks import make_task

Content = dict[str, Any]


def contents_by_level() -> dict[str, Content]:
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


def other_answers(content: Content) -> None:
    content["machine"]["outputs"] = [1 - answer for answer in content["machine"]["outputs"]]


def the_transducer_as_machine(content: Content) -> None:
    content["machine"] = content["transducer"]
