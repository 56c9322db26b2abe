"""The XML of JFLAP, which Automatarium and other tools for teaching read, too."""

from collections.abc import Iterator
from xml.etree import ElementTree

from lengthwise.automata.formats.base import FORMATS, ReadableFormat
from lengthwise.automata.formats.draft import Draft
from lengthwise.automata.labeled import LabeledMachine

SPACING = 120
COLUMNS = 6
"""States are laid out in rows."""


@FORMATS.register("jflap")
class JFLAP(ReadableFormat):
    """JFLAP: type fa for automata, moore for other machines; mealy is read, too.

    Symbols are single characters. An edge of an automaton that reads several is split into edges of one, and one may
    read nothing; in other machines both are rejected.

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
        """An automaton or a Moore machine, its states in rows."""
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
        for state, row in enumerate(machine.machine.semiautomaton.table.tolist()):
            for symbol, target in zip(machine.symbols, row, strict=True):
                if len(symbol) != 1:
                    raise ValueError(f"expected symbols of one character, got {symbol!r}; rename it")
                edge = ElementTree.SubElement(automaton, "transition")
                for name, text in (("from", state), ("to", target), ("read", _printable(symbol))):
                    _add(edge, name, str(text))
        ElementTree.indent(structure)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(structure, encoding="unicode")}\n'

    @staticmethod
    def read(text: str) -> LabeledMachine:
        """The machine of a structure."""
        try:
            structure = ElementTree.fromstring(text)
        except ElementTree.ParseError as problem:
            raise ValueError(f"expected XML, got something else ({problem})") from None
        kind = (structure.findtext("type") or "").strip().lower()
        if kind not in ("fa", "moore", "mealy"):
            raise ValueError(f"expected type fa, moore or mealy, got {kind!r}; convert it in JFLAP")
        states = {str(state.get("id")): state for state in structure.iter("state")}
        draft = Draft()
        for name, state in states.items():
            draft.add_state(name)
            if state.find("initial") is not None:
                draft.set_start(name)
        for source, symbol, target, output in _edges(structure, draft, is_split=kind == "fa"):
            if symbol or kind != "fa":
                draft.add_edge(source, symbol, target, output)
            else:
                draft.add_empty_edge(source, target)
        if kind == "mealy":
            return draft.mealy()
        if kind == "moore":
            return draft.moore({name: _text(state, "output") for name, state in states.items()})
        return draft.automaton([name for name, state in states.items() if state.find("final") is not None])


def _edges(structure: ElementTree.Element, draft: Draft, *, is_split: bool) -> Iterator[tuple[str, str, str, str]]:
    """Source, symbol, target and output of each edge; one of several symbols passes through states of its own."""
    for edge in structure.iter("transition"):
        source, symbols, target = (_text(edge, name) for name in ("from", "read", "to"))
        if not symbols and len(edge.findtext("read", "  ").splitlines()) == 1:  # blanks, or no such part
            raise ValueError(f"expected a symbol on each edge, or <read/>, got blanks from state {source!r}; write one")
        draft.check_state(source)
        draft.check_state(target)
        if len(symbols) > 1 and not is_split:
            raise ValueError(f"expected edges of one character, got {symbols!r} from state {source!r}; split it")
        if len(symbols) < 2:
            yield source, symbols, target, "" if is_split else _text(edge, "transout")
        for index, symbol in enumerate(symbols if len(symbols) > 1 else ""):
            is_last = index == len(symbols) - 1
            before, after = (f"{source}\n{symbols[:end]}" for end in (index, index + 1))
            yield before if index else source, symbol, target if is_last else after, ""


def _text(element: ElementTree.Element, name: str) -> str:
    """The text of a part, without spaces around it unless it is a single one."""
    text = element.findtext(name) or ""
    return text if len(text) == 1 and text.isprintable() else text.strip()


def _add(parent: ElementTree.Element, name: str, text: str | None = None) -> None:
    ElementTree.SubElement(parent, name).text = text


def _printable(text: str) -> str:
    if not text.isprintable() or (len(text) > 1 and text.strip() != text):
        raise ValueError(f"expected symbols and answers that can be printed, got {text!r}; rename it")
    return text
