package systems.zlink.framework.locationprovider;

/** What a write changes. */
public sealed interface ZLinkStoreMutation permits ZLinkStorePut, ZLinkStoreDelete {}
