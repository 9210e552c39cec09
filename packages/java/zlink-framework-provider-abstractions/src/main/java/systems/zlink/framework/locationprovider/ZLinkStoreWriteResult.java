package systems.zlink.framework.locationprovider;

/** What a write answers. */
public sealed interface ZLinkStoreWriteResult permits ZLinkStoreWriteApplied, ZLinkStoreWriteConflict {}
