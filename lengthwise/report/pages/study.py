"""Pages of studies: what an experiment computes besides its table of runs."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from lengthwise.registry import Registry
from lengthwise.report.charts.pictures import Chart


class StudyPage(NamedTuple):
    """Sections of an experiment's page, the charts that they show and other files, by the names of these.

    `headline`: what came out of the study, if the experiment's own headline does not tell it.
    """

    sections: list[str]
    pictures: Mapping[str, Chart]
    files: Mapping[str, str] = MappingProxyType({})
    headline: str = ""


STUDY_PAGES: Registry[Callable[[Any, str], StudyPage]] = Registry("page of a study", "lengthwise.studies.*.pages")
"""By the name of the experiment: functions of what its study returns and of the stem of the page's file name."""
