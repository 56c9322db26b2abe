"""Changes of a module in one place, such as a typing error makes, and the functions that contain them."""

import ast
from pathlib import Path
from typing import NamedTuple

OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


NAMES = {"max": "min", "min": "max", "any": "all", "all": "any", "maximum": "minimum", "minimum": "maximum"}


class Change(NamedTuple):
    """A change of a module: its line, what is changed, and which node of the tree it is at."""

    module: Path
    line: int
    what: str
    node: int


def changes(module: Path) -> list[Change]:
    """Return every change of a module."""
    nodes = enumerate(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    return [Change(module, getattr(node, "lineno", 0), what, index) for index, node in nodes for what in kinds_of(node)]


def changed(source: str, change: Change) -> ast.Module:
    """Return the changed module."""
    tree = ast.parse(source)
    apply(next(node for index, node in enumerate(ast.walk(tree)) if index == change.node), tree)
    return ast.fix_missing_locations(tree)


def kinds_of(node: ast.AST) -> list[str]:
    """What can be changed at a node, in words."""
    if isinstance(node, ast.Compare):
        return [f"{type(op).__name__} becomes {OTHER[type(op)].__name__}" for op in node.ops if type(op) in OTHER][:1]
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        return [f"{type(node.op).__name__} becomes {OTHER[type(node.op)].__name__}"] if type(node.op) in OTHER else []
    if isinstance(node, ast.UnaryOp):
        return [f"{type(node.op).__name__} left out"]
    if isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        return [f"{node.value} becomes {other_number(node.value)}"]
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return [f"{name} becomes {NAMES[name]}"] if name in NAMES else []
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return ["the condition is turned around"]
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return [f"left out: {ast.unparse(node)[:60]}"]
    return []


def other_number(value: float) -> float:
    """Truth values turn around, whole numbers grow by one, and others by a half."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value * 1.5


def apply(node: ast.AST, tree: ast.Module) -> None:
    """Make the change in the tree that contains the node."""
    if isinstance(node, ast.Compare):
        position = next(index for index, op in enumerate(node.ops) if type(op) in OTHER)
        node.ops[position] = OTHER[type(node.ops[position])]()  # type: ignore[call-overload]
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        node.op = OTHER[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Constant):
        node.value = other_number(node.value)  # type: ignore[arg-type]
    elif isinstance(node, ast.Name):
        node.id = NAMES[node.id]
    elif isinstance(node, ast.Attribute):
        node.attr = NAMES[node.attr]
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.UnaryOp):
        replace(tree, node, node.operand)
    else:
        replace(tree, node, ast.Pass())


def replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list) and any(item is old for item in value):
                value[:] = [new if item is old else item for item in value]


class Spot(NamedTuple):
    """The outermost function that contains a change: its name, its first line, and the statement with the change."""

    name: str
    line: int
    statement: ast.stmt


def spots(tree: ast.Module) -> dict[int, Spot]:
    """Return the spot of each node inside a function, by its index in `ast.walk`."""
    inside: dict[int, Spot] = {}

    def visit(node: ast.AST, names: tuple[str, ...], spot: Spot | None) -> None:
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST):
                    continue
                own = spot
                if spot and isinstance(child, ast.stmt):
                    own = spot._replace(statement=child)
                elif isinstance(node, ast.FunctionDef) and spot is None and field == "body":
                    line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                    own = Spot(".".join(names), line, child)
                if own:
                    inside[id(child)] = own
                is_named = isinstance(child, ast.ClassDef | ast.FunctionDef)
                visit(child, (*names, child.name) if is_named else names, own)

    visit(tree, (), None)
    return {index: inside[id(node)] for index, node in enumerate(ast.walk(tree)) if id(node) in inside}


def insert(tree: ast.AST, statement: ast.stmt, marker: ast.stmt) -> None:
    """Insert a statement before another."""
    for parent in ast.walk(tree):
        for _, value in ast.iter_fields(parent):
            if isinstance(value, list):
                for index, item in enumerate(value):
                    if item is statement:
                        value.insert(index, marker)
                        return
