"""Docstrings as Markdown: paragraphs, the meaning of each option, and of each member of an enum."""

from __future__ import annotations

import ast
import enum
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from textwrap import dedent

from attrs import NOTHING, fields

OPTION = re.compile(r"((?:`\w+`, )*`\w+`): ")


def paragraphs(text: str) -> str:
    """Return a docstring with each paragraph, and each item of a list, on a line of its own."""
    lines: list[str] = []
    for line in inspect.cleandoc(text).splitlines():
        words = line.strip()
        begins = not words or re.match(r"(- |\d\. )", words)
        if lines and lines[-1] and not begins:
            lines[-1] += f" {words}"
        else:
            lines.append(words)
    return "\n".join(lines)


def options(function: Callable[..., object], text: str) -> Mapping[str, str]:
    """Return what a docstring says of each parameter, as in "`limit`: how many tasks run at a time".

    Raises ValueError for a parameter of which it says nothing.
    """
    names = [name for name, each in inspect.signature(function).parameters.items() if is_option(name, each)]
    said: dict[str, str] = {}
    for line in paragraphs(text).splitlines():
        parts = OPTION.split(line)
        for about, meaning in zip(parts[1::2], parts[2::2], strict=True):
            said |= {name: sentence(meaning) for name in re.findall(r"\w+", about) if name in names}
    if silent := [name for name in names if name not in said]:
        msg = f"the docstring of {function.__qualname__} says nothing of {', '.join(silent)}: write `name`: meaning"
        raise ValueError(msg)
    return {name: said[name] for name in names}


def is_option(name: str, parameter: inspect.Parameter) -> bool:
    """Tell whether a user gives this parameter: neither the object itself nor what collects unknown options."""
    return name != "self" and parameter.kind is not inspect.Parameter.VAR_KEYWORD


def sentence(text: str) -> str:
    """Return a text with a large letter at its beginning, and a point at its end."""
    text = text.strip()
    text = text if text.startswith(("`", '"')) else text[:1].upper() + text[1:]
    return text if text.endswith((".", ":")) else f"{text}."


def call(name: str, function: Callable[..., object]) -> str:
    """Return how a function is called, with its defaults: `pause(reason=None, *, until=None)`."""
    signature = inspect.signature(function)
    shown: list[str] = []
    is_keyword = False
    for each in signature.parameters.values():
        if not is_option(each.name, each):
            if each.name != "self":
                shown.append(f"**{each.name}")
            continue
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            shown.append(f"*{each.name}")
            is_keyword = True
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword:
            shown.append("*")
            is_keyword = True
        shown.append(each.name if each.default is inspect.Parameter.empty else f"{each.name}={value(each.default)}")
    return f"{name}({', '.join(shown)})"


def value(default: object) -> str:
    """Return a default as code: `Overlap.SKIP`, `"5s"`, `None`."""
    if isinstance(default, enum.Enum):
        return f"{type(default).__name__}.{default.name}"
    if isinstance(default, str):
        return f'"{default}"'
    return f"{default:_}" if isinstance(default, int) and not isinstance(default, bool) else repr(default)


def fields_of(kind: type) -> str:
    """Return the fields of a value with their defaults: `job_id`, `error = None`."""
    shown = (
        f"`{each.name}`" if each.default is NOTHING else f"`{each.name} = {value(each.default)}`"
        for each in fields(kind)
        if each.init
    )
    return ", ".join(shown)


def member_texts(kind: type[enum.Enum]) -> Iterator[tuple[enum.Enum, str]]:
    """Yield each member of an enum with the docstring below it; "" if it has none."""
    (tree,) = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    said: dict[str, str] = {}
    last = ""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]):
                last = name
            case ast.Expr(value=ast.Constant(value=str(text))) if last:
                said[last] = " ".join(text.split())
            case _:
                last = ""
    for member in kind:
        yield member, said.get(member.name, "")


def public(kind: type, *, without: Iterable[type] = (object,)) -> list[tuple[str, object]]:
    """Return the public attributes of a class in the order of its source, those of its bases after its own."""
    found: dict[str, object] = {}
    for each in (base for base in kind.__mro__ if base not in without):
        found |= {name: member for name, member in vars(each).items() if not name.startswith("_") and name not in found}
    return [(name, member) for name, member in found.items() if is_documented(member)]


def is_documented(member: object) -> bool:
    """Tell whether users call or read this: a method or a property with a docstring of its own."""
    member = member.fget if isinstance(member, property) else member
    return inspect.isfunction(member) and bool(member.__doc__)


def verb(name: str, member: object) -> str:
    """Return one method or property as an item: how it is called, and its docstring."""
    if isinstance(member, property):
        text, shown = member.__doc__ or "", name
    else:
        assert inspect.isfunction(member)
        text = member.__doc__ or ""
        shown = ("await " if inspect.iscoroutinefunction(member) else "") + call(name, member)
    return f"### `{shown}`\n\n{paragraphs(text)}"
