package systems.zlink.framework.locationprovider;

/**
 * The version that a store gave to one put: opaque text of 1 to 4,096 bytes of UTF-8. Every put gets a version of its own, which is
 * never used again. Compare versions for equality only; what is inside is the provider's alone.
 *
 * @param value the text, never {@code null}
 */
public record ZLinkStoreVersion(String value) {}
