//! Byte arrays of Java's, copied once.

use bytes::Bytes;
use jni::Env;
use jni::errors::Result;
use jni::objects::{JByteArray, JObjectArray};
use jni::sys::{jbyte, jsize};

/// A copy of the `length` bytes from `start` on.
#[expect(unsafe_code, reason = "the same bytes, seen as signed ones")]
pub(crate) fn copy(env: &Env<'_>, array: &JByteArray<'_>, start: jsize, length: jsize) -> Result<Bytes> {
    let mut copy = vec![0_u8; usize::try_from(length).unwrap_or_default()];
    // SAFETY: `i8` and `u8` have the same size, alignment and valid values, and `copy` is borrowed meanwhile.
    let signed = unsafe { std::slice::from_raw_parts_mut(copy.as_mut_ptr().cast::<jbyte>(), copy.len()) };
    array.get_region(env, start, signed)?;
    Ok(Bytes::from(copy))
}

/// A copy of the whole array.
pub(crate) fn copy_all(env: &Env<'_>, array: &JByteArray<'_>) -> Result<Bytes> {
    let length = jsize::try_from(array.len(env)?).unwrap_or(jsize::MAX);
    copy(env, array, 0, length)
}

/// A copy of each array of `arrays`, which may be null.
pub(crate) fn copy_each(env: &mut Env<'_>, arrays: &JObjectArray<'_, JByteArray<'_>>) -> Result<Vec<Bytes>> {
    if arrays.is_null() {
        return Ok(Vec::new());
    }
    let count = arrays.len(env)?;
    let mut copies = Vec::with_capacity(count);
    for index in 0..count {
        let array = arrays.get_element(env, index)?;
        copies.push(copy_all(env, &array)?);
        // There may be more arrays than a frame has room for references.
        env.delete_local_ref(array);
    }
    Ok(copies)
}

/// Copies `bytes` to the beginning of `target`.
#[expect(unsafe_code, reason = "the same bytes, seen as signed ones")]
pub(crate) fn put(env: &Env<'_>, target: &JByteArray<'_>, bytes: &[u8]) -> Result<()> {
    // SAFETY: `i8` and `u8` have the same size, alignment and valid values.
    let signed = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<jbyte>(), bytes.len()) };
    target.set_region(env, 0, signed)
}
