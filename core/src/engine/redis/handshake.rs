//! The first words on a new connection: who we are, which database, which protocol, and whether the server is new enough.
//!
//! They go out in one round trip. HELLO and AUTH need no permission; a server that refuses HELLO is spoken to in RESP2, and asked
//! by INFO (where the user may) how old it is. Nothing else is needed: no CLIENT SETINFO, no CONFIG, no SCRIPT.

use std::sync::Arc;

use bytes::Bytes;

use super::answers::{self, Meaning};
use super::config::RedisConfig;
use super::dial::DialError;
use super::link::Link;
use super::transport::{Batch, Command, Failure, Reply};
use crate::call::Call;
use crate::contract::{Code, Error, Outcome};

/// What the greeting told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Greeting {
    /// Whether the server knows the read-only calls of scripts (Redis 7.0); `None` if it did not tell how old it is.
    pub(super) read_only_scripts: Option<bool>,
}

/// Greets the server. `hello: false` for one that hung up on HELLO.
pub(super) async fn greet(link: &Arc<Link>, config: &RedisConfig, hello: bool, call: &Call) -> Result<Greeting, DialError> {
    let mut greeting = Words::default();
    match (&config.username, &config.password) {
        (Some(user), password) => greeting.say(Word::Auth, &["AUTH", user, password.as_deref().unwrap_or_default()]),
        (None, Some(password)) => greeting.say(Word::Auth, &["AUTH", password]),
        (None, None) => {}
    }
    if hello {
        greeting.say(Word::Hello, &["HELLO", if config.resp3 { "3" } else { "2" }]);
    }
    if config.db != 0 {
        greeting.say(Word::Select, &["SELECT", &config.db.to_string()]);
    }
    if let Some(name) = &config.client_name {
        greeting.say(Word::Name, &["CLIENT", "SETNAME", name]);
    }
    if greeting.words.is_empty() {
        greeting.say(Word::Ping, &["PING"]);
    }
    let mut version = None;
    for (word, reply) in greeting.send(link, call).await? {
        let refused = match answers::meaning(&reply) {
            None if word == Word::Hello => {
                version = Version::of_hello(&reply);
                // Reads are the primary's too: a replica answers them late, and with what it has.
                if matches!(field_of_hello(&reply, b"role"), Some("replica" | "slave")) {
                    return Err(DialError::passing("the server is a replica".to_owned()));
                }
                continue;
            }
            None => continue,
            Some(Meaning::Later(error) | Meaning::Elsewhere(error)) => return Err(DialError { error, lasting: false }),
            Some(meaning) => meaning.into_error(),
        };
        let refused = match word {
            Word::Auth => auth_error(&reply, refused),
            _ if is_error(&reply, "NOAUTH") => refused,
            Word::Select if refused.code() == Code::Internal => incompatible(format!("the server has no database {}", config.db)),
            Word::Select => refused,
            // An unknown command, a version of RESP that is too new: RESP2 does. A name is for people only.
            Word::Hello | Word::Name | Word::Ping | Word::Info => {
                tracing::debug!("the server refused a part of the greeting that is not needed");
                continue;
            }
        };
        return Err(DialError { error: refused, lasting: true });
    }
    if version.is_none() {
        let mut ask = Words::default();
        ask.say(Word::Info, &["INFO", "server"]);
        if let Some((_, Reply::Bytes(info))) = ask.send(link, call).await?.pop() {
            version = Version::of_info(&info);
        }
    }
    match &version {
        Some(version) if version.is_too_old() => {
            let error = incompatible(format!("the server is {version}; Redis 6.2 or Valkey 7.2 or newer is needed"));
            Err(DialError { error, lasting: true })
        }
        version => Ok(Greeting { read_only_scripts: version.as_ref().map(|version| version.number >= (7, 0)) }),
    }
}

/// The error of an AUTH that was refused.
pub(super) fn auth_error(reply: &Reply, refused: Error) -> Error {
    let Reply::Error { message, .. } = reply else { return refused };
    if message.starts_with("wrong number of arguments") {
        return incompatible("the server knows no ACL users; Redis 6.2 or Valkey 7.2 or newer is needed".to_owned());
    }
    if refused.code() == Code::Unauthenticated {
        return refused;
    }
    let said = if message.contains("without any password configured") {
        "a password was given, but the server has none for the default user"
    } else {
        "the server refused AUTH with the user and password given"
    };
    Error::new(Code::Unauthenticated, Outcome::NotApplied, said)
}

fn is_error(reply: &Reply, wanted: &str) -> bool {
    matches!(reply, Reply::Error { code, .. } if code == wanted)
}

fn incompatible(said: String) -> Error {
    Error::new(Code::Incompatible, Outcome::NotApplied, said)
}

#[derive(Clone, Copy, PartialEq)]
enum Word {
    Auth,
    Hello,
    Select,
    Name,
    Ping,
    Info,
}

#[derive(Default)]
struct Words {
    words: Vec<Word>,
    commands: Vec<Command>,
}

impl Words {
    fn say(&mut self, word: Word, args: &[&str]) {
        self.words.push(word);
        self.commands.push(args.iter().map(|arg| Bytes::copy_from_slice(arg.as_bytes())).collect());
    }

    async fn send(self, link: &Arc<Link>, call: &Call) -> Result<Vec<(Word, Reply)>, DialError> {
        let replies = link.send(Arc::new(Batch { commands: self.commands, atomic: false }), call).await;
        match replies {
            Ok(replies) => Ok(self.words.into_iter().zip(replies).collect()),
            Err(Failure::NotSent(error) | Failure::Lost(error)) => {
                // What ended the connection says more: a TLS alert, a refusal.
                match link.end() {
                    Some(end) if !end.lasting && !link.has_spoken() => {
                        let said = format!("{}, before a word was said (does the port want TLS?)", end.error.message());
                        Err(DialError::passing(said))
                    }
                    Some(end) => Err(end),
                    None => Err(DialError { error: error.with_outcome(Outcome::NotApplied), lasting: false }),
                }
            }
        }
    }
}

fn field_of_hello<'a>(reply: &'a Reply, name: &[u8]) -> Option<&'a str> {
    let Reply::Array(items) = reply else { return None };
    items.chunks_exact(2).find_map(|pair| match pair {
        [Reply::Bytes(key), Reply::Bytes(value)] if key[..] == *name => std::str::from_utf8(value).ok(),
        _ => None,
    })
}

#[derive(Debug, PartialEq)]
struct Version {
    valkey: bool,
    number: (u32, u32),
    text: String,
}

impl Version {
    fn parse(valkey: bool, text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let number = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        // It is shown.
        let plain = text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
        plain.then(|| Self { valkey, number, text: text.to_owned() })
    }

    fn of_hello(reply: &Reply) -> Option<Self> {
        Self::parse(field_of_hello(reply, b"server")? == "valkey", field_of_hello(reply, b"version")?)
    }

    fn of_info(info: &[u8]) -> Option<Self> {
        let info = std::str::from_utf8(info).ok()?;
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
        match field("valkey_version") {
            Some(version) => Self::parse(true, version),
            None => Self::parse(false, field("redis_version")?),
        }
    }

    fn is_too_old(&self) -> bool {
        self.number < if self.valkey { (7, 2) } else { (6, 2) }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", if self.valkey { "Valkey" } else { "Redis" }, self.text)
    }
}
