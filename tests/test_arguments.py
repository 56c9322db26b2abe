"""Public functions called with arguments of another kind: one sentence that begins with the argument's name."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

import lengthwise
from lengthwise import Recipe, certify, construct, length_curve, make_model, make_spec, make_task, task_from_function
from lengthwise.automata import DFA, Semiautomaton, Transducer
from lengthwise.export.base import export
from lengthwise.runs.pools.sweep import execute_all
from lengthwise.training.recipe import PaceRecipe

pytestmark = pytest.mark.unchecked  # the package itself is to refuse them, without beartype

JUNK: tuple[Any, ...] = (
    *(None, 1, -1, 1.5, "x", "", [], {}, object(), True, float("nan"), float("inf"), 10**12, -(10**12)),
    *([10**12], b"x", (None,), [None], ["a", 1], np.array([1.5]), lambda: 0, [1, "a"]),
)

FLIP = np.array([[0, 1], [1, 0]])
PARITY = make_task("parity")
DECISION_TREE = make_task("decision-tree")
NET = make_model("gru", PARITY, d_model=4)
OTHER = make_model("gru", PARITY, d_model=4, seed=1)
TRANSFORMER = make_model("regular-gpt", PARITY, d_model=8, num_heads=2)
SPEC = make_spec("parity", "gru", {"train": {"steps": 2}})
PAIRS = [("ab", "x"), ("b", "y")] * 8


def first_tokens(**arguments: Any) -> object:
    """Only look at the arguments of `learn`: a machine is learned for none that is accepted."""
    return lengthwise.learn(PAIRS[:2], **arguments)


CALLS: dict[str, tuple[Callable[..., object], dict[str, object]]] = {
    "make_task": (make_task, {"name": "parity"}),
    "make_model": (make_model, {"name": "gru", "task": PARITY, "seed": 0}),
    "construct": (construct, {"name": "rnn", "machine": PARITY}),
    "wrap": (
        lengthwise.wrap,
        {"embedding": nn.Embedding(2, 4), "core": nn.LSTM(4, 4), "head": nn.Linear(4, 2), "num_symbols": 2},
    ),
    "wrap_module": (
        lengthwise.wrap_module,
        {
            "module": NET,
            "num_classes": 2,
            "answers": None,
            "num_symbols": 2,
            "tokens": None,
            "begin": None,
            "max_length": None,
        },
    ),
    "wrap_hugging_face": (
        lengthwise.wrap_hugging_face,
        {"model": NET, "head": nn.Linear(4, 2), "answers": None, "tokens": None, "begin": None, "max_length": None},
    ),
    "SetAnswers": (
        lengthwise.SetAnswers,
        {
            "task": make_task("next-symbols", with_other=True),
            "above": 0.0,
            "score": "logit",
            "tokens": None,
        },
    ),
    "length_curve": (
        length_curve,
        {
            "model": NET,
            "task": PARITY,
            "lengths": [3, 4],
            "num_strings": 2,
            "seed": 0,
            "protocol": "independent",
            "set_progress": lambda fraction: None,
        },
    ),
    "error_curve": (
        lengthwise.error_curve,
        {"model": NET, "task": DECISION_TREE, "length": 5, "num_prompts": 2, "seed": 0},
    ),
    "train": (
        lengthwise.train,
        {
            "model": NET,
            "task": PARITY,
            "recipe": Recipe(steps=1, batch_size=2, max_length=4),
            "seed": 0,
            "on_step": lambda record: None,
        },
    ),
    "equal": (lengthwise.equal, {"net": NET, "other": OTHER, "symbols": "ab", "classes": ("0", "1"), "seed": 0}),
    "attack": (
        lengthwise.attack,
        {"model": NET, "task": PARITY, "budget": 0.1, "max_length": 9, "seed": 0},
    ),
    "task_from_function": (
        task_from_function,
        {"f": str.isupper, "alphabet": "aB", "max_states": 3, "strings": (), "title": "upper"},
    ),
    "extract": (lengthwise.extract, {"model": TRANSFORMER, "symbols": "ab", "classes": ("0", "1")}),
    "certify": (partial(certify), {"model": None, "task": None}),
    "machine_model": (lengthwise.machine_model, {"certificate": None}),
    "streamed_machine_model": (lengthwise.streamed_machine_model, {"certificate": None}),
    "make_spec": (
        make_spec,
        {
            "task": "parity",
            "model": "gru",
            "settings": {},
            "preset": None,
            "seed": 0,
            "goal": None,
            "budget": 1.0,
            "other_tasks": (),
        },
    ),
    "execute": (
        lengthwise.execute,
        {
            "spec": None,
            "root": "runs",
            "plan": None,
            "listener": lambda progress: None,
            "stop_requested": lambda: False,
            "device": None,
        },
    ),
    "load_run": (lengthwise.load_run, {"path": "none"}),
    "load_compiled": (lengthwise.load_compiled, {"folder": "none"}),
    "save_hub": (
        lengthwise.save_hub,
        {"folder": "hub", "model": NET, "task": PARITY, "source": ("a", "b"), "run": None, "trained_to": None},
    ),
    "load_hub": (lengthwise.load_hub, {"folder": "none"}),
    "learn": (
        first_tokens,
        {
            "separator": "",
            "string": None,
            "label": None,
            "supervision": "last",
            "budget": 0.0,
            "seed": 0,
            "exact": False,
            "report": lambda attempt: None,
        },
    ),
    "learn_system": (
        lengthwise.learn_system,
        {"system": None, "symbols": "ab", "max_states": 3, "max_steps": 100, "report": lambda counts: None},
    ),
    "Semiautomaton": (Semiautomaton, {"table": FLIP, "symbols": ("a", "b")}),
    "DFA": (
        DFA,
        {"semiautomaton": Semiautomaton(FLIP, ("a", "b")), "start": 0, "accepting": np.array([True, False])},
    ),
    "Transducer": (
        Transducer,
        {"semiautomaton": Semiautomaton(FLIP, ("a", "b")), "start": 0, "outputs": np.array([0, 1])},
    ),
}

NAMED = re.compile(r"^([\w.\[\]'/ -]+: .+|unknown (task|model|construction|preset) .* \(known: )")


def refusal(function: Callable[..., object], arguments: dict[str, object]) -> str:
    """Return the sentence of an error; it is empty if there was none."""
    try:
        function(**arguments)
    except (ValueError, TypeError, LookupError) as error:  # names that are not registered are a LookupError
        return str(error)
    return ""


@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_another_kind_are_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    function, arguments = CALLS[name]
    for argument in arguments:
        for junk in JUNK:
            sentence = refusal(function, {**arguments, argument: junk})
            is_called = callable(junk) and "takes 0 positional arguments" in sentence  # a function, but another one
            assert not sentence or is_called or NAMED.match(sentence), f"{name}({argument}={junk!r}): {sentence}"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: first_tokens(seed=None),
            "seed: expected a whole number of at least 0, got None; give a number such as 0",
        ),
        (
            lambda: certify(NET, PARITY, seed="x"),
            "seed: expected a whole number of at least 0, got 'x'; give a number such as 0",
        ),
        (
            lambda: lengthwise.equal(NET, NET, seed=1.5),
            "seed: expected a whole number of at least 0, got 1.5; give a number such as 0",
        ),
        (
            lambda: lengthwise.equal(NET, "x"),
            "other: expected a model of this package, got str; for a recurrent net of your own, call "
            "`lengthwise.wrap(embedding, core, head)`, and for any other net `lengthwise.wrap_module`",
        ),
        (
            lambda: lengthwise.equal(NET, OTHER, classes=("a",)),
            "classes: expected 2 names, one for each answer of the nets, got 1; name all classes",
        ),
        (
            lambda: lengthwise.equal(NET, OTHER, classes=("a", "a")),
            "classes: expected names that are not empty and differ from one another, got ('a', 'a'); rename them",
        ),
        (
            lambda: lengthwise.extract(NET, ("a", ""), ("no", "yes")),
            "symbols: expected distinct single characters, got ''; give each symbol one character of its own",
        ),
        (
            lambda: PaceRecipe(3),
            "PaceRecipe: expected settings by name, got 3; write name=value (known: solved_loss, "
            "final_loss, contract_steps, contract_after, patience, latest)",
        ),
        (lambda: task_from_function(3, "ab"), "f: expected a function, got 3; give one"),
        (lambda: first_tokens(separator=1), "separator: expected a text, got 1; give one"),
        (lambda: first_tokens(budget=None), "budget: expected a number of CPU seconds, 0 or more, got None; try 60"),
        (
            lambda: length_curve(NET, PARITY, [3], protocol=None),
            "protocol: expected one of independent, one-pass, structured, got None; choose one of these",
        ),
        (
            lambda: length_curve(NET, PARITY, "40-60"),
            "lengths: expected a list of lengths, such as [41, 100], got '40-60'; put the length in brackets, "
            "as a number",
        ),
        (
            lambda: length_curve(NET, PARITY, [10**12]),
            "lengths: expected at most 10,000,000 symbols in each of 256 strings, got 1,000,000,000,000; measure "
            "shorter or fewer strings",
        ),
        (
            lambda: length_curve(NET, PARITY, [10**7], num_strings=10**6),
            "lengths: expected at most 4,294 symbols in each of 1,000,000 strings, got 10,000,000; measure shorter or "
            "fewer strings",
        ),
        (
            lambda: Semiautomaton(FLIP, None),
            "symbols: expected several texts, got None; give a list of texts",
        ),
        (lambda: DFA(None, 0, np.array([True])), "semiautomaton: expected a Semiautomaton, got None; give one"),
        (lambda: lengthwise.load_run(None), "path: expected a path, got None; give one"),
        (
            lambda: make_spec("parity", "gru", budget="x"),
            "goal.budget: expected a valid number, got 'x'; give such a value",
        ),
        (
            lambda: make_spec("parity", "gru", budget=-1),
            "goal.budget: expected a number greater than or equal to 0, got -1; give such a value",
        ),
        (
            lambda: lengthwise.execute(SPEC, __file__),
            f"root: expected a folder, got the file {__file__}; name another folder",
        ),
        (lambda: lengthwise.execute(SPEC, "runs", {}), "plan: expected an EvaluationPlan, got {}; give one"),
        (lambda: lengthwise.execute(SPEC, "runs", 0), "plan: expected an EvaluationPlan, got 0; give one"),
        (
            lambda: execute_all([SPEC], Path(__file__, "runs"), [], print, pool=ThreadPoolExecutor()),
            f"root: expected a folder, got the file {__file__}; name another folder",
        ),
        (
            lambda: lengthwise.save_hub(Path(__file__, "hub"), NET, PARITY),
            f"folder: expected a folder, got the file {__file__}; name another folder",
        ),
        (
            lambda: lengthwise.save_hub("", NET, PARITY),
            "folder: expected a path, got ''; give one, or '.' for the current folder",
        ),
        (
            lambda: lengthwise.wrap_module(NET, num_classes=2, tokens=[3, 0, 3]),
            "tokens: expected tokens that differ, got 3 more than once; give each symbol a token of its own (a "
            "tokenizer may lack some of the symbols)",
        ),
        (
            lambda: lengthwise.save_hub("hub", NET, PARITY, trained_to=-3),
            "trained_to: expected a number greater than or equal to 1, got -3; give such a value",
        ),
        (
            lambda: export("(a|b)*", "onnx", "net.onnx", 3),
            "options: expected an Options of lengthwise.export.base, got 3; give one",
        ),
        (lambda: make_spec("parity", "gru", None), "settings: expected sections of settings, got None; give one"),
    ],
)
def test_the_sentence_has_what_is_missing_and_what_came(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    assert str(error.value) == sentence
