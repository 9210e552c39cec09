package systems.zlink.framework.locationprovider;

import java.time.Instant;
import java.util.List;

/**
 * A page of a scan, in ascending order of the keys' bytes.
 *
 * @param items the records; empty only when the whole scan is. Copied, unmodifiable, never {@code null}
 * @param nextCursor where the next page begins; {@code null} if this is the last one
 * @param storeNow on the first page the snapshot's instant, later the provider's clock when the page was read
 */
public record ZLinkStoreScanPage(List<ZLinkStoreScanItem> items, ZLinkStoreScanCursor nextCursor, Instant storeNow) {
    /**
     * Copies the items.
     *
     * @param items the records
     * @param nextCursor where the next page begins, or {@code null}
     * @param storeNow the provider's clock
     * @throws NullPointerException if the list or an item is {@code null}
     */
    public ZLinkStoreScanPage {
        items = List.copyOf(items);
    }
}
