//! uncut: a headless coding agent. A prompt goes in; a finished answer or a named failure comes
//! out.
//!
//! The binary is [`cli::run`] and nothing else. An embedder puts an [`agent::Agent`] together from
//! a [`provider::Provider`], a [`tools::Executor`] and a [`session::Session`], calls
//! [`run`](agent::Agent::run), and branches on [`error::Error`] by `match`:
//!
//! ```
//! use uncut::message::AssistantMessage;
//! use uncut::provider::{
//!     Completion, CompletionRequest, FinishReason, Provider, ProviderError, Usage,
//! };
//!
//! struct Parrot;
//!
//! impl Provider for Parrot {
//!     fn complete(
//!         &mut self,
//!         request: &CompletionRequest<'_>,
//!     ) -> Result<Completion, ProviderError> {
//!         let message = AssistantMessage::text(format!("{} messages", request.messages.len()));
//!         let finish_reason = FinishReason::Stop;
//!         Ok(Completion { message, finish_reason, usage: Usage::default(), model: None })
//!     }
//! }
//! # use std::num::NonZeroU32;
//! # use uncut::agent::{Agent, RunOptions};
//! # use uncut::message::ToolCall;
//! # use uncut::provider::ToolDefinition;
//! # use uncut::session::Session;
//! # use uncut::time::Deadline;
//! # use uncut::tools::{Executor, Output};
//! # use uncut::verdict::Accept;
//! # struct NoTools;
//! # impl Executor for NoTools {
//! #     fn definitions(&self) -> &[ToolDefinition] { &[] }
//! #     fn execute(&mut self, _: &ToolCall, _: Deadline) -> Output {
//! #         Output::new("", "")
//! #     }
//! # }
//! # let options = RunOptions {
//! #     model: "parrot", system_prompt: "", max_steps: NonZeroU32::MIN, max_tokens: None,
//! #     max_total_tokens: None, deadline: Deadline::NONE,
//! #     work_until: Deadline::NONE, accept: Accept::default(),
//! # };
//!
//! let mut agent = Agent {
//!     provider: &mut Parrot,
//!     executor: &mut NoTools,
//!     session: &mut Session::ephemeral(),
//!     verify: None,
//!     options,
//!     observe: &mut |_event| {},
//! };
//! assert_eq!(agent.run("hello").expect("an answer").text, "1 messages");
//! ```
//!
//! # The map
//!
//! A module imports from its own level downwards, and the test suite holds it to that. Submodules
//! belong to the level of their parent.
//!
//! | level | module | what it owns |
//! |---|---|---|
//! | 0 | [`json`] | JSON that is passed on as it came |
//! | 0 | [`text`] | text for people: cut, on one line, safe on a terminal |
//! | 0 | [`time`] | the run's deadline; time stamps |
//! | 0 | [`secret`] | the API key: it can be sent and masked, but not printed |
//! | 0 | [`outcome`] | how a run ended: exit code and word |
//! | 0 | [`fs`] | files: opened without blocking, replaced as a whole |
//! | 0 | [`gate`] | what the loop and the thread that may end it share |
//! | 0 | [`url`] | URLs, as far as endpoints and proxies have them |
//! | 0 | `fuzz` | random inputs of tests; no part of the program |
//! | 1 | [`agents_md`] | AGENTS.md files: which there are, what of them fits |
//! | 1 | [`process`] | commands: start, capture, time limit, kill |
//! | 1 | [`proxy`] | which proxy a request goes through |
//! | 1 | [`message`] | messages, roles, tool calls, as endpoint and log have them |
//! | 2 | [`provider`] | the [`Provider`](provider::Provider) trait, completions, or why none |
//! | 3 | [`session`] | the conversation and its log |
//! | 3 | [`tools`] | the [`Executor`](tools::Executor) trait and the four tools |
//! | 3 | [`verdict`] | whether a completion can be trusted |
//! | 3 | [`wire`] | the request and the response as bytes |
//! | 3 | [`prompt`] | the system prompt |
//! | 3 | `retry` | when and how often a request is sent again |
//! | 4 | [`openai`] | completions from an endpoint, over HTTP |
//! | 4 | [`replay`] | completions from a file |
//! | 4 | [`error`] | why a run ended without an answer |
//! | 5 | [`agent`] | the loop |
//! | 6 | [`cli`] | flags, help, reporting, assembly |
//!
//! # Invariants
//!
//! - Nothing that the model did not finish is executed or presented as an answer. All rules for
//!   that stand in [`verdict`].
//! - A message becomes part of the conversation only after its record is durable. Only [`session`]
//!   syncs a log.
//! - The loop has no I/O of its own: no file, no socket, no process.
//! - Only [`openai`] knows HTTP and TLS; only [`process`] starts processes. It holds the unsafe
//!   code but for that of [`fs`] which copies extended attributes. Threads are started there and
//!   by [`time::within`], which takes on what may hang for ever: the lookup of a host, and the
//!   output file of a process that is about to end.
//! - Only `main` reads the process's arguments, environment, directory and standard streams. A run
//!   can be repeated in the same process. What belongs to the process as a whole, and only a
//!   program that owns it may ask for, are the three statics in [`process`]: where signals go,
//!   whether orphans are adopted, and whether standard output was closed from the start.
//! - Only [`cli`] prints. What it prints, what is logged and what is sent has been through
//!   [`Mask`](secret::Mask).
//! - No tool failure ends a run, and no endpoint failure becomes an answer.
//! - Nothing is repaired unasked: damaged logs, cut JSON and ambiguous edits are refused.
//! - Nothing durable depends on `Drop`: a panic aborts.
//!
//! One thread drives the loop, and takes in what a command prints while it waits for its end. Where
//! a background process holds the output beyond that, a thread discards what comes. In the program,
//! and not in a run inside another, a further thread sees signals and the deadline whatever the
//! loop is blocked in. It shares three things with the loop: the [`gate`](gate::Gate) that lets a
//! record or a line in flight finish and none begin; the [`processes`](process::Processes) that it
//! kills, with the files that hold their output; and the publisher of [`cli`], which knows what the
//! run has come to, what was last said and where the result goes. It closes the gate, kills, writes
//! the result and ends the process. Until then it says now and then what the run waits for.

pub mod agent;
pub mod agents_md;
pub mod cli;
pub mod error;
pub mod fs;
pub mod gate;
pub mod json;
pub mod message;
pub mod openai;
pub mod outcome;
pub mod process;
pub mod prompt;
pub mod provider;
pub mod proxy;
pub mod replay;
mod retry;
pub mod secret;
pub mod session;
pub mod text;
pub mod time;
pub mod tools;
pub mod url;
pub mod verdict;
pub mod wire;

#[cfg(test)]
mod fuzz;
