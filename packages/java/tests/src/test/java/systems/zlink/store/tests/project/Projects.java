package systems.zlink.store.tests.project;

import java.time.Duration;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import systems.zlink.project.state.LockOptions;
import systems.zlink.project.state.Project;
import systems.zlink.project.state.ProjectOptions;

/** Shorthand for what the tests of projects do. */
final class Projects {
    private Projects() {}

    static Project inMemory() {
        return at("memory:");
    }

    static Project at(String url) {
        return new Project(new ProjectOptions(url, "acme", "shop"));
    }

    static LockOptions waiting(long ms) {
        return LockOptions.defaults().withWaitTime(Duration.ofMillis(ms));
    }

    /** The result; fails with the very exception. */
    static <T> T join(CompletionStage<T> stage) throws Throwable {
        try {
            return stage.toCompletableFuture().join();
        } catch (CompletionException failure) {
            throw failure.getCause();
        }
    }
}
