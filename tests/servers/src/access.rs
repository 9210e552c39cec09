//! Who may come, and by which way: what servers that belong together have in common.

use std::sync::Arc;

use crate::certificates::Certificates;
use crate::redis::{Settings, encoded};

/// An ACL user.
#[derive(Clone, Debug)]
pub struct User {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
    /// What the user may do, such as `~app:* +get`.
    pub rules: String,
}

impl User {
    /// As `ACL SETUSER` and the settings of a server take it.
    pub fn setting(&self) -> (String, String) {
        (self.name.clone(), format!(">{} {}", self.password, self.rules))
    }
}

/// How clients reach servers that belong together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    pub(crate) tls: Option<Arc<Certificates>>,
    pub(crate) password: Option<String>,
    pub(crate) user: Option<User>,
}

impl Access {
    /// The settings of a server that lets clients in so.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            tls: self.tls.clone(),
            tls_clients: self.tls.is_some(),
            tls_among: self.tls.is_some(),
            password: self.password.clone(),
            users: self.user.iter().map(User::setting).collect(),
            ..Settings::default()
        }
    }

    /// A URL with hosts at these ports, who comes in front of them, and `more` parameters.
    pub(crate) fn url(&self, kind: &str, ports: &[u16], behind: &str, more: &[String]) -> String {
        let scheme = if self.tls.is_some() { "rediss" } else { "redis" };
        let hosts: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let login = match (&self.user, &self.password) {
            (Some(user), _) => format!("{}:{}@", encoded(&user.name), encoded(&user.password)),
            (None, Some(password)) => format!(":{}@", encoded(password)),
            (None, None) => String::new(),
        };
        let parameters: Vec<_> = self.tls.iter().map(|tls| tls.parameters(true)).chain(more.iter().cloned()).collect();
        let mark = if parameters.is_empty() { "" } else { "?" };
        format!("{scheme}+{kind}://{login}{}{behind}{mark}{}", hosts.join(","), parameters.join("&"))
    }
}
