package systems.zlink.store.internal;

import java.time.Instant;

/**
 * A state entry.
 *
 * @param json the value's JSON text
 * @param version its version
 * @param expiresAt when it expires, or {@code null}
 * @param createdAt when its first version was written
 * @param updatedAt when this version was written
 */
public record Entry(String json, long version, Instant expiresAt, Instant createdAt, Instant updatedAt) {}
