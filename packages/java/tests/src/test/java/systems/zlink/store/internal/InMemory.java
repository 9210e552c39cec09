package systems.zlink.store.internal;

import java.time.Duration;
import systems.zlink.framework.locationprovider.ZLinkLocationStore;
import systems.zlink.framework.locationprovider.ZLinkRelocationStore;

/** Stores in memory that share their data by a name, which the embedded packages do not offer: several clients of one store. */
public final class InMemory {
    private InMemory() {}

    public static ZLinkLocationStore location(String name, String keyPrefix, Duration timeout) {
        return new NativeLocationStore(new Object(), new Place(Native.MEMORY, name, keyPrefix, timeout));
    }

    public static ZLinkRelocationStore relocation(String name, String keyPrefix, Duration timeout) {
        return new NativeRelocationStore(new Object(), new Place(Native.MEMORY, name, keyPrefix, timeout));
    }
}
