"""Which lines of requirements reach pip, and what of what it fetches is unpacked."""

import zipfile

import pytest

from periapt_packing import requirements, unpacked, vendor
from periapt_packing.wanted import Parts


@pytest.mark.parametrize(
    "line",
    [
        "ops",
        "ops==3.9.0",
        "ops ~= 3.0, != 3.1.*",
        "Jinja2>=3,<4 ; python_version >= '3.10' and sys_platform == 'linux'",
        "opentelemetry-api[all, more]<=2",
        "zope.interface (>=5)",
        "one @ https://example.org/one-1.0-py3-none-any.whl",
        "ops==3.9.0 --hash=sha256:" + "0a" * 32,
    ],
)
def test_names_with_versions_and_wheels_are_passed_on(line):
    assert requirements.checked(line, "requirements.txt:1") == line


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://example.org/simple",
        "--index-url=https://example.org/simple",
        "-i https://example.org",
        "--extra-index-url=x",
        "--find-links /etc",
        "--trusted-host=x",
        "--no-binary=:all:",
        "--global-option=build",
        "-e .",
        "-e git+https://example.org/a.git#egg=a",
        "git+https://example.org/a.git",
        "a @ git+https://example.org/a.git",
        "a @ https://example.org/a-1.0.tar.gz",
        "a @ http://example.org/a-1.0-py3-none-any.whl",
        "a @ file:///etc/passwd",
        "a @ https://example.org/${HOME}.whl",
        "file:///tmp/a",
        "https://example.org/a-1.0-py3-none-any.whl",
        ".",
        "..",
        "./a",
        "/a",
        "a/b",
        "a\\b",
        "~/a",
        "a.tar.gz",
        "a-1.0-py3-none-any.whl",
        "a.ZIP",
        "a b",
        "a==1 --config-settings=x=y",
        "a; python_version > '3' --global-option=x",
        "a; python_version > '3' -i https://example.org",
        "${A}",
        "a; python_version > '${A}'",
        "a\n--index-url=https://example.org",
        "a; python_version > '3'\n-rhttps://example.org/more.txt",
        *(f"a; x{end}-e." for end in "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"),
        "a\n",
        "a; python_version > '3' \\",
        "",
    ],
)
def test_all_else_is_refused_with_its_place(line):
    with pytest.raises(requirements.RequirementError, match="requirements.txt:7: "):
        requirements.checked(line, "requirements.txt:7")


def test_files_name_other_files_of_the_charm(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "requirements.txt").write_text(
        "# of ours\nops==3.9.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n\n"
        "-r more/others.txt\n--require-hashes\n-c more/bounds.txt  # and this\n"
    )
    (tmp_path / "more/others.txt").write_text("jinja2\n-r ../requirements.txt\n")
    (tmp_path / "more/bounds.txt").write_text("markupsafe<3\n")
    required, constraints = requirements.of_files(tmp_path, [tmp_path / "requirements.txt"])
    assert required == ["ops==3.9.0 --hash=sha256:00 --hash=sha256:11", "jinja2"]
    assert constraints == ["markupsafe<3"]


def test_no_file_leads_out_of_the_charm(tmp_path):
    charm = tmp_path / "charm"
    charm.mkdir()
    (tmp_path / "outside.txt").write_text("secret==1\n")
    (charm / "link.txt").symlink_to(tmp_path / "outside.txt")
    for line in ("-r ../outside.txt", "-r /etc/passwd", "-c link.txt", "--requirement=../outside.txt"):
        (charm / "requirements.txt").write_text(line + "\n")
        with pytest.raises(vendor.VendorError, match="leads out of the charm's directory"):
            vendor.vendor(charm, charm / "venv")
    with pytest.raises(vendor.VendorError, match="link.txt: it is a link to .*outside.txt, and leads out"):
        vendor.vendor(charm, charm / "venv", Parts(files=["link.txt"]))
    (charm / "requirements.txt").unlink()
    (charm / "requirements.txt").symlink_to(tmp_path / "outside.txt")
    with pytest.raises(vendor.VendorError, match="requirements.txt: it is a link to .*outside.txt, and leads out"):
        vendor.vendor(charm, charm / "venv")


def test_requirements_are_bounded(tmp_path):
    (tmp_path / "requirements.txt").write_text("a\n" * requirements.MOST)
    with pytest.raises(requirements.RequirementError, match="has at most 1 MiB"):
        requirements.of_files(tmp_path, [tmp_path / "requirements.txt"])


@pytest.mark.parametrize(
    "line",
    ["--index-url=https://example.org", "-r/etc/passwd", ".", "git+https://example.org/a", "a\\n-r/etc/passwd", "a; x\\u2028-e."],
)
def test_a_project_passes_pip_no_options(tmp_path, line):
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "c"\ndependencies = ["{line}"]\n')
    with pytest.raises(vendor.VendorError, match="pyproject.toml:[13]: "):
        vendor.vendor(tmp_path, tmp_path / "venv")


@pytest.mark.parametrize("said", ['"1\\n--pre"', '{version = "1", markers = "x\\n-e."}', '{version = "1", extras = ["a]\\n-e.#"]}'])
def test_a_project_of_poetrys_passes_none_either(tmp_path, said):
    (tmp_path / "pyproject.toml").write_text(f"[tool.poetry.dependencies]\nops = {said}\n")
    with pytest.raises(vendor.VendorError, match="pyproject.toml:2: .* is not one line as it stands"):
        vendor.vendor(tmp_path, tmp_path / "venv")


def test_a_project_is_read_within_bounds_and_nowhere_else(tmp_path):
    project = tmp_path / "charm/pyproject.toml"
    project.parent.mkdir()
    project.write_bytes(b"#" * (requirements.MOST + 1))
    with pytest.raises(vendor.VendorError, match="has at most 1 MiB"):
        vendor.vendor(project.parent, tmp_path / "venv")
    project.write_text("a = " + "[" * 100_000)
    with pytest.raises(vendor.VendorError, match="pyproject.toml: "):
        vendor.vendor(project.parent, tmp_path / "venv")
    project.unlink()
    (tmp_path / "outside.toml").write_text('[project]\ndependencies = ["secret"]\n')
    project.symlink_to(tmp_path / "outside.toml")
    with pytest.raises(vendor.VendorError, match="leads out of the charm's directory"):
        vendor.vendor(project.parent, tmp_path / "venv")


def wheel(path, sizes):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        name, version, *_ = path.name.split("-")
        archive.writestr(f"{name}-{version}.dist-info/METADATA", "")
        for number, size in enumerate(sizes):
            with archive.open(f"file{number}", "w", force_zip64=True) as file:
                for _ in range(size >> 20):
                    file.write(bytes(1 << 20))


def test_wheels_are_looked_at_before_they_are_unpacked(tmp_path):
    wheel(tmp_path / "a-1.0-py3-none-any.whl", [1 << 20])
    assert [wheel.pinned for wheel in unpacked.checked(tmp_path)] == ["a==1.0"]
    wheel(tmp_path / "b-1.0-py3-none-any.whl", [unpacked.MOST_BYTES])
    with pytest.raises(unpacked.UnpackError, match="b-1.0-py3-none-any.whl: .* more than 256 MiB unpacked"):
        unpacked.checked(tmp_path)
    wheel(tmp_path / "b-1.0-py3-none-any.whl", [0] * unpacked.MOST_FILES)
    with pytest.raises(unpacked.UnpackError, match="more than 10000 files"):
        unpacked.checked(tmp_path)
    (tmp_path / "b-1.0-py3-none-any.whl").write_bytes(b"no zip")
    with pytest.raises(unpacked.UnpackError, match="not a zip file"):
        unpacked.checked(tmp_path)
    (tmp_path / "b-1.0-py3-none-any.whl").unlink()
    (tmp_path / "b-1.0.tar.gz").touch()
    with pytest.raises(unpacked.UnpackError, match="b-1.0.tar.gz is no wheel"):
        unpacked.checked(tmp_path)
