package systems.zlink.framework.locationprovider;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * An atomic write: all conditions are checked first, and only if all hold are all mutations applied, as one commit.
 *
 * <p>Conditions and mutations together may name at most 2,048 different keys, and keys (counted once), expected versions and values
 * together may have at most 4 MiB. A key may stand once among the conditions and once among the mutations. A request may have only
 * conditions, only mutations, or neither. The limits are checked by the call.
 *
 * @param conditions what must hold; copied, unmodifiable afterwards, never {@code null}
 * @param mutations what changes; copied, unmodifiable afterwards, never {@code null}
 */
public record ZLinkStoreWriteRequest(List<ZLinkStoreCondition> conditions, List<ZLinkStoreMutation> mutations) {
    /**
     * Copies both lists.
     *
     * @param conditions what must hold
     * @param mutations what changes
     * @throws NullPointerException if a list is {@code null}
     */
    public ZLinkStoreWriteRequest {
        conditions = copy("conditions", conditions);
        mutations = copy("mutations", mutations);
    }

    // Elements are checked by the call, which can say which one is wrong.
    private static <T> List<T> copy(String name, List<? extends T> list) {
        if (list == null) {
            throw new NullPointerException(name + " must not be null");
        }
        return Collections.unmodifiableList(new ArrayList<>(list));
    }
}
