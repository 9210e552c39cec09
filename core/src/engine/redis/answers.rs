//! What the server's error replies mean, in one place for all that speak to Redis.
//!
//! The server's own words are shown only up to the first quoted text: behind it stand arguments, which can be keys.

use super::host::Reply;
use crate::contract::{Code, Error, Outcome};

/// What an error reply means.
#[derive(Debug)]
pub(crate) enum Meaning {
    /// The command did nothing, and will do something when it is sent again later. The error is what to say if it is too late.
    Later(Error),
    /// As `Later`, but only another server, or the same one in another role, will do it: connect anew.
    Elsewhere(Error),
    /// The script is not in the server's cache; nothing was done.
    NoScript,
    /// The command, or a subcommand, is not known there; nothing was done.
    UnknownCommand(Error),
    /// The command failed and will fail again.
    Failed(Error),
}

impl Meaning {
    /// What to tell the caller if nothing else is to be done.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Later(error) | Self::Elsewhere(error) | Self::UnknownCommand(error) | Self::Failed(error) => error,
            Self::NoScript => Error::internal("the server does not know a script right after it was sent"),
        }
    }
}

/// The contract's error for an error reply, for whoever has no use for the difference. `None` for any other reply.
pub(crate) fn error_of(reply: &Reply) -> Option<Error> {
    meaning(reply).map(Meaning::into_error)
}

/// Whether the keys of what was asked lie at two nodes of a Cluster, since their slot is on its way: single ones can be had.
pub(crate) fn are_apart(replies: &[Reply]) -> bool {
    replies.iter().any(|reply| matches!(reply, Reply::Error { code, .. } if code == APART))
}

/// What a node says whose keys of one command are not all there, since their slot is on its way.
pub(super) const APART: &str = "TRYAGAIN";

/// What `reply` means if it is an error.
pub(crate) fn meaning(reply: &Reply) -> Option<Meaning> {
    let Reply::Error { code, message } = reply else { return None };
    let (code, message) = inside(code, message);
    Some(match code {
        "NOSCRIPT" => Meaning::NoScript,
        "LOADING" => Meaning::Later(passing("the server is loading its data (LOADING)")),
        "BUSY" => Meaning::Later(passing("the server is busy with somebody's script (BUSY)")),
        APART => Meaning::Later(passing("the Cluster is moving the slot (TRYAGAIN)")),
        "CLUSTERDOWN" => Meaning::Later(passing("the Cluster is down or does not cover the slot (CLUSTERDOWN)")),
        "MISCONF" => Meaning::Later(passing("the server takes no writes because it cannot write to its disk (MISCONF)")),
        "NOREPLICAS" => Meaning::Later(passing("the server takes no writes because it has too few good replicas (NOREPLICAS)")),
        "EXECABORT" => Meaning::Later(passing("the server gave up a transaction before it ran (EXECABORT)")),
        "READONLY" => Meaning::Elsewhere(passing("the server is a replica, or was made one (READONLY)")),
        "MASTERDOWN" => Meaning::Elsewhere(passing("the server is a replica that lost its primary (MASTERDOWN)")),
        "MOVED" | "ASK" => {
            Meaning::Failed(passing("the server is a node of a Cluster and does not hold the slot: use redis+cluster://"))
        }
        "OOM" => Meaning::Failed(Error::new(
            Code::OutOfMemory,
            Outcome::NotApplied,
            "the server refused the write: it has reached its maxmemory",
        )),
        "WRONGPASS" => Meaning::Failed(unauthenticated("the server refused the user or the password")),
        "NOAUTH" => Meaning::Failed(unauthenticated("the server wants a password")),
        "DENIED" => Meaning::Failed(unauthenticated("the server is in protected mode and refuses this address")),
        "NOPERM" => Meaning::Failed(denied(message)),
        "WRONGTYPE" => Meaning::Failed(incompatible("a key of the store holds a value of a foreign type".to_owned())),
        _ if message.starts_with(SCRIPT_DENIED) || message.starts_with("ACL failure in script") => {
            Meaning::Failed(denied(message))
        }
        _ if message.starts_with("max number of clients reached") => {
            Meaning::Later(passing("the server has reached its maximum number of clients"))
        }
        _ if message.contains("invalid bulk length") || message.starts_with("string exceeds maximum allowed size") => {
            let said = "the server's proto-max-bulk-len is smaller than what must be sent: raise it".to_owned();
            Meaning::Failed(incompatible(said))
        }
        _ if message.starts_with("unknown command") || message.starts_with("unknown subcommand") => {
            let command = quoted(message).map_or_else(String::new, |command| format!(" {command}"));
            let said = format!(
                "the server does not know the command{command} (Redis 6.2 or Valkey 7.2 or newer is needed, and no renamed commands)"
            );
            Meaning::UnknownCommand(incompatible(said))
        }
        _ if UNKNOWN_IN_SCRIPT.iter().any(|said| message.starts_with(said)) => {
            let said =
                "the server does not know a command that a script of ours calls (Redis 6.2 or Valkey 7.2 or newer is needed)";
            Meaning::Failed(incompatible(said.to_owned()))
        }
        _ => Meaning::Failed(Error::internal(format!("the server answered {code}{}", shown(message)))),
    })
}

/// Servers before 7.0 wrap what a command inside a script said, in one of two ways:
/// `ERR Error running script (call to f_…): @user_script:1: WRONGTYPE Operation …` if it ran, and
/// `ERR Error running script (call to f_…): @user_script:1: @user_script: 1: -OOM command …` if it was refused.
///
/// A transaction whose EXEC itself is refused says so behind words of its own:
/// `EXECABORT Transaction discarded because of: NOPERM this user …`.
fn inside<'a>(code: &'a str, message: &'a str) -> (&'a str, &'a str) {
    if code == "EXECABORT"
        && let Some((code, message)) = message.split_once("because of: ").and_then(|(_, inner)| inner.split_once(' '))
    {
        return (code.trim_start_matches('-'), message);
    }
    let Some((inner, _)) = in_script(message).filter(|_| code == "ERR") else { return (code, message) };
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let (code, message) = inner.split_once(' ').unwrap_or((inner, ""));
    let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase());
    if is_code { (code, message) } else { ("ERR", inner) }
}

/// What a server before 7.0 says that a command inside a script said, and in which line the command stands.
fn in_script(message: &str) -> Option<(&str, usize)> {
    let mut inner = message.strip_prefix("Error running script (call to ")?.split_once("): ")?.1;
    let mut line = None;
    while let Some((number, behind)) = inner.strip_prefix("@user_script:").and_then(|place| place.split_once(':')) {
        line = Some(number.trim().parse().ok()?);
        inner = behind.trim_start();
    }
    Some((inner, line?))
}

fn passing(said: &str) -> Error {
    Error::new(Code::Unavailable, Outcome::NotApplied, said)
}

fn unauthenticated(said: &str) -> Error {
    Error::new(Code::Unauthenticated, Outcome::NotApplied, said)
}

fn incompatible(said: String) -> Error {
    Error::new(Code::Incompatible, Outcome::NotApplied, said)
}

/// What servers say of a command inside a script that they do not know: Redis 7.0, 6.2, Valkey, and Redis and Valkey when they are
/// asked whether a user may run it.
const UNKNOWN_IN_SCRIPT: [&str; 5] = [
    "Unknown Redis command called from script",
    "Unknown Redis command called from Lua script",
    "Unknown command called from script",
    "Invalid command passed to redis.acl_check_cmd()",
    "Invalid command passed to server.acl_check_cmd()",
];

/// What Redis up to 7.0 says of a command inside a script, without naming it.
const SCRIPT_DENIED: &str = "The user executing the script can't ";

fn denied(message: &str) -> Error {
    // A script is not rolled back, and what it did before is not known here.
    let in_script = message.starts_with(SCRIPT_DENIED) || message.contains(" script");
    let outcome = if in_script { Outcome::Unknown } else { Outcome::NotApplied };
    let own_words = message.strip_prefix(SCRIPT_DENIED).unwrap_or(message);
    let command = quoted(own_words);
    let said = match &command {
        Some(command) => format!("the ACL user may not run the command {command}"),
        None if own_words.contains(" key") => "the ACL user may not touch the store's keys".to_owned(),
        None if own_words.contains("channel") => "the ACL user may not use the store's channels".to_owned(),
        None => "the ACL user may not run a command that is needed".to_owned(),
    };
    unauthenticated(&said).with_outcome(outcome)
}

/// The same error in the plain words of a command outside a script, naming the command that the script called (`text` is
/// the script's own): so that those who look at an error's code see the same from every server.
pub(crate) fn plain(reply: Reply, text: &str) -> Reply {
    let Reply::Error { code, message } = &reply else { return reply };
    let line = in_script(message).map(|(_, line)| line).or_else(|| line_behind(message));
    let (code, message) = inside(code, message);
    if code == "ERR"
        && message.starts_with(SCRIPT_DENIED)
        && message.contains("can't run this command")
        && let Some(command) = line.and_then(|line| called_at(text, line))
    {
        let message = format!("this user has no permissions to run the '{command}' command in a script");
        return Reply::Error { code: "NOPERM".to_owned(), message };
    }
    Reply::Error { code: code.to_owned(), message: message.to_owned() }
}

/// The line that Redis 7.0 names behind an error: `… script: <sha>, on @user_script:7.`
fn line_behind(message: &str) -> Option<usize> {
    message.trim_end().rsplit_once("@user_script:")?.1.trim_end_matches('.').parse().ok()
}

/// The command that a script calls in a line of it.
fn called_at(text: &str, line: usize) -> Option<&str> {
    let line = text.lines().nth(line.checked_sub(1)?)?;
    let call = line.split_once("call(")?.1.trim_start().strip_prefix(['\'', '"'])?;
    call.split_once(['\'', '"']).map(|(command, _)| command)
}

/// The first quoted word, if it looks like a command's name.
fn quoted(message: &str) -> Option<String> {
    let start = message.find(['\'', '`'])?;
    let rest = &message[start + 1..];
    let word = &rest[..rest.find(['\'', '`'])?];
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'|' | b'.' | b'-');
    (!word.is_empty() && word.len() <= 40 && word.bytes().all(plain)).then(|| word.to_ascii_uppercase())
}

/// The part of the server's words in which no argument can stand.
fn shown(message: &str) -> String {
    let plain = message.split(['\'', '`', '"']).next().unwrap_or_default();
    let text: String = plain.chars().take(120).collect();
    if text.is_empty() { text } else { format!(": {}", text.trim_end()) }
}

#[cfg(test)]
mod tests;
