package systems.zlink.framework.locationprovider;

import java.time.Duration;
import java.util.concurrent.CompletionStage;

/**
 * Keeps immutable blobs under references that the caller issues.
 *
 * <p>Argument errors are thrown by the call itself, as in {@link ZLinkLocationStore}; everything else completes the stage. When a call was
 * cancelled, timed out or failed after its start, it may or may not have been committed: read the reference, and compare.
 */
public interface ZLinkRelocationStore {
    /**
     * Puts a blob. Retention counts from the commit, not from the start of the upload.
     *
     * <p>The array must not be changed before the stage has ended; afterwards it is never read again.
     *
     * @param reference the reference
     * @param payload 0 to 67,108,887 bytes: 64 MiB and 23 bytes
     * @param retention 1 to 2<sup>53</sup>-1 milliseconds, parts of a millisecond rounded up
     * @param cancellation asked before the start and while waiting; {@code null}: never cancelled
     * @return whether the blob was stored, was there already, or the reference has other bytes; ends as that of
     *     {@link ZLinkLocationStore#read}
     * @throws IllegalArgumentException if an argument is outside its limits
     * @throws NullPointerException if the reference, the payload or the retention is {@code null}
     */
    CompletionStage<ZLinkBlobPutResult> put(
            ZLinkBlobReference reference, byte[] payload, Duration retention, ZLinkStoreCancellation cancellation);

    /**
     * Reads a blob: exactly the bytes that were put, or that it is missing.
     *
     * @param reference the reference
     * @param cancellation asked before the start and while waiting; {@code null}: never cancelled
     * @return the blob, or that there is none; ends as that of {@link ZLinkLocationStore#read}
     * @throws IllegalArgumentException if the reference is outside its limits
     * @throws NullPointerException if the reference is {@code null}
     */
    CompletionStage<ZLinkBlobReadResult> read(ZLinkBlobReference reference, ZLinkStoreCancellation cancellation);

    /**
     * Sets the expiry to the provider's now + {@code retention}, also when that is earlier than before.
     *
     * @param reference the reference
     * @param retention 1 to 2<sup>53</sup>-1 milliseconds, parts of a millisecond rounded up
     * @param cancellation asked before the start and while waiting; {@code null}: never cancelled
     * @return the new expiry, or that there is no such blob; ends as that of {@link ZLinkLocationStore#read}
     * @throws IllegalArgumentException if an argument is outside its limits
     * @throws NullPointerException if the reference or the retention is {@code null}
     */
    CompletionStage<ZLinkBlobRenewResult> renew(
            ZLinkBlobReference reference, Duration retention, ZLinkStoreCancellation cancellation);

    /**
     * Deletes a blob. A missing one is fine.
     *
     * @param reference the reference
     * @param cancellation asked before the start and while waiting; {@code null}: never cancelled
     * @return nothing, once the blob is gone; ends as that of {@link ZLinkLocationStore#read}
     * @throws IllegalArgumentException if the reference is outside its limits
     * @throws NullPointerException if the reference is {@code null}
     */
    CompletionStage<Void> delete(ZLinkBlobReference reference, ZLinkStoreCancellation cancellation);
}
