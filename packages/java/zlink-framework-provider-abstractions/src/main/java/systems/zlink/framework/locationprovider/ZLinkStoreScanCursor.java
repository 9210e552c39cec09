package systems.zlink.framework.locationprovider;

/**
 * Where a scan goes on: opaque text of 1 to 4,096 bytes of UTF-8, issued by a store. Any client of the same store, in any process, can
 * continue with it for as long as the snapshot lives.
 *
 * @param value the text, never {@code null}
 */
public record ZLinkStoreScanCursor(String value) {}
