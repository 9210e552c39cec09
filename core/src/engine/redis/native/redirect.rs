//! Where a node of a Cluster sends those who ask for what it does not have.

use crate::engine::redis::config::Address;
use crate::engine::redis::transport::{Batch, Reply};

/// Where to go.
#[derive(Debug, PartialEq)]
pub(super) enum Redirect {
    /// The slot is there, for good.
    Moved(Address),
    /// The slot is on its way there, and so are the keys that were asked for: this time only, with ASKING.
    Ask(Address),
}

/// Where `batch` is to go, if its first command that has keys was sent elsewhere. What follows it belongs to it.
pub(super) fn redirect(batch: &Batch, replies: &[Reply]) -> Option<Redirect> {
    let keyed = |command: &[bytes::Bytes]| command.first().is_none_or(|name| name != "TIME");
    let place = if batch.atomic { 0 } else { batch.commands.iter().position(|command| keyed(command)).unwrap_or(0) };
    let Reply::Error { code, message } = replies.get(place)? else { return None };
    let mut words = message.split(' ');
    let (_slot, address) = (words.next()?, address(words.next()?)?);
    match code.as_str() {
        "MOVED" => Some(Redirect::Moved(address)),
        "ASK" => Some(Redirect::Ask(address)),
        _ => None,
    }
}

fn address(text: &str) -> Option<Address> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = port.parse().ok().filter(|port| *port > 0)?;
    (!host.is_empty()).then(|| Address::Tcp(host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(atomic: bool, commands: &[&str]) -> Batch {
        Batch { commands: commands.iter().map(|name| vec![bytes::Bytes::from(name.to_string())]).collect(), atomic }
    }

    fn error(code: &str, message: &str) -> Reply {
        Reply::Error { code: code.to_owned(), message: message.to_owned() }
    }

    fn at(host: &str) -> Address {
        Address::Tcp(host.to_owned(), 7000)
    }

    #[test]
    fn only_the_first_command_with_keys_is_followed() {
        let moved = || error("MOVED", "3999 127.0.0.1:7000");
        let there = Some(Redirect::Moved(at("127.0.0.1")));
        assert_eq!(redirect(&batch(false, &["GET"]), &[moved()]), there);
        assert_eq!(redirect(&batch(false, &["TIME", "SET", "WAIT"]), &[Reply::Nil, moved(), Reply::Int(0)]), there);
        assert_eq!(redirect(&batch(true, &["TIME", "GET"]), &[moved(), moved()]), there);
        assert_eq!(redirect(&batch(false, &["GET", "SET"]), &[Reply::Nil, moved()]), None);
        assert_eq!(redirect(&batch(false, &["TIME"]), &[Reply::Nil]), None);
    }

    #[test]
    fn addresses_of_every_kind_and_what_is_none() {
        let of = |message: &str| redirect(&batch(false, &["GET"]), &[error("ASK", message)]);
        assert_eq!(of("1 h.example:7000"), Some(Redirect::Ask(at("h.example"))));
        for ipv6 in ["1 ::1:7000", "1 [::1]:7000"] {
            assert_eq!(of(ipv6), Some(Redirect::Ask(at("::1"))), "{ipv6}");
        }
        for none in ["", "1", "1 ", "1 h", "1 h:0", "1 h:70000", "1 h:x", "1 :7000"] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }
}
