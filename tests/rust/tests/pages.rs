//! What pages say of tests.

use std::path::{Path, PathBuf};
use std::{fs, io};

const OPERATIONS: &str = include_str!("../../../docs/operations.md");

/// Folders of tests in Rust.
const FOLDERS: [&str; 4] = ["core/src", "core/tests", "tests/faults", "tests/rust"];

#[test]
fn the_tests_that_pages_name_exist() {
    let mut sources = String::new();
    for folder in FOLDERS {
        gather(&[env!("CARGO_MANIFEST_DIR"), "../..", folder].iter().collect::<PathBuf>(), &mut sources).unwrap();
    }
    let named = named(OPERATIONS);
    assert!(named.len() > 50, "{named:?}");
    let strangers: Vec<_> = named.iter().filter(|name| !sources.contains(&format!("fn {name}("))).collect();
    assert!(strangers.is_empty(), "docs/operations.md names tests that do not exist: {strangers:?}");
}

/// The names behind each `Tested by:`, up to the next heading or paragraph that is no list.
fn named(page: &str) -> Vec<&str> {
    let mut named = Vec::new();
    for behind in page.split("Tested by:").skip(1) {
        let paragraphs = behind.split("\n\n").enumerate();
        let tests = paragraphs
            .take_while(|(place, text)| *place == 0 || (*place == 1 && text.starts_with("- ") && behind.starts_with('\n')));
        for (_, text) in tests {
            let names = text.split('`').skip(1).step_by(2);
            named.extend(names.filter(|name| {
                name.contains('_') && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            }));
        }
    }
    named
}

fn gather(folder: &Path, sources: &mut String) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(())
}
