package systems.zlink.store.internal;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The packed form of requests and answers; core/src/packed/wire.rs is the other side, and says what each record holds.
 *
 * <p>A record begins with four words: kind, ticket, one that depends on the kind, and the record's length. Words are 32 bits wide, numbers
 * are doubles, both little-endian.
 */
final class Wire {
    static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    static final VarHandle NUMBER = MethodHandles.byteArrayViewVarHandle(double[].class, ByteOrder.LITTLE_ENDIAN);

    static final int HEADER = 16;

    static final int ASK_READ = 1;
    static final int ASK_WRITE = 2;
    static final int ASK_SCAN = 3;
    static final int ASK_PUT = 4;
    static final int ASK_BLOB_READ = 5;
    static final int ASK_RENEW = 6;
    static final int ASK_DELETE = 7;
    static final int ASK_PING = 8;
    static final int ASK_CLOSE = 9;
    static final int ASK_STATE_GET = 10;
    static final int ASK_STATE_SET = 11;
    static final int ASK_STATE_DELETE = 12;
    static final int ASK_LOCK_ACQUIRE = 13;
    static final int ASK_LOCK_ATTACH = 14;
    static final int ASK_LOCK_RENEW = 15;
    static final int ASK_LOCK_RELEASE = 16;

    static final byte HERE = 0;
    static final byte BESIDE = 1;
    static final byte ELSEWHERE = 2;

    static final byte LEFT_OUT = 0;
    static final byte THERE = 1;

    static final byte MUTATION_DELETE = 0;
    static final byte MUTATION_PUT = 1;
    static final byte MUTATION_PUT_FOR = 3;

    static final int MISSING = 1;
    static final int FOUND = 2;
    static final int FOUND_LARGE = 3;
    static final int APPLIED = 4;
    static final int CONFLICT = 5;
    static final int PAGE = 6;
    static final int EXPIRED = 7;
    static final int STORED = 8;
    static final int ALREADY_STORED = 9;
    static final int RENEWED = 10;
    static final int DONE = 11;
    static final int TIME = 12;
    static final int ERROR = 13;
    static final int CANCELLED = 14;
    static final int SEGMENT = 15;
    static final int LOG = 16;
    static final int BIG = 17;
    static final int ENTRY = 18;
    static final int ABSENT = 19;
    static final int VERSION_CONFLICT = 20;
    static final int LIMIT_REACHED = 21;
    static final int LEASE = 22;
    static final int LOST = 23;

    static final int OPENED = 0x100;
    static final int OPENED_INLINE = 0x101;

    /** A bit of a length word: the bytes are kept under the number that follows. */
    static final int KEPT = 1 << 31;

    private Wire() {}
}
