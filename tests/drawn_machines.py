"""Machines as other tools write them: AALpy, LearnLib, automata-lib, Graphviz's gallery, textbooks and OpenFst."""

import random
from collections.abc import Callable
from typing import NamedTuple


class Drawn(NamedTuple):
    """A machine: edges with outputs, initial and accepting states, the output of each state."""

    num_states: int
    symbols: tuple[str, ...]
    edges: list[tuple[int, str, int, str]]
    starts: list[int]
    accepting: set[int]
    outputs: list[str]

    def states_after(self, string: tuple[str, ...]) -> set[int]:
        """The states that a string leads to; edges of the empty symbol read nothing."""
        states = self._closed(set(self.starts))
        for symbol in string:
            states = self._closed({to for source, read, to, _ in self.edges if source in states and read == symbol})
        return states

    def _closed(self, states: set[int]) -> set[int]:
        while more := {to for source, read, to, _ in self.edges if source in states and not read} - states:
            states = states | more
        return states


def in_dot(lines: list[str], name: str = "g") -> str:
    return "\n".join([f"digraph {name} {{", *lines, "}"]) + "\n"


def aalpy(nodes: list[str], edges: list[str], start: int) -> str:
    return in_dot([*nodes, *edges, '__start0 [shape=none, label=""];', f'__start0 -> s{start}  [label=""];'])


def aalpy_dfa(machine: Drawn, chance: random.Random) -> str:
    nodes = [
        f's{q} [label="s{q}"{", shape=doublecircle" * (q in machine.accepting)}];' for q in range(machine.num_states)
    ]
    return aalpy(nodes, [f's{p} -> s{q}  [label="{a}"];' for p, a, q, _ in machine.edges], machine.starts[0])


def aalpy_moore(machine: Drawn, chance: random.Random) -> str:
    nodes = [f's{q} [label="s{q}|{y}", shape=record, style=rounded];' for q, y in enumerate(machine.outputs)]
    return aalpy(nodes, [f's{p} -> s{q}  [label="{a}"];' for p, a, q, _ in machine.edges], machine.starts[0])


def aalpy_mealy(machine: Drawn, chance: random.Random) -> str:
    nodes = [f's{q} [label="s{q}"];' for q in range(machine.num_states)]
    return aalpy(nodes, [f's{p} -> s{q}  [label="{a}/{y}"];' for p, a, q, y in machine.edges], machine.starts[0])


def aalpy_mdp(machine: Drawn, chance: random.Random) -> str:
    form = chance.choice(["1.0", "1", "0.5", "1.00"])
    nodes = [f's{q} [label="{y}"];' for q, y in enumerate(machine.outputs)]
    return aalpy(nodes, [f's{p} -> s{q}  [label="{a}:{form}"];' for p, a, q, _ in machine.edges], machine.starts[0])


def aalpy_stochastic_mealy(machine: Drawn, chance: random.Random) -> str:
    form = chance.choice(["1.0", "1", "0.25"])
    nodes = [f's{q} [label="s{q}"];' for q in range(machine.num_states)]
    return aalpy(nodes, [f's{p} -> s{q}  [label="{a}/{y}:{form}"];' for p, a, q, y in machine.edges], machine.starts[0])


def aalpy_nondeterministic_moore(machine: Drawn, chance: random.Random) -> str:
    """The label of a state is its output alone."""
    nodes = [f's{q} [label="{y}"];' for q, y in enumerate(machine.outputs)]
    return aalpy(nodes, [f's{p} -> s{q}  [label="{a}"];' for p, a, q, _ in machine.edges], machine.starts[0])


def aalpy_visibly_pushdown(machine: Drawn, chance: random.Random) -> str:
    """Whether a string is accepted depends on a stack, which no machine here has."""
    nodes = [
        f's{q} [label="s{q}"{", shape=doublecircle" * (q in machine.accepting)}];' for q in range(machine.num_states)
    ]
    work = chance.choice(["push(x)", "pop(x)"])
    return aalpy(nodes, [f's{p} -> s{q}  [label="{a} / {work}"];' for p, a, q, _ in machine.edges], machine.starts[0])


def learnlib(machine: Drawn, nodes: list[str], labels: list[str]) -> str:
    edges = [f'\ts{p} -> s{q} [label="{label}"];' for (p, _, q, _), label in zip(machine.edges, labels, strict=True)]
    start = ['__start0 [label="" shape="none" width="0" height="0"];', f"__start0 -> s{machine.starts[0]};"]
    return in_dot([*nodes, *edges, *start])


def learnlib_dfa(machine: Drawn, chance: random.Random) -> str:
    shapes = ["doublecircle" if q in machine.accepting else "circle" for q in range(machine.num_states)]
    nodes = [f'\ts{q} [shape="{shape}" label="{q}"];' for q, shape in enumerate(shapes)]
    return learnlib(machine, nodes, [a for _, a, _, _ in machine.edges])


def learnlib_moore(machine: Drawn, chance: random.Random) -> str:
    nodes = [f'\ts{q} [shape="circle" label="{q} / {y}"];' for q, y in enumerate(machine.outputs)]
    return learnlib(machine, nodes, [a for _, a, _, _ in machine.edges])


def learnlib_mealy(machine: Drawn, chance: random.Random) -> str:
    nodes = [f'\ts{q} [shape="circle" label="{q}"];' for q in range(machine.num_states)]
    return learnlib(machine, nodes, [f"{a} / {y}" for _, a, _, y in machine.edges])


def merged(machine: Drawn, separator: str, *, epsilon: str = "ε") -> dict[tuple[int, int], str]:
    """One edge for all symbols between two states."""
    labels: dict[tuple[int, int], list[str]] = {}
    for p, a, q, _ in machine.edges:
        labels.setdefault((p, q), []).append(a or epsilon)
    return {pair: separator.join(sorted(of_pair)) for pair, of_pair in labels.items()}


def automata_lib(machine: Drawn, chance: random.Random) -> str:
    lines = ['graph [rankdir=LR, size="8.5"];', 'init [shape=point, label="", tooltip=".", fontsize="14.0"];']
    lines += [f'init -> "{q}" [arrowsize="0.85", tooltip="->{q}"];' for q in machine.starts]
    lines += [
        f'"{q}" [shape={"doublecircle" if q in machine.accepting else "circle"}, fontsize="14.0"];'
        for q in range(machine.num_states)
    ]
    edges = merged(machine, ",")
    return in_dot(
        lines + [f'"{p}" -> "{q}" [arrowsize="0.85", fontsize="14.0", label="{a}"];' for (p, q), a in edges.items()]
    )


def gallery(machine: Drawn, chance: random.Random) -> str:
    """Defaults of nodes tell states apart, as in the finite automaton of Graphviz's gallery."""
    names = [chance.choice(["LR_{}", "q{}", "S{}"]).format(q) for q in range(machine.num_states)]
    accepting = [names[q] for q in sorted(machine.accepting)]
    start, around = chance.choice([("point", ""), ("none", ""), ("plaintext", "start")])
    lines = ['fontname="Helvetica"; rankdir=LR;', f'node [shape={start}]; init [label="{around}"];']
    lines += [
        f"node [shape = doublecircle, peripheries=2]; {' '.join(accepting)};",
        "node [shape = circle, peripheries=1];",
    ]
    lines += [f"init -> {names[q]};" for q in machine.starts]
    separator = chance.choice([", ", ",", r"\n", "\n", r"\l"])
    if chance.random() < 0.3:
        edges = {pair: "<" + label + ">" for pair, label in merged(machine, "<br/>").items()}
    else:
        edges = {pair: f'"{label}"' for pair, label in merged(machine, separator).items()}
    color = chance.choice(["", ", color=red", ', fontcolor="blue"'])
    lines += [f"{names[p]} -> {names[q]} [label = {label}{color}];" for (p, q), label in edges.items()]
    lines += [f"{name};" for name in names if accepting]
    return in_dot(lines, chance.choice(["", "finite_state_machine", '"a machine"']))


def peripheries(machine: Drawn, chance: random.Random) -> str:
    labels = [chance.choice(["", f"q{q}", "state", "some words"]) for q in range(machine.num_states)]
    lines = [f'q{q} [label="{label}", peripheries={1 + (q in machine.accepting)}];' for q, label in enumerate(labels)]
    lines += [f"init{i} [style=invis]; init{i} -> q{q};" for i, q in enumerate(machine.starts)]
    return in_dot(lines + [f'q{p} -> q{q} [label="{a or "ε"}"];' for p, a, q, _ in machine.edges])


def by_appearance(machine: Drawn, chance: random.Random) -> str:
    """What accepts is drawn by a color, a shape, a style, a label or a word."""
    mark = chance.choice(
        [
            "color=red",
            "style=filled",
            'fillcolor="green" style=filled',
            "shape=box",
            "shape=hexagon",
            "penwidth=3",
            "style=dashed",
            'xlabel="accept"',
            "accepting=true",
            'label="accept"',
            "class=final",
            "fontcolor=red",
            "style=bold",
            "image=check",
            "final=1",
            "group_=final",
        ]
    )
    lines = [f"q{q} [{mark if q in machine.accepting else ''}];" for q in range(machine.num_states)]
    lines += [f"init [shape=point]; init -> q{machine.starts[0]};"]
    return in_dot(lines + [f'q{p} -> q{q} [label="{a}"];' for p, a, q, _ in machine.edges])


def textbook_moore(machine: Drawn, chance: random.Random) -> str:
    form = chance.choice(
        [
            '"{q}/{y}"',
            '"{q} / {y}"',
            r'"{q}\n{y}"',
            '"{q}\n{y}"',
            "<{q}<br/>{y}>",
            "<<b>{q}</b><br/>{y}>",
            r'"\N/{y}"',
            '"{n}/{y}"',
            '"{q}:{y}"',
            '"{q}={y}"',
            '"{y}"',
            '"{q} ({y})"',
            '"A/{y}"',
            r'"s\n{q}\n{y}"',
            '"{q},{y}"',
        ]
    )
    labels = [form.format(q=f"q{q}", n=q, y=y) for q, y in enumerate(machine.outputs)]
    lines = ["init [shape=point];", f"init -> q{machine.starts[0]};"]
    lines += [f"q{q} [label={label}];" for q, label in enumerate(labels)]
    return in_dot(lines + [f'q{p} -> q{q} [label="{a}"];' for p, a, q, _ in machine.edges])


def textbook_mealy(machine: Drawn, chance: random.Random) -> str:
    form = chance.choice(
        [
            '"{a}/{y}"',
            '"{a} / {y}"',
            "<{a}<br/>{y}>",
            "<{a}/{y}>",
            r'"{a}\n{y}"',
            '"{a}:{y}"',
            '"{a}|{y}"',
            '"{a},{y}"',
            r'"{a}/\n{y}"',
        ]
    )
    lines = ["init [shape=point];", f"init -> q{machine.starts[0]};"]
    lines += [f"q{q};" for q in range(machine.num_states)]
    outputs = [y.partition("/")[0] if "," in form else y for _, _, _, y in machine.edges]  # a, b/x has two symbols
    labels = [form.format(a=a, y=y) for (_, a, _, _), y in zip(machine.edges, outputs, strict=True)]
    edges = zip(machine.edges, labels, strict=True)
    return in_dot(lines + [f"q{p} -> q{q} [label={label}];" for (p, _, q, _), label in edges])


def subsequential(machine: Drawn, chance: random.Random) -> str:
    """Outputs of states and of edges, of which no machine here has both."""
    form = chance.choice(['"q{q}/{y}"', r'"q{q}\n{y}"', '"{{q{q}|{y}}}" shape=record', '"{q} / {y}"', '"A/{y}"'])
    lines = ["init [shape=point];", f"init -> q{machine.starts[0]};"]
    lines += [f"q{q} [label={form.format(q=q, y=y)}];" for q, y in enumerate(machine.outputs)]
    return in_dot(lines + [f'q{p} -> q{q} [label="{a}/{y}"];' for p, a, q, y in machine.edges])


def in_att(machine: Drawn, chance: random.Random, columns: Callable[[str, str], list[str]], final: str = "") -> str:
    edges = sorted(machine.edges, key=lambda edge: (edge[0] != machine.starts[0], edge[0]))
    tab = chance.choice(["\t", " "]) if all(all(columns(a, y)) for _, a, _, y in edges) else "\t"
    lines = [tab.join([str(p), str(q), *columns(a, y)]) for p, a, q, y in edges]
    return "\n".join([*lines, *(f"{q}{final}" for q in sorted(machine.accepting))]) + "\n"


def epsilon_of_a_tool(chance: random.Random) -> str:
    return chance.choice(["<eps>", "@0@", "@_EPSILON_SYMBOL_@", "", "<epsilon>", "ε"])


def openfst_acceptor(machine: Drawn, chance: random.Random) -> str:
    nothing, repeats = epsilon_of_a_tool(chance), chance.choice([1, 2])
    return in_att(machine, chance, lambda a, y: [a or nothing] * repeats, chance.choice(["", "\t0", "\t0.000000"]))


def openfst_numbers(machine: Drawn, chance: random.Random) -> str:
    """Without a table of symbols: 0 is no symbol."""
    repeats, first = chance.choice([1, 2]), chance.choice([1, 97])
    number = {a: str(first + index) for index, a in enumerate(machine.symbols)} | {"": "0"}
    return in_att(machine, chance, lambda a, y: [number[a]] * repeats)


def openfst_weights(machine: Drawn, chance: random.Random) -> str:
    weigh = chance.choice([lambda: "1", lambda: str(chance.randint(1, 9)), lambda: f"{chance.random() + 0.1:.3f}"])
    return in_att(machine, chance, chance.choice([lambda a, y: [a, weigh()], lambda a, y: [a, y, weigh()]]))


def openfst_transducer(machine: Drawn, chance: random.Random) -> str:
    nothing = epsilon_of_a_tool(chance)
    return in_att(machine, chance, lambda a, y: [a or nothing, y])


def fstdraw(machine: Drawn, label: Callable[[str, str], str], weight: str = "") -> str:
    head = [
        "rankdir = LR;",
        'size = "8.5,11";',
        'label = "";',
        "center = 1;",
        "orientation = Landscape;",
        'ranksep = "0.4";',
    ]
    lines = []
    for p in sorted(range(machine.num_states), key=lambda q: q != machine.starts[0]):
        is_final, style = p in machine.accepting, "bold" if p == machine.starts[0] else "solid"
        shape = "doublecircle" if is_final else "circle"
        lines.append(f'{p} [label = "{p}{weight * is_final}", shape = {shape}, style = {style}, fontsize = 14]')
        lines += [f'\t{p} -> {q} [label = "{label(a, y)}", fontsize = 14];' for r, a, q, y in machine.edges if r == p]
    return in_dot([*head, 'nodesep = "0.25";', *lines], "FST")


def fstdraw_acceptor(machine: Drawn, chance: random.Random) -> str:
    return fstdraw(machine, chance.choice([lambda a, y: a or "<eps>", lambda a, y: f"{a or '<eps>'}:{a or '<eps>'}"]))


def fstdraw_transducer(machine: Drawn, chance: random.Random) -> str:
    return fstdraw(machine, lambda a, y: f"{a or '<eps>'}:{y}")


def fstdraw_weights(machine: Drawn, chance: random.Random) -> str:
    if chance.random() < 0.3 and machine.accepting:
        return fstdraw(machine, lambda a, y: a, "/0.5")
    return fstdraw(machine, chance.choice([lambda a, y: f"{a}/0.5", lambda a, y: f"{a}:{y}/2"]))
