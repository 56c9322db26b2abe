"""The XML of JFLAP, which Automatarium and other tools for teaching also read."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree
from xml.parsers import expat

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.base import FORMATS, ReadableFormat
from lengthwise.formats.draft import Draft
from lengthwise.formats.limits import MAX_NAME, check_names, check_table, check_text

SPACING = 120
COLUMNS = 6
"""The number of states in a row of a drawing; `SPACING` is the distance between neighboring states."""

EMPTY_SIGNS = ("λ", "ε")
"""JFLAP's two signs for the empty string, of which JFLAP's settings select one. Neither sign can be written as a
symbol."""

_STATE_PARTS = {"fa": ("final",), "moore": ("output",), "mealy": ()}
"""The parts of a state that mark the state's answer, for each type of machine."""

_ATTRIBUTES = {"state": {"id", "name"}}
"""The known attributes of each part of a file; the attribute `name` is only displayed."""

_DECORATIONS = ("x", "y", "label", "note", "controlx", "controly")
"""The names of parts that contain positions and comments, which do not change the machine."""


@FORMATS.register("jflap")
class JFLAP(ReadableFormat):
    """JFLAP: type fa for automata, moore for other machines; type mealy can also be read.

    Symbols are single characters. An automaton's edge that reads several characters is split into edges of one
    character each. An automaton's edge may also read nothing (λ or ε). In other machines, an edge that does not read
    exactly one character is rejected. An automaton may have several initial states. Files with unknown parts or a
    document type are rejected.

    Example:
        >>> edge = "<transition><from>0</from><to>0</to><read>ab</read></transition>"
        >>> file = f'<structure><type>fa</type><state id="0"><initial/><final/></state>{edge}</structure>'
        >>> JFLAP.read(file).machine.minimize().num_states
        3

    Source: JFLAP 7, www.jflap.org.
    """

    suffixes = (".jff",)

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """Return the machine as an automaton or a Moore machine of JFLAP, with its states drawn in rows."""
        structure = ElementTree.Element("structure")
        _add(structure, "type", "fa" if machine.is_automaton else "moore")
        automaton = ElementTree.SubElement(structure, "automaton")
        for state, answer in enumerate(machine.answer_names()):
            node = ElementTree.SubElement(automaton, "state", id=str(state), name=f"q{state}")
            _add(node, "x", f"{SPACING * (1 + state % COLUMNS)}.0")
            _add(node, "y", f"{SPACING * (1 + state // COLUMNS)}.0")
            if state == machine.machine.start:
                _add(node, "initial")
            if not machine.is_automaton:
                _add(node, "output", _printable(answer))
            elif machine.machine.outputs[state] == machine.accepting_class:
                _add(node, "final")
        for state, symbol, target in machine.machine.semiautomaton.edges():
            if len(symbol) != 1 or symbol in EMPTY_SIGNS:
                meaning = ", which means the empty string" if symbol in EMPTY_SIGNS else ""
                raise ValueError(f"expected symbols of one character, got {symbol!r}{meaning}; rename this symbol")
            edge = ElementTree.SubElement(automaton, "transition")
            for name, text in (("from", state), ("to", target), ("read", _printable(symbol))):
                _add(edge, name, str(text))
        ElementTree.indent(structure)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(structure, encoding="unicode")}\n'

    @staticmethod
    def read(text: str) -> LabeledMachine:
        """Return the machine that a file's XML structure describes."""
        check_text(text)
        structure = _structure(text)
        _check_parts(structure, ("type", "automaton", "state", "transition", *_DECORATIONS), once=("type", "automaton"))
        kind = _text(structure, "type").lower()
        if kind not in ("fa", "moore", "mealy"):
            raise ValueError(
                f"expected type fa, moore or mealy, got {kind[:80]!r}; save a machine of one of these types"
            )
        nested = structure.findall("automaton")
        for part in nested:
            _check_parts(part, ("state", "transition", *_DECORATIONS), once=())
        states, transitions = (
            [element for part in (structure, *nested) for element in part.findall(name)]
            for name in ("state", "transition")
        )
        draft = Draft()
        names = _names(states)
        for name in names:
            draft.add_state(name)
        for source, symbol, target, output in _edges(transitions, draft, len(names), is_split=kind == "fa"):
            if symbol or kind != "fa":
                draft.add_edge(source, symbol, target, output)
            else:
                draft.add_empty_edge(source, target)
        for state in states:
            _check_parts(state, ("initial", *_STATE_PARTS[kind], *_DECORATIONS))
        initial = [name for name, state in zip(names, states, strict=True) if state.find("initial") is not None]
        if kind == "fa":
            draft.set_starts(initial)
        else:
            for name in initial:
                draft.set_start(name)
        if kind == "mealy":
            return draft.mealy()
        if kind == "moore":
            return draft.moore({name: _text(state, "output") for name, state in zip(names, states, strict=True)})
        return draft.automaton(
            [name for name, state in zip(names, states, strict=True) if state.find("final") is not None]
        )


def _structure(text: str) -> ElementTree.Element:
    """Return the XML tree of a text; reject a document type, because its entities could expand until memory is full."""
    builder, parser = ElementTree.TreeBuilder(), expat.ParserCreate()

    def reject_document_type(*_: object) -> None:
        raise ValueError("expected XML without a document type, got <!DOCTYPE; remove it and its entities")

    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = reject_document_type
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, UnicodeEncodeError) as problem:
        raise ValueError(
            f"expected XML, got something else ({problem}); correct the file there, or save it again in JFLAP"
        ) from None
    return builder.close()


def _check_parts(element: ElementTree.Element, known: Sequence[str], once: Sequence[str] | None = None) -> None:
    """Raise a ValueError unless an element has no text, only `known` parts, and each part in `once` at most once.

    By default, `once` contains all known parts.
    """
    names = [part.tag for part in element]
    if unknown := [name for name in names if name not in known]:
        raise ValueError(
            f"expected <{element.tag}> with the elements {', '.join(known)}, got <{unknown[0][:80]}>; leave this "
            "element out if it does not describe the machine"
        )
    counts = Counter(names)
    if repeated := [name for name in (known if once is None else once) if counts[name] > 1]:
        raise ValueError(f"expected one <{repeated[0]}> in <{element.tag}>, got {counts[repeated[0]]}; keep one")
    if others := set(element.keys()) - _ATTRIBUTES.get(element.tag, set()):
        raise ValueError(
            f"expected <{element.tag}> without the attribute {min(others)[:60]!r}; write the attribute as an element"
        )
    marks = [part.text for part in element if part.tag in ("initial", "final")]
    if text := "".join(filter(None, [element.text, *(part.tail for part in element), *marks])).strip():
        raise ValueError(f"expected only elements in <{element.tag}>, got the text {text[:60]!r}; leave this text out")
    containers = ("automaton", "state", "transition", *_DECORATIONS)
    if nested := [(part.tag, part[0].tag) for part in element if len(part) and part.tag not in containers]:
        raise ValueError(
            f"expected <{nested[0][0]}> without elements inside, got <{nested[0][1]}>; leave <{nested[0][1]}> out"
        )


def _names(states: Iterable[ElementTree.Element]) -> list[str]:
    """Return the ids of the states, in the order of the file."""
    names: dict[str, None] = {}
    for state in states:
        name = state.get("id", "")
        if not name.isprintable() or not name or len(name) > MAX_NAME or name in names:
            raise ValueError(
                f"expected a different printable id of 1 to {MAX_NAME:,} characters for each state, got "
                f"{name[:60]!r}{' twice' if name in names else ''}; number the states"
            )
        names[name] = None
    return list(names)


def _edges(
    transitions: Sequence[ElementTree.Element], draft: Draft, num_states: int, *, is_split: bool
) -> Iterator[tuple[str, str, str, str]]:
    """Yield the source, symbol, target and output of each edge; new states split an edge that reads several symbols."""
    prefixes: dict[tuple[str, str], str] = {}
    symbols: set[str] = set()
    for edge in transitions:
        _check_parts(edge, ("from", "to", "read", *(() if is_split else ("transout",)), *_DECORATIONS))
        source, read, target = (_text(edge, name) for name in ("from", "read", "to"))
        if not read and len(edge.findtext("read", "  ").splitlines()) == 1:  # blanks, or no such part
            raise ValueError(
                "expected a symbol on each edge, or <read/> for no symbol, got blanks or no <read> on an edge from "
                f"state {source!r}; write a symbol"
            )
        draft.check_state(source)
        draft.check_state(target)
        if read in EMPTY_SIGNS:
            read = ""
        if empty := [sign for sign in EMPTY_SIGNS if sign in read]:
            raise ValueError(
                f"expected {empty[0]}, the empty string, alone on an edge, got {read[:60]!r} from state {source!r}; "
                f"remove {empty[0]} from this edge"
            )
        if len(read) > 1 and not is_split:
            raise ValueError(
                f"expected edges that read one character, got {read[:60]!r} from state {source!r}; split this edge"
            )
        check_names([read])
        symbols.update(read)
        before = source
        for symbol in read[:-1]:
            # Edges with a common beginning share these states. Their names stay short even if an edge has a long text.
            after = prefixes.setdefault((before, symbol), f"\n{len(prefixes)}")
            yield before, symbol, after, ""
            before = after
        check_table(num_states + len(prefixes) + 1, len(symbols))  # one more state for a sink
        yield before, read[-1:], target, "" if is_split else _text(edge, "transout")


def _text(element: ElementTree.Element, name: str) -> str:
    """Return the text of a part without surrounding spaces; a single space is kept as a symbol."""
    text = element.findtext(name) or ""
    return text if len(text) == 1 and text.isprintable() else text.strip()


def _add(parent: ElementTree.Element, name: str, text: str | None = None) -> None:
    ElementTree.SubElement(parent, name).text = text


def _printable(text: str) -> str:
    if not text.isprintable() or (len(text) > 1 and text.strip() != text):
        raise ValueError(
            f"expected printable symbols and answers without spaces at the ends, got {text!r}; change this text"
        )
    return text
