package systems.zlink.store.internal;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.ForkJoinWorkerThread;

/** What our threads are like (none keeps the process alive, and none holds on to the caller's class loader or thread locals), and others. */
final class Threads {
    /** {@code Thread.isVirtual}, which came with 21. */
    private static final MethodHandle IS_VIRTUAL = isVirtual();

    private static final int MEMORY_MS = 10;

    private Threads() {}

    static Thread daemon(String name, Runnable task) {
        Thread thread = new Thread(null, task, name, 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(Threads.class.getClassLoader());
        return thread;
    }

    /** Whether this thread stands for itself alone: one of a fork-join pool, or a virtual one, would hold up others that it carries. */
    static boolean mayWaitInNativeCode() {
        Thread thread = Thread.currentThread();
        try {
            return !(thread instanceof ForkJoinWorkerThread) && !thread.isInterrupted() && !(boolean) IS_VIRTUAL.invokeExact(thread);
        } catch (Throwable impossible) {
            return false;
        }
    }

    /** Waits until there may be memory again: what must be done is tried once more, since nobody else would do it. */
    static void awaitMemory() {
        try {
            Thread.sleep(MEMORY_MS);
        } catch (InterruptedException later) {
            Thread.currentThread().interrupt();
            Thread.yield();
        }
    }

    private static MethodHandle isVirtual() {
        try {
            return MethodHandles.publicLookup().findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException olderThan21) {
            return MethodHandles.dropArguments(MethodHandles.constant(boolean.class, false), 0, Thread.class);
        }
    }
}
