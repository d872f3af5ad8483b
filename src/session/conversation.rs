//! The messages of a conversation, in an order that endpoints accept.
//!
//! Every call of an assistant message has an id of its own and is answered by exactly one tool
//! result before anything else is said. A conversation that breaks this rule is refused by most
//! endpoints in every later request, so it is refused here, where the message can say which record
//! it is.

use std::collections::HashSet;

use super::record::Entry;
use crate::message::{Message, ToolCall};

#[derive(Debug, Default)]
pub(super) struct Conversation {
    messages: Vec<Message>,
    /// The ids of the calls of the last assistant message that have no result yet.
    open: HashSet<String>,
    /// Whether the calls of the last assistant message are known to have been run one after the
    /// other, each after the result of the one before was logged.
    in_order: bool,
}

impl Conversation {
    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Whether `message` can come next; the error says why not.
    pub(super) fn check(&self, message: &Message) -> Result<(), String> {
        match message {
            Message::System(_) => Err("a system message inside the conversation".to_owned()),
            Message::Tool(result) if self.open.contains(&result.tool_call_id) => Ok(()),
            Message::Tool(result) => Err(format!(
                "a result for {}, which is no open tool call",
                quote(&result.tool_call_id)
            )),
            _ if !self.open.is_empty() => Err(format!(
                "the result of tool call {} should stand here",
                self.open_calls().next().map_or_else(String::new, |call| quote(&call.id))
            )),
            Message::User(_) => Ok(()),
            Message::Assistant(message) => check_ids(&message.tool_calls),
        }
    }

    /// Adds the message of an entry, which [`Conversation::check`] has let through.
    pub(super) fn push_entry(&mut self, entry: Entry) {
        if matches!(entry.message, Message::Assistant(_)) {
            self.in_order = entry.has_time;
        }
        self.push(entry.message);
    }

    /// Results may be missing that were logged once.
    pub(super) fn has_lost_records(&mut self) {
        self.in_order = false;
    }

    /// How many of the open calls can have been started. Of a run of ours it is the first at most,
    /// however that run ended: none starts before the result of the one before it is durable.
    /// Of a log that others wrote, or that lost records, nothing is known.
    pub(super) fn started(&self) -> usize {
        let calls = self.last_calls();
        let answered = calls.iter().take_while(|call| !self.open.contains(&call.id)).count();
        match self.in_order && calls.len() == answered + self.open.len() {
            true => self.open.len().min(1),
            false => self.open.len(),
        }
    }

    /// Adds a message that [`Conversation::check`] has let through.
    pub(super) fn push(&mut self, message: Message) {
        match &message {
            Message::Assistant(message) => {
                self.open.extend(message.tool_calls.iter().map(|call| call.id.clone()));
            }
            Message::Tool(result) => {
                self.open.remove(&result.tool_call_id);
            }
            Message::System(_) | Message::User(_) => {}
        }
        self.messages.push(message);
    }

    /// The calls that have no result yet, in the order in which they were made.
    pub(super) fn open_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.last_calls().iter().filter(|call| self.open.contains(&call.id))
    }

    fn last_calls(&self) -> &[ToolCall] {
        let last = self.messages.iter().rev().find_map(|message| match message {
            Message::Assistant(message) => Some(message.tool_calls.as_slice()),
            _ => None,
        });
        last.unwrap_or_default()
    }
}

fn check_ids(calls: &[ToolCall]) -> Result<(), String> {
    let mut ids = HashSet::new();
    for (index, call) in calls.iter().enumerate() {
        if call.id.is_empty() {
            return Err(format!("tool_calls[{index}] has no id"));
        }
        if !ids.insert(call.id.as_str()) {
            return Err(format!(
                "tool_calls[{index}] has the id of an earlier call, {}",
                quote(&call.id)
            ));
        }
    }
    Ok(())
}

fn quote(id: &str) -> String {
    format!("\"{id}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::AssistantMessage;

    fn call(id: &str) -> ToolCall {
        ToolCall::new(id, "shell", "{}")
    }

    fn calls(ids: &[&str]) -> Message {
        Message::Assistant(AssistantMessage::calls(ids.iter().map(|id| call(id)).collect()))
    }

    fn result(id: &str) -> Message {
        Message::tool_result(&call(id), "done")
    }

    /// Pushes `messages`, the last of which is the one that `check` is asked about.
    #[track_caller]
    fn check(messages: impl IntoIterator<Item = Message>) -> (Conversation, Result<(), String>) {
        let mut conversation = Conversation::default();
        let mut messages = messages.into_iter().peekable();
        while let Some(message) = messages.next() {
            let checked = conversation.check(&message);
            if messages.peek().is_none() {
                return (conversation, checked);
            }
            assert_eq!(checked, Ok(()));
            conversation.push(message);
        }
        panic!("no message");
    }

    #[test]
    fn results_may_come_in_any_order_and_ids_may_come_again_later() {
        let (conversation, checked) = check([
            Message::user("go"),
            calls(&["c1", "c2"]),
            result("c2"),
            result("c1"),
            calls(&["c1"]),
            result("c1"),
            Message::Assistant(AssistantMessage::text("done")),
            Message::user("more"),
        ]);
        assert_eq!(checked, Ok(()));
        assert_eq!(conversation.messages().len(), 7);
    }

    #[test]
    fn open_calls_come_in_the_order_in_which_they_were_made() {
        let (conversation, _) = check([calls(&["c3", "c1", "c2"]), result("c1"), result("c2")]);
        let open: Vec<_> = conversation.open_calls().map(|call| call.id.as_str()).collect();
        assert_eq!(open, ["c3", "c2"]);
    }

    #[test]
    fn what_an_endpoint_would_refuse_is_refused() {
        let missing = "the result of tool call \"c2\" should stand here";
        let not_open = "a result for \"c1\", which is no open tool call";
        for (messages, reason) in [
            (vec![result("c1")], not_open),
            (vec![calls(&["c2"]), result("c1")], not_open),
            (vec![calls(&["c1", "c2"]), result("c1"), result("c1")], not_open),
            (vec![calls(&["c1", "c2"]), result("c1"), Message::user("hi")], missing),
            (vec![calls(&["c1", "c2"]), result("c1"), calls(&["c3"])], missing),
            (vec![calls(&["c1", ""])], "tool_calls[1] has no id"),
            (vec![calls(&["a", "a"])], "tool_calls[1] has the id of an earlier call, \"a\""),
            (vec![Message::system("be brief")], "a system message inside the conversation"),
        ] {
            assert_eq!(check(messages).1, Err(reason.to_owned()));
        }
    }
}
