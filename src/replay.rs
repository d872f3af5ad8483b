//! Completions from a file in place of an endpoint, with no network at all.
//!
//! The file is JSONL: each line is the body of one chat-completions response, and they are served
//! in their order, whatever the requests say. They are read by the rules that hold for an endpoint.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::fs::open_regular;
use crate::provider::{Completion, CompletionRequest, Provider, ProviderError};
use crate::secret::Mask;
use crate::wire;

/// Serves the completions of a file.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    mask: Mask,
    bytes: Vec<u8>,
    /// Where the next line starts.
    next: usize,
    /// How many lines were served.
    served: u64,
}

impl Replay {
    /// Reads the file, whole; the lines are parsed as they are served.
    ///
    /// # Errors
    ///
    /// The file can't be read, or is not a regular file: reading a pipe or a device may never end.
    pub fn open(path: &Path) -> io::Result<Replay> {
        let mut bytes = Vec::new();
        open_regular(path)?.0.read_to_end(&mut bytes)?;
        Ok(Replay { path: path.to_owned(), mask: Mask::default(), bytes, next: 0, served: 0 })
    }

    /// Masks what its errors quote.
    pub fn with_mask(self, mask: Mask) -> Replay {
        Replay { mask, ..self }
    }

    fn error(&self, detail: &str) -> ProviderError {
        let (path, line) = (self.path.display(), self.served);
        ProviderError::Replay { detail: format!("{path} line {line}: {detail}") }
    }
}

impl Provider for Replay {
    /// Serves the next line. A line that reports an error with a status is that status.
    fn complete(&mut self, _request: &CompletionRequest<'_>) -> Result<Completion, ProviderError> {
        let rest = &self.bytes[self.next..];
        self.served += 1;
        if rest.is_empty() {
            return Err(self.error("the recording has no more completions"));
        }
        let end = rest.iter().position(|byte| *byte == b'\n');
        let line = rest[..end.unwrap_or(rest.len())].to_vec();
        self.next += end.map_or(rest.len(), |end| end + 1);
        if line.trim_ascii().is_empty() {
            return Err(self.error("the line is blank"));
        }
        wire::completion(line).map_err(|error| match error.masked(&self.mask) {
            ProviderError::Response { detail, .. } => self.error(&detail),
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use crate::time::Deadline;

    use super::*;
    use crate::provider::{Notify, StatusError};
    use std::fs;

    const REQUEST: CompletionRequest<'static> = CompletionRequest {
        model: "m",
        system_prompt: "",
        messages: &[],
        closing: None,
        tools: &[],
        max_tokens: None,
        deadline: Deadline::NONE,
        notify: Notify::NOBODY,
    };

    /// What a file with these bytes serves: the text of each completion, and the error at the end.
    #[track_caller]
    fn check(bytes: &[u8], answers: &[&str], error: &str) {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("uncut-replay-{}-{count}", std::process::id()));
        fs::write(&path, bytes).expect("a temporary file");
        let opened = Replay::open(&path);
        fs::remove_file(&path).expect("a temporary file");
        let mut replay = opened.expect("it is readable");
        for answer in answers {
            let completion = replay.complete(&REQUEST).expect(answer);
            assert_eq!(completion.message.as_text(), *answer);
        }
        let found = replay.complete(&REQUEST).expect_err("there was one more").to_string();
        let expected = format!("{}{error}", path.display());
        assert!(found.starts_with(&expected), "{found} and not {expected}");
    }

    fn line(text: &str) -> String {
        format!(r#"{{"choices":[{{"finish_reason":"stop","message":{{"content":"{text}"}}}}]}}"#)
    }

    #[test]
    fn lines_are_served_in_order_until_there_are_none() {
        let two = format!("{}\n{}", line("a"), line("b"));
        let over = " line 3: the recording has no more completions";
        check(two.as_bytes(), &["a", "b"], over);
        check(format!("{two}\r\n").as_bytes(), &["a", "b"], over);
        check(b"", &[], " line 1: the recording has no more completions");
    }

    #[test]
    fn a_line_that_is_no_completion_is_named() {
        let first = line("a");
        for (second, error) in [
            ("\n", " line 2: the line is blank"),
            ("{\"choices\":[]}\n", " line 2: no choices"),
            ("{\"cho", " line 2: the body ends in the middle of its JSON"),
        ] {
            check(format!("{first}\n{second}").as_bytes(), &["a"], error);
        }
        check(b"\xff\n", &[], " line 1: the body is not UTF-8 at byte 0");
    }

    #[test]
    fn a_line_that_reports_a_status_is_that_status() {
        let bytes = b"{\"error\":{\"code\":429}}".to_vec();
        let mut replay =
            Replay { path: PathBuf::new(), mask: Mask::default(), bytes, next: 0, served: 0 };
        let error = replay.complete(&REQUEST).expect_err("a refusal");
        assert!(
            matches!(error, ProviderError::Status(StatusError { status: 429, .. })),
            "{error:?}"
        );
    }

    #[test]
    fn what_is_no_regular_file_is_refused_when_it_is_opened() {
        let error = Replay::open(&std::env::temp_dir()).expect_err("a directory");
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        let missing = std::env::temp_dir().join("uncut-replay-missing");
        assert_eq!(Replay::open(&missing).expect_err("missing").kind(), io::ErrorKind::NotFound);
    }
}
