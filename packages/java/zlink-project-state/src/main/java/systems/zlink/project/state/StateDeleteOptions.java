package systems.zlink.project.state;

/**
 * How an entry is deleted. Limits are checked by the call.
 *
 * @param expectedVersion 0: only if there is no entry; n &gt; 0: only version n of it; {@code null}: in any case
 */
public record StateDeleteOptions(Long expectedVersion) {
    /**
     * In any case.
     *
     * @return the defaults
     */
    public static StateDeleteOptions defaults() {
        return new StateDeleteOptions(null);
    }

    /**
     * The same with an expected version.
     *
     * @param version 0: only if there is no entry; n &gt; 0: only version n of it
     * @return the options
     */
    public StateDeleteOptions withExpectedVersion(long version) {
        return new StateDeleteOptions(version);
    }
}
