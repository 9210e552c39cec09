package systems.zlink.framework.locationprovider;

/** What a scan answers. */
public sealed interface ZLinkStoreScanResult permits ZLinkStoreScanPageResult, ZLinkStoreScanExpired {}
