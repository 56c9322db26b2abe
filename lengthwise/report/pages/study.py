"""Pages of studies: results that an experiment computes in addition to its table of runs."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from lengthwise.pictures import Chart
from lengthwise.registry import Registry


class StudyPage(NamedTuple):
    """Sections of an experiment's page, and its charts and other files by their names.

    `headline`: a sentence with the result of the study, if the experiment's own headline does not contain it.
    """

    sections: list[str]
    pictures: Mapping[str, Chart]
    files: Mapping[str, str] = MappingProxyType({})
    headline: str = ""


STUDY_PAGES: Registry[Callable[[Any, str], StudyPage]] = Registry("page of a study", "lengthwise.studies.*.pages")
"""Functions from a study's result and the stem of the page's file name to the `StudyPage`, by the experiment's name."""
