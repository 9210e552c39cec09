package systems.zlink.store.tests.binding;

import java.util.concurrent.Callable;

/** Waits for something that happens some time. */
final class Poll {
    private static final long LONGEST_NS = 30_000_000_000L;

    private Poll() {}

    static void until(String what, Callable<Boolean> holds) throws Exception {
        long end = System.nanoTime() + LONGEST_NS;
        while (!holds.call()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("not in time: " + what);
            }
            Thread.sleep(20);
        }
    }
}
