//! Runs the binary and the library as their users do.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a failed helper must fail its test, and clippy exempts #[test] functions only"
)]

/// `--check`.
mod check;
// Files that import each other.
/// Files that import each other.
mod circles;
/// Connections that serve several requests.
mod connections;
/// Every outcome through the spawned binary: exit code, stdout, stderr.
mod contract;
mod endless;
/// The tools for files, and AGENTS.md.
#[cfg(unix)]
mod files;
/// The command line: precedence, and every usage error.
mod flags;
/// The time limits: which of them ends what.
mod limits;
/// The key, wherever it could appear.
#[cfg(unix)]
mod masked_strings;
mod masking;
/// The way to the endpoint: addresses, proxies, TLS.
mod network;
/// Standard output, standard error and the output file.
#[cfg(unix)]
mod output;

#[cfg(target_os = "linux")]
mod processes;
/// Sessions that are repaired, and shown.
#[cfg(unix)]
mod repair;
/// Faults that were reported of such tools.
mod reports;
/// Every outcome in every format.
#[cfg(unix)]
mod results;
/// The static binary in a root with nothing else.
#[cfg(target_os = "linux")]
mod roots;
/// Resume, torn logs, full disks, failing syncs, `kill -9`.
#[cfg(unix)]
mod sessions;
/// Shapes of messages, and how they go back.
#[cfg(unix)]
mod shapes;
/// Signals and the deadline, whatever the binary is blocked in.
#[cfg(unix)]
mod signals;
/// The files that hold what a result leaves out.
#[cfg(unix)]
mod spill;
/// Completions that come as a stream: recorded, cut at random, and damaged.
mod streams;
/// What the tests run against.
mod support;
/// What the project promises about its own text.
mod tidy;
/// The tools as the model meets them: what they do to processes and files, and what they tell.
#[cfg(unix)]
mod tools;
/// Answers that are verified, and the summary.
#[cfg(unix)]
mod verify;
/// What is sent, what is accepted and what is refused, over a real socket.
mod wire;
/// What endpoints say in words, and what a run makes of it.
mod words;
