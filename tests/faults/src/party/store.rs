//! What is the same for every kind of store.

use std::future::Future;

use zlink_store::{LocationStore, RelocationStore};

use super::participant::Remote;

/// A store of some language.
#[derive(Clone, Debug)]
pub enum Store<S> {
    /// The core's own.
    Core(S),
    /// A binding's.
    Remote(Remote),
}

/// What each of the core's own stores offers.
pub trait Own {
    /// How many operations it counts as under way.
    fn in_flight(&self) -> usize;
    /// Closes it.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

macro_rules! own {
    ($($store:ty),+) => {
        $(
            impl Own for $store {
                fn in_flight(&self) -> usize {
                    self.stats().in_flight
                }

                fn close(&self) -> impl Future<Output = ()> + Send {
                    <$store>::close(self)
                }
            }
        )+
    };
}

own!(LocationStore, RelocationStore, zlink_store::Project);

impl<S: Own> Store<S> {
    /// How many operations the store counts as under way; a binding's does not tell.
    pub fn in_flight(&self) -> usize {
        match self {
            Self::Core(store) => store.in_flight(),
            Self::Remote(_) => 0,
        }
    }

    /// Closes it.
    pub async fn close(&self) {
        match self {
            Self::Core(store) => store.close().await,
            Self::Remote(remote) => remote.close().await,
        }
    }
}
