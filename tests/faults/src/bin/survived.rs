//! Prints the table of the faults that were survived; fails if something is not zero that must be.

use std::io::Write;
use std::process::ExitCode;

fn main() -> std::io::Result<ExitCode> {
    let (table, sound) = zlink_test_faults::report::table()?;
    std::io::stdout().lock().write_all(table.as_bytes())?;
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
