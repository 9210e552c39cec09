package systems.zlink.framework.locationprovider;

/** What a renewal of a blob answers. */
public sealed interface ZLinkBlobRenewResult permits ZLinkBlobRenewMissing, ZLinkBlobRenewed {}
