"""Releases that have sources and no wheel: what is taken of an archive of sources without running anything of it."""

import hashlib
import importlib.metadata
import io
import pathlib
import tarfile
import zipfile

import pytest

from periapt_packing import archives, vendor
from periapt_packing.wanted import Parts

TRAP = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\nraise SystemExit('setup.py ran')\n"

PKG_INFO = "Metadata-Version: 2.1\nName: x\nVersion: 1.0\n"


@pytest.fixture
def source(index):
    """Writes an archive of sources into the index; answers its digest."""

    def write(name, files, version="1.0", suffix=".tar.gz", spelled=""):
        top = f"{spelled or name}-{version}"
        path = index.place / f"{top}{suffix}"
        if suffix == ".zip":
            with zipfile.ZipFile(path, "w") as archive:
                for entry, text in files.items():
                    archive.writestr(f"{top}/{entry}", text)
        else:
            with tarfile.open(path, "w:gz") as archive:
                for entry, text in files.items():
                    member = tarfile.TarInfo(f"{top}/{entry}")
                    member.size = len(text.encode())
                    archive.addfile(member, io.BytesIO(text.encode()))
        return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"

    return write


class Charm:
    """A charm that requires something."""

    def __init__(self, place):
        self.place = place

    def pack(self, files, **parts):
        """The files that are brought in without metadata, and what is told."""
        for name, text in files.items():
            (self.place / name).write_text(text)
        done = vendor.vendor(self.place, self.place / "venv", Parts(**parts))
        self.native, self.packages = done["native"], done["packages"]
        found = (path.relative_to(self.place / "venv").as_posix() for path in (self.place / "venv").rglob("*") if path.is_file())
        told = [f"{it['file']}:{it['line']}: {it['message']}" for it in done["findings"]]
        return sorted(file for file in found if ".dist-info/" not in file), told

    def metadata(self, name):
        """The metadata of a package that was brought in."""
        (found,) = importlib.metadata.distributions(name=name, path=[str(self.place / "venv")])
        return found


@pytest.fixture
def charm(tmp_path):
    """An empty charm."""
    (tmp_path / "charm").mkdir()
    return Charm(tmp_path / "charm")


SETUPTOOLS = {
    "setup.py": TRAP,
    "PKG-INFO": PKG_INFO,
    "src/old_lib.egg-info/top_level.txt": "oldlib\nsingle\n_speedups\n",
    "src/old_lib.egg-info/requires.txt": 'some\n\n[:python_version < "3"]\nnowhere\n\n[more]\nother\n',
    "src/old_lib.egg-info/entry_points.txt": "[group]\npoint = oldlib:x\n",
    "src/oldlib/__init__.py": "x = 1\n",
    "src/oldlib/data.txt": "d",
    "src/single.py": "",
    "src/beside/__init__.py": "",
}


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
def test_an_archive_of_setuptools_gives_the_modules_and_requirements_that_it_has_noted(charm, source, index, suffix):
    source("old-lib", SETUPTOOLS, suffix=suffix)
    index("some", {"some.py": ""})
    index("other", {"other.py": ""})
    assert charm.pack({"requirements.txt": "\nold-lib[more]>=1\n"}) == (
        ["oldlib/__init__.py", "oldlib/data.txt", "other.py", "single.py", "some.py"],
        ["requirements.txt:2: old_lib 1.0 has no wheel: its modules are taken from its sources, and nothing is built"],
    )
    assert charm.packages == ["old-lib==1.0", "other==1.0", "some==1.0"]
    assert [(point.group, point.value) for point in charm.metadata("old-lib").entry_points] == [("group", "oldlib:x")]


def test_an_archive_of_another_backend_gives_what_its_project_says(charm, source, index):
    source(
        "hatched",
        {
            "PKG-INFO": f"{PKG_INFO}Requires-Dist: some>=1\nRequires-Dist: other; extra == 'more'\nProvides-Extra: more\n",
            "pyproject.toml": (
                '[project]\nname = "hatched"\nentry-points.group.point = "one:x"\n[tool.hatch.build.targets.wheel]\npackages ='
                ' ["code/one"]\n'
            ),
            "code/one/__init__.py": "",
            "code/two/__init__.py": "",
        },
    )
    index("some", {"some.py": ""})
    assert charm.pack({"requirements.txt": "hatched"})[0] == ["one/__init__.py", "some.py"]
    assert charm.metadata("hatched").requires == ["some>=1", "other; extra == 'more'"]
    assert [point.value for point in charm.metadata("hatched").entry_points] == ["one:x"]


def test_what_only_another_package_requires_is_taken_as_well(charm, source, index):
    index("some", {"some.py": ""}, says="Requires-Dist: old-lib<2\n")
    source("old-lib", {"PKG-INFO": PKG_INFO, "old_lib.py": ""})
    source("old-lib", {"PKG-INFO": PKG_INFO, "newer.py": ""}, version="2.0")
    assert charm.pack({"requirements.txt": "\nsome\n"}) == (
        ["old_lib.py", "some.py"],
        ["requirements.txt:2: old_lib 1.0 has no wheel: its modules are taken from its sources, and nothing is built"],
    )


def test_a_pinned_release_is_taken_from_its_sources_where_others_have_wheels(charm, source, index):
    index("lib", {"lib.py": "newer"}, version="2.0")
    source("lib", {"PKG-INFO": PKG_INFO, "lib/__init__.py": ""})
    files, told = charm.pack({"requirements.txt": "lib==1.0\n"})
    assert files == ["lib/__init__.py"] and told[0].startswith("requirements.txt:1: lib 1.0 has no wheel: its modules are taken")
    # A range has pip take what has a wheel.
    assert charm.pack({"requirements.txt": "lib\n"}) == (["lib.py", "lib/__init__.py"], [])


@pytest.mark.parametrize("way", ["uv.lock", "poetry.lock", "requirements.txt"])
def test_a_lock_gives_the_archive_by_its_digest(charm, source, index, way):
    digest = source("old-lib", SETUPTOOLS, spelled="old_lib")
    _, other = index("some", {"some.py": ""})
    project = '[project]\nname = "c"\ndependencies = ["some", "old-lib"]\n'

    def files(digest):
        return {
            "uv.lock": {
                "pyproject.toml": project,
                way: 'version = 1\n[[package]]\nname = "some"\nversion = "1.0"\nwheels = [{ url ='
                f' "https://x/some-1.0-py3-none-any.whl", hash = "{other}" }}]\n[[package]]\nname = "old-lib"\nversion = "1.0"\nsdist ='
                f' {{ url = "https://x/old_lib-1.0.tar.gz", hash = "{digest}" }}\n',
            },
            "poetry.lock": {
                "pyproject.toml": '[tool.poetry.dependencies]\npython = "^3.10"\nsome = "*"\nold-lib = "*"\n',
                way: '[[package]]\nname = "some"\nversion = "1.0"\nfiles = [{ file = "some-1.0-py3-none-any.whl", hash ='
                f' "{other}" }}]\n[[package]]\nname = "old-lib"\nversion = "1.0"\nfiles = [{{ file = "old_lib-1.0.tar.gz", hash ='
                f' "{digest}" }}]\n[metadata]\nlock-version = "2.1"\n',
            },
            "requirements.txt": {way: f"some==1.0 --hash={other}\nold-lib==1.0 --hash={digest}\n"},
        }[way]

    there, told = charm.pack(files(digest))
    assert there == ["oldlib/__init__.py", "oldlib/data.txt", "single.py", "some.py"]
    assert [line.partition(" has")[2] for line in told] == [" no wheel: its modules are taken from its sources, and nothing is built"]
    there, told = Charm(charm.place).pack(files(f"sha256:{'0' * 64}"))
    assert "not found by the digests that are locked: it is not brought in" in told[0]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"setup.py": "setup(ext_modules=[Extension('x', ['x.c'])])", "lib.py": ""}, "has native code (setup.py)"),
        (
            {"pyproject.toml": '[build-system]\nbuild-backend = "maturin"\n', "lib.py": ""},
            "is built by maturin, which makes native code",
        ),
        ({"one.py": "", "two.py": ""}, "does not say which modules it has without being run"),
        ({"lib.py": "", "PKG-INFO": f"{PKG_INFO}Requires-Dist: a b c\n"}, "'a b c' is no requirement"),
        ({"src/lib.py": "", "src/other-1.0.dist-info/METADATA": ""}, "makes no wheel (lib-1.0-py3-none-any.whl: it has metadata of 2 packages"),
        ({"src/lib.py": "", "src/x.data/purelib/other-1.0.dist-info/METADATA": ""}, "makes no wheel (lib-1.0-py3-none-any.whl: 'x.data"),
        ({"lib.py": "", "../../out.py": ""}, "has a file that leads out of its directory: 'lib-1.0/../../out.py'"),
    ],
)
def test_what_cannot_be_taken_stays_out_with_the_reason(charm, source, files, why):
    source("lib", {"setup.py": TRAP, "PKG-INFO": PKG_INFO, **files})
    told = f"lib has no wheel, and its archive of sources {why}"
    there, (found,) = charm.pack({"requirements.txt": "lib\n"})
    assert there == [] and found.startswith(f"requirements.txt:1: {told}") and found.endswith(": it is not brought in")
    assert [(file["package"], file["lacking"].startswith(told.removeprefix("lib "))) for file in charm.native] == [("lib", True)]


def test_native_code_that_a_package_can_do_without_is_left_out(charm, source):
    files = {"src/markupsafe/__init__.py": "", "src/markupsafe/_speedups.c": ""}
    source("MarkupSafe", {"setup.py": "ext_modules = 1", "PKG-INFO": PKG_INFO, **files})
    assert "markupsafe/__init__.py" in charm.pack({"requirements.txt": "MarkupSafe==1.0\n"})[0]


class TestHostileArchives:
    """What a stranger's archive may do while it is unpacked."""

    @staticmethod
    def unpacked(place, write):
        archive = place / "lib-1.0.tar.gz"
        with tarfile.open(archive, "w:gz") as opened:
            write(opened)
        return archives.unpack(archive, place / "unpacked")

    @staticmethod
    def member(name, content=b"", **said):
        made = tarfile.TarInfo(name)
        made.size = len(content)
        for key, value in said.items():
            setattr(made, key, value)
        return made, io.BytesIO(content)

    def test_links_and_devices_are_left_out(self, tmp_path):
        def write(opened):
            opened.addfile(*self.member("lib/own.py", b"x"))
            opened.addfile(*self.member("lib/link", type=tarfile.SYMTYPE, linkname="/etc/passwd"))
            opened.addfile(*self.member("lib/hard", type=tarfile.LNKTYPE, linkname="lib/own.py"))
            opened.addfile(*self.member("lib/pipe", type=tarfile.FIFOTYPE))

        assert [path.name for path in self.unpacked(tmp_path, write).iterdir()] == ["own.py"]

    @pytest.mark.parametrize("name", ["/lib/x", "lib/../../x", "../x", "lib/a\nb"])
    def test_no_file_leads_out_of_the_directory(self, tmp_path, name):
        with pytest.raises(archives.ArchiveError, match="leads out of its directory"):
            self.unpacked(tmp_path, lambda opened: opened.addfile(*self.member(name, b"x")))
        assert not (tmp_path / "x").exists()

    def test_sizes_and_numbers_of_files_are_bounded(self, tmp_path, monkeypatch):
        monkeypatch.setattr(archives, "MOST_FILES", 3)
        monkeypatch.setattr(archives, "MOST_BYTES", 1000)
        for count, size in ((4, 1), (2, 600)):
            place = tmp_path / f"{count}"
            place.mkdir()
            with pytest.raises(archives.ArchiveError, match="or more than 3 files"):
                self.unpacked(
                    place, lambda opened: [opened.addfile(*self.member(f"lib/{number}", b"x" * size)) for number in range(count)]
                )

    def test_what_lies_between_files_is_bounded_as_well(self, tmp_path, monkeypatch):
        monkeypatch.setattr(archives, "_MOST_READ", 100_000)
        headers = {"comment": "x" * 200_000}
        with pytest.raises(archives.ArchiveError, match="has more than"):
            self.unpacked(tmp_path, lambda opened: opened.addfile(*self.member("lib/x", b"x", pax_headers=headers)))

    @pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08" + b"\0" * 40])
    @pytest.mark.parametrize("suffix", ["tar.gz", "zip"])
    def test_what_is_no_archive_is_told(self, tmp_path, content, suffix):
        archive = tmp_path / f"lib-1.0.{suffix}"
        archive.write_bytes(content)
        with pytest.raises(archives.ArchiveError, match="cannot be read"):
            archives.unpack(archive, tmp_path / "unpacked")

    @pytest.mark.parametrize("names", [["x.py"], ["one/x.py", "two/x.py"], []])
    def test_all_files_are_in_one_directory(self, tmp_path, names):
        with pytest.raises(archives.ArchiveError, match="no single directory"):
            self.unpacked(tmp_path, lambda opened: [opened.addfile(*self.member(name, b"x")) for name in names])


def test_nothing_of_an_archive_is_run(charm, source, tmp_path):
    backend = '[build-system]\nrequires = []\nbuild-backend = "trap"\nbackend-path = ["."]\n'
    source("old-lib", {**SETUPTOOLS, "src/old_lib.egg-info/requires.txt": "", "pyproject.toml": backend, "trap.py": TRAP})
    assert charm.pack({"requirements.txt": "old-lib"})[0][0] == "oldlib/__init__.py"
    assert not [path for path in pathlib.Path(tmp_path).rglob("ran")]
