"""What becomes of a charm's dependencies, with pip in the test's hands."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import zipfile

import pytest

from periapt_packing import bounds, fetching, unpacked, vendor, wheels
from periapt_packing.built import BuiltError
from periapt_packing.wanted import Parts


def install(target, name, files):
    """A wheel, as pip leaves it."""
    info = target / f"{name}-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    for file in files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        (target / file).write_text("")
    return unpacked.Wheel(name, "1.0", info.name, (*files, f"{info.name}/METADATA"))


@pytest.fixture
def pip(monkeypatch):
    """Installs what the test says; `pure` are releases that there are without native code."""

    class Pip:
        listed, packages, pure = {}, {}, {}

        def __call__(self, target, version, machine, *arguments):
            if machine == fetching.ANY_MACHINE:
                assert arguments[-2] == "--"
                name = arguments[-1].partition("==")[0]
                if name not in self.pure:
                    raise vendor.VendorError("No matching distribution found")
                return [install(target, name, self.pure[name])]
            files = zip(arguments, arguments[1:], strict=False)
            self.listed = {option: pathlib.Path(file).read_text() for option, file in files if option in ("-r", "-c")}
            return [install(target, name, files) for name, files in self.packages.items()]

    pip = Pip()
    monkeypatch.setattr(fetching, "fetch", pip)
    return pip


def test_native_code_is_refused_by_name(tmp_path, pip):
    (tmp_path / "requirements.txt").write_text("some\n")
    pip.packages = {"some": ["some/_core.cpython-311-x86_64-linux-gnu.so", "some/__init__.py"]}
    done = vendor.vendor(tmp_path, tmp_path / "venv")
    assert done["native"] == [
        {
            "package": "some 1.0",
            "file": "some/_core.cpython-311-x86_64-linux-gnu.so",
            "module": "some._core",
            "required-by": ["requirements.txt:1"],
            "lacking": "",
        }
    ]
    assert [path.name for path in (tmp_path / "venv/some").iterdir()] == ["__init__.py"]


@pytest.fixture
def pydantic(index):
    """Two releases of pydantic, each with a core of its own, in native code."""
    linux = "cp314-cp314-manylinux_2_17_x86_64"
    for version, core in (("2.13", "2.46.5"), ("2.14", "2.50.4"), ("2.15", "2.60.0")):
        index("pydantic", version=version, says=f"Requires-Dist: pydantic-core=={core}\n")
        files = {"pydantic_core/__init__.py": "", "pydantic_core/_pydantic_core.cpython-314-x86_64-linux-gnu.so": ""}
        index("pydantic_core", files, version=core, tag=linux)


def brought(place):
    """The native code and the packages in a directory."""
    packages = sorted(path.name.removesuffix(".dist-info") for path in place.glob("*.dist-info"))
    return packages, [path.read_text() for path in place.rglob("*.so")]


def test_native_code_that_was_built_for_the_sandbox_is_taken_in_the_version_that_pip_chose(tmp_path, pydantic, built_wheels):
    (tmp_path / "requirements.txt").write_text("pydantic==2.13\n")
    done = vendor.vendor(tmp_path, tmp_path / "venv", built=built_wheels("2.46.5", "2.50.4"))
    assert done == {"packages": ["pydantic-core==2.46.5", "pydantic==2.13"], "native": [], "findings": []}
    assert brought(tmp_path / "venv") == (["pydantic-2.13", "pydantic_core-2.46.5"], ["2.46.5"])
    assert (tmp_path / "venv/pydantic_core/__init__.py").read_text() == "# built"


def test_the_newest_version_is_taken_that_was_built_where_what_is_required_leaves_the_choice(tmp_path, pydantic, built_wheels):
    (tmp_path / "requirements.txt").write_text("# of ours\npydantic>=2\n")
    done = vendor.vendor(tmp_path, tmp_path / "venv", built=built_wheels("2.46.5", "2.50.4"))
    message = "of pydantic_core 2.60.0 there is no wheel for the sandbox: 2.50.4 is taken, and what goes with it"
    assert done["findings"] == [{"file": "requirements.txt", "line": 2, "severity": "warning", "message": message}]
    assert brought(tmp_path / "venv") == (["pydantic-2.14", "pydantic_core-2.50.4"], ["2.50.4"])


@pytest.mark.parametrize(
    ("required", "versions", "lacking"),
    [
        ("2.14", ["2.46.5"], "no wheel of it for the sandbox, but of 2.46.5; `tools/wheels pydantic-core 2.50.4` of Periapt's repository builds one"),
        ("2.14", [], "no wheel of it for the sandbox; `tools/wheels pydantic-core 2.50.4` of Periapt's repository builds one"),
        ("2.15", ["2.46.5", "2.50.4"], "no wheel of it for the sandbox, but of 2.50.4 and 2.46.5; those that `tools/wheels` of Periapt's repository can build are 2.50.4,"),
    ],
)
def test_native_code_that_was_not_built_is_missing_and_it_is_said_how_to_build_it(
    tmp_path, pydantic, built_wheels, required, versions, lacking
):
    (tmp_path / "requirements.txt").write_text(f"pydantic=={required}\n")
    done = vendor.vendor(tmp_path, tmp_path / "venv", built=built_wheels(*versions))
    (missing,) = done["native"]
    assert missing["module"] == "pydantic_core._pydantic_core"
    assert missing["required-by"] == [f"pydantic {required}"]
    assert lacking in missing["lacking"]
    assert brought(tmp_path / "venv")[1] == []


def test_a_wheel_with_another_digest_than_is_listed_is_not_used(tmp_path, pydantic, built_wheels):
    kept = built_wheels("2.50.4")
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"x")
    (tmp_path / "requirements.txt").write_text("pydantic==2.14\n")
    with pytest.raises(BuiltError, match="has another digest than SHA256SUMS"):
        vendor.vendor(tmp_path, tmp_path / "venv", built=kept)


def test_what_has_no_wheel_is_told_by_its_line_and_the_rest_is_brought_in(tmp_path, index):
    index("some")
    (tmp_path / "index/psycopg2-2.9.tar.gz").touch()
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = [\n  "some",\n  "psycopg2==2.9",\n]\n')
    done = vendor.vendor(tmp_path, tmp_path / "venv")
    message = "psycopg2==2.9 has no wheel, and its archive of sources cannot be read: it is not brought in"
    assert done["findings"] == [{"file": "pyproject.toml", "line": 4, "severity": "warning", "message": message}]
    assert [path.name for path in (tmp_path / "venv").iterdir()] == ["some-1.0.dist-info"]


def test_what_is_not_found_is_told_in_pips_words_by_its_line(tmp_path, index, monkeypatch):
    for number in range(8):
        index("some", version=f"1.{number}")
    index("old", says="Requires-Python: <3.10\n")
    listing = tmp_path / "listing.html"
    listing.write_text('<!DOCTYPE html><a href="far-1.0-py3-none-any.whl" data-requires-python="&lt;3.10">far-1.0-py3-none-any.whl</a>')
    monkeypatch.setenv("PIP_FIND_LINKS", f"{tmp_path / 'index'} {listing}")
    for line, expected in [
        ("sone", r"requirements.txt:2: nothing is found by the name sone \(pip: Could not find"),
        ("some==2", r"requirements.txt:2: pip: .*some==2 \(from versions: ..., 1.3, 1.4, 1.5, 1.6, 1.7\)"),
        ("old", r"requirements.txt:2: pip: .*'old' requires a different Python: 3.14.0 not in '<3.10'"),
        ("far", r"requirements.txt:2: pip: Ignored .* different python version: 1.0 Requires-Python <3.10; .*far"),
    ]:
        (tmp_path / "requirements.txt").write_text(f"# of ours\n{line}\n")
        with pytest.raises(vendor.VendorError) as raised:
            vendor.vendor(tmp_path, tmp_path / "venv")
        assert re.match(expected, str(raised.value)), str(raised.value)


def test_what_explains_a_refusal_is_told_as_well(tmp_path, index):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "c"\nversion = "0"\ndependencies = ["inhouse"]\n[[tool.uv.index]]\nurl = "https://example.org/simple"\n'
    )
    told = []
    with pytest.raises(vendor.VendorError, match="pyproject.toml:4: nothing is found by the name inhouse"):
        vendor.vendor(tmp_path, tmp_path / "venv", told=told)
    message = "packages come from where the packer's pip is told to look, and from no index that the project names"
    assert told == [{"file": "pyproject.toml", "line": 5, "severity": "warning", "message": message}]


def test_lines_that_conflict_about_one_package_are_all_told(tmp_path, index):
    for version in ("0.11", "0.53"):
        index("cosl", {"cosl.py": ""}, version)
    library = tmp_path / "lib/charms/loki/v1/loki.py"
    library.parent.mkdir(parents=True)
    library.write_text('PYDEPS = ["cosl>=0.50"]\n')
    (tmp_path / "requirements.txt").write_text("# ours\ncosl==0.11\n")
    with pytest.raises(vendor.VendorError, match=r"^requirements.txt:2, lib/charms/loki/v1/loki.py:1: pip: Cannot install cosl"):
        vendor.vendor(tmp_path, tmp_path / "venv", Parts(libraries=True))


def test_lines_that_conflict_about_what_they_need_are_named(tmp_path, index):
    index("one", {"one.py": ""}, says="Requires-Dist: shared<2\n")
    index("two", {"two.py": ""}, says="Requires-Dist: shared>=2\n")
    for version in ("1.0", "2.0"):
        index("shared", {"shared.py": ""}, version)
    (tmp_path / "requirements.txt").write_text("one>=1\ntwo==1.0\n")
    with pytest.raises(vendor.VendorError) as raised:
        vendor.vendor(tmp_path, tmp_path / "venv")
    assert str(raised.value).startswith("pip: Cannot install one>=1 and two==1.0 because these"), raised.value


def test_markers_are_those_of_the_sandbox_whatever_the_packer_has(tmp_path, index):
    for name in ("new", "linux", "old", "other", "deep"):
        index(name)
    index("some", says="Requires-Dist: deep; python_full_version >= '3.14' and platform_machine == 'x86_64'\n")
    (tmp_path / "requirements.txt").write_text(
        "some\nnew; python_version >= '3.14'\nlinux; sys_platform == 'linux' and os_name == 'posix'\n"
        "old; python_version < '3.14'\nother; platform_system != 'Linux'\n"
    )
    vendor.vendor(tmp_path, tmp_path / "venv")
    assert sorted(path.name.partition("-")[0] for path in (tmp_path / "venv").iterdir()) == ["deep", "linux", "new", "some"]


def test_wheels_are_for_the_sandboxs_interpreter_or_the_newest_for_which_there_are_all(tmp_path, index):
    linux = "manylinux_2_17_x86_64.manylinux2014_x86_64"
    for version, tag in (("1.0", "cp314-cp314"), ("2.0", "cp311-cp311"), ("2.1", "cp313-cp313t")):
        index("some", {"some.so": ""}, version=version, tag=f"{tag}-{linux}")
    index("stable", version="1.0", tag=f"cp39-abi3-{linux}")
    index("stable", version="2.0", tag="cp314-cp314-macosx_11_0_arm64")
    index("pure", version="1.0")
    index("pure", version="2.0", says="Requires-Python: <3.14\n")

    def brought(text):
        (tmp_path / "requirements.txt").write_text(text)
        shutil.rmtree(tmp_path / "venv", ignore_errors=True)
        vendor.vendor(tmp_path, tmp_path / "venv")
        return sorted(path.name.removesuffix(".dist-info") for path in (tmp_path / "venv").iterdir())

    assert brought("some\nstable\npure\n") == ["pure-1.0", "some-1.0", "stable-1.0"]
    # The sandbox's own interpreter, with the wheel for an older one, comes before all that is there for that one.
    assert brought("some>=2\nstable\npure\n") == ["pure-1.0", "some-2.0", "stable-1.0"]
    assert brought("some>=2\nstable\npure>=2\n") == ["pure-2.0", "some-2.0", "stable-1.0"]


def test_pins_whose_wheels_are_for_interpreters_of_different_ages_are_packed_together_and_told(tmp_path, index):
    linux = "manylinux_2_17_x86_64"
    index("markupsafe", {"markupsafe.py": ""}, "2.1.3", f"cp312-cp312-{linux}")
    index("markupsafe", {"markupsafe.py": ""}, "2.1.3", f"cp310-cp310-{linux}")
    index("markupsafe", {"markupsafe.py": ""}, "3.0.4", f"cp314-cp314-{linux}")
    index("fresh", {"fresh.py": ""}, "1.0", f"cp314-cp314-{linux}", "Requires-Python: >=3.14\n")
    index("jinja", {"jinja.py": ""}, "3.0", says="Requires-Dist: markupsafe>=2\n")
    (tmp_path / "requirements.txt").write_text("fresh==1.0\njinja==3.0\nmarkupsafe==2.1.3\n")
    done = vendor.vendor(tmp_path, tmp_path / "venv")
    assert done["packages"] == ["fresh==1.0", "jinja==3.0", "markupsafe==2.1.3"]
    message = "markupsafe 2.1.3 has no wheel for CPython 3.14: that for CPython 3.12 is taken"
    assert done["findings"] == [{"file": "requirements.txt", "line": 3, "severity": "warning", "message": message}]
    # Where there is a choice, wheels of the sandbox's own interpreter are chosen, and there is nothing to tell.
    (tmp_path / "requirements.txt").write_text("fresh==1.0\njinja==3.0\nmarkupsafe\n")
    done = vendor.vendor(tmp_path, tmp_path / "other")
    assert (done["packages"], done["findings"]) == (["fresh==1.0", "jinja==3.0", "markupsafe==3.0.4"], [])


def test_a_release_without_native_code_is_taken_instead(tmp_path, pip):
    (tmp_path / "requirements.txt").write_text("some\n")
    pip.packages = {"fast": ["fast/__init__.py", "fast/old.py", "fast/native.so"]}
    pip.pure = {"fast": ["fast/__init__.py", "fast/pure.py"]}
    done = vendor.vendor(tmp_path, tmp_path / "venv")
    assert done["native"] == []
    assert sorted(path.name for path in (tmp_path / "venv/fast").iterdir()) == ["__init__.py", "pure.py"]


def test_a_package_that_does_without_loses_its_native_files(tmp_path, pip):
    (tmp_path / "requirements.txt").write_text("some\n")
    pip.packages = {"PyYAML": ["yaml/__init__.py", "yaml/_yaml.cpython-311-x86_64-linux-gnu.so"]}
    done = vendor.vendor(tmp_path, tmp_path / "venv")
    assert (done["native"], [path.name for path in (tmp_path / "venv/yaml").iterdir()]) == ([], ["__init__.py"])


def test_requirements_come_from_either_file(tmp_path, pip):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "c"\ndependencies = ["ops~=3.0", "jinja2"]\n')
    (tmp_path / "charmcraft.yaml").write_text("parts: {charm: {charm-python-packages: [extra]}}\n")
    vendor.vendor(tmp_path, tmp_path / "venv", Parts(packages=["extra"]))
    assert pip.listed == {"-r": "ops~=3.0\njinja2\nextra\n"}
    (tmp_path / "requirements.txt").write_text("ops  # of ours\n-c bounds.txt\n")
    (tmp_path / "bounds.txt").write_text("ops<4\n")
    vendor.vendor(tmp_path, tmp_path / "venv")
    assert pip.listed == {"-r": "ops\n", "-c": "ops<4\n"}


@pytest.mark.parametrize("requirement", ["./package", "-e ./package", "package @ file://{charm}/package"])
def test_nothing_is_built_whatever_is_required(tmp_path, monkeypatch, requirement):
    package = tmp_path / "package"
    package.mkdir()
    (package / "pyproject.toml").write_text(
        '[project]\nname = "package"\nversion = "1"\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (package / "backend.py").write_text("import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n")
    (tmp_path / "requirements.txt").write_text("--no-binary :all:\n" + requirement.format(charm=tmp_path))
    monkeypatch.chdir(tmp_path)
    # As if nobody had read it before, as nobody has read what a wheel requires in turn.
    with pytest.raises(vendor.VendorError, match="nothing is built while a charm is packed"):
        fetching.fetch(tmp_path / "venv", "3.14", fetching.machine_of("3.14"), "-r", "requirements.txt")
    assert not (package / "ran").exists()


def test_modules_of_the_charm_are_not_pips(tmp_path):
    (tmp_path / "pip.py").write_text("raise SystemExit('the charm ran')")
    done = subprocess.run([sys.executable, wheels.__file__, "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("pip "), done.stderr


def test_requirements_of_parts_stand_in_the_place_of_the_usual_ones_and_packages_come_besides(tmp_path, pip):
    (tmp_path / "requirements.txt").write_text("ops\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more/all.txt").write_text("-r base.txt\njinja2\n")
    (tmp_path / "more/base.txt").write_text("tenacity\nsome\n")
    (tmp_path / "charmcraft.yaml").write_text("parts:\n  charm:\n    charm-python-packages:\n      - some>=1\n")
    pip.packages = {"some": ["some.so"]}
    done = vendor.vendor(tmp_path, tmp_path / "venv", Parts(files=["more/all.txt"], packages=["some>=1"]))
    assert pip.listed == {"-r": "jinja2\ntenacity\nsome\nsome>=1\n"}
    assert done["native"][0]["required-by"] == ["more/base.txt:2", "charmcraft.yaml:4"]
    with pytest.raises(vendor.VendorError, match="more/none.txt: no such file"):
        vendor.vendor(tmp_path, tmp_path / "venv", Parts(files=["more/none.txt"]))
    with pytest.raises(vendor.VendorError, match="charmcraft.yaml:1: -r.* is for the one who packs to say"):
        vendor.vendor(tmp_path, tmp_path / "venv", Parts(packages=["-rhttps://example.org/all.txt"]))


def test_a_wheel_is_unpacked_and_known_by_its_file(tmp_path, index):
    index("Some_Thing", {"some/__init__.py": "", "some/core.so": "", "Some_Thing-1.0.data/purelib/beside.so": ""})
    index("other", {"other.py": ""}, says="Requires-Dist: Some.Thing>=1\n")
    (tmp_path / "requirements.txt").write_text("other\n")
    done = vendor.vendor(tmp_path, tmp_path / "venv")
    told = [(file["package"], file["file"], file["required-by"]) for file in done["native"]]
    assert told == [("Some_Thing 1.0", "some/core.so", ["other 1.0"]), ("Some_Thing 1.0", "beside.so", ["other 1.0"])]
    assert not list((tmp_path / "venv").rglob("*.so"))


@pytest.mark.parametrize(
    "place",
    [
        "some-1.0.data/purelib/zz-1.0.dist-info",
        "some-1.0.data/platlib/zz-1.0.egg-info",
        "some-1.0.data/data/lib/python/zz-1.0.DIST-INFO",
        "other-1.0.data/purelib/zz-1.0.dist-info",
        "zz-1.0.dist-info",
        "some/../zz-1.0.dist-info",
    ],
)
def test_a_wheel_that_brings_the_metadata_of_others_along_is_not_unpacked(tmp_path, index, place):
    # Of a name that would be an option of pip's, or a directory of the packer's.
    says = "Metadata-Version: 2.1\nName: -rhttps://example.org/more.txt?\nVersion: 1.0\n"
    index("some", {"some.py": "", f"{place}/METADATA": says, f"{place}/RECORD": "zz.so,,\n"})
    (tmp_path / "requirements.txt").write_text("some\n")
    # pip itself refuses some of them.
    with pytest.raises(vendor.VendorError, match="some-1.0-py3-none-any.whl: |multiple .dist-info"):
        vendor.vendor(tmp_path, tmp_path / "venv")
    assert not (tmp_path / "venv").exists() or not list((tmp_path / "venv").iterdir())


def test_what_a_wheel_calls_itself_within_names_no_directory_and_no_option(tmp_path, index, monkeypatch):
    index("some", {"some.so": "", "some-1.0.dist-info/RECORD": "../precious.so,,\nsome.so,,\n"})
    (tmp_path / "precious.so").touch()
    (tmp_path / "requirements.txt").write_text("some\n")
    original = fetching.run

    def renamed(verb, *arguments):
        original(verb, *arguments)
        if verb == "install":
            unpacked_to = pathlib.Path(arguments[arguments.index("--target") + 1])
            metadata = unpacked_to / "some-1.0.dist-info/METADATA"
            metadata.write_text(f"Metadata-Version: 2.1\nName: {tmp_path}\nVersion: 1.0\n")

    monkeypatch.setattr(fetching, "run", renamed)
    done = vendor.vendor(tmp_path, tmp_path / "venv")
    assert [file["package"] for file in done["native"]] == ["some 1.0"]
    assert (tmp_path / "precious.so").exists()
    assert sorted(path.name for path in (tmp_path / "venv").iterdir()) == ["some-1.0.dist-info"]


@pytest.mark.skipif(sys.platform != "linux", reason="no other kernel keeps all of these bounds")
def test_a_package_that_is_made_to_fill_the_packers_machine_is_stopped(tmp_path, index):
    # A metadata file of a gigabyte and more is a megabyte in the wheel, and pip reads it at once. The bound is less than packing's.
    most = 768 << 20
    index("some")
    (wheel,) = (tmp_path / "index").iterdir()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as bomb:
        with bomb.open("some-1.0.dist-info/METADATA", "w", force_zip64=True) as metadata:
            for _ in range(most >> 24):
                metadata.write(bytes(1 << 24))
        bomb.writestr("some-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    (tmp_path / "requirements.txt").write_text("some\n")
    assert most < bounds.MOST_MEMORY
    program = f"import runpy; from periapt_packing import bounds; bounds.MOST_MEMORY = {most}; runpy.run_module('periapt_packing', run_name='__main__')"
    command = [sys.executable, "-c", program, "vendor", str(tmp_path), str(tmp_path / "venv")]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True)
    assert "768 MiB" in json.loads(done.stdout)["error"], done.stderr


def test_pip_has_an_end(tmp_path, monkeypatch):
    endless = tmp_path / "wheels.py"
    endless.write_text("while True: pass")
    monkeypatch.setattr(wheels, "__file__", str(endless))
    monkeypatch.setattr(bounds, "MOST_TIME", 0.1)
    with pytest.raises(vendor.VendorError, match="pip was stopped"):
        fetching.run("download")


@pytest.mark.parametrize(("line", "unreachable"), [("ops", True), ("-i https://example.org", False), ("pydantic==2.10.6", False)])
def test_an_index_that_cannot_be_asked_is_told_apart_from_what_is_refused(tmp_path, line, unreachable):
    (tmp_path / "requirements.txt").write_text(f"{line}\n")
    with socket.socket() as closed:
        # Nobody listens there.
        closed.bind(("127.0.0.1", 0))
        index = {"PIP_INDEX_URL": f"http://127.0.0.1:{closed.getsockname()[1]}/", "PIP_RETRIES": "1", "PIP_FIND_LINKS": ""}
        command = [sys.executable, "-m", "periapt_packing", "vendor", str(tmp_path), str(tmp_path / "venv")]
        done = subprocess.run(command, env={**os.environ, **index, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True)
    told = json.loads(done.stdout)
    assert (bool(told["error"]), told["unreachable"]) == (True, unreachable), told
