// The README's example; a test compiles and runs it, with and without modules.
import java.time.Duration;
import java.util.List;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.embedded.*;

public class FirstSteps {
    public static void main(String[] arguments) {
        try (var store = new ZLinkEmbeddedLocationStore(new ZLinkEmbeddedLocationOptions())) {
            var key = new ZLinkStoreKey("actor/7");
            var claim = new ZLinkStoreWriteRequest(
                    List.of(new ZLinkStoreMissingCondition(key)),
                    List.of(new ZLinkStorePut(key, "node-1".getBytes(), Duration.ofSeconds(30))));
            var claimed = store.write(claim, null).toCompletableFuture().join();
            if (claimed instanceof ZLinkStoreWriteApplied
                    && store.read(key, null).toCompletableFuture().join() instanceof ZLinkStoreReadFound found) {
                System.out.println(new String(found.value().bytes()) + " until " + found.value().expiresAt());
            }
        }
    }
}
