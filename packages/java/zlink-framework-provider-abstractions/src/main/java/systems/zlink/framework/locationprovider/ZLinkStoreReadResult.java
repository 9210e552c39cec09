package systems.zlink.framework.locationprovider;

/** What a read answers. */
public sealed interface ZLinkStoreReadResult permits ZLinkStoreReadMissing, ZLinkStoreReadFound {}
