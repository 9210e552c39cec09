package systems.zlink.store.tests.binding;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.store.ZLinkStoreException;
import systems.zlink.store.tests.support.Stores;

/** Works with less memory than the answers need: every stage ends, and afterwards all is well. */
final class Starved {
    private static final int OPERATIONS = 300;
    private static final long RESIDENT_BOUND = 256L << 20;

    /** What the heap is filled with. */
    private static Object[] ballast;

    private Starved() {}

    public static void main(String... arguments) throws Exception {
        try (var store = Stores.redis(arguments[0], Duration.ofSeconds(60));
                var blobs = Stores.redisBlobs(arguments[0], Duration.ofSeconds(60))) {
            Stores.await(store.write(Stores.put("k", new byte[1_000]), null));
            answersThatDoNotFit(store, blobs);
            System.out.println("large: all ended");
            fullHeap(store);
            Stores.await(store.read(Stores.key("k"), null));
            System.out.println("full: all ended");
        }
    }

    // ---- one answer that is larger than the heap -----------------------------------------------------------------------------------

    private static void answersThatDoNotFit(ZLinkLocationStore store, ZLinkRelocationStore blobs) throws Exception {
        long before = 0;
        for (int round = 0; round < 12; round++) {
            CompletableFuture<?> stage = blobs.read(Stores.reference("huge"), null).toCompletableFuture();
            switch (round % 3) {
                case 0 -> isOutOfMemory(Stores.end(stage));
                case 1 -> {
                    try {
                        stage.join();
                        throw new AssertionError("it has room");
                    } catch (CompletionException error) {
                        isOutOfMemory(error.getCause());
                    }
                }
                default -> {
                    try {
                        stage.get();
                        throw new AssertionError("it has room");
                    } catch (ExecutionException error) {
                        isOutOfMemory(error.getCause());
                    }
                }
            }
            Stores.await(store.read(Stores.key("k"), null));
            before = round == 2 ? resident() : before;
        }
        // Native code keeps none of what did not fit.
        long grown = resident() - before;
        if (grown > RESIDENT_BOUND) {
            throw new AssertionError(grown + " bytes are left");
        }
    }

    private static void isOutOfMemory(Object end) {
        if (!(end instanceof ZLinkStoreException error && error.code().equals("INTERNAL") && error.getCause() instanceof OutOfMemoryError)) {
            throw new AssertionError("ended with " + end);
        }
    }

    private static long resident() throws Exception {
        return Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]) * 4_096;
    }

    // ---- no room for anything --------------------------------------------------------------------------------------------------------

    private static void fullHeap(ZLinkLocationStore store) throws Exception {
        List<CompletableFuture<?>> stages = new ArrayList<>(OPERATIONS);
        boolean[] cancelled = {false};
        ZLinkStoreCancellation cancellation = () -> cancelled[0];
        ZLinkStoreKey key = Stores.key("k");
        ZLinkStoreScanRequest scan = new ZLinkStoreScanRequest("", null, 10);
        for (int round = 0; round < 5; round++) {
            for (int index = 0; index < OPERATIONS / 2; index++) {
                stages.add(store.read(key, index % 3 == 0 ? cancellation : null).toCompletableFuture());
            }
            fill();
            for (int index = 0; index < OPERATIONS / 2; index++) {
                try {
                    stages.add((index & 1) == 0 ? store.read(key, cancellation).toCompletableFuture() : store.scan(scan, null).toCompletableFuture());
                } catch (OutOfMemoryError noRoomForTheCall) {
                    // It has not returned a stage.
                }
            }
            cancelled[0] = round % 2 == 1;
            // Answers come in meanwhile: this is how long there is no room for them.
            long until = System.nanoTime() + 300_000_000;
            while (System.nanoTime() < until) {
                Thread.onSpinWait();
            }
            ballast = null;
            for (CompletableFuture<?> stage : stages) {
                // A result, an exception of the contract, or what it lacked.
                Stores.end(stage);
            }
            stages.clear();
            cancelled[0] = false;
        }
    }

    /** Takes all of the heap, in ever smaller pieces. */
    private static void fill() {
        Object[] pieces = new Object[1 << 16];
        ballast = pieces;
        int count = 0;
        for (int size = 1 << 20; size >= 16; size /= 2) {
            try {
                while (count < pieces.length) {
                    pieces[count] = new byte[size];
                    count++;
                }
            } catch (OutOfMemoryError full) {
                // For pieces of this size.
            }
        }
    }
}
