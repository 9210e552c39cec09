package systems.zlink.store.internal;

import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import systems.zlink.framework.locationprovider.ZLinkBlobAlreadyStored;
import systems.zlink.framework.locationprovider.ZLinkBlobConflict;
import systems.zlink.framework.locationprovider.ZLinkBlobFound;
import systems.zlink.framework.locationprovider.ZLinkBlobMissing;
import systems.zlink.framework.locationprovider.ZLinkBlobRenewMissing;
import systems.zlink.framework.locationprovider.ZLinkBlobRenewed;
import systems.zlink.framework.locationprovider.ZLinkBlobStored;
import systems.zlink.framework.locationprovider.ZLinkStoreKey;
import systems.zlink.framework.locationprovider.ZLinkStoreReadFound;
import systems.zlink.framework.locationprovider.ZLinkStoreReadMissing;
import systems.zlink.framework.locationprovider.ZLinkStoreScanCursor;
import systems.zlink.framework.locationprovider.ZLinkStoreScanExpired;
import systems.zlink.framework.locationprovider.ZLinkStoreScanItem;
import systems.zlink.framework.locationprovider.ZLinkStoreScanPage;
import systems.zlink.framework.locationprovider.ZLinkStoreScanPageResult;
import systems.zlink.framework.locationprovider.ZLinkStoreValue;
import systems.zlink.framework.locationprovider.ZLinkStoreVersion;
import systems.zlink.framework.locationprovider.ZLinkStoreWriteApplied;
import systems.zlink.framework.locationprovider.ZLinkStoreWriteConflict;
import systems.zlink.store.ZLinkStoreException;
import systems.zlink.store.ZLinkStoreStats;
import systems.zlink.store.ZLinkStoreTimeoutException;

/** Turns records into results and exceptions. */
final class Answers {
    private Answers() {}

    /**
     * The result that the record at {@code start} holds.
     *
     * @param asked what was asked for
     * @param puts the keys of the puts of a write, in order
     * @throws Exception the error that the record holds
     */
    static Object result(int asked, List<ZLinkStoreKey> puts, byte[] record, int start) throws Exception {
        int kind = Unpacker.kind(record, start);
        int extra = Unpacker.extra(record, start);
        if (kind == Wire.BIG) {
            return result(asked, puts, Native.take(extra, true), 0);
        }
        Unpacker fields = new Unpacker(record, start);
        return switch (kind) {
            case Wire.MISSING -> switch (asked) {
                case Wire.ASK_READ -> new ZLinkStoreReadMissing(fields.time());
                case Wire.ASK_BLOB_READ -> new ZLinkBlobMissing(fields.time());
                default -> new ZLinkBlobRenewMissing(fields.time());
            };
            case Wire.FOUND, Wire.FOUND_LARGE -> found(asked, fields, extra, kind == Wire.FOUND_LARGE);
            case Wire.APPLIED -> applied(fields, extra, puts);
            case Wire.CONFLICT -> asked == Wire.ASK_WRITE
                    ? new ZLinkStoreWriteConflict(fields.time())
                    : new ZLinkBlobConflict(fields.time());
            case Wire.PAGE -> new ZLinkStoreScanPageResult(page(fields, extra));
            case Wire.EXPIRED -> new ZLinkStoreScanExpired();
            case Wire.STORED -> {
                Instant storeNow = fields.time();
                yield new ZLinkBlobStored(fields.time(), storeNow);
            }
            case Wire.ALREADY_STORED -> {
                Instant storeNow = fields.time();
                yield new ZLinkBlobAlreadyStored(fields.time(), storeNow);
            }
            case Wire.RENEWED -> {
                if (asked == Wire.ASK_LOCK_RENEW) {
                    yield fields.time();
                }
                Instant storeNow = fields.time();
                yield new ZLinkBlobRenewed(fields.time(), storeNow);
            }
            case Wire.ENTRY -> entry(fields);
            case Wire.ABSENT -> Nothing.ABSENT;
            case Wire.VERSION_CONFLICT -> Nothing.VERSION_CONFLICT;
            case Wire.LIMIT_REACHED -> Nothing.LIMIT_REACHED;
            case Wire.LOST -> Nothing.LOST;
            case Wire.LEASE -> new NativeLease(extra, fields);
            case Wire.DONE -> null;
            case Wire.TIME -> fields.time();
            case Wire.CANCELLED -> throw new CancellationException("the operation was cancelled");
            case Wire.ERROR -> throw failure(fields, extra);
            default -> throw internal("an answer of the unknown kind " + kind, null);
        };
    }

    /** Gives back what native code keeps for a record that nobody wants, and the lock that was acquired. */
    static void discard(int asked, List<ZLinkStoreKey> puts, byte[] record) {
        try {
            if (Unpacker.kind(record, 0) == Wire.LEASE) {
                unwantedLease(asked, record);
            } else {
                result(asked, puts, record, 0);
            }
        } catch (Exception failure) {
            // Nobody waits for it.
        }
    }

    /** Gives a lease back that has not reached its caller. An attached one is somebody else's, too. */
    static void unwantedLease(int asked, byte[] record) {
        int number = Unpacker.extra(record, 0);
        if (asked == Wire.ASK_LOCK_ACQUIRE) {
            NativeLease.giveBack(number);
        } else {
            Native.forget(number);
        }
    }

    /** The error that a record holds, if it holds one. */
    static Exception errorOrNull(byte[] record) {
        return Unpacker.kind(record, 0) == Wire.ERROR ? failure(new Unpacker(record, 0), Unpacker.extra(record, 0)) : null;
    }

    static ZLinkStoreStats stats(byte[] record) {
        Unpacker fields = new Unpacker(record, 0);
        Map<String, Long> operations = counts(fields);
        Map<String, Long> errors = counts(fields);
        List<Long> latencies = new ArrayList<>();
        for (int left = fields.word(); left > 0; left--) {
            latencies.add((long) fields.number());
        }
        return new ZLinkStoreStats(
                operations, errors, latencies, (long) fields.number(), (long) fields.number(), (long) fields.number());
    }

    static ZLinkStoreException internal(String said, Throwable cause) {
        return new ZLinkStoreException("INTERNAL", "unknown", false, said, cause);
    }

    private static Object found(int asked, Unpacker fields, int versionLength, boolean kept) {
        Instant storeNow = fields.time();
        Instant expiresAt = fields.timeOrNull();
        String version = fields.text(versionLength);
        byte[] bytes = kept ? Native.take(fields.word(), true) : fields.rest();
        return asked == Wire.ASK_READ
                ? new ZLinkStoreReadFound(new ZLinkStoreValue(bytes, new ZLinkStoreVersion(version), expiresAt, storeNow))
                : new ZLinkBlobFound(bytes, expiresAt, storeNow);
    }

    private static Entry entry(Unpacker fields) {
        long version = (long) fields.number();
        Instant createdAt = fields.time();
        Instant updatedAt = fields.time();
        Instant expiresAt = fields.timeOrNull();
        return new Entry(fields.text(), version, expiresAt, createdAt, updatedAt);
    }

    private static ZLinkStoreWriteApplied applied(Unpacker fields, int count, List<ZLinkStoreKey> puts) {
        Instant storeNow = fields.time();
        if (count == 1) {
            return new ZLinkStoreWriteApplied(Map.of(puts.get(0), new ZLinkStoreVersion(fields.text())), storeNow);
        }
        Map<ZLinkStoreKey, ZLinkStoreVersion> versions = new LinkedHashMap<>(count * 2);
        for (ZLinkStoreKey put : puts) {
            versions.put(put, new ZLinkStoreVersion(fields.text()));
        }
        return new ZLinkStoreWriteApplied(versions, storeNow);
    }

    private static ZLinkStoreScanPage page(Unpacker fields, int count) {
        Instant storeNow = fields.time();
        String cursor = fields.text();
        ZLinkStoreScanItem[] items = new ZLinkStoreScanItem[count];
        Throwable failed = null;
        for (int index = 0; index < count; index++) {
            Instant expiresAt = fields.timeOrNull();
            ZLinkStoreKey key = new ZLinkStoreKey(fields.text());
            ZLinkStoreVersion version = new ZLinkStoreVersion(fields.text());
            int length = fields.word();
            try {
                byte[] bytes = length == Wire.KEPT ? Native.take(fields.word(), failed == null) : fields.part(length);
                items[index] = new ZLinkStoreScanItem(key, new ZLinkStoreValue(bytes, version, expiresAt, storeNow));
            } catch (OutOfMemoryError error) {
                // What else is kept must not stay behind.
                failed = error;
            }
        }
        if (failed != null) {
            throw internal("there is no memory for the page", failed);
        }
        return new ZLinkStoreScanPage(List.of(items), cursor.isEmpty() ? null : new ZLinkStoreScanCursor(cursor), storeNow);
    }

    private static Map<String, Long> counts(Unpacker fields) {
        Map<String, Long> counts = new LinkedHashMap<>();
        for (int left = fields.word(); left > 0; left--) {
            counts.put(fields.text(), (long) fields.number());
        }
        return counts;
    }

    private static Exception failure(Unpacker fields, int flags) {
        String code = fields.text();
        fields.text(); // The argument's name, which the message begins with.
        String message = fields.text();
        String outcome = (flags & 1) != 0 ? "unknown" : "notApplied";
        return switch (code) {
            case "INVALID_ARGUMENT" -> new IllegalArgumentException(message);
            case "CANCELLED" -> new CancellationException(message);
            case "TIMEOUT" -> new ZLinkStoreTimeoutException(outcome, message);
            default -> new ZLinkStoreException(code, outcome, (flags & 2) != 0, message, null);
        };
    }
}
