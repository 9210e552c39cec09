package systems.zlink.framework.locationprovider;

import java.time.Instant;

/**
 * There is no live record under the key: it was never put, was deleted, or has expired.
 *
 * @param storeNow the provider's clock at the observation
 */
public record ZLinkStoreReadMissing(Instant storeNow) implements ZLinkStoreReadResult {}
