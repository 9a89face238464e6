// BLAKE3-256 (hash mode) after the paper "BLAKE3: one function, fast everywhere", section 2; its own code, plain arithmetic.
"use strict";

const Blake3 = (() => {
  const CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8;
  const CHUNK = 1024;
  const IV = Int32Array.of(
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
  );
  // Words are read as the machine keeps them; every machine that runs a browser today keeps the low byte first.
  const LITTLE = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

  // One block: 16 words of `m` from `at`, chained to 8 words of `cv` from `from`; 8 words go to `out` from `to`.
  function compress(cv, from, m, at, counter, length, flags, out, to) {
    let m0 = m[at], m1 = m[at + 1], m2 = m[at + 2], m3 = m[at + 3], m4 = m[at + 4], m5 = m[at + 5];
    let m6 = m[at + 6], m7 = m[at + 7], m8 = m[at + 8], m9 = m[at + 9], m10 = m[at + 10], m11 = m[at + 11];
    let m12 = m[at + 12], m13 = m[at + 13], m14 = m[at + 14], m15 = m[at + 15], t = 0;
    let v0 = cv[from], v1 = cv[from + 1], v2 = cv[from + 2], v3 = cv[from + 3];
    let v4 = cv[from + 4], v5 = cv[from + 5], v6 = cv[from + 6], v7 = cv[from + 7];
    let v8 = 0x6a09e667, v9 = 0xbb67ae85 | 0, v10 = 0x3c6ef372, v11 = 0xa54ff53a | 0;
    let v12 = counter | 0, v13 = Math.floor(counter / 4294967296) | 0, v14 = length, v15 = flags;
    for (let round = 0; round < 7; round += 1) {
      // Columns.
      v0 = (v0 + v4 + m0) | 0; v12 ^= v0; v12 = (v12 >>> 16) | (v12 << 16); v8 = (v8 + v12) | 0; v4 ^= v8; v4 = (v4 >>> 12) | (v4 << 20);
      v0 = (v0 + v4 + m1) | 0; v12 ^= v0; v12 = (v12 >>> 8) | (v12 << 24); v8 = (v8 + v12) | 0; v4 ^= v8; v4 = (v4 >>> 7) | (v4 << 25);
      v1 = (v1 + v5 + m2) | 0; v13 ^= v1; v13 = (v13 >>> 16) | (v13 << 16); v9 = (v9 + v13) | 0; v5 ^= v9; v5 = (v5 >>> 12) | (v5 << 20);
      v1 = (v1 + v5 + m3) | 0; v13 ^= v1; v13 = (v13 >>> 8) | (v13 << 24); v9 = (v9 + v13) | 0; v5 ^= v9; v5 = (v5 >>> 7) | (v5 << 25);
      v2 = (v2 + v6 + m4) | 0; v14 ^= v2; v14 = (v14 >>> 16) | (v14 << 16); v10 = (v10 + v14) | 0; v6 ^= v10; v6 = (v6 >>> 12) | (v6 << 20);
      v2 = (v2 + v6 + m5) | 0; v14 ^= v2; v14 = (v14 >>> 8) | (v14 << 24); v10 = (v10 + v14) | 0; v6 ^= v10; v6 = (v6 >>> 7) | (v6 << 25);
      v3 = (v3 + v7 + m6) | 0; v15 ^= v3; v15 = (v15 >>> 16) | (v15 << 16); v11 = (v11 + v15) | 0; v7 ^= v11; v7 = (v7 >>> 12) | (v7 << 20);
      v3 = (v3 + v7 + m7) | 0; v15 ^= v3; v15 = (v15 >>> 8) | (v15 << 24); v11 = (v11 + v15) | 0; v7 ^= v11; v7 = (v7 >>> 7) | (v7 << 25);
      // Diagonals.
      v0 = (v0 + v5 + m8) | 0; v15 ^= v0; v15 = (v15 >>> 16) | (v15 << 16); v10 = (v10 + v15) | 0; v5 ^= v10; v5 = (v5 >>> 12) | (v5 << 20);
      v0 = (v0 + v5 + m9) | 0; v15 ^= v0; v15 = (v15 >>> 8) | (v15 << 24); v10 = (v10 + v15) | 0; v5 ^= v10; v5 = (v5 >>> 7) | (v5 << 25);
      v1 = (v1 + v6 + m10) | 0; v12 ^= v1; v12 = (v12 >>> 16) | (v12 << 16); v11 = (v11 + v12) | 0; v6 ^= v11; v6 = (v6 >>> 12) | (v6 << 20);
      v1 = (v1 + v6 + m11) | 0; v12 ^= v1; v12 = (v12 >>> 8) | (v12 << 24); v11 = (v11 + v12) | 0; v6 ^= v11; v6 = (v6 >>> 7) | (v6 << 25);
      v2 = (v2 + v7 + m12) | 0; v13 ^= v2; v13 = (v13 >>> 16) | (v13 << 16); v8 = (v8 + v13) | 0; v7 ^= v8; v7 = (v7 >>> 12) | (v7 << 20);
      v2 = (v2 + v7 + m13) | 0; v13 ^= v2; v13 = (v13 >>> 8) | (v13 << 24); v8 = (v8 + v13) | 0; v7 ^= v8; v7 = (v7 >>> 7) | (v7 << 25);
      v3 = (v3 + v4 + m14) | 0; v14 ^= v3; v14 = (v14 >>> 16) | (v14 << 16); v9 = (v9 + v14) | 0; v4 ^= v9; v4 = (v4 >>> 12) | (v4 << 20);
      v3 = (v3 + v4 + m15) | 0; v14 ^= v3; v14 = (v14 >>> 8) | (v14 << 24); v9 = (v9 + v14) | 0; v4 ^= v9; v4 = (v4 >>> 7) | (v4 << 25);
      // The next round reads the message in another order.
      t = m0; m0 = m2; m2 = m3; m3 = m10; m10 = m12; m12 = m9; m9 = m11; m11 = m5; m5 = t;
      t = m1; m1 = m6; m6 = m4; m4 = m7; m7 = m13; m13 = m14; m14 = m15; m15 = m8; m8 = t;
    }
    out[to] = v0 ^ v8; out[to + 1] = v1 ^ v9; out[to + 2] = v2 ^ v10; out[to + 3] = v3 ^ v11;
    out[to + 4] = v4 ^ v12; out[to + 5] = v5 ^ v13; out[to + 6] = v6 ^ v14; out[to + 7] = v7 ^ v15;
  }

  // A hash of bytes that come a piece at a time: update(Uint8Array) as often as needed, then hex() once.
  class Hasher {
    constructor() {
      if (!LITTLE) throw new Error("this machine keeps the high byte first; use b3sum");
      this.chunks = 0; // Whole chunks that are in the tree.
      this.stack = new Int32Array(8 * 56); // Chaining values of whole subtrees, the largest first.
      this.height = 0;
      this.tail = new Uint8Array(CHUNK); // The last chunk, which is not hashed before it is known to be the last.
      this.words = new Int32Array(this.tail.buffer);
      this.filled = 0;
      this.cv = new Int32Array(8);
    }

    update(bytes) {
      let at = 0;
      while (at < bytes.length) {
        if (this.filled === CHUNK) {
          this.push(this.words, 0);
          this.filled = 0;
        }
        if (this.filled === 0 && (bytes.byteOffset + at) % 4 === 0) {
          const whole = Math.ceil((bytes.length - at) / CHUNK) - 1;
          if (whole > 0) {
            const words = new Int32Array(bytes.buffer, bytes.byteOffset + at, whole * 256);
            for (let i = 0; i < whole; i += 1) this.push(words, i * 256);
            at += whole * CHUNK;
          }
        }
        const take = Math.min(CHUNK - this.filled, bytes.length - at);
        this.tail.set(bytes.subarray(at, at + take), this.filled);
        this.filled += take;
        at += take;
      }
      return this;
    }

    // A chunk that is not the last: its value joins the subtrees that it completes.
    push(words, at) {
      const { cv, stack } = this;
      cv.set(IV);
      for (let block = 0; block < 16; block += 1) {
        const flags = block === 0 ? CHUNK_START : block === 15 ? CHUNK_END : 0;
        compress(cv, 0, words, at + block * 16, this.chunks, 64, flags, cv, 0);
      }
      this.chunks += 1;
      stack.set(cv, this.height * 8);
      this.height += 1;
      for (let total = this.chunks; total % 2 === 0; total /= 2) {
        this.height -= 1;
        compress(IV, 0, stack, (this.height - 1) * 8, 0, 64, PARENT, stack, (this.height - 1) * 8);
      }
    }

    hex() {
      const { cv, stack } = this;
      this.tail.fill(0, this.filled);
      cv.set(IV);
      const last = Math.max(Math.ceil(this.filled / 64) - 1, 0);
      for (let block = 0; block <= last; block += 1) {
        let flags = block === 0 ? CHUNK_START : 0;
        if (block === last) flags |= CHUNK_END | (this.height === 0 ? ROOT : 0);
        const length = block === last ? this.filled - last * 64 : 64;
        compress(cv, 0, this.words, block * 16, this.chunks, length, flags, cv, 0);
      }
      for (; this.height > 0; this.height -= 1) {
        stack.set(cv, this.height * 8);
        const flags = PARENT | (this.height === 1 ? ROOT : 0);
        compress(IV, 0, stack, (this.height - 1) * 8, 0, 64, flags, cv, 0);
      }
      return [...new Uint8Array(cv.buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    }
  }

  return { Hasher, hex: (bytes) => new Hasher().update(bytes).hex() };
})();
