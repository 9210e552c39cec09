//! The disk takes no more: writes fail and say so, reads go on, and the folder recovers by itself.

use std::process::Command;

use zlink_test_faults::report::file_row;

const PROGRAM: &str = env!("CARGO_BIN_EXE_disk-filler");
/// In units of 1,024 bytes: a new journal (64 MiB) fits, and one that grows beyond does not.
const LONGEST_FILE: &str = "65536";

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    let script = format!("trap '' XFSZ; ulimit -S -f {LONGEST_FILE}; exec \"$0\" \"$1\"");
    let output = Command::new("bash").args(["-c", &script, PROGRAM]).arg(&store).output().expect("bash starts");
    let (told, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    eprintln!("{told}{failed}");
    assert!(output.status.success(), "{}", output.status);
    assert!(told.contains("refused OUT_OF_MEMORY unknown"), "the limit was never met");
    assert!(told.contains("recovered after 10"), "refused again once there was room");
    let count = told.lines().find_map(|line| line.strip_prefix("acknowledged ")?.parse().ok());
    file_row("disk full", count.expect("the number of commits")).write();
}
