/** Location Store and Relocation Store on Redis and Valkey. */
module zlink.framework.locations.redis {
    requires transitive zlink.framework.provider.abstractions;
    requires transitive zlink.store.nativelib;

    exports systems.zlink.framework.locations.redis;
}
