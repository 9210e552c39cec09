/** The Java side of the native library. Not for use outside the official providers. */
package systems.zlink.store.internal;
