//! Linker settings that a Node add-on needs on each platform.

fn main() {
    napi_build::setup();
}
