//! How long silence is still worth waiting for, which may turn out in the middle of a response.
//!
//! The limits of a request are fixed when it is sent. But the rest of a refusal, or of a stream
//! whose model is done, is not worth the minutes that an answer is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ureq::unversioned::transport::time::Duration as Limit;
use ureq::unversioned::transport::{Buffers, NextTimeout, Transport};

/// Shared between a request and its connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Patience(Arc<Mutex<Option<Instant>>>);

impl Patience {
    /// Waits no longer than `limit` from now on. A limit that is there already stays.
    pub(super) fn limit(&self, limit: Duration) {
        let mut end = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        end.get_or_insert_with(|| Instant::now() + limit);
    }

    /// Waits no longer than `limit` from now on, whatever the limit was.
    pub(super) fn cut_to(&self, limit: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + limit);
    }

    /// Waits as long as the limits of the request say.
    pub(super) fn renew(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn cap(&self, mut timeout: NextTimeout) -> NextTimeout {
        let end = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(end) = end {
            // Nothing left is said by the shortest time there is: none at all means no limit.
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            timeout.after = match timeout.after {
                Limit::Exact(after) => Limit::Exact(after.min(left)),
                Limit::NotHappening => Limit::Exact(left),
            };
        }
        timeout
    }
}

/// A connection that is read no longer than there is patience.
#[derive(Debug)]
pub(super) struct Patient {
    inner: Box<dyn Transport>,
    patience: Patience,
}

impl Patient {
    pub(super) fn new(inner: Box<dyn Transport>, patience: Patience) -> Patient {
        Patient { inner, patience }
    }
}

impl Transport for Patient {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.inner.await_input(self.patience.cap(timeout))
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}
