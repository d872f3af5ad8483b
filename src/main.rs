//! Hands the process's inputs to the library and returns its exit code.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use uncut::cli::{self, Invocation};
use uncut::process;

#[expect(clippy::disallowed_methods, reason = "the one place that reads the process's globals")]
fn main() -> ExitCode {
    process::survive_file_size_limit();
    process::adopt_orphans();
    ExitCode::from(cli::run(Invocation {
        args: std::env::args_os().skip(1).collect(),
        env: std::env::vars_os().collect(),
        directory: std::env::current_dir().ok(),
        stdin: &mut process::Stdin::new(),
        stdin_is_terminal: io::stdin().is_terminal(),
        stdout: &mut process::Stdout::new(),
        stderr: &mut process::Stderr::new(),
        owns_process: true,
    }))
}
