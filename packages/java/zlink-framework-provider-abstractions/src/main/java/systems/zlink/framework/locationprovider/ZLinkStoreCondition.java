package systems.zlink.framework.locationprovider;

/** What must hold before a write applies. */
public sealed interface ZLinkStoreCondition permits ZLinkStoreMissingCondition, ZLinkStoreVersionCondition {}
