package systems.zlink.framework.locationprovider;

/**
 * Holds if the key's live record has exactly this version.
 *
 * @param key the key
 * @param expected the version
 */
public record ZLinkStoreVersionCondition(ZLinkStoreKey key, ZLinkStoreVersion expected) implements ZLinkStoreCondition {}
