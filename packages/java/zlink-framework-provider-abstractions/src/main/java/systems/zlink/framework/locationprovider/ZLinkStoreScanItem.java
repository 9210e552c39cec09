package systems.zlink.framework.locationprovider;

/**
 * One record of a page, as it stood at the snapshot's instant.
 *
 * @param key the key
 * @param value the record; its {@code storeNow} is the page's
 */
public record ZLinkStoreScanItem(ZLinkStoreKey key, ZLinkStoreValue value) {}
