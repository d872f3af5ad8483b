//! What happens in a run, told to whoever watches it.

use super::Verified;
use crate::agents_md::Loaded;
use crate::message::ToolCall;
use crate::provider::{FinishReason, Notice, Usage};
use crate::tools::Output;

/// What happens in a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A completion is asked for.
    StepStarted {
        /// Counted from 1.
        step: u32,
    },
    /// The completion is there; whether it is accepted is not yet said.
    Completed {
        /// Counted from 1.
        step: u32,
        /// Why the model stopped.
        finish_reason: &'a FinishReason,
        /// What it cost.
        usage: Usage,
    },
    /// A tool call is about to run.
    ToolStarted {
        /// Counted from 1.
        step: u32,
        /// The call.
        call: &'a ToolCall,
    },
    /// A tool call has run.
    ToolEnded {
        /// Counted from 1.
        step: u32,
        /// The call.
        call: &'a ToolCall,
        /// What it came to.
        output: &'a Output,
    },
    /// The run is about to end without an answer, and the model is asked to sum up.
    SummingUp,
    /// What came of that.
    SummedUp {
        /// What was done and what is left, in the words of the model; none where it did not say, or
        /// not to the end.
        summary: Option<&'a str>,
        /// What it cost.
        usage: Usage,
    },
    /// There is an answer, and it is about to be verified.
    VerifyStarted {
        /// Counted from 1.
        attempt: u32,
        /// How many there may be.
        attempts: u32,
    },
    /// It has been verified.
    VerifyEnded {
        /// Counted from 1.
        attempt: u32,
        /// How many there may be.
        attempts: u32,
        /// What came of it.
        verified: &'a Verified,
    },
    /// The result of a tool call brought along what an AGENTS.md file says.
    Instructions(&'a Loaded),
    /// What the provider has to tell while the completion is waited for.
    Notice(&'a Notice<'a>),
    /// Something that is worth knowing and ends nothing.
    Warning(&'a str),
}
