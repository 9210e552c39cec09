package systems.zlink.framework.locationprovider;

import java.util.concurrent.CompletionStage;

/**
 * Keeps small records under opaque keys: conditional atomic batches, snapshot scans, and the provider's own clock.
 *
 * <p>Argument errors are thrown by the call itself: {@link IllegalArgumentException} for what is outside the limits,
 * {@link NullPointerException} for what is missing; nothing has happened then. Everything else completes the stage. When a call was
 * cancelled, timed out or failed after its start, it may or may not have been committed: read the key, and compare versions.
 *
 * <p>Implementations may be called from any thread, and say which threads complete their stages.
 */
public interface ZLinkLocationStore {
    /**
     * Reads one key.
     *
     * <p>{@link java.util.concurrent.CompletableFuture#cancel} of {@link CompletionStage#toCompletableFuture()} cancels, too. The stage
     * ends with {@link java.util.concurrent.CancellationException} when it was cancelled, with
     * {@link java.util.concurrent.TimeoutException} when the provider's operation timeout passed, and otherwise with an unchecked
     * exception of the provider.
     *
     * @param key the key
     * @param cancellation asked before the start and while waiting; {@code null}: never cancelled
     * @return the record, or that there is none: one observation
     * @throws IllegalArgumentException if the key is outside its limits or no valid Unicode
     * @throws NullPointerException if the key is {@code null}
     */
    CompletionStage<ZLinkStoreReadResult> read(ZLinkStoreKey key, ZLinkStoreCancellation cancellation);

    /**
     * Checks all conditions and, if all hold, applies all mutations as one commit. Nobody sees a part of it.
     *
     * @param request conditions and mutations
     * @param cancellation asked before the start and while waiting; {@code null}: never cancelled
     * @return the versions of the puts, or a conflict, which tells nothing more; ends as that of {@link #read}
     * @throws IllegalArgumentException if something of the request is outside its limits, or a key stands twice among the conditions or
     *     among the mutations
     * @throws NullPointerException if something of the request is {@code null} that must not be
     */
    CompletionStage<ZLinkStoreWriteResult> write(ZLinkStoreWriteRequest request, ZLinkStoreCancellation cancellation);

    /**
     * Reads one page of a snapshot scan.
     *
     * @param request which page
     * @param cancellation asked before the start and while waiting; {@code null}: never cancelled
     * @return the page, or that the snapshot has expired; ends as that of {@link #read}
     * @throws IllegalArgumentException if prefix, cursor or limit are outside their limits
     * @throws NullPointerException if the request or its prefix is {@code null}
     */
    CompletionStage<ZLinkStoreScanResult> scan(ZLinkStoreScanRequest request, ZLinkStoreCancellation cancellation);
}
