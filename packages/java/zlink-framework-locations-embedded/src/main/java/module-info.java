/** Location Store and Relocation Store in memory, or in a folder on disk. */
module zlink.framework.locations.embedded {
    requires transitive zlink.framework.provider.abstractions;
    requires transitive zlink.store.nativelib;

    exports systems.zlink.framework.locations.embedded;
}
