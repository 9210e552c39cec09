package systems.zlink.framework.locationprovider;

/** What a read of a blob answers. */
public sealed interface ZLinkBlobReadResult permits ZLinkBlobMissing, ZLinkBlobFound {}
