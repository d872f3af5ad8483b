//! Prints a session for people.
//!
//! A record has a line of its own at the margin, and everything that anybody said stands indented
//! below it, so that no text can pass itself off as a record. What is printed can't move the
//! cursor, and no key is in it.

use std::io::ErrorKind;
use std::path::Path;

use super::failure::Failure;
use super::ledger::{Ledger, Tokens};
use super::publish::unwritten;
use super::report::Reporter;
use crate::message::{AssistantMessage, Message, ToolCall};
use crate::provider::Usage;
use crate::secret::Mask;
use crate::session::{self, Ending, SessionError, Shown};
use crate::text::{both_ends, many_lines, one_line};
use crate::verdict::answer_text;

/// Bytes of a result or of arguments that are printed at each end; a little more is printed whole.
const END_MAX: usize = 2_000;

/// Bytes of a word of others in the line of a record: a time, a model, a name.
const WORD_MAX: usize = 100;

/// Prints the records of the log at `path`, and what they come to; where JSON is asked for, only
/// the latter.
///
/// # Errors
///
/// The log can't be read, or not to its end: what can be read of it is printed. That standard
/// output can't be written stands inside; that nobody reads on is no error.
pub(super) fn print(
    path: &Path,
    reporter: &mut Reporter<'_>,
) -> Result<Result<(), Failure>, SessionError> {
    let mut totals = Totals::default();
    let mask = reporter.mask().clone();
    let is_text = reporter.publisher.is_text();
    let shown = session::show(path, |record| {
        totals.add(record);
        if is_text { reporter.print_text(&text_of(record, &mask)) } else { Ok(()) }
    });
    // Also where the rest is damaged: the sums are those of what was printed.
    let printed = match &shown {
        Ok(Ok(_)) | Err(SessionError::Damaged { .. }) if is_text => {
            reporter.print_text(&totals.line())
        }
        _ => Ok(()),
    };
    totals.enter(&mut reporter.publisher.ledger());
    let ending = shown?;
    if let Ok(Ending::Unfinished { line, bytes }) = ending {
        let path = path.display();
        reporter.warning(&format!(
            "{path} ends in the middle of line {line}, whose {bytes} bytes were left out; a run \
             may be writing it"
        ));
    }
    match ending.map(|_| ()).and(printed) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Ok(Err(unwritten("stdout", &error))),
        _ => Ok(Ok(())),
    }
}

/// One record: its line, and what was said.
fn text_of(record: &Shown, mask: &Mask) -> String {
    let word = |text: &str| one_line(&mask.text(text), WORD_MAX);
    let mut line = format!("[{}] ", record.time.as_deref().map_or("no time".to_owned(), word));
    let mut body = String::new();
    match &record.message {
        Message::System(content) => {
            line.push_str("system, not sent");
            add(&mut body, content.as_str(), None, mask);
        }
        Message::User(content) => {
            line.push_str("user");
            add(&mut body, content.as_str(), None, mask);
        }
        Message::Assistant(message) => {
            line.push_str("assistant");
            said(&mut body, message, mask);
        }
        Message::Tool(result) => {
            line.push_str(&format!("result of {}", word(&result.tool_call_id)));
            add(&mut body, result.content.as_str(), Some(END_MAX), mask);
        }
    }
    if let Some(model) = &record.model {
        line.push_str(&format!(", model {}", word(model)));
    }
    if let Some(reason) = &record.finish_reason {
        line.push_str(&format!(", finish reason {}", word(reason)));
    }
    match record.refused.as_deref() {
        Some("") => line.push_str(", REFUSED"),
        Some(refused) => line.push_str(&format!(", REFUSED: {}", word(refused))),
        None => {}
    }
    format!("{line}\n{body}\n")
}

fn said(body: &mut String, message: &AssistantMessage, mask: &Mask) {
    add(body, answer_text(message), None, mask);
    if let Some(refusal) = message.refusal() {
        add(body, &format!("refusal: {refusal}"), None, mask);
    }
    for ToolCall { id, name, arguments, .. } in &message.tool_calls {
        let [id, name] = [id, name].map(|text| one_line(&mask.text(text), WORD_MAX));
        add(body, &format!("call {id}: {name}"), None, mask);
        add(body, arguments, Some(END_MAX), mask);
    }
}

/// Adds a text, indented and masked, of which at most about `end` bytes of each end stand there.
fn add(body: &mut String, text: &str, end: Option<usize>, mask: &Mask) {
    // Masked before it is cut: of a key that is cut in two, neither part would be known.
    let text = mask.text(text);
    match end.and_then(|end| both_ends(&text, end)) {
        Some((start, left_out, end)) => {
            indent(body, start);
            body.push_str(&format!("  [... {left_out} bytes left out ...]\n"));
            indent(body, end);
        }
        None => indent(body, &text),
    }
}

fn indent(body: &mut String, text: &str) {
    for line in many_lines(text).lines() {
        body.push_str("    ");
        body.push_str(line);
        body.push('\n');
    }
}

/// What the records come to.
#[derive(Default)]
struct Totals {
    records: u64,
    refused: u64,
    prompt: u64,
    cached: u64,
    completion: u64,
    /// Completions that did not say both numbers.
    silent: u64,
}

impl Totals {
    fn add(&mut self, record: &Shown) {
        let Usage { prompt_tokens, cached_tokens, completion_tokens } = record.usage;
        let sum = |sum: &mut u64, tokens: Option<u64>| {
            *sum = sum.saturating_add(tokens.unwrap_or_default());
        };
        self.records += 1;
        self.refused += u64::from(record.refused.is_some());
        sum(&mut self.prompt, prompt_tokens);
        sum(&mut self.cached, cached_tokens);
        sum(&mut self.completion, completion_tokens);
        let is_silent = prompt_tokens.is_none() || completion_tokens.is_none();
        let is_completion = matches!(record.message, Message::Assistant(_));
        self.silent += u64::from(is_completion && is_silent);
    }

    /// Puts the sums into the result.
    fn enter(&self, ledger: &mut Ledger) {
        let known = |tokens| (self.silent == 0).then_some(tokens);
        ledger.records = Some((self.records, self.refused));
        ledger.tokens = Tokens {
            prompt: known(self.prompt),
            cached: known(self.cached),
            completion: known(self.completion),
        };
    }

    fn line(&self) -> String {
        let Totals { records, refused, prompt, cached, completion, silent } = self;
        let unknown = match silent {
            0 => String::new(),
            1 => ", and those of 1 completion not known".to_owned(),
            _ => format!(", and those of {silent} completions not known"),
        };
        format!(
            "[total] records {records} ({refused} refused), tokens {prompt} ({cached} cached) + \
             {completion}{unknown}\n"
        )
    }
}
