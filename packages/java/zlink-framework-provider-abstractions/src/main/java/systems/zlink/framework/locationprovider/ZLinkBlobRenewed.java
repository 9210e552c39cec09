package systems.zlink.framework.locationprovider;

import java.time.Instant;

/**
 * The blob has a new expiry, also when that is earlier than before.
 *
 * @param expiresAt the new expiry
 * @param storeNow the provider's clock at the renewal
 */
public record ZLinkBlobRenewed(Instant expiresAt, Instant storeNow) implements ZLinkBlobRenewResult {}
