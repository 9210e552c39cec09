//! From an address to a stream of bytes: name resolution, TCP or a unix socket, TLS.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::config::{Address, Tls};
use super::tls;
use crate::contract::{Code, Error, Outcome};

/// How long one address of a name is tried before the next is tried beside it.
const STAGGER: Duration = Duration::from_millis(250);
/// An idle connection whose peer vanished is found out after about this long and three probes more.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(20);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// Both directions of a connection.
pub(super) struct Stream {
    pub(super) reader: Box<dyn AsyncRead + Send + Sync + Unpin>,
    pub(super) writer: Box<dyn AsyncWrite + Send + Sync + Unpin>,
}

/// Why there is no connection.
#[derive(Clone, Debug)]
pub(super) struct DialError {
    pub(super) error: Error,
    /// Whether the next attempt will fail as this one did, until somebody mends something.
    pub(super) lasting: bool,
}

/// How far an attempt to connect has come.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Ask,
    Connect,
    Tls,
    Greet,
    Confirm,
}

impl Step {
    /// What to say when the time is over; `early`: the time for one attempt, not the operation's.
    pub(super) fn took_too_long(self, early: bool) -> DialError {
        let what = match self {
            Self::Ask => "no sentinel said where the primary is",
            Self::Connect => "the server could not be reached",
            Self::Tls => "the TLS handshake was not answered (does the server speak TLS on this port?)",
            Self::Greet => "the server did not answer its first command (does the port want TLS?)",
            Self::Confirm => "the sentinels did not agree, after connecting, that it is the primary",
        };
        let (code, when) = if early { (Code::Unavailable, "connect") } else { (Code::Timeout, "operation") };
        let error = Error::new(code, Outcome::NotApplied, format!("{what} within the {when} timeout"));
        DialError { error, lasting: false }
    }
}

impl DialError {
    /// A failure that passes by itself.
    pub(super) fn passing(said: String) -> Self {
        Self { error: Error::new(Code::Unavailable, Outcome::NotApplied, said), lasting: false }
    }

    /// A failure that somebody must mend.
    pub(super) fn lasting(said: String) -> Self {
        Self { error: Error::new(Code::Unavailable, Outcome::NotApplied, said), lasting: true }
    }

    /// A failure of the socket, or of TLS inside it.
    pub(super) fn io(doing: &str, error: &io::Error) -> Self {
        if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Self::lasting(format!("{doing}: {}", tls_words(tls)));
        }
        Self::passing(format!("{doing}: {error}"))
    }
}

/// What TLS did not like, with what to do about the usual mistakes.
fn tls_words(error: &rustls::Error) -> String {
    use rustls::{AlertDescription, Error};
    let hint = match error {
        Error::InvalidMessage(_) => " (does the server speak TLS on this port?)",
        Error::AlertReceived(AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure) => {
            " (does the server want a client certificate? see tls_cert and tls_key)"
        }
        Error::InvalidCertificate(_) => " (see tls_ca and tls_server_name)",
        _ => "",
    };
    format!("TLS: {error}{hint}")
}

/// Connects, resolving the name anew.
pub(super) async fn dial(address: &Address, tls: Option<&Tls>, step: &Mutex<Step>) -> Result<Stream, DialError> {
    match address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).await.map_err(|error| {
                let kind = error.kind();
                DialError::passing(format!("the unix socket cannot be connected: {kind}"))
            })?;
            let (reader, writer) = stream.into_split();
            Ok(Stream { reader: Box::new(reader), writer: Box::new(writer) })
        }
        Address::Tcp(host, port) => {
            let stream = tcp(host, *port).await?;
            match tls {
                None => {
                    let (reader, writer) = stream.into_split();
                    Ok(Stream { reader: Box::new(reader), writer: Box::new(writer) })
                }
                Some(tls) => {
                    *step.lock() = Step::Tls;
                    let (reader, writer) = tokio::io::split(tls::handshake(tls, host, stream).await?);
                    Ok(Stream { reader: Box::new(reader), writer: Box::new(writer) })
                }
            }
        }
    }
}

async fn tcp(host: &str, port: u16) -> Result<TcpStream, DialError> {
    let resolved = tokio::net::lookup_host((host, port)).await;
    let found: Vec<SocketAddr> =
        resolved.map_err(|error| DialError::passing(format!("the name {host} is not resolved: {error}")))?.collect();
    let failed = |error: &io::Error| DialError::passing(format!("{host}:{port} cannot be connected: {}", error.kind()));
    let mut last = DialError::passing(format!("the name {host} has no address"));
    let mut waiting = found.into_iter();
    let mut tried = FuturesUnordered::new();
    tried.extend(waiting.next().map(TcpStream::connect));
    while !tried.is_empty() {
        let more = waiting.len() > 0;
        tokio::select! {
            Some(result) = tried.next() => match result {
                Ok(stream) => return prepared(stream).map_err(|error| failed(&error)),
                Err(error) => last = failed(&error),
            },
            () = tokio::time::sleep(STAGGER), if more => {}
        }
        tried.extend(waiting.next().map(TcpStream::connect));
    }
    Err(last)
}

fn prepared(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL);
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
}
