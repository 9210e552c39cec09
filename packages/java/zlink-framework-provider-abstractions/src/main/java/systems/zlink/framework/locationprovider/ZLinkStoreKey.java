package systems.zlink.framework.locationprovider;

/**
 * A key of a Location Store: opaque text of 1 to 1,024 bytes of UTF-8, any character, compared byte by byte (case-sensitive, without
 * normalisation).
 *
 * <p>The limits are checked by the store that is called, not here.
 *
 * @param value the text, never {@code null}
 */
public record ZLinkStoreKey(String value) {}
