"""Private keys that unwrap the data keys of encrypted segments; they come from files or the environment."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from seglog_format.errors import CorruptIndexError, Location, UsageError
from seglog_format.names import printable
from seglog_format.storage.file_bytes import open_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from Crypto.PublicKey.RSA import RsaKey

VARIABLE_PREFIX: Final = "SEGLOG_TIER_KEY_"
"""Prefix of the environment variables that hold private keys in PEM; the key pair id in upper case follows it."""

DATA_KEY_SIZE: Final = 32
MAX_KEY_FILE_SIZE: Final = 2**16
MIN_MODULUS_BITS: Final = 1024


class KeyRing:
    """Private keys by key pair id. A key is read when a segment needs it."""

    def __init__(self, files: Mapping[str, str | os.PathLike[str]] | None = None) -> None:
        """Store where the keys are; none is read yet.

        Args:
            files: PEM files of private keys, by key pair id. A key that is not among them is read from the environment
                variable `SEGLOG_TIER_KEY_` and the id, in upper case, with other characters as underscores.
        """
        self._files = dict(files or {})
        self._keys: dict[str, RsaKey] = {}

    def data_key(self, key_id: str, wrapped: bytes, at: Location) -> bytes:
        """Unwrap the data key of a segment: RSA-OAEP with SHA3-512, also in its mask.

        Args:
            key_id: of the key pair.
            wrapped: the wrapped data key from the manifest.
            at: location of the manifest.

        Raises:
            UsageError: the private key is missing, is not an RSA key, or the packages for it are not installed.
            CorruptIndexError: the private key does not unwrap a data key (SEG-TIR-009).
        """
        try:
            from Crypto.Cipher import PKCS1_OAEP  # noqa: PLC0415 - only encrypted segments need it
            from Crypto.Hash import SHA3_512  # noqa: PLC0415 - as above
        except ImportError as error:
            msg = "encrypted segments need the extra tier: pip install seglog-format[tier]"
            raise UsageError(msg) from error
        key = self._key(key_id)
        try:
            # This implementation uses blinding and reports all errors alike: neither timing nor errors leak the key.
            unwrapped: bytes = PKCS1_OAEP.new(key, hashAlgo=SHA3_512).decrypt(wrapped)  # type: ignore[arg-type]
        except (ValueError, TypeError):
            unwrapped = b""
        if len(unwrapped) != DATA_KEY_SIZE:
            shown = printable(key_id)
            expected = f"a data key of {DATA_KEY_SIZE} bytes that the private key {shown} unwraps"
            raise CorruptIndexError(
                at.at("encryption.dataKey"), "SEG-TIR-009", expected=expected, found="something else"
            )
        return unwrapped

    def _key(self, key_id: str) -> RsaKey:
        if key_id not in self._keys:
            self._keys[key_id] = self._read(key_id)
        return self._keys[key_id]

    def _read(self, key_id: str) -> RsaKey:
        shown, variable = printable(key_id), variable_of(key_id)
        if key_id in self._files:
            with open_bytes(self._files[key_id], max_size=MAX_KEY_FILE_SIZE) as file:
                pem, origin = bytes(file.view(0, file.size)), printable(str(self._files[key_id]))
        elif variable in os.environ:
            pem, origin = os.environ[variable].encode(), variable
        else:
            msg = f"no private key {shown}: name its file by --key {shown}=FILE, or put it into {variable}"
            raise UsageError(msg)
        key = _private_key(pem)
        if key is None or key.size_in_bits() < MIN_MODULUS_BITS:
            msg = f"{origin}: not a private key of RSA in PEM, without a passphrase"
            raise UsageError(msg)
        return key

    def __repr__(self) -> str:
        return f"KeyRing({sorted(self._files)})"


def _private_key(pem: bytes) -> RsaKey | None:
    """Return the private key in a PEM text; None if there is none.

    Its numbers are not tested for primality, which would take most of the time: a wrong key fails to unwrap.
    """
    from Crypto.PublicKey import RSA  # noqa: PLC0415 - as above
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - as above

    try:
        key = load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    if not isinstance(key, RSAPrivateKey):
        return None
    numbers = key.private_numbers()
    public = numbers.public_numbers
    parts = (public.n, public.e, numbers.d, numbers.p, numbers.q)
    return RSA.construct(parts, consistency_check=False)


def variable_of(key_id: str) -> str:
    """Return the name of the environment variable that may hold a key."""
    return VARIABLE_PREFIX + re.sub(r"[^A-Z0-9]", "_", key_id.upper())
