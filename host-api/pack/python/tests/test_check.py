"""What is found in sources before anything is built."""

import sys

import pytest

from periapt_packing.built import SUFFIX
from periapt_packing.check import check


@pytest.fixture
def found(tmp_path):
    """Findings of a charm with some files, as `FILE:LINE SEVERITY MESSAGE`; `ops` and the statement that runs it are there."""

    def found(files, native=(), ops="venv/ops/__init__.py", main="\nmain()\n"):
        files = {ops: "", **files, "src/charm.py": files["src/charm.py"] + main}
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return [f"{it.file}:{it.line} {it.severity} {it.message}" for it in check(tmp_path, list(native), tmp_path)]

    return found


def test_a_charm_that_fits_has_no_findings(found):
    files = {
        "src/charm.py": "import logging\nimport fcntl\nimport ops\nfrom helpers import x\nfrom charms.db.v0 import db\n",
        "src/helpers.py": "import subprocess\nsubprocess.run(['config-get'])\nx = 1\n",
        "lib/charms/db/v0/db.py": "",
        "venv/ops/__init__.py": "from . import model\n",
        "venv/ops/model.py": "import threading\nthreading.Thread(target=print)\n",
    }
    assert found(files) == []


def test_an_import_that_certainly_fails_is_an_error_wherever_it_is_reached(found):
    files = {
        "src/charm.py": "import ops\nimport nowhere\nfrom helpers import x\n",
        "src/helpers.py": "class A:\n    import ctypes\nx = 1\n",
        "venv/ops/__init__.py": "from . import net\n",
        "venv/ops/net.py": "\nimport mmap\n",
        "venv/unused/__init__.py": "import mmap\n",
    }
    assert found(files) == [
        "src/charm.py:2 error module nowhere is neither in src, nor in lib, nor among the dependencies",
        "src/helpers.py:2 error module ctypes is not in the sandbox's Python: there is no native code",
        "venv/ops/net.py:2 error module mmap is not in the sandbox's Python: WASI maps no files",
    ]


def test_a_charm_without_ops_is_told_once_what_to_add_however_it_is_imported(found):
    message = (
        " error module ops is neither in src, nor in lib, nor among the dependencies, and a charm in Python runs on"
        " it: name ops in requirements.txt, or in the dependencies of pyproject.toml"
    )
    library = {"lib/charms/db/v0/db.py": "from ops.framework import Object\n"}
    certain = {"src/charm.py": "import json\nimport ops\nfrom charms.db.v0 import db\n", **library}
    assert found(certain, ops="venv/other.py") == [f"lib/charms/db/v0/db.py:1{message}; so in 1 more place: src/charm.py:2"]
    for text in ("import json\n", "try:\n    import ops\nexcept ImportError:\n    ops = None\n"):
        assert found({"src/charm.py": text}, ops="venv/other.py") == [f"src/charm.py:1{message}"]
    for ops in ("src/ops.py", "lib/ops/__init__.py"):
        assert found({"src/charm.py": "import ops\n"}, ops=ops) == []


def test_a_program_that_nothing_runs_is_an_error(found):
    nothing = 'src/charm.py:1 error no statement runs the charm: end it with ops.main(CLASS), or with `if __name__ == "__main__":`'
    for main in ("", "run()\n", "def f():\n    main()\n", "x = main()\n"):
        assert found({"src/charm.py": "import ops\n"}, main=main) == [nothing]
    for main in ("ops.main(X)\n", "ops.main.main(X)\n", "if '__main__' == __name__:\n    run()\n"):
        # A package of the same name is not the program.
        assert found({"src/charm.py": "import ops\n", "src/charm/__init__.py": ""}, main=main) == []


def test_native_code_that_was_built_for_the_sandbox_is_a_module(found):
    files = {
        "src/charm.py": "import pkg\nimport _single\nimport _other\n",
        "venv/pkg/__init__.py": "from ._core import x\n",
        f"venv/pkg/_core{SUFFIX}": "",
        f"venv/_single{SUFFIX}": "",
        "venv/_other.cpython-314-x86_64-linux-gnu.so": "",
    }
    assert found(files) == ["src/charm.py:3 error module _other is neither in src, nor in lib, nor among the dependencies"]


def test_native_code_that_could_be_built_is_told_with_how(found):
    native = [{"package": "core 2", "file": "core/_core.so", "module": "core._core", "lacking": "there is no wheel of it: build one"}]
    venv = {"venv/core/__init__.py": "from . import _core\n"}
    certainly = found({**venv, "src/charm.py": "import core\n"}, native)
    assert certainly == ["src/charm.py:1 error core 2 is native code (core/_core.so), and there is no wheel of it: build one"]
    perhaps = found({"src/charm.py": "def f():\n    import core\n"}, native)
    assert perhaps == ["src/charm.py:2 warning core 2 is native code, and there is no wheel of it: build one"]


def test_native_code_is_an_error_where_the_charm_certainly_comes_to_it_and_a_warning_elsewhere(found):
    native = [
        {"package": "lxml 6", "file": "lxml/etree.so", "module": "lxml.etree", "required-by": ["feeds 1.0"]}
    ]
    venv = {
        "venv/lxml/__init__.py": "",
        "venv/lxml/html.py": "from lxml import etree\n",
        "venv/feeds/__init__.py": "\nfrom lxml import html\n",
    }
    said = "lxml 6 is native code (lxml/etree.so), required by feeds 1.0, and native code cannot run in the sandbox"
    instead = "xml.etree.ElementTree is in the sandbox's Python"
    certainly = found({**venv, "src/charm.py": "import json\nimport feeds\n"}, native)
    assert certainly == [f"src/charm.py:2 error {said}; imported at feeds/__init__.py:2; {instead}"]
    perhaps = found({**venv, "src/charm.py": "import json\ndef f():\n    from lxml import html\n"}, native)
    assert perhaps == ["src/charm.py:3 warning lxml 6 is native code, and what needs it fails"]
    caught = "try:\n    import feeds\nexcept ImportError:\n    feeds = None\n"
    assert found({**venv, "src/charm.py": caught}, native) == []


def test_an_import_that_may_not_be_reached_is_a_warning_and_one_that_is_expected_to_fail_is_none(found):
    files = {
        "src/charm.py": (
            "import sys\nfrom typing import TYPE_CHECKING\n"
            "try:\n    import mmap\nexcept ImportError:\n    mmap = None\n"
            "if TYPE_CHECKING:\n    import nowhere\n"
            "from contextlib import suppress\nwith suppress(ImportError):\n    import nothere\n"
            "def f():\n    import bz2\n"
        )
    }
    assert found(files) == ["src/charm.py:13 warning module bz2 is not in the sandbox's Python: it is not compiled in"]


def test_calls_without_a_counterpart_are_named_however_they_are_imported(found):
    files = {
        "src/charm.py": (
            "import subprocess as sp, threading, socket, importlib\n"
            "from subprocess import check_output\n"
            "from concurrent.futures import ThreadPoolExecutor as Pool\n"
            "def f(name):\n"
            "    sp.run(['systemctl', 'start', name])\n"
            "    check_output(f'apt-get install {name}', shell=True)\n"
            "    sp.run(['juju-log', name])\n"
            "    sp.run(name)\n"
            "    threading.Thread(target=f).start()\n"
            "    Pool(4)\n"
            "    socket.create_connection(('a', 1))\n"
            "    importlib.import_module(name)\n"
            "    importlib.import_module('json')\n"
        )
    }
    assert [line.removeprefix("src/charm.py:") for line in found(files)] == [
        "5 warning subprocess.run: 'systemctl' is no hook tool, and there are no other programs",
        "6 warning subprocess.check_output: 'apt-get' is no hook tool, and there are no other programs",
        "9 warning threading.Thread: a hook is one thread: it runs when the hook waits for it",
        "11 warning socket.create_connection: there is no network: it reaches the unit's own workloads alone",
        "12 warning importlib.import_module: a module that only this names must be one of the charm's own or of its dependencies",
    ]


def test_code_that_is_no_python_is_told_with_its_line_and_is_no_error_for_an_older_python(found, monkeypatch):
    files = {"src/charm.py": "x = 1\ndef f(:\n"}
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    (line,) = found(files)
    assert line == "src/charm.py:2 error invalid syntax (read as Python 3.14; the sandbox's is 3.14)"
    monkeypatch.setattr(sys, "version_info", (3, 12, 1))
    (line,) = found(files)
    assert line == "src/charm.py:2 warning invalid syntax (read as Python 3.12; the sandbox's is 3.14)"


def test_code_that_is_too_deep_to_be_read_is_told(found):
    (line,) = found({"src/charm.py": "x = 1\n", "src/deep.py": "-" * 200_000 + "1\n"})
    assert line.startswith("src/deep.py:1 ")


def test_the_standard_library_is_the_sandboxs_and_not_the_packers(found, monkeypatch):
    monkeypatch.setattr(sys, "stdlib_module_names", frozenset({"distutils", "cgi"}))
    files = {
        "src/charm.py": (
            "import annotationlib\nfrom distutils.util import strtobool\nimport json\nimport _ctypes\n"
            "def f():\n    import telnetlib\n    import uu\n"
        ),
        # As brought along by a package that needs it.
        "venv/cgi.py": "",
        "lib/other.py": "def f():\n    import cgi\n",
    }
    assert found(files) == [
        "src/charm.py:2 error module distutils is not in the sandbox's Python 3.14: it went with 3.12; there is shutil, and packaging.version among the dependencies",
        "src/charm.py:4 error module _ctypes is not in the sandbox's Python: it is not compiled in",
        "src/charm.py:6 warning module telnetlib is not in the sandbox's Python 3.14: it went with 3.13; there is nothing, as there is no network",
        "src/charm.py:7 warning module uu is not in the sandbox's Python 3.14: it went with 3.13",
    ]


def test_what_there_is_a_stand_in_for_can_be_imported(found):
    files = {"src/charm.py": "import cgi\nimport pwd\ntype, _ = cgi.parse_header('a/b; c=d')\nform = cgi.FieldStorage()\n"}
    assert found(files) == [
        "src/charm.py:4 warning cgi.FieldStorage: of the module cgi, which went with Python 3.13, there is parse_header alone",
    ]


def test_a_library_that_was_not_fetched_is_told_before_anything_is_built(found):
    files = {
        "src/charm.py": (
            "from charms.db.v0.db import X\nfrom charms.missing.v0.lib import Y\nfrom charms.db.v1 import db\n"
            "from charms.db.v0 import db\nfrom charms.db.v0 import other\nimport charms.db.v0.db\n"
        ),
        "lib/charms/db/v0/db.py": "X = 1\n",
        "charmcraft.yaml": "name: c\n",
    }
    brings = "brings one that is published"
    assert found(files) == [
        f"src/charm.py:2 error module charms.missing.v0.lib is not in lib: charmcraft fetch-lib charms.missing.v0.lib {brings}",
        f"src/charm.py:3 error module charms.db.v1.db is not in lib: charmcraft fetch-lib charms.db.v1.db {brings}",
        f"src/charm.py:5 error module charms.db.v0.other is not in lib: charmcraft fetch-lib charms.db.v0.other {brings}",
    ]
    files["charmcraft.yaml"] = "name: c\ncharm-libs:\n  - lib: missing.lib\n    version: '0'\n"
    files["src/charm.py"] = "from charms.missing.v0.lib import Y\n"
    assert found(files) == ["src/charm.py:1 error module charms.missing.v0.lib is not in lib: charmcraft fetch-libs brings it"]


def test_a_module_that_was_compiled_beside_its_source_is_not_missing(found):
    native = [
        {"package": "fast 1", "file": "fast/core.so", "module": "fast.core"},
        {"package": "fast 1", "file": "fast/sub.so", "module": "fast.sub"},
    ]
    files = {
        "src/charm.py": "import fast\n",
        "venv/fast/__init__.py": "from . import core, sub\n",
        "venv/fast/core.py": "",
        "venv/fast/sub/__init__.py": "",
    }
    assert found(files, native) == []


def test_each_cause_is_told_once_with_the_first_of_its_places(found):
    native = [{"package": "msgspec 0.20", "file": "msgspec/_core.so", "module": "msgspec._core", "required-by": []}]
    files = {
        "src/charm.py": "import one\nimport two\nimport nowhere\nfrom msgspec import _core\n",
        "src/one.py": "import nowhere\nfrom msgspec import _core\nimport subprocess\nsubprocess.run(['apt'])\n",
        "src/two.py": "import nowhere\nimport subprocess\nsubprocess.run(['apt'])\nsubprocess.run(['systemctl'])\n",
        "venv/msgspec/__init__.py": "",
    }
    assert found(files, native) == [
        "src/charm.py:3 error module nowhere is neither in src, nor in lib, nor among the dependencies; so in 2 more places: src/one.py:1, src/two.py:1",
        "src/charm.py:4 error msgspec 0.20 is native code (msgspec/_core.so), and native code cannot run in the sandbox; so in 1 more place: src/one.py:2",
        "src/one.py:4 warning subprocess.run: 'apt' is no hook tool, and there are no other programs; so in 1 more place: src/two.py:3",
        "src/two.py:4 warning subprocess.run: 'systemctl' is no hook tool, and there are no other programs",
    ]
