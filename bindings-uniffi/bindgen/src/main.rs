//! `uniffi-bindgen`, of the same version as the library whose bindings it generates.

fn main() {
    uniffi::uniffi_bindgen_main();
}
