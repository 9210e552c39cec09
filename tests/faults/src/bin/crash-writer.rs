//! `crash-writer FOLDER ORDERS…`: works on the file engine until it is killed.

use std::path::Path;
use std::process::ExitCode;

use zlink_test_faults::work::{Orders, work};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let Some((folder, orders)) = arguments.split_first().and_then(|(folder, rest)| Some((folder, Orders::parse(rest)?))) else {
        eprintln!("crash-writer FOLDER FIRST,COMMITS BLOB LARGEST");
        return ExitCode::from(2);
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(work(Path::new(folder), orders)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("crash-writer: {error:?}");
            ExitCode::FAILURE
        }
    }
}
