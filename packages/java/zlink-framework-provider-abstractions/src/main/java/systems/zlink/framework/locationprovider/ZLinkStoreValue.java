package systems.zlink.framework.locationprovider;

import java.time.Instant;
import java.util.Arrays;
import java.util.Objects;

/**
 * A live record as one observation saw it: all parts belong to the same instant of the provider's clock.
 *
 * <p>The array is shared, not copied: it belongs to this one result, and the provider never touches it again. Two values are equal if
 * their bytes are, and everything else.
 *
 * @param bytes the bytes that were put, at most 1 MiB
 * @param version the version that the put got
 * @param expiresAt when the record expires, in whole milliseconds; {@code null} for a durable one
 * @param storeNow the provider's clock at the observation
 */
public record ZLinkStoreValue(byte[] bytes, ZLinkStoreVersion version, Instant expiresAt, Instant storeNow) {
    @Override
    public boolean equals(Object other) {
        return other instanceof ZLinkStoreValue that
                && Arrays.equals(bytes, that.bytes)
                && Objects.equals(version, that.version)
                && Objects.equals(expiresAt, that.expiresAt)
                && Objects.equals(storeNow, that.storeNow);
    }

    @Override
    public int hashCode() {
        return 31 * Arrays.hashCode(bytes) + Objects.hash(version, expiresAt, storeNow);
    }

    /** Shows everything but the bytes, of which it shows the number. */
    @Override
    public String toString() {
        return "ZLinkStoreValue[bytes=" + Sizes.of(bytes) + ", version=" + version + ", expiresAt=" + expiresAt
                + ", storeNow=" + storeNow + "]";
    }
}
