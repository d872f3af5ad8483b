//! How long silence is still worth waiting for, which may turn out in the middle of a response.
//!
//! The limits of a request are fixed when it is sent. But the rest of a refusal, or of a stream
//! whose model is done, is not worth the minutes that an answer is.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ureq::unversioned::transport::time::Duration as Limit;
use ureq::unversioned::transport::{Buffers, NextTimeout, Transport};

use super::errors::is_closed;

/// The most bytes that may come without a byte of the body: the head, whatever stands before it,
/// what frames chunks, and the trailers.
pub(super) const FRAMING_MAX: usize = 64 << 10;

/// More than what stands between two chunks. When so much came without a byte of the body, it is
/// most likely trailers, and the rest of them has [`TRAILERS_TIME`].
const BETWEEN_CHUNKS: usize = 256;
const TRAILERS_TIME: Duration = Duration::from_secs(5);

/// Shared between a request and its connection.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadDeadline(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    end: Option<Instant>,
    /// Bytes that came since the body last gained one.
    framing: usize,
    /// Whether a body in chunks is being read.
    chunked: bool,
    /// When what looks like trailers must have ended.
    trailers_end: Option<Instant>,
    /// Why a body in chunks was cut.
    cut: Option<ureq::Error>,
}

impl ReadDeadline {
    /// Forgets what an earlier request left.
    pub(super) fn start(&self) {
        *self.lock() = State::default();
    }

    /// Waits no longer than `limit` from now on. A limit that is there already stays.
    pub(super) fn limit(&self, limit: Duration) {
        self.lock().end.get_or_insert_with(|| Instant::now() + limit);
    }

    /// Waits no longer than `limit` from now on, whatever the limit was.
    pub(super) fn cut_to(&self, limit: Duration) {
        self.lock().end = Some(Instant::now() + limit);
    }

    /// Waits as long as the limits of the request say.
    pub(super) fn renew(&self) {
        self.lock().end = None;
    }

    /// From now on a body in chunks is read. Whether it is whole is known to the HTTP library
    /// alone, so that a limit that ends the reading looks to it like the end of the connection:
    /// behind the last chunk, where only trailers can be missing, the body is whole then.
    pub(super) fn expect_chunks(&self) {
        self.lock().chunked = true;
    }

    /// Says that the next byte of the body is asked for.
    pub(super) fn next_read(&self) {
        let mut state = self.lock();
        (state.framing, state.trailers_end) = (0, None);
    }

    /// What ended the reading of a body in chunks, where it was no end of the connection.
    pub(super) fn take_cut(&self) -> Option<ureq::Error> {
        self.lock().cut.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The time that the next read has.
    fn cap(&mut self, mut timeout: NextTimeout) -> Result<NextTimeout, ureq::Error> {
        if self.framing > FRAMING_MAX {
            return Err(without_end());
        }
        if self.chunked && self.framing > BETWEEN_CHUNKS {
            self.trailers_end.get_or_insert_with(|| Instant::now() + TRAILERS_TIME);
        }
        if self.is_out_of_trailers() {
            return Err(without_end());
        }
        let ends = [self.end, self.trailers_end];
        if let Some(end) = ends.into_iter().flatten().min() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ureq::Error::Timeout(timeout.reason));
            }
            timeout.after = match timeout.after {
                Limit::Exact(after) => Limit::Exact(after.min(left)),
                Limit::NotHappening => Limit::Exact(left),
            };
        }
        Ok(timeout)
    }

    /// Whether the time of what looks like trailers is over.
    fn is_out_of_trailers(&self) -> bool {
        self.trailers_end.is_some_and(|end| end <= Instant::now())
    }
}

fn without_end() -> ureq::Error {
    ureq::Error::Io(io::Error::other("headers or trailers have no end"))
}

/// A connection that is read until its deadline.
#[derive(Debug)]
pub(super) struct DeadlineTransport {
    inner: Box<dyn Transport>,
    read_deadline: ReadDeadline,
}

impl DeadlineTransport {
    pub(super) fn new(inner: Box<dyn Transport>, read_deadline: ReadDeadline) -> DeadlineTransport {
        DeadlineTransport { inner, read_deadline }
    }

    fn read(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let timeout = self.read_deadline.lock().cap(timeout)?;
        let buffers = self.inner.buffers();
        // Nothing more fits in: what is there is no part of a body, and has no end.
        if buffers.input_append_buf().is_empty() {
            return Err(without_end());
        }
        let before = buffers.input().len();
        let read = self.inner.await_input(timeout);
        let came = self.inner.buffers().input().len().saturating_sub(before);
        let mut state = self.read_deadline.lock();
        state.framing += came;
        match read {
            Err(ureq::Error::Timeout(_)) if state.is_out_of_trailers() => Err(without_end()),
            read => read,
        }
    }
}

impl Transport for DeadlineTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let error = match self.read(timeout) {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        let mut state = self.read_deadline.lock();
        if !state.chunked {
            return Err(error);
        }
        let is_end = matches!(&error, ureq::Error::Io(error) if is_closed(error));
        if !is_end {
            state.cut.get_or_insert(error);
        }
        Err(ureq::Error::Io(ErrorKind::UnexpectedEof.into()))
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}
