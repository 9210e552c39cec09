package systems.zlink.framework.locationprovider;

/**
 * One page of a scan. The first page fixes a snapshot; later pages show the same one.
 *
 * @param prefix keys that start with these bytes: 0 to 1,024 bytes of UTF-8, never {@code null}
 * @param cursor {@code null} for the first page, then the page before's {@link ZLinkStoreScanPage#nextCursor()}
 * @param limit the most items of this page, 1 to 1,000; it may differ from page to page. A page stops before 4 MiB, too
 */
public record ZLinkStoreScanRequest(String prefix, ZLinkStoreScanCursor cursor, int limit) {}
