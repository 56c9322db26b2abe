"""The regular languages that several experiments use, with their entries in Table 1 of Chi et al. (2023)."""

from collections.abc import Mapping
from typing import NamedTuple

from lengthwise.runs.spec import Settings


class Published(NamedTuple):
    """A row of Table 1 of Chi et al., "max / mean" as printed: two baselines, RegularGPT with chunk sizes 2 and 3."""

    rnn: str = ""
    transformer: str = ""
    chunks_of_2: str = ""
    chunks_of_3: str = ""


class Language(NamedTuple):
    """A row of Table 1 of Chi et al. (2023), or a task of ours that is not in this table."""

    row: str
    task: str
    fields: Settings
    published: Published = Published()


_TABLE_1 = {
    "Even Pairs": Published("100.0 / 100.0", "99.7 / 73.2", "100.0 / 89.3", "100.0 / 96.6"),
    "Parity": Published("100.0 / 98.9", "52.3 / 50.1", "100.0 / 100.0", "100.0 / 88.7"),
    "Cycle Navigation": Published("100.0 / 100.0", "21.7 / 20.6", "100.0 / 100.0", "100.0 / 78.6"),
    "D_2": Published("100.0 / 100.0", "100.0 / 80.1", "100.0 / 100.0", "99.8 / 96.5"),
    "D_3": Published("100.0 / 100.0", "100.0 / 77.8", "100.0 / 99.7", "98.6 / 93.0"),
    "D_4": Published("100.0 / 100.0", "100.0 / 82.6", "100.0 / 98.7", "97.7 / 91.6"),
    "D_12": Published("100.0 / 100.0", "100.0 / 80.3", "100.0 / 99.8", "94.1 / 90.4"),
    "Tomita 3": Published("100.0 / 100.0", "100.0 / 94.4", "100.0 / 99.7", "100.0 / 99.9"),
    "Tomita 4": Published("100.0 / 100.0", "100.0 / 70.0", "100.0 / 99.8", "100.0 / 99.3"),
    "Tomita 5": Published("100.0 / 100.0", "74.5 / 74.5", "100.0 / 99.8", "98.2 / 84.1"),
    "Tomita 6": Published("100.0 / 100.0", "50.0 / 50.0", "100.0 / 98.5", "100.0 / 65.7"),
    "Modular Arithmetic": Published("100.0 / 100.0", "21.9 / 20.3", "96.4 / 82.6", "21.2 / 20.5"),
}

_TASKS: Mapping[str, tuple[str, Settings]] = {
    "Even Pairs": ("even-pairs", {}),
    "Parity": ("parity", {}),
    "Cycle Navigation": ("cycle-navigation", {}),
    "D_2": ("bounded-dyck", {"depth": 2}),
    "D_3": ("bounded-dyck", {"depth": 3}),
    "D_4": ("bounded-dyck", {"depth": 4}),
    "D_12": ("bounded-dyck", {"depth": 12}),
    "Tomita 1": ("tomita", {"index": 1}),
    "Tomita 2": ("tomita", {"index": 2}),
    "Tomita 3": ("tomita", {"index": 3}),
    "Tomita 4": ("tomita", {"index": 4}),
    "Tomita 5": ("tomita", {"index": 5}),
    "Tomita 6": ("tomita", {"index": 6}),
    "Tomita 7": ("tomita", {"index": 7}),
    "Z_7": ("word-problem", {"group": "Z7"}),
    "S_3": ("word-problem", {"group": "S3"}),
    "Modular Arithmetic": ("modular-arithmetic", {}),
}

LANGUAGES = tuple(Language(row, task, fields, _TABLE_1.get(row, Published())) for row, (task, fields) in _TASKS.items())
