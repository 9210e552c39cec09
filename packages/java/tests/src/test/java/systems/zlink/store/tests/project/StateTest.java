package systems.zlink.store.tests.project;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static systems.zlink.store.tests.project.Projects.inMemory;
import static systems.zlink.store.tests.project.Projects.join;
import static systems.zlink.store.tests.support.Stores.end;

import com.google.gson.Gson;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import systems.zlink.project.state.*;
import systems.zlink.store.ZLinkStoreException;

/** What is Java's own about a project and its state: options, values, exceptions. */
class StateTest {
    private record Cursor(String page, int line) {}

    private static void invalid(String argument, Executable call) {
        ValidationException wrong = assertThrows(ValidationException.class, call);
        assertTrue(wrong.getMessage().startsWith(argument), wrong.getMessage());
        assertEquals(List.of("INVALID_ARGUMENT", "notApplied", false), List.of(wrong.code(), wrong.outcome(), wrong.retryable()));
    }

    private static void missing(String argument, Executable call) {
        assertEquals(argument + " must not be null", assertThrows(NullPointerException.class, call).getMessage());
    }

    @Test
    void wrongOptionsAreNamedWhenTheProjectIsMade() {
        ProjectOptions right = new ProjectOptions("memory:", "acme", "shop");
        new Project(right).close();
        missing("options", () -> new Project(null));
        missing("url", () -> new Project(new ProjectOptions(null, "w", "p")));
        missing("workspace", () -> new Project(new ProjectOptions("memory:", null, "p")));
        missing("project", () -> new Project(new ProjectOptions("memory:", "w", null)));
        missing("operationTimeout", () -> new Project(right.withOperationTimeout(null)));
        invalid("url", () -> new Project(new ProjectOptions("nothing", "w", "p")));
        invalid("url", () -> new Project(new ProjectOptions("\ud800", "w", "p")));
        invalid("workspace", () -> new Project(new ProjectOptions("memory:", "a b", "p")));
        invalid("workspace", () -> new Project(new ProjectOptions("memory:", "\ud800", "p")));
        invalid("project", () -> new Project(new ProjectOptions("memory:", "w", "")));
        invalid("operationTimeout", () -> new Project(right.withOperationTimeout(Duration.ZERO)));
        invalid("operationTimeout", () -> new Project(right.withOperationTimeout(Duration.ofMillis(-1))));
    }

    @Test
    void noPasswordIsShown() {
        ProjectOptions options = new ProjectOptions("redis://user:s3cret@host:port", "w", "p");
        ValidationException wrong = assertThrows(ValidationException.class, () -> new Project(options));
        assertFalse(wrong.getMessage().contains("s3cret"));
        assertFalse(options.toString().contains("s3cret"));
    }

    @Test
    void aProjectIsPingedCountedAndClosedOnce() throws Throwable {
        Project project = inMemory();
        assertInstanceOf(Instant.class, join(project.ping()));
        StateNamespace<String> namespace = project.state().namespace("n");
        join(namespace.get("k"));
        DistributedLocks locks = project.locks();
        LockLease lease = join(locks.acquire("k")).orElseThrow();
        assertEquals(1, project.stats().operations().get("read"));
        assertEquals(1, project.stats().operations().get("acquire"));
        project.close();
        project.close();
        for (Object end : List.of(end(namespace.get("k")), end(locks.acquire("k")), end(lease.renew()), end(project.ping()))) {
            assertEquals("CLOSED", assertInstanceOf(ZLinkStoreException.class, end).code());
        }
        assertEquals("CLOSED", assertThrows(ZLinkStoreException.class, project::locks).code());
        assertEquals("CLOSED", assertThrows(ZLinkStoreException.class, project::stats).code());
        // Arguments are still looked at.
        invalid("key", () -> namespace.get("a b"));
    }

    @Test
    void aNamespaceIsCheckedAtOnce() throws Throwable {
        try (Project project = inMemory()) {
            ProjectState state = project.state();
            invalid("namespace", () -> state.namespace("a b"));
            invalid("namespace", () -> state.namespace("\ud800"));
            missing("namespace", () -> state.namespace(null));
            missing("codec", () -> state.namespace("n", null));
            assertEquals("n", state.namespace("n").name());
            assertEquals(0, project.stats().operations().get("read"), "nothing was asked");
        }
    }

    @Test
    void jsonTextComesBackInTheFormOfStringify() throws Throwable {
        try (Project project = inMemory()) {
            StateNamespace<String> namespace = project.state().namespace("n");
            StateEntry<String> first = join(namespace.set("k", " { \"a\" : [ 1.50, \"\\u0041\\/\" ] } "));
            assertEquals("{\"a\":[1.50,\"A/\"]}", first.value());
            assertEquals(first, join(namespace.get("k")).orElseThrow());
            assertNull(first.expiresAt());
            assertEquals(first.createdAt(), first.updatedAt());
            String large = '"' + "x".repeat(32_766) + '"';
            assertEquals(large, join(namespace.set("k", large)).value());
            assertEquals(large, join(namespace.get("k")).orElseThrow().value());
            for (String wrong : List.of("", "{", "undefined", "1 2", "\ud800", "\"" + "x".repeat(32_767) + '"', "[".repeat(100_000))) {
                invalid("value", () -> namespace.set("k", wrong));
            }
            missing("value", () -> namespace.set("k", null));
            assertEquals(2, join(namespace.get("k")).orElseThrow().version());
        }
    }

    @Test
    void aCodecMakesValuesOfAnyKind() throws Throwable {
        Gson gson = new Gson();
        JsonCodec<Cursor> codec = JsonCodec.of(gson::toJson, json -> gson.fromJson(json, Cursor.class));
        try (Project project = inMemory()) {
            StateNamespace<Cursor> namespace = project.state().namespace("n", codec);
            Cursor cursor = new Cursor("next", 7);
            assertEquals(cursor, join(namespace.set("k", cursor)).value());
            assertEquals(cursor, join(namespace.get("k")).orElseThrow().value());
            assertEquals("{\"page\":\"next\",\"line\":7}", join(project.state().namespace("n").get("k")).orElseThrow().value());
        }
    }

    @Test
    void whatACodecThrowsIsTold() throws Throwable {
        IOException own = new IOException("own");
        AtomicInteger decoded = new AtomicInteger();
        JsonCodec<String> broken = JsonCodec.of(
                text -> {
                    if (text.isEmpty()) {
                        throw own;
                    }
                    return text;
                },
                json -> {
                    decoded.incrementAndGet();
                    throw own;
                });
        try (Project project = inMemory()) {
            StateNamespace<String> namespace = project.state().namespace("n", broken);
            invalid("value must be a JSON value: own", () -> namespace.set("k", ""));
            assertSame(own, assertThrows(ValidationException.class, () -> namespace.set("k", "")).getCause());
            assertEquals(java.util.Optional.empty(), join(namespace.get("k")), "nothing to decode");
            assertSame(own, end(namespace.set("k", "1")));
            assertSame(own, end(namespace.get("k")));
            assertEquals(2, decoded.get());
            assertEquals("1", join(project.state().namespace("n").get("k")).orElseThrow().value());
        }
    }

    @Test
    void wrongArgumentsAreThrownByTheCall() throws Throwable {
        try (Project project = inMemory()) {
            StateNamespace<String> namespace = project.state().namespace("n");
            for (String key : List.of("", "a b", "-a", "\ud800", "x".repeat(256), "a\n")) {
                invalid("key", () -> namespace.get(key));
                invalid("key", () -> namespace.set(key, "1"));
                invalid("key", () -> namespace.delete(key));
            }
            missing("key", () -> namespace.get(null));
            missing("key", () -> namespace.set(null, "1"));
            missing("key", () -> namespace.delete(null));
            for (long version : new long[] {-1, Long.MIN_VALUE, 1L << 53, Long.MAX_VALUE}) {
                invalid("expectedVersion", () -> namespace.set("k", "1", new StateWriteOptions(version, null)));
                invalid("expectedVersion", () -> namespace.delete("k", new StateDeleteOptions(version)));
            }
            for (Duration ttl : List.of(
                    Duration.ZERO, Duration.ofNanos(-1), Duration.ofSeconds(-1), Duration.ofDays(366), Duration.ofSeconds(Long.MAX_VALUE),
                    Duration.ofSeconds(Long.MIN_VALUE))) {
                invalid("ttlSeconds", () -> namespace.set("k", "1", StateWriteOptions.defaults().withTtl(ttl)));
            }
            assertTrue(join(namespace.get("k")).isEmpty());
        }
    }

    @Test
    void aPartOfASecondIsRoundedUp() throws Throwable {
        try (Project project = inMemory()) {
            StateNamespace<String> namespace = project.state().namespace("n");
            StateEntry<String> entry = join(namespace.set("k", "1", StateWriteOptions.defaults().withTtl(Duration.ofNanos(1))));
            assertEquals(entry.updatedAt().plusSeconds(1), entry.expiresAt());
            entry = join(namespace.set("k", "1", StateWriteOptions.defaults().withTtl(Duration.ofMillis(60_001))));
            assertEquals(entry.updatedAt().plusSeconds(61), entry.expiresAt());
            assertNull(join(namespace.set("k", "1")).expiresAt());
        }
    }

    @Test
    void conflictsAreExceptionsOfTheirKind() throws Throwable {
        try (Project project = inMemory()) {
            StateNamespace<String> namespace = project.state().namespace("n");
            StateWriteOptions absent = StateWriteOptions.defaults().withExpectedVersion(0);
            assertEquals(1, join(namespace.set("k", "1", absent)).version());
            StateConflictException conflict = assertInstanceOf(StateConflictException.class, end(namespace.set("k", "2", absent)));
            assertEquals(
                    List.of("STATE_CONFLICT", "notApplied", false), List.of(conflict.code(), conflict.outcome(), conflict.retryable()));
            assertTrue(conflict.getMessage().startsWith("there is an entry \"k\" in namespace \"n\", expectedVersion is 0"));
            conflict = assertInstanceOf(
                    StateConflictException.class, end(namespace.delete("k", StateDeleteOptions.defaults().withExpectedVersion(2))));
            assertTrue(conflict.getMessage().startsWith("the entry \"k\" in namespace \"n\" does not have the expected version 2"));
            assertTrue(join(namespace.delete("k", new StateDeleteOptions(1L))));
            assertFalse(join(namespace.delete("k")));
            assertFalse(join(namespace.delete("k", new StateDeleteOptions(0L))));
            for (ZLinkStoreException other : List.of(
                    new RateLimitException(), new LockLostException(), new LockUnavailableException("n", "k"))) {
                assertEquals("notApplied", other.outcome());
                assertEquals(other instanceof LockLostException, !other.retryable());
            }
        }
    }

    @Test
    void aCancellationEndsEveryCall() throws Throwable {
        try (Project project = inMemory()) {
            StateNamespace<String> namespace = project.state().namespace("n");
            assertInstanceOf(CancellationException.class, end(namespace.get("k", () -> true)));
            assertInstanceOf(CancellationException.class, end(namespace.set("k", "1", null, () -> true)));
            assertInstanceOf(CancellationException.class, end(namespace.delete("k", null, () -> true)));
            invalid("key", () -> namespace.get("a b", () -> true));
            assertTrue(join(namespace.get("k", () -> false)).isEmpty());
        }
    }
}
