//! The connections through a proxy.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use super::action::{Action, Request};
use super::state::State;
use super::{RUNTIME, Way};
use crate::resp::{Value, parse};

pub(super) async fn accept(state: Arc<State>, listener: TcpListener) {
    let mut ended = state.ended.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ended.wait_for(|ended| *ended) => return,
        };
        let Ok((client, _)) = accepted else { continue };
        let number = state.accepted.fetch_add(1, Ordering::SeqCst);
        if state.refusing.load(Ordering::SeqCst) {
            continue;
        }
        let state = Arc::clone(&state);
        RUNTIME.spawn(async move {
            state.open.fetch_add(1, Ordering::SeqCst);
            let mut cuts = state.cuts.subscribe();
            let mut ended = state.ended.subscribe();
            tokio::select! {
                _ = carry(&state, client, number) => {}
                _ = cuts.changed() => {}
                _ = ended.wait_for(|ended| *ended) => {}
            }
            state.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// What stands between a command and its reply.
enum Due {
    /// The server's next reply, with what is to be done with it.
    Theirs(Action),
    /// An answer of ours.
    Ours(Vec<u8>),
}

/// One connection.
struct Wire<'a> {
    state: &'a State,
    number: usize,
    due: Mutex<VecDeque<Due>>,
    more_due: Notify,
    silence: watch::Receiver<u64>,
    born: u64,
}

/// What is on its way, per way: when it may arrive, and what.
type Road = mpsc::Sender<(Instant, Parcel)>;

enum Parcel {
    Bytes(Vec<u8>),
    Cut,
}

/// More than this is not under way at once: behind it the sender has to wait, as on a network.
const UNDER_WAY: usize = 8;

/// Why a connection is closed.
struct Over;

impl From<io::Error> for Over {
    fn from(_: io::Error) -> Self {
        Self
    }
}

async fn carry(state: &State, client: TcpStream, number: usize) -> Result<(), Over> {
    let target = *state.target.lock();
    let silence = state.silence.subscribe();
    let born = *silence.borrow();
    let wire = Wire { state, number, due: Mutex::default(), more_due: Notify::new(), silence, born };
    client.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (replies, replies_out) = mpsc::channel(UNDER_WAY);
    let (requests, requests_out) = mpsc::channel(UNDER_WAY);
    let (from_server, to_server) = match target {
        Some(port) => {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
            server.set_nodelay(true)?;
            let (from, to) = server.into_split();
            (Some(from), Some(to))
        }
        None => (None, None),
    };
    tokio::select! {
        over = wire.requests(from_client, &requests) => over,
        over = wire.replies(from_server, &replies) => over,
        over = wire.travel(Way::Requests, requests_out, to_server) => over,
        over = wire.travel(Way::Replies, replies_out, Some(to_client)) => over,
    }
}

impl Wire<'_> {
    async fn requests(&self, mut from: OwnedReadHalf, road: &Road) -> Result<(), Over> {
        let mut buffer = Vec::new();
        let mut piece = vec![0; 65_536];
        let mut number = 0;
        loop {
            let count = from.read(&mut piece).await?;
            if count == 0 {
                return Err(Over);
            }
            buffer.extend_from_slice(&piece[..count]);
            loop {
                match parse(&buffer) {
                    Ok(Some((value, length))) => {
                        let bytes: Vec<u8> = buffer.drain(..length).collect();
                        let args = value.items().iter().map(|arg| match arg {
                            Value::Bytes(bytes) => bytes.clone(),
                            other => other.text().into_bytes(),
                        });
                        let request = Request { connection: self.number, number, args: args.collect() };
                        number += 1;
                        self.request(&request, bytes, road).await?;
                    }
                    Ok(None) => break,
                    // TLS, or nonsense: passed as it comes.
                    Err(_) => {
                        self.send(Way::Requests, road, std::mem::take(&mut buffer)).await?;
                        break;
                    }
                }
            }
        }
    }

    async fn request(&self, request: &Request, mut bytes: Vec<u8>, road: &Road) -> Result<(), Over> {
        let action = self.state.action_for(request);
        let due = match action {
            Action::CutBefore => return self.cut(Way::Requests, road).await,
            Action::CutInside => {
                bytes.truncate(bytes.len() / 2);
                self.send(Way::Requests, road, bytes).await?;
                return self.cut(Way::Requests, road).await;
            }
            Action::StallInside => {
                bytes.truncate(bytes.len() / 2);
                self.send(Way::Requests, road, bytes).await?;
                return std::future::pending().await;
            }
            Action::CutAfter => {
                self.send(Way::Requests, road, bytes).await?;
                return self.cut(Way::Requests, road).await;
            }
            Action::Answer(answer) => Due::Ours(answer),
            other => Due::Theirs(other),
        };
        let passes = matches!(due, Due::Theirs(_));
        self.due.lock().push_back(due);
        self.more_due.notify_one();
        if passes {
            self.send(Way::Requests, road, bytes).await?;
        }
        Ok(())
    }

    async fn replies(&self, mut from: Option<OwnedReadHalf>, road: &Road) -> Result<(), Over> {
        let mut buffer = Vec::new();
        loop {
            let due = self.due.lock().pop_front();
            let action = match due {
                None => {
                    self.idle(&mut from, road, &mut buffer).await?;
                    continue;
                }
                Some(Due::Ours(answer)) => {
                    self.send(Way::Replies, road, answer).await?;
                    continue;
                }
                Some(Due::Theirs(action)) => action,
            };
            let mut reply = self.reply(&mut from, &mut buffer).await?;
            match action {
                Action::DropReply => return self.cut(Way::Replies, road).await,
                Action::LoseReply => return std::future::pending().await,
                Action::StallReply => {
                    reply.truncate(reply.len() / 2);
                    self.send(Way::Replies, road, reply).await?;
                    return std::future::pending().await;
                }
                Action::CutReply => {
                    reply.truncate(reply.len() / 2);
                    self.send(Way::Replies, road, reply).await?;
                    return self.cut(Way::Replies, road).await;
                }
                Action::DelayReply(time) => {
                    tokio::time::sleep(Duration::from_millis(time)).await;
                    self.send(Way::Replies, road, reply).await?;
                }
                _ => self.send(Way::Replies, road, reply).await?,
            }
        }
    }

    /// Nothing is due: waits for a command, and passes what the server says of its own accord.
    async fn idle(&self, from: &mut Option<OwnedReadHalf>, road: &Road, buffer: &mut Vec<u8>) -> Result<(), Over> {
        if !buffer.is_empty() {
            return self.send(Way::Replies, road, std::mem::take(buffer)).await;
        }
        let mut piece = vec![0; 65_536];
        let Some(from) = from else {
            self.more_due.notified().await;
            return Ok(());
        };
        tokio::select! {
            () = self.more_due.notified() => Ok(()),
            count = from.read(&mut piece) => match count? {
                0 => self.cut(Way::Replies, road).await,
                count => {
                    buffer.extend_from_slice(&piece[..count]);
                    Ok(())
                }
            },
        }
    }

    /// The server's next reply, or, if it is not RESP, the next bytes.
    async fn reply(&self, from: &mut Option<OwnedReadHalf>, buffer: &mut Vec<u8>) -> Result<Vec<u8>, Over> {
        let Some(from) = from else { return std::future::pending().await };
        let mut piece = vec![0; 65_536];
        loop {
            match parse(buffer) {
                Ok(Some((_, length))) => return Ok(buffer.drain(..length).collect()),
                Err(_) => return Ok(std::mem::take(buffer)),
                Ok(None) => {}
            }
            match from.read(&mut piece).await? {
                0 => return Err(Over),
                count => buffer.extend_from_slice(&piece[..count]),
            }
        }
    }

    async fn send(&self, way: Way, road: &Road, bytes: Vec<u8>) -> Result<(), Over> {
        self.put(way, road, Parcel::Bytes(bytes)).await
    }

    /// Closes the connection once what is under way has arrived.
    async fn cut(&self, way: Way, road: &Road) -> Result<(), Over> {
        self.put(way, road, Parcel::Cut).await?;
        std::future::pending().await
    }

    #[expect(clippy::disallowed_methods, reason = "a test helper needs no clock but the machine's")]
    async fn put(&self, way: Way, road: &Road, parcel: Parcel) -> Result<(), Over> {
        let delay = Duration::from_millis(self.state.delay[way as usize].load(Ordering::SeqCst));
        road.send((Instant::now() + delay, parcel)).await.map_err(|_| Over)
    }

    /// The far end of a road.
    async fn travel(
        &self,
        way: Way,
        mut road: mpsc::Receiver<(Instant, Parcel)>,
        mut to: Option<OwnedWriteHalf>,
    ) -> Result<(), Over> {
        while let Some((when, parcel)) = road.recv().await {
            tokio::time::sleep_until(when).await;
            let Parcel::Bytes(bytes) = parcel else { return Err(Over) };
            let throttle = self.state.throttle.load(Ordering::SeqCst);
            if let Some(time) = (bytes.len() as u64 * 1_000_000).checked_div(throttle) {
                tokio::time::sleep(Duration::from_micros(time)).await;
            }
            // Silent for good once the count has changed, and as long as it is odd.
            let silent = *self.silence.borrow() != self.born || self.born % 2 == 1;
            if silent && self.state.silent[way as usize].load(Ordering::SeqCst) {
                continue;
            }
            let end = self.state.allowed(way, bytes.len());
            if let Some(to) = &mut to {
                let bytes = &bytes[..end.unwrap_or(bytes.len())];
                self.state.passed[way as usize].fetch_add(bytes.len() as u64, Ordering::SeqCst);
                to.write_all(bytes).await?;
            }
            if end.is_some() {
                return Err(Over);
            }
        }
        std::future::pending().await
    }
}
