package systems.zlink.framework.locationprovider;

/** What a put of a blob answers. */
public sealed interface ZLinkBlobPutResult permits ZLinkBlobStored, ZLinkBlobAlreadyStored, ZLinkBlobConflict {}
