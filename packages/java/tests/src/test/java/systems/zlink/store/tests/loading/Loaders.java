package systems.zlink.store.tests.loading;

import java.io.File;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Runs the workout in class loaders of its own, whose parent knows nothing of the packages. */
final class Loaders {
    private Loaders() {}

    /** Arguments: how, the class path, and those of the workout. */
    public static void main(String... arguments) throws Exception {
        String classPath = arguments[1];
        String[] rest = Arrays.copyOfRange(arguments, 2, arguments.length);
        switch (arguments[0]) {
            case "child" -> run(loader(classPath), null, rest);
            case "two" -> {
                List<Thread> threads = new ArrayList<>();
                List<Throwable> failures = new ArrayList<>();
                for (int index = 0; index < 2; index++) {
                    URLClassLoader loader = loader(classPath);
                    Thread thread = new Thread(() -> {
                        try {
                            run(loader, loader, rest);
                        } catch (Throwable failure) {
                            synchronized (failures) {
                                failures.add(failure);
                            }
                        }
                    });
                    thread.start();
                    threads.add(thread);
                }
                for (Thread thread : threads) {
                    thread.join();
                }
                for (Throwable failure : failures) {
                    throw new AssertionError(failure);
                }
            }
            case "again" -> {
                List<WeakReference<ClassLoader>> gone = new ArrayList<>();
                for (int round = 0; round < 3; round++) {
                    gone.add(reload(classPath, rest));
                }
                awaitCollected(gone);
            }
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static WeakReference<ClassLoader> reload(String classPath, String[] arguments) throws Exception {
        URLClassLoader loader = loader(classPath);
        run(loader, loader, arguments);
        loader.close();
        return new WeakReference<>(loader);
    }

    private static void awaitCollected(List<WeakReference<ClassLoader>> loaders) throws InterruptedException {
        long end = System.nanoTime() + 60_000_000_000L;
        while (loaders.stream().anyMatch(loader -> loader.get() != null)) {
            if (System.nanoTime() > end) {
                throw new AssertionError("a class loader is still held: " + Thread.getAllStackTraces().keySet());
            }
            System.gc();
            Thread.sleep(100);
        }
    }

    private static URLClassLoader loader(String classPath) throws Exception {
        List<URL> places = new ArrayList<>();
        for (String place : classPath.split(File.pathSeparator)) {
            places.add(Path.of(place).toUri().toURL());
        }
        return new URLClassLoader(places.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
    }

    private static void run(ClassLoader loader, ClassLoader context, String[] arguments) throws Exception {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(context);
        try {
            Class<?> workout = Class.forName("systems.zlink.store.tests.loading.Workout", true, loader);
            if (workout.getClassLoader() != loader) {
                throw new AssertionError("the parent has it");
            }
            workout.getMethod("main", String[].class).invoke(null, (Object) arguments);
        } finally {
            thread.setContextClassLoader(before);
        }
    }
}
