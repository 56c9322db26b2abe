"""A user's causal language model in files: a folder that transformers wrote, and a TOML file that describes it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from torch import nn

from lengthwise.files import open_file
from lengthwise.models.base import SequenceModel
from lengthwise.models.containers import first_line
from lengthwise.models.hugging_face import wrap_hugging_face
from lengthwise.models.set_answers import SetAnswers
from lengthwise.tasks.base import Task
from lengthwise.validation import FrozenRecord, check_one_given, type_in_words, validated

KEY = "hugging_face"
"""The key that distinguishes the TOML file of a language model from the files of other nets."""

FILES = ("config.json", "model.safetensors")
"""The names of the files that are read from the folder; `save_pretrained` writes them."""


class Sets(FrozenRecord, strict=True, allow_inf_nan=False):
    """The table `sets` in the TOML file of a language model, with the arguments of `SetAnswers`."""

    above: float
    score: Literal["logit", "sigmoid", "softmax"] = "logit"
    tokens: list[int] | None = None


class LanguageModelDescription(FrozenRecord, strict=True):
    """A language model's TOML file: the model's folder (relative to the file), and arguments of `wrap_hugging_face`."""

    hugging_face: str
    task: dict[str, Any] | str = ""
    tokens: list[int] | None = None
    begin: int | None = None
    max_length: int | None = None
    answers: list[int] | None = None
    sets: Sets | None = None


def read_language_model(settings: dict[str, Any], path: Path) -> LanguageModelDescription:
    """Return the validated content of the TOML file of a language model; unknown keys are rejected."""
    description = validated(LanguageModelDescription, settings, path=str(path))
    expected = "`answers` (a token for each answer of the task) or a table `sets` (with the threshold of sets)"
    check_one_given(str(path), expected, description.answers, description.sets)
    return description


def load_language_model(description: LanguageModelDescription, task: Task, path: Path) -> SequenceModel:
    """Load the language model that a TOML file describes, for a task; `path` is the path of the TOML file.

    Weights are read only from a safetensors file. No code from the model's folder runs.

    Raises:
        ValueError: transformers is not installed, a file is missing or damaged, weights are missing, or the model does
            not fit the description.
    """
    folder = path.parent / description.hugging_face
    for name in FILES:
        try:
            open_file(folder / name).close()  # a pipe or a device is rejected before the library opens it
        except FileNotFoundError:
            raise ValueError(
                f"{path}: {KEY}: expected a folder with {' and '.join(FILES)}, got no {name} in {folder}; "
                "model.save_pretrained(folder) writes both"
            ) from None
    answers: list[int] | SetAnswers | None = description.answers
    if (sets := description.sets) is not None:
        try:
            answers = SetAnswers(task, above=sets.above, score=sets.score, tokens=sets.tokens)  # type: ignore[arg-type]
        except ValueError as problem:
            raise ValueError(f"{path}: sets: {problem}") from None
    model = _pretrained(folder, path)
    limits = {"tokens": description.tokens, "begin": description.begin, "max_length": description.max_length}
    try:
        return wrap_hugging_face(model, answers=answers, **limits).eval()  # type: ignore[arg-type]
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None


def _pretrained(folder: Path, path: Path) -> nn.Module:
    """Return the causal language model in a folder with all its weights."""
    try:
        import transformers
    except ImportError:
        raise ValueError(
            f"{path}: {KEY}: expected the library transformers, which is not installed; use `pip install transformers`"
        ) from None
    with _quiet(transformers):
        try:
            loaded: Any = transformers.AutoModelForCausalLM.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, trust_remote_code=False, output_loading_info=True
            )
        except Exception as problem:  # the library raises errors of many kinds for damaged files
            raise ValueError(
                f"{path}: {KEY}: expected a causal language model of transformers in {folder}, got an error "
                f"({first_line(problem)}); write the model by model.save_pretrained(folder)"
            ) from None
    model, report = loaded
    # The library draws missing weights at random and leaves out unexpected ones, with a warning only.
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if names := sorted(map(str, report.get(what) or ())):
            raise ValueError(
                f"{path}: {KEY}: expected exactly the weights of {type_in_words(model)} in {folder}, but "
                f"{names[0]} is {what.replace('_keys', '')}; save the whole model by model.save_pretrained(folder)"
            )
    net: nn.Module = model.eval()
    return net


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Hide the library's warnings and progress bars, because programs may read the terminal's output."""
    logging = transformers.logging
    level, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bar:
            logging.enable_progress_bar()
