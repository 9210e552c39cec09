package systems.zlink.store.tests.binding;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import systems.zlink.store.tests.support.Child;
import systems.zlink.store.tests.support.TestServer;

class FlatTest {
    /** A million reads and a hundred rounds of opening and closing, with some of everything else in between. */
    @Test
    void heapNativeMemoryAndThreadsStayFlat() throws Exception {
        try (TestServer redis = TestServer.redis()) {
            // A heap of fixed size, all of it touched: what grows then is not the heap.
            String said = new Child()
                    .options("-Xms192m", "-Xmx192m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC", "-Xshare:auto")
                    .run(Flat.class, redis.url(), "1000000", "100")
                    .orFail();
            assertTrue(figure(said, "heap (-?\\d+) KiB") < 10 * 1024, said);
            assertTrue(figure(said, "resident (-?\\d+) KiB") < 10 * 1024, said);
            assertTrue(figure(said, "threads (-?\\d+)") <= 2, said);
        }
    }

    private static long figure(String said, String pattern) {
        Matcher found = Pattern.compile(pattern).matcher(said);
        assertTrue(found.find(), said);
        return Long.parseLong(found.group(1));
    }
}
