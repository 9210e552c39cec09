/** What the official providers have in common: errors, health, counters, and the executor that completes stages. */
package systems.zlink.store;
