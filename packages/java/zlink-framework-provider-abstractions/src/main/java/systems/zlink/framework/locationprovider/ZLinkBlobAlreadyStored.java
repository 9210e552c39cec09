package systems.zlink.framework.locationprovider;

import java.time.Instant;

/**
 * The same bytes are there already; their expiry stands.
 *
 * @param expiresAt the expiry that stands
 * @param storeNow the provider's clock at the observation
 */
public record ZLinkBlobAlreadyStored(Instant expiresAt, Instant storeNow) implements ZLinkBlobPutResult {}
