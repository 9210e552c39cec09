//! The Redis forms of a store's URL.
//!
//! | form | what |
//! |---|---|
//! | `redis://[user[:password]@]host[:port][/db]` | one server, port 6379 unless said; `valkey://` is the same; `rediss://` and `valkeys://` speak TLS |
//! | `redis+unix://[user[:password]@]/path/to.sock` | a unix socket; the database goes into the parameter `db` |
//! | `redis+sentinel://[user[:password]@]host[:port],…/master[/db]` | the primary that the Sentinels (port 26379 unless said) know as `master`; `rediss+sentinel` speaks TLS |
//! | `redis+cluster://[user[:password]@]host[:port],…` | some nodes of a Cluster; `rediss+cluster` speaks TLS |
//!
//! Parameters: `db`, `protocol` (`2`, the default, or `3`: the version of RESP), `connect_timeout_ms`, `client_name`,
//! `min_acked_replicas`, `allow_eviction`; with TLS `tls_ca`, `tls_cert`, `tls_key` (paths of PEM files), `tls_server_name`,
//! `insecure`; with Sentinel `sentinel_user`, `sentinel_password`.
//!
//! User, password, path, master and parameter values are percent-decoded (a `+` is a plus). IPv6 addresses stand in brackets.
//! No error message repeats what stands where a password can be: a password with an unescaped `/` or `?` reads like a path.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::config::{Address, Pem, RedisConfig, Secret, Server, Tls};
use crate::contract::Error;

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// What the part in front of `://` chooses.
struct Scheme {
    form: Form,
    tls: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Single,
    Unix,
    Sentinel,
    Cluster,
}

impl RedisConfig {
    /// Understands the Redis forms of a store's URL.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: which part is wrong, with the password left out.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let (scheme, rest) = url.split_once("://").ok_or_else(unknown_scheme)?;
        let scheme = scheme_of(scheme).ok_or_else(unknown_scheme)?;
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) = match rest.find('/') {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, ""),
        };
        if url.contains('#') {
            return wrong("has an unescaped '#' (write it as %23)");
        }
        let stray = query.is_some_and(|query| query.contains('@')) || (scheme.form != Form::Unix && path.contains('@'));
        if stray {
            return wrong(
                "has '/', '?' or '@' where it must be percent-encoded (%2F, %3F, %40) in user, password, path or parameter",
            );
        }
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let mut path_db = None;
        let server = match scheme.form {
            Form::Unix => {
                if !hosts.is_empty() {
                    return wrong("must have no host with redis+unix (three slashes in front of the path)");
                }
                if path.is_empty() {
                    return wrong("must name the socket's path");
                }
                Server::Single(Address::Unix(PathBuf::from(decoded(&format!("/{path}"), "path")?)))
            }
            Form::Single => {
                path_db = db_of(path)?;
                let mut hosts = addresses(hosts, REDIS_PORT)?;
                match hosts.pop() {
                    Some(host) if hosts.is_empty() => Server::Single(host),
                    _ => return wrong("must name one host (lists are for redis+sentinel and redis+cluster)"),
                }
            }
            Form::Sentinel => {
                let (master, db) = path.split_once('/').map_or((path, ""), |(master, db)| (master, db));
                path_db = db_of(db)?;
                if master.is_empty() {
                    return wrong("must name the master behind the sentinels: …/mymaster");
                }
                let master = decoded(master, "master")?;
                Server::Sentinel { sentinels: addresses(hosts, SENTINEL_PORT)?, master, username: None, password: None }
            }
            Form::Cluster => {
                path_db = db_of(path)?;
                Server::Cluster(addresses(hosts, REDIS_PORT)?)
            }
        };
        let mut config = Self::of(server);
        config.tls = scheme.tls.then(Tls::default);
        if let Some(login) = login {
            let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
            config.username = Some(decoded(user, "user")?).filter(|user| !user.is_empty());
            config.password = password.map(|password| decoded(password, "password")).transpose()?;
            // `:@` is nobody.
            if config.username.is_none() {
                config.password = config.password.filter(|password| !password.is_empty());
            }
        }
        parameters(&mut config, query.unwrap_or_default(), path_db)?;
        config.check().map_err(|(part, problem)| Error::argument("url", format!("has a wrong {part}: {problem}")))?;
        Ok(config)
    }
}

fn scheme_of(text: &str) -> Option<Scheme> {
    let (form, tls) = match text.to_ascii_lowercase().as_str() {
        "redis" | "valkey" => (Form::Single, false),
        "rediss" | "valkeys" => (Form::Single, true),
        "redis+unix" => (Form::Unix, false),
        "redis+sentinel" => (Form::Sentinel, false),
        "rediss+sentinel" => (Form::Sentinel, true),
        "redis+cluster" => (Form::Cluster, false),
        "rediss+cluster" => (Form::Cluster, true),
        _ => return None,
    };
    Some(Scheme { form, tls })
}

fn addresses(list: &str, default_port: u16) -> Result<Vec<Address>, Error> {
    list.split(',').map(|host| address(host, default_port)).collect()
}

fn address(text: &str, default_port: u16) -> Result<Address, Error> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let Some((inside, behind)) = rest.split_once(']') else { return wrong("has an unclosed '[' in its host") };
        let host = decoded(inside, "host")?;
        // A link-local address carries its interface: fe80::1%eth0.
        let (ip, zone) = host.split_once('%').map_or((host.as_str(), None), |(ip, zone)| (ip, Some(zone)));
        if ip.parse::<Ipv6Addr>().is_err() || zone.is_some_and(|zone| !is_name(zone)) {
            return wrong("has no IPv6 address between '[' and ']'");
        }
        match behind.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if behind.is_empty() => (host, None),
            None => return wrong("has something other than a port behind ']'"),
        }
    } else {
        let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
        if host.is_empty() {
            return wrong("must name a host");
        }
        if port.is_some_and(|port| port.contains(':')) {
            return wrong("has an IPv6 address without brackets, or two ports");
        }
        if !is_name(host) {
            return wrong("has a host with a character that no host name has (is the password percent-encoded?)");
        }
        (host.to_owned(), port)
    };
    let port = match port {
        None => default_port,
        Some(port) => match port.parse() {
            Ok(port) if port > 0 && is_digits(port_text(text)) => port,
            _ => return wrong("has a port that is not 1..=65535 (is the password percent-encoded?)"),
        },
    };
    Ok(Address::Tcp(host, port))
}

fn port_text(address: &str) -> &str {
    address.rsplit(':').next().unwrap_or_default()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_name(host: &str) -> bool {
    !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

fn db_of(path: &str) -> Result<Option<u32>, Error> {
    match path.strip_suffix('/').unwrap_or(path) {
        "" => Ok(None),
        db => number(db).map(Some).ok_or_else(|| Error::argument("url", "has a path that is no database index")),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    if is_digits(text) { text.parse().ok() } else { None }
}

pub(crate) fn decoded(text: &str, part: &str) -> Result<String, Error> {
    let bytes = text.as_bytes();
    let whole = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'%')
        .all(|(at, _)| bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)));
    let decoded = percent_decode_str(text).decode_utf8();
    match decoded {
        Ok(decoded) if whole => Ok(decoded.into_owned()),
        _ => wrong(&format!("has a {part} that is not percent-encoded UTF-8 (write '%' as %25)")),
    }
}

fn wrong<T>(problem: &str) -> Result<T, Error> {
    Err(Error::argument("url", problem))
}

fn unknown_scheme() -> Error {
    Error::argument(
        "url",
        "must begin with redis://, rediss://, valkey://, valkeys://, redis+unix://, redis+sentinel://, rediss+sentinel://, \
         redis+cluster:// or rediss+cluster:// (an embedded store's with memory: or file:)",
    )
}

/// Reads the parameters. Each may come once, and only where it means something.
fn parameters(config: &mut RedisConfig, query: &str, path_db: Option<u32>) -> Result<(), Error> {
    const NAMES: [&str; 13] = [
        "db",
        "protocol",
        "connect_timeout_ms",
        "client_name",
        "min_acked_replicas",
        "allow_eviction",
        "tls_ca",
        "tls_cert",
        "tls_key",
        "tls_server_name",
        "insecure",
        "sentinel_user",
        "sentinel_password",
    ];
    let mut seen = [false; NAMES.len()];
    config.db = path_db.unwrap_or(0);
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let Some(place) = NAMES.iter().position(|known| *known == name) else {
            // Without an '=' it may be the rest of something else, a password even.
            let plain = parameter.contains('=') && is_name(name);
            let shown = if plain { format!(" {name}") } else { String::new() };
            return wrong(&format!("has an unknown parameter{shown}; known are {}", NAMES.join(", ")));
        };
        let name = NAMES[place];
        if std::mem::replace(&mut seen[place], true) {
            return wrong(&format!("has the parameter {name} twice"));
        }
        if name == "db" && path_db.is_some() {
            return wrong("has a database index in its path and in the parameter db");
        }
        let value = decoded(value, name)?;
        if value.is_empty() {
            return wrong(&format!("has an empty parameter {name}"));
        }
        set(config, name, value)?;
    }
    Ok(())
}

fn set(config: &mut RedisConfig, name: &str, value: String) -> Result<(), Error> {
    match name {
        "db" => config.db = whole(name, &value)?,
        "protocol" => config.resp3 = choice(name, &value, "2", "3")?,
        "connect_timeout_ms" => config.connect_timeout_ms = Some(whole(name, &value)?),
        "client_name" => config.client_name = Some(value),
        "min_acked_replicas" => config.min_acked_replicas = whole(name, &value)?,
        "allow_eviction" => config.allow_eviction = choice(name, &value, "false", "true")?,
        "sentinel_user" | "sentinel_password" => {
            let Server::Sentinel { username, password, .. } = &mut config.server else {
                return wrong(&format!("has the parameter {name}, which only redis+sentinel takes"));
            };
            if name == "sentinel_user" {
                *username = Some(value);
            } else {
                *password = Some(Secret(value));
            }
        }
        _ => {
            let Some(tls) = &mut config.tls else {
                return wrong(&format!("has the parameter {name}, which only a TLS scheme such as rediss:// takes"));
            };
            match name {
                "tls_ca" => tls.ca = Some(Pem::File(value.into())),
                "tls_cert" => tls.cert = Some(Pem::File(value.into())),
                "tls_key" => tls.key = Some(Pem::File(value.into())),
                "tls_server_name" => tls.server_name = Some(value),
                _ => tls.insecure = choice(name, &value, "false", "true")?,
            }
        }
    }
    Ok(())
}

fn whole<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, Error> {
    number(value).ok_or_else(|| Error::argument("url", format!("has a parameter {name} that is no whole number in its range")))
}

fn choice(name: &str, value: &str, no: &str, yes: &str) -> Result<bool, Error> {
    if value == yes {
        Ok(true)
    } else if value == no {
        Ok(false)
    } else {
        wrong(&format!("has a parameter {name} that is neither {no} nor {yes}"))
    }
}

#[cfg(test)]
mod tests;
