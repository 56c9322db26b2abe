"""Members of every registry bear their names, belong to their family, and are described with their sources."""

import inspect
from typing import Any

import pytest

from lengthwise.certification.certificate import EVIDENCE, Evidence
from lengthwise.certification.methods.base import PROVERS, Prover
from lengthwise.constructions import CONSTRUCTIONS
from lengthwise.experiment import EXPERIMENTS
from lengthwise.export.base import EXPORTS, Export
from lengthwise.extraction.base import READERS, Reader
from lengthwise.formats.base import FORMATS, Format
from lengthwise.layers.positions.base import POSITIONS, PositionEncoding
from lengthwise.models import MODELS
from lengthwise.presets import PRESETS
from lengthwise.registry import Registry
from lengthwise.runs.pools.base import POOLS
from lengthwise.runs.tracking.base import TRACKERS, Tracker
from lengthwise.studies.benchmarks.benchmark import BENCHMARKS
from lengthwise.tasks import TASKS

SOURCE, DIFFERENCE = "Source:", "Differs from the source:"


@pytest.mark.parametrize(
    ("registry", "family", "headings"),
    [
        (MODELS, object, (SOURCE, DIFFERENCE)),
        (POSITIONS, PositionEncoding, (SOURCE, DIFFERENCE)),
        (CONSTRUCTIONS, object, (SOURCE, DIFFERENCE, ">>>")),
        (PRESETS, object, (SOURCE,)),
        (TASKS, object, ()),
        (EVIDENCE, Evidence, ()),
        (PROVERS, Prover, ()),
        (READERS, Reader, ()),
        (FORMATS, Format, ()),
        (EXPORTS, Export, ()),
        (TRACKERS, Tracker, ()),
        (POOLS, object, ()),
        (EXPERIMENTS, object, ()),
        (BENCHMARKS, object, ()),
    ],
    ids=lambda given: getattr(given, "kind", None),
)
def test_members_bear_their_names_and_are_described(
    registry: Registry[Any], family: type, headings: tuple[str, ...]
) -> None:
    for name, member in registry.items():
        assert member.name == name
        assert family is object or issubclass(member, family)
        description = inspect.getdoc(member) or ""
        assert description.strip(), name
        assert all(heading in description for heading in headings), name
