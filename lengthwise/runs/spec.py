"""The specification of a run: a task, a model, a recipe and a seed, which are validated once and hashed into an id."""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from lengthwise.files import UnreadableFile, read_file
from lengthwise.models.base import MODELS, ModelConfig, SequenceModel, build_model, check_accepts_vectors, outline
from lengthwise.models.consistency import check_made_alike
from lengthwise.presets.base import PRESETS, GoalPreset, Preset
from lengthwise.randomness import whole_seed
from lengthwise.registry import is_of_package, names_of_files, nearest
from lengthwise.runs.goal import BUDGET, Goal, GoalLevel, check_reachable, parse_goal_level
from lengthwise.tasks.base import TASKS, SymbolTask, Task, VectorTask
from lengthwise.training.batches import check_lengths
from lengthwise.training.recipe import OptimizerRecipe, Recipe
from lengthwise.training.requirements import check_memory, check_model, check_task
from lengthwise.validation import Description, check_kind, dump_named, quoted, truncate, validated

SECTIONS = ("task", "model", "train")
MAX_SEED = 10**15
"""The largest seed. The names of run folders contain the seed, and file systems limit the length of names."""

SEEDS_APART = 1 << 32
"""The distance between the seeds of two consecutive attempts of a run.

If two runs have different seeds below this distance, no attempt of one run has the seed of an attempt of the other.
"""

Settings = dict[str, Any]


class RunSpec(NamedTuple):
    """The specification of one run: a task, a model, a recipe and a seed.

    Equal specifications have equal ids and are trained once. `other_tasks` are tasks on which the run is also measured,
    although it does not train on them. They have the symbols and classes of the run's task, and are part of the run's
    id.
    """

    task: SymbolTask | VectorTask
    model_name: str
    model_config: ModelConfig
    recipe: Recipe
    seed: int
    goal: Goal | None = None
    other_tasks: tuple[SymbolTask, ...] = ()

    def to_json(self) -> Settings:
        """Return the complete specification as values for JSON, defaults included."""
        return {
            "task": dump_named(self.task.name, self.task),
            "model": dump_named(self.model_name, self.model_config),
            "train": self.recipe.model_dump(mode="json"),
            "seed": self.seed,
            # The key keeps its original name, because it is part of the ids of recorded runs.
            **({} if self.goal is None else {"until": self.goal.model_dump(mode="json")}),
            **({"other_tasks": [dump_named(task.name, task) for task in self.other_tasks]} if self.other_tasks else {}),
        }

    @property
    def id(self) -> str:
        """The readable id of the run, with a hash of everything that can change a result (`identity`)."""
        # Sorted keys make the id independent of the order of fields in the code.
        specification = json.dumps(identity(self.to_json()), sort_keys=True)
        # 40 bits: among 10,000 runs of one task, model and seed, any two share a digest with probability 5e-5.
        digest = blake2b(specification.encode(), digest_size=5).hexdigest()
        return f"{self.task.name}-{self.model_name}-seed{self.seed}-{digest}"

    def make_model(self) -> SequenceModel:
        """Return the untrained model, whose parameters are drawn from the seed.

        Raises:
            ValueError: the model is a user's own, and differs each time it is made.
        """
        model = build_model(self.model_name, self.model_config, self.task, self.seed)
        # A user's model may draw its weights from a global generator. A resumed run could then not make the same
        # weights again from its seed.
        if not is_of_package(type(model)) and isinstance(self.task, SymbolTask):
            check_made_alike(model, build_model(self.model_name, self.model_config, self.task, self.seed), self.task)
        model.precision = self.recipe.precision
        return model

    def outline(self) -> SequenceModel:
        """Return the model with shapes of weights but without values, because drawing random values takes longer."""
        return outline(self.model_name, self.model_config, self.task)

    def attempt(self, number: int) -> "RunSpec":
        """Return the specification of attempt 0, 1, ... of a run with a goal; without a goal, return `self`.

        Example:
            >>> spec = make_spec("parity", "block-linear-rnn", {}, goal="proved")
            >>> [spec.attempt(number).model_config.d_model for number in range(6)]
            [64, 128, 256, 512, 64, 128]
        """
        if self.goal is None:
            return self
        changes = self.goal.models[number % len(self.goal.models)]
        config = validated(type(self.model_config), {**self.model_config.model_dump(), **changes}, path="model")
        return self._replace(model_config=config, seed=self.seed + number * SEEDS_APART, goal=None)


def make_spec(
    task: str,
    model: str,
    settings: Mapping[str, Any] = MappingProxyType({}),
    *,
    preset: str | None = None,
    seed: int = 0,
    goal: str | None = None,
    budget: float | int = BUDGET,
    other_tasks: Sequence[Settings] = (),
) -> RunSpec:
    """Make a specification from settings (sections `task`, `model`, `train`) that override a preset.

    The default preset is the task's preset, or else the model's preset. Some of a preset's training settings may have
    no effect with the given settings, for example Muon's learning rate if `settings` choose AdamW. Such settings are
    dropped. With `goal`, the run trains until it reaches this level, and no attempt begins after `budget` CPU seconds
    (`Goal`). The model's preset for goals, or else the first preset with a goal for this model, then replaces the
    model's default preset. Each entry of `other_tasks` changes the section `task`, and the run is also measured on the
    resulting task. All problems are raised as one ValueError.

    Example:
        >>> spec = make_spec("parity", "regular-gpt", {"train": {"steps": 10}})
        >>> spec.recipe.steps, spec.recipe.batch_size
        (10, 128)
    """
    _check_sections(settings, other_tasks)
    task_class = TASKS[task]
    model_class = MODELS[model]
    level = None if goal is None else parse_goal_level(goal)
    base_preset = _preset(
        model_class, (task_class.default_preset or None) if preset is None else preset, has_goal=goal is not None
    )
    if issubclass(task_class, VectorTask):
        check_accepts_vectors(model_class)
    base: Settings = {"train": base_preset.train, "model": base_preset.models.get(model, {})}
    goal_preset = base_preset.goals.get(model, GoalPreset({"pace": {}}))
    # The order is the precedence: preset, changes for a goal, then the user's settings.
    merged = merge(merge(base, {} if goal is None else {"train": goal_preset.train}), settings)
    if isinstance(merged["train"], Mapping):
        merged["train"] = _without_unused(merged["train"], settings.get("train", {}))
    problems = _misplaced(settings, seed)
    built: dict[str, Any] = {}
    for section, kind in (("task", task_class), ("model", model_class.Config), ("train", Recipe)):
        try:
            built[section] = validated(kind, _section(merged, section), path=section)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(problems))
    spec = RunSpec(built["task"], model, built["model"], built["train"], whole_seed(seed))
    attempts = goal_preset.models_for(len(spec.task.classes) if isinstance(spec.task, SymbolTask) else 1)
    spec = spec._replace(goal=_goal(level, budget, attempts, settings.get("model", {})))
    fields = _section(merged, "task")
    spec = spec._replace(other_tasks=tuple(_other_task(task_class, {**fields, **changes}) for changes in other_tasks))
    check(spec)
    return spec


def _without_unused(train: Mapping[str, Any], given: Mapping[str, Any]) -> Settings:
    """Return section `train` without the settings of a preset that have no effect with the given settings.

    If a user changes the optimizer, for example, the preset's settings of its own optimizer do not apply. Given
    settings are kept, so that validation rejects given settings without an effect.
    """
    kept = _used(Recipe, train, given)
    optimizer, own = train.get("optimizer"), given.get("optimizer", {})
    if isinstance(optimizer, Mapping) and isinstance(own, Mapping):
        kept["optimizer"] = _used(OptimizerRecipe, optimizer, own)
    return kept


def _used(kind: type[Description], settings: Mapping[str, Any], given: Mapping[str, Any]) -> Settings:
    """Return the given settings, and the other settings that have an effect."""
    return {name: value for name, value in settings.items() if name in given or kind.uses(name, settings)}


def _misplaced(settings: Mapping[str, Any], seed: object) -> list[str]:
    """Describe unknown sections, settings that are arguments of `make_spec`, and a wrong seed."""
    problems = [
        f"{quoted(section)}: no such section{nearest(section, SECTIONS)} (known: {', '.join(SECTIONS)})"
        for section in settings
        if section not in (*SECTIONS, "seed", "preset")
    ]
    problems += [
        f"{name}: not a section; give it as a separate argument, not in the settings"
        for name in ("seed", "preset")
        if name in settings
    ]
    try:
        whole_seed(seed, MAX_SEED)
    except ValueError as error:
        problems.append(str(error))
    return problems


def _check_sections(settings: object, other_tasks: object) -> None:
    """Raise a ValueError unless `settings` is a mapping and `other_tasks` is a list of mappings."""
    check_kind("settings", settings, Mapping, "sections of settings")
    check_kind("other_tasks", other_tasks, (list, tuple), "a list of changes of the task")
    for changes in other_tasks:  # type: ignore[attr-defined]  # it is a list
        check_kind("other_tasks", changes, Mapping, "changes of the task's settings")


def _goal(
    level: GoalLevel | None, budget: float | int, attempts: Sequence[Mapping[str, Any]], given: Mapping[str, Any]
) -> Goal | None:
    """Return a goal with the attempts of a preset, except attempts that change a model setting that the user gave."""
    models = tuple(dict(changes) for changes in attempts if not given.keys() & changes.keys()) or ({},)
    goal = validated(Goal, {"level": level or "solved", "budget": budget, "models": models}, path="goal")
    return None if level is None else goal  # a wrong budget is an error even without a goal


def _other_task(kind: type[Task], fields: Settings) -> SymbolTask:
    task = validated(kind, fields, path="other_tasks")
    if not isinstance(task, SymbolTask):
        raise ValueError(
            f"other_tasks: expected tasks whose answers are classes, got {task.name} with numbers; leave out this task"
        )
    return task


def check(spec: RunSpec) -> None:
    """Raise a ValueError if the parts of a specification are valid but do not fit together."""
    check_task(spec.task, spec.recipe)
    check_lengths(spec.task, spec.recipe)
    if spec.goal is not None and spec.recipe.pace is None:
        raise ValueError(
            f"train.pace: expected a section that sets when training with goal={spec.goal.level!r} ends early, got "
            "none; leave out train.pace, so that the preset sets it"
        )
    for task in spec.other_tasks:
        own = (spec.task.symbols, spec.task.classes) if isinstance(spec.task, SymbolTask) else None
        if own != (task.symbols, task.classes):
            raise ValueError(
                f"other_tasks: expected tasks with the symbols and classes of {spec.task.name}, got symbols "
                f"{task.symbols} and classes {task.classes}; change only settings that keep symbols and classes"
            )
    check_model(MODELS[spec.model_name], spec.recipe)
    for number in range(1 if spec.goal is None else len(spec.goal.models)):
        model = spec.attempt(number).outline()
        check_memory(model, spec.recipe)
        if spec.goal is not None:
            check_reachable(model, spec.task, spec.goal.level)
    if spec.goal is not None and spec.goal.is_certified and spec.recipe.precision != "float32":
        raise ValueError(
            f"train.precision: expected 'float32' with goal={spec.goal.level!r}, because certificates are about "
            f"float32 nets, got {spec.recipe.precision!r}; leave out the goal or the precision"
        )


def _preset(model: type[SequenceModel], name: str | None, *, has_goal: bool) -> type[Preset]:
    """Return the preset of this name; without a name, the model's default preset, or its preset for goals."""
    if name is None and has_goal:
        with_goal = [other for other, preset in PRESETS.items() if model.name in preset.goals]
        name = model.default_goal_preset or next(iter(with_goal), None)
    return PRESETS[model.default_preset if name is None else name]


def spec_from_json(settings: Mapping[str, Any]) -> RunSpec:
    """Read the specification that `RunSpec.to_json` wrote."""
    sections = {section: dict(settings[section]) for section in SECTIONS}
    # A field that is missing in the JSON had its default value, but the model's preset may set another value.
    for name, field in Recipe.model_fields.items():
        sections["train"].setdefault(name, field.get_default())
    with names_of_files():
        spec = make_spec(sections["task"].pop("name"), sections["model"].pop("name"), sections, seed=settings["seed"])
    if "until" in settings:
        spec = spec._replace(goal=validated(Goal, settings["until"], path="until"))
    if "other_tasks" in settings:
        tasks = ((TASKS[fields["name"]], fields) for fields in settings["other_tasks"])
        others = tuple(
            _other_task(kind, {key: value for key, value in fields.items() if key != "name"}) for kind, fields in tasks
        )
        spec = spec._replace(other_tasks=others)
    check(spec)
    return spec


def identity(specification: Mapping[str, Any]) -> Settings:
    """Return the part of a specification that can change a result.

    It excludes the number of steps between checkpoints, the budget, and the title and note of a task. It also excludes
    the name of a file of examples, because a digest identifies the contents of the file.
    """
    # These settings change no trained weight: a run may be saved more often, or get a larger budget, under the same id.
    left_out: dict[str, tuple[str, ...]] = {"train": ("checkpoint_every",), "until": ("budget",)}
    name = str(specification["task"].get("name"))
    if specification["task"].get("digest"):
        left_out["task"] = ("file",)
    elif name in TASKS and TASKS[name].titled:
        left_out["task"] = ("title", "note")
    parts = {
        section: {name: value for name, value in specification[section].items() if name not in left}
        for section, left in left_out.items()
        if section in specification
    }
    return {**specification, **parts}


def is_titled(task: Mapping[str, Any]) -> bool:
    """Return whether a task, given by its name and fields, has a title that replaces some of its fields in tables."""
    name = str(task.get("name"))
    return bool(task.get("title")) and name in TASKS and bool(TASKS[name].titled)


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Settings:
    """Merge `changes` into `base`, section by section.

    Example:
        >>> merge({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}})
        {'a': {'b': 1, 'c': 3}}
    """
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def flat(settings: Mapping[str, Any], prefix: str = "") -> Settings:
    """Return nested settings under dotted keys.

    Example:
        >>> flat({"train": {"steps": 10, "optimizer": {"name": "adam"}}})
        {'train.steps': 10, 'train.optimizer.name': 'adam'}
    """
    dotted: Settings = {}
    for key, value in settings.items():
        dotted |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return dotted


def read_settings(path: Path) -> Settings:
    """Read settings from a TOML file; a missing, blank or invalid file raises a ValueError with the position."""
    try:
        text = read_file(path).decode()
        settings = tomllib.loads(text)
    except FileNotFoundError:
        raise ValueError(
            f"{path}: expected a TOML file with settings, found no such file; name an existing file"
        ) from None
    except RecursionError:
        raise ValueError(f"{path}: cannot be read as TOML: it is nested too deeply; write fewer levels") from None
    except UnreadableFile:
        if path.is_dir():
            raise ValueError(f"{path}: expected a TOML file with settings, got a folder; name a file in it") from None
        raise
    except ValueError as error:  # also for numbers with more digits than Python converts
        raise ValueError(f"{path}: cannot be read as TOML: {error}; correct the file") from None
    if not text.strip():
        raise ValueError(f"{path}: expected a TOML file with settings, got a blank file; write settings into it")
    return settings


def parse_assignments(assignments: Iterable[str]) -> Settings:
    """Parse settings from ``section.key=value`` words; values are TOML or, if that fails, plain text.

    Example:
        >>> parse_assignments(["train.steps=20", "model.variant=paper"])
        {'train': {'steps': 20}, 'model': {'variant': 'paper'}}
    """
    settings: Settings = {}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        keys = path.strip().split(".")
        if not equals or len(keys) < 2 or not all(keys):
            raise ValueError(
                f"assignments: expected section.key=value, such as train.steps=500, got {truncate(repr(assignment))}; "
                "give all three parts"
            )
        try:
            nested: Any = _parse_value(text.strip())
        except RecursionError:
            raise ValueError(f"assignments: {path} is nested too deeply; write a flatter value") from None
        for key in reversed(keys):
            nested = {key: nested}
        settings = merge(settings, nested)
    return settings


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:  # also for a number with more digits than Python converts
        return text


def _section(settings: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    content = settings.get(section, {})
    if not isinstance(content, Mapping):
        raise ValueError(
            f"{section}: expected a section of settings, got {truncate(repr(content))}; write {section}.key = value"
        )
    return content
