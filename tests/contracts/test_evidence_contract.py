"""Promises of all registered evidence, whatever its method: it is read strictly, and checked without the model."""

import re
import subprocess
import sys
from functools import cache
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import ValidationError
from read_nets import first_proof

from lengthwise.certification.certificate import EVIDENCE, Certificate, Evidence
from lengthwise.certification.methods.base import PROVERS
from lengthwise.files import json_text, parse_json_text


@pytest.fixture(params=list(EVIDENCE))
def method(request) -> str:
    return request.param


@cache
def certified(method: str) -> Certificate:
    """Return a certificate of a net whose evidence is of this method."""
    for proof in map(first_proof, PROVERS):
        if proof.evidence.method == method:
            return proof.certificate()
    raise AssertionError(f"no prover gives evidence of method {method}")


def evidence_of(method: str) -> Evidence:
    evidence = certified(method).evidence
    assert evidence is not None
    return evidence


def content_of(method: str) -> dict[str, Any]:
    return parse_json_text(certified(method).to_text())


REFUSED = r"^[^\n]+; .*certify again$"
"""One sentence with a way out."""


def check_refused(content: dict[str, Any]) -> None:
    """Check that a certificate is not read, although its digest is right."""
    with pytest.raises(ValueError, match=REFUSED):
        Certificate.from_text(json_text(content))


def test_it_has_the_name_of_its_method(method: str) -> None:
    kind = EVIDENCE[method]
    assert get_origin(kind.model_fields["method"].annotation) is Literal
    assert get_args(kind.model_fields["method"].annotation) == (method,)


def test_it_comes_back_in_a_certificate(method: str) -> None:
    again = Certificate.from_text(certified(method).to_text())
    assert again == certified(method)
    assert type(again.evidence) is EVIDENCE[method]


def test_it_cannot_be_changed(method: str) -> None:
    evidence = evidence_of(method)
    for field in type(evidence).model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(evidence, field, getattr(evidence, field))


def test_all_its_numbers_are_required_and_no_others_are_read(method: str) -> None:
    content = content_of(method)
    assert Certificate.from_text(json_text(content)) == certified(method)
    evidence = content["evidence"]
    for key in evidence:
        check_refused(content | {"evidence": {other: evidence[other] for other in evidence if other != key}})
    check_refused(content | {"evidence": evidence | {"surely_not_a_field": 1}})
    check_refused(content | {"evidence": evidence | {"method": "surely-not-a-method"}})


def test_its_numbers_are_finite_numbers(method: str) -> None:
    content = content_of(method)
    evidence = content["evidence"]
    for key in evidence.keys() - {"method"}:
        for wrong in (str(evidence[key]), True, [evidence[key]]):
            check_refused(content | {"evidence": evidence | {key: wrong}})
        for wrong in (float("nan"), float("inf")):  # which no JSON holds
            with pytest.raises(ValidationError):
                EVIDENCE[method](**evidence | {key: wrong})


def test_it_describes_itself_in_a_line(method: str) -> None:
    description = evidence_of(method).describe()
    assert description
    assert "\n" not in description


def test_it_is_checked_without_the_model_and_leaves_one_sentence_to_trust(method: str) -> None:
    evidence = evidence_of(method)
    assert evidence.check(certified(method)) == evidence.assumes
    assert evidence.assumes
    assert "\n" not in evidence.assumes


def test_it_is_about_the_machine_and_the_settings_that_it_requires(method: str) -> None:
    """Of another model, another machine or a model with another setting it proves nothing."""
    evidence, certificate = evidence_of(method), certified(method)
    settings = evidence.requires.models[certificate.model["name"]]
    others = [
        {"model": {"name": "surely-not-a-model"}},
        {"machine": None if evidence.requires.machine else certificate.transducer},
        *({"model": {**certificate.model, key: "surely-not-a-value"}} for key in settings),
    ]
    for other in others:
        with pytest.raises(ValueError, match=REFUSED):
            evidence.check(certificate.model_copy(update=other))
    assert certificate.machine_kind == evidence.requires.machine


def test_numbers_that_show_nothing_are_refused(method: str) -> None:
    """No lead, or no slack: one of the numbers decides."""
    evidence, reasons = evidence_of(method), list[str]()
    for key in type(evidence).model_fields.keys() - {"method"}:
        try:
            evidence.model_copy(update={key: -1.0}).check(certified(method))
        except ValueError as problem:
            reasons.append(str(problem))
    assert any(re.match(REFUSED, reason) for reason in reasons), reasons


def test_nothing_of_the_package_needs_torch_to_read_it() -> None:
    code = (
        "import os, sys\n"
        "os.environ.pop('LENGTHWISE_EXTENSIONS', None)\n"
        "from lengthwise.certification.certificate import EVIDENCE\n"
        "assert list(EVIDENCE)\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
