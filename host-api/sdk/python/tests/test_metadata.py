"""YAML that is parsed once."""

import ops
import pytest
import yaml

from periapt_ops import metadata


@pytest.mark.skipif(not hasattr(ops, "ConfigMeta"), reason="a release of ops that reads them by other functions")
def test_the_charms_own_files_are_parsed_once_and_copies_are_given_out(tmp_path, monkeypatch):
    (tmp_path / "metadata.yaml").write_text("name: a\nrequires: {db: {interface: x}}\n")
    (tmp_path / "config.yaml").write_text("options: {n: {type: int}}\n")
    parsed = []
    real = yaml.safe_load
    counting = lambda stream: parsed.append(stream) or real(stream)
    monkeypatch.setattr(yaml, "safe_load", counting)
    from ops._private import yaml as private

    monkeypatch.setattr(private, "safe_load", counting)
    metadata.remember(str(tmp_path))
    assert len(parsed) == 2
    meta = ops.CharmMeta.from_charm_root(tmp_path)
    meta.requires.clear()
    again = ops.CharmMeta.from_charm_root(tmp_path)
    assert (list(again.requires), list(again.config), len(parsed)) == (["db"], ["n"], 2)
    first = yaml.safe_load((tmp_path / "metadata.yaml").read_text())
    first["name"] = "changed"
    assert yaml.safe_load((tmp_path / "metadata.yaml").read_text())["name"] == "a"
    assert yaml.safe_load("other: 1") == {"other": 1}
