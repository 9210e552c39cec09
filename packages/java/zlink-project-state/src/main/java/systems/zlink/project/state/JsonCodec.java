package systems.zlink.project.state;

/**
 * How values become JSON text and come back: the place to plug in Jackson, Gson or anything else. It is used by many threads at a time.
 *
 * @param <T> the values
 */
public interface JsonCodec<T> {
    /**
     * The JSON text of a value. It may have white space and escapes of any kind; what is stored is the form of {@code JSON.stringify}.
     *
     * @param value the value
     * @return its JSON text
     * @throws Exception if there is none: the call then throws a {@link ValidationException} with this as its cause
     */
    String encode(T value) throws Exception;

    /**
     * The value of a JSON text.
     *
     * @param json the text, in the form of {@code JSON.stringify}
     * @return the value
     * @throws Exception if it is no text of such a value: the stage then fails with this
     */
    T decode(String json) throws Exception;

    /**
     * One direction of a codec.
     *
     * @param <A> from
     * @param <B> to
     */
    @FunctionalInterface
    interface Direction<A, B> {
        /**
         * Translates.
         *
         * @param from what is there
         * @return what it becomes
         * @throws Exception if it can not be translated
         */
        B apply(A from) throws Exception;
    }

    /**
     * A codec of two functions, for instance {@code JsonCodec.of(mapper::writeValueAsString, json -> mapper.readValue(json, Cursor.class))}.
     *
     * @param <T> the values
     * @param encode see {@link #encode}
     * @param decode see {@link #decode}
     * @return the codec
     */
    static <T> JsonCodec<T> of(Direction<T, String> encode, Direction<String, T> decode) {
        Checked.given("encode", encode);
        Checked.given("decode", decode);
        return new JsonCodec<>() {
            @Override
            public String encode(T value) throws Exception {
                return encode.apply(value);
            }

            @Override
            public T decode(String json) throws Exception {
                return decode.apply(json);
            }
        };
    }

    /**
     * The codec whose values are JSON text.
     *
     * @return the codec
     */
    static JsonCodec<String> text() {
        return of(text -> text, text -> text);
    }
}
