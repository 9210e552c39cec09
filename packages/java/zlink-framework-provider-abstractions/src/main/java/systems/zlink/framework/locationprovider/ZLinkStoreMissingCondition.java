package systems.zlink.framework.locationprovider;

/**
 * Holds if the key has no live record: a missing or expired one.
 *
 * @param key the key
 */
public record ZLinkStoreMissingCondition(ZLinkStoreKey key) implements ZLinkStoreCondition {}
