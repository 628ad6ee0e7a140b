"""Modules that are imported from where a component is built, and believe that they lie in `/charm`."""

import pathlib
import shutil
import subprocess
import sys
import textwrap

import periapt_ops


def imported(tmp_path, files, statements, after=""):
    """What statements print in a Python of its own, with files below the packer's directory; and others afterwards."""
    for name, text in files.items():
        path = tmp_path / "built" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    script = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(periapt_ops.__path__[0]).parent)!r})
import periapt_ops.build
from periapt_ops.location import Building
from periapt_ops.reading import files_in_place
kept = [entry for entry in sys.path if "python3" in entry]
building = Building({str(tmp_path / "built")!r})
building.begin()
sys.path += kept
with files_in_place(building):
{textwrap.indent(statements, "    ")}
building.end()
{after}
print(mod.__file__)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_modules_packages_and_namespaces_name_the_places_of_later(tmp_path):
    files = {
        "src/mod.py": "import charms.db.v0.db as db, pkg.inner\ndef f(): raise ValueError\n",
        "lib/charms/db/v0/db.py": "x = 1\n",
        "venv/pkg/__init__.py": "",
        "venv/pkg/inner.py": "",
    }
    statements = """
import mod
print(mod.f.__code__.co_filename, mod.db.__file__, list(mod.pkg.__path__), mod.__spec__.origin)
print(sys.modules['charms'].__path__)
"""
    assert imported(tmp_path, files, statements) == [
        "/charm/src/mod.py /charm/lib/charms/db/v0/db.py ['/charm/venv/pkg'] /charm/src/mod.py",
        "_NamespacePath(['/charm/lib/charms'])",
        "/charm/src/mod.py",
    ]


def test_files_beside_the_code_are_read_while_it_is_imported(tmp_path):
    files = {
        "src/mod.py": "import pathlib, os\nhere = pathlib.Path(__file__).parent\n"
        "text = (here / 'data.txt').read_text()\nnames = sorted(os.listdir('/charm/src'))\n",
        "src/data.txt": "hello",
    }
    statements = "import mod\nprint(mod.text, 'data.txt' in mod.names)"
    assert imported(tmp_path, files, statements) == ["hello True", "/charm/src/mod.py"]


def test_what_a_module_took_from_os_while_it_was_imported_reads_the_hooks_files_later(tmp_path):
    files = {"src/mod.py": "from os import listdir\nhere = listdir('/charm/src')\n", "src/data.txt": ""}
    statements = "import mod\nprint('data.txt' in mod.here)"
    after = "\ntry:\n    mod.listdir('/charm/src')\nexcept FileNotFoundError as error:\n    print(error.filename)\n"
    assert imported(tmp_path, files, statements, after) == ["True", "/charm/src", "/charm/src/mod.py"]


def test_what_is_told_of_places_while_a_module_is_imported_is_said_of_later(tmp_path):
    source = """
import glob, importlib.resources, inspect, os, pathlib, pkgutil
here = pathlib.Path(__file__).parent
told = [
    os.getcwd(), os.path.abspath("x"), str(here.resolve()), str(pathlib.Path.cwd()), os.path.realpath(__file__),
    str(importlib.resources.files("pkg") / "data.pem"), str(importlib.resources.files("space")), inspect.getfile(inspect.currentframe()),
    *sorted(glob.glob("/charm/venv/pkg/*.pem")), *sorted(map(str, (here.parent / "venv/pkg").glob("*.pem"))),
    *sorted(str(path) for path in (here.parent / "venv/pkg").iterdir() if path.suffix == ".pem"),
    *sorted(entry.path for entry in os.scandir("/charm/venv/pkg") if entry.is_file() and entry.name.endswith("pem")),
    *(top for top, _, _ in os.walk("/charm/venv/pkg") if "__" not in top), *(top for top, _, _ in os.walk("src") if "__" not in top),
]
with importlib.resources.as_file(importlib.resources.files("pkg") / "data.pem") as path:
    kept, read = str(path), path.read_text()
assert read == pkgutil.get_data("pkg", "data.pem").decode() == open("venv/pkg/data.pem").read() == "data"
assert inspect.getsource(inspect.getmodule(inspect.currentframe())).startswith("\\nimport glob")
try:
    open("missing")
except FileNotFoundError as error:
    told.append(error.filename)
entries = os.scandir("/charm/venv/pkg")
first = next(entries)
"""
    files = {
        "src/mod.py": source,
        "venv/pkg/__init__.py": "",
        "venv/pkg/data.pem": "data",
        "venv/space/text.txt": "",
    }
    statements = "import mod\nfor line in mod.told: print(line)\nprint(mod.kept)"
    after = f"""
import os, posixpath
# As a hook finds the files.
real = os.stat
os.stat = lambda path, **options: real(path.replace("/charm", {str(tmp_path / "built")!r}), **options)
print(len(list(mod.entries)) in (1, 2), mod.first.stat().st_size >= 0, str(tmp_path) in repr(vars(mod)))
""".replace("str(tmp_path)", repr(str(tmp_path)))
    pem = "/charm/venv/pkg/data.pem"
    assert imported(tmp_path, files, statements, after) == [
        "/charm",
        "/charm/x",
        "/charm/src",
        "/charm",
        "/charm/src/mod.py",
        pem,
        "MultiplexedPath('/charm/venv/space')",
        "/charm/src/mod.py",
        *[pem] * 4,
        "/charm/venv/pkg",
        "src",
        "missing",
        pem,
        "True True False",
        "/charm/src/mod.py",
    ]


def test_the_charms_files_cannot_be_changed_while_it_is_imported(tmp_path):
    source = """
import os, pathlib
refused = []
for change in (
    lambda: open("/charm/src/new", "w"), lambda: open("src/mod.py", "r+"), lambda: os.open("/charm/src/new", os.O_CREAT | os.O_RDWR),
    lambda: pathlib.Path("/charm/src/data.txt").unlink(), lambda: os.mkdir(b"/charm/src/new"), lambda: os.rename("src/data.txt", "/elsewhere"),
):
    try:
        change()
    except OSError as error:
        refused.append(f"{error.strerror} {os.fsdecode(error.filename)}")
"""
    statements = "import mod\nprint(*mod.refused, sep='\\n')"
    files = {"src/mod.py": source, "src/data.txt": "kept"}
    expected = ["/charm/src/new", "src/mod.py", "/charm/src/new", "/charm/src/data.txt", "/charm/src/new", "src/data.txt"]
    told = [f"Read-only file system {path}" for path in expected]
    assert imported(tmp_path, files, statements) == [*told, "/charm/src/mod.py"]
    assert (tmp_path / "built/src/data.txt").read_text() == "kept"


def test_the_working_directory_is_one_of_the_charms_until_a_module_changes_it(tmp_path):
    source = """
import os
os.chdir("src")
seen = os.getcwd(), os.getcwdb(), open("data.txt").read(), os.listdir()
try:
    os.chdir("none")
except FileNotFoundError as error:
    seen += (error.filename,)
try:
    os.chdir("data.txt")
except NotADirectoryError as error:
    seen += (error.filename,)
"""
    statements = "import mod\nprint(mod.seen[:3], 'mod.py' in mod.seen[3], *mod.seen[4:])"
    assert imported(tmp_path, {"src/mod.py": source, "src/data.txt": "hello"}, statements) == [
        "('/charm/src', b'/charm/src', 'hello') True none data.txt",
        "/charm/src/mod.py",
    ]


def test_native_code_is_loaded_from_where_it_is_and_names_the_place_of_later(tmp_path):
    # Any that this Python has, as part of a package.
    name = next(name for name in ("_csv", "_heapq", "_zoneinfo", "_uuid") if hasattr(__import__(name), "__file__"))
    library = pathlib.Path(sys.modules[name].__file__)
    (tmp_path / "built/venv/pkg").mkdir(parents=True)
    shutil.copy(library, tmp_path / "built/venv/pkg" / library.name)
    files = {"src/mod.py": f"from pkg import {name} as native\n", "venv/pkg/__init__.py": ""}
    after = "print(mod.native.__file__, mod.native.__spec__.origin, mod.native.__loader__.path)"
    place = f"/charm/venv/pkg/{library.name}"
    assert imported(tmp_path, files, "import mod", after) == [f"{place} {place} {place}", "/charm/src/mod.py"]
