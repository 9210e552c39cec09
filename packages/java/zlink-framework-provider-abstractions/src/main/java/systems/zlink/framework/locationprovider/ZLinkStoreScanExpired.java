package systems.zlink.framework.locationprovider;

/** The snapshot is gone, or the cursor is none of this scan's: drop what was read, and start again with the first page. */
public record ZLinkStoreScanExpired() implements ZLinkStoreScanResult {}
