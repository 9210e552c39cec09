package systems.zlink.framework.locationprovider;

import java.time.Instant;
import java.util.Arrays;
import java.util.Objects;

/**
 * The blob: exactly the bytes that were put.
 *
 * <p>The array is shared, not copied: it belongs to this one result, and the provider never touches it again. Two results are equal if
 * their bytes are, and everything else.
 *
 * @param bytes the bytes
 * @param expiresAt when the blob expires
 * @param storeNow the provider's clock at the observation
 */
public record ZLinkBlobFound(byte[] bytes, Instant expiresAt, Instant storeNow) implements ZLinkBlobReadResult {
    @Override
    public boolean equals(Object other) {
        return other instanceof ZLinkBlobFound that
                && Arrays.equals(bytes, that.bytes)
                && Objects.equals(expiresAt, that.expiresAt)
                && Objects.equals(storeNow, that.storeNow);
    }

    @Override
    public int hashCode() {
        return 31 * Arrays.hashCode(bytes) + Objects.hash(expiresAt, storeNow);
    }

    /** Shows everything but the bytes, of which it shows the number. */
    @Override
    public String toString() {
        return "ZLinkBlobFound[bytes=" + Sizes.of(bytes) + ", expiresAt=" + expiresAt + ", storeNow=" + storeNow + "]";
    }
}
