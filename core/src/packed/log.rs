//! Log events of the core, for bindings to environments that want to hear them.

use std::fmt::{self, Write};
use std::sync::{Arc, Once, Weak};

use parking_lot::RwLock;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record as SpanRecord};
use tracing::{Event, Metadata, Subscriber};

static LISTENERS: RwLock<Vec<(LevelFilter, Weak<dyn LogListener>)>> = RwLock::new(Vec::new());
static INSTALLED: Once = Once::new();

/// Hears log events, on the thread on which they happen: it is to be quick and to wait for nobody.
pub trait LogListener: Send + Sync {
    /// Something happened. The level is `error`, `warn`, `info`, `debug` or `trace`.
    fn event(&self, level: &str, target: &str, message: &str);
}

/// Sends events of at least `level` (`error` … `trace`; `info` if it is none of these) to `listener` from now on, as long as that
/// lives; `None` ends it.
pub fn listen(listener: &Arc<dyn LogListener>, level: Option<&str>) {
    {
        let mut listeners = LISTENERS.write();
        let same = |other: &Arc<_>| std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(listener));
        listeners.retain(|(_, other)| other.upgrade().is_some_and(|other| !same(&other)));
        if let Some(level) = level {
            listeners.push((level.parse().unwrap_or(LevelFilter::INFO), Arc::downgrade(listener)));
        }
    }
    // With the listeners free: `tracing` asks at once how verbose they are.
    INSTALLED.call_once(|| {
        // The library of a binding has its own copy of `tracing`, so nobody else can have set a subscriber.
        let _ = tracing::subscriber::set_global_default(Forward);
    });
    tracing::callsite::rebuild_interest_cache();
}

fn most_verbose() -> LevelFilter {
    LISTENERS.read().iter().map(|(level, _)| *level).max().unwrap_or(LevelFilter::OFF)
}

struct Forward;

impl Subscriber for Forward {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("zlink_store") && *metadata.level() <= most_verbose()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(most_verbose())
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut said = Said::default();
        event.record(&mut said);
        let level = metadata.level().as_str().to_ascii_lowercase();
        for (least, listener) in LISTENERS.read().iter() {
            let Some(listener) = listener.upgrade().filter(|_| metadata.level() <= least) else { continue };
            listener.event(&level, metadata.target(), &said.0);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &SpanRecord<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The message, and the other fields as `name=value` behind it.
#[derive(Default)]
struct Said(String);

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = if field.name() == "message" {
            let rest = std::mem::take(&mut self.0);
            write!(self.0, "{value:?}{rest}")
        } else {
            write!(self.0, " {}={value:?}", field.name())
        };
    }
}
