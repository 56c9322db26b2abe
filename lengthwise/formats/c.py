"""C: one header with the machine's tables and a function that returns the answer to a string."""

import json
import re
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.conventions import IGNORE
from lengthwise.files import package_template
from lengthwise.formats.base import FORMATS, Format
from lengthwise.formats.notes import Notes, notes_on

MAX_SYMBOLS = 256
"""The largest number of symbols, because each symbol of a string is stored in one byte."""

_CHECK = "        if (symbols[i] >= {upper}_NUM_SYMBOLS)\n            return {upper}_NO_SYMBOL;\n"


@FORMATS.register("c")
class C(Format):
    """A C99 header with ``int NAME_classify(const uint8_t *symbols, size_t count)`` and ``NAME_step``.

    Headers can be written, but not read. ``NAME_symbol_of("ACK")`` returns the number of the symbol ACK. If all symbols
    are single bytes, ``NAME_classify_text`` accepts a text, and ``NAME_symbol_of_byte`` accepts one byte of a text.
    Tables have the smallest sufficient integer types. Compiled as C with ``-DNAME_SELF_TEST``, the header is a program
    that checks the answers of ``NAME_classify`` to twenty strings. NAME is ``machine`` unless notes give another name.

    Example:
        >>> from lengthwise.automata.labeled import labeled_dfa
        >>> from lengthwise.automata.regex import dfa_from_regex
        >>> "static const uint8_t machine_table[4][2] = {" in C.write(labeled_dfa(dfa_from_regex("(a|b)*abb")))
        True
    """

    suffixes = (".h",)
    has_names = True
    comment = "// "

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """Return a header that contains the machine's tables and functions."""
        return C.write_annotated(machine, notes_on(machine))

    @classmethod
    def write_annotated(cls, machine: LabeledMachine, notes: Notes) -> str:
        """Return a header whose identifiers begin with the notes' name, and whose self-test uses the notes' strings."""
        table, name = machine.machine.semiautomaton.table, identifier(notes.name)
        num_states, num_symbols = table.shape
        if num_symbols > MAX_SYMBOLS:
            raise ValueError(f"symbols: expected at most {MAX_SYMBOLS}, got {num_symbols}; use format js")
        answers = np.where(machine.machine.outputs == IGNORE, -1, machine.machine.outputs)
        ids = {symbol: v for v, symbol in enumerate(machine.symbols)}
        tests = [([ids[symbol] for symbol in string], answer) for string, answer in notes.tests]
        upper = name.upper()
        comments = [f"{cls.comment}{json.dumps(notes.name)[1:-1]}: a finite machine"]
        comments += [f"{cls.comment}{_ended(line)}" for line in notes._replace(tests=()).lines()]
        return (
            "\n".join(comments)
            + "\n"
            + package_template("lengthwise.formats", "template.h").substitute(
                name=name,
                upper=upper,
                num_states=num_states,
                num_symbols=num_symbols,
                num_classes=len(machine.classes),
                start=machine.machine.start,
                symbols=", ".join(map(_quoted, machine.symbols)),
                classes=", ".join(map(_quoted, machine.classes)),
                state_type=_type_of(num_states - 1, signed=False),
                answer_type=_type_of(len(machine.classes) - 1, signed=True),
                table=",\n".join(f"    {{{', '.join(map(str, row))}}}" for row in table.tolist()),
                answers=_wrapped(answers.tolist(), 4),
                text=_text_functions(machine, name),
                check="" if num_symbols == MAX_SYMBOLS else _CHECK.format(upper=upper),
                strings=_wrapped([v for string, _ in tests for v in string], 8),
                lengths=", ".join(str(len(string)) for string, _ in tests),
                expected=", ".join(str(machine.classes.index(answer) if answer else -1) for _, answer in tests),
            )
        )


def _ended(line: str) -> str:
    """Return a comment line that does not end with a backslash or its trigraph, which would continue the comment."""
    return f"{line} ." if line.rstrip().endswith(("\\", "??/")) else line


def _text_functions(machine: LabeledMachine, name: str) -> str:
    """Return the source of the functions that accept text, or "" if a symbol has more than one byte."""
    if any(len(symbol.encode()) > 1 for symbol in machine.symbols):
        return ""
    symbol_ids = [-2] * 256
    for v, symbol in enumerate(machine.symbols):
        symbol_ids[symbol.encode()[0]] = v
    state_type = _type_of(machine.machine.num_states - 1, signed=False)
    template = package_template("lengthwise.formats", "template_of_bytes.h")
    return template.substitute(name=name, upper=name.upper(), bytes=_wrapped(symbol_ids, 8), state_type=state_type)


def identifier(name: str) -> str:
    """Return a name as an identifier of C and JavaScript; names without an ASCII letter or digit become hashes.

    Example:
        >>> identifier("(a|b)*abb"), identifier("5-states"), identifier("\N{LATIN SMALL LETTER O WITH DIAERESIS}")
        ('machine_a_b__abb', 'machine_5_states', 'machine_6bbee412')
    """
    cleaned = re.sub(r"[^0-9A-Za-z_]", "_", name)
    if not cleaned.strip("_"):
        cleaned = f"_{blake2b(name.encode(), digest_size=4).hexdigest()}"
    return cleaned if cleaned[0].isalpha() else f"machine{'' if cleaned[0] == '_' else '_'}{cleaned}"


def _type_of(largest: int, *, signed: bool) -> str:
    """Return the smallest integer type that can store 0 ... largest and, if `signed`, also -1."""
    for bits in (8, 16, 32):
        if largest < 1 << (bits - signed):
            return f"{'' if signed else 'u'}int{bits}_t"
    raise ValueError(f"machine: expected fewer than 2^31 states, got {largest + 1:,}; minimize it")


def _quoted(text: str) -> str:
    """Return a string literal in ASCII. Octal escapes have three digits, so that no escape includes the next digit."""
    # A ? is escaped because it could begin a trigraph.
    plain = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode())
    return f'"{"".join(plain)}"'


def _wrapped(numbers: Iterable[int], indent: int) -> str:
    """Return numbers with commas between them, twenty on each line."""
    texts = [str(number) for number in numbers]
    rows = (", ".join(texts[start : start + 20]) for start in range(0, len(texts), 20))
    return ",\n".join(" " * indent + row for row in rows)
