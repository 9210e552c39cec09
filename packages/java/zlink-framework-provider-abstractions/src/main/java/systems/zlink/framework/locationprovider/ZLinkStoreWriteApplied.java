package systems.zlink.framework.locationprovider;

import java.time.Instant;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * All conditions held, and all mutations are in.
 *
 * @param putVersions the version that each put got, in the order of the puts; copied, unmodifiable, never {@code null}
 * @param storeNow the provider's clock at the commit
 */
public record ZLinkStoreWriteApplied(Map<ZLinkStoreKey, ZLinkStoreVersion> putVersions, Instant storeNow)
        implements ZLinkStoreWriteResult {
    /**
     * Copies the map, and keeps its order.
     *
     * @param putVersions the version that each put got
     * @param storeNow the provider's clock
     * @throws NullPointerException if the map is {@code null}
     */
    public ZLinkStoreWriteApplied {
        putVersions = putVersions.size() < 2 ? Map.copyOf(putVersions) : Collections.unmodifiableMap(new LinkedHashMap<>(putVersions));
    }
}
