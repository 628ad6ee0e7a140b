"""Which files of a project's sources are its modules, as its build backend would find them, without running it.

Projects in Python alone are taken: what setuptools, hatch, uv, poetry and flit are told in pyproject.toml or setup.cfg, or find
by their conventions. What only a backend can know is an error of one line.
"""

from __future__ import annotations

import configparser
import fnmatch
import os
import pathlib
from collections.abc import Iterator, Sequence

from .lines import RequirementError
from .repository import Repository
from .unpacked import MOST_BYTES, normalised

#: Backends that compile something.
_COMPILERS = ("maturin", "mesonpy", "scikit_build_core", "setuptools_rust", "cmeson", "pyodide_build", "enscons")

#: Words in a setup.py that makes native code.
_EXTENSIONS = ("ext_modules", "cffi_modules", "rust_extensions", "cythonize", "Extension(")

#: Directories of a project that setuptools takes for no packages of it.
_BESIDE = frozenset(
    "benchmarks build ci debian dist doc docs documentation env examples example exercises files htmlcov integration lib manpages"
    " node_modules scripts tasks test tests tools unit utils venv www".split()
)

#: What is no file of a package's.
_LEFT_OUT = ("__pycache__", "*.pyc", "*.egg-info", ".*")

#: The most files of one project.
_MOST_FILES = 5_000


def files(
    project: pathlib.Path, document: dict, name: str, repository: Repository, place: str, known: Sequence[tuple[str, str]] = ()
) -> dict[str, pathlib.Path]:
    """The files of a project's modules: where each one is imported from, and where it lies.

    `document` is its pyproject.toml; `place` is who asks for it; `known` are its modules, if they are noted.
    """
    shown = f"{place}: {repository.shown(project)}"
    walk = _Walk(repository, shown)
    found = known or list(_named(project, document, normalised(name), walk)) or list(_by_convention(project, normalised(name)))
    for source, target in found:
        walk.take(project / source if source else project, target)
    if not any(target.endswith(".py") for target in walk.files):
        raise RequirementError(
            f"{shown}: which modules {name} has cannot be read without running its build backend: name them in its pyproject.toml"
        )
    return walk.files


def native_by(project: pathlib.Path, document: dict) -> str:
    """What there is to be said of a project that makes native code: by its build backend, or in setup.py; else nothing."""
    backend = _table(document, "build-system").get("build-backend", "")
    if isinstance(backend, str) and backend.partition(".")[0] in _COMPILERS:
        return f"is built by {backend.partition('.')[0]}, which makes native code"
    setup = project / "setup.py"
    has_code = setup.is_file() and any(word in _text(setup) for word in _EXTENSIONS)
    return "has native code (setup.py)" if has_code else ""


def _named(project: pathlib.Path, document: dict, name: str, walk: _Walk) -> Iterator[tuple[str, str]]:
    """Packages and modules that a project names: the path of each, and where it is imported from."""
    tool = _table(document, "tool")
    yield from _of_setuptools(project, _table(tool, "setuptools"), walk)
    build = _table(_table(tool, "hatch"), "build")
    yield from _of_hatch({**build, **_table(_table(build, "targets"), "wheel")}, walk.shown)
    yield from _of_uv(_table(_table(tool, "uv"), "build-backend"), name)
    for package in _tables(_table(tool, "poetry").get("packages")):
        include = str(package.get("include", "")).rstrip("/")
        if include and not any(sign in include for sign in "*?["):
            yield _joined(str(package.get("from", "")), include), _joined(str(package.get("to", "")), include)
    flit = _table(_table(tool, "flit"), "module").get("name")
    if isinstance(flit, str):
        module = flit.replace(".", "/")
        base = next((base for base in ("src", "") if is_module(walk.within(project / base / module))), "")
        yield _joined(base, module), module
    if (project / "setup.cfg").is_file() and "setuptools" not in tool:
        yield from _of_setup_cfg(project, walk)


def _of_setuptools(project: pathlib.Path, said: dict, walk: _Walk) -> Iterator[tuple[str, str]]:
    bases = {str(key): str(value) for key, value in _table(said, "package-dir").items()}
    packages = said.get("packages")
    if isinstance(packages, list):
        yield from (_package(str(package), bases) for package in packages)
    elif isinstance(packages, dict) and isinstance(packages.get("find"), dict):
        find = packages["find"]
        where, include = _strings(find.get("where")) or ["."], _strings(find.get("include")) or ["*"]
        yield from _found(project, where, include, _strings(find.get("exclude")), walk)
    for module in _strings(said.get("py-modules")):
        path = module.replace(".", "/") + ".py"
        yield _joined(bases.get("", ""), path), path


def _of_setup_cfg(project: pathlib.Path, walk: _Walk) -> Iterator[tuple[str, str]]:
    parser = setup_cfg(project, walk.shown)
    options = parser["options"] if parser.has_section("options") else {}
    lines = dict(
        tuple(part.strip() for part in line.split("=", 1)) for line in options.get("package_dir", "").splitlines() if "=" in line
    )
    packages = options.get("packages", "").strip()
    if packages.startswith(("find:", "find_namespace:")):
        find = parser["options.packages.find"] if parser.has_section("options.packages.find") else {}
        where = find.get("where", "").strip() or lines.get("", ".")
        yield from _found(project, [where], find.get("include", "*").split() or ["*"], find.get("exclude", "").split(), walk)
    else:
        yield from (_package(package, lines) for package in packages.replace(",", " ").split())
    for module in options.get("py_modules", "").replace(",", " ").split():
        path = module.replace(".", "/") + ".py"
        yield _joined(lines.get("", ""), path), path


def setup_cfg(project: pathlib.Path, shown: str) -> configparser.ConfigParser:
    """The setup.cfg of a project; empty, if it has none."""
    parser = configparser.ConfigParser(interpolation=None)
    file = project / "setup.cfg"
    try:
        parser.read_string(_text(file) if file.is_file() else "")
    except configparser.Error as error:
        raise RequirementError(f"{shown}/setup.cfg: {str(error).splitlines()[0]}") from None
    return parser


def _of_hatch(said: dict, shown: str) -> Iterator[tuple[str, str]]:
    if said.get("force-include"):
        raise RequirementError(
            f"{shown}: which modules it has depends on hatch's force-include, which is not read here: name packages in its place"
        )
    for package in _strings(said.get("packages")):
        path = package.strip("/")
        yield path, path.rpartition("/")[2]
    prefixes = [prefix.strip("/") for prefix in _strings(said.get("sources"))]
    for included in [] if said.get("packages") else _strings(said.get("only-include")) or _strings(said.get("include")):
        path = included.removesuffix("/**/*.py").removesuffix("/**").removesuffix("/*").strip("/")
        if any(sign in path for sign in "*?["):
            continue
        prefix = next((prefix for prefix in [*prefixes, "src"] if path == prefix or path.startswith(f"{prefix}/")), "")
        yield path, path[len(prefix) :].strip("/")


def _of_uv(said: dict, name: str) -> Iterator[tuple[str, str]]:
    if not said:
        return
    root = str(said.get("module-root", "src"))
    named = said.get("module-name", name.replace("-", "_"))
    for module in [named] if isinstance(named, str) else _strings(named):
        path = module.replace(".", "/")
        yield _joined(root, path), path


def _by_convention(project: pathlib.Path, name: str) -> Iterator[tuple[str, str]]:
    """What backends find that are told nothing: all in src, or else what is called as the project is."""
    source = project / "src"
    if source.is_dir() and not (source / "__init__.py").exists():
        yield "src", ""
        return
    spelled = {name.replace("-", "_"), name.replace("-", "")}
    entries = sorted(entry.name for entry in project.iterdir())
    for entry in entries:
        if entry.lower().removesuffix(".py") in spelled and is_module(project / entry.removesuffix(".py")):
            yield entry, entry
            return
    nested = name.replace("-", "/")
    if nested != name and (project / nested).is_dir():
        yield nested, nested
        return
    packages = [entry for entry in entries if entry not in _BESIDE and (project / entry / "__init__.py").is_file()]
    if len(packages) == 1:
        yield packages[0], packages[0]


def _found(
    project: pathlib.Path, where: list[str], include: list[str], exclude: list[str], walk: _Walk
) -> Iterator[tuple[str, str]]:
    """Packages that lie in directories, as far as patterns take their names in."""
    for base in where:
        directory = walk.within(project / base)
        if not directory.is_dir():
            continue
        for entry in sorted(directory.iterdir()):
            wanted = any(_takes(pattern, entry.name) for pattern in include) and not any(
                fnmatch.fnmatch(entry.name, one) for one in exclude
            )
            beside = base in (".", "") and (entry.name in _BESIDE or not (entry / "__init__.py").is_file()) and include == ["*"]
            if entry.is_dir() and wanted and not beside and entry.name.isidentifier():
                yield _joined(base, entry.name), entry.name


def _takes(pattern: str, name: str) -> bool:
    """Whether a pattern for packages takes a top-level one in; `charms.foo*` takes `charms`."""
    return fnmatch.fnmatch(name, pattern.partition(".")[0])


def _package(package: str, bases: dict[str, str]) -> tuple[str, str]:
    path = package.replace(".", "/")
    return bases.get(package) or _joined(bases.get("", ""), path), path


class _Walk:
    """Files that are taken out of a repository, links among them followed as long as they stay in it."""

    def __init__(self, repository: Repository, shown: str):
        self._repository, self.shown = repository, shown
        self.files: dict[str, pathlib.Path] = {}
        self._bytes = 0

    def within(self, path: pathlib.Path) -> pathlib.Path:
        """Where a path leads, if that is in the repository."""
        return self._repository.within(path, self.shown)

    def take(self, path: pathlib.Path, target: str) -> None:
        """Take a package's directory or a module."""
        if target.startswith("/") or ".." in target.split("/"):
            raise RequirementError(f"{self.shown}: {target!r} is no name of a package or a module")
        self.within(path)
        if not os.path.lexists(path) and os.path.lexists(f"{path}.py"):
            path, target = path.with_name(f"{path.name}.py"), f"{target}.py"
        if not os.path.lexists(path):
            raise RequirementError(
                f"{self.shown}: it names {self._repository.shown(path)} among its modules, and that is not there"
            )
        self._take(path, target, ())

    def _take(self, path: pathlib.Path, target: str, above: tuple[pathlib.Path, ...]) -> None:
        real = self.within(path)
        if real.is_file():
            self._bytes += real.stat().st_size
            if len(self.files) >= _MOST_FILES or self._bytes > MOST_BYTES:
                raise RequirementError(f"{self.shown} has more than {_MOST_FILES} files, or more than {MOST_BYTES >> 20} MiB")
            self.files[target] = real
        elif real.is_dir():
            if real in above:
                raise RequirementError(f"{self.shown}: {self._repository.shown(path)} is a link to a directory that it lies in")
            for entry in sorted(real.iterdir()):
                if not any(fnmatch.fnmatch(entry.name, pattern) for pattern in _LEFT_OUT):
                    self._take(entry, _joined(target, entry.name), (*above, real))
        else:
            raise RequirementError(f"{self.shown}: {self._repository.shown(path)} is neither a file nor a directory")


def is_module(path: pathlib.Path) -> bool:
    """Whether a path without a suffix is that of a module, or of a directory with some."""
    return os.path.isdir(path) and any(path.rglob("*.py")) or os.path.isfile(f"{path}.py")


def _text(file: pathlib.Path) -> str:
    with file.open("rb") as opened:
        return opened.read(1 << 20).decode("utf-8", errors="replace")


def _joined(base: str, path: str) -> str:
    return f"{base.strip('/')}/{path}" if base.strip("/").strip(".") else path


def _strings(listed) -> list[str]:
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []


def _tables(listed) -> list[dict]:
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _table(document, key: str) -> dict:
    found = document.get(key) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}
