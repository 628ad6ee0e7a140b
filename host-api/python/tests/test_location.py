"""Modules that are imported from where a component is built, and believe that they lie in `/charm`."""

import pathlib
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
kept = [entry for entry in sys.path if "python3" in entry]
building = Building({str(tmp_path / "built")!r})
building.begin()
sys.path += kept
with building.files_in_place():
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
