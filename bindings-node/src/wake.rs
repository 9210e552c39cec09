//! What makes JavaScript look for answers.

use std::sync::Arc;

use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status, Unknown, sys};

/// A function of one environment, called from any thread. Weak: it keeps no process alive by itself; JavaScript says when it
/// shall.
#[derive(Clone)]
pub(crate) struct Wake(Arc<ThreadsafeFunction<(), Unknown<'static>, (), Status, false, true>>);

impl Wake {
    pub(crate) fn new(function: &Function<'_, (), Unknown<'static>>) -> napi::Result<Self> {
        let builder = function.build_threadsafe_function::<()>();
        Ok(Self(Arc::new(builder.callee_handled::<false>().weak::<true>().build()?)))
    }

    pub(crate) fn call(&self) {
        // `Closing` means that the environment ends: nobody is left to hear it.
        self.0.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }

    /// Whether the process is kept alive. From the JavaScript thread only.
    #[expect(unsafe_code, reason = "the safe wrapper wants to be owned by one")]
    pub(crate) fn hold_process(&self, env: Env, hold: bool) {
        self.0.handle.with_read_aborted(|aborted| {
            if aborted {
                return;
            }
            let change = if hold { sys::napi_ref_threadsafe_function } else { sys::napi_unref_threadsafe_function };
            // SAFETY: the function is alive, for it was not aborted and we hold its lock; we are on the thread of `env`.
            unsafe { change(env.raw(), self.0.raw()) };
        });
    }
}
