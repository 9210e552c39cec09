package systems.zlink.framework.locationprovider;

/** Says how many bytes there are, for texts that must not show them. */
final class Sizes {
    private Sizes() {}

    static String of(byte[] bytes) {
        return bytes == null ? "null" : "(" + bytes.length + ")";
    }
}
