"""Promises of the claims of every registered paper, whatever its name: what they name exists."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from lengthwise.experiment import EXPERIMENTS
from lengthwise.studies.claims.claim import CLAIMS, RULES, Claim, Paper, Stated, Unrun

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=list(CLAIMS))
def name(request) -> str:
    return request.param


@cache
def paper_of(name: str) -> Paper:
    return CLAIMS[name]()


def claims_with(name: str, kind: type) -> list[Claim]:
    return [claim for claim in paper_of(name).claims if isinstance(claim.evidence, kind)]


def test_it_has_a_title_and_claims(name: str) -> None:
    assert paper_of(name).title
    assert paper_of(name).claims


def test_every_claim_is_a_sentence_of_a_section_and_made_once(name: str) -> None:
    claims = paper_of(name).claims
    assert not [claim for claim in claims if not claim.section.strip() or not claim.claim.strip(" .")]
    assert not [claim for claim in claims if not claim.claim.endswith(".")]
    assert not [key for key, count in Counter((c.section, c.claim) for c in claims).items() if count > 1]


def test_every_experiment_that_is_named_exists(name: str) -> None:
    paper = paper_of(name)
    evidence = [claim.evidence for claim in paper.claims]
    evidence += [number for claim in claims_with(name, Stated) for number in claim.evidence.numbers]
    named = {*paper.smaller, *paper.takes, *(getattr(each, "experiment", "") for each in evidence)} - {""}
    assert not named - set(EXPERIMENTS)


def test_what_a_page_states_has_that_page_and_a_test_or_a_command(name: str) -> None:
    for _, sentence, evidence, _ in claims_with(name, Stated):
        assert evidence.verdict in RULES, sentence
        pages = [evidence.page, *(page for number in evidence.numbers if (page := getattr(number, "page", "")))]
        assert all((ROOT / "docs" / page).is_file() for page in pages), sentence
        assert evidence.test or evidence.command, sentence
        assert not evidence.test or (ROOT / evidence.test).is_file(), sentence
        program, *words = evidence.command.split() or [""]
        assert program in ("", "lengthwise", "python"), sentence
        assert program != "python" or (ROOT / words[0]).is_file(), sentence
        assert words[:1] != ["reproduce"] or words[1] in EXPERIMENTS, sentence


def test_what_was_not_run_has_its_reason(name: str) -> None:
    for _, sentence, evidence, _ in claims_with(name, Unrun):
        assert evidence.why.strip(), sentence
