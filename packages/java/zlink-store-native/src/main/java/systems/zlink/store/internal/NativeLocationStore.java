package systems.zlink.store.internal;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import systems.zlink.framework.locationprovider.ZLinkLocationStore;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;
import systems.zlink.framework.locationprovider.ZLinkStoreCondition;
import systems.zlink.framework.locationprovider.ZLinkStoreDelete;
import systems.zlink.framework.locationprovider.ZLinkStoreKey;
import systems.zlink.framework.locationprovider.ZLinkStoreMissingCondition;
import systems.zlink.framework.locationprovider.ZLinkStoreMutation;
import systems.zlink.framework.locationprovider.ZLinkStorePut;
import systems.zlink.framework.locationprovider.ZLinkStoreReadResult;
import systems.zlink.framework.locationprovider.ZLinkStoreScanCursor;
import systems.zlink.framework.locationprovider.ZLinkStoreScanRequest;
import systems.zlink.framework.locationprovider.ZLinkStoreScanResult;
import systems.zlink.framework.locationprovider.ZLinkStoreVersionCondition;
import systems.zlink.framework.locationprovider.ZLinkStoreWriteRequest;
import systems.zlink.framework.locationprovider.ZLinkStoreWriteResult;

/** A Location Store of the native library. */
public final class NativeLocationStore extends NativeStore implements ZLinkLocationStore {
    /** Bytes that a small request, or an element of one, takes. */
    private static final int TYPICAL = 64;

    private static final byte FIRST_PAGE = 0;
    private static final byte LATER_PAGE = 1;
    private static final byte MISSING = 0;
    private static final byte VERSION = 1;

    /**
     * Opens a store, without I/O.
     *
     * @param front the store that callers see
     * @param place where the data is
     */
    public NativeLocationStore(Object front, Place place) {
        super(front, false, place);
    }

    @Override
    public CompletionStage<ZLinkStoreReadResult> read(ZLinkStoreKey key, ZLinkStoreCancellation cancellation) {
        String text = Arguments.text("key", key, key == null ? null : key.value());
        return submit(new Call<>(Wire.ASK_READ), new Packer(4 + 3 * text.length()).text(text), cancellation);
    }

    @Override
    public CompletionStage<ZLinkStoreWriteResult> write(ZLinkStoreWriteRequest request, ZLinkStoreCancellation cancellation) {
        Arguments.given("request", request);
        List<ZLinkStoreCondition> conditions = request.conditions();
        List<ZLinkStoreMutation> mutations = request.mutations();
        Packer packer = new Packer(TYPICAL * (1 + conditions.size() + mutations.size()));
        packer.word(conditions.size()).word(mutations.size());
        for (int index = 0; index < conditions.size(); index++) {
            pack(packer, conditions.get(index), index);
        }
        List<ZLinkStoreKey> puts = new ArrayList<>(mutations.size());
        long bytes = 0;
        for (int index = 0; index < mutations.size(); index++) {
            if (mutations.get(index) instanceof ZLinkStorePut put) {
                bytes += put.bytes() == null ? 0 : put.bytes().length;
                // What makes the request too large whatever it holds need not be copied to be refused.
                pack(packer, put, index, bytes <= Limits.WRITE);
                puts.add(put.key());
            } else {
                pack(packer, mutations.get(index), index);
            }
        }
        return submit(new Call<>(Wire.ASK_WRITE, puts), packer, cancellation);
    }

    @Override
    public CompletionStage<ZLinkStoreScanResult> scan(ZLinkStoreScanRequest request, ZLinkStoreCancellation cancellation) {
        Arguments.given("request", request);
        String prefix = Arguments.given("prefix", request.prefix());
        Packer packer = new Packer(TYPICAL + 3 * prefix.length()).text(prefix).number(request.limit());
        ZLinkStoreScanCursor cursor = request.cursor();
        if (cursor == null) {
            packer.flag(FIRST_PAGE);
        } else {
            packer.flag(LATER_PAGE).text(Arguments.text("cursor", cursor, cursor.value()));
        }
        return submit(new Call<>(Wire.ASK_SCAN), packer, cancellation);
    }

    private static void pack(Packer packer, ZLinkStoreCondition condition, int index) {
        if (condition instanceof ZLinkStoreVersionCondition version) {
            packer.flag(VERSION).text(key("conditions", index, version.key()));
            if (version.expected() == null || version.expected().value() == null) {
                throw Arguments.missing("conditions", index, "expected");
            }
            packer.text(version.expected().value());
        } else if (condition instanceof ZLinkStoreMissingCondition missing) {
            packer.flag(MISSING).text(key("conditions", index, missing.key()));
        } else {
            throw Arguments.missing("conditions", index, null);
        }
    }

    private static void pack(Packer packer, ZLinkStorePut put, int index, boolean fits) {
        byte[] bytes = put.bytes();
        packer.flag(put.retention() == null ? Wire.MUTATION_PUT : Wire.MUTATION_PUT_FOR);
        packer.text(key("mutations", index, put.key()));
        if (put.retention() != null) {
            packer.number(Durations.millis(put.retention()));
        }
        if (bytes == null) {
            throw Arguments.missing("mutations", index, "bytes");
        }
        if (fits && bytes.length <= Limits.VALUE) {
            packer.value(bytes);
        } else {
            packer.elsewhere(bytes.length);
        }
    }

    private static void pack(Packer packer, ZLinkStoreMutation mutation, int index) {
        if (!(mutation instanceof ZLinkStoreDelete delete)) {
            throw Arguments.missing("mutations", index, null);
        }
        packer.flag(Wire.MUTATION_DELETE).text(key("mutations", index, delete.key()));
    }

    private static String key(String list, int index, ZLinkStoreKey key) {
        if (key == null || key.value() == null) {
            throw Arguments.missing(list, index, "key");
        }
        return key.value();
    }
}
