package systems.zlink.project.state;

import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletionStage;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;
import systems.zlink.store.internal.NativeLease;
import systems.zlink.store.internal.Nothing;

/** A lease of the native library. */
final class Lease implements LockLease {
    private final NativeLease lease;

    Lease(NativeLease lease) {
        this.lease = lease;
    }

    @Override
    public String id() {
        return lease.id();
    }

    @Override
    public String key() {
        return lease.key();
    }

    @Override
    public String namespace() {
        return lease.namespace();
    }

    @Override
    public long fencingToken() {
        return lease.fencingToken();
    }

    @Override
    public Instant expiresAt() {
        return lease.expiresAt();
    }

    @Override
    public CompletionStage<Void> renew(Duration leaseTime, ZLinkStoreCancellation cancellation) {
        return Checked.call(() -> lease.renew(leaseTime, cancellation, Lease::heldStill));
    }

    @Override
    public CompletionStage<Void> release(ZLinkStoreCancellation cancellation) {
        return lease.release(cancellation, Lease::heldStill);
    }

    private static Void heldStill(Object answer) {
        if (answer == Nothing.LOST) {
            throw new LockLostException();
        }
        return null;
    }

    /** Without the id, which is not for logs. */
    @Override
    public String toString() {
        return "LockLease[namespace=" + namespace() + ", key=" + key() + ", fencingToken=" + fencingToken() + "]";
    }
}
