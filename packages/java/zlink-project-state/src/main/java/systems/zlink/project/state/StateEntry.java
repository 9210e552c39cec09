package systems.zlink.project.state;

import java.time.Instant;

/**
 * A live entry. Times are those of the engine's clock.
 *
 * @param <T> the value
 * @param value the value
 * @param version counts the writes since the entry was created: 1, 2, 3 …; after a deletion or expiry it starts again at 1
 * @param expiresAt when it stops being there; {@code null}: it does not expire
 * @param createdAt when its version 1 was written
 * @param updatedAt when this version was written
 */
public record StateEntry<T>(T value, long version, Instant expiresAt, Instant createdAt, Instant updatedAt) {}
