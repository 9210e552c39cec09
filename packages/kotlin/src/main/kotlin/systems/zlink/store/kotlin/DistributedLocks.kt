package systems.zlink.store.kotlin

import kotlin.time.Duration
import kotlin.time.Instant
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.withContext
import systems.zlink.store.kotlin.internal.ffi.AcquireOperation
import systems.zlink.store.kotlin.internal.ffi.AttachOperation
import systems.zlink.store.kotlin.internal.ffi.LeaseReleaseOperation
import systems.zlink.store.kotlin.internal.ffi.LeaseReleaseResult
import systems.zlink.store.kotlin.internal.ffi.LeaseRenewOperation
import systems.zlink.store.kotlin.internal.ffi.LeaseRenewResult
import systems.zlink.store.kotlin.internal.ffi.DistributedLocks as NativeLocks
import systems.zlink.store.kotlin.internal.ffi.LockLease as NativeLease

/**
 * The locks of one project, for one invocation: at most 16 leases at a time, pending acquires counted.
 *
 * A lock makes no transaction, and exactly-once of nothing: it says who is to work now. Every function throws
 * [InvalidArgumentException] if an argument is outside its limits (or for a 17th lease), and may throw [StoreException].
 */
public class DistributedLocks internal constructor(
    /** The project whose locks these are: [Store.ping], [Store.stats] and [Store.close]. */
    public val project: Project,
    private val native: NativeLocks,
    private val ownsProject: Boolean = false,
) : AutoCloseable {
    public companion object {
        /**
         * Makes a project, without I/O, and gives its locks for one invocation; [close] closes it. The arguments are those of
         * [Project.open].
         *
         * @throws InvalidArgumentException if one of them is outside its limits
         */
        public fun open(url: String, workspace: String, project: String, operationTimeout: Duration? = null): DistributedLocks =
            Project.open(url, workspace, project, operationTimeout).run { DistributedLocks(this, nativeLocks(null), ownsProject = true) }
    }

    /** Closes the [project], if these locks were made by [open]; others end with their project. It releases no lease. */
    override fun close() {
        if (ownsProject) project.close()
    }

    /**
     * Takes the lock, or gives `null` if it could not be had in time. Who waits is served in order. An acquire that is cancelled
     * or fails leaves no lease behind; but a lease that `withTimeout` around it throws away is held until it expires: use [wait]
     * for that, or [withLock].
     *
     * @param key 1..255 characters of `A-Z a-z 0-9 . _ : / -`, the first a letter or digit
     * @param namespace 1..128 of the same; `default` if left out
     * @param wait how long: 0..10 s; 0 if left out: only if the lock is free and nobody waits
     * @param lease how long the lease lasts: 5..60 s; 30 s if left out
     */
    public suspend fun acquire(
        key: String,
        namespace: String? = null,
        wait: Duration? = null,
        lease: Duration? = null,
    ): LockLease? {
        val make = {
            native.acquire(
                text("key", key), namespace?.let { text("namespace", it) }, wait?.upToMilliseconds(), lease?.upToMilliseconds(),
            )
        }
        return run(make, AcquireOperation::start, { it.wait() }, AcquireOperation::result)?.let(::LockLease)
    }

    /**
     * The live lease of this [id][LockLease.id], whoever acquired it in this project; it takes no place of this invocation.
     *
     * @throws StoreException.LockLost if there is none
     */
    public suspend fun attach(id: String): LockLease {
        val make = { native.attach(text("id", id)) }
        val lease = run(make, AttachOperation::start, { it.wait() }, AttachOperation::result)
        return LockLease(lease ?: throw StoreException.LockLost("there is no live lease of this id"))
    }

    /**
     * Takes the lock for the run of [block], and releases it at its end, also when the coroutine is cancelled meanwhile. Nothing is
     * renewed by itself. What [block] throws goes before an error of the release. The other arguments are those of [acquire].
     *
     * @throws StoreException.LockUnavailable if the lock could not be had in time; [block] is not begun then
     * @throws StoreException.LockLost if the lease had ended before [block] did
     */
    public suspend fun <T> withLock(
        key: String,
        namespace: String? = null,
        wait: Duration? = null,
        lease: Duration? = null,
        block: suspend (LockLease) -> T,
    ): T {
        val held = acquire(key, namespace, wait, lease) ?: throw StoreException.LockUnavailable()
        val result = try {
            block(held)
        } catch (failure: Throwable) {
            try {
                withContext(NonCancellable) { held.release() }
            } catch (error: StoreException) {
                // The lease ends by expiry; what the block threw is what its caller is to know.
                failure.addSuppressed(error)
            }
            throw failure
        }
        withContext(NonCancellable) { held.release() }
        return result
    }
}

/**
 * A lease: the lock is ours until it is released or expires. An object that is dropped releases nothing.
 *
 * Only one lease of a lock is valid at a time, but a holder may be late: have what the lock guards refuse a [fencingToken] smaller
 * than one it has seen.
 */
public class LockLease internal constructor(private val native: NativeLease) : AutoCloseable {
    /** Whoever knows it may renew and release the lease, from any process of the same project: keep it to yourself. */
    public val id: String = native.id()

    /** The lock's key. */
    public val key: String = native.key()

    /** The lock's namespace. */
    public val namespace: String = native.namespace()

    /** Larger than that of every earlier lease of this lock; at most 2^53 − 1. */
    public val fencingToken: Long = native.fencingToken()

    /** When the lease expires by the engine's clock, as last renewed through this object. */
    public val expiresAt: Instant get() = instant(native.expiresAtMs())

    /**
     * From the engine's now on the lease lasts as long as [lease] says, and gives when it expires then.
     *
     * @param lease 5..60 s; if left out, as long as it was acquired for
     * @throws InvalidArgumentException if it is not so
     * @throws StoreException.LockLost if the lease is lost or expired
     */
    public suspend fun renew(lease: Duration? = null): Instant {
        val make = { native.renew(lease?.upToMilliseconds()) }
        return when (val result = run(make, LeaseRenewOperation::start, { it.wait() }, LeaseRenewOperation::result)) {
            is LeaseRenewResult.Renewed -> instant(result.expiresAtMs)
            is LeaseRenewResult.Lost ->
                throw StoreException.LockLost("the lease was lost or had expired before it could be renewed")
        }
    }

    /**
     * Frees the lock. After a release that succeeded, doing it again through this object does nothing. Once it has
     * begun it goes on if the wait for it is cancelled. In a coroutine that is cancelled already nothing begins, as of any operation: in
     * a `finally` it needs `withContext(NonCancellable)`; [close] and [DistributedLocks.withLock] release in any case.
     *
     * @throws StoreException.LockLost if the lease was lost or had expired already
     */
    public suspend fun release() {
        currentCoroutineContext().ensureActive()
        detached(currentCoroutineContext()) {
            val result = run({ native.release() }, LeaseReleaseOperation::start, { it.wait() }, LeaseReleaseOperation::result)
            if (result == LeaseReleaseResult.LOST) {
                throw StoreException.LockLost("the lease was lost or had expired before it was released")
            }
        }.await()
    }

    /** As [release], but blocks the thread meanwhile; an interrupted thread goes on at once, and stays interrupted. */
    override fun close() {
        blocking { release() }
    }

    override fun toString(): String = "LockLease($namespace/$key, fencingToken=$fencingToken)"
}
