//! The chat-completions protocol as bytes: what a request body says, and what a response is read
//! as, be it one body or a stream of events.
//!
//! Knows JSON and nothing of HTTP, so that an endpoint and a recording are read by the same rules:
//! lenient in shape, strict in meaning. It judges no completion; whether the model was done, and
//! whether its tool calls make sense, is for the loop to find out.

mod delta;
mod error;
mod fragments;
mod outgoing;
mod pause;
mod request;
mod response;
mod sse;
mod stream;

pub use error::status_error;
pub use request::{ExtraBody, RequestForm, Stream, request_body};
pub use response::completion;
pub use stream::{Assembler, is_one_body};

#[cfg(test)]
mod fuzz;
