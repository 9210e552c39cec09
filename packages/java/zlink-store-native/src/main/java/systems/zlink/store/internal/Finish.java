package systems.zlink.store.internal;

/**
 * Makes the result of an operation from what native code has answered.
 *
 * @param <T> the result
 */
@FunctionalInterface
public interface Finish<T> {
    /**
     * The result. It runs where continuations do.
     *
     * @param answer an {@link Entry}, a {@link NativeLease}, an {@link java.time.Instant}, a {@link Nothing}, or {@code null} for what is
     *     merely done
     * @return the result
     * @throws Exception what the operation fails with
     */
    T of(Object answer) throws Exception;
}
