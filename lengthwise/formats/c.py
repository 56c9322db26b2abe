"""C: one header with the tables and a function that answers strings."""

import json
import re
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.conventions import IGNORE
from lengthwise.formats.base import FORMATS, Format
from lengthwise.formats.notes import Notes, notes_on

MAX_SYMBOLS = 256
"""The largest number of symbols, because each symbol of a string is stored in one byte."""

_TEMPLATE = """\
#ifndef {upper}_H
#define {upper}_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {{
    {upper}_NUM_STATES = {num_states},
    {upper}_NUM_SYMBOLS = {num_symbols},
    {upper}_NUM_CLASSES = {num_classes},
    {upper}_START = {start},
    {upper}_NO_ANSWER = -1,
    {upper}_NO_SYMBOL = -2
}};

static const char *const {name}_symbols[] = {{{symbols}}};
static const char *const {name}_classes[] = {{{classes}}};

/* Row q: the state after each symbol read in state q. */
static const {state_type} {name}_table[{num_states}][{num_symbols}] = {{
{table}
}};

/* The class that each state answers with, or -1. */
static const {answer_type} {name}_answers[{num_states}] = {{
{answers}
}};

/* The name of a symbol, a number below NUM_SYMBOLS. */
static inline const char *{name}_symbol_name(uint8_t symbol) {{ return {name}_symbols[symbol]; }}

/* The symbol that has this name, or NO_SYMBOL. */
static inline int {name}_symbol_of(const char *name)
{{
    for (int symbol = 0; symbol < {upper}_NUM_SYMBOLS; symbol++)
        if (strcmp({name}_symbols[symbol], name) == 0)
            return symbol;
    return {upper}_NO_SYMBOL;
}}

/* The name of a class that classify returned, or NULL. */
static inline const char *{name}_class_name(int answer) {{ return answer < 0 ? NULL : {name}_classes[answer]; }}

/* The state after one more symbol, which has to be below NUM_SYMBOLS. */
static inline {state_type} {name}_step({state_type} state, uint8_t symbol) {{ return {name}_table[state][symbol]; }}

/* The class that a state answers with, or NO_ANSWER. */
static inline int {name}_answer({state_type} state) {{ return {name}_answers[state]; }}

/* The class of a string of symbols, or NO_ANSWER, or NO_SYMBOL if a symbol is not below NUM_SYMBOLS. */
static inline int {name}_classify(const uint8_t *symbols, size_t count)
{{
    {state_type} state = {upper}_START;
    for (size_t i = 0; i < count; i++) {{
{check}        state = {name}_table[state][symbols[i]];
    }}
    return {name}_answers[state];
}}

{text}#ifdef {upper}_SELF_TEST
#include <stdio.h>

int main(void)
{{
    static const uint8_t strings[] = {{
{strings}
    }};
    static const size_t lengths[] = {{{lengths}}};
    static const int expected[] = {{{expected}}};
    const size_t count = sizeof lengths / sizeof *lengths;
    size_t right = 0, offset = 0;
    for (size_t i = 0; i < count; offset += lengths[i++])
        right += {name}_classify(strings + offset, lengths[i]) == expected[i];
    printf("%zu of %zu strings right\\n", right, count);
    return right != count;
}}
#endif

#endif
"""

_TEXT = """\
/* The symbol of a byte, or NO_SYMBOL. */
static inline int {name}_symbol_of_byte(unsigned char byte)
{{
    static const int16_t symbols[256] = {{
{bytes}
    }};
    return symbols[byte];
}}

/* The class of a text of count bytes, each a symbol; or NO_ANSWER; or NO_SYMBOL if a byte is not a symbol. */
static inline int {name}_classify_text(const char *text, size_t count)
{{
    {state_type} state = {upper}_START;
    for (size_t i = 0; i < count; i++) {{
        const int symbol = {name}_symbol_of_byte((unsigned char)text[i]);
        if (symbol < 0)
            return {upper}_NO_SYMBOL;
        state = {name}_table[state][symbol];
    }}
    return {name}_answers[state];
}}

"""
"""The C code of the functions for machines whose symbols are single bytes."""

_CHECK = "        if (symbols[i] >= {upper}_NUM_SYMBOLS)\n            return {upper}_NO_SYMBOL;\n"


@FORMATS.register("c")
class C(Format):
    """A C99 header with ``int NAME_classify(const uint8_t *symbols, size_t count)`` and ``NAME_step``.

    Headers can be written, but not read. ``NAME_symbol_of("ACK")`` returns the number of the symbol ACK. If all symbols
    are single bytes, ``NAME_classify_text`` and ``NAME_symbol_of_byte`` accept text. Tables have the smallest
    sufficient integer types. Compiled as C with ``-DNAME_SELF_TEST``, the header is a program that checks its answers
    to twenty strings. NAME is ``machine`` unless notes give another name.

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
            raise ValueError(
                f"symbols: expected at most {MAX_SYMBOLS}, one for each value of a byte, got {num_symbols}; use format "
                "js"
            )
        answers = np.where(machine.machine.outputs == IGNORE, -1, machine.machine.outputs)
        ids = {symbol: v for v, symbol in enumerate(machine.symbols)}
        tests = [([ids[symbol] for symbol in string], answer) for string, answer in notes.tests]
        upper = name.upper()
        comments = [f"{cls.comment}{json.dumps(notes.name)[1:-1]}: a finite machine"]
        comments += [f"{cls.comment}{_ended(line)}" for line in notes._replace(tests=()).lines()]
        return (
            "\n".join(comments)
            + "\n"
            + _TEMPLATE.format(
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
    return _TEXT.format(name=name, upper=name.upper(), bytes=_wrapped(symbol_ids, 8), state_type=state_type)


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
    """Return the smallest integer type for 0 ... largest and, if it is signed, -1."""
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
