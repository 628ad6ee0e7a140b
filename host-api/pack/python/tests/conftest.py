"""Packages that are fetched from nowhere but the test's own directories."""

import hashlib
import importlib
import os
import signal
import sys
import traceback
import zipfile

import pytest

from periapt_packing import bounds, fetching, wheels
from periapt_packing.built import Built

#: What pip imports for its commands: two thirds of what a run of it takes here.
PIP = ("cli.main", "cli.main_parser", "cli.autocompletion", "commands.download", "commands.index", "commands.install")


@pytest.fixture(autouse=True, scope="session")
def _forked_pip():
    """Each run of pip is a process of its own as ever, and begins as a copy of this one, with pip's modules imported.

    Tests of `python3 -m periapt_packing` begin it as packing does.
    """
    for module in (f"pip._internal.{name}" for name in PIP):
        importlib.import_module(module)
    begun = fetching.ended
    with pytest.MonkeyPatch.context() as patch:
        own = wheels.__file__
        patch.setattr(fetching, "ended", lambda command, errors: (_forked if command[1] == own else begun)(command, errors))
        yield


def _forked(command, errors):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for number, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, os.open(os.devnull, os.O_WRONLY)), (2, errors.fileno())):
                os.dup2(file, number)
            sys.stdin, sys.stdout, sys.stderr = (open(number, mode, closefd=False) for number, mode in ((0, "r"), (1, "w"), (2, "w")))
            signal.alarm(bounds.MOST_TIME)
            sys.argv = list(command[1:])
            wheels.main()
        except SystemExit as exit:
            code = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Index:
    """Wheels in a directory, which pip finds, and no others."""

    def __init__(self, place):
        self.place = place

    def __call__(self, name, files=None, version="1.0", tag="py3-none-any", says=""):
        """Write a wheel; answers what it is called, and its digest."""
        info = f"{name}-{version}.dist-info"
        path = self.place / f"{name}-{version}-{tag}.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
            for entry, text in {
                f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{says}",
                f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: {tag}\n",
                **(files or {}),
                f"{info}/RECORD": "",
            }.items():
                wheel.writestr(zipfile.ZipInfo(entry), text)
        return path.name, f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Writes wheels that pip finds, and no others."""
    place = tmp_path / "index"
    place.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return Index(place)


@pytest.fixture
def built_wheels(tmp_path):
    """Writes wheels as `tools/wheels` leaves them, and answers those of the directory."""
    place = tmp_path / "wheels"
    place.mkdir()

    def write(*versions):
        lines = []
        for version in versions:
            wheel = place / f"pydantic_core-{version}-cp314-cp314-wasi_wasm32.whl"
            with zipfile.ZipFile(wheel, "w") as archive:
                archive.writestr("pydantic_core/__init__.py", "# built")
                archive.writestr("pydantic_core/_pydantic_core.cpython-314-wasm32-wasi.so", version)
                archive.writestr(f"pydantic_core-{version}.dist-info/METADATA", f"Name: pydantic_core\nVersion: {version}\n")
            lines.append(f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n")
        (place / "SHA256SUMS").write_text("".join(lines))
        return Built([tmp_path / "none", place])

    return write
