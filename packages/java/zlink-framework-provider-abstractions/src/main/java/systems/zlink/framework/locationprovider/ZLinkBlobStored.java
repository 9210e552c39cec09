package systems.zlink.framework.locationprovider;

import java.time.Instant;

/**
 * The blob is new.
 *
 * @param expiresAt when it expires
 * @param storeNow the provider's clock at the commit
 */
public record ZLinkBlobStored(Instant expiresAt, Instant storeNow) implements ZLinkBlobPutResult {}
