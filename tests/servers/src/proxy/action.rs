//! A command on its way, and what is done with it.

use crate::resp::Value;

/// A command on its way through the proxy.
#[derive(Clone, Debug)]
pub struct Request {
    /// The connection's number, from 0.
    pub connection: usize,
    /// The command's number on its connection, from 0.
    pub number: usize,
    /// Name and arguments.
    pub args: Vec<Vec<u8>>,
}

impl Request {
    /// The command's name in upper case.
    pub fn name(&self) -> String {
        self.text(0).to_ascii_uppercase()
    }

    /// An argument as text; `""` if there is none.
    pub fn text(&self, place: usize) -> String {
        self.args.get(place).map_or_else(String::new, |arg| String::from_utf8_lossy(arg).into_owned())
    }
}

/// What the proxy does with a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Passes it on.
    Pass,
    /// Answers it, with these bytes as they are, instead of the server.
    Answer(Vec<u8>),
    /// Closes the connection before anything of it is passed on.
    CutBefore,
    /// Passes half of its bytes on and closes the connection.
    CutInside,
    /// Passes it on and closes the connection without waiting for the reply.
    CutAfter,
    /// Passes it on, waits for the reply, drops it and closes the connection.
    DropReply,
    /// Passes it on and drops the reply; from then on this connection is silent, but open.
    LoseReply,
    /// Passes half of its bytes on; from then on this connection is silent, but open.
    StallInside,
    /// Passes half of the reply's bytes back; from then on this connection is silent, but open.
    StallReply,
    /// Passes half of the reply's bytes back and closes the connection.
    CutReply,
    /// Passes it on and the reply back after so many milliseconds; later replies wait behind it.
    DelayReply(u64),
}

impl Action {
    /// Answers with a line, such as `-LOADING …` or `+OK`.
    pub fn line(text: &str) -> Self {
        Self::Answer(format!("{text}\r\n").into_bytes())
    }

    /// Answers with a value.
    pub fn value(value: &Value) -> Self {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        Self::Answer(bytes)
    }
}
