"""Recognising what this user wrote, by a seal that nobody else can make.

A checkpoint may name code and paths: the class of an environment, callbacks, folders. From the
user's own runs that is what the user asked for; in a file from elsewhere it would run a stranger's
program. So whoever saves a checkpoint or a policy puts a seal beside it: an HMAC of what determines
all of its files, with a key that only this user can read. A folder without a valid seal, such as
one that was changed after it was written, is data: what it names beyond that is refused, unless the
user says that its writer is trusted.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import stat
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from rllib_minestudio.checkpoints.lookup import TENSORS
from rllib_minestudio.checkpoints.record import RECORD_FILE
from rllib_minestudio.errors import MineStudioError, UntrustedError
from rllib_minestudio.foundation.files import write_whole
from rllib_minestudio.foundation.options import printable

CONFIG_VARIABLE = "RLLIB_MINESTUDIO_CONFIG"
"""Environment variable for another folder of the user's key."""

KEY_FILE, SEAL_FILE = "key", "seal"

_KEY_BYTES = 32
_LARGEST_SMALL_FILE = 64 * 1024**2
"""Limit on the bytes of a file that is sealed as a whole, and of a table of contents of tensors."""

_logger = logging.getLogger(__name__)


def config_folder() -> Path:
    """Return the folder of the user's key."""
    if chosen := os.environ.get(CONFIG_VARIABLE):
        return Path(chosen).expanduser()
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path("~/.config").expanduser()) / "rllib_minestudio"


def user_key() -> bytes | None:
    """Return the user's key, which is made at the first call.

    Returns:
        None if there is none and it cannot be written, as in a container without a home.

    Raises:
        MineStudioError: Others can read or write it, or it is damaged.
    """
    file = config_folder() / KEY_FILE
    made = file.with_name(f".{KEY_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        if file.exists():
            return _read_key(file)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(_KEY_BYTES))
            stream.flush()
            os.fsync(descriptor)
        try:
            os.link(made, file)  # unlike a rename, it replaces no key that another process has made
        except FileExistsError:
            pass
        finally:
            made.unlink()
        return _read_key(file)
    except OSError as error:
        _logger.warning(
            "No key can be kept in %s (%s), so what this run saves counts as from elsewhere. Set "
            "%s to a folder of yours.",
            file.parent,
            error.strerror or error,
            CONFIG_VARIABLE,
        )
        return None


def _read_key(file: Path) -> bytes:
    with file.open("rb") as stream:
        facts = os.fstat(stream.fileno())
        key = stream.read(_KEY_BYTES + 1)
    is_own = not hasattr(os, "getuid") or facts.st_uid == os.getuid()
    if not is_own or stat.S_IMODE(facts.st_mode) & 0o077 or len(key) != _KEY_BYTES:
        raise MineStudioError(
            f"{str(file)!r} must be a file of {_KEY_BYTES} bytes that belongs to you and that only "
            f"you can read (mode 600). Remove it, and a new key is made: then what was saved so "
            "far counts as from elsewhere."
        )
    return key


def seal(folder: Path, files: Sequence[str] | None = None) -> None:
    """Put this user's seal on files of a folder; it must be the last file written to it.

    Args:
        folder: A checkpoint with its record, or a folder with the files of a policy.
        files: Names of the files, in order, of a folder of another kind.

    Raises:
        OSError: The seal cannot be written.
    """
    key = user_key()
    if key is not None:
        write_whole(folder / SEAL_FILE, _seal_of(folder, files, key) + "\n")


def write_sealed(file: Path, text: str) -> None:
    """Write a file of a folder that holds only this one under seal, and put this user's seal on it.

    Whoever dies in between leaves the old or the new file, and a valid seal of either: the seal of
    the new one is written first, beside that of the old one.

    Raises:
        OSError: The file or the seal cannot be written.
    """
    key, folder, name = user_key(), file.parent, file.name
    if key is None:
        write_whole(file, text)
        return
    code = _seal_of_contents({name: text.encode()}, key)
    kept = [_seal_of(folder, [name], key)] if is_sealed(folder, [name]) else []
    write_whole(folder / SEAL_FILE, "".join(f"{line}\n" for line in (code, *kept)))
    write_whole(file, text)
    write_whole(folder / SEAL_FILE, f"{code}\n")


def is_sealed(folder: Path, files: Sequence[str] | None = None) -> bool:
    """Return whether files have this user's seal and have not changed since it was made.

    For a checkpoint this is said of its record, which holds the digests of its other files, and for
    a policy of its description and the digest of its tensors: compare these, too.

    Args:
        folder: As in `seal`.
        files: As in `seal`.
    """
    try:
        found = (folder / SEAL_FILE).read_bytes()[:1000].split()
        if not (config_folder() / KEY_FILE).exists():
            return False  # nothing can be this user's; make no key to find that out
        key = user_key()
        if key is None:
            return False
        code = _seal_of(folder, files, key).encode()
        return any(hmac.compare_digest(line, code) for line in found)
    except OSError:
        return False


def _seal_of(folder: Path, files: Sequence[str] | None, key: bytes) -> str:
    """Return the HMAC of what determines a folder's files."""
    tensors = b""
    if files is None and (folder / RECORD_FILE).is_file():
        files = [RECORD_FILE]
    elif files is None:
        # All descriptions, and the table of contents, which has the tensors' digest.
        files = sorted(path.name for kind in ("*.json", "*.yaml") for path in folder.glob(kind))
        tensors = _table_of_contents(folder / TENSORS)
    return _seal_of_contents({name: _small(folder / name) for name in files}, key, tensors)


def _seal_of_contents(files: Mapping[str, bytes], key: bytes, tensors: bytes = b"") -> str:
    """Return the HMAC of files by their names, and of the table of contents of tensors."""
    code = hmac.new(key, tensors, hashlib.sha256)
    for name, content in files.items():
        code.update(f"{name}:{len(content)}:".encode() + content)
    return code.hexdigest()


def _small(file: Path) -> bytes:
    """Return the contents of a file; nothing if there is none."""
    if not file.is_file():
        return b""
    with file.open("rb") as stream:
        content = stream.read(_LARGEST_SMALL_FILE + 1)
    if len(content) > _LARGEST_SMALL_FILE:
        raise OSError(f"{str(file)!r} is larger than {_LARGEST_SMALL_FILE:,} bytes")
    return content


def _table_of_contents(file: Path) -> bytes:
    """Return the table of contents of a safetensors file; nothing if there is none."""
    if not file.is_file():
        return b""
    with file.open("rb") as stream:
        length = stream.read(8)
        size = struct.unpack("<Q", length)[0] if len(length) == 8 else 0
        return length + stream.read(min(size, _LARGEST_SMALL_FILE))


NOT_YOURS = "was not saved by you, or has changed since, and"


def refuse_untrusted(source: object, requests: Sequence[str], because: str = NOT_YOURS) -> None:
    """Refuse what a folder from elsewhere asks for beyond data.

    Args:
        source: The folder, for the message.
        requests: What it asks for, in words; empty if all of it is data.
        because: What is known of the folder, for the message.

    Raises:
        UntrustedError: It asks for anything.
    """
    if requests:
        raise UntrustedError(
            f"{str(source)!r} {because} asks for more than data: {printable('; '.join(requests))}. "
            "Nothing of this was done. If you trust who wrote it, say so with --trust (in Python: "
            "trust=True)."
        )
