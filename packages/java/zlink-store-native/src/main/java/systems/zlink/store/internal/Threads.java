package systems.zlink.store.internal;

/** Makes our threads: none keeps the process alive, and none holds on to the caller's class loader or thread locals. */
final class Threads {
    private Threads() {}

    static Thread daemon(String name, Runnable task) {
        Thread thread = new Thread(null, task, name, 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(Threads.class.getClassLoader());
        return thread;
    }
}
