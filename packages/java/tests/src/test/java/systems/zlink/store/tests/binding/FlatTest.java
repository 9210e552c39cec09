package systems.zlink.store.tests.binding;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import systems.zlink.store.tests.support.Child;
import systems.zlink.store.tests.support.TestServer;

class FlatTest {
    /** A million reads and a hundred rounds of opening and closing, with some of everything else in between. */
    @Test
    void heapNativeMemoryAndThreadsStayFlat() throws Exception {
        try (TestServer redis = TestServer.redis()) {
            // A heap of fixed size, all of it touched: what grows then is not the heap. And one arena, so that it matters less which thread
            // happens to allocate.
            String said = new Child()
                    .by("env", "MALLOC_ARENA_MAX=1")
                    .options("-Xms192m", "-Xmx192m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC", "-Xshare:auto")
                    .run(Flat.class, redis.url(), "1000000", "100")
                    .orFail();
            assertTrue(said.contains("\nflat"), said);
        }
    }
}
