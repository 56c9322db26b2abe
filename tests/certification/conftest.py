"""Fewer strings for faults that do not need many."""

import pytest

import lengthwise.certification.certificate as certificate_module
import lengthwise.certification.certify as certify_module


@pytest.fixture
def fewer_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recognition tasks need seconds to draw strings of 10,000 symbols: 100 of 40 and of 500 are drawn instead."""
    for module, lengths, count in (
        (certify_module, "TESTED_LENGTHS", "NUM_STRINGS"),
        (certificate_module, "LEAST_LENGTHS", "LEAST_STRINGS"),
    ):
        monkeypatch.setattr(module, lengths, (40, 500))
        monkeypatch.setattr(module, count, 100)
