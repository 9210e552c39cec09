package systems.zlink.framework.locationprovider;

/**
 * The reference of a blob, issued by the caller before the put: opaque text of 1 to 4,096 bytes of UTF-8, compared byte by byte. A
 * reference must never be used again for other bytes.
 *
 * @param value the text, never {@code null}
 */
public record ZLinkBlobReference(String value) {}
