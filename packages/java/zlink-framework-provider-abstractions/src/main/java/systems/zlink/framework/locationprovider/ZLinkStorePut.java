package systems.zlink.framework.locationprovider;

import java.time.Duration;
import java.util.Arrays;
import java.util.Objects;

/**
 * Puts a record. A put without retention makes the key durable, also when it had an expiry before.
 *
 * <p>The array is shared, not copied: it must not be changed before the write's stage has ended. Afterwards it is never read again.
 *
 * @param key the key
 * @param bytes the value, at most 1 MiB (1,048,576 bytes)
 * @param retention how long the record lives from the commit on, 1 to 2<sup>53</sup>-1 milliseconds, parts of a millisecond rounded up;
 *     {@code null}: until it is deleted
 */
public record ZLinkStorePut(ZLinkStoreKey key, byte[] bytes, Duration retention) implements ZLinkStoreMutation {
    @Override
    public boolean equals(Object other) {
        return other instanceof ZLinkStorePut that
                && Objects.equals(key, that.key)
                && Arrays.equals(bytes, that.bytes)
                && Objects.equals(retention, that.retention);
    }

    @Override
    public int hashCode() {
        return 31 * Arrays.hashCode(bytes) + Objects.hash(key, retention);
    }

    /** Shows everything but the bytes, of which it shows the number. */
    @Override
    public String toString() {
        return "ZLinkStorePut[key=" + key + ", bytes=" + Sizes.of(bytes) + ", retention=" + retention + "]";
    }
}
