package systems.zlink.project.state;

import java.util.Optional;
import java.util.concurrent.CompletionStage;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;

/**
 * The entries of one namespace. A key is 1 to 255 of {@code A-Z a-z 0-9 . _ : / -}, beginning with a letter or digit.
 *
 * @param <T> the values; {@code String}: JSON text, unless a codec was given
 */
public interface StateNamespace<T> {
    /**
     * Its name.
     *
     * @return the name
     */
    String name();

    /**
     * The live entry under a key.
     *
     * @param key the key
     * @param cancellation ends the operation, or {@code null}
     * @return the entry, if there is one
     * @throws ValidationException if the key is wrong
     */
    CompletionStage<Optional<StateEntry<T>>> get(String key, ZLinkStoreCancellation cancellation);

    /**
     * {@link #get(String, ZLinkStoreCancellation)} without a cancellation.
     *
     * @param key the key
     * @return the entry, if there is one
     * @throws ValidationException if the key is wrong
     */
    default CompletionStage<Optional<StateEntry<T>>> get(String key) {
        return get(key, null);
    }

    /**
     * Writes a value of at most 32,768 bytes of UTF-8 in the form of {@code JSON.stringify}, as one atomic step.
     *
     * <p>The stage fails with {@link StateConflictException} if the expected version is not there, and with {@link RateLimitException} if the
     * project has 100,000 live entries and this would be one more; nothing is changed then.
     *
     * @param key the key
     * @param value the value
     * @param options {@code null} for the defaults
     * @param cancellation ends the operation, or {@code null}
     * @return the entry as it stands now
     * @throws ValidationException if the key or an option is wrong, or the value has no JSON text that fits
     */
    CompletionStage<StateEntry<T>> set(String key, T value, StateWriteOptions options, ZLinkStoreCancellation cancellation);

    /**
     * {@link #set(String, Object, StateWriteOptions, ZLinkStoreCancellation)} without a cancellation.
     *
     * @param key the key
     * @param value the value
     * @param options {@code null} for the defaults
     * @return the entry as it stands now
     * @throws ValidationException if the key or an option is wrong, or the value has no JSON text that fits
     */
    default CompletionStage<StateEntry<T>> set(String key, T value, StateWriteOptions options) {
        return set(key, value, options, null);
    }

    /**
     * {@link #set(String, Object, StateWriteOptions, ZLinkStoreCancellation)} in any case and for ever.
     *
     * @param key the key
     * @param value the value
     * @return the entry as it stands now
     * @throws ValidationException if the key is wrong, or the value has no JSON text that fits
     */
    default CompletionStage<StateEntry<T>> set(String key, T value) {
        return set(key, value, null, null);
    }

    /**
     * Deletes the live entry under a key. The stage fails with {@link StateConflictException} if the expected version is not there.
     *
     * @param key the key
     * @param options {@code null} for the defaults
     * @param cancellation ends the operation, or {@code null}
     * @return whether there was an entry
     * @throws ValidationException if the key or an option is wrong
     */
    CompletionStage<Boolean> delete(String key, StateDeleteOptions options, ZLinkStoreCancellation cancellation);

    /**
     * {@link #delete(String, StateDeleteOptions, ZLinkStoreCancellation)} without a cancellation.
     *
     * @param key the key
     * @param options {@code null} for the defaults
     * @return whether there was an entry
     * @throws ValidationException if the key or an option is wrong
     */
    default CompletionStage<Boolean> delete(String key, StateDeleteOptions options) {
        return delete(key, options, null);
    }

    /**
     * {@link #delete(String, StateDeleteOptions, ZLinkStoreCancellation)} in any case.
     *
     * @param key the key
     * @return whether there was an entry
     * @throws ValidationException if the key is wrong
     */
    default CompletionStage<Boolean> delete(String key) {
        return delete(key, null, null);
    }
}
