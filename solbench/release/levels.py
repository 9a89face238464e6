"""The levels that need only bytes and contracts: hashes, closure from the root, schemas, the site."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple, dataclass, field
from typing import Any, Final

from blake3 import blake3

from solbench import canonical
from solbench.canonical import MalformedError
from solbench.errors import IntegrityError
from solbench.release import bundle, references, schemas, shares
from solbench.release.findings import Finding, Findings
from solbench.release.paths import TOP_FILES
from solbench.release.source import ChangedError, Limits, Source
from solbench.store import RAW_KINDS, Descriptor

SITE_SCHEMA: Final = "solbench.site.v1"
# Kept between levels, so that a bundle of usual size is read and parsed once, and a huge one in bounded memory.
_KEPT_BYTES = 32 << 20
_PARSED_BYTES = 12 << 20
_SMALL = 1 << 20
# Objects from which on a second process is worth its start.
_MANY = 4000
# A document beyond this has the memory for itself: parsed, it takes more than ten times its size.
_LARGE = 6 << 20
# Of the size that a source reads at once.
_PIECES_AHEAD = 4
# A page beyond this is checked by its digest only.
_PAGE_BYTES = 16 << 20

# What makes a browser fetch from elsewhere as soon as a page opens; a plain link does not.
_EXTERNAL = re.compile(
    rb"<(?:script|img|link|iframe|object|embed|source|video|audio|track|input|base)\b[^>]{0,4096}?"
    rb"\s(?:src|srcset|href|data|poster)\s*=\s*[\"']?\s*(?:[a-z][a-z0-9+.-]*:)?//",
    re.IGNORECASE,
)
_EXTERNAL_STYLE = re.compile(rb"(?:@import|url\()\s*[\"']?\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)


@dataclass
class Contents:
    """A bundle whose bytes were hashed: digests (hex) by member, and parsed artifacts by digest."""

    source: Source
    blake3: dict[str, str] = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)
    bytes_read: int = 0
    root: Descriptor | None = None
    sections: dict[str, dict[str, Descriptor]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    _kept: dict[str, bytes] = field(default_factory=dict, repr=False)
    _kept_bytes: int = 0
    _parsed: dict[str, Any] = field(default_factory=dict, repr=False)
    _parsed_bytes: int = 0

    @property
    def objects(self) -> list[str]:
        return sorted(name for name in self.source.sizes if name.startswith("objects/"))

    def forget(self) -> None:
        """Make room for a document that needs much of it; what is asked for again is read again."""
        self._kept, self._parsed = {}, {}
        self._kept_bytes = self._parsed_bytes = 0

    def keep(self, name: str, data: bytes) -> None:
        if len(data) <= _SMALL and self._kept_bytes + len(data) <= _KEPT_BYTES:
            self._kept[name] = data
            self._kept_bytes += len(data)

    def read(self, name: str) -> bytes:
        """The very bytes that were hashed; :class:`ChangedError` where they are others by now."""
        data = self._kept.get(name)
        if data is None:
            data = self.source.read(name)
            if blake3(data).hexdigest() != self.blake3[name]:
                raise ChangedError(0, "changed while it was verified")
        return data

    def parse(self, digest: str, data: bytes) -> tuple[Any, bytes | None]:
        """The value of canonical bytes, and what :func:`solbench.canonical.read` knows of it."""
        value, again = canonical.read(data, digest)
        if self._parsed_bytes + len(data) <= _PARSED_BYTES:
            self._parsed[digest] = value
            self._parsed_bytes += len(data)
        return value, again

    def load(self, stage: str, descriptor: Descriptor) -> dict[str, Any]:
        """An artifact that the levels before have found sound."""
        value = self._parsed.get(descriptor.digest)
        if value is None:
            value = canonical.loads_again(self.read(member_of(descriptor)))
        return dict(value)

    def holds(self, descriptor: Descriptor) -> bool:
        """Whether bytes and value of an artifact are at hand."""
        return descriptor.digest in self._parsed and member_of(descriptor) in self._kept

    def value(self, descriptor: Descriptor) -> Any:
        """What an artifact was parsed to, sound or not."""
        found = self._parsed.get(descriptor.digest)
        return canonical.loads_again(self.read(member_of(descriptor))) if found is None else found

    def raw(self, descriptor: Descriptor) -> bytes:
        """Bytes of an object that is no artifact."""
        return self.read(member_of(descriptor))


def member_of(descriptor: Descriptor) -> str:
    return f"objects/{descriptor.path}"


def hashes(source: Source, limits: Limits, findings: Findings) -> Contents:
    """Every byte by BLAKE3 and SHA-256: objects against their names, all else against the two checksum files."""
    contents = Contents(source)
    for name in ("release.json", "provenance.json", *bundle.SUMS):
        if name not in source.sizes:
            findings.add("hashes", "missing-file", name)
    if not contents.objects:
        findings.add("hashes", "missing-object", "objects", "at least one object", "none")
    # Its one thread starts with the first large member.
    with ThreadPoolExecutor(max_workers=1) as other:
        for name in sorted(source.sizes):
            size = source.sizes[name]
            limit, code = limits.object_bytes, "limit-object"
            if name in TOP_FILES:
                limit, code = limits.manifest_bytes, "limit-manifest"
            if size > limit:
                findings.add("hashes", code, name, limit, size)
                contents.damaged.add(name)
                continue
            if contents.bytes_read + size > limits.total_bytes:
                findings.add("hashes", "limit-total", name, limits.total_bytes)
                contents.damaged.add(name)
                continue
            _hash_member(contents, name, other, findings)
    for name in bundle.SUMS:
        if name in contents.blake3:
            _check_sums(contents, name, findings)
    return contents


def _hash_member(contents: Contents, name: str, other: ThreadPoolExecutor, findings: Findings) -> None:
    try:
        if contents.source.sizes[name] <= _SMALL:
            data = contents.source.read(name)
            contents.bytes_read += len(data)
            contents.blake3[name], contents.sha256[name] = blake3(data).hexdigest(), hashlib.sha256(data).hexdigest()
            crc = zlib.crc32(data) if name in contents.source.crcs else 0
            contents.keep(name, data)
        else:
            crc = _hash_pieces(contents, name, other)
    except OSError as error:
        code = "io-changed" if isinstance(error, ChangedError) else "io-error"
        findings.add("hashes", code, name, found=error.strerror)
        contents.damaged.add(name)
        return
    stated = contents.source.crcs.get(name)
    if stated is not None and stated != crc:
        findings.add("hashes", "archive-structure", name, f"crc {stated:08x}", f"{crc:08x}")
        contents.damaged.add(name)
    if name.startswith("objects/"):
        expected = name[8:10] + name[11:]
        if contents.blake3[name] != expected:
            # The right bytes under the wrong two digits are misplaced rather than changed.
            code = "object-path" if contents.blake3[name][2:] == expected[2:] else "digest-mismatch"
            findings.add("hashes", code, name, f"blake3:{expected}", f"blake3:{contents.blake3[name]}")
            contents.damaged.add(name)


def _hash_pieces(contents: Contents, name: str, other: ThreadPoolExecutor) -> int:
    """Both hashes of a member that is not kept, side by side: SHA-256 takes longest and has ``other`` for itself, while
    this thread reads on and does the rest. Returns the CRC-32, or 0 where nobody asks."""
    b3, sha256, crc = blake3(), hashlib.sha256(), 0
    checked = name in contents.source.crcs
    pending: deque[Future[None]] = deque()
    for piece in contents.source.chunks(name):
        pending.append(other.submit(sha256.update, piece))
        b3.update(piece)
        if checked:
            crc = zlib.crc32(piece, crc)
        contents.bytes_read += len(piece)
        if len(pending) > _PIECES_AHEAD:
            pending.popleft().result()
    for future in pending:
        future.result()
    contents.blake3[name], contents.sha256[name] = b3.hexdigest(), sha256.hexdigest()
    return crc


def _check_sums(contents: Contents, name: str, findings: Findings) -> None:
    """A checksum file must be, to the byte, the one that belongs to the other members."""
    found = contents.blake3 if name == "B3SUMS" else contents.sha256
    actual = {member: digest for member, digest in found.items() if member not in bundle.SUMS}
    unread = any(member not in found for member in contents.source.sizes)
    try:
        data = contents.read(name)
    except OSError as error:
        findings.add("hashes", "io-changed", name, found=error.strerror)
        return
    if data == bundle.sums(actual):
        return
    before = len(findings.by_level.get("hashes", ()))
    stated: dict[str, str] = {}
    previous = ""
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n")[:-1], 1):
        digest, separator, member = line.partition("  ")
        if not separator or not re.fullmatch(r"[0-9a-f]{64}", digest):
            findings.add(
                "hashes", "digest-format", f"{name}: line {number}", "64 hex digits, two spaces, a member", line
            )
            continue
        if member in stated:
            findings.add("hashes", "duplicate-entry", f"{name}: {member}")
        elif member < previous:
            findings.add("hashes", "unsorted", f"{name}: {member}")
        stated[member], previous = digest, member
    for member in sorted(stated.keys() | actual.keys()):
        if member in actual and member in stated and stated[member] != actual[member]:
            findings.add("hashes", "digest-mismatch", member, f"{name}: {stated[member]}", actual[member])
        elif member not in stated:
            findings.add("hashes", "missing-entry", f"{name}: {member}")
        elif member not in actual and not unread:
            findings.add("hashes", "missing-file", member, f"listed in {name}")
    if len(findings.by_level.get("hashes", ())) == before and not unread:
        findings.add("hashes", "sums-format", name, "the lines that we would write", "other bytes")


def closure(contents: Contents, limits: Limits, expect_root: str | None, findings: Findings) -> None:
    """Walk from the release object: every reference leads to an object of that kind and size, and no object is left.

    Checks each artifact against its contract on the way (level ``schemas``), so that every object is parsed once.
    """
    if "release.json" not in contents.blake3:
        return
    root = Descriptor("release", f"blake3:{contents.blake3['release.json']}", contents.source.sizes["release.json"])
    contents.root = root
    if expect_root is not None and expect_root != root.digest:
        findings.add("closure", "root-mismatch", "release.json", expect_root, root.digest)
    seen: dict[str, Descriptor] = {}
    # Of many small artifacts the contracts are checked at the end, in as many processes as there are processors.
    workers = shares.workers_for(len(contents.objects)) if len(contents.objects) >= _MANY else 1
    later: list[Descriptor] | None = [] if workers > 1 else None
    queue = [root]
    complete = True
    while queue:
        descriptor = queue.pop()
        name = member_of(descriptor)
        known = seen.get(descriptor.digest)
        if known is None and name not in contents.source.sizes:
            findings.add("closure", "missing-object", name, descriptor.kind)
        elif known is None and contents.source.sizes[name] != descriptor.size:
            findings.add("closure", "size-mismatch", name, descriptor.size, contents.source.sizes[name])
        elif known is not None and known.kind != descriptor.kind:
            findings.add("closure", "media-type", name, known.kind, descriptor.kind)
        elif known is not None and known.size != descriptor.size:
            findings.add("closure", "size-mismatch", name, known.size, descriptor.size)
        if known is not None:
            continue
        seen[descriptor.digest] = descriptor
        contents.kinds[descriptor.digest] = descriptor.kind
        if name in contents.source.sizes and name not in contents.damaged and descriptor.kind in RAW_KINDS:
            continue
        below = _artifact(contents, descriptor, name, limits, findings, later)
        complete = complete and below is not None
        queue.extend(below or ())
    if later:
        for each in shares.over(later, lambda descriptor: _contract_of(contents, descriptor), workers):
            for fields in each:
                findings.put("schemas", Finding(*fields))
    if complete:
        for name in contents.objects:
            digest = "blake3:" + name.removeprefix("objects/").replace("/", "")
            if digest not in seen and name not in contents.damaged:
                findings.add("closure", "extra-object", name, "objects that the release refers to")
    if findings.clean("safety", "hashes", "closure", "schemas"):
        contents.sections = _sections(contents, root, findings)
    _provenance(contents, root, findings)


def _contract_of(contents: Contents, descriptor: Descriptor) -> list[tuple[str, ...]]:
    """Fields of each finding about one artifact and the contract of its kind."""
    name, own = member_of(descriptor), Findings()
    violation = schemas.violation(descriptor.kind, contents.value(descriptor), contents.read(name))
    if violation is not None:
        own.add("schemas", violation[0], name, violation[1], violation[2])
    return [astuple(finding) for finding in own.sorted()]


def _artifact(
    contents: Contents, descriptor: Descriptor, name: str, limits: Limits, findings: Findings,
    later: list[Descriptor] | None,
) -> list[Descriptor] | None:  # fmt: skip
    """References of one artifact, or None where it cannot be read; its contract is checked or put off."""
    if name not in contents.blake3 or name in contents.damaged:
        return None
    if contents.source.sizes[name] > limits.manifest_bytes:
        findings.add("closure", "limit-manifest", name, limits.manifest_bytes, contents.source.sizes[name])
        return None
    if contents.source.sizes[name] > _LARGE:
        contents.forget()
    try:
        data = contents.read(name)
        value, again = contents.parse(descriptor.digest, data)
    except MalformedError as error:
        findings.add("schemas", error.code, name, found=str(error).partition(": ")[2])
        return None
    except IntegrityError as error:
        findings.add("schemas", "json-canonical", name, found=error)
        return None
    except OSError as error:
        findings.add("closure", "io-changed", name, found=error.strerror)
        return None
    below: list[Descriptor] = []
    well_formed = True
    for candidate in references.candidates(value) if b'"digest"' in data else ():
        problem = references.problem(candidate)
        if problem is not None:
            findings.add("schemas", problem[0], name, problem[1], problem[2])
            well_formed = False
        else:
            below.append(Descriptor(candidate["kind"], candidate["digest"], candidate["size"]))
    if later is not None and contents.holds(descriptor):
        later.append(descriptor)
        return below if well_formed else None
    violation = schemas.violation(descriptor.kind, value, data, again)
    if violation is not None:
        findings.add("schemas", violation[0], name, violation[1], violation[2])
    return below if well_formed else None


def _sections(contents: Contents, root: Descriptor, findings: Findings) -> dict[str, dict[str, Descriptor]]:
    """Stage -> logical name -> reference, where everything before was found sound."""
    sections: dict[str, dict[str, Descriptor]] = {}
    for stage, reference in contents.load("release", root)["sections"].items():
        descriptor = Descriptor(reference["kind"], reference["digest"], reference["size"])
        if descriptor.kind != "section":
            findings.add("closure", "media-type", f"release: sections.{stage}", "section", descriptor.kind)
            continue
        section = contents.load("release", descriptor)
        if section["stage"] != stage:
            findings.add("closure", "cross-ref", f"release: sections.{stage}", stage, section["stage"])
        sections[stage] = {
            name: Descriptor(entry["kind"], entry["digest"], entry["size"])
            for name, entry in section["entries"].items()
        }
    return sections


def _provenance(contents: Contents, root: Descriptor, findings: Findings) -> None:
    """The statement beside the release must be about this release; what it says of its builder is not provable."""
    value = _manifest(contents, "provenance.json", "closure", findings)
    if value is None:
        return
    subjects = value.get("subject") if isinstance(value, dict) else None
    if not isinstance(subjects, list) or value.get("_type") != bundle.STATEMENT_TYPE:
        findings.add("closure", "schema", "provenance.json", bundle.STATEMENT_TYPE, "something else")
        return
    digests = [s.get("digest", {}) if isinstance(s, dict) else {} for s in subjects]
    if not any(isinstance(d, dict) and d.get("blake3") == root.digest.removeprefix("blake3:") for d in digests):
        findings.add("closure", "root-mismatch", "provenance.json", root.digest, "no such subject")


def site(contents: Contents, findings: Findings) -> int | None:
    """Pages against ``site.json``, and that against the release; returns their number, None where there is no site."""
    pages = {name for name in contents.source.sizes if name.startswith("site/")}
    if "site.json" not in contents.source.sizes:
        for name in pages:
            findings.add("site", "extra-file", name, "a site.json beside site/")
        return len(pages) or None
    value = _manifest(contents, "site.json", "site", findings)
    if value is None:
        return len(pages)
    if not isinstance(value, dict) or value.keys() != {"schema", "release", "pages"}:
        findings.add("site", "schema", "site.json", "exactly schema, release and pages", "other fields")
        return len(pages)
    if value["schema"] != SITE_SCHEMA:
        known = re.fullmatch(r"solbench\.site\.v[0-9]+", str(value["schema"]))
        findings.add("site", "version" if known else "schema", "site.json", SITE_SCHEMA, value["schema"])
        return len(pages)
    if contents.root is not None and value["release"] != contents.root.as_dict():
        stated = value["release"].get("digest") if isinstance(value["release"], Mapping) else value["release"]
        findings.add("site", "root-mismatch", "site.json", contents.root.digest, stated)
    stated_pages = value["pages"] if isinstance(value["pages"], dict) else {}
    for name in sorted(pages | {f"site/{path}" for path in stated_pages}):
        stated = stated_pages.get(name.removeprefix("site/"))
        if stated is None:
            findings.add("site", "extra-file", name, "listed in site.json")
        elif name not in pages:
            findings.add("site", "missing-file", name, "listed in site.json")
        elif name in contents.blake3 and stated != f"blake3:{contents.blake3[name]}":
            findings.add("site", "digest-mismatch", name, f"site.json: {stated}", f"blake3:{contents.blake3[name]}")
        if name in contents.blake3:
            _external(contents, name, findings)
    return len(pages)


def _external(contents: Contents, name: str, findings: Findings) -> None:
    if not name.endswith((".html", ".css", ".svg")) or contents.source.sizes[name] > _PAGE_BYTES:
        return
    try:
        data = contents.read(name)
    except OSError as error:
        findings.add("site", "io-changed", name, found=error.strerror)
        return
    found = None
    if name.endswith((".html", ".svg")):
        found = _EXTERNAL.search(data)
    if found is None:
        found = _EXTERNAL_STYLE.search(data)
    if found is not None:
        findings.add("site", "site-external", name, "no request to elsewhere", found[0].decode("utf-8", "replace"))


def _manifest(contents: Contents, name: str, level: str, findings: Findings) -> Any:
    """A canonical JSON member outside ``objects/``, or None."""
    if name not in contents.blake3:
        return None
    try:
        return canonical.loads(contents.read(name), name)
    except MalformedError as error:
        findings.add(level, error.code, name, found=str(error).partition(": ")[2])
    except IntegrityError as error:
        findings.add(level, "json-canonical", name, found=error)
    except OSError as error:
        findings.add(level, "io-changed", name, found=error.strerror)
    return None
