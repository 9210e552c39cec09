package systems.zlink.store.kotlin

import kotlin.time.Duration
import kotlin.time.Instant

/**
 * A live record as one observation saw it: all of it belongs to the same instant of the engine's clock.
 *
 * @property bytes what was put; nobody else has this array
 * @property version what the put got; compared as exact text, never used again
 * @property expiresAt when the record expires; `null` for a durable one
 * @property storeNow the instant of the observation
 */
public class StoredValue(
    public val bytes: ByteArray,
    public val version: String,
    public val expiresAt: Instant?,
    public val storeNow: Instant,
) {
    override fun equals(other: Any?): Boolean =
        other is StoredValue && version == other.version && expiresAt == other.expiresAt && storeNow == other.storeNow &&
            bytes.contentEquals(other.bytes)

    override fun hashCode(): Int = 31 * version.hashCode() + bytes.contentHashCode()

    override fun toString(): String = "StoredValue(${bytes.size} bytes, version=$version, expiresAt=$expiresAt, storeNow=$storeNow)"
}

/** The answer to a read. */
public sealed interface ReadResult {
    /** The instant of the observation, by the engine's clock. */
    public val storeNow: Instant

    /** There is no live record under the key: never put, deleted or expired. */
    public data class Missing(override val storeNow: Instant) : ReadResult

    /** The live record. */
    public data class Found(public val value: StoredValue) : ReadResult {
        override val storeNow: Instant get() = value.storeNow
    }
}

/** What must hold before a write applies; a key at most once among the conditions of one write. */
public sealed interface Condition {
    /** The key: 1..1,024 bytes of UTF-8. */
    public val key: String

    /** The key has no live record. */
    public data class Missing(override val key: String) : Condition

    /** The key's live record has exactly the version [expected] (1..4,096 bytes of UTF-8). */
    public data class Version(override val key: String, public val expected: String) : Condition
}

/** What a write changes; a key at most once among the mutations of one write. */
public sealed interface Mutation {
    /** The key: 1..1,024 bytes of UTF-8. */
    public val key: String

    /**
     * Puts a record.
     *
     * @property bytes at most 1 MiB; read within the call, so that the array may be changed as soon as it has suspended or returned
     * @property retention how long it lives from the commit on: 1 ms..2^53−1 ms, rounded up to whole ms; without it, the record is
     *   durable, also when it had an expiry before
     */
    public class Put(
        override val key: String,
        public val bytes: ByteArray,
        public val retention: Duration? = null,
    ) : Mutation {
        override fun equals(other: Any?): Boolean =
            other is Put && key == other.key && retention == other.retention && bytes.contentEquals(other.bytes)

        override fun hashCode(): Int = 31 * key.hashCode() + bytes.contentHashCode()

        override fun toString(): String = "Put(key=$key, ${bytes.size} bytes, retention=$retention)"
    }

    /** Deletes a record; deleting a missing one is fine. */
    public data class Delete(override val key: String) : Mutation
}

/** The answer to a write. */
public sealed interface WriteResult {
    /** The commit's instant, or that of the check, by the engine's clock. */
    public val storeNow: Instant

    /**
     * All conditions held and all mutations are in.
     *
     * @property versions the versions of the puts by key, in the order of the puts
     */
    public data class Applied(
        public val versions: Map<String, String>,
        override val storeNow: Instant,
    ) : WriteResult

    /** A condition did not hold; nothing changed. */
    public data class Conflict(override val storeNow: Instant) : WriteResult
}

/**
 * One record of a scan.
 *
 * @property key its key
 * @property value the record as it stood at the snapshot's instant; its [StoredValue.storeNow] is the page's
 */
public data class ScanItem(public val key: String, public val value: StoredValue)

/** The answer to a scan. */
public sealed interface ScanResult {
    /**
     * A page of the snapshot.
     *
     * @property items the records in ascending byte order of their keys; empty only when the whole scan is
     * @property nextCursor there exactly when another item is known to follow; good for 5 minutes from the first page on, in any
     *   process and language
     * @property storeNow the snapshot's instant on the first page, the engine's time of the page on a later one
     */
    public data class Page(
        public val items: List<ScanItem>,
        public val nextCursor: String?,
        public val storeNow: Instant,
    ) : ScanResult

    /** The snapshot is gone, or the cursor is none of this scan's: drop what was read and start again. */
    public data object Expired : ScanResult
}

/** Collects what one [LocationStore.write] checks and changes. */
public class WriteBuilder internal constructor() {
    internal val conditions = mutableListOf<Condition>()
    internal val mutations = mutableListOf<Mutation>()

    /** Applies only if [key] has no live record. */
    public fun ifMissing(key: String) {
        conditions += Condition.Missing(key)
    }

    /** Applies only if the live record of [key] has exactly the version [expected]. */
    public fun ifVersion(key: String, expected: String) {
        conditions += Condition.Version(key, expected)
    }

    /** Puts a record, as [Mutation.Put]. */
    public fun put(key: String, bytes: ByteArray, retention: Duration? = null) {
        mutations += Mutation.Put(key, bytes, retention)
    }

    /** Deletes a record; deleting a missing one is fine. */
    public fun delete(key: String) {
        mutations += Mutation.Delete(key)
    }
}
