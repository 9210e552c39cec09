package systems.zlink.project.state;

import java.util.Optional;
import java.util.concurrent.CompletionStage;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;
import systems.zlink.store.internal.Entry;
import systems.zlink.store.internal.NativeProject;
import systems.zlink.store.internal.Nothing;

/** The state of a project of the native library. */
record State(NativeProject project) implements ProjectState {
    @Override
    public <T> StateNamespace<T> namespace(String name, JsonCodec<T> codec) {
        Checked.given("codec", codec);
        return Checked.call(() -> {
            project.checkNamespace(name);
            return new Of<>(project, name, codec);
        });
    }

    private record Of<T>(NativeProject project, String name, JsonCodec<T> codec) implements StateNamespace<T> {
        @Override
        public CompletionStage<Optional<StateEntry<T>>> get(String key, ZLinkStoreCancellation cancellation) {
            return Checked.call(() -> project.get(name, key, cancellation, answer ->
                    answer instanceof Entry entry ? Optional.of(decoded(entry)) : Optional.empty()));
        }

        @Override
        public CompletionStage<StateEntry<T>> set(
                String key, T value, StateWriteOptions options, ZLinkStoreCancellation cancellation) {
            StateWriteOptions how = options == null ? StateWriteOptions.defaults() : options;
            String json = encoded(value);
            return Checked.call(() -> project.set(name, key, json, how.expectedVersion(), how.ttl(), cancellation, answer -> {
                if (answer instanceof Entry entry) {
                    return decoded(entry);
                }
                throw answer == Nothing.LIMIT_REACHED ? new RateLimitException() : new StateConflictException(name, key, how.expectedVersion());
            }));
        }

        @Override
        public CompletionStage<Boolean> delete(String key, StateDeleteOptions options, ZLinkStoreCancellation cancellation) {
            Long expectedVersion = options == null ? null : options.expectedVersion();
            return Checked.call(() -> project.delete(name, key, expectedVersion, cancellation, answer -> {
                if (answer == Nothing.VERSION_CONFLICT) {
                    throw new StateConflictException(name, key, expectedVersion);
                }
                return answer != Nothing.ABSENT;
            }));
        }

        private String encoded(T value) {
            try {
                return codec.encode(value);
            } catch (Exception failure) {
                throw new ValidationException("value must be a JSON value: " + failure.getMessage(), failure);
            }
        }

        private StateEntry<T> decoded(Entry entry) throws Exception {
            return new StateEntry<>(
                    codec.decode(entry.json()), entry.version(), entry.expiresAt(), entry.createdAt(), entry.updatedAt());
        }
    }
}
