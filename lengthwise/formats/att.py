"""The text format of AT&T's tools, which OpenFst, foma and HFST read and print."""

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.arcs import EPSILON, EPSILONS, Arc, are_copies, are_weights, is_doubtful, machine_of_arcs
from lengthwise.formats.base import FORMATS, ReadableFormat
from lengthwise.formats.draft import MAX_EDGES
from lengthwise.formats.limits import check_text
from lengthwise.validation import quoted

MAX_LINES = 2 * MAX_EDGES
"""The largest number of lines in a file. Each line contains an edge or a final state."""


@FORMATS.register("att")
class ATT(ReadableFormat):
    r"""AT&T text: one line for each edge, and one line with only a state's number for each final state.

    The first line begins with the initial state. Edges of an automaton are ``source target symbol``. Edges of any other
    machine are ``source target symbol output``, and its answer to a string is the last output. A string has no answer
    if that output is ``<eps>``, the last state is not final, or an edge is missing. The empty string never has an
    answer.

    - If every edge repeats its symbol as its output, the machine is an automaton, because ``fstprint`` prints automata
      in this way.
    - ``<eps>``, ``<epsilon>``, ``ε``, foma's and HFST's ``@0@`` and ``@_EPSILON_SYMBOL_@``, and an empty field between
      tabs mean no symbol. Other words that mean no symbol in some tools (``λ``, ``epsilon``, ``@_IDENTITY_SYMBOL_@``)
      are rejected.
    - If all outputs are numbers, they are read as weights, and the file is rejected.
    - Symbols are texts; a separate table that numbers them is not read. If all symbols are numbers, 0 is a symbol only
      if each state has exactly one edge for each number. Otherwise the file is rejected, because tools without a table
      print 0 for no symbol.

    Example:
        >>> ATT.read("0 1 a\n1 0 a\n1\n").machine.outputs.tolist()
        [0, 1]

    Source: Allauzen, Riley, Schalkwyk, Skut and Mohri, "OpenFst" (2007).
    Differs from the source: weights other than 0 are rejected, and so are edges of transducers that read nothing.
    """

    suffixes = (".att", ".txt")

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """Return lines for the edges of the initial state, the edges of all other states, and the final states."""
        answers, outputs = machine.answer_names(), machine.machine.outputs
        if not machine.is_automaton:
            _check_answers(machine)
        for name in (*machine.symbols, *filter(None, answers)):
            # Some tools read these words as no symbol, so they would read another machine from the file.
            if name.split() != [name] or name in EPSILONS or is_doubtful(name):
                raise ValueError(
                    f"expected symbols and answers without spaces or a special meaning, got {name!r}; rename it"
                )
        lines = []
        # The initial state comes first, because a reader takes the source of the first line as initial.
        edges = sorted(machine.machine.semiautomaton.edges(), key=lambda edge: edge[0] != machine.machine.start)
        for state, symbol, target in edges:
            output = "" if machine.is_automaton else f"\t{answers[target] or EPSILON}"
            lines.append(f"{state}\t{target}\t{symbol}{output}")
        if machine.is_automaton:
            lines += [str(state) for state, output in enumerate(outputs) if output == machine.accepting_class]
        else:
            lines += [str(state) for state, answer in enumerate(answers) if answer]
        return "\n".join(lines) + "\n"

    @staticmethod
    def read(text: str) -> LabeledMachine:
        """Return the machine that the lines of a file describe."""
        check_text(text)
        rows = att_rows(text)
        widths = {len(words) for _, words in rows} - {1, 2}
        if widths not in ({3}, {4}):
            widths_in_words = " and ".join(map(str, sorted(widths)))
            raise ValueError(
                "expected edges that all have 3 words, or all have 4, got "
                f"{f'edges of {widths_in_words} words' if widths else 'no edge'}; write source, target, symbol and, "
                "for a transducer, output"
            )
        arcs = [
            Arc(words[0], words[1], words[2], words[3] if len(words) > 3 else None, number)
            for number, words in rows
            if len(words) > 2
        ]
        return machine_of_arcs(rows[0][1][0], arcs, {words[0]: None for _, words in rows if len(words) < 3})


def att_rows(text: str) -> list[tuple[int, list[str]]]:
    r"""Return the line number and the words of each line that is not blank. A field between tabs may be empty.

    Weights of 0 on edges are left out.

    Raises:
        ValueError: a field contains spaces; a state's field is empty; a weight is not 0; a line separates two machines;
            or the text has more than `MAX_LINES` lines.

    Example:
        >>> att_rows("0\t1\t\ta\n\n1 0\n")
        [(1, ['0', '1', '', 'a']), (3, ['1', '0'])]
    """
    rows: list[tuple[int, list[str]]] = []
    known: dict[str, str] = {}  # each word is stored once, because a file repeats its words
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("\t") if "\t" in line else line.split()
        if not line.strip():
            continue
        for word in words:
            if word and word.split() != [word.strip(" ")]:
                raise ValueError(f"line {number}: expected symbols without spaces, got {word[:40]!r}; rename it")
        words = [known.setdefault(word, word) for word in map(str.strip, words)]
        if words == ["--"]:
            raise ValueError(
                f"line {number}: expected one machine, got '--', after which another machine begins; split the file"
            )
        if not all(words[:2]):
            raise ValueError(f"line {number}: expected a state, got an empty field; name the state")
        if len(words) in (2, 5) and not _is_zero(words[-1]):
            raise ValueError(
                f"line {number}: expected no weight but 0, got {quoted(words[-1][:40])}; leave weights out"
            )
        if len(rows) == MAX_LINES:
            raise ValueError(
                f"line {number}: expected at most {MAX_LINES:,} edges and final states in the file, got more; make the "
                "machine smaller"
            )
        rows.append((number, words[:4] if len(words) == 5 else words))
    return rows


def _check_answers(machine: LabeledMachine) -> None:
    """Raise a ValueError if a reader would take the outputs of the edges for weights or for symbols."""
    answers = machine.answer_names()
    labels = [(symbol, answers[target]) for _, symbol, target in machine.machine.semiautomaton.edges()]
    outputs = [output for _, output in labels if output]
    if are_weights(outputs):
        raise ValueError(
            f"expected an answer that is not a number, got only numbers such as {outputs[0]!r}, which would be read as "
            "weights; rename an answer"
        )
    if are_copies(labels):
        raise ValueError(
            "expected an answer that differs from the last symbol read, got only equal ones, such as answer "
            f"{outputs[0]!r} after symbol {outputs[0]!r}; rename the answers"
        )


def _is_zero(word: str) -> bool:
    try:
        return float(word) == 0
    except ValueError:
        return False
