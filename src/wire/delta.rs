//! A message that comes in fragments.
//!
//! The fragments of a string are joined as they stand, escapes included, and decoded once, when
//! the message is whole: it is then one JSON text, and read by the reader that reads every other
//! message. Little is known here of what a message holds. A call is found again by its place, its
//! id and its name, and a part of a list by its type; everything else goes by the form of its
//! value.

use crate::json::{Members, list, read_object};

use super::fragments::{Object, agree, separate, word};
use super::response::CALLS_MAX;

/// A message as far as it has come.
#[derive(Debug, Default)]
pub(super) struct PartialMessage {
    members: Object,
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<String>,
    id: Option<String>,
    members: Object,
    function: Object,
}

impl PartialMessage {
    /// Adds what one `delta` says.
    ///
    /// Strings and lists grow, those that we don't know too; of everything else the last one
    /// counts. A null adds nothing.
    ///
    /// # Errors
    ///
    /// A call that is no object, or more of anything than a message can have.
    pub(super) fn add(&mut self, mut delta: Members<'_>) -> Result<(), String> {
        delta.take("role");
        if let Some(calls) = delta.take("tool_calls") {
            let mut touched = Vec::new();
            for (position, raw) in list(calls, "tool_calls")?.enumerate() {
                let place = format!("tool_calls[{position}]");
                self.add_to_call(read_object(raw, &place)?, &place, &mut touched)?;
            }
        }
        delta.iter().try_for_each(|(name, raw)| self.members.slot(name)?.grow(raw, false))
    }

    /// The JSON of the message.
    pub(super) fn to_json(&self) -> String {
        let mut out = "{".to_owned();
        self.members.write_to(&mut out);
        if !self.calls.is_empty() {
            separate(&mut out);
            out.push_str("\"tool_calls\":[");
            for call in &self.calls {
                separate(&mut out);
                out.push('{');
                call.members.write_to(&mut out);
                separate(&mut out);
                out.push_str("\"function\":{");
                call.function.write_to(&mut out);
                out.push_str("}}");
            }
            out.push(']');
        }
        out.push('}');
        out
    }

    /// `touched` are the calls that earlier elements of the same list belong to.
    fn add_to_call(
        &mut self,
        mut fragment: Members<'_>,
        place: &str,
        touched: &mut Vec<usize>,
    ) -> Result<(), String> {
        let function = fragment.take("function");
        let function = function.map(|raw| read_object(raw, &format!("{place}.function")));
        let function = function.transpose()?;
        let name = function.as_ref().and_then(|function| word(function, "name"));
        let position = self.find_call(&fragment, name, touched).unwrap_or(self.calls.len());
        if position == CALLS_MAX {
            return Err(format!("tool_calls: more than {CALLS_MAX} calls"));
        }
        if position == self.calls.len() {
            self.calls.push(Call::default());
        }
        if touched.last() != Some(&position) {
            touched.push(position);
        }
        let call = &mut self.calls[position];
        call.index = word(&fragment, "index").map(str::to_owned).or(call.index.take());
        call.id = word(&fragment, "id").map(str::to_owned).or(call.id.take());
        for (name, raw) in fragment.iter() {
            call.members.slot(name)?.set(raw);
        }
        for (name, raw) in function.iter().flat_map(Members::iter) {
            let slot = call.function.slot(name)?;
            if name == "arguments" { slot.grow_text(raw) } else { slot.set(raw) }
        }
        Ok(())
    }

    /// The call that a fragment belongs to; none where it starts a new one.
    ///
    /// That is the last call with its index; without an index, the last one with its id; without
    /// either, the last one. But some servers give every call the index 0, and so another id or
    /// another name is another call. Nor are two elements of one list that neither index nor id
    /// tells apart fragments of the same call: nobody splits a call within a list.
    fn find_call(
        &self,
        fragment: &Members<'_>,
        name: Option<&str>,
        touched: &[usize],
    ) -> Option<usize> {
        let (index, id) = (word(fragment, "index"), word(fragment, "id"));
        let is_place = |call: &Call| match (index, id) {
            (Some(_), _) => call.index.as_deref() == index && agree(call.id.as_deref(), id),
            (None, Some(_)) => call.id.as_deref() == id,
            (None, None) => true,
        };
        let position = self.calls.iter().rposition(is_place)?;
        if index.is_none() && id.is_none() && touched.contains(&position) {
            return None;
        }
        agree(self.calls[position].function.get("name"), name).then_some(position)
    }
}
