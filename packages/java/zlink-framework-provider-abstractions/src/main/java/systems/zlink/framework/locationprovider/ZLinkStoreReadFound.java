package systems.zlink.framework.locationprovider;

/**
 * There is a live record under the key.
 *
 * @param value the record
 */
public record ZLinkStoreReadFound(ZLinkStoreValue value) implements ZLinkStoreReadResult {}
