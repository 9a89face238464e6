// Reads a bundle a slice at a time: its layout to the byte, every hash, and the way from the root to every object.
// Nothing of it is kept longer than needed, run, or taken for markup. What it cannot prove, `solbench verify` does.
"use strict";

const Bundle = (() => {
  const SLICE = 1 << 20;
  const WINDOW = 4 << 20;
  // WebCrypto wants the bytes of one SHA-256 all at once; a larger file has BLAKE3 only.
  const WHOLE = 64 << 20;
  const MAX_MEMBERS = 200000;
  const TOP = new Set(["B3SUMS", "SHA256SUMS", "provenance.json", "release.json", "site.json"]);
  const NEEDED = ["release.json", "provenance.json", "B3SUMS", "SHA256SUMS"];
  const OBJECT = /^objects\/([0-9a-f]{2})\/([0-9a-f]{62})$/;
  const PAGE = /^site(?:\/[A-Za-z0-9_-](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?)+$/;
  const DIGEST = /^blake3:[0-9a-f]{64}$/;
  // Objects that are no JSON.
  const RAW = new Set(["code-object", "assembly"]);
  const OTHERWISE = "Use solbench verify, which says more.";

  // What is not one of our bundles, in one line.
  class Refused extends Error {}

  // Text from a bundle with everything but plain ASCII spelt out, so that it can hide and turn nothing.
  const shown = (text) => {
    const plain = [...String(text)].map((c) => (c >= " " && c <= "~" ? c : `\\u{${c.codePointAt(0).toString(16)}}`)).join("");
    return plain.length > 200 ? `${plain.slice(0, 200)}…` : plain;
  };
  const latin = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  const hexOf = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");

  // A file with a window on it, so that many small members cost few reads.
  class Reader {
    constructor(file) {
      this.file = file;
      this.size = file.size;
      this.start = 0;
      this.window = new Uint8Array(0);
    }

    // A copy of `size` bytes from `at`; fewer only at the end.
    async at(at, size) {
      const end = Math.min(at + size, this.size);
      if (at < this.start || end > this.start + this.window.length) {
        this.start = at;
        this.window = new Uint8Array(await this.file.slice(at, Math.max(end, Math.min(at + WINDOW, this.size))).arrayBuffer());
        if (this.window.length < end - at) throw new Refused("The file became shorter while it was read.");
      }
      return this.window.slice(at - this.start, Math.max(end, at) - this.start);
    }
  }

  // -- the two archives that we write

  // The end record, the directory and every local header, each as solbench/release/archive.py writes them.
  async function zipMembers(reader) {
    const refuse = (what) => new Refused(`Not a ZIP archive as solbench writes it: ${what}. ${OTHERWISE}`);
    const tail = await reader.at(Math.max(reader.size - 22, 0), 22);
    const end = new DataView(tail.buffer);
    if (tail.length < 22 || end.getUint32(0, true) !== 0x06054b50) throw refuse("its end record is missing; it is cut off or has something behind it");
    const count = end.getUint16(10, true), length = end.getUint32(12, true), start = end.getUint32(16, true);
    const plain = end.getUint32(4, true) === 0 && end.getUint16(8, true) === count && end.getUint16(20, true) === 0;
    if (!plain || start + length + 22 !== reader.size) throw refuse("its end record says something else than the file");
    const directory = new Uint8Array(await reader.file.slice(start, start + length).arrayBuffer());
    const view = new DataView(directory.buffer);
    const members = [];
    let at = 0, position = 0;
    while (at < length) {
      if (at + 46 > length || view.getUint32(at, true) !== 0x02014b50) throw refuse(`other bytes in its directory at ${at}`);
      const flags = view.getUint16(at + 8, true), method = view.getUint16(at + 10, true);
      const crc = view.getUint32(at + 16, true), size = view.getUint32(at + 24, true), bytes = view.getUint16(at + 28, true);
      const raw = directory.subarray(at + 46, at + 46 + bytes);
      const name = latin(raw);
      if (flags & 1 || method) throw refuse(`${shown(name)} is compressed or encrypted`);
      const ours = view.getUint32(at + 4, true) === 0x00140314 && flags === 0 && view.getUint32(at + 12, true) === 0x00210000
        && view.getUint32(at + 20, true) === size && view.getUint32(at + 30, true) === 0 && view.getUint32(at + 34, true) === 0
        && view.getUint32(at + 38, true) === 0x81a40000 && view.getUint32(at + 42, true) === position;
      if (!ours || at + 46 + bytes > length) throw refuse(`the directory entry of ${shown(name)} is not ours`);
      const local = await reader.at(position, 30 + bytes);
      const head = new DataView(local.buffer);
      const same = local.length === 30 + bytes && head.getUint32(0, true) === 0x04034b50 && head.getUint32(4, true) === 20
        && head.getUint16(8, true) === 0 && head.getUint32(10, true) === 0x00210000 && head.getUint32(14, true) === crc
        && head.getUint32(18, true) === size && head.getUint32(22, true) === size && head.getUint32(26, true) === bytes
        && raw.every((byte, i) => local[30 + i] === byte);
      if (!same) throw refuse(`other bytes than our header before ${shown(name)}`);
      members.push({ name, size, crc, at: position + 30 + bytes, reader });
      position += 30 + bytes + size;
      at += 46 + bytes;
    }
    if (members.length !== count || position !== start) throw refuse("its members do not fill it");
    return members;
  }

  // A header block as solbench/release/tar.py writes it.
  function tarHeader(name, size) {
    let prefix = "", last = name;
    if (name.length > 100) {
      const slash = name.lastIndexOf("/", 155);
      prefix = name.slice(0, Math.max(slash, 0));
      last = name.slice(slash + 1);
    }
    const block = new Uint8Array(512);
    const put = (at, text) => { for (let i = 0; i < text.length; i += 1) block[at + i] = text.charCodeAt(i); };
    const octal = (value, digits) => value.toString(8).padStart(digits, "0");
    put(0, last.slice(0, 100));
    for (const [at, value, digits] of [[100, 0o644, 7], [108, 0, 7], [116, 0, 7], [124, size, 11], [136, 0, 11], [329, 0, 7], [337, 0, 7]]) put(at, octal(value, digits));
    put(156, "0");
    put(257, "ustar\0" + "00");
    put(345, prefix.slice(0, 155));
    const sum = block.reduce((total, byte) => total + byte, 8 * 32);
    put(148, `${octal(sum, 6)}\0 `);
    return block;
  }

  async function tarMembers(reader) {
    const refuse = (what) => new Refused(`Not a tar archive as solbench writes it: ${what}. ${OTHERWISE}`);
    const members = [];
    const field = (block, at, size) => latin(block.subarray(at, at + size)).split("\0", 1)[0];
    for (let at = 0; ;) {
      const block = await reader.at(at, 512);
      if (block.length < 512) throw refuse(`it is cut off after ${at + block.length} bytes`);
      if (block.every((byte) => byte === 0)) {
        const last = await reader.at(at + 512, 1024);
        if (last.length !== 512 || last.some((byte) => byte !== 0)) throw refuse("it does not end with two blocks of zeros");
        return members;
      }
      const prefix = field(block, 345, 155);
      const name = prefix ? `${prefix}/${field(block, 0, 100)}` : field(block, 0, 100);
      const digits = latin(block.subarray(124, 136));
      const size = /^[0-7]{11}\0$/.test(digits) ? parseInt(digits, 8) : -1;
      const expected = tarHeader(name, Math.max(size, 0));
      if (!block.every((byte, i) => byte === expected[i])) throw refuse(`the header of ${shown(name)} is not ours (a link, other rights, other times)`);
      if (members.length >= MAX_MEMBERS) throw refuse(`it has more than ${MAX_MEMBERS} members`);
      members.push({ name, size, at: at + 512, reader });
      const gap = -size & 511;
      const zeros = await reader.at(at + 512 + size, gap);
      if (zeros.length !== gap || zeros.some((byte) => byte !== 0)) throw refuse(`${shown(name)} is cut off, or not followed by zeros`);
      at += 512 + size + gap;
    }
  }

  // "zip", "tar" or null for any other file.
  async function formOf(file) {
    const bytes = new Uint8Array(await file.slice(0, 512).arrayBuffer());
    const start = latin(bytes.subarray(0, 4));
    if (start === "PK\x03\x04" || start === "PK\x05\x06" || /\.zip$/i.test(file.name)) return "zip";
    if (start.startsWith("\x1f\x8b")) throw new Refused(`${shown(file.name)} is compressed. Unpack it to a .tar archive with gunzip --keep, or use solbench verify.`);
    return latin(bytes.subarray(257, 262)) === "ustar" || /\.tar$/i.test(file.name) ? "tar" : null;
  }

  async function archive(file, form) {
    const reader = new Reader(file);
    const members = await (form === "zip" ? zipMembers : tarMembers)(reader);
    const unsorted = members.find((member, i) => i > 0 && members[i - 1].name >= member.name);
    if (unsorted) throw new Refused(`Not an archive as solbench writes it: ${shown(unsorted.name)} is not in its place, or there twice. ${OTHERWISE}`);
    return members;
  }

  // Files of a folder as [path, File]; the folder's own name goes.
  function folder(files) {
    const depth = files.every(([path]) => path.includes("/")) ? 1 : 0;
    return files.map(([path, file]) => ({ name: path.split("/").slice(depth).join("/"), size: file.size, at: 0, reader: new Reader(file) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  // -- hashes

  const CRC = Int32Array.from({ length: 256 }, (_, n) => {
    let c = n;
    for (let k = 0; k < 8; k += 1) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
    return c;
  });
  function crc32(bytes, crc) {
    let c = ~crc;
    for (let i = 0; i < bytes.length; i += 1) c = CRC[(c ^ bytes[i]) & 255] ^ (c >>> 8);
    return ~c;
  }

  // Both hashes of one member, and its bytes where it is small; `step(bytes)` is awaited after each slice.
  // SHA-256 comes as a promise of hex, null for a large file: the browser computes it beside the rest.
  async function hash(member, step) {
    const hasher = new Blake3.Hasher();
    let whole = member.size <= WHOLE && member.size > SLICE ? new Uint8Array(member.size) : null;
    if (member.size === 0) whole = new Uint8Array(0);
    let crc = 0;
    for (let done = 0; done < member.size;) {
      const piece = await member.reader.at(member.at + done, Math.min(SLICE, member.size - done));
      if (piece.length === 0) throw new Refused(`${shown(member.name)} became shorter while it was read.`);
      hasher.update(piece);
      if (member.crc !== undefined) crc = crc32(piece, crc);
      if (whole) whole.set(piece, done);
      else if (member.size <= SLICE) whole = piece;
      done += piece.length;
      await step(piece.length);
    }
    const sha256 = whole ? crypto.subtle.digest("SHA-256", whole).then(hexOf) : Promise.resolve(null);
    return { blake3: hasher.hex(), sha256, crcFits: member.crc === undefined || crc >>> 0 === member.crc, bytes: whole };
  }

  // -- what leads from the release to its objects

  // References wherever they stand: an object of exactly kind, digest and size.
  function references(value) {
    const found = [], stack = [value];
    while (stack.length) {
      const item = stack.pop();
      if (item === null || typeof item !== "object") continue;
      const keys = Array.isArray(item) ? [] : Object.keys(item);
      if (keys.length === 3 && keys.every((key) => key === "kind" || key === "digest" || key === "size") && typeof item.digest === "string") found.push(item);
      else for (const below of Object.values(item)) stack.push(below);
    }
    return found;
  }

  const parsed = (bytes) => {
    try {
      return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
    } catch {
      return undefined;
    }
  };
  const memberOf = (digest) => `objects/${digest.slice(7, 9)}/${digest.slice(9)}`;

  // Follows every reference from the root. `objects`: by member name, {size, kind, below, damaged}.
  function closure(root, size, objects, fault) {
    const seen = new Map();
    const queue = [{ kind: "release", digest: root, size }];
    let complete = true;
    while (queue.length) {
      const { kind, digest, size: stated } = queue.pop();
      if (typeof kind !== "string" || !DIGEST.test(digest) || !Number.isSafeInteger(stated) || stated < 0) {
        fault("release.json", "bad", `something refers to ${shown(kind)} ${shown(digest)}, which cannot be`);
        complete = false;
        continue;
      }
      const name = memberOf(digest), object = objects.get(name), known = seen.get(digest);
      if (known) {
        if (known.kind !== kind || known.size !== stated) fault(name, "bad", `is referred to as ${shown(known.kind)} of ${known.size} bytes and as ${shown(kind)} of ${stated}`);
        continue;
      }
      seen.set(digest, { kind, size: stated });
      if (!object) {
        fault(name, "missing", `missing: the release refers to it as ${shown(kind)}`);
        complete = complete && RAW.has(kind);
        continue;
      }
      if (object.size !== stated) fault(name, "damaged", `has ${object.size} bytes, the release says ${stated}`);
      if (RAW.has(kind)) continue;
      if (object.damaged || !object.below) {
        if (!object.damaged) fault(name, "bad", `is no JSON, and the release refers to it as ${shown(kind)}`);
        complete = false;
        continue;
      }
      if (object.kind !== kind) fault(name, "bad", `says it is ${shown(object.kind)}, the release refers to it as ${shown(kind)}`);
      queue.push(...object.below);
    }
    for (const [name, object] of complete ? objects : []) {
      if (!object.damaged && !seen.has(`blake3:${name.slice(8).replace("/", "")}`)) fault(name, "extra", "extra: nothing in the release refers to it");
    }
    return { reached: seen.size, complete };
  }

  // A checksum file must be the one that belongs to the other members, to the byte.
  function checkSums(name, text, digests, fault) {
    const names = [...digests.keys()].filter((member) => member !== "B3SUMS" && member !== "SHA256SUMS").sort();
    if (text === names.map((member) => `${digests.get(member)}  ${member}\n`).join("")) return;
    const stated = new Map(text.split("\n").map((line) => [line.slice(66), line.slice(0, 64)]));
    stated.delete("");
    let told = false;
    const tell = (member, kind, words) => { fault(member, kind, words); told = true; };
    for (const member of names) {
      if (!stated.has(member)) tell(member, "extra", `extra: not listed in ${name}`);
      else if (digests.get(member) !== null && stated.get(member) !== digests.get(member)) tell(member, "damaged", `damaged: ${name} has another hash for it`);
    }
    for (const member of stated.keys()) if (!digests.has(member)) tell(member, "missing", `missing: listed in ${name}`);
    if (!told && ![...digests.values()].includes(null)) fault(name, "bad", "is not written as solbench writes it");
  }

  function checkSite(value, root, digests, fault) {
    if (value?.release?.digest !== root) fault("site.json", "bad", `its pages show another release: ${shown(value?.release?.digest)}`);
    const pages = new Map(Object.entries(value?.pages ?? {}).map(([path, digest]) => [`site/${path}`, digest]));
    for (const [name, digest] of pages) {
      if (!digests.has(name)) fault(name, "missing", "missing: listed in site.json");
      else if (digest !== `blake3:${digests.get(name)}`) fault(name, "damaged", "damaged: site.json has another hash for it");
    }
    for (const name of digests.keys()) if (name.startsWith("site/") && !pages.has(name)) fault(name, "extra", "extra: not listed in site.json");
  }

  // Everything that hashes can show about `members`. `step(bytes)` is awaited often, and may throw to stop.
  async function check(members, step) {
    const files = [], byName = new Map(), objects = new Map(), b3 = new Map(), sha = new Map(), texts = new Map();
    const fault = (name, verdict, words) => {
      const file = byName.get(name);
      if (file) file.faults.push(words);
      faults.push({ name, verdict, words });
    };
    const faults = [];
    const folded = new Set();
    let waiting = [], held = 0;
    for (const member of members) {
      const { name, size } = member;
      const found = await hash(member, step);
      const file = { name, size, blake3: found.blake3, sha256: null, faults: [] };
      const known = TOP.has(name) || OBJECT.test(name) || PAGE.test(name);
      waiting.push(found.sha256.then((hex) => {
        file.sha256 = hex;
        if (known) sha.set(name, hex);
      }));
      held += size <= WHOLE ? size : 0;
      if (held > WHOLE || waiting.length > 500) {
        await Promise.all(waiting);
        [waiting, held] = [[], 0];
      }
      files.push(file);
      byName.set(name, file);
      const match = OBJECT.exec(name);
      if (known) b3.set(name, found.blake3);
      else fault(name, "extra", "extra: no bundle holds such a file");
      if (folded.has(name.toLowerCase())) fault(name, "bad", "has the name of another file but for capital letters");
      folded.add(name.toLowerCase());
      if (!found.crcFits) fault(name, "damaged", "damaged: the archive has another CRC-32 for it");
      if (match) {
        const damaged = found.blake3 !== match[1] + match[2];
        if (damaged) fault(name, "damaged", `damaged: its bytes hash to ${found.blake3}`);
        const value = !damaged && found.bytes && found.bytes[0] === 123 ? parsed(found.bytes) : undefined;
        const below = value && typeof value === "object" ? references(value) : null;
        objects.set(name, { size, damaged, below, kind: value?.kind });
      } else if (TOP.has(name) && found.bytes) texts.set(name, found.bytes);
    }
    await Promise.all(waiting);
    for (const name of NEEDED) if (!byName.has(name)) fault(name, "missing", "missing: every bundle has it");
    for (const [name, digests] of [["B3SUMS", b3], ["SHA256SUMS", sha]]) {
      if (texts.has(name)) checkSums(name, new TextDecoder().decode(texts.get(name)), digests, fault);
    }
    const release = byName.get("release.json");
    const report = { files, faults, objects: objects.size, root: null, name: "", reached: 0, complete: false, withoutSha256: files.filter((file) => file.sha256 === null).length };
    if (objects.size === 0) fault("objects", "missing", "missing: there is no object at all");
    if (release) {
      report.root = `blake3:${release.blake3}`;
      report.name = String(parsed(texts.get("release.json") ?? new Uint8Array(0))?.name ?? "");
      Object.assign(report, closure(report.root, release.size, objects, fault));
      const subjects = parsed(texts.get("provenance.json") ?? new Uint8Array(0))?.subject;
      if (byName.has("provenance.json") && !(Array.isArray(subjects) && subjects.some((subject) => subject?.digest?.blake3 === release.blake3))) fault("provenance.json", "bad", "is about another release");
      if (byName.has("site.json")) checkSite(parsed(texts.get("site.json") ?? new Uint8Array(0)), report.root, b3, fault);
    }
    return report;
  }

  return { Refused, shown, formOf, archive, folder, hash, parsed, memberOf, check, Reader };
})();
