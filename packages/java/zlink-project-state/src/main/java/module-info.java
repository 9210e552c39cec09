/** Project state and distributed locks. */
module zlink.project.state {
    requires transitive zlink.framework.provider.abstractions;
    requires transitive zlink.store.nativelib;

    exports systems.zlink.project.state;
}
