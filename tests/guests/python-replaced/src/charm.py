#!/usr/bin/env python3
"""Uses what has native code elsewhere and Python code in the sandbox. What is not as natively fails the hook."""

import lzma
import ssl

import ops


class ReplacedCharm(ops.CharmBase):
    def __init__(self, framework: ops.Framework):
        super().__init__(framework)
        framework.observe(self.on.config_changed, self._on_config_changed)

    def _on_config_changed(self, _: ops.EventBase) -> None:
        seen = [ssl_is_set_up(), lzma_packs()]
        self.unit.status = ops.ActiveStatus(", ".join(seen))


def ssl_is_set_up() -> str:
    context = ssl.create_default_context()
    return context.verify_mode.name


def lzma_packs() -> str:
    text = b"dashboard " * 100
    # As a machine writes it, with a checksum of 64 bits.
    packed = bytes.fromhex(PACKED)
    assert lzma.decompress(packed) == lzma.decompress(lzma.compress(text)) == text
    return f"{len(packed)} bytes"


PACKED = (
    "fd377a585a000004e6d6b4460200210116000000742fe5a3e003e700165d0032184acd2ba9bfa6dfc5bdce15530ec74ef109"
    "3dd8000000003118e0d84dfbfb60000132e807000000dcc6940fb1c467fb020000000004595a"
)


if __name__ == "__main__":
    ops.main(ReplacedCharm)
