"""Releases that have sources and no wheel: their modules are put into a wheel as they lie, and nothing of them is run.

A project in Python alone needs no more: an archive of sources has its metadata with it, as the tool wrote it that made the
archive on its author's machine (PKG-INFO, `*.egg-info`).
"""

from __future__ import annotations

import dataclasses
import email.parser
import pathlib
import re
import zipfile
from collections.abc import Iterator, Sequence

from . import archives, fetching, layout, locks, markers, native, pinned, requirements, trees, unpacked
from .archives import ArchiveError
from .fetching import PYTHON_VERSIONS, VendorError
from .lines import RequirementError
from .pinned import Pin
from .repository import Repository
from .unpacked import Wheel, normalised
from .wheels import version_of

#: The most bytes of a file with metadata.
_MOST_METADATA = 4 << 20

#: The most packages that are taken so for one charm.
_MOST_PACKAGES = 100


#: How it is told that a package is taken so.
FROM_SOURCES = "its modules are taken from its sources, and nothing is built"


@dataclasses.dataclass
class Sdists:
    """What is taken from archives of sources while a charm is packed, as wheels in one directory."""

    #: Where pip finds the wheels.
    directory: pathlib.Path
    #: The wheels, by their packages.
    wheels: dict[str, Wheel] = dataclasses.field(default_factory=dict)
    #: Why others cannot be had so, as the end of a sentence about their sources.
    refused: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def options(self) -> tuple[str, ...]:
        """What has pip look among the wheels."""
        return (f"--find-links={self.directory}",) if self.wheels else ()

    def take(self, name: str, required: str, constraints: Sequence[str] = ()) -> bool:
        """Take the newest release that a requirement allows; answers whether it could be had."""
        name = normalised(name)
        if name in self.wheels or name in self.refused:
            return False
        try:
            requirements.checked(required, name)
            is_exact = markers.exact_version(required) is not None
        except (RequirementError, markers.UnreadableError):
            return self._refuse(name, "is not found")
        any_python = ("--ignore-requires-python",)
        for number, options in enumerate([any_python] if is_exact else [(f"--python-version={it}",) for it in PYTHON_VERSIONS]):
            place = self._place(str(number))
            try:
                self._fetch(place, [required], constraints, *options)
            except VendorError:
                continue
            return self._made(name, place)
        return self._refuse(name, "is not found")

    def take_pin(self, pin: Pin) -> bool:
        """Take a release in the one archive that its digests allow; answers whether it could be had."""
        if pin.name in self.wheels or pin.name in self.refused or not pin.digests:
            return False
        place = self._place("pinned")
        try:
            self._fetch(place, [pin.line], (), "--require-hashes", "--ignore-requires-python")
        except fetching.Unreachable:
            raise
        except VendorError:
            return self._refuse(pin.name, "is not found by the digests that are locked")
        if not all(pinned.has_digest(pin, file) for file in place.iterdir()):
            return self._refuse(pin.name, "has none of the digests that are locked")
        return self._made(pin.name, place)

    def why_not(self, name: str) -> str:
        """Why a package that has no wheel is not brought in."""
        refused = self.refused.get(name)
        return f"its archive of sources {refused}" if refused else "nothing is built"

    def _place(self, version: str) -> pathlib.Path:
        return self.directory.with_name(f"source-{len(self.wheels) + len(self.refused)}-{version}")

    def _fetch(self, place: pathlib.Path, required: Sequence[str], constraints: Sequence[str], *options: str) -> None:
        place.mkdir()
        listed = []
        for option, lines in (("-r", required), ("-c", constraints)):
            file = place.with_name(f"{place.name}{option}.txt")
            file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            listed += [option, str(file)] if lines else []
        fetching.run("download", "--dest", str(place), "--no-deps", "--no-binary=:all:", *options, *listed)

    def _made(self, name: str, place: pathlib.Path) -> bool:
        """Make a wheel of the one archive in a directory."""
        found = list(place.iterdir())
        version = version_of(found[0].name, name) if len(found) == 1 else ""
        if not version:
            return self._refuse(name, "is no .tar.gz or .zip of its name")
        if len(self.wheels) >= _MOST_PACKAGES:
            return self._refuse(name, f"would be one of more than {_MOST_PACKAGES} that a charm takes so")
        try:
            version = str(markers.version_of(version))
            project = archives.unpack(found[0], place / "unpacked")
            files, metadata = _modules(project, name), _metadata(project, name, version)
        except (ArchiveError, markers.UnreadableError) as error:
            return self._refuse(name, str(error))
        self.directory.mkdir(exist_ok=True)
        spelled = re.sub(r"[-_.]+", "_", name)
        made = self.directory / f"{spelled}-{version}-py3-none-any.whl"
        _write(made, f"{spelled}-{version}.dist-info", files, metadata)
        try:
            wheels = {wheel.file: wheel for wheel in unpacked.checked(self.directory)}
        except unpacked.UnpackError as error:
            made.unlink()
            return self._refuse(name, f"makes no wheel ({error})")
        self.wheels[name] = wheels[made.name]
        return True

    def _refuse(self, name: str, why: str) -> bool:
        self.refused[name] = why
        return False


def _write(wheel: pathlib.Path, info: str, files: dict[str, pathlib.Path], metadata: dict[str, str]) -> None:
    said = {"WHEEL": "Wheel-Version: 1.0\nGenerator: periapt\nRoot-Is-Purelib: true\nTag: py3-none-any\n", **metadata, "RECORD": ""}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in files.items():
            archive.writestr(zipfile.ZipInfo(name), source.read_bytes())
        for name, text in said.items():
            archive.writestr(zipfile.ZipInfo(f"{info}/{name}"), text)


def _modules(project: pathlib.Path, name: str) -> dict[str, pathlib.Path]:
    """The files of a project's modules, by where they are imported from."""
    document = _document(project)
    if name not in native.OPTIONAL and (why := layout.native_by(project, document)):
        raise ArchiveError(why)
    try:
        files = layout.files(project, document, name, Repository.of(project), name, list(_told_modules(project)))
    except RequirementError:
        raise ArchiveError("does not say which modules it has without being run") from None
    return files


def _told_modules(project: pathlib.Path) -> Iterator[tuple[str, str]]:
    """The modules that setuptools noted when it made the archive: the path of each, and where it is imported from."""
    info = _egg_info(project)
    base = "" if info is None or info.parent == project else info.parent.relative_to(project).as_posix()
    for module in _text(info / "top_level.txt").split() if info else ():
        path = module.replace(".", "/")
        # Of a module in native code there is no such file.
        if path.replace("/", "").isidentifier() and layout.is_module(project / base / path):
            yield f"{base}/{path}" if base else path, path


def _egg_info(project: pathlib.Path) -> pathlib.Path | None:
    """The one directory in which setuptools notes what it knows; it lies beside the modules."""
    found = [*project.glob("*.egg-info"), *project.glob("*/*.egg-info")]
    return found[0] if len(found) == 1 and found[0].is_dir() else None


def _metadata(project: pathlib.Path, name: str, version: str) -> dict[str, str]:
    """The files of metadata that an installed package has."""
    required, extras = _required(project)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {line}" for line in required] + [f"Provides-Extra: {extra}" for extra in extras]
    info = _egg_info(project)
    points = _text(info / "entry_points.txt") if info else trees.entry_points(_document(project))
    return {"METADATA": "\n".join([*lines, ""]), **({"entry_points.txt": points} if points else {})}


def _required(project: pathlib.Path) -> tuple[list[str], list[str]]:
    """What a project requires, with the names of its extras."""
    said = email.parser.HeaderParser().parsestr(_text(project / "PKG-INFO"))
    lines, extras = said.get_all("Requires-Dist") or [], said.get_all("Provides-Extra") or []
    info = _egg_info(project)
    if not lines and info is not None:
        # Before 2.2 setuptools noted it there alone.
        lines, more = _of_sections(_text(info / "requires.txt"))
        extras = [*extras, *more]
    return [_line(line) for line in lines], [extra for extra in dict.fromkeys(extras) if re.fullmatch(r"[A-Za-z0-9._-]+", extra)]


def _of_sections(text: str) -> tuple[list[str], list[str]]:
    """The lines of setuptools' requires.txt: below `[EXTRA:MARKER]` those that count for an extra and where a marker holds."""
    lines, extras, extra, marker = [], [], "", ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("[") and line.endswith("]"):
            extra, _, marker = line[1:-1].partition(":")
            extras += [extra] if extra else []
            continue
        judged = [f"({marker})"] * bool(marker) + [f'extra == "{extra}"'] * bool(extra)
        lines.append(f"{line}; {' and '.join(judged)}" if judged else line)
    return lines, extras


def _line(line: str) -> str:
    """A requirement in one line, if it is one."""
    line = " ".join(line.split())
    markers.requirement_of(line)
    return line


def _document(project: pathlib.Path) -> dict:
    try:
        return locks.toml().loads(_text(project / "pyproject.toml"))
    except (ValueError, RecursionError):
        return {}


def _text(file: pathlib.Path) -> str:
    """The beginning of a file; nothing, if it is not there."""
    if not file.is_file():
        return ""
    with file.open("rb") as opened:
        return opened.read(_MOST_METADATA).decode("utf-8", errors="replace")
