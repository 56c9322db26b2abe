"""The tasks of `peers.py`: this package and a peer do each of them, at growing sizes.

For each size, a task makes two functions without arguments, ours and theirs, and a function that compares their
results.
"""

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import language_model
import numpy as np
import other_recurrences
import torch
import torch.nn.functional as F
import transformer
from public_recurrences import PUBLIC, Stack
from torch import Tensor, nn

from lengthwise.automata import Semiautomaton
from lengthwise.automata.answers import REJECT_ACCEPT
from lengthwise.automata.dfa import DFA
from lengthwise.automata.monoid import transition_monoid
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.certification.certify import certify
from lengthwise.layers.recurrent_layer import hidden_layer_readout
from lengthwise.learning.learned import learn
from lengthwise.models.machine import TransducerModel
from lengthwise.models.transformer import Transformer, TransformerConfig
from lengthwise.tasks.regular.machine import machine_task


class Pair(NamedTuple):
    """The same task, done by us and by a peer. `are_equal` compares the two results.

    `floor` does only the part of our work that the peer does not do, if this part can be timed separately.
    """

    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    are_equal: Callable[[Any, Any], bool]
    floor: Callable[[], Any] | None = None


class Work(NamedTuple):
    """A task: its title, the peer's distribution and its name in the table, the sizes, and `make` for a size.

    `aim` is the required ratio of their time to ours. `reason` explains a ratio below it: what our work contains that
    the peer's does not, or the least work that remains. It may contain `{floor}`, for the time of the pair's floor.
    """

    title: str
    distribution: str
    peer: str
    unit: str
    sizes: Sequence[int]
    make: Callable[[int], Pair]
    aim: float = 1.0
    reason: str = ""


def _dfa_of(table: np.ndarray, accepting: np.ndarray) -> tuple[DFA, Any]:
    """Return the automaton with this table and start 0, in our form and in automata-lib's form."""
    from automata.fa import dfa as peer

    symbols = tuple("abcdefgh"[: table.shape[1]])
    theirs = peer.DFA(
        states=set(range(len(table))),
        input_symbols=set(symbols),
        transitions={state: dict(zip(symbols, row, strict=True)) for state, row in enumerate(table.tolist())},
        initial_state=0,
        final_states=set(np.flatnonzero(accepting).tolist()),
    )
    return DFA(Semiautomaton(table, symbols), 0, accepting), theirs


def _counter(size: int) -> tuple[DFA, Any]:
    """Return the automaton of strings whose number of a is a multiple of the size."""
    states = np.arange(size)
    return _dfa_of(np.column_stack([(states + 1) % size, states]), states == 0)


def _chain(size: int) -> tuple[DFA, Any]:
    """Return the automaton of strings that end with `size` - 1 times a in a row."""
    states = np.arange(size)
    return _dfa_of(np.column_stack([np.minimum(states + 1, size - 1), 0 * states]), states == size - 1)


def _drawn(size: int) -> tuple[DFA, Any]:
    chance = np.random.default_rng(0)
    return _dfa_of(chance.integers(size, size=(size, 2)), chance.random(size) < 0.5)


def _minimize(kind: Callable[[int], tuple[DFA, Any]]) -> Callable[[int], Pair]:
    def make(size: int) -> Pair:
        ours, theirs = kind(size)
        return Pair(ours.minimize, theirs.minify, lambda mine, other: mine.num_states == len(other.states))

    return make


def _compare_counters(size: int) -> Pair:
    (ours, theirs), (our_next, their_next) = _counter(size), _counter(size + 1)
    return Pair(lambda: ours.equivalent(our_next), lambda: theirs == their_next, lambda mine, other: mine is other)


def _compare_drawn(size: int) -> Pair:
    """Compare an automaton with its copy."""
    (ours, theirs), (our_copy, their_copy) = _drawn(size), _drawn(size)
    return Pair(lambda: ours.equivalent(our_copy), lambda: theirs == their_copy, lambda mine, other: mine and other)


def _products_in_group(size: int) -> Pair:
    """Compute all products of a cycle and a swap of `size` points, which are the symmetric group."""
    points = np.arange(size)
    machine = Semiautomaton(np.column_stack([(points + 1) % size, [1, 0, *points[2:]]]), ("a", "b"))
    generators = [tuple(column) for column in machine.table.T.tolist()]

    def plain() -> int:
        elements = [tuple(range(size))]
        known = set(elements)
        for element in elements:
            for generator in generators:
                product = tuple(generator[point] for point in element)
                if product not in known:
                    known.add(product)
                    elements.append(product)
        return len(elements)

    return Pair(lambda: transition_monoid(machine).size, plain, lambda mine, other: mine == other)


def _read_one_string(size: int) -> Pair:
    """Decide whether one string of a million symbols and more is in the language (a|b)*abb."""
    import re2

    pattern = "(a|b)*abb"
    ids = np.random.default_rng(0).integers(2, size=size)
    text = "".join("ab"[symbol] for symbol in ids.tolist())
    model = TransducerModel(dfa_from_regex(pattern).transducer, REJECT_ACCEPT)
    inputs = torch.from_numpy(ids[None])
    compiled = re2.compile(pattern)
    return Pair(
        lambda: bool(model.last(inputs).argmax(-1)),
        lambda: compiled.fullmatch(text) is not None,
        lambda mine, other: mine is other,
    )


def _learn(algorithm: str) -> Callable[[int], Pair]:
    """Learn a machine of ten states from labeled strings of 1 to 30 symbols; ours ends with a certificate."""

    def make(size: int) -> Pair:
        import aalpy.learning_algs

        chance = np.random.default_rng(0)
        target = DFA(Semiautomaton(chance.integers(10, size=(10, 3)), tuple("abc")), 0, chance.random(10) < 0.5)
        strings = [chance.integers(3, size=length) for length in chance.integers(1, 31, size=size)]
        labels = [bool(target.accepts(string[None])[0]) for string in strings]
        rows = [
            ("".join("abc"[symbol] for symbol in string), label) for string, label in zip(strings, labels, strict=True)
        ]
        theirs = [(tuple(text), label) for text, label in rows]
        run = getattr(aalpy.learning_algs, f"run_{algorithm}")
        learned = learn(rows)
        return Pair(
            lambda: learn(rows),
            lambda: run(theirs, automaton_type="dfa", print_info=False),
            lambda mine, other: len(other.states) > 0 and mine.machine.num_states > 0,
            lambda: certify(learned.model, machine_task(learned.labeled)),
        )

    return make


def _evaluate(positions: str) -> Callable[[int], Pair]:
    """Compute the logits of all positions of one text; the peer has no biases, so its scores need less work."""

    def make(size: int) -> Pair:
        config = TransformerConfig(d_model=128, num_heads=4, num_layers=4, positions=positions, readout="tied")
        generator = torch.Generator().manual_seed(0)
        ours = Transformer(config, vocab_size=64, num_classes=64, generator=generator).eval()
        theirs = language_model.NanoGPT(language_model.Size(128, 4, 4, 0, 1, size, 64)).eval()
        inputs = torch.randint(64, (1, size), generator=generator)
        return Pair(
            torch.no_grad()(lambda: ours(inputs)),
            torch.no_grad()(lambda: theirs(inputs)),
            lambda mine, other: mine.shape == other.shape and bool(mine.isfinite().all()),
        )

    return make


def _step(model: nn.Module, inputs: Tensor) -> Callable[[], Tensor]:
    """Return a function that returns the loss of all prefixes and computes all its gradients."""
    parameters = list(model.parameters())

    def step() -> Tensor:
        loss = F.cross_entropy(model(inputs).flatten(0, 1), inputs.flatten())
        torch.autograd.grad(loss, parameters, allow_unused=True)
        return loss

    return step


def _are_losses(mine: Tensor, other: Tensor) -> bool:
    return bool(mine.isfinite() and other.isfinite())


def _recurrence(name: str) -> Callable[[int], Pair]:
    """Take a training step of our LSTM or GRU, and of the same net made of torch's modules."""

    def make(size: int) -> Pair:
        inputs = other_recurrences.draw(128, size)
        width = 64
        core = {"gru": nn.GRU, "lstm": nn.LSTM}[name](width, width, batch_first=True)
        readout = hidden_layer_readout(width, width, other_recurrences.NUM_CLASSES)
        theirs = Stack(nn.Embedding(other_recurrences.NUM_SYMBOLS, width), _Residual(core), readout)
        ours = other_recurrences.make(other_recurrences.Way(name, name), width)
        return Pair(_step(ours, inputs), _step(theirs, inputs), _are_losses)

    return make


class _Residual(nn.Module):
    """The map x + f(norm(x)) for a recurrence f of torch, as in our net."""

    def __init__(self, recurrence: nn.RNNBase) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(recurrence.input_size)
        self.recurrence = recurrence

    def forward(self, features: Tensor) -> Tensor:
        outputs: Tensor = features + self.recurrence(self.norm(features))[0]
        return outputs


def _published(title: str) -> Callable[[int], Pair]:
    """Take a training step of one of our recurrences, and of the package with the same layer."""

    def make(size: int) -> Pair:
        width = 64
        way = next(way for way in other_recurrences.WAYS if way.title == title)
        public = next(public for public in PUBLIC if public.ours == title)
        inputs = other_recurrences.draw(128, size)
        readout = hidden_layer_readout(width, width, other_recurrences.NUM_CLASSES)
        theirs = Stack(nn.Embedding(other_recurrences.NUM_SYMBOLS, width), public.make(width), readout)
        return Pair(_step(other_recurrences.make(way, width), inputs), _step(theirs, inputs), _are_losses)

    return make


def _encoder(size: int) -> Pair:
    """Take a training step of a transformer without positions; `transformer.py` compares all values and gradients."""
    shape = transformer.Size(5, 64, 4, 5120 // size, size)
    inputs = torch.randint(
        transformer.NUM_SYMBOLS, (shape.batch_size, size), generator=torch.Generator().manual_seed(0)
    )
    return Pair(_step(transformer.make(shape, "none"), inputs), _step(transformer.Peer(shape), inputs), _are_losses)


def _text_step(size: int) -> Pair:
    """Take a training step of a GPT-2 of six layers on four texts; `language_model.py` compares the results."""
    shape = language_model.Size(128, 4, 6, 64, 4, size, 4096)
    inputs = torch.randint(shape.vocab_size, (shape.batch_size, size), generator=torch.Generator().manual_seed(0))
    ours, theirs = language_model.make_transformer(shape), language_model.NanoGPT(shape)
    return Pair(_step(ours, inputs), _step(theirs, inputs), _are_losses)


def _start(words: Sequence[str]) -> Callable[[int], Pair]:
    """Run a command in a new process, and `import torch` in another."""

    def run(arguments: Sequence[str]) -> int:
        return subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL).returncode

    return lambda size: Pair(
        lambda: run(["-m", "lengthwise", *words]),
        lambda: run(["-c", "import torch"]),
        lambda mine, other: mine == other,
    )


STATES = (1_250, 2_500, 5_000, 10_000)
STRINGS = (1_250, 2_500, 5_000)
LENGTHS = (512, 1024, 2048, 4096)
LONG = (1 << 18, 1 << 20, 1 << 22)
TORCH: Mapping[str, Any] = {"distribution": "torch", "unit": "symbols"}
WITHOUT_BIASES: Mapping[str, Any] = {**TORCH, "peer": "GPT-2 without biases", "sizes": LENGTHS, "aim": 0.8}

LEARN: Mapping[str, Any] = {
    "distribution": "aalpy",
    "unit": "strings",
    "sizes": STRINGS,
    "reason": (
        "The peer trusts every label. This package allows for wrong labels, compiles the machine to a net, and "
        "proves the net. By themselves, the proof and the tests of the net take {floor} ms."
    ),
}
FIRE_REASON = (
    "Beyond 512 positions, the bias of FIRE for a pair of positions depends on both positions. A net with 32 hidden "
    "units computes this bias, with 160 multiplications for each pair of positions. Attention itself has 256 "
    "multiplications for each pair, in fast matrix products."
)
RE2_REASON = (
    "Both look up one state for each symbol. Ours reads a number of eight bytes for each symbol, the peer one byte."
)

WORKS = (
    Work("minimize a counter", "automata-lib", "`minify`", "states", STATES, _minimize(_counter)),
    Work("minimize a chain", "automata-lib", "`minify`", "states", STATES, _minimize(_chain)),
    Work("minimize a random machine", "automata-lib", "`minify`", "states", STATES, _minimize(_drawn)),
    Work("minimize a small machine", "automata-lib", "`minify`", "states", (5, 10, 20), _minimize(_drawn)),
    Work("compare counters of n and n + 1", "automata-lib", "`==`", "states", (150, 300, 600), _compare_counters),
    Work("compare a random machine and its copy", "automata-lib", "`==`", "states", STATES, _compare_drawn),
    Work("multiply out a symmetric group", "python", "15 lines", "points", (5, 6, 7), _products_in_group),
    Work("read one string, (a|b)*abb", "google-re2", "`fullmatch`", "symbols", LONG, _read_one_string, 1.0, RE2_REASON),
    Work("learn a machine of ten states", peer="`run_RPNI`", make=_learn("RPNI"), **LEARN),
    Work("learn a machine of ten states", peer="`run_EDSM`", make=_learn("EDSM"), **LEARN),
    Work("train an LSTM", peer="`nn.LSTM`", sizes=(40, 160), make=_recurrence("lstm"), aim=0.95, **TORCH),
    Work("train a GRU", peer="`nn.GRU`", sizes=(40, 160), make=_recurrence("gru"), aim=0.95, **TORCH),
    Work("train a transformer", peer="`nn.TransformerEncoder`", sizes=(40, 160, 640), make=_encoder, aim=0.95, **TORCH),
    Work("train on text", peer="GPT-2 as in nanoGPT", sizes=(256, 512), make=_text_step, aim=0.95, **TORCH),
    Work("evaluate with ALiBi", make=_evaluate("alibi"), **WITHOUT_BIASES),
    Work("evaluate with FIRE", make=_evaluate("fire"), reason=FIRE_REASON, **WITHOUT_BIASES),
    Work("evaluate with T5's", make=_evaluate("t5"), **WITHOUT_BIASES),
    Work("evaluate with KERPLE", make=_evaluate("kerple-log"), **WITHOUT_BIASES),
    Work("train mLSTM, convolution", "xlstm", "`mLSTMLayer`", "symbols", (40, 160), _published("mLSTM, convolution")),
    Work("train sLSTM", "xlstm", "`sLSTMLayer`", "symbols", (40, 160), _published("sLSTM")),
    Work("train Mamba, convolution", "mambapy", "`MambaBlock`", "symbols", (40, 160), _published("Mamba, convolution")),
    Work("`lengthwise show parity`", "torch", "`import torch`", "command", (1,), _start(["show", "parity"])),
    Work("`lengthwise list tasks`", "torch", "`import torch`", "command", (1,), _start(["list", "tasks"])),
)
"""All tasks. A run leaves out the tasks whose peer is not installed, and the page names these peers."""
