package systems.zlink.framework.locationprovider;

import java.time.Instant;

/**
 * A condition did not hold. Nothing changed, and no version moved.
 *
 * @param storeNow the provider's clock at the check
 */
public record ZLinkStoreWriteConflict(Instant storeNow) implements ZLinkStoreWriteResult {}
