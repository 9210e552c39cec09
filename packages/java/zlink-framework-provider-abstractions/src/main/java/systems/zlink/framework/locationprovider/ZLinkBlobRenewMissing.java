package systems.zlink.framework.locationprovider;

import java.time.Instant;

/**
 * There is no live blob under the reference.
 *
 * @param storeNow the provider's clock at the observation
 */
public record ZLinkBlobRenewMissing(Instant storeNow) implements ZLinkBlobRenewResult {}
