"""Certificates and proofs that someone changed in one place or two, and whether what they then claim is so."""

import contextlib
import copy
import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from proved_nets import Arrays, Proof
from torch import nn

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.models.base import MODELS, SequenceModel
from lengthwise.models.grid_recurrence import GridRecurrence
from lengthwise.models.wrapped import wrap
from lengthwise.validation import split_named

Content = dict[str, Any]
Forgery = tuple[Content, Arrays]

JUNK: list[Any] = [
    *("", " ", "mixture", "Tanh", "tanh ", "t\u0430nh", "relu", "all", "merge", "bare", "proved", "0", "1", "null"),
    *(None, True, False, 0, 1, 2, 3, 7, -1, 0.0, 1.0, 0.5, -0.5, 1e300, 2**31, 2**63, 10**30),
    *([], [1], [2, 2], ["all"], {}, {"name": "rnn"}, [[]], "a" * 5_000),
]
"""Values that no setting should be mistaken for."""


def forgeries(proofs: list[Proof], chance: np.random.Generator) -> Iterator[tuple[Proof, Forgery]]:
    """An endless stream of changed certificates and proofs, each with the proof that it was made from."""
    while True:
        proof = proofs[chance.integers(len(proofs))]
        certificate, arrays = copy.deepcopy(proof.certificate), dict(proof.arrays)
        for _ in range(int(chance.choice([1, 1, 1, 2]))):
            change: Callable[..., None] = CHANGES[chance.integers(len(CHANGES))]
            with contextlib.suppress(LookupError, TypeError, AttributeError, ValueError):  # of what was changed before
                change(certificate, arrays, proofs, chance)
        yield proof, (certificate, arrays)


def any_of(values: Any, chance: np.random.Generator) -> Any:
    items = list(values)
    return items[chance.integers(len(items))]


def change_setting(certificate: Content, arrays: Arrays, proofs: list[Proof], chance: np.random.Generator) -> None:
    certificate["model"][any_of(certificate["model"], chance)] = copy.deepcopy(any_of(JUNK, chance))


def change_keys(certificate: Content, arrays: Arrays, proofs: list[Proof], chance: np.random.Generator) -> None:
    """Leave out a key, or add one, somewhere."""
    content = any_of([certificate, certificate["model"], certificate["transducer"], certificate["evidence"]], chance)
    if chance.random() < 0.5:
        content.pop(any_of(content, chance))
    else:
        name = any_of(["lower_chunk_sizes", "nonlinearity", "hidden", "bias", "first_state", "x", ""], chance)
        content[name] = copy.deepcopy(any_of(JUNK, chance))


def change_certificate(certificate: Content, arrays: Arrays, proofs: list[Proof], chance: np.random.Generator) -> None:
    certificate[any_of(certificate, chance)] = copy.deepcopy(any_of(JUNK, chance))


def change_task(certificate: Content, arrays: Arrays, proofs: list[Proof], chance: np.random.Generator) -> None:
    """Change one number of the task's machine, by a little or to junk."""
    content: Any = certificate["transducer"]
    while True:
        key = any_of(content if isinstance(content, dict) else range(len(content)), chance)
        if isinstance(content[key], list | dict) and content[key]:
            content = content[key]
            continue
        is_number = type(content[key]) is int
        small = any_of([0, 1, 2, 3, -100, 1 - content[key] if is_number else 0], chance)
        content[key] = small if is_number and chance.random() < 0.8 else copy.deepcopy(any_of(JUNK, chance))
        return


def change_number(certificate: Content, arrays: Arrays, proofs: list[Proof], chance: np.random.Generator) -> None:
    """Change one number of a tensor."""
    name = any_of(arrays, chance)
    changed = np.array(arrays[name])
    index = tuple(int(chance.integers(size)) for size in changed.shape)
    if changed.dtype.kind == "i":
        changed[index] += int(any_of([-2, -1, 1, 2, 1000], chance))
    else:
        with np.errstate(all="ignore"):
            changed[index] = any_of(
                [-changed[index], 0, 1e30, math.nan, math.inf, changed[index] + chance.normal()], chance
            )
    arrays[name] = changed


def change_tensor(certificate: Content, arrays: Arrays, proofs: list[Proof], chance: np.random.Generator) -> None:
    """Change a whole tensor: its order, its type, its shape, its scale, or take another's."""
    name = any_of(arrays, chance)
    array = arrays[name]
    changes: list[Callable[[], np.ndarray]] = [
        lambda: array.T,
        lambda: -array,
        lambda: array.astype(np.float64 if array.dtype == np.float32 else np.float32),
        lambda: array.astype(np.int64),
        lambda: array[..., None],
        lambda: array.reshape(-1),
        lambda: np.roll(array, 1),
        lambda: (array * chance.choice([0, 0.5, 0.999, 1.001, 3])).astype(array.dtype),
        lambda: chance.permutation(array) if array.ndim else array,
        lambda: arrays[any_of(arrays, chance)],
        lambda: any_of(any_of(proofs, chance).arrays.values(), chance),
    ]
    with np.errstate(all="ignore"):
        arrays[name] = np.ascontiguousarray(any_of(changes, chance)())


def change_names(certificate: Content, arrays: Arrays, proofs: list[Proof], chance: np.random.Generator) -> None:
    """Leave out a tensor, add one, or take those of another proof."""
    kind = chance.integers(4)
    if kind == 0:
        arrays.pop(any_of(arrays, chance))
    elif kind == 1:
        name = any_of(["weights.first_state", "weights.bias", "sets.low", "sets.x", "weights.codebook.count"], chance)
        arrays[name] = np.zeros(2, np.float32)
    else:
        prefix, other = ("weights.", "sets.")[kind - 2], any_of(proofs, chance)
        for name in [name for name in arrays if name.startswith(prefix)]:
            arrays.pop(name)
        arrays |= {name: array for name, array in other.arrays.items() if name.startswith(prefix)}


def change_everything(certificate: Content, arrays: Arrays, proofs: list[Proof], chance: np.random.Generator) -> None:
    """Take a part of another certificate."""
    name, other = any_of(["model", "transducer", "evidence", "classes", "level"], chance), any_of(proofs, chance)
    certificate[name] = copy.deepcopy(other.certificate[name])


CHANGES = [
    *(change_setting, change_setting, change_keys, change_certificate, change_task, change_task),
    *(change_number, change_number, change_number, change_tensor, change_tensor, change_names, change_everything),
]


def is_true(certificate: Content, arrays: Arrays) -> bool:
    """Whether the net of these settings and weights answers short strings as the certificate's machine does."""
    weights = {
        name.removeprefix("weights."): torch.from_numpy(np.array(array))
        for name, array in arrays.items()
        if name.startswith("weights.")
    }
    content, classes = certificate["transducer"], certificate["classes"]
    if "cells" in content:
        return rule_is_true(certificate, weights)
    task = Transducer.from_json(content)
    model = model_of(certificate["model"], weights, len(task.symbols), len(classes))
    with torch.no_grad():
        for length in range(1, 8 if len(task.symbols) == 2 else 6):
            strings = torch.tensor(list(itertools.product(range(len(task.symbols)), repeat=length)))
            right = torch.from_numpy(task.run(strings.numpy())[:, -1].copy())
            graded = right != IGNORE
            if not torch.equal(model.last(strings).argmax(-1)[graded], right[graded]):
                return False
    return True


def rule_is_true(certificate: Content, weights: dict[str, torch.Tensor]) -> bool:
    """Whether a grid recurrence gives the numbers of a rule, wherever there is a class for them."""
    task, num_classes = GridMachine.from_json(certificate["transducer"]), len(certificate["classes"])
    size = len(task.symbols)
    model = model_of(certificate["model"], weights, size + 2, num_classes)
    assert isinstance(model, GridRecurrence)
    with torch.no_grad():
        for n, m in itertools.product(range(1, 4), repeat=2):
            letters = np.array(list(itertools.product(range(size), repeat=n + m)))
            right = task.run(letters[:, :n], letters[:, n:])
            bar, sep = (np.full((len(letters), 1), symbol) for symbol in (1, 0))
            problems = torch.from_numpy(np.hstack([letters[:, :n] + 2, bar, letters[:, n:] + 2, sep]))
            graded = (right >= 0) & (right < num_classes)
            if not np.array_equal(model.last(problems).argmax(-1).numpy()[graded], right[graded]):
                return False
    return True


def model_of(
    description: Content, weights: dict[str, torch.Tensor], num_symbols: int, num_classes: int
) -> SequenceModel:
    """The model that settings and weights make, by torch."""
    name, settings = split_named(description)
    dtype = next(tensor.dtype for tensor in weights.values() if tensor.is_floating_point())
    if name == "wrapped":
        model = wrapped_of(settings, weights).to(dtype)
        # The given head may be nested: its tensors are in the order of its chain, by other names.
        weights = dict(zip(model.state_dict(), weights.values(), strict=True))
    else:
        kind: Any = MODELS[name]
        model = kind(kind.Config(**settings), vocab_size=num_symbols, num_classes=num_classes).to(dtype)
    model.load_state_dict(weights)
    return model.eval()


def wrapped_of(settings: Content, weights: dict[str, torch.Tensor]) -> SequenceModel:
    """A wrapped net of the sizes that its weights have."""
    embedding = nn.Embedding(*weights["embedding.weight"].shape)
    kind = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[settings["core"]]
    options = {"nonlinearity": settings["nonlinearity"]} if "nonlinearity" in settings else {}
    core = kind(
        embedding.embedding_dim,
        settings["hidden_size"],
        settings["num_layers"],
        bias="core.bias_ih_l0" in weights,
        **options,
    )
    prefixes = [name.removesuffix(".weight") for name in weights if re.match(r"readout\.1.*weight", name)]
    parts: list[nn.Module] = []
    for part in settings["head"].split(", "):
        if part == "Linear":
            prefix = prefixes.pop(0)
            rows, columns = weights[f"{prefix}.weight"].shape
            parts.append(nn.Linear(columns, rows, bias=f"{prefix}.bias" in weights))
        elif part.startswith("LayerNorm"):
            epsilon = float(part.partition("eps=")[2].rstrip(")") or 1e-5)
            parts.append(nn.LayerNorm(weights[f"{prefixes.pop(0)}.weight"].shape, eps=epsilon))
        else:
            parts.append(getattr(nn, part)())
    return wrap(embedding, core, nn.Sequential(*parts))
