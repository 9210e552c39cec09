//! What fuzzing calls (`tests/fuzz`). Each takes any bytes, and panics where something is wrong. Not part of the API: it is
//! there only when this crate is built for that.

use crate::contract::JsonText;
use crate::engine::fuzz as engine;

/// A name, and what takes any bytes.
pub type Target = (&'static str, fn(&[u8]));

/// The targets; `tests/fuzz/corpus` has a folder of kept inputs for each.
pub const TARGETS: [Target; 5] =
    [("url", engine::url), ("cursor", engine::cursor), ("record", engine::record), ("reply", engine::reply), ("json", json)];

/// JSON text is refused, or comes in a form that stays as it is.
fn json(data: &[u8]) {
    if let Ok(text) = JsonText::new(data) {
        assert!(text.as_bytes().len() <= data.len() * 6, "an escape is at most six times its character");
        let again = JsonText::new(text.as_bytes());
        assert_eq!(again.as_ref().map(JsonText::as_str).ok(), Some(text.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{fs, panic};

    use super::TARGETS;

    /// Every input that was worth keeping, those that once found a fault among them.
    #[test]
    fn the_kept_inputs_find_nothing() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus");
        for (name, target) in TARGETS {
            let inputs: Vec<_> = fs::read_dir(corpus.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert!(inputs.len() >= 10, "{name} has only {} inputs", inputs.len());
            for input in inputs {
                let data = fs::read(&input).unwrap();
                assert!(panic::catch_unwind(|| target(&data)).is_ok(), "{name}: {}", input.display());
            }
        }
    }
}
