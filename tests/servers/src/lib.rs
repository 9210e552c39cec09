//! Starts private Redis servers for tests: free ports, private folders, ended with their handle.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

/// A private `redis-server`, killed when dropped.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    folder: TempDir,
    port: u16,
    extra: Vec<String>,
}

impl RedisServer {
    /// Starts a server on a free port of the loopback address with `extra` command-line settings, and waits until it accepts
    /// connections.
    ///
    /// # Errors
    /// If `redis-server` is not installed or does not start.
    pub fn start(extra: &[&str]) -> io::Result<Self> {
        let folder = TempDir::new()?;
        let extra: Vec<String> = extra.iter().map(|&setting| setting.to_owned()).collect();
        for _ in 0..10 {
            let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
            if let Ok(process) = launch(&folder, port, &extra) {
                return Ok(Self { process, folder, port, extra });
            }
        }
        Err(io::Error::other("redis-server does not start; is it installed?"))
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of database 0.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Kills the server as `kill -9` does.
    ///
    /// # Errors
    /// If the process cannot be waited for.
    pub fn kill(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(|_| ())
    }

    /// Starts it again on the same port and folder after [`kill`](Self::kill).
    ///
    /// # Errors
    /// If it does not start.
    pub fn restart(&mut self) -> io::Result<()> {
        self.process = launch(&self.folder, self.port, &self.extra)?;
        Ok(())
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may be dead already, which is what is wanted.
        let _ = self.kill();
    }
}

fn launch(folder: &TempDir, port: u16, extra: &[String]) -> io::Result<Child> {
    let mut process = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--daemonize", "no", "--dir"])
        .arg(folder.path())
        .args(extra)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    for _ in 0..500 {
        if process.try_wait()?.is_some() {
            return Err(io::Error::other("redis-server ended at once (port taken?)"));
        }
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(process);
        }
        sleep(Duration::from_millis(10));
    }
    process.kill()?;
    Err(io::Error::other("redis-server does not listen"))
}
