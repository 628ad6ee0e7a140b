"""Packages in exact versions with digests: fetched without a choice, and compared with their digests once more."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
from collections.abc import Iterable

from pip._vendor.packaging import tags, utils

from . import fetching
from .fetching import PYTHON_VERSIONS, Mismatch, NoWheel, Unresolved, VendorError
from .unpacked import Wheel, normalised


@dataclasses.dataclass(frozen=True)
class Pin:
    """A package in one version."""

    name: str
    version: str
    #: `ALGORITHM:HEX`, of which a wheel of it has one.
    digests: tuple[str, ...]
    #: Where it is pinned.
    place: str
    #: Names of its wheels, if they are known.
    wheels: tuple[str, ...] | None = None
    #: The wheel's address, if it is not in an index.
    url: str | None = None
    #: Who asks for it: lines, or packages.
    required_by: tuple[str, ...] = ()
    #: The extras of it that are asked for.
    extras: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The requirement for pip, with its digests."""
        said = f"{self.name} @ {self.url}" if self.url else f"{self.name}=={self.version}"
        return " ".join([said, *(f"--hash={digest}" for digest in self.digests)])

    def has_wheel(self) -> bool:
        """Whether there is a wheel that could be taken; of what is not known there may be."""
        return (
            self.wheels is None
            or self.url is not None
            or any(_fits(wheel, version) for version in PYTHON_VERSIONS for wheel in self.wheels)
        )

    def first_python(self) -> int:
        """The place of the best interpreter for which there is a wheel."""
        if self.wheels is None or self.url is not None:
            return 0
        return next(
            (place for place, version in enumerate(PYTHON_VERSIONS) if any(_fits(wheel, version) for wheel in self.wheels)), 0
        )


def fetch(pins: Iterable[Pin], place: pathlib.Path, absent: list[Pin]) -> list[tuple[str, pathlib.Path, list[Wheel]]]:
    """Fetch the wheels of pins into directories below one; answers for which interpreter each directory is, and what is in it.

    `absent` gets those of which there are sources alone.
    """
    pins = {pin.name: pin for pin in pins}
    chosen = {name: pin.first_python() for name, pin in pins.items()}
    fetched = []
    for number, version in enumerate(PYTHON_VERSIONS):
        while True:
            group = [pins[name] for name, best in chosen.items() if best == number]
            if not group:
                break
            directory = place / f"pinned-{version}"
            try:
                wheels = _fetch(group, version, directory)
            except Unresolved as error:
                if isinstance(error, NoWheel) and chosen.get(error.name) == number and fetching.is_source(error.name):
                    absent.append(pins[error.name])
                    del chosen[error.name]
                    continue
                if error.name not in chosen or chosen[error.name] != number or number + 1 == len(PYTHON_VERSIONS):
                    raise _told(error, pins) from None
                # Its release may be for older interpreters alone.
                chosen[error.name] += 1
                continue
            except VendorError as error:
                raise _told(error, pins) from None
            fetched.append((version, directory, wheels))
            break
    return fetched


def fetch_pure(pin: Pin, version: str, place: pathlib.Path, target: pathlib.Path) -> list[Wheel]:
    """Fetch the wheel of a pin that is for any machine, and unpack it; nothing, if it is known that there is none."""
    if pin.url or pin.wheels is not None and not any(wheel.endswith("-none-any.whl") for wheel in pin.wheels):
        return []
    wheels = _fetch([pin], version, place / "pure", fetching.ANY_MACHINE)
    fetching.unpack(place / "pure", target, version)
    return wheels


def _fetch(pins: list[Pin], version: str, directory: pathlib.Path, machine: tuple[str, ...] | None = None) -> list[Wheel]:
    listed = directory.with_name(f"{directory.name}.txt")
    listed.write_text("".join(f"{pin.line}\n" for pin in pins), encoding="utf-8")
    machine = machine or fetching.machine_of(version)
    wheels = fetching.download(directory, version, machine, "--no-deps", "--require-hashes", "-r", str(listed))
    _compare(pins, directory)
    return wheels


def _compare(pins: list[Pin], directory: pathlib.Path) -> None:
    """See that each wheel in a directory has a digest of its own pin."""
    expected = {pin.name: pin for pin in pins}
    for file in sorted(directory.iterdir()):
        pin = expected.get(normalised(file.name.split("-")[0]))
        if pin is None:
            raise VendorError(f"{file.name} was fetched, and nobody asked for it")
        if not has_digest(pin, file):
            raise VendorError(f"{pin.place}: {file.name} has none of the digests that are locked for {pin.name} {pin.version}")


def has_digest(pin: Pin, file: pathlib.Path) -> bool:
    """Whether a file has one of a pin's digests."""
    content = file.read_bytes()
    return any(hashlib.new(digest.partition(":")[0], content).hexdigest() == digest.partition(":")[2] for digest in pin.digests)


def _told(error: VendorError, pins: dict[str, Pin]) -> VendorError:
    """What went wrong, by the pin that it is about."""
    if isinstance(error, Unresolved) and error.name in pins:
        return VendorError(f"{pins[error.name].place}: {error}")
    if isinstance(error, Mismatch) and error.name in pins:
        pin = pins[error.name]
        return VendorError(
            f"{pin.place}: what is fetched as {pin.name} {pin.version} has none of the digests that are locked for it"
        )
    return error


def _fits(wheel: str, version: str) -> bool:
    """Whether a wheel is for an interpreter on Linux and x86-64, or for any."""
    try:
        _, _, _, supported = utils.parse_wheel_filename(wheel)
    except (utils.InvalidWheelFilename, ValueError):
        return False
    return any(_is_for(tag, version) for tag in supported)


def _is_for(tag: tags.Tag, version: str) -> bool:
    minor = int(version.partition(".")[2])
    if tag.platform != "any" and not (tag.platform.endswith("_x86_64") and tag.platform.startswith(("manylinux", "linux"))):
        return False
    kind, number = tag.interpreter[:2], tag.interpreter[2:]
    if number == "3" or kind == "py":
        return tag.abi == "none" and (
            number == "3" or number.startswith("3") and number[1:].isdigit() and int(number[1:]) <= minor
        )
    if kind != "cp" or not number.startswith("3") or not number[1:].isdigit():
        return False
    own = int(number[1:])
    if tag.abi == "abi3":
        return own <= minor
    return own == minor and tag.abi in ("none", f"cp3{minor}")
