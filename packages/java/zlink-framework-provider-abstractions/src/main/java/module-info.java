/** The contract of Location Store and Relocation Store, without any dependency. */
module zlink.framework.provider.abstractions {
    exports systems.zlink.framework.locationprovider;
}
