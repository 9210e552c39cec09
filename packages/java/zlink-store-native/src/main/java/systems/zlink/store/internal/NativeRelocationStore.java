package systems.zlink.store.internal;

import java.time.Duration;
import java.util.concurrent.CompletionStage;
import systems.zlink.framework.locationprovider.ZLinkBlobPutResult;
import systems.zlink.framework.locationprovider.ZLinkBlobReadResult;
import systems.zlink.framework.locationprovider.ZLinkBlobReference;
import systems.zlink.framework.locationprovider.ZLinkBlobRenewResult;
import systems.zlink.framework.locationprovider.ZLinkRelocationStore;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;

/** A Relocation Store of the native library. */
public final class NativeRelocationStore extends NativeStore implements ZLinkRelocationStore {
    /** A larger payload stays where it is, and is copied part by part while it is being sent. */
    private static final int COPIED_AT_ONCE = 256 * 1024;

    /**
     * Opens a store, without I/O.
     *
     * @param front the store that callers see
     * @param place where the data is
     */
    public NativeRelocationStore(Object front, Place place) {
        super(front, true, place);
    }

    @Override
    public CompletionStage<ZLinkBlobPutResult> put(
            ZLinkBlobReference reference, byte[] payload, Duration retention, ZLinkStoreCancellation cancellation) {
        Packer packer = packed(reference);
        Arguments.given("payload", payload);
        packer.number(Durations.millis(Arguments.given("retention", retention)));
        if (payload.length <= COPIED_AT_ONCE) {
            return submit(new Call<>(Wire.ASK_PUT), packer.value(payload), cancellation);
        }
        return submit(new Call<>(Wire.ASK_PUT, payload), packer.elsewhere(payload.length), cancellation);
    }

    @Override
    public CompletionStage<ZLinkBlobReadResult> read(ZLinkBlobReference reference, ZLinkStoreCancellation cancellation) {
        return submit(new Call<>(Wire.ASK_BLOB_READ), packed(reference), cancellation);
    }

    @Override
    public CompletionStage<ZLinkBlobRenewResult> renew(
            ZLinkBlobReference reference, Duration retention, ZLinkStoreCancellation cancellation) {
        Packer packer = packed(reference).number(Durations.millis(Arguments.given("retention", retention)));
        return submit(new Call<>(Wire.ASK_RENEW), packer, cancellation);
    }

    @Override
    public CompletionStage<Void> delete(ZLinkBlobReference reference, ZLinkStoreCancellation cancellation) {
        return submit(new Call<>(Wire.ASK_DELETE), packed(reference), cancellation);
    }

    private static Packer packed(ZLinkBlobReference reference) {
        String text = Arguments.text("reference", reference, reference == null ? null : reference.value());
        return new Packer(32 + 3 * text.length()).text(text);
    }
}
