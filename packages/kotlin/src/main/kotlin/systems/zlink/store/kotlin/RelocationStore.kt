package systems.zlink.store.kotlin

import kotlin.time.Duration
import kotlin.time.Instant
import systems.zlink.store.kotlin.internal.ffi.BlobDeleteOperation
import systems.zlink.store.kotlin.internal.ffi.BlobPutOperation
import systems.zlink.store.kotlin.internal.ffi.BlobReadOperation
import systems.zlink.store.kotlin.internal.ffi.BlobRenewOperation
import systems.zlink.store.kotlin.internal.ffi.BlobPutResult as NativePutResult
import systems.zlink.store.kotlin.internal.ffi.BlobReadResult as NativeReadResult
import systems.zlink.store.kotlin.internal.ffi.BlobRenewResult as NativeRenewResult
import systems.zlink.store.kotlin.internal.ffi.RelocationStore as NativeStore

/** The answer to a blob's put. */
public sealed interface BlobPutResult {
    /** The commit's instant, or that of the observation, by the engine's clock. */
    public val storeNow: Instant

    /** The blob is new. [expiresAt] is the commit's instant + retention. */
    public data class Stored(public val expiresAt: Instant, override val storeNow: Instant) : BlobPutResult

    /** The same bytes are there already; their expiry, [expiresAt], stands. */
    public data class AlreadyStored(
        public val expiresAt: Instant,
        override val storeNow: Instant,
    ) : BlobPutResult

    /** Other bytes are there; nothing changed. */
    public data class Conflict(override val storeNow: Instant) : BlobPutResult
}

/** The answer to a blob's read. */
public sealed interface BlobReadResult {
    /** The instant of the observation, by the engine's clock. */
    public val storeNow: Instant

    /** There is no live blob under the reference. */
    public data class Missing(override val storeNow: Instant) : BlobReadResult

    /**
     * The blob.
     *
     * @property bytes exactly what was put; nobody else has this array
     * @property expiresAt when it expires
     */
    public class Found(
        public val bytes: ByteArray,
        public val expiresAt: Instant,
        override val storeNow: Instant,
    ) : BlobReadResult {
        override fun equals(other: Any?): Boolean =
            other is Found && expiresAt == other.expiresAt && storeNow == other.storeNow && bytes.contentEquals(other.bytes)

        override fun hashCode(): Int = 31 * expiresAt.hashCode() + bytes.contentHashCode()

        override fun toString(): String = "Found(${bytes.size} bytes, expiresAt=$expiresAt, storeNow=$storeNow)"
    }
}

/** The answer to a blob's renewal. */
public sealed interface BlobRenewResult {
    /** The instant of the renewal, by the engine's clock. */
    public val storeNow: Instant

    /** There is no live blob under the reference. */
    public data class Missing(override val storeNow: Instant) : BlobRenewResult

    /** The blob now expires at [expiresAt], also when that is earlier than before. */
    public data class Renewed(public val expiresAt: Instant, override val storeNow: Instant) : BlobRenewResult
}

/**
 * Immutable blobs of up to 64 MiB + 23 bytes under references that the caller issues (1..4,096 bytes of UTF-8).
 *
 * It is opened, shared, cancelled and closed as a [LocationStore]. Every function throws [InvalidArgumentException] if an argument
 * is outside its limits, and may throw [StoreException].
 */
public class RelocationStore private constructor(private val native: NativeStore) : Store() {
    public companion object {
        /**
         * Makes a store, without I/O; the arguments are those of [LocationStore.open].
         *
         * @throws InvalidArgumentException if one of them is outside its limits
         */
        public fun open(url: String, keyPrefix: String = "", operationTimeout: Duration? = null): RelocationStore =
            RelocationStore(translated { NativeStore.open(text("url", url), storeOptions(keyPrefix, operationTimeout)) })
    }

    override val life: Life = Life(native::ping, native::stats, native::shutdown)

    /**
     * Puts a blob. It is there whole or not at all.
     *
     * @param bytes 0..64 MiB + 23 bytes; read within the call, so that the array may be changed as soon as it has suspended or returned
     * @param retention how long it lives from the commit on, not from the start of the upload: 1 ms..2^53−1 ms, rounded up to whole ms
     */
    public suspend fun put(reference: String, bytes: ByteArray, retention: Duration): BlobPutResult {
        val make = { native.put(text("reference", reference), bytes("payload", bytes), retention.upToMilliseconds()) }
        return when (val result = run(make, BlobPutOperation::start, { it.wait() }, BlobPutOperation::result)) {
            is NativePutResult.Stored -> BlobPutResult.Stored(instant(result.expiresAtMs), instant(result.storeNowMs))
            is NativePutResult.AlreadyStored -> BlobPutResult.AlreadyStored(instant(result.expiresAtMs), instant(result.storeNowMs))
            is NativePutResult.Conflict -> BlobPutResult.Conflict(instant(result.storeNowMs))
        }
    }

    /** Reads a blob: exactly the bytes that were put, or missing. */
    public suspend fun read(reference: String): BlobReadResult {
        val make = { native.read(text("reference", reference)) }
        return when (val result = run(make, BlobReadOperation::start, { it.wait() }, BlobReadOperation::result)) {
            is NativeReadResult.Missing -> BlobReadResult.Missing(instant(result.storeNowMs))
            is NativeReadResult.Found ->
                BlobReadResult.Found(result.bytes, instant(result.expiresAtMs), instant(result.storeNowMs))
        }
    }

    /** Sets the expiry to the engine's now + [retention] (1 ms..2^53−1 ms, rounded up to whole ms), also when that is earlier. */
    public suspend fun renew(reference: String, retention: Duration): BlobRenewResult {
        val make = { native.renew(text("reference", reference), retention.upToMilliseconds()) }
        return when (val result = run(make, BlobRenewOperation::start, { it.wait() }, BlobRenewOperation::result)) {
            is NativeRenewResult.Missing -> BlobRenewResult.Missing(instant(result.storeNowMs))
            is NativeRenewResult.Renewed -> BlobRenewResult.Renewed(instant(result.expiresAtMs), instant(result.storeNowMs))
        }
    }

    /** Deletes a blob; a missing one is fine. */
    public suspend fun delete(reference: String) {
        val make = { native.delete(text("reference", reference)) }
        run(make, BlobDeleteOperation::start, { it.wait() }, BlobDeleteOperation::result)
    }
}
