"""The Relocation Store."""

from __future__ import annotations

from . import _native
from ._arguments import BytesLike, Milliseconds, content, milliseconds, text
from ._calls import opened, run
from ._results import (
    AlreadyStored,
    Blob,
    BlobPutResult,
    BlobReadResult,
    BlobRenewResult,
    Conflict,
    Missing,
    Renewed,
    Stored,
)
from ._store import Store
from .location import store_options


class RelocationStore(Store):
    """Immutable blobs of up to 64 MiB + 23 bytes under references that the caller issues.

    It is made and lives as a `LocationStore` does.
    """

    def __init__(self, url: str, *, key_prefix: str = "", operation_timeout_ms: Milliseconds | None = None) -> None:
        url, options = text("url", url), store_options(key_prefix, operation_timeout_ms)
        self._native: _native.RelocationStore = opened(lambda: _native.RelocationStore.open(url, options))

    async def put(self, reference: str, payload: BytesLike, retention_ms: Milliseconds) -> BlobPutResult:
        """Puts a blob. Its retention counts from the commit, not from the start of the upload."""
        reference, lives = text("reference", reference), milliseconds("retention_ms", retention_ms)
        data = content("payload", payload)
        result = await run(lambda: self._native.put(reference, data, lives))
        if isinstance(result, _native.BlobPutResult.STORED):
            return Stored(result.expires_at_ms, result.store_now_ms)
        if isinstance(result, _native.BlobPutResult.ALREADY_STORED):
            return AlreadyStored(result.expires_at_ms, result.store_now_ms)
        assert isinstance(result, _native.BlobPutResult.CONFLICT)
        return Conflict(result.store_now_ms)

    async def read(self, reference: str) -> BlobReadResult:
        """Reads a blob: exactly the bytes that were put, or missing."""
        reference = text("reference", reference)
        result = await run(lambda: self._native.read(reference))
        if isinstance(result, _native.BlobReadResult.MISSING):
            return Missing(result.store_now_ms)
        assert isinstance(result, _native.BlobReadResult.FOUND)
        return Blob(result.bytes, result.expires_at_ms, result.store_now_ms)

    async def renew(self, reference: str, retention_ms: Milliseconds) -> BlobRenewResult:
        """Sets the expiry to the engine's now + `retention_ms`, also when that is earlier."""
        reference, lives = text("reference", reference), milliseconds("retention_ms", retention_ms)
        result = await run(lambda: self._native.renew(reference, lives))
        if isinstance(result, _native.BlobRenewResult.MISSING):
            return Missing(result.store_now_ms)
        assert isinstance(result, _native.BlobRenewResult.RENEWED)
        return Renewed(result.expires_at_ms, result.store_now_ms)

    async def delete(self, reference: str) -> None:
        """Deletes a blob; a missing one is fine."""
        reference = text("reference", reference)
        await run(lambda: self._native.delete(reference))
