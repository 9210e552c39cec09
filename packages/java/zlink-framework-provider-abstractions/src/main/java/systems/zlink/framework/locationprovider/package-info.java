/**
 * The contract between a server framework and the providers that keep its records: Location Store and Relocation Store. A provider of
 * your own needs nothing but this package.
 */
package systems.zlink.framework.locationprovider;
