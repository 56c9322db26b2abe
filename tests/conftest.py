"""Shared set-up of the tests: one torch thread, hypothesis without deadlines (a busy machine is no failure)."""

import gc
from collections.abc import Generator

import jaxtyping
import pytest
import torch
from hypothesis import settings

import lengthwise.certification.certify as certify_module
import lengthwise.certification.verify as checking_module

torch.set_num_threads(1)
settings.register_profile("lengthwise", deadline=None, derandomize=True)
settings.load_profile("lengthwise")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test with many cases only the first checks shapes and types of all arguments: that takes a third longer."""
    seen = set()
    for item in items:
        name, _, case = item.nodeid.partition("[")
        if case and name in seen:
            item.add_marker("unchecked")
        seen.add(name)


def pytest_collection_finish() -> None:
    """What was imported stays: every collection of garbage would look through it again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Shapes and types of all arguments are checked, except in tests marked `unchecked`."""
    jaxtyping.config.update("jaxtyping_disable", item.get_closest_marker("unchecked") is not None)
    try:
        return (yield)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def fewer_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recognition tasks need seconds to draw strings of 10,000 symbols: 100 of 40 and of 500 are drawn instead."""
    for module, lengths, count in (
        (certify_module, "TESTED_LENGTHS", "NUM_STRINGS"),
        (checking_module, "MIN_LENGTHS", "MIN_STRINGS"),
    ):
        monkeypatch.setattr(module, lengths, (40, 500))
        monkeypatch.setattr(module, count, 100)
