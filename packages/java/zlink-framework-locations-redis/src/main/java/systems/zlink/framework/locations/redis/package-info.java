/** Location Store and Relocation Store on Redis and Valkey. */
package systems.zlink.framework.locations.redis;
