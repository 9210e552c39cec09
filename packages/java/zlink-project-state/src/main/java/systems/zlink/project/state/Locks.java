package systems.zlink.project.state;

import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import java.util.function.Supplier;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;
import systems.zlink.store.internal.NativeLease;
import systems.zlink.store.internal.NativeLocks;

/** The locks of an invocation of the native library. */
record Locks(NativeLocks locks) implements DistributedLocks {
    @Override
    public CompletionStage<Optional<LockLease>> acquire(String key, LockOptions options, ZLinkStoreCancellation cancellation) {
        LockOptions how = options == null ? LockOptions.defaults() : options;
        return Checked.call(() -> locks.acquire(key, how.namespace(), how.waitTime(), how.leaseTime(), cancellation, answer ->
                answer instanceof NativeLease lease ? Optional.of(new Lease(lease)) : Optional.empty()));
    }

    @Override
    public CompletionStage<LockLease> attach(String id, ZLinkStoreCancellation cancellation) {
        return Checked.call(() -> locks.attach(id, cancellation, answer -> {
            if (answer instanceof NativeLease lease) {
                return new Lease(lease);
            }
            throw new LockLostException();
        }));
    }

    @Override
    public <T> CompletionStage<T> withLock(
            String key,
            LockOptions options,
            Function<? super LockLease, ? extends CompletionStage<T>> work,
            ZLinkStoreCancellation cancellation) {
        Checked.given("work", work);
        CompletableFuture<Optional<LockLease>> acquiring = acquire(key, options, cancellation).toCompletableFuture();
        CompletableFuture<T> result = new CompletableFuture<>();
        acquiring.whenComplete((lease, failure) -> {
            if (failure != null) {
                result.completeExceptionally(failure);
            } else if (lease.isEmpty()) {
                result.completeExceptionally(new LockUnavailableException(namespaceOf(options), key));
            } else if (result.isDone()) {
                lease.get().release();
            } else {
                holding(lease.get(), work, result);
            }
        });
        // Whatever else ends the stage (a cancellation, orTimeout) ends the wait.
        result.whenComplete((value, failure) -> acquiring.cancel(false));
        return result;
    }

    private static String namespaceOf(LockOptions options) {
        return options == null || options.namespace() == null ? "default" : options.namespace();
    }

    private static <T> void holding(
            LockLease lease, Function<? super LockLease, ? extends CompletionStage<T>> work, CompletableFuture<T> result) {
        CompletionStage<T> working = begun(() -> Checked.given("the stage of the work", work.apply(lease)));
        working.whenComplete((value, failure) -> begun(lease::release).whenComplete((released, notReleased) -> {
            if (failure != null) {
                // The lease ends by itself if its release failed, and the work's exception is what matters.
                result.completeExceptionally(own(failure));
            } else if (notReleased != null) {
                result.completeExceptionally(notReleased);
            } else {
                result.complete(value);
            }
        }));
    }

    private static <T> CompletionStage<T> begun(Supplier<CompletionStage<T>> call) {
        try {
            return call.get();
        } catch (Throwable thrown) {
            return CompletableFuture.failedStage(thrown);
        }
    }

    /** What the work failed with, out of what dependent stages wrap it in. */
    private static Throwable own(Throwable failure) {
        return failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
    }
}
