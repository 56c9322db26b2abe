"""Machines from any source: files of any format, folders of runs, certificates, regular expressions."""

import json
import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from lengthwise.automata.labeled import LabeledMachine, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex, named_symbols
from lengthwise.automata.regex_syntax import Tokens
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import CERTIFICATE, Certificate, certificate_file
from lengthwise.certification.equivalence import machine_from_json
from lengthwise.files import exists, read_file, read_json, unless_damaged
from lengthwise.formats.files import read_machine, suffixes
from lengthwise.formats.regex import pattern_and_alphabet
from lengthwise.validation import check_kind

LEARNED = "machine.json"
"""The name of the machine's file in the folder of a learned machine."""

EXPRESSION, WORDS = "regex:", "words:"
"""The prefix of a regular expression that could be taken for a path, and the prefix of an expression over words."""

WEIGHTS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
"""Suffixes of files that contain weights, but not the structure of a net."""

OPERATORS, SHORT = frozenset("|*+?()[]{}\\"), 3
"""A text of more than `SHORT` characters that contains none of `OPERATORS` is taken for a mistyped name. As an
expression, it would match few strings.
"""

MAX_NAME, ALIKE = 255, 0.8
"""The largest length of a file's name, in bytes, and the similarity at which a text counts as a misspelled name.

The text is compared with the names of the files in the current folder.
"""


class Expression(NamedTuple):
    """A regular expression, and whether its symbols are characters or words."""

    pattern: str
    tokens: Tokens = "characters"


class Given(NamedTuple):
    """A machine, whether it answers the empty string, and why held-out labels do not confirm it (`doubt`).

    Nets do not answer the empty string, and neither do machines that were learned from examples without it. Only
    machines that were learned from examples can have a doubt.
    """

    labeled: LabeledMachine
    answers_empty: bool
    doubt: str | None = None

    @property
    def compared(self) -> LabeledMachine:
        """The machine to compare; it gives no answer to the empty string unless `answers_empty` is True."""
        return self.labeled if self.answers_empty else self.labeled.without_empty_string()


def given_machines(sources: Sequence[str], symbols: Sequence[str] = ()) -> list[Given]:
    """Return the machine of each source: a machine file, a certificate, a folder, a TOML file or a regular expression.

    A text that exists as a path is a path. Otherwise a text is an expression if it begins with ``regex:``, and an
    expression over words if it begins with ``words:``. Any other text is an expression unless it looks like a path. It
    looks like a path if it contains a ``/``, or ends with ``.toml`` or the suffix of a format. It also looks like a
    path if it is nearly the name of a file in the current folder, or has more than `SHORT` characters and no operator.

    The alphabet of an expression consists of its own symbols, the symbols of the other sources, and `symbols`. A
    certificate of level `extracted` or above that contains a machine gives the machine of its task, because the model
    follows this machine. A certificate of a lower level gives the machine that was extracted from the model.

    Raises:
        ValueError: the path does not exist or contains no machine. The expression has an error, or looks like a path.
            An expression is over characters although another machine has symbols of several characters.

    Example:
        >>> first, second = given_machines(["(a|b)*abb", "regex:b*"])
        >>> second.labeled.symbols
        ('a', 'b')
    """
    if isinstance(sources, str) or not isinstance(sources, Iterable):
        raise ValueError(f"sources: expected a list of sources, got {sources!r}; put the source into a list")
    for source in sources:
        check_kind("sources", source, str, "texts")
    # A problem of another source must not hide this mistake.
    if weights := [source for source in sources if Path(source).suffix in WEIGHTS and _is_path(source)]:
        raise ValueError(
            f"{weights[0]}: expected a machine, a folder, or a TOML file about a net, got weights alone; name the TOML "
            "file that describes the net"
        )
    loaded = [machine_or_expression(source) for source in sources]
    known = [*symbols, *(symbol for one in loaded if isinstance(one, Given) for symbol in one.labeled.symbols)]
    expressions = [one for one in loaded if isinstance(one, Expression)]
    named = sorted({symbol for one in expressions for symbol in named_symbols(*one)})
    alphabet = tuple(dict.fromkeys([*known, *named])) or None
    words = [symbol for symbol in alphabet or () if len(symbol) != 1]
    if words and (patterns := [one.pattern for one in expressions if one.tokens == "characters"]):
        raise ValueError(
            f"{patterns[0]}: expected an expression over words, because another machine has the symbol {words[0]!r}, "
            f"got an expression over characters; write {WORDS!r} before the expression, and blanks between its symbols"
        )
    return [
        Given(labeled_dfa(dfa_from_regex(one.pattern, alphabet, one.tokens)), True)
        if isinstance(one, Expression)
        else one
        for one in loaded
    ]


def machine_or_expression(source: str) -> Given | Expression:
    """Return the machine at a path, or a regular expression, whose alphabet is not known yet.

    `given_machines` explains which texts are paths, and lists the errors.
    """
    check_kind("source", source, str, "a file, a folder or a regular expression")
    if not source:
        raise ValueError(
            f"machine: expected a file, a folder or a regular expression, got an empty text; write {EXPRESSION!r} for "
            "the language that contains only the empty string"
        )
    path = Path(source)
    if not _is_path(source):
        if source.startswith(EXPRESSION):
            return Expression(source.removeprefix(EXPRESSION))
        if source.startswith(WORDS):
            return Expression(source.removeprefix(WORDS), "words")
        # A misspelled file name is a valid expression, so it would silently be compared as a language.
        if len(source) <= MAX_NAME and (close := get_close_matches(source, os.listdir(), n=1, cutoff=ALIKE)):
            raise ValueError(
                f"{source}: expected a file, a folder or a regular expression, found no such path, but {close[0]!r} "
                f"exists; write {close[0]}, or {EXPRESSION}{source} if you mean an expression"
            )
        if path.suffix.lower() in {*suffixes(), ".toml"} or "/" in source or _is_word(source):
            raise ValueError(
                f"{source[:200]}: expected a file, a folder or a regular expression, found no such path; write "
                f"{EXPRESSION}{source[:40]} if you mean an expression"
            )
        return Expression(source)
    if path.is_dir():
        return _folder_machine(path)
    if path.suffix.lower() == ".toml":
        return _certified_net_machine(path)
    if path.suffix.lower() == ".json" and is_certificate(path):
        return _certificate_machine(Certificate.read(path), path)
    if path.suffix.lower() == ".regex" and (pattern := _pattern_alone(path)) is not None:
        return Expression(pattern)
    return Given(read_machine(path), True)


def _is_word(source: str) -> bool:
    """Return whether a text looks like a name: more than `SHORT` characters, and no operator among them."""
    return len(source) > SHORT and not OPERATORS & set(source)


def _is_path(source: str) -> bool:
    """Return whether a text is the path of something that exists; no file has a name longer than `MAX_NAME`."""
    return all(len(os.fsencode(name)) <= MAX_NAME for name in source.split("/")) and exists(Path(source))


def _folder_machine(folder: Path) -> Given:
    if (folder / LEARNED).exists():
        learned = _statistics(folder)
        return Given(read_machine(folder / LEARNED), bool(learned.get("answers_empty")), learned.get("doubt"))
    if certificate_file(folder).exists():
        return _certified_net_machine(folder)
    # This import loads torch, which files of machines do not need, so it comes only here.
    from lengthwise.runs.compiled import DESCRIPTION, load_compiled

    if (folder / DESCRIPTION).exists():
        target = load_compiled(folder).target
        return Given(LabeledMachine(target.machine, tuple(target.classes)), False)
    raise ValueError(
        f"{folder}: expected a folder with {LEARNED} or {CERTIFICATE}, found neither file; `lengthwise certify "
        f"{folder}` writes a certificate, and `lengthwise learn` writes a machine"
    )


def doubt_about(folder: Path) -> str | None:
    """Return why held-out labels do not confirm the learned machine in a folder; None without such a reason."""
    return _statistics(folder).get("doubt")


def _statistics(folder: Path) -> dict[str, Any]:
    """Return the statistics in a folder that `learn` wrote, or an empty dictionary for any other path."""
    path = folder / "learned.json"
    return read_json(path, "learn it again") if path.is_file() else {}


def _certified_net_machine(path: Path) -> Given:
    """Return the machine in the certificate of a net; the net is in a folder, or a TOML file describes it."""
    file = certificate_file(path)
    certificate = Certificate.read(file)
    # If the net was trained further, the old certificate contains the machine of other weights.
    if path.is_file() or any(path.glob("*.safetensors")):
        from lengthwise.runs.stored import check_subject, load_stored  # imports torch, as above

        # The machine comes from the certificate alone, so the task in the folder does not matter.
        check_subject(str(path), certificate, load_stored(path), of_any_task=True)
    return _certificate_machine(certificate, file)


def _certificate_machine(certificate: Certificate, path: Path) -> Given:
    # A certificate of method `attention` has no machine. Its proof holds up to some length only. On longer strings,
    # the net may differ from the task's machine.
    is_machine_right = certificate.reaches("extracted") and certificate.machine is not None
    content = certificate.transducer if is_machine_right else certificate.machine
    machine = None if content is None else machine_from_json(content)
    if not isinstance(machine, Transducer):
        what = "no machine" if machine is None else "another kind of machine"
        raise ValueError(
            f"{path}: expected a certificate that contains a machine with states, got a certificate of level "
            f"{certificate.level} with {what}; train the model further and certify it again, or name another run"
        )
    return Given(LabeledMachine(machine, certificate.classes), False)


def is_certificate(path: Path) -> bool:
    """Return whether a file contains a certificate, judged by its entries alone."""
    content = unless_damaged(lambda: json.loads(read_file(path)), None)
    return isinstance(content, dict) and {"level", "transducer"} <= content.keys()


def _pattern_alone(path: Path) -> str | None:
    """Return the expression in a file that does not list its symbols; None if the file lists them or is unreadable."""
    parsed = unless_damaged(lambda: pattern_and_alphabet(read_file(path).decode("utf-8-sig")), (None, None, None))
    return parsed[0] if parsed[1] is None else None
