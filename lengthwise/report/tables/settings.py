"""Specifications for readers: the settings in which runs differ, and the file that repeats a run."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Any

import tomli_w

from lengthwise.display import NOTHING
from lengthwise.presets.base import PRESETS, Settings
from lengthwise.runs.provenance import EXTENSION
from lengthwise.runs.result import RunResult
from lengthwise.runs.spec import SECTIONS, flat, identity, is_titled
from lengthwise.tasks.base import TASKS


def without_seed(spec: Settings) -> Settings:
    """Return the settings that the seeds of a cell share: all settings that can change a result, except the seed."""
    return {section: value for section, value in identity(spec).items() if section != "seed"}


def collect_differences(specs: Sequence[Settings]) -> list[tuple[str, list[str]]]:
    """Return the dotted names of the settings in which specifications differ, with the values in all specifications."""
    settings = [flat(spec) for spec in specs]
    keys = dict.fromkeys(key for of_spec in settings for key in of_spec)
    texts = {key: [setting_text(each[key]) if key in each else NOTHING for each in settings] for key in keys}
    return [(key, of_key) for key, of_key in texts.items() if len(set(of_key)) > 1]


def variations(results: Sequence[RunResult]) -> dict[str, str]:
    """Return for each run id the settings in which the run differs from other runs of its task and model."""
    return variations_of({result.run_id: result.spec for result in results})


def variations_of(specs: Mapping[str, Settings]) -> dict[str, str]:
    """Return what `variations` returns, from a mapping of run ids to specifications."""
    cells: dict[tuple[str, str], list[str]] = defaultdict(list)
    for run_id, spec in specs.items():
        cells[task_in(spec), str(spec["model"]["name"])].append(run_id)
    texts: dict[str, str] = {}
    for members in cells.values():
        settings = {run_id: flat(without_seed(specs[run_id])) for run_id in members}
        keys = dict.fromkeys(key for values in settings.values() for key in values)
        differing = [key for key in keys if len({setting_text(values.get(key)) for values in settings.values()}) > 1]
        for run_id, values in settings.items():
            texts[run_id] = ", ".join(f"{key}={setting_text(values.get(key))}" for key in differing)
    return texts


def task_of(result: RunResult) -> str:
    """Return the run's task, as `task_in` names it."""
    return task_in(result.spec)


def task_in(spec: Settings) -> str:
    """Return a task's name, its identifying settings, and other settings whose value is not the default.

    Example:
        >>> task_in({"task": {"name": "tomita", "index": 3, "sampling": "near-miss"}})
        'tomita index=3'
        >>> task_in({"task": {"name": "dfa", "title": "login", "alphabet": ["a"]}})
        'login (dfa)'
    """
    settings = dict(spec["task"])
    name = str(settings.pop("name"))
    heading = name
    if is_titled(spec["task"]):
        heading = f"{settings.pop('title')} ({name})"
        # The title replaces settings that would fill the line, such as the table of an automaton.
        settings = {key: value for key, value in settings.items() if key not in TASKS[name].titled}
    fields = TASKS[name].model_fields if name in TASKS else {}
    # Compared as text, because a specification read from JSON has lists where defaults are tuples.
    defaults = {key: setting_text(field.default) for key, field in fields.items() if not field.is_required()}
    named_by = TASKS[name].named_by if name in TASKS else ()
    telling = {
        key: value for key, value in settings.items() if key in named_by or defaults.get(key) != setting_text(value)
    }
    return " ".join([heading, *(f"{key}={setting_text(value)}" for key, value in telling.items())])


def task_title(spec: Settings) -> str:
    """Return a task's title, or its registered name if it has none."""
    return str(spec["task"]["title" if is_titled(spec["task"]) else "name"])


def model_of(result: RunResult) -> str:
    """Return the registered name of the run's model."""
    return str(result.spec["model"]["name"])


def versions_of(results: Sequence[RunResult]) -> list[tuple[str, list[str]]]:
    """Return each name in the results' recorded `versions`, with all different versions of this name.

    The versions of a user's own file are taken only from results that name this file.
    """
    names = dict.fromkeys(name for result in results for name in result.versions)
    own = {name: [r for r in results if name in r.versions or not name.startswith(EXTENSION)] for name in names}
    return [(name, list(dict.fromkeys(r.versions.get(name, "unknown") for r in own[name]))) for name in names]


def as_toml(spec: Settings) -> str:
    """Return the specification as a configuration file for ``lengthwise train`` with the preset `preset_below`.

    The file leaves out settings with the value None, which TOML cannot express. It also leaves out settings of the
    model that differ between the attempts of a run.

    Example:
        >>> print(as_toml({"task": {"name": "parity", "p": 0.5}, "model": {"name": "x"}, "train": {"steps": 10}}))
        [task]
        p = 0.5
        <BLANKLINE>
        [train]
        steps = 10
    """
    changed = {key for changes in spec.get("until", {}).get("models", ()) for key in changes}
    sections = {name: _stated(spec[name], {"name", *(changed if name == "model" else ())}) for name in SECTIONS}
    return tomli_w.dumps({name: settings for name, settings in sections.items() if settings}).rstrip()


def _stated(settings: Settings, left_out: Set[str] = frozenset()) -> dict[str, Any]:
    """Return the settings that are not None, at any depth."""
    return {
        key: _stated(value) if isinstance(value, Mapping) else value
        for key, value in settings.items()
        if value is not None and key not in left_out
    }


def preset_below(spec: Settings) -> str:
    """Return the preset that `lengthwise train` needs to repeat a run with the file of `as_toml`.

    Example:
        >>> preset_below({"model": {"name": "gru"}})
        'plain'
    """
    model, until = spec["model"]["name"], spec.get("until")
    return next((name for name, preset in PRESETS.items() if until and model in preset.goals), "plain")


def setting_text(value: Any) -> str:
    """Return a setting's value as text: strings unchanged, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
