//! Faults on purpose: if these are not reported, neither are others. Compiled by `run` as the library for Java is.

use std::ffi::c_void;
use std::hint::black_box;

/// Nothing wrong: what fails here fails for another reason.
#[unsafe(no_mangle)]
pub extern "system" fn Java_Planted_none(_env: *mut c_void, _class: *mut c_void) {
    let mut bytes = black_box(vec![0_u8; 16]);
    // SAFETY: the last byte of sixteen.
    unsafe { bytes.as_mut_ptr().add(15).write(1) };
    black_box(bytes);
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_Planted_writePastTheEnd(_env: *mut c_void, _class: *mut c_void) {
    let mut bytes = black_box(vec![0_u8; 16]);
    // SAFETY: none: this is the fault that must be reported, the byte behind the last.
    unsafe { black_box(bytes.as_mut_ptr().add(16)).write(1) };
    black_box(bytes);
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_Planted_readAfterFree(_env: *mut c_void, _class: *mut c_void) {
    let bytes = black_box(vec![1_u8; 16]);
    let first = black_box(bytes.as_ptr());
    drop(bytes);
    // SAFETY: none: this is the fault that must be reported, a byte that is not ours any more.
    black_box(unsafe { first.read() });
}
