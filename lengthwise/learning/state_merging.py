r"""State merging under wrong labels: a prefix tree is folded into a machine, the most certain decision first.

Red states form the machine so far. Blue states are their children in the tree. Each blue state is either merged into a
red state, which folds its whole subtree into the machine, or becomes red itself. The gain of a merge is the number of
bits that the merge saves in the description of the labels. A state in which the Y different labels occur c_1 ... c_Y
times costs

    bits(c) = -log2 sum_k p_k (1 - e)^(c_k) (e / (Y - 1))^(c_1 + ... + c_Y - c_k)

for the noise rate e and the relative frequencies p_k of the labels in all examples. This formula assumes that each
state has one answer, from which a label differs with probability e. To compute a gain, the bits of all states that the
fold touches are summed before and after the fold, and the sums are subtracted. So a few contradictions cost little,
agreement of many labels saves bits, and a state of mixed labels is expensive. With `with_symbols`, the bits of a state
also describe the symbols that follow the state (`SymbolBits`).

The decision with the largest margin comes first. The margin of a merge is its gain minus the gain of merging the same
blue state into the second best red state. If this second gain is negative, the margin is the gain alone. The margin of
a new red state is the number of bits that the best merge would lose.

Gains are computed without folding. Instead, the nodes below several blue states are traced through the machine at once,
level by level, for all red states (`Hypothesis.gains`). A gain that was computed before the last fold is computed again
only if the merge could be the next decision.

Source: Lang, Pearlmutter and Price, "Results of the Abbadingo One DFA learning competition and a new evidence-driven
    state merging algorithm" (1998), for red and blue states.
Differs from the source: labels may be wrong, so the score is a gain in bits under a noise rate. The most certain
    decision comes first, whether it is a merge or a new red state.
"""

import math
import time
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int64

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.learning.prefix_tree import PrefixTree

NONE = -1
"""The target of a missing transition."""

MIXER = np.uint64(0x9E3779B97F4A7C15)
"""An odd constant that spreads the bits of a hash: 2^64 over the golden ratio."""

AT_ONCE = 4
"""The number of blue states whose gains are computed again together: the states with the largest margins."""

MIN_VISITS = 2
"""The symbols after a node are counted if at least this number of strings pass through the node."""


class LabelBits:
    """A function that returns the number of bits that describe a state's labels: bits(c) in the module docstring."""

    def __init__(self, shares: Float[np.ndarray, " Y"], noise: float) -> None:
        self.log_shares = np.log2(shares)
        self.right, self.wrong = math.log2(1 - noise), math.log2(noise / max(1, len(shares) - 1))

    def __call__(self, counts: Int64[np.ndarray, "N Y"]) -> Float[np.ndarray, " N"]:
        """Return the bits of each row of label counts; a row belongs to one state."""
        logs = counts * (self.right - self.wrong) + self.log_shares
        most = logs.max(1)
        log_sums: np.ndarray = most + np.log2(np.exp2(logs - most[:, None]).sum(1)) + counts.sum(1) * self.wrong
        return -log_sums


class SymbolBits:
    """A function that returns the number of bits for the symbols that follow a state, in Krichevsky-Trofimov code.

    The argument `most` is the largest total of counts for which bits are computed.
    """

    def __init__(self, num_symbols: int, most: int) -> None:
        self.ones = _log_gammas(most, 0.5)
        self.all = _log_gammas(most, num_symbols / 2)

    def __call__(self, counts: Int64[np.ndarray, "N V"]) -> Float[np.ndarray, " N"]:
        """Return the bits of each row of symbol counts; a row belongs to one state."""
        bits: np.ndarray = self.all[counts.sum(1)] - self.ones[counts].sum(1)
        return bits


def _log_gammas(most: int, first: float) -> Float[np.ndarray, " N"]:
    """Return log2 of gamma(first + n) / gamma(first) for n = 0 ... most."""
    logs = np.log2(np.arange(most) + first)
    return np.concatenate([[0.0], np.cumsum(logs)])


class Hypothesis:
    """An unfinished machine: the red states `red` and the trees below them, as one `table` of transitions.

    The module docstring defines red and blue states.

    Each row of `counts` contains the counts of labels in one state and, with `with_symbols`, the counts of the symbols
    that follow the state.
    """

    def __init__(self, tree: PrefixTree, noise: float, with_symbols: bool = False) -> None:
        self.num_symbols = tree.num_symbols
        self.table = np.full((tree.num_nodes, tree.num_symbols), NONE)
        self.table[tree.parents[1:], tree.symbols[1:]] = np.arange(1, tree.num_nodes)
        self.counts = tree.label_counts(np.arange(tree.num_nodes), tree.num_nodes)
        totals = self.counts.sum(0) + 0.5
        self.label_bits = LabelBits(totals / totals.sum(), noise)
        self.num_classes = tree.num_classes
        self.symbol_bits = None
        if with_symbols:
            next_counts = np.zeros((tree.num_nodes, tree.num_symbols), np.int64)
            often = np.flatnonzero(tree.visits[tree.parents[1:]] >= MIN_VISITS) + 1
            next_counts[tree.parents[often], tree.symbols[often]] = tree.visits[often]
            self.counts = np.concatenate([self.counts, next_counts], 1)
            # If all symbols lead back to one state, its counts reach the total length of all strings.
            self.symbol_bits = SymbolBits(tree.num_symbols, int(next_counts.sum()))
        self.red = [0]
        self.is_red = np.zeros(tree.num_nodes, bool)
        self.is_red[0] = True

    def bits(self, counts: Int64[np.ndarray, "N C"]) -> Float[np.ndarray, " N"]:
        """Return the bits of each state's labels and, with `with_symbols`, of the symbols that follow the state."""
        if self.symbol_bits is None:
            return self.label_bits(counts)
        bits = self.label_bits(counts[:, : self.num_classes])
        bits += self.symbol_bits(counts[:, self.num_classes :])
        return bits

    def blue(self) -> dict[int, tuple[int, int]]:
        """Return each blue state with the red state and the symbol that lead to it."""
        sources = np.array(self.red)
        rows, symbols = np.nonzero(self.table[sources] >= 0)
        targets = self.table[sources[rows], symbols]
        kept = ~self.is_red[targets]
        incoming = zip(sources[rows[kept]].tolist(), symbols[kept].tolist(), strict=True)
        return dict(zip(targets[kept].tolist(), incoming, strict=True))

    def promote(self, blue: int) -> None:
        """Make a blue state red, so that it becomes a state of the machine."""
        self.red.append(blue)
        self.is_red[blue] = True

    def fold(self, source: int, symbol: int, blue: int, red: int) -> set[int]:
        """Merge a blue state into a red state, and return the blue states whose trees have grown."""
        table, counts = self.table, self.counts
        touched = set()
        table[source, symbol] = red
        # The nodes below a blue state form a tree, so each node is visited once, and no union-find structure is needed.
        stack = [(red, blue, NONE)]
        while stack:
            image, node, tree = stack.pop()
            counts[image] += counts[node]
            if tree == NONE and not self.is_red[image]:
                tree = image
                touched.add(image)
            row = table[node]
            for v in np.flatnonzero(row >= 0).tolist():
                if (next_image := int(table[image, v])) >= 0:
                    stack.append((next_image, int(row[v]), tree))
                else:
                    table[image, v] = row[v]
        return touched

    def gains(self, blues: Int64[np.ndarray, " B"], reds: Int64[np.ndarray, " R"]) -> Float[np.ndarray, "B R"]:
        """Return the bits that merging each blue state into each red state saves (`gain_by_definition`).

        A string leads from a blue state to each node below it. From the red state, this string leads to the image of
        the node. If a transition is missing on the way, the fold would attach a new node. The new node is named by a
        hash of the last state on the way and of the remaining symbols. Nodes that the fold would unite therefore get
        one name.
        """
        images, nodes, groups = self._images(blues, reds[:, None])
        num_blue, num_red = len(blues), len(reds)
        num_labeled = len(nodes)
        if not num_labeled:
            return np.zeros((num_blue, num_red))
        counts = self.counts[nodes]
        own = np.bincount(groups, self.bits(counts), num_blue)
        # Images of different blue states get different keys, by an offset or by different hashes.
        other = (groups + 1) * np.int64(0x2545F4914F6CDD1D) & np.int64(0x7FFFFFFFFFFFFFFF)
        keys = np.where(images >= 0, images + groups * len(self.table), images ^ other)
        order = np.argsort(keys, 1)
        keys = np.take_along_axis(keys, order, 1)
        is_first = np.ones(keys.shape, bool)
        is_first[:, 1:] = keys[:, 1:] != keys[:, :-1]
        firsts, order = np.flatnonzero(is_first), order.ravel()
        added = np.add.reduceat(counts[order], firsts, 0)
        rows, columns = firsts // num_labeled, order[firsts]
        image = images[rows, columns]
        present = np.where((image >= 0)[:, None], self.counts[np.maximum(image, 0)], 0)
        more = self.bits(present + added) - np.where(image >= 0, self.bits(present), 0.0)
        after = np.bincount(groups[columns] * num_red + rows, more, num_blue * num_red)
        gains: np.ndarray = own[:, None] - after.reshape(num_blue, num_red)
        return gains

    def _images(
        self, blues: Int64[np.ndarray, " B"], reds: Int64[np.ndarray, "R 1"]
    ) -> tuple[Int64[np.ndarray, "R N"], Int64[np.ndarray, " N"], Int64[np.ndarray, " N"]]:
        """Return the images of all nodes that have counts, these nodes, and the index of each node's tree.

        Each blue state is the root of a tree. The images have one row for each red state. If the root is merged into
        this red state, every node of the tree is merged into its image, or becomes a new state. If a node becomes a
        new state, its image is a negative number.
        """
        nodes, groups = blues, np.arange(len(blues))
        images = np.repeat(reds, len(blues), 1)
        parts = []
        while len(nodes):
            is_labeled = self.counts[nodes].any(1)
            parts.append((images[:, is_labeled], nodes[is_labeled], groups[is_labeled]))
            children = self.table[nodes]
            parents, symbols = np.nonzero(children >= 0)
            nodes, groups = children[parents, symbols], groups[parents]
            before = images[:, parents]
            images = np.where(before >= 0, self.table[np.maximum(before, 0), symbols], NONE)
            # The merge redirects the one transition into the blue state.
            images = np.where(images == blues[groups], reds, images)
            attached = np.nonzero(images == NONE)
            hashes = before[attached].astype(np.uint64) * np.uint64(self.num_symbols + 1)
            hashes = (hashes + symbols[attached[1]].astype(np.uint64) + np.uint64(1)) * MIXER
            images[attached] = (hashes ^ (hashes >> np.uint64(29)) | np.uint64(1 << 63)).astype(np.int64)
            images[images == NONE] = NONE - 1
        columns = [np.concatenate(part, -1) for part in zip(*parts, strict=True)]
        return columns[0], columns[1], columns[2]


def gain_by_definition(hypothesis: Hypothesis, blue: int, red: int) -> float:
    """Return the bits that a merge saves: the machine's total bits before the merge, minus the total bits after it."""

    def total(table: np.ndarray, counts: np.ndarray) -> float:
        reached, todo = {0}, [0]
        while todo:
            for target in table[todo.pop()].tolist():
                if target >= 0 and target not in reached:
                    reached.add(target)
                    todo.append(target)
        rows = counts[sorted(reached)]
        return float(hypothesis.bits(rows[rows.any(1)]).sum())

    table, counts = hypothesis.table.copy(), hypothesis.counts.copy()
    before = total(table, counts)
    table[table == blue] = red

    def fold(image: int, node: int) -> None:
        counts[image] += counts[node]
        for v, child in enumerate(table[node].tolist()):
            if child >= 0:
                if table[image, v] >= 0:
                    fold(int(table[image, v]), child)
                else:
                    table[image, v] = child

    fold(red, blue)
    return before - total(table, counts)


class _Margins:
    """The best and the second best merge of each blue state.

    `best` maps a blue state to the largest gain, the red state with this gain, and the second largest gain. `fresh`
    contains the blue states whose gains were computed after the last fold, so that these gains are exact.
    """

    def __init__(self, hypothesis: Hypothesis) -> None:
        self.hypothesis = hypothesis
        self.best: dict[int, tuple[float, int, float]] = {}
        self.fresh: set[int] = set()

    def grade(self, blues: Sequence[int]) -> None:
        """Compute the best and second best merge of each of these blue states with a red state."""
        if not blues:
            return
        reds = self.hypothesis.red
        for blue, row in zip(blues, self.hypothesis.gains(np.array(blues), np.array(reds)), strict=True):
            index = int(row.argmax())
            second = float(np.partition(row, -2)[-2]) if len(row) > 1 else -math.inf
            self.best[blue] = float(row[index]), reds[index], second
            self.fresh.add(blue)

    def compare(self, blues: Sequence[int], red: int) -> None:
        """Update the best merges of these blue states after `red` became red: a merge into `red` may be better."""
        if blues:
            for blue, gain in zip(
                blues, self.hypothesis.gains(np.array(blues), np.array([red]))[:, 0].tolist(), strict=True
            ):
                best, where, second = self.best[blue]
                self.best[blue] = (gain, red, best) if gain > best else (best, where, max(second, gain))

    def margin(self, blue: int) -> float:
        """Return by how many bits the best decision about a blue state beats the alternative (module docstring)."""
        best, _, second = self.best[blue]
        return best - max(second, 0.0) if best >= 0 else -best

    def next(self, blues: Sequence[int]) -> int:
        """Compute the largest margins exactly, and return the blue state with the largest margin."""
        self.grade([blue for blue in blues if blue not in self.best])
        while True:
            largest = sorted(blues, key=self.margin, reverse=True)[:AT_ONCE]
            if largest[0] in self.fresh:
                return largest[0]
            self.grade([blue for blue in largest if blue not in self.fresh])


def merge_states(
    tree: PrefixTree, noise: float, *, with_symbols: bool = False, max_states: int, deadline: float
) -> Hypothesis:
    """Merge states until no blue state is left, and return the hypothesis.

    When `max_states` states are red, or `deadline` (of `time.process_time`) has passed, every further blue state is
    merged, even if no merge saves bits. `repair` can correct these merges.
    """
    hypothesis = Hypothesis(tree, noise, with_symbols)
    margins = _Margins(hypothesis)
    while blue := hypothesis.blue():
        if len(hypothesis.red) >= max_states or time.process_time() > deadline:
            _merge_rest(hypothesis)
            break
        one = margins.next([*blue])
        gain, red, _ = margins.best.pop(one)
        if gain >= 0:
            for changed in hypothesis.fold(*blue[one], one, red):
                margins.best.pop(changed, None)
            margins.fresh.clear()
        else:
            hypothesis.promote(one)
            margins.compare([other for other in blue if other != one], one)
    return hypothesis


def _merge_rest(hypothesis: Hypothesis) -> None:
    """Merge all blue states; in each round, merge the quarter of them with the largest gains."""
    while blue := hypothesis.blue():
        names = np.array([*blue])
        gains = hypothesis.gains(names, np.array(hypothesis.red))
        for index in np.argsort(-gains.max(1))[: max(1, len(names) // 4)].tolist():
            one = int(names[index])
            hypothesis.fold(*blue[one], one, hypothesis.red[int(gains[index].argmax())])


def partial_table(hypothesis: Hypothesis) -> Int64[np.ndarray, "S V"]:
    """Return the transitions between red states, numbered from 0, with -1 for transitions that no example takes."""
    numbers = np.full(len(hypothesis.table) + 1, NONE)
    numbers[hypothesis.red] = np.arange(len(hypothesis.red))
    table: np.ndarray = numbers[hypothesis.table[hypothesis.red]]
    return table


def completed(table: Int64[np.ndarray, "S V"]) -> Int64[np.ndarray, "S V"]:
    """Return the table with a target for each missing transition: the most frequent target of the same symbol.

    If no state has a transition by this symbol, the missing transition leads back to its own state. No example depends
    on this choice.
    """
    num_states = len(table)
    result = table.copy()
    for v in range(table.shape[1]):
        given = table[:, v][table[:, v] >= 0]
        missing = np.flatnonzero(table[:, v] < 0)
        result[missing, v] = np.bincount(given, minlength=num_states).argmax() if len(given) else missing
    return result


def machine_from(
    table: Int64[np.ndarray, "S V"], outputs: Int64[np.ndarray, " S"], symbols: tuple[str, ...]
) -> Transducer:
    """Return the machine with these transitions and start state 0; missing transitions are filled in by `completed`."""
    return Transducer(Semiautomaton(completed(table), symbols), 0, outputs)
