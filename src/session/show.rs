//! Reads a log for people, without holding it.
//!
//! No lock is taken and nothing is changed, so a log can be looked at while a run writes to it. All
//! that such a reader can meet beside whole records is the start of the last one.

use std::io::{self, BufReader};
use std::path::Path;

use serde_json::value::RawValue;

use super::record::{self, Entry};
use super::{Conversation, SessionError, admit, unreadable};
use crate::fs::open_regular;
use crate::json::Members;
use crate::message::Message;
use crate::provider::Usage;

/// One record, with what stands beside its message, as far as that can be read: what is of another
/// form than ours is as good as absent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Shown {
    /// The message.
    pub message: Message,
    /// When it was written.
    pub time: Option<String>,
    /// The finish reason of a completion.
    pub finish_reason: Option<String>,
    /// The tokens of a completion.
    pub usage: Usage,
    /// The model that the endpoint named.
    pub model: Option<String>,
    /// Why the message is no part of the conversation, where it was refused.
    pub refused: Option<String>,
}

/// How a log ends that can be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// With a whole record, or it is empty.
    Whole,
    /// In the middle of a record, which may still be being written.
    Unfinished {
        /// The line, counted from 1.
        line: u64,
        /// How many bytes there are of it.
        bytes: u64,
    },
}

/// Hands each record of the log to `each`, up to the end or to what is damaged.
///
/// # Errors
///
/// [`SessionError::Open`] and [`SessionError::Damaged`]; the records before the damage were handed
/// over. Where `each` fails, its error, inside of the other result.
pub fn show(
    path: &Path,
    mut each: impl FnMut(&Shown) -> io::Result<()>,
) -> Result<io::Result<Ending>, SessionError> {
    let failed = |source| SessionError::Open { path: path.to_owned(), source };
    let (file, _) = open_regular(path).map_err(failed)?;
    let mut conversation = Conversation::default();
    let mut ending = Ending::Whole;
    let mut handed = Ok(());
    let mut count = 0;
    let read = record::read_lines(BufReader::new(file), |line| {
        count += 1;
        if record::is_unfinished(line) {
            ending = Ending::Unfinished { line: count, bytes: line.len() as u64 };
            return Ok(());
        }
        let (entry, members) = record::read_members(line)?;
        let is_part = admit(&conversation, &entry)?;
        let shown = shown(entry, &members);
        handed = each(&shown);
        if handed.is_err() {
            return Err(String::new());
        }
        if is_part {
            conversation.push(shown.message);
        }
        Ok(())
    });
    match (handed, read) {
        (Err(error), _) => Ok(Err(error)),
        (Ok(()), Ok(_)) => Ok(Ok(ending)),
        (Ok(()), Err(error)) => Err(unreadable(path, error)),
    }
}

fn shown(entry: Entry, members: &Members<'_>) -> Shown {
    let text = |name| members.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok());
    let refused = entry.refused.then(|| text("refused").unwrap_or_default());
    Shown {
        message: entry.message,
        time: text("time"),
        finish_reason: text("finish_reason"),
        usage: members.get("usage").map(usage).unwrap_or_default(),
        model: text("model"),
        refused,
    }
}

fn usage(raw: &RawValue) -> Usage {
    let Ok(members) = serde_json::from_str::<Members<'_>>(raw.get()) else {
        return Usage::default();
    };
    let count = |name| members.get(name).and_then(|raw| raw.get().parse().ok());
    Usage {
        prompt_tokens: count("prompt_tokens"),
        cached_tokens: count("cached_tokens"),
        completion_tokens: count("completion_tokens"),
    }
}
