//! A plain connection for what a test itself has to say to a server.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::resp::{Value, parse};

/// A blocking connection. Error replies are values.
#[derive(Debug)]
pub struct Talk {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Talk {
    /// Connects.
    ///
    /// # Errors
    /// If nobody listens there.
    pub fn to(address: impl ToSocketAddrs) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Says one command and gives the answer back.
    ///
    /// # Errors
    /// If the connection fails, or after a minute without an answer.
    pub fn say<A: AsRef<[u8]>>(&mut self, command: &[A]) -> io::Result<Value> {
        self.send(command)?;
        self.hear()
    }

    /// Says one command without waiting for the answer.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn send<A: AsRef<[u8]>>(&mut self, command: &[A]) -> io::Result<()> {
        let mut out = Vec::new();
        Value::Array(command.iter().map(|arg| Value::Bytes(arg.as_ref().to_vec())).collect()).encode(&mut out);
        self.stream.write_all(&out)
    }

    /// The next answer.
    ///
    /// # Errors
    /// If the connection fails, or after a minute without an answer.
    pub fn hear(&mut self) -> io::Result<Value> {
        loop {
            if let Some((value, length)) = parse(&self.buffer).map_err(|_| io::ErrorKind::InvalidData)? {
                self.buffer.drain(..length);
                return Ok(value);
            }
            let mut piece = [0; 65_536];
            match self.stream.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.buffer.extend_from_slice(&piece[..count]),
            }
        }
    }
}
