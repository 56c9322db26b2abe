"""What a run is: a task, a model, a recipe and a seed, validated once, with an id that is a hash of them."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from lengthwise.models.base import MODELS, ModelConfig, SequenceModel, build_model, check_accepts_vectors, outline
from lengthwise.presets.base import PRESETS
from lengthwise.registry import nearest
from lengthwise.tasks.base import TASKS, SymbolTask, VectorTask
from lengthwise.training.loop import training_lengths
from lengthwise.training.recipe import Recipe
from lengthwise.training.requirements import check_memory, check_model, check_task
from lengthwise.validation import dump_named, quoted, truncate, validated

SECTIONS = ("task", "model", "train")
Settings = dict[str, Any]


class RunSpec(NamedTuple):
    """One cell of an experiment. Equal specifications have equal ids and are trained once."""

    task: SymbolTask | VectorTask
    model_name: str
    model_config: ModelConfig
    recipe: Recipe
    seed: int

    def to_json(self) -> Settings:
        """The complete specification, defaults included."""
        return {
            "task": dump_named(self.task.name, self.task),
            "model": dump_named(self.model_name, self.model_config),
            "train": self.recipe.model_dump(mode="json"),
            "seed": self.seed,
        }

    @property
    def id(self) -> str:
        """Readable, and unique by a hash of all that changes a number (how often to save does not)."""
        specification = json.dumps(identity(self.to_json()), sort_keys=True)
        digest = blake2b(specification.encode(), digest_size=5).hexdigest()
        return f"{self.task.name}-{self.model_name}-seed{self.seed}-{digest}"

    def make_model(self) -> SequenceModel:
        """The untrained model, its parameters drawn from the seed."""
        return build_model(self.model_name, self.model_config, self.task, self.seed)


def make_spec(
    task: str, model: str, settings: Mapping[str, Any], *, preset: str | None = None, seed: int = 0
) -> RunSpec:
    """Validate settings (sections `task`, `model`, `train`) over a preset, by default the model's own.

    All problems come as one ValueError.

    Example:
        >>> spec = make_spec("parity", "regular-gpt", {"train": {"steps": 10}})
        >>> spec.recipe.steps, spec.recipe.batch_size
        (10, 128)
    """
    task_class, model_class = TASKS[task], MODELS[model]
    recipe = PRESETS[model_class.default_preset if preset is None else preset]
    if issubclass(task_class, VectorTask):
        check_accepts_vectors(model_class)
    base: Settings = {"train": recipe.train, "model": recipe.models.get(model, {})}
    merged = merge(base, settings)
    problems = [
        f"{quoted(s)}: no such section{nearest(s, SECTIONS)} (known: {', '.join(SECTIONS)})"
        for s in settings
        if s not in (*SECTIONS, "seed", "preset")
    ]
    built: dict[str, Any] = {}
    for section, kind in (("task", task_class), ("model", model_class.Config), ("train", Recipe)):
        try:
            built[section] = validated(kind, _section(merged, section), path=section)
        except ValueError as error:
            problems.append(str(error))
    problems += [
        f"{name}: no section; give it apart from the settings" for name in ("seed", "preset") if name in settings
    ]
    if seed < 0:
        problems.append(f"seed: expected an integer of at least 0, got {seed}")
    if problems:
        raise ValueError("\n".join(problems))
    spec = RunSpec(built["task"], model, built["model"], built["train"], seed)
    check_model(model_class, spec.recipe)
    check_task(spec.task, spec.recipe)
    check_memory(outline(model, spec.model_config, spec.task), spec.recipe)
    training_lengths(spec.task, spec.recipe)
    return spec


def spec_from_json(settings: Mapping[str, Any]) -> RunSpec:
    """The inverse of `RunSpec.to_json`."""
    sections = {section: dict(settings[section]) for section in SECTIONS}
    for name, field in Recipe.model_fields.items():  # what is left out has its default, and not that of a preset
        sections["train"].setdefault(name, field.get_default())
    return make_spec(sections["task"].pop("name"), sections["model"].pop("name"), sections, seed=settings["seed"])


def identity(specification: Mapping[str, Any]) -> Settings:
    """The part of a specification that changes a number: all but how often to save."""
    train = {name: value for name, value in specification["train"].items() if name != "checkpoint_every"}
    return {**specification, "train": train}


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Settings:
    """`base` with `changes` laid over it, section by section.

    Example:
        >>> merge({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}})
        {'a': {'b': 1, 'c': 3}}
    """
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def read_settings(path: Path) -> Settings:
    """Settings from a TOML file; a file that is missing or is no TOML is a ValueError that says where."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path}: expected a TOML file, but there is none") from None
    except RecursionError:
        raise ValueError(f"{path}: cannot be read as TOML: it is nested too deeply") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ValueError(f"{path}: cannot be read as TOML: {error}") from None


def parse_assignments(assignments: Iterable[str]) -> Settings:
    """Settings from ``section.key=value`` words; values are TOML, or plain text where they are no TOML.

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
                f"assignments: expected section.key=value, got {truncate(repr(assignment))}; for one, train.steps=500"
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
    except tomllib.TOMLDecodeError:
        return text


def _section(settings: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    content = settings.get(section, {})
    if not isinstance(content, Mapping):
        raise ValueError(
            f"{section}: expected a section of settings, got {truncate(repr(content))}; for one, {section}.key = value"
        )
    return content
