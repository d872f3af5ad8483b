//! Logs of random records, cut and damaged.

use std::time::SystemTime;

use super::record::{ReadError, read_all};
use super::{Conversation, Record, take};
use crate::fuzz::{Random, inputs};
use crate::message::{AssistantMessage, Message, ToolCall};
use crate::outcome::Outcome;

/// Records that make a conversation, and their log.
fn log(random: &mut Random) -> (Vec<Record>, Vec<u8>) {
    let mut records = Vec::new();
    for number in 0..random.below(6) {
        match random.below(4) {
            0 => records.push(Record::from(Message::user(random.text()))),
            1 => {
                let text = Message::Assistant(AssistantMessage::text(random.text()));
                let refused = random.chance(30).then_some(Outcome::Truncated);
                records.push(Record { refused, ..Record::from(text) });
            }
            _ => {
                let calls: Vec<ToolCall> = (0..1 + random.below(3))
                    .map(|call| {
                        ToolCall::new(format!("c{number}_{call}"), random.text(), random.text())
                    })
                    .collect();
                let results: Vec<Record> = calls
                    .iter()
                    .map(|call| Message::tool_result(call, random.text()).into())
                    .collect();
                let message = Message::Assistant(AssistantMessage::calls(calls));
                records.push(Record::from(message));
                records.extend(results);
            }
        }
    }
    let line = |record: &Record| record.to_line(SystemTime::UNIX_EPOCH).unwrap() + "\n";
    let log = records.iter().map(line).collect::<String>().into_bytes();
    (records, log)
}

/// The messages that were read, and where the log stops being whole.
fn read(log: &[u8]) -> (Vec<Message>, Result<u64, (u64, u64)>) {
    let mut conversation = Conversation::default();
    let read = read_all(log, |entry| take(&mut conversation, entry));
    let read = read.map_err(|error| match error {
        ReadError::Damaged { line, offset, .. } => (line, offset),
        ReadError::Io(error) => panic!("{error}"),
    });
    (conversation.messages().to_vec(), read)
}

/// Where the line that the byte at `end` belongs to starts, and its number.
fn line_at(log: &[u8], end: usize) -> (u64, u64) {
    let lines = log[..end].iter().filter(|byte| **byte == b'\n').count();
    let start = log[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |index| index + 1);
    (lines as u64 + 1, start as u64)
}

#[test]
fn fuzz_a_log_that_is_cut_is_its_whole_records_or_refused() {
    for (seed, mut random) in inputs("cut log", 300) {
        let (records, log) = log(&mut random);
        for _ in 0..10 {
            let end = random.below(log.len() + 1);
            let (messages, result) = read(&log[..end]);
            let (line, start) = line_at(&log, end);
            let whole = records[..line as usize - 1].iter();
            let kept = whole.filter(|record| record.refused.is_none());
            assert!(messages.iter().eq(kept.map(|record| &record.message)), "seed {seed}: {end}");
            let expected = if start == end as u64 { Ok(start) } else { Err((line, start)) };
            assert_eq!(result, expected, "seed {seed}: {end} of {}", log.escape_ascii());
        }
    }
}

/// What is damaged is read whole, or refused at the start of a line, and all before it is read.
#[test]
fn fuzz_a_damaged_log_is_refused_at_a_line_or_whole() {
    let alphabet = b"{}[]\",:\n\r\\ 1v\x00\x80\xffmessagerolenull";
    for (seed, mut random) in inputs("damaged log", 3_000) {
        let (_, mut log) = log(&mut random);
        random.damage(&mut log, alphabet);
        let (messages, result) = read(&log);
        let text = log.escape_ascii();
        match result {
            Ok(len) => assert_eq!(len, log.len() as u64, "seed {seed}: {text}"),
            Err((line, offset)) => {
                let start = usize::try_from(offset).unwrap();
                assert_eq!(line_at(&log, start), (line, offset), "seed {seed}: {text}");
                assert_eq!(read(&log[..start]), (messages, Ok(offset)), "seed {seed}: {text}");
            }
        }
    }
}
