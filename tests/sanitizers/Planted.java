/** Calls one of the planted faults. Arguments: the library, and which. */
final class Planted {
    private Planted() {
    }

    private static native void none();

    private static native void writePastTheEnd();

    private static native void readAfterFree();

    public static void main(String[] args) {
        System.load(args[0]);
        switch (args[1]) {
            case "none" -> none();
            case "write-past-the-end" -> writePastTheEnd();
            case "read-after-free" -> readAfterFree();
            default -> throw new IllegalArgumentException(args[1]);
        }
    }
}
