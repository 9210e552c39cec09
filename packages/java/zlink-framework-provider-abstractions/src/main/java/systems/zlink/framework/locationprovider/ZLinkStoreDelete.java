package systems.zlink.framework.locationprovider;

/**
 * Deletes a record. Deleting a missing one is fine.
 *
 * @param key the key
 */
public record ZLinkStoreDelete(ZLinkStoreKey key) implements ZLinkStoreMutation {}
