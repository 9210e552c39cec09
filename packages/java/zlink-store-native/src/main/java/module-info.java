/** The native library under the official providers, and what they have in common: errors, health, counters, executors. */
@SuppressWarnings("module") // The modules that may use the internals are built after this one.
module zlink.store.nativelib {
    requires transitive zlink.framework.provider.abstractions;

    exports systems.zlink.store;
    exports systems.zlink.store.internal to
            zlink.framework.locations.redis,
            zlink.framework.locations.embedded,
            zlink.project.state;
}
