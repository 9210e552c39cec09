//! Byte strings handed over to JavaScript for good.

use bytes::{Bytes, BytesMut};
use napi::Env;
use napi::bindgen_prelude::Uint8ArraySlice;

/// Makes a `Uint8Array` with memory of its own: the very memory of `bytes` where nobody else holds it, else a copy.
/// `external` says whether the environment takes memory that it did not allocate itself.
#[expect(unsafe_code, reason = "memory changes its owner")]
pub(crate) fn hand_over(env: &Env, bytes: Bytes, external: bool) -> napi::Result<Uint8ArraySlice<'static>> {
    if !external {
        return Uint8ArraySlice::copy_from(env, bytes);
    }
    let mut owned = match bytes.try_into_mut() {
        Ok(owned) if !owned.is_empty() => owned,
        Ok(shared) => return Uint8ArraySlice::copy_from(env, shared),
        Err(shared) => return Uint8ArraySlice::copy_from(env, shared),
    };
    let (data, length) = (owned.as_mut_ptr(), owned.len());
    // SAFETY: `data` is the buffer of `owned`, which nobody else holds (`try_into_mut`), which does not move it when it is
    // itself moved, and which lives until the environment gives the memory back.
    unsafe { Uint8ArraySlice::from_external(env, data, length, owned, |_, owned: BytesMut| drop(owned)) }
}
