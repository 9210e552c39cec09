package systems.zlink.store.internal;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.concurrent.CompletionStage;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;

/** Something that native code knows by a number, and forgets when nobody can use it any more. */
abstract class Numbered {
    /** Names nothing: a request to it is only checked. */
    private static final int NOTHING = -1;

    private static final Cleaner CLEANER = Cleaner.create();

    private final int number;
    private final Cleaner.Cleanable forgotten;

    /** {@code forget} makes native code forget the number; it must not know this object. */
    Numbered(int number, Runnable forget) {
        this.number = number;
        forgotten = CLEANER.register(this, forget);
    }

    /**
     * The number that a record holds.
     *
     * @throws RuntimeException the error that it holds in its place
     */
    static int numberOf(byte[] opened) {
        if (Answers.errorOrNull(opened) instanceof RuntimeException error) {
            throw error;
        }
        return Unpacker.extra(opened, 0);
    }

    final int number() {
        return number;
    }

    /** Has native code forget it at once. */
    final void forgotten() {
        forgotten.clean();
    }

    /** Checks the arguments, asks whether the operation is wanted at all, and starts it. */
    final <T> CompletionStage<T> submit(Call<T> call, Packer request, ZLinkStoreCancellation cancellation) {
        Throwable unwanted = Watches.askFirst(cancellation);
        Collector.submit(call, unwanted == null ? number : NOTHING, request, unwanted);
        // Before it was taken, the cleaner must not have the number forgotten.
        Reference.reachabilityFence(this);
        if (cancellation != null && !call.isDone()) {
            Watches.add(cancellation, call);
        }
        return call;
    }

    /** Checks the arguments of a request, and no more. */
    static void check(int asked, Packer request) {
        Collector.submit(new Call<>(asked), NOTHING, request, new IllegalStateException("it was only checked"));
    }
}
