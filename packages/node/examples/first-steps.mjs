// The README's example; a test runs it.
import { ZLinkEmbeddedLocationStore } from '@zlink-systems/framework-locations-embedded';

const store = new ZLinkEmbeddedLocationStore({});
const key = { value: 'actor/7' };
const claimed = await store.write({
  conditions: [{ kind: 'missing', key }],
  mutations: [{ kind: 'put', key, bytes: Buffer.from('node-1'), retentionMs: 30_000 }],
});
const found = await store.read(key);
console.log(claimed.kind, found.kind, Buffer.from(found.value.bytes).toString(), found.value.expiresAt);
await store.dispose();
