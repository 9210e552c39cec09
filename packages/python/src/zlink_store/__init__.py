"""Small, exact, shared memory for server frameworks and serverless runtimes.

`LocationStore` keeps small records under opaque keys: conditional atomic batches, snapshot scans and the engine's clock.
`RelocationStore` keeps immutable blobs under references that the caller issues. A `Project` has state (JSON with
compare-and-set) and locks (leases with fencing tokens). All run embedded (in memory, or in a folder on disk) and on Redis; a
URL says where. Methods are awaited under asyncio, from any number of event loops and threads. Arguments whose names end in
``_ms`` take whole milliseconds or a ``timedelta``.
"""

from ._arguments import BytesLike, Milliseconds
from ._errors import (
    CancelledByStoreError,
    ClosedError,
    ForkedError,
    IncompatibleError,
    InternalError,
    InvalidArgumentError,
    InvalidTypeError,
    LockLostError,
    LockUnavailableError,
    OutOfMemoryError,
    RateLimitError,
    ScanExpiredError,
    StateConflictError,
    StoreError,
    StoreTimeoutError,
    UnauthenticatedError,
    UnavailableError,
)
from ._log import enable_logging
from ._native import library_version as _library_version
from ._results import (
    AlreadyStored,
    Applied,
    Blob,
    BlobPutResult,
    BlobReadResult,
    BlobRenewResult,
    Conflict,
    Expired,
    Found,
    Missing,
    Page,
    PutVersion,
    ReadResult,
    Renewed,
    ScanItem,
    ScanResult,
    Stats,
    Stored,
    WriteResult,
)
from .location import Condition, Delete, IfMissing, IfVersion, LocationStore, Mutation, Put
from .project import DistributedLocks, LockLease, Project, ProjectState, StateEntry, StateNamespace
from .relocation import RelocationStore

__version__: str = _library_version()

__all__ = [
    "AlreadyStored",
    "Applied",
    "Blob",
    "BlobPutResult",
    "BlobReadResult",
    "BlobRenewResult",
    "BytesLike",
    "CancelledByStoreError",
    "ClosedError",
    "Condition",
    "Conflict",
    "Delete",
    "DistributedLocks",
    "Expired",
    "ForkedError",
    "Found",
    "IfMissing",
    "IfVersion",
    "IncompatibleError",
    "InternalError",
    "InvalidArgumentError",
    "InvalidTypeError",
    "LocationStore",
    "LockLease",
    "LockLostError",
    "LockUnavailableError",
    "Milliseconds",
    "Missing",
    "Mutation",
    "OutOfMemoryError",
    "Page",
    "Project",
    "ProjectState",
    "Put",
    "PutVersion",
    "RateLimitError",
    "ReadResult",
    "RelocationStore",
    "Renewed",
    "ScanExpiredError",
    "ScanItem",
    "ScanResult",
    "StateConflictError",
    "StateEntry",
    "StateNamespace",
    "Stats",
    "StoreError",
    "StoreTimeoutError",
    "Stored",
    "UnauthenticatedError",
    "UnavailableError",
    "WriteResult",
    "enable_logging",
]
