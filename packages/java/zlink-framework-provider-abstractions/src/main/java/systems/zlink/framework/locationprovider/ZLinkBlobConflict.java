package systems.zlink.framework.locationprovider;

import java.time.Instant;

/**
 * Other bytes are there under this reference. Nothing changed.
 *
 * @param storeNow the provider's clock at the observation
 */
public record ZLinkBlobConflict(Instant storeNow) implements ZLinkBlobPutResult {}
