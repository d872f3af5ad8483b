//! The vocabulary: messages, roles, tool calls.
//!
//! One form serves the wire and the log: what an endpoint sent is what a session record holds and
//! what goes back with the next request, members that we don't know included. Reading is lenient
//! in shape (null for absent, content as parts, arguments as an object) and strict in meaning:
//! an error names the member that could not be read.

mod joined;
mod masked;

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::{Fields, Json, Members, elements};

mod ids;

pub(crate) use ids::short_id;

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// Instructions that stand before the conversation.
    System(Content),
    /// What the user, or uncut on the user's behalf, said.
    User(Content),
    /// What the model said.
    Assistant(AssistantMessage),
    /// What a tool call came to.
    Tool(ToolResult),
}

/// A message of the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantMessage {
    /// The text; none where the message is tool calls only.
    pub content: Option<Content>,
    /// Whether the endpoint sent `null` as the content. It goes back as it came: some endpoints
    /// refuse a message without a content, others one whose content is null.
    pub content_is_null: bool,
    /// The calls, in the order in which they are to run.
    pub tool_calls: Vec<ToolCall>,
    /// Members that we don't know, sent back as they came.
    pub extra: Fields,
}

/// One call of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCall {
    /// Ties the result to the call; empty where the endpoint sent none.
    pub id: String,
    /// The tool's name; empty where the endpoint sent none.
    pub name: String,
    /// The arguments, as the text that the endpoint sent. It should be a JSON object, but that is
    /// for the tool to find out.
    pub arguments: String,
    /// Members that we don't know of the call, sent back as they came.
    pub extra: Fields,
    /// Members that we don't know of its `function`, sent back as they came.
    pub function_extra: Fields,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The id of the call.
    pub tool_call_id: String,
    /// What the tool said.
    pub content: Content,
}

/// The content of a message: text, or a list of parts that contains text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    text: String,
    refusal: Option<String>,
    /// The list as it came, when it was one.
    parts: Option<Json>,
}

/// A message, completion or record is not of the form that it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeError(pub String);

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ShapeError {}

impl Message {
    /// A message of the user.
    pub fn user(text: impl Into<String>) -> Message {
        Message::User(Content::from(text.into()))
    }

    /// The instructions before a conversation.
    pub fn system(text: impl Into<String>) -> Message {
        Message::System(Content::from(text.into()))
    }

    /// The result of a tool call.
    pub fn tool_result(call: &ToolCall, text: impl Into<String>) -> Message {
        Message::Tool(ToolResult {
            tool_call_id: call.id.clone(),
            content: Content::from(text.into()),
        })
    }

    /// Reads a message of any role from its JSON text.
    ///
    /// # Errors
    ///
    /// An unknown role, or a member of the wrong type; the error names it.
    pub fn from_json(text: &str) -> Result<Message, ShapeError> {
        Message::from_members(read(text, "message")?)
    }

    /// Reads a message of any role from its members.
    ///
    /// # Errors
    ///
    /// Those of [`Message::from_json`].
    pub fn from_members(mut members: Members<'_>) -> Result<Message, ShapeError> {
        let role = members.take("role").ok_or_else(|| ShapeError("no role".to_owned()))?;
        let role: String = read(role.get(), "role")?;
        match role.as_str() {
            // The newer name that OpenAI gives to the same thing.
            "system" | "developer" => Ok(Message::System(Content::take_from(&mut members)?)),
            "user" => Ok(Message::User(Content::take_from(&mut members)?)),
            "assistant" => Ok(Message::Assistant(AssistantMessage::from_members(members)?)),
            "tool" => Ok(Message::Tool(ToolResult {
                tool_call_id: take_string(&mut members, "tool_call_id")?
                    .ok_or_else(|| ShapeError("no tool_call_id".to_owned()))?,
                content: Content::take_from(&mut members)?,
            })),
            // It is cut when it is shown, which is after it was masked.
            _ => Err(ShapeError(format!("unknown role \"{role}\""))),
        }
    }
}

impl AssistantMessage {
    /// A message of text only.
    pub fn text(text: impl Into<String>) -> AssistantMessage {
        AssistantMessage { content: Some(Content::from(text.into())), ..Self::default() }
    }

    /// A message of tool calls only.
    pub fn calls(tool_calls: Vec<ToolCall>) -> AssistantMessage {
        AssistantMessage { tool_calls, ..Self::default() }
    }

    /// The text; empty where there is none.
    pub fn as_text(&self) -> &str {
        self.content.as_ref().map_or("", Content::as_str)
    }

    /// The model's own words for refusing the task, wherever the endpoint put them.
    pub fn refusal(&self) -> Option<String> {
        let member = self.extra.get("refusal");
        member
            .and_then(|value| serde_json::from_str(value.as_str()).ok())
            .or_else(|| self.content.as_ref().and_then(|content| content.refusal.clone()))
            .filter(|refusal| !refusal.trim().is_empty())
    }

    /// Whether the message has a call in the old form, `function_call`. Some servers send that
    /// member with every message, as null or with nothing in it.
    pub fn has_function_call(&self) -> bool {
        self.extra.get("function_call").is_some_and(|call| says_something(call.as_str()))
    }

    /// Reads the message from its members; the role, if it is still among them, is not looked at.
    ///
    /// # Errors
    ///
    /// A member of the wrong type; the error names it.
    pub fn from_members(mut members: Members<'_>) -> Result<AssistantMessage, ShapeError> {
        members.take("role");
        let content_is_null = members.is_null("content");
        let content = members.take("content").map(Content::from_raw).transpose()?;
        let calls = match members.take("tool_calls") {
            Some(list) => Some(
                elements(list).ok_or_else(|| ShapeError("tool_calls: not a list".to_owned()))?,
            ),
            None => None,
        };
        let tool_calls = calls
            .into_iter()
            .flatten()
            .enumerate()
            .map(|(index, call)| ToolCall::from_raw(call, index))
            .collect::<Result<_, _>>()?;
        let extra = members.into_fields();
        Ok(AssistantMessage { content, content_is_null, tool_calls, extra })
    }
}

/// Whether a value is more than empty, or than an object of empty values.
fn says_something(json: &str) -> bool {
    match serde_json::from_str::<Members<'_>>(json) {
        Ok(members) => members.iter().any(|(_, value)| !is_empty(value.get())),
        Err(_) => !is_empty(json),
    }
}

fn is_empty(json: &str) -> bool {
    let text = serde_json::from_str::<String>(json);
    matches!(json, "null" | "false" | "{}" | "[]") || text.is_ok_and(|text| text.trim().is_empty())
}

impl ToolCall {
    /// A call as a model would make it.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> ToolCall {
        ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            ..ToolCall::default()
        }
    }

    fn from_raw(raw: &RawValue, index: usize) -> Result<ToolCall, ShapeError> {
        let place = format!("tool_calls[{index}]");
        let mut call: Members<'_> = read(raw.get(), &place)?;
        // The type is always "function", and the index belongs to streams; some servers refuse it.
        call.take("type");
        call.take("index");
        let id = take_string(&mut call, "id").map_err(|error| error.within(&place))?;
        let mut function: Members<'_> = match call.take("function") {
            Some(function) => read(function.get(), &format!("{place}.function"))?,
            None => read("{}", &place)?,
        };
        let name = take_string(&mut function, "name").map_err(|error| error.within(&place))?;
        let arguments = match function.take("arguments") {
            None => String::new(),
            Some(raw) if raw.get().starts_with('"') => read(raw.get(), "arguments")?,
            Some(raw) => Json::from_raw(raw).as_str().to_owned(),
        };
        Ok(ToolCall {
            id: id.unwrap_or_default(),
            name: name.unwrap_or_default(),
            arguments,
            extra: call.into_fields(),
            function_extra: function.into_fields(),
        })
    }
}

impl Content {
    /// The text; of a list of parts, the text parts joined. Thinking is not text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn take_from(members: &mut Members<'_>) -> Result<Content, ShapeError> {
        members.take("content").map_or_else(|| Ok(Content::default()), Content::from_raw)
    }

    fn from_raw(raw: &RawValue) -> Result<Content, ShapeError> {
        if raw.get().starts_with('"') {
            return Ok(Content::from(read::<String>(raw.get(), "content")?));
        }
        let parts = elements(raw).ok_or_else(|| {
            ShapeError("content: neither a string nor a list of parts".to_owned())
        })?;
        let mut content = Content { parts: Some(Json::from_raw(raw)), ..Content::default() };
        for (index, part) in parts.enumerate() {
            let place = format!("content[{index}]");
            let mut part: Members<'_> = read(part.get(), &place)?;
            let kind = take_string(&mut part, "type").map_err(|error| error.within(&place))?;
            match kind.as_deref() {
                Some("text" | "output_text") => {
                    let text = take_string(&mut part, "text").map_err(|e| e.within(&place))?;
                    content.text.push_str(&text.unwrap_or_default());
                }
                Some("refusal") => {
                    content.refusal =
                        take_string(&mut part, "refusal").map_err(|e| e.within(&place))?;
                }
                _ => {}
            }
        }
        Ok(content)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content { text, ..Content::default() }
    }
}

impl ShapeError {
    fn within(self, place: &str) -> ShapeError {
        ShapeError(format!("{place}.{}", self.0))
    }
}

/// Reads JSON text that is known to be valid; `place` names it in the error.
fn read<'a, T: Deserialize<'a>>(text: &'a str, place: &str) -> Result<T, ShapeError> {
    serde_json::from_str(text).map_err(|error| ShapeError(format!("{place}: {error}")))
}

fn take_string(members: &mut Members<'_>, name: &str) -> Result<Option<String>, ShapeError> {
    members.take(name).map(|raw| read(raw.get(), name)).transpose()
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.parts {
            Some(parts) => parts.serialize(serializer),
            None => serializer.serialize_str(&self.text),
        }
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Message::System(content) => {
                map.serialize_entry("role", "system")?;
                map.serialize_entry("content", content)?;
            }
            Message::User(content) => {
                map.serialize_entry("role", "user")?;
                map.serialize_entry("content", content)?;
            }
            Message::Assistant(message) => {
                map.serialize_entry("role", "assistant")?;
                if message.content.is_some() || message.content_is_null {
                    map.serialize_entry("content", &message.content)?;
                }
                if !message.tool_calls.is_empty() {
                    map.serialize_entry("tool_calls", &message.tool_calls)?;
                }
                serialize_fields(&mut map, &message.extra)?;
            }
            Message::Tool(result) => {
                map.serialize_entry("role", "tool")?;
                map.serialize_entry("tool_call_id", &result.tool_call_id)?;
                map.serialize_entry("content", &result.content)?;
            }
        }
        map.end()
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &Function(self))?;
        serialize_fields(&mut map, &self.extra)?;
        map.end()
    }
}

struct Function<'a>(&'a ToolCall);

impl Serialize for Function<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.0.name)?;
        map.serialize_entry("arguments", &self.0.arguments)?;
        serialize_fields(&mut map, &self.0.function_extra)?;
        map.end()
    }
}

fn serialize_fields<M: SerializeMap>(map: &mut M, fields: &Fields) -> Result<(), M::Error> {
    fields.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
}
