//! The commands that come on standard input.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use zlink_test_servers::{Action, Cluster, Proxy, RedisServer, Request, SentinelTrio, Value, Way};

use std::str::FromStr;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub(crate) struct Control {
    servers: Servers,
    proxy: Option<Proxy>,
    always: Arc<Mutex<Vec<(String, Action)>>>,
}

/// What was started.
pub(crate) enum Servers {
    None,
    One(RedisServer),
    Sentinel(SentinelTrio),
    Cluster(Cluster),
}

/// What a fake server says to what it was told nothing about.
pub(crate) fn fallback(request: &Request) -> Action {
    match request.name().as_str() {
        "AUTH" | "SELECT" | "CLIENT" => Action::line("+OK"),
        "PING" => Action::line("+PONG"),
        name => Action::line(&format!("-ERR unknown command '{name}'")),
    }
}

impl Control {
    pub(crate) fn new(servers: Servers, proxy: Option<Proxy>) -> Self {
        Self { servers, proxy, always: Arc::default() }
    }

    /// Does what a line says; what there is to tell comes back.
    pub(crate) fn obey(&mut self, line: &str) -> Result<Json, String> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        if name == "proxy" {
            return self.obey_for_proxy(rest.trim());
        }
        let none = || "there is no such server; see --help".to_owned();
        let one_of = |text: &str| {
            let (place, rest) = text.split_once(' ').ok_or_else(none)?;
            Ok::<_, String>((number::<usize>(place)?, rest.trim().to_owned()))
        };
        match (&mut self.servers, name) {
            (Servers::None, _) => Err(none()),
            (Servers::One(server), _) => obey_for(server, line),
            (Servers::Sentinel(trio), "primary") => Ok(json!({ "primary": trio.primary() })),
            (Servers::Sentinel(trio), "promoted") => Ok(json!({ "primary": trio.promoted(number(rest)?) })),
            (Servers::Sentinel(trio), "server") => {
                let (place, line) = one_of(rest)?;
                obey_for(trio.servers().get_mut(place).ok_or_else(none)?, &line)
            }
            (Servers::Sentinel(trio), "sentinel") => {
                let (place, line) = one_of(rest)?;
                obey_for(trio.sentinels().get_mut(place).ok_or_else(none)?, &line)
            }
            (Servers::Cluster(cluster), "slot") => Ok(json!({ "slot": cluster.slot(rest) })),
            (Servers::Cluster(cluster), "owner") => Ok(json!({ "owner": cluster.owner(number(rest)?) })),
            (Servers::Cluster(cluster), "promoted") => {
                let (slot, old) = one_of(rest)?;
                let slot = u16::try_from(slot).map_err(|_| "that is no slot")?;
                Ok(json!({ "owner": cluster.promoted(slot, number(&old)?) }))
            }
            (Servers::Cluster(cluster), "move") => {
                let (slot, to) = one_of(rest)?;
                cluster.move_slot(u16::try_from(slot).map_err(|_| "that is no slot")?, number(&to)?);
                Ok(json!({}))
            }
            (Servers::Cluster(cluster), "server") => {
                let (place, line) = one_of(rest)?;
                obey_for(cluster.nodes().get_mut(place).ok_or_else(none)?, &line)
            }
            _ => Err(format!("unknown command {name}; see --help")),
        }
    }

    fn obey_for_proxy(&self, line: &str) -> Result<Json, String> {
        let proxy = self.proxy.as_ref().ok_or("there is no proxy: start with --proxy")?;
        let mut words = line.splitn(4, ' ').map(str::trim).filter(|word| !word.is_empty());
        let name = words.next().unwrap_or_default();
        let mut word = |what: &str| words.next().ok_or_else(|| format!("{name} needs {what}; see --help"));
        match name {
            "once" => {
                let (command, skip) = (word("NAME")?, number(word("SKIP")?)?);
                proxy.once(command, skip, action(word("ACTION")?)?);
            }
            "always" => {
                let command = word("NAME")?.to_ascii_uppercase();
                let text = line.splitn(3, ' ').nth(2).ok_or("always needs ACTION; see --help")?;
                self.always.lock().unwrap_or_else(PoisonError::into_inner).push((command, action(text)?));
                self.judge(proxy);
            }
            "pass" => {
                self.always.lock().unwrap_or_else(PoisonError::into_inner).clear();
                proxy.pass();
                self.judge(proxy);
            }
            "delay" => {
                let way = way(word("WAY")?)?;
                proxy.delay(way, Duration::from_millis(number(word("MS")?)?));
            }
            "throttle" => proxy.throttle(number(word("BYTES")?)?),
            "cut-after" => {
                let way = way(word("WAY")?)?;
                proxy.cut_after(way, number(word("BYTES")?)?);
            }
            "cut" => proxy.cut_all(),
            "swallow" => proxy.swallow(),
            "heal" => proxy.heal(),
            "refuse" => proxy.refuse(word("on or off")? == "on"),
            "target" => proxy.retarget(number(word("PORT")?)?),
            "stats" => {
                return Ok(json!({ "open": proxy.open(), "accepted": proxy.accepted(), "commands": proxy.commands() }));
            }
            "record" => proxy.record(),
            "recorded" => {
                let requests = proxy.recorded().into_iter();
                let encoded = requests.map(|request| request.args.iter().map(|arg| STANDARD.encode(arg)).collect::<Vec<_>>());
                return Ok(json!({ "recorded": encoded.collect::<Vec<_>>() }));
            }
            _ => return Err(format!("unknown proxy command {name}; see --help")),
        }
        Ok(json!({}))
    }

    fn judge(&self, proxy: &Proxy) {
        let always = Arc::clone(&self.always);
        let fake = matches!(self.servers, Servers::None);
        proxy.judge(move |request| {
            let name = request.name();
            let always = always.lock().unwrap_or_else(PoisonError::into_inner);
            let told = always.iter().rev().find(|(command, _)| *command == "*" || *command == name);
            told.map_or_else(|| if fake { fallback(request) } else { Action::Pass }, |(_, action)| action.clone())
        });
    }
}

/// Does to one server what a line says.
fn obey_for(server: &mut RedisServer, line: &str) -> Result<Json, String> {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let done = match name {
        "kill" => server.kill(),
        "restart" => server.restart(),
        "pause" => server.pause(),
        "resume" => server.resume(),
        "clients" => return Ok(json!({ "clients": server.clients() })),
        "say" => {
            let args: Vec<String> = if rest.starts_with('[') {
                let args: Json = rest.parse().map_err(|_| "that is no JSON")?;
                let texts =
                    args.as_array().into_iter().flatten().map(|arg| arg.as_str().map_or_else(|| arg.to_string(), str::to_owned));
                texts.collect()
            } else {
                rest.split_ascii_whitespace().map(str::to_owned).collect()
            };
            let reply = server.talk().and_then(|mut talk| talk.say(&args)).map_err(|error| error.to_string())?;
            return Ok(json!({ "reply": shown(&reply) }));
        }
        _ => return Err(format!("unknown command {name}; see --help")),
    };
    done.map(|()| json!({})).map_err(|error| error.to_string())
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text} is no number in its range"))
}

fn way(text: &str) -> Result<Way, String> {
    match text {
        "requests" => Ok(Way::Requests),
        "replies" => Ok(Way::Replies),
        _ => Err("WAY is requests or replies".to_owned()),
    }
}

fn action(text: &str) -> Result<Action, String> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    Ok(match name {
        "pass" => Action::Pass,
        "cut-before" => Action::CutBefore,
        "cut-inside" => Action::CutInside,
        "cut-after" => Action::CutAfter,
        "drop-reply" => Action::DropReply,
        "lose-reply" => Action::LoseReply,
        "stall-inside" => Action::StallInside,
        "stall-reply" => Action::StallReply,
        "cut-reply" => Action::CutReply,
        "delay-reply" => Action::DelayReply(number(rest)?),
        "answer" => Action::line(rest),
        _ => return Err(format!("unknown action {name}; see --help")),
    })
}

fn shown(value: &Value) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Int(number) => json!(number),
        Value::Bytes(_) => json!(value.text()),
        Value::Error(text) => json!({ "error": text }),
        Value::Array(items) => items.iter().map(shown).collect(),
    }
}
