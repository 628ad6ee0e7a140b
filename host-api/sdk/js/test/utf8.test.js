// The codec of the sandbox beside that of Node.js.

import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, encode } from "../src/utf8.js";

test("texts are encoded as by TextEncoder", () => {
  for (const text of ["", "plain", "sésame", "€", "𝄞 clef", "\u{10ffff}", "\ud800", "\0"]) {
    assert.deepEqual(encode(text), new TextEncoder().encode(text), text);
  }
});

test("bytes are decoded as by TextDecoder where they are UTF-8", () => {
  for (const text of ["", "plain", "sésame", "€", "𝄞 clef", "\u{10ffff}", "\0"]) {
    assert.equal(decode(new TextEncoder().encode(text)), text);
  }
});

test("what is no UTF-8 neither throws nor is taken for a character", () => {
  for (const bytes of [[0xff], [0xc0, 0x80], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x80]]) {
    assert.equal(decode(bytes), "\ufffd".repeat(bytes.length));
  }
  assert.equal(decode([0x61, 0xff, 0x62]), "a\ufffdb");
});
