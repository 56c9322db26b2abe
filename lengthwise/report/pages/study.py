"""Pages of studies: what an experiment computes besides its table of runs."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lengthwise.registry import Registry
from lengthwise.report.charts.pictures import Chart


class StudyPage(NamedTuple):
    """Sections of an experiment's page, and the charts that they show by the names of their files."""

    sections: list[str]
    pictures: Mapping[str, Chart]


STUDY_PAGES: Registry[Callable[[Any, str], StudyPage]] = Registry("page of a study", "lengthwise.report.pages")
"""By the name of the experiment: functions of what its study returns and of the stem of the page's file name."""
