"""In the place of what builds a Python package, where pip is to fetch its source archive alone: nothing of it is run."""

import email
import pathlib


def get_requires_for_build_wheel(config_settings=None):
    """Nothing."""
    return []


def prepare_metadata_for_build_wheel(directory, config_settings=None):
    """What the archive says of itself."""
    text = pathlib.Path("PKG-INFO").read_text(encoding="utf-8")
    said = email.message_from_string(text)
    info = pathlib.Path(directory) / f"{said['Name'].replace('-', '_')}-{said['Version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(text, encoding="utf-8")
    return info.name
