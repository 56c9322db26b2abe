"""Train short, prove long: models that generalize past their training length, and certificates that they do."""

import os
from typing import TYPE_CHECKING

from lengthwise.registry import lazy_names
from lengthwise.version import __version__

if os.name != "posix":  # checked here, so that the first import does not fail with "No module named 'fcntl'"
    raise ImportError(
        "lengthwise: expected a POSIX system such as Linux, with file locks (fcntl), forkserver and resource, got "
        f"{os.name!r}; on Windows, use the Windows Subsystem for Linux"
    )

# Imported on first use, so that `import lengthwise` loads neither torch nor any other large package.
_HOME = {
    "TASKS": "lengthwise.tasks.base",
    "MODELS": "lengthwise.models.base",
    "CONSTRUCTIONS": "lengthwise.constructions",
    "EXPERIMENTS": "lengthwise.experiment",
    "PRESETS": "lengthwise.presets.base",
    "make_task": "lengthwise.tasks.base",
    "make_model": "lengthwise.models.base",
    "RecurrentModel": "lengthwise.models.base",
    "Recipe": "lengthwise.training.recipe",
    "learn": "lengthwise.learning.learned",
    "learn_system": "lengthwise.learning.systems",
    "task_from_function": "lengthwise.learning.function_task",
    "wrap": "lengthwise.models.wrapped",
    "SetAnswers": "lengthwise.models.set_answers",
    "wrap_module": "lengthwise.models.wrapped_module",
    "wrap_hugging_face": "lengthwise.models.hugging_face",
    "train": "lengthwise.training.loop",
    "length_curve": "lengthwise.evaluation.length_curve",
    "error_curve": "lengthwise.evaluation.error_curve",
    "certify": "lengthwise.certification.certify",
    "attack": "lengthwise.certification.attacks.attack",
    "extract": "lengthwise.certification.unknown",
    "equal": "lengthwise.certification.equal",
    "machine_model": "lengthwise.certification.machine_model",
    "streamed_machine_model": "lengthwise.certification.machine_model",
    "make_spec": "lengthwise.runs.spec",
    "execute": "lengthwise.runs.execute",
    "load_run": "lengthwise.runs.folder",
    "construct": "lengthwise.constructions",
    "load_compiled": "lengthwise.runs.compiled",
    "save_hub": "lengthwise.runs.hub",
    "load_hub": "lengthwise.runs.hub",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from lengthwise.certification.attacks.attack import attack as attack
    from lengthwise.certification.certify import certify as certify
    from lengthwise.certification.equal import equal as equal
    from lengthwise.certification.machine_model import machine_model as machine_model
    from lengthwise.certification.machine_model import streamed_machine_model as streamed_machine_model
    from lengthwise.certification.unknown import extract as extract
    from lengthwise.constructions import CONSTRUCTIONS as CONSTRUCTIONS
    from lengthwise.constructions import construct as construct
    from lengthwise.evaluation.error_curve import error_curve as error_curve
    from lengthwise.evaluation.length_curve import length_curve as length_curve
    from lengthwise.experiment import EXPERIMENTS as EXPERIMENTS
    from lengthwise.learning.function_task import task_from_function as task_from_function
    from lengthwise.learning.learned import learn as learn
    from lengthwise.learning.systems import learn_system as learn_system
    from lengthwise.models.base import MODELS as MODELS
    from lengthwise.models.base import RecurrentModel as RecurrentModel
    from lengthwise.models.base import make_model as make_model
    from lengthwise.models.hugging_face import wrap_hugging_face as wrap_hugging_face
    from lengthwise.models.set_answers import SetAnswers as SetAnswers
    from lengthwise.models.wrapped import wrap as wrap
    from lengthwise.models.wrapped_module import wrap_module as wrap_module
    from lengthwise.presets.base import PRESETS as PRESETS
    from lengthwise.runs.compiled import load_compiled as load_compiled
    from lengthwise.runs.execute import execute as execute
    from lengthwise.runs.folder import load_run as load_run
    from lengthwise.runs.hub import load_hub as load_hub
    from lengthwise.runs.hub import save_hub as save_hub
    from lengthwise.runs.spec import make_spec as make_spec
    from lengthwise.tasks.base import TASKS as TASKS
    from lengthwise.tasks.base import make_task as make_task
    from lengthwise.training.loop import train as train
    from lengthwise.training.recipe import Recipe as Recipe

__getattr__ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    """Return the names that tab completion offers."""
    return __all__
