"""Checksums made right again in files that were changed: what lies behind them is to be reached."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib

_DIRECTORY, _LOCAL = b"PK\x01\x02", b"PK\x03\x04"


def sealed(content: bytes) -> bytes:
    """A zip archive in which every CRC is that of its bytes; in a container of ours the digest too."""
    changed = bytearray(content)
    entries = list(_entries(changed))
    digest = next((entry for entry in entries if entry[0] == b"digest.npy"), None)
    if digest is not None and digest[2] - digest[1] >= 32:
        changed[digest[2] - 32 : digest[2]] = _digest(changed, [entry for entry in entries if entry is not digest])
    for _, start, end, places in entries:
        sum_of = struct.pack("<I", _crc(bytes(changed[start:end]), *places[2:]))
        for place in places[:2]:
            changed[place : place + 4] = sum_of
    return bytes(changed)


def listed_again(head: bytes, name: str, content: bytes) -> bytes:
    """A description of a model that lists one of its parts with this content."""
    described = json.loads(head)
    described["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    return json.dumps(described).encode()


def _entries(content: bytearray):
    """Name, first and last byte, and where the checksums stand, of each entry that the directory lists."""
    place = content.find(_DIRECTORY)
    while place >= 0 and place + 46 <= len(content):
        (packing,) = struct.unpack_from("<H", content, place + 10)
        (size,) = struct.unpack_from("<I", content, place + 20)
        named, extra, comment = struct.unpack_from("<3H", content, place + 28)
        (at,) = struct.unpack_from("<I", content, place + 42)
        name = bytes(content[place + 46 : place + 46 + named])
        if at + 30 <= len(content) and content[at : at + 4] == _LOCAL:
            start = at + 30 + sum(struct.unpack_from("<2H", content, at + 26))
            if start + size <= len(content):
                yield name, start, start + size, (place + 16, at + 14, packing)
        place = content.find(_DIRECTORY, place + 46 + named + extra + comment)


def _crc(stored: bytes, packing: int) -> int:
    if packing == 8:
        try:
            stored = zlib.decompressobj(-15).decompress(stored, 2**20)
        except zlib.error:
            return 0
    return zlib.crc32(stored)


def _digest(content: bytearray, entries) -> bytes:
    """As `setwise.storage.container` computes it, of arrays that can be read; of others it does not matter."""
    from setwise.storage.stored_arrays import array_of

    total = hashlib.sha256()
    try:
        arrays = {
            name.decode().removesuffix(".npy"): array_of(bytes(content[start:end]), "")
            for name, start, end, _ in entries
        }
    except Exception:  # noqa: BLE001 - such a file is refused before its digest is compared
        return bytes(32)
    for name, array in sorted(arrays.items()):
        total.update(repr((name, array.dtype.str, array.shape)).encode())
        total.update(array.tobytes())
    return total.digest()
