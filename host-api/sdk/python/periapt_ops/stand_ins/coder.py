"""The decoder of LZMA, which is in .xz and in .lzma."""

from __future__ import annotations

import struct


class LZMAError(Exception):
    """As `lzma.LZMAError`."""


class Coder:
    """The decoder of LZMA: bits by their chances, and from these bytes and what was said before."""

    def __init__(self, properties: int, out: bytearray):
        if properties >= 225:
            raise LZMAError("Corrupt input data")
        self.lc, rest = properties % 9, properties // 9
        self.lp, self.pb = rest % 5, rest // 5
        self.out = out
        self.reset()

    def reset(self) -> None:
        """Forget all chances."""
        self.state, self.reps = 0, [0, 0, 0, 0]
        even = 1 << 10
        self.is_match, self.is_rep0_long = [even] * 192, [even] * 192
        self.is_rep, self.is_rep0, self.is_rep1, self.is_rep2 = ([even] * 12 for _ in range(4))
        self.slots, self.special, self.align = [[even] * 64 for _ in range(4)], [even] * 128, [even] * 16
        self.lengths = [([even] * 2, [[even] * 8 for _ in range(16)], [[even] * 8 for _ in range(16)], [even] * 256) for _ in range(2)]
        self.literals = [[even] * 0x300 for _ in range(1 << (self.lc + self.lp))]

    def run(self, data: bytes, at: int, until: int | None) -> int:
        """Decode until so much is there, or an end is said; answers where the input ended."""
        self.data, self.at = data, at + 5
        self.range, self.code = 0xFFFFFFFF, struct.unpack_from(">I", data, at + 1)[0]
        out, reps = self.out, self.reps
        while until is None or len(out) < until:
            place = len(out) & ((1 << self.pb) - 1)
            state = self.state
            if not self.bit(self.is_match, state * 16 + place):
                self._literal()
                continue
            if not self.bit(self.is_rep, state):
                length = self._length(0, place)
                distance = self._distance(length)
                if distance == 0xFFFFFFFF:
                    self._normalise()
                    return self.at
                reps[:] = [distance, *reps[:3]]
                self.state = 7 if state < 7 else 10
            elif not self.bit(self.is_rep0, state):
                if not self.bit(self.is_rep0_long, state * 16 + place):
                    self.state = 9 if state < 7 else 11
                    self._copy(1, until)
                    continue
                length = self._length(1, place)
                self.state = 8 if state < 7 else 11
            else:
                if not self.bit(self.is_rep1, state):
                    which = 1
                else:
                    which = 2 + self.bit(self.is_rep2, state)
                reps.insert(0, reps.pop(which))
                length = self._length(1, place)
                self.state = 8 if state < 7 else 11
            self._copy(length + 2, until)
        return self.at

    def _normalise(self) -> None:
        if self.range < 1 << 24:
            self.range <<= 8
            self.code = (self.code << 8 | self.data[self.at]) & 0xFFFFFFFF
            self.at += 1

    def bit(self, chances: list[int], index: int) -> int:
        """The next bit, and what its chance is from now on."""
        self._normalise()
        chance = chances[index]
        bound = (self.range >> 11) * chance
        if self.code < bound:
            self.range = bound
            chances[index] = chance + (2048 - chance >> 5)
            return 0
        self.range -= bound
        self.code -= bound
        chances[index] = chance - (chance >> 5)
        return 1

    def _direct(self, count: int) -> int:
        value = 0
        for _ in range(count):
            self._normalise()
            self.range >>= 1
            bit = self.code >= self.range
            if bit:
                self.code -= self.range
            value = value << 1 | bit
        return value

    def _tree(self, chances: list[int], bits: int) -> int:
        node = 1
        for _ in range(bits):
            node = node << 1 | self.bit(chances, node)
        return node - (1 << bits)

    def _reversed(self, chances: list[int], base: int, bits: int) -> int:
        node, value = 1, 0
        for shift in range(bits):
            bit = self.bit(chances, base + node)
            node = node << 1 | bit
            value |= bit << shift
        return value

    def _literal(self) -> None:
        out = self.out
        before = out[-1] if out else 0
        place = (len(out) & ((1 << self.lp) - 1)) << self.lc | before >> (8 - self.lc)
        chances, symbol = self.literals[place], 1
        if self.state >= 7:
            match = self._back(self.reps[0])
            while symbol < 0x100:
                bit = match >> 7 & 1
                match = match << 1
                found = self.bit(chances, ((1 + bit) << 8) + symbol)
                symbol = symbol << 1 | found
                if bit != found:
                    break
        while symbol < 0x100:
            symbol = symbol << 1 | self.bit(chances, symbol)
        out.append(symbol & 0xFF)
        self.state = 0 if self.state < 4 else self.state - 3 if self.state < 10 else self.state - 6

    def _length(self, kind: int, place: int) -> int:
        choice, low, middle, high = self.lengths[kind]
        if not self.bit(choice, 0):
            return self._tree(low[place], 3)
        if not self.bit(choice, 1):
            return 8 + self._tree(middle[place], 3)
        return 16 + self._tree(high, 8)

    def _distance(self, length: int) -> int:
        slot = self._tree(self.slots[min(length, 3)], 6)
        if slot < 4:
            return slot
        bits = (slot >> 1) - 1
        distance = (2 | slot & 1) << bits
        if slot < 14:
            return distance + self._reversed(self.special, distance - slot, bits)
        distance += self._direct(bits - 4) << 4
        return distance + self._reversed(self.align, 0, 4)

    def _back(self, distance: int) -> int:
        if distance >= len(self.out):
            raise LZMAError("Corrupt input data")
        return self.out[-distance - 1]

    def _copy(self, length: int, until: int | None) -> None:
        self._back(self.reps[0])
        if until is not None:
            length = min(length, until - len(self.out))
        for _ in range(length):
            self.out.append(self.out[-self.reps[0] - 1])
