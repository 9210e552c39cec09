//! What nodes and objects are called.

use std::fmt;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use crate::contract::Error;

macro_rules! bounded_text {
    ($(#[$doc:meta])* $name:ident, $argument:literal, $max:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The longest, in bytes of UTF-8.
            pub const MAX: usize = $max;

            /// Checks the length and takes the text as it is: no normalisation, compared byte by byte.
            ///
            /// # Errors
            /// `INVALID_ARGUMENT` if it is empty or too long.
            pub fn new(text: impl Into<Arc<str>>) -> Result<Self, Error> {
                let text = text.into();
                check($argument, text.len(), Self::MAX)?;
                Ok(Self(text))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

bounded_text! {
    /// A mesh's name: 1..=128 bytes of UTF-8.
    MeshName, "meshName", 128
}
bounded_text! {
    /// What a node is there for, as the framework calls it: 1..=64 bytes of UTF-8.
    Role, "role", 64
}
bounded_text! {
    /// Where a node is reached: 1..=1,024 bytes of UTF-8, opaque to the runtime.
    NodeEndpoint, "endpoint", 1024
}
bounded_text! {
    /// An actor's or a spot's global id: 1..=512 bytes of UTF-8.
    GlobalId, "globalId", 512
}
bounded_text! {
    /// The stable name of an object's type: 1..=256 bytes of UTF-8.
    StableType, "stableType", 256
}

/// What the text form of a routing id leaves as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'@');

/// A node's routing id in its mesh: 1..=255 bytes, equal by bytes.
///
/// Its text form has ASCII letters, digits and `- . _ ~ : @` as they are and every other byte as `%XX`, so that each id has
/// exactly one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoutingId(Arc<[u8]>);

impl RoutingId {
    /// The longest, in bytes.
    pub const MAX: usize = 255;

    /// Checks the length and takes the bytes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there are none or more than 255.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Result<Self, Error> {
        let bytes = bytes.into();
        check("nodeRid", bytes.len(), Self::MAX)?;
        Ok(Self(bytes))
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is not what [`Display`](fmt::Display) writes of a routing id.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let id = Self::new(percent_decode_str(text).collect::<Vec<u8>>())?;
        if id.to_string() != text {
            return Err(Error::argument(
                "nodeRid",
                "must be the text form of a routing id: ASCII letters, digits and - . _ ~ : @, every other byte as %XX",
            ));
        }
        Ok(id)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for RoutingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        percent_encode(&self.0, PLAIN).fmt(f)
    }
}

impl fmt::Debug for RoutingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoutingId({self})")
    }
}

/// A node: a routing id in a mesh.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    /// The mesh.
    pub mesh_name: MeshName,
    /// The node's routing id in it.
    pub node_rid: RoutingId,
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.mesh_name, self.node_rid)
    }
}

fn check(argument: &str, length: usize, max: usize) -> Result<(), Error> {
    if (1..=max).contains(&length) {
        return Ok(());
    }
    Err(Error::argument(argument, format!("must be 1..={max} bytes, got {length}")))
}
