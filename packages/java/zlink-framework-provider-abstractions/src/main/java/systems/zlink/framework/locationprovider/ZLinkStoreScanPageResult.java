package systems.zlink.framework.locationprovider;

/**
 * A page of the snapshot.
 *
 * @param value the page
 */
public record ZLinkStoreScanPageResult(ZLinkStoreScanPage value) implements ZLinkStoreScanResult {}
