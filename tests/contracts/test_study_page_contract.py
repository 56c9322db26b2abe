"""Promises of every registered page of a study, whatever its name; the experiments' contract writes these pages."""

import inspect
from typing import get_type_hints

import pytest

from lengthwise.experiment import EXPERIMENTS
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage


@pytest.fixture(params=list(STUDY_PAGES))
def name(request) -> str:
    return request.param


def test_it_is_of_an_experiment_that_has_a_study(name: str) -> None:
    """A matrix has a page of its own, which would be shown instead."""
    for scale in ("smoke", "small"):
        experiment = EXPERIMENTS[name](scale)
        assert experiment.study is not None
        assert not experiment.is_matrix


def test_it_makes_a_page_of_a_result_and_a_stem_and_is_described(name: str) -> None:
    make = STUDY_PAGES[name]
    assert (make.__doc__ or "").strip()
    inspect.signature(make).bind("result", "stem")
    assert get_type_hints(make)["return"] is StudyPage
