"""Reading LMDB's files as data: byte by byte, each pointer checked before it is followed.

liblmdb maps a file into memory and trusts it: one that is cut off, or forged, ends the process, and
the pages that were read count as the process's memory. Here they are read with `pread`, so neither
happens, and no library is required.

The format is that of LMDB 0.9 (data version 1, 64-bit, little-endian; `MDB_page`, `MDB_node` and
`MDB_meta` in mdb.c): a B-tree of pages, whose nodes hold a key and a value, or the number of a run
of overflow pages with a larger value. Two meta pages at the start name the root; the one with the
higher transaction counts.
"""

from __future__ import annotations

import os
import stat
import struct
from bisect import bisect_left, bisect_right
from pathlib import Path
from types import TracebackType

_MAGIC, _VERSION = 0xBEEFC0DE, 1
_META = struct.Struct("<16xII16xI84xQQQ")
"""Magic, version, page size, root, last page, transaction."""
_PAGE = struct.Struct("<QHHHH")
"""Number, padding, flags, end of the pointers, end of the free space."""
_PAGES = struct.Struct("<12xI")
"""Number of pages in a run of overflow pages."""
_NODE = struct.Struct("<HHHH")
"""Low and high half of the value's size (in branches, of the child's page), flags, key's size."""
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4
_BIG_VALUE = 1
_DEEPEST = 32
_NO_PAGE = 2**64 - 1


class LmdbFileError(ValueError):
    """A file is not one of LMDB's, is damaged, or has a larger value than expected."""


class LmdbFile:
    """An open file (`data.mdb`) of an LMDB database without named databases.

    Raises:
        OSError: It cannot be opened.
        LmdbFileError: It is not LMDB's, or damaged.
    """

    def __init__(self, path: Path) -> None:
        if not stat.S_ISREG(path.stat().st_mode):  # a named pipe would block
            raise LmdbFileError("it is not a regular file")
        self._file = os.open(path, os.O_RDONLY)
        try:
            metas = [self._meta(0)]
            self._size = metas[0][0]
            metas.append(self._meta(self._size))
        except BaseException:
            self.close()
            raise
        self._size, self._root, self._last, _ = max(metas, key=lambda meta: meta[-1])

    def __enter__(self) -> LmdbFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def get(self, key: bytes, largest: int) -> bytes:
        """Return a value.

        Args:
            key: Its key.
            largest: Limit on its bytes.

        Raises:
            LmdbFileError: There is no such key, the file is damaged, or the value is too large.
        """
        number = self._root
        for _ in range(_DEEPEST):
            if number == _NO_PAGE:
                break
            page = self._page(number)
            _, _, flags, lower, _ = _PAGE.unpack_from(page)
            nodes = range((min(lower, len(page)) - _PAGE.size) // 2)

            def key_of(node: int, page: bytes = page) -> bytes:
                return self._node(page, node)[1]

            if flags & _BRANCH and len(nodes):
                # The first child holds all keys below the second one's, whatever its own key is.
                child = bisect_right(nodes[1:], key, key=key_of)
                (low, high, top, _), _, _ = self._node(page, child)
                number = low | high << 16 | top << 32
            elif flags & _LEAF:
                place = bisect_left(nodes, key, key=key_of)
                if place == len(nodes) or key_of(place) != key:
                    break
                return self._value(page, place, largest)
            else:
                raise LmdbFileError(f"page {number} is none of its tree")
        raise LmdbFileError(f"it has no entry {key.decode(errors='replace')!r}")

    def _value(self, page: bytes, node: int, largest: int) -> bytes:
        (low, high, flags, _), _, rest = self._node(page, node)
        size = low | high << 16
        if size > largest:
            raise LmdbFileError(f"an entry has {size:,} bytes, more than {largest:,}")
        if flags == _BIG_VALUE and len(rest) >= 8:
            first = int.from_bytes(rest[:8], "little")
            header = self._page(first, _PAGE.size)
            if not _PAGE.unpack(header)[2] & _OVERFLOW or (
                _PAGES.unpack(header)[0] * self._size < _PAGE.size + size
            ):
                raise LmdbFileError(f"page {first} does not hold a value of {size:,} bytes")
            value = os.pread(self._file, size, first * self._size + _PAGE.size)
        else:
            value = rest[:size]
        if flags & ~_BIG_VALUE or len(value) < size:
            raise LmdbFileError("an entry is cut off, or holds no plain value")
        return value

    def _meta(self, offset: int) -> tuple[int, int, int, int]:
        """Return page size, root, last page and transaction."""
        meta = os.pread(self._file, _META.size, offset)
        if len(meta) < _META.size:
            raise LmdbFileError("it is cut off")
        magic, version, size, root, last, transaction = _META.unpack(meta)
        if (magic, version) != (_MAGIC, _VERSION) or size not in (2**i for i in range(8, 17)):
            raise LmdbFileError(f"it is not a file of LMDB's data version {_VERSION}")
        return size, root, last, transaction

    def _page(self, number: int, size: int | None = None) -> bytes:
        if not 2 <= number <= self._last:
            raise LmdbFileError(f"it has no page {number}")
        page = os.pread(self._file, size or self._size, number * self._size)
        if len(page) < (size or self._size) or _PAGE.unpack_from(page)[0] != number:
            raise LmdbFileError(f"page {number} is missing: the file is cut off or damaged")
        return page

    @staticmethod
    def _node(page: bytes, node: int) -> tuple[tuple[int, int, int, int], bytes, bytes]:
        """Return the numbers of a node, its key, and the rest of its page."""
        (offset,) = struct.unpack_from("<H", page, _PAGE.size + 2 * node)
        if not _PAGE.size <= offset <= len(page) - _NODE.size:
            raise LmdbFileError("a node lies outside its page")
        numbers: tuple[int, int, int, int] = _NODE.unpack_from(page, offset)
        begin = offset + _NODE.size
        end = begin + numbers[3]
        return numbers, page[begin:end], page[end:]
