package systems.zlink.project.state;

/** The state of one project: durable JSON entries under namespaces and keys, at most 100,000 live ones. */
public interface ProjectState {
    /**
     * The entries of one namespace, as JSON text.
     *
     * @param name 1 to 128 of {@code A-Z a-z 0-9 . _ : / -}, beginning with a letter or digit
     * @return the namespace
     * @throws ValidationException if it is no such name
     */
    default StateNamespace<String> namespace(String name) {
        return namespace(name, JsonCodec.text());
    }

    /**
     * The entries of one namespace, as values of a codec.
     *
     * @param <T> the values
     * @param name 1 to 128 of {@code A-Z a-z 0-9 . _ : / -}, beginning with a letter or digit
     * @param codec makes JSON text of values, and values of JSON text
     * @return the namespace
     * @throws ValidationException if it is no such name
     */
    <T> StateNamespace<T> namespace(String name, JsonCodec<T> codec);
}
