package systems.zlink.project.state;

import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletionStage;
import systems.zlink.store.ZLinkStoreStats;
import systems.zlink.store.internal.NativeProject;

/** State and locks of one project. Safe for use by several threads. Nothing connects before the first operation. */
public final class Project implements AutoCloseable {
    private final NativeProject behind;
    private final ProjectState state;

    /**
     * Opens a project. A folder is opened at once.
     *
     * @param options which project, and where
     * @throws ValidationException if an option is wrong
     * @throws NullPointerException if the options or one of them are {@code null}
     * @throws systems.zlink.store.ZLinkStoreException {@code UNAVAILABLE} if another process has the folder, {@code INCOMPATIBLE} if it holds
     *     something else
     * @throws UnsatisfiedLinkError if the native library can not be loaded; the message says what to do
     */
    public Project(ProjectOptions options) {
        Checked.given("options", options);
        behind = Checked.call(() ->
                new NativeProject(this, options.url(), options.workspace(), options.project(), options.operationTimeout()));
        state = new State(behind);
    }

    /**
     * The project's state.
     *
     * @return the state
     */
    public ProjectState state() {
        return state;
    }

    /**
     * The project's locks, for one invocation: it holds at most 16 leases at a time.
     *
     * @return the locks
     * @throws systems.zlink.store.ZLinkStoreException {@code CLOSED} if the project is closed
     */
    public DistributedLocks locks() {
        return new Locks(behind.locks(-1));
    }

    /**
     * As {@link #locks()}, for an invocation that ends at a deadline: no wait for a lock goes on past that.
     *
     * @param deadline when the invocation ends, by the clock of this machine
     * @return the locks
     * @throws systems.zlink.store.ZLinkStoreException {@code CLOSED} if the project is closed
     */
    public DistributedLocks locks(Instant deadline) {
        return new Locks(behind.locks(millisUntil(Checked.given("deadline", deadline))));
    }

    private static long millisUntil(Instant deadline) {
        Duration left = Duration.between(Instant.now(), deadline);
        // What no number of milliseconds holds is as good as never.
        return left.isNegative() ? 0 : Math.multiplyExact(Math.min(left.getSeconds(), Integer.MAX_VALUE), 1_000L) + left.getNano() / 1_000_000;
    }

    /**
     * Asks the engine for its clock, which shows that it answers.
     *
     * @return the engine's clock
     */
    public CompletionStage<Instant> ping() {
        return behind.ping();
    }

    /**
     * What was counted so far.
     *
     * @return a snapshot
     * @throws systems.zlink.store.ZLinkStoreException {@code CLOSED} if the project is closed
     */
    public ZLinkStoreStats stats() {
        return behind.stats();
    }

    /**
     * Fails new operations, waits for those under way (at most the operation timeout; who waits for a lock is told {@code CLOSED} at once),
     * and gives up the connection. Leases that are held stay until they expire. Closing again does nothing more.
     */
    @Override
    public void close() {
        behind.close();
    }
}
