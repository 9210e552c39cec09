package systems.zlink.store.kotlin

import kotlin.time.Duration
import systems.zlink.store.kotlin.internal.ffi.NativeThreads
import systems.zlink.store.kotlin.internal.ffi.ProjectOptions
import systems.zlink.store.kotlin.internal.ffi.DistributedLocks as NativeLocks
import systems.zlink.store.kotlin.internal.ffi.Project as NativeProject
import systems.zlink.store.kotlin.internal.ffi.ProjectState as NativeState

/**
 * A project's state and locks: one connection, one life.
 *
 * ```
 * Project.open("redis://localhost", workspace = "acme", project = "shop").use { project ->
 *     project.state.namespace("inventory-sync").set("cursor", """{"page":2}""", ttl = 1.hours)
 *     project.locks().withLock("INV-1", wait = 500.milliseconds) { lease ->
 *         println("paying INV-1 with token ${lease.fencingToken}")
 *     }
 * }
 * ```
 *
 * Who waits for a lock when it is closed is told [StoreException.Closed] at once; leases that are held stay until they expire.
 */
public class Project private constructor(private val native: NativeProject) : Store() {
    public companion object {
        /**
         * Makes a project, without I/O: the first operation connects.
         *
         * @param url which engine, as for [LocationStore.open]
         * @param workspace 1..255 characters of `A-Z a-z 0-9 . _ : / -`, the first a letter or digit
         * @param project the same
         * @param operationTimeout 1 ms..2^31−1 ms, 5 s if left out; the wait for a lock comes on top
         * @throws InvalidArgumentException if one of them is not so
         */
        public fun open(url: String, workspace: String, project: String, operationTimeout: Duration? = null): Project {
            NativeThreads.prepare()
            val options = ProjectOptions(operationTimeout?.upToMilliseconds())
            val native = translated {
                NativeProject.open(text("url", url), text("workspace", workspace), text("project", project), options)
            }
            return Project(native)
        }
    }

    override val life: Life = Life(native::ping, native::stats, native::shutdown)

    /** The project's state. */
    public val state: ProjectState = ProjectState(this, nativeState())

    /**
     * The project's locks, for one invocation: it holds at most 16 leases at a time. No I/O.
     *
     * @param within the invocation ends so long from now, and no wait for a lock goes on past that; 0 or more
     * @throws InvalidArgumentException if it is negative
     */
    public fun locks(within: Duration? = null): DistributedLocks = DistributedLocks(this, nativeLocks(within))

    internal fun nativeLocks(within: Duration?): NativeLocks = translated { native.locks(within?.upToMilliseconds()) }

    internal fun nativeState(): NativeState = native.state()
}
