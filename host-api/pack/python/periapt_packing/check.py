"""What cannot work in the sandbox, found in the sources before anything is built.

An error is what certainly fails: an import that is done when the charm is imported, of a module that is not there. All
else is a warning, since nobody knows whether the code is ever reached: the rest of what a charm's own code does that
has no counterpart in the sandbox.
"""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import re
import sys
from collections.abc import Iterator

from periapt_ops.mains import is_main
from periapt_ops.stand_ins.names import ASKS_FOR_FLOATS, HOOK_TOOLS, STAND_INS
from .sources import Module, Native, Sources
from .stdlib import MISSING, NAMES, REMOVED, SINCE, VERSION

#: What a socket reaches.
NO_NETWORK = "there is no network: it reaches the unit's own workloads alone"

#: Calls that have no counterpart, by the name that they have after all imports are resolved.
CALLS = {
    "asyncio.run": "an event loop needs sockets, and there are none",
    "cgi.FieldStorage": "of the module cgi, which went with Python 3.13, there is parse_header alone",
    "concurrent.futures.ProcessPoolExecutor": "there are no processes",
    "http.client.HTTPConnection": NO_NETWORK,
    "http.client.HTTPSConnection": "there is no network",
    "multiprocessing.Pool": "there are no processes",
    "multiprocessing.Process": "there are no processes",
    "os.execv": "there are no processes",
    "os.fork": "there are no processes",
    "os.kill": "there are no processes, and none is found",
    "os.popen": "there are no processes",
    "os.system": "there are no processes",
    "signal.alarm": "there are no signals",
    "socket.create_connection": NO_NETWORK,
    "socket.create_server": "there is no network",
    "socket.socket": f"{NO_NETWORK}; of sockets on paths only Pebble's are known",
    "threading.Thread": "a hook is one thread: it runs when the hook waits for it",
    "threading.Timer": "a hook is one thread, and its end waits for this one",
    "urllib.request.urlopen": NO_NETWORK,
}

#: Functions of `subprocess` that start a program, which their first argument names.
STARTERS = frozenset(
    f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "getoutput", "getstatusoutput", "Popen")
)


#: What helps against native code that charms often bring along.
INSTEAD = {
    "bcrypt": "hashlib.pbkdf2_hmac is in the sandbox's Python",
    "lxml": "xml.etree.ElementTree is in the sandbox's Python",
    "psutil": "there is no machine to look at",
    "psycopg2": "there is no network to reach a database by",
    "psycopg2-binary": "there is no network to reach a database by",
    "pynacl": "cryptography can be built for the sandbox",
}


#: What is told where there is no `ops`, be it imported or not: the component itself needs it.
_NO_OPS = (
    "module ops is neither in src, nor in lib, nor among the dependencies, and a charm in Python runs on it: name ops in"
    " requirements.txt, or in the dependencies of pyproject.toml"
)

#: What is told of a program that ends where it began.
_NO_MAIN = 'no statement runs the charm: end it with ops.main(CLASS), or with `if __name__ == "__main__":`'

#: What a charm's library is called.
_LIBRARY = r"charms\.\w+\.v\d+\.\w+"


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """Something that cannot work."""

    file: str
    line: int
    #: `error` or `warning`.
    severity: str
    message: str
    #: What is the same for all places of one cause, if the message is not.
    cause: str = dataclasses.field(default="", compare=False)


def check(charm: pathlib.Path, native: list[dict] | None = None, original: pathlib.Path | None = None) -> list[Finding]:
    """What cannot work in a charm whose sources are in src, lib and venv below a directory; sorted.

    `native`: files that were taken out of the dependencies, as `vendor` tells them. `original`: the author's own directory.
    """
    sources = Sources(charm, _modules(native or []), original)
    findings = set(_of_program(sources))
    findings.update(_of_imports(sources))
    for module in sources.own():
        if isinstance(module.tree, SyntaxError):
            # An older Python than the sandbox's may not know what is right there.
            severity = "warning" if sys.version_info < VERSION else "error"
            version = ".".join(map(str, sys.version_info[:2]))
            message = f"{module.tree.msg} (read as Python {version}; the sandbox's is {'.'.join(map(str, VERSION))})"
            findings.add(Finding(module.file, module.tree.lineno or 1, severity, message))
        else:
            findings.update(_of_code(module, sources))
    # What is an error need not be warned of as well.
    errors = [finding for finding in findings if finding.severity == "error"]
    places, causes = {(finding.file, finding.line) for finding in errors}, {finding.cause for finding in errors} - {""}
    warnings = [finding for finding in findings if finding.severity != "error"]
    told = errors + [finding for finding in warnings if (finding.file, finding.line) not in places and finding.cause not in causes]
    return list(_once(sorted(told)))


def _once(findings: list[Finding]) -> Iterator[Finding]:
    """Each cause at the first of its places, with how many more there are."""
    places: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        places.setdefault((finding.severity, finding.cause or finding.message), []).append(finding)
    for first, *others in places.values():
        if not others:
            yield first
            continue
        again = f"; so in {len(others)} more place{'s' if len(others) > 1 else ''}: {', '.join(f'{it.file}:{it.line}' for it in others[:2])}"
        yield dataclasses.replace(first, message=first.message + again + (", ..." if len(others) > 2 else ""))


def _modules(native: list[dict]) -> dict[str, Native]:
    return {
        file["module"]: Native(file["package"], file["file"], tuple(file.get("required-by") or ()), file.get("lacking") or "")
        for file in native
        if file.get("module")
    }


def _of_program(sources: Sources) -> Iterator[Finding]:
    """What the charm's program lacks that every one needs."""
    program = sources.program()
    if isinstance(program.tree, SyntaxError):
        return
    if not any(map(is_main, program.tree.body)):
        yield Finding(program.file, 1, "error", _NO_MAIN)
    imported = any(name.partition(".")[0] == "ops" for _, name in program.certain_imports())
    if not imported and not sources.knows("ops"):
        yield Finding(program.file, 1, "error", _NO_OPS, "ops")


def _of_imports(sources: Sources) -> Iterator[Finding]:
    """Follows the imports that are certainly done when src/charm.py is imported."""
    waiting, seen = ["charm"], set()
    # From where each module is imported first.
    reached: dict[str, tuple[Module, int]] = {}
    told = set()
    while waiting:
        name = waiting.pop(0)
        module = sources.find(name)
        if name in seen or module is None or isinstance(module.tree, SyntaxError):
            continue
        seen.add(name)
        for line, imported in module.certain_imports():
            native = sources.taken_out(imported)
            if native is not None:
                found = _of_native(native, module, line, reached)
                # Of a package that is imported in many ways the first is enough.
                if (found.file, found.line, native.package) not in told:
                    told.add((found.file, found.line, native.package))
                    yield found
                continue
            is_given = (module.name, imported) == (ASKS_FOR_FLOATS, "ctypes")
            reason = None if is_given else _missing(imported, sources)
            if reason:
                yield Finding(module.file, line, "error", reason, "ops" if reason == _NO_OPS else "")
            else:
                parts = imported.split(".")
                for end in range(len(parts)):
                    prefix = ".".join(parts[: end + 1])
                    reached.setdefault(prefix, (module, line))
                    waiting.append(prefix)


def _instead(native: Native) -> str | None:
    """What helps against native code of a package."""
    package = native.package.split(" ")[0].lower()
    if package == "msgspec" and any(by.startswith("lightkube ") for by in native.required_by):
        return "lightkube before 1.0 does without it: periapt pack --upgrade 'lightkube<1' takes it where a lock has a newer one"
    return INSTEAD.get(package)


def _of_native(native: Native, module: Module, line: int, reached: dict[str, tuple[Module, int]]) -> Finding:
    """Native code that is certainly imported, at the line of the charm's own that leads there."""
    way = []
    seen = {module.name}
    while not module.is_own and module.name in reached and reached[module.name][0].name not in seen:
        way.append(f"{module.file.removeprefix('venv/')}:{line}")
        module, line = reached[module.name]
        seen.add(module.name)
    asked = f", required by {' and '.join(native.required_by)}" if native.required_by else ""
    reason = native.lacking or "native code cannot run in the sandbox"
    what = f"{native.package} is native code ({native.file}){asked}, and" if native.file else f"{native.package}{asked},"
    message = f"{what} {reason}"
    through = [place for place in way if place.split("/")[0] != native.file.split("/")[0]]
    if through:
        message += f"; imported at {through[0]}"
    instead = _instead(native)
    if instead:
        message += f"; {instead}"
    return Finding(module.file, line, "error", message, native.package)


def _missing(name: str, sources: Sources) -> str | None:
    """Why a module cannot be imported; none if it can."""
    top = name.split(".")[0]
    if top in MISSING:
        return _absent(top)
    if sources.knows(top) or re.match(_LIBRARY, name):
        return _library(name, sources)
    if top in REMOVED:
        return _absent(top)
    if top in NAMES or top in STAND_INS:
        return None
    if top == "ops":
        return _NO_OPS
    return f"module {top} is neither in src, nor in lib, nor among the dependencies"


def _absent(top: str) -> str:
    """Why a module of the standard library is not there."""
    if top in MISSING:
        return f"module {top} is not in the sandbox's Python: {MISSING[top]}"
    instead = f"; there is {SINCE[top]}" if top in SINCE else ""
    return f"module {top} is not in the sandbox's Python {'.'.join(map(str, VERSION))}: it went with {REMOVED[top]}{instead}"


def _library(name: str, sources: Sources) -> str | None:
    """Why a charm's library cannot be imported; none if it is there, or is no such library."""
    found = re.match(_LIBRARY, name)
    if found is None or sources.find(found[0]) is not None or sources.is_directory(found[0]):
        return None
    # In a package with code of its own it may be a name like any other.
    if sources.find(found[0].rpartition(".")[0]) is not None:
        return None
    fetched = "charmcraft fetch-libs brings it" if sources.charm_libs() else f"charmcraft fetch-lib {found[0]} brings one that is published"
    return f"module {found[0]} is not in lib: {fetched}"


def _of_code(module: Module, sources: Sources) -> Iterator[Finding]:
    """What a module of the charm's own may come to."""
    for line, imported in module.all_imports():
        top = imported.split(".")[0]
        if top in MISSING or (top in REMOVED and not sources.knows(top)):
            yield Finding(module.file, line, "warning", _absent(top))
        native = sources.native_behind(imported)
        if native is not None:
            reason = native.lacking or "what needs it fails"
            what = f"{native.package} is native code, and {reason}" if native.file else f"{native.package} {reason}"
            yield Finding(module.file, line, "warning", what, native.package)
    for call in (node for node in ast.walk(module.tree) if isinstance(node, ast.Call)):
        name = module.resolved(call.func)
        message = _of_call(name, call) if name else None
        if message:
            yield Finding(module.file, call.lineno, "warning", message)


def _of_call(name: str, call: ast.Call) -> str | None:
    if name in CALLS:
        return f"{name}: {CALLS[name]}"
    if name in STARTERS:
        program = _program(call)
        if program is not None and program.rpartition("/")[2] not in HOOK_TOOLS:
            return f"{name}: {program!r} is no hook tool, and there are no other programs"
    if name in ("importlib.import_module", "__import__") and call.args and not isinstance(call.args[0], ast.Constant):
        return f"{name}: a module that only this names must be one of the charm's own or of its dependencies"
    return None


def _program(call: ast.Call) -> str | None:
    """The program that a call names outright."""
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "args")]
    if not given:
        return None
    first = given[0]
    if isinstance(first, (ast.List, ast.Tuple)) and first.elts:
        first = first.elts[0]
        words = [first.value] if isinstance(first, ast.Constant) and isinstance(first.value, str) else []
    elif isinstance(first, ast.Constant) and isinstance(first.value, str):
        words = first.value.split()
    elif isinstance(first, ast.JoinedStr) and first.values and isinstance(first.values[0], ast.Constant):
        # Up to the first space it is known, if there is one.
        text = str(first.values[0].value)
        words = text.split()[:1] if " " in text.strip() or text.endswith(" ") else []
    else:
        words = []
    return words[0] if words else None
