/** Location Store and Relocation Store in memory, or in a folder on disk: no server to start. */
package systems.zlink.framework.locations.embedded;
