//! Ids of tool calls, where the endpoint has none or the same one twice.

use std::collections::HashSet;

use crate::message::{AssistantMessage, short_id};

/// Gives calls without an id a fresh one and makes ids that stand twice in the message unique.
///
/// `salt` tells the messages of a conversation apart, so that fresh ids differ from message to
/// message. Every id that is made is nine letters and digits, which every endpoint takes.
pub fn make_ids_unique(message: &mut AssistantMessage, salt: usize) {
    let calls = &mut message.tool_calls;
    let came: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
    // Of those that came, none is given to another call.
    let mut taken: HashSet<&str> = came.iter().map(String::as_str).collect();
    let mut made = HashSet::new();
    for (index, call) in calls.iter_mut().enumerate() {
        // The first call with an id keeps it.
        if !call.id.trim().is_empty() && taken.remove(call.id.as_str()) {
            made.insert(call.id.clone());
            continue;
        }
        let fresh = |attempt: usize| short_id(&format!("{salt}/{index}/{attempt}/{}", call.id));
        let is_free = |id: &String| !taken.contains(id.as_str()) && !made.contains(id);
        call.id = (0..).map(fresh).find(is_free).unwrap_or_default();
        made.insert(call.id.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ToolCall;

    fn made(ids: &[&str], salt: usize) -> Vec<String> {
        let calls = ids.iter().map(|id| ToolCall::new(*id, "shell", "{}")).collect();
        let mut message = AssistantMessage::calls(calls);
        make_ids_unique(&mut message, salt);
        message.tool_calls.into_iter().map(|call| call.id).collect()
    }

    fn is_ours(id: &str) -> bool {
        id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
    }

    #[test]
    fn ids_that_stand_twice_are_made_unique_and_others_are_kept() {
        let ids = made(&["a", "a", "b", "a", "c|1"], 0);
        assert_eq!([&ids[0], &ids[2], &ids[4]], ["a", "b", "c|1"]);
        assert!(is_ours(&ids[1]) && is_ours(&ids[3]) && ids[1] != ids[3], "{ids:?}");
        // One of the endpoint's own that looks like ours is not given away.
        let again = made(&["a", "a", &ids[1]], 0);
        assert_eq!((again[0].as_str(), &again[2]), ("a", &ids[1]));
        assert!(is_ours(&again[1]) && again[1] != ids[1], "{again:?}");
    }

    #[test]
    fn calls_without_an_id_have_one_that_differs_from_message_to_message() {
        let (one, other) = (made(&["", " ", ""], 7), made(&["", " ", ""], 8));
        let all: HashSet<_> = one.iter().chain(&other).collect();
        assert_eq!(all.len(), 6);
        assert!(all.iter().all(|id| is_ours(id)), "{all:?}");
        assert_eq!(one, made(&["", " ", ""], 7));
    }

    /// With quadratic time this would take minutes.
    #[test]
    fn a_hundred_thousand_calls_with_one_id_are_told_apart_in_linear_time() {
        let ids = made(&vec!["c"; 100_000], 0);
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    }
}
