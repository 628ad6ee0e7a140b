"""The sources of a charm: its own in src and lib, its dependencies' in venv, found by module as an import would."""

from __future__ import annotations

import ast
import dataclasses
import functools
import os
import pathlib
from collections.abc import Iterator

from periapt_ops.location import PARTS
from .built import SUFFIX

#: What is raised by an import that fails, or by more than that.
_CAUGHT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclasses.dataclass(frozen=True)
class Native:
    """A module in native code that was taken out of a dependency, or a package that has no wheel."""

    package: str
    #: Empty, if there is no wheel.
    file: str
    #: Who asked for the package: a line of requirements, or other packages.
    required_by: tuple[str, ...] = ()
    #: Why there is none of it for the sandbox, where there could be.
    lacking: str = ""


class Sources:
    """All modules below a directory with src, lib and venv."""

    def __init__(self, root: pathlib.Path, native: dict[str, Native] | None = None, original: pathlib.Path | None = None):
        self._root = root
        self._original = original
        #: Modules in native code, which are not there any more. Some are compiled from a source beside them, which is.
        self.native = {name: module for name, module in (native or {}).items() if self.find(name) is None}

    def own(self) -> Iterator[Module]:
        """The charm's own modules, tests left out."""
        for part in PARTS[:2]:
            for path in sorted((self._root / part).rglob("*.py")):
                below = path.relative_to(self._root / part).parts
                if "tests" not in below and "__pycache__" not in below:
                    yield Module(self._root, path, ".".join(below).removesuffix(".py").removesuffix(".__init__"))

    def program(self) -> Module:
        """The charm's program."""
        return Module(self._root, self._root / "src/charm.py", "charm")

    @functools.cache
    def find(self, name: str) -> Module | None:
        """A module by name; none if it is no file of these."""
        below = pathlib.PurePath(*name.split("."))
        for part in PARTS:
            for path in (self._root / part / below / "__init__.py", self._root / part / below.with_suffix(".py")):
                if os.path.isfile(path):
                    return Module(self._root, path, name)
        return None

    @functools.cache
    def knows(self, top: str) -> bool:
        """Whether there is a module or a package of that name; a package may be a bare directory, a module native code."""
        is_built = any(os.path.isfile(self._root / part / f"{top}{SUFFIX}") for part in PARTS)
        return is_built or self.find(top) is not None or self.is_directory(top)

    def is_directory(self, name: str) -> bool:
        """Whether a directory may be a package of that name."""
        return any(os.path.isdir(self._root.joinpath(part, *name.split("."))) for part in PARTS)

    def charm_libs(self) -> bool:
        """Whether charmcraft.yaml names libraries that charmcraft is to bring."""
        file = self._original / "charmcraft.yaml" if self._original else None
        if file is None or not file.is_file():
            return False
        return any(line.startswith(b"charm-libs:") for line in file.read_bytes().splitlines())

    @functools.cache
    def taken_out(self, name: str) -> Native | None:
        """The native code that a module is, or the package without a wheel that it is of."""
        package = self.native.get(name.partition(".")[0])
        return self.native.get(name) or (package if package is not None and not package.file else None)

    def native_behind(self, name: str) -> Native | None:
        """The native code that an import of a module certainly comes to, if it does."""
        waiting, seen = [name], set()
        while self.native and waiting:
            parts = waiting.pop(0).split(".")
            for prefix in (".".join(parts[: end + 1]) for end in range(len(parts))):
                if prefix in self.native:
                    return self.native[prefix]
                module = self.find(prefix)
                if prefix in seen or module is None or isinstance(module.tree, SyntaxError):
                    continue
                seen.add(prefix)
                waiting.extend(imported for _, imported in module.certain_imports())
        return None


class Module:
    """One source."""

    def __init__(self, root: pathlib.Path, path: pathlib.Path, name: str):
        #: Where it is, below the charm's directory.
        self.file = path.relative_to(root).as_posix()
        self._path, self.name = path, name

    @property
    def is_own(self) -> bool:
        """Whether it is the charm's, and not of a dependency."""
        return not self.file.startswith("venv/")

    @functools.cached_property
    def tree(self) -> ast.Module | SyntaxError:
        """Its code, or what is wrong with it."""
        try:
            return ast.parse(self._path.read_bytes(), self.file)
        except SyntaxError as error:
            return error
        except ValueError as error:
            return SyntaxError(str(error))
        except (RecursionError, MemoryError):
            return SyntaxError("too deeply nested")

    def certain_imports(self) -> Iterator[tuple[int, str]]:
        """Lines and names of imports that are done whenever the module is, and that nothing catches."""
        yield from self._imports(_certain(self.tree.body))

    def all_imports(self) -> Iterator[tuple[int, str]]:
        """Lines and names of all imports, wherever they stand, that nothing catches."""
        caught = {
            node
            for block in ast.walk(self.tree)
            if (isinstance(block, ast.Try) and _catches(block)) or (isinstance(block, ast.With) and _suppresses(block))
            for statement in block.body
            for node in ast.walk(statement)
        }
        yield from self._imports(node for node in ast.walk(self.tree) if node not in caught)

    def resolved(self, function: ast.expr) -> str | None:
        """What a name in a call stands for, by the module's imports: `sp.run` for `subprocess.run`."""
        parts = []
        while isinstance(function, ast.Attribute):
            parts.append(function.attr)
            function = function.value
        if not isinstance(function, ast.Name):
            return None
        first = self._names.get(function.id)
        if first is None:
            return function.id if function.id == "__import__" and not parts else None
        return ".".join([first, *reversed(parts)])

    @functools.cached_property
    def _names(self) -> dict[str, str]:
        names = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.split(".")[0]
                    names[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        return names

    def _imports(self, nodes) -> Iterator[tuple[int, str]]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = self._absolute(node)
                if base:
                    yield node.lineno, base
                    # What is imported from a package may be a module of it.
                    yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names if alias.name != "*")

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        is_package = self.file.endswith("/__init__.py")
        parents = self.name.split(".")
        parents = parents[: len(parents) - node.level + (1 if is_package else 0)]
        return ".".join([*parents, node.module] if node.module else parents)


def _certain(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, whatever the conditions in it say."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.With) and _suppresses(statement):
            continue
        if isinstance(statement, (ast.With, ast.ClassDef)):
            yield from _certain(statement.body)
        elif isinstance(statement, ast.Try) and not _catches(statement):
            yield from _certain(statement.body)
            yield from _certain(statement.finalbody)


def _catches(block: ast.Try) -> bool:
    """Whether a failed import in a block is expected."""
    for handler in block.handlers:
        if handler.type is None:
            return True
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        if _are_caught(kinds):
            return True
    return False


def _suppresses(block: ast.With) -> bool:
    """Whether a failed import in a block is expected by `contextlib.suppress`."""
    calls = [item.context_expr for item in block.items if isinstance(item.context_expr, ast.Call)]
    return any(_name(call.func) == "suppress" and _are_caught(call.args) for call in calls)


def _are_caught(kinds: list[ast.expr]) -> bool:
    return any(_name(kind) in _CAUGHT for kind in kinds)


def _name(expression: ast.expr) -> str | None:
    return getattr(expression, "id", getattr(expression, "attr", None))
