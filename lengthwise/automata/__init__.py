"""Finite machines: semiautomata, automata and transducers, in pure Python and NumPy."""

from lengthwise.automata.dfa import DFA
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer

__all__ = ["DFA", "Semiautomaton", "Transducer"]
