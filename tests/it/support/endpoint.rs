//! A scripted endpoint: one reply per request, in order, over a real socket.
//!
//! It polices its callers: a request that a strict server would refuse fails the test, whatever
//! the test is about, and so does a reply that nobody asked for. It sleeps only to send a reply as
//! slowly as the test asks for, and whatever its caller does, it ends when it is finished or
//! dropped.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than any test takes, short enough to find out that one hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the endpoint answers to one request.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Status line and headers; none where `body` is all there is to send.
    head: Option<(u16, Vec<(String, String)>)>,
    body: Vec<u8>,
    then: Then,
    pace: Pace,
    /// How long nothing is sent.
    delay: Duration,
    hold: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
}

/// How fast a body is sent.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Bytes of one write.
    size: usize,
    /// After each of them.
    pause: Duration,
}

impl Pace {
    const AT_ONCE: Pace = Pace { size: usize::MAX, pause: Duration::ZERO };

    fn send(self, mut stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(self.size) {
            stream.write_all(piece)?;
            thread::sleep(self.pause);
        }
        Ok(())
    }
}

/// What happens when a reply was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The connection waits for its next request.
    Keep,
    /// It is closed in an orderly way.
    Close,
    /// It is reset.
    Reset,
    /// Nothing, until the endpoint goes away.
    Stall,
    /// The body is sent again, as a chunk, until the caller hangs up.
    Repeat,
}

impl Reply {
    /// The model is done and says `text`.
    pub(crate) fn answer(text: &str) -> Reply {
        Reply::choice(json!({
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": text},
        }))
    }

    /// The model calls one tool.
    pub(crate) fn tool_call(id: &str, name: &str, arguments: &str) -> Reply {
        Reply::tool_calls(&[(id, name, arguments)])
    }

    /// The model calls several tools: id, name and arguments of each.
    pub(crate) fn tool_calls(calls: &[(&str, &str, &str)]) -> Reply {
        let calls: Vec<Value> = calls
            .iter()
            .map(|(id, name, arguments)| {
                json!({
                    "id": id,
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                })
            })
            .collect();
        Reply::choice(json!({
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": null, "tool_calls": calls},
        }))
    }

    /// A completion with this choice, and usage 10 + 5.
    pub(crate) fn choice(mut choice: Value) -> Reply {
        if let Some(members) = choice.as_object_mut() {
            members.entry("index").or_insert(json!(0));
        }
        Reply::json(&json!({
            "id": "x",
            "object": "chat.completion",
            "model": "m",
            "choices": [choice],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }))
    }

    /// Status 200 with this value as its body.
    pub(crate) fn json(body: &Value) -> Reply {
        Reply::status(200, body.to_string())
    }

    /// The same completion with so many tokens of the prompt.
    pub(crate) fn with_tokens(mut self, prompt: u64) -> Reply {
        let mut body: Value = serde_json::from_slice(&self.body).unwrap();
        body["usage"]["prompt_tokens"] = json!(prompt);
        self.body = body.to_string().into_bytes();
        self
    }

    /// Any status, with a body that is said to be JSON.
    pub(crate) fn status(code: u16, body: impl Into<Vec<u8>>) -> Reply {
        let json = ("content-type".to_owned(), "application/json".to_owned());
        Reply { head: Some((code, vec![json])), then: Then::Keep, ..Reply::raw(body) }
    }

    /// Status 200 with these events, each the lines of one; then the connection is closed, which is
    /// the only end that the body has.
    pub(crate) fn stream(events: &[impl AsRef<str>]) -> Reply {
        let body: String = events.iter().map(|event| format!("{}\n\n", event.as_ref())).collect();
        let events = ("content-type".to_owned(), "text/event-stream".to_owned());
        Reply { head: Some((200, vec![events])), ..Reply::raw(body) }
    }

    /// Status 200 with an answer that is not UTF-8.
    pub(crate) fn not_utf8() -> Reply {
        let mut reply = Reply::answer("caf#");
        let place = reply.body.iter().position(|byte| *byte == b'#').unwrap();
        reply.body[place] = 0xE9;
        reply
    }

    /// A whole response, status line and all; then the connection is closed.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Reply {
        let (then, pace) = (Then::Close, Pace::AT_ONCE);
        let delay = Duration::ZERO;
        Reply { head: None, body: bytes.into(), then, pace, delay, hold: None }
    }

    /// Takes the request and says nothing.
    pub(crate) fn stall() -> Reply {
        Reply { then: Then::Stall, ..Reply::raw("") }
    }

    /// Takes the request and resets the connection.
    pub(crate) fn reset() -> Reply {
        Reply { then: Then::Reset, ..Reply::raw("") }
    }

    /// Status 200 with a body that never ends.
    pub(crate) fn endless() -> Reply {
        let body = vec![b' '; 1 << 16];
        Reply { then: Then::Repeat, ..Reply::status(200, body) }
            .with_header("transfer-encoding", "chunked")
    }

    /// The same with one more header.
    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Reply {
        let (_, headers) = self.head.as_mut().expect("a raw reply has its own headers");
        headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same, but the connection is closed after `sent` bytes of the body.
    pub(crate) fn close_after(self, sent: usize) -> Reply {
        self.cut(sent, Then::Close)
    }

    /// The same, but there is silence after `sent` bytes of the body.
    pub(crate) fn stall_after(self, sent: usize) -> Reply {
        self.cut(sent, Then::Stall)
    }

    /// The same, but the connection stays open behind it, in silence.
    pub(crate) fn left_open(self) -> Reply {
        Reply { then: Then::Stall, ..self }
    }

    /// The same, but the connection waits for its next request.
    pub(crate) fn kept(self) -> Reply {
        Reply { then: Then::Keep, ..self }
    }

    /// The same, but the connection is closed behind it, although nothing in it says so.
    pub(crate) fn hung_up(self) -> Reply {
        let whole = self.body.len().to_string();
        Reply { then: Then::Close, ..self }.with_header("content-length", &whole)
    }

    /// The same, but so many bytes of the body at a time, with a pause after each piece.
    pub(crate) fn in_pieces(self, size: usize, pause: Duration) -> Reply {
        Reply { pace: Pace { size, pause }, ..self }
    }

    /// The same, but so much later.
    pub(crate) fn late(self, delay: Duration) -> Reply {
        Reply { delay, ..self }
    }

    /// The same, but not before the [`Hold`] is dropped.
    pub(crate) fn held(mut self) -> (Reply, Hold) {
        let (sender, receiver) = mpsc::channel();
        self.hold = Some((sender.clone(), receiver));
        (self, Hold(sender))
    }

    fn cut(mut self, sent: usize, then: Then) -> Reply {
        assert!(sent < self.body.len(), "the body has only {} bytes", self.body.len());
        let whole = self.body.len().to_string();
        self.body.truncate(sent);
        self.then = then;
        self.with_header("content-length", &whole)
    }

    /// Status line and headers, with the blank line behind them.
    fn head(&self) -> String {
        let Some((status, headers)) = &self.head else { return String::new() };
        let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        let has = |wanted: &str| headers.iter().any(|(name, _)| name == wanted);
        if self.then == Then::Keep && !has("content-length") {
            write!(head, "content-length: {}\r\n", self.body.len()).unwrap();
        }
        head + "\r\n"
    }
}

/// Holds a reply back until it is dropped, or the endpoint is.
#[derive(Debug)]
pub(crate) struct Hold(mpsc::Sender<()>);

impl Drop for Hold {
    fn drop(&mut self) {
        // The endpoint may be gone; then there is nothing to release.
        let _ = self.0.send(());
    }
}

/// What came in.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The connection that it came on, by its other end.
    pub(crate) peer: SocketAddr,
    /// Request line and headers.
    pub(crate) head: String,
    /// The body as it came.
    pub(crate) raw: Vec<u8>,
    /// The body as JSON; null where it is none.
    pub(crate) body: Value,
}

impl Request {
    /// The value of a header, whatever the case of its name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The messages of the body.
    #[track_caller]
    pub(crate) fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().expect("messages")
    }
}

/// The endpoint, listening on a port of its own.
#[derive(Debug)]
pub(crate) struct Endpoint {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// None when it is finished.
    listener: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Told of every request, and of the end.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    script: VecDeque<Reply>,
    requests: Vec<Request>,
    violations: Vec<String>,
    /// A copy of every open connection, to cut it at the end.
    connections: Vec<(SocketAddr, TcpStream)>,
    /// Releases what is held back, at the end.
    holds: Vec<mpsc::Sender<()>>,
    key: Option<String>,
    unpoliced: bool,
    allow_unused: bool,
    over: bool,
}

impl Endpoint {
    /// Starts to listen.
    pub(crate) fn start(script: Vec<Reply>) -> Endpoint {
        Endpoint::on(TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    /// Starts to serve what listens already.
    pub(crate) fn on(listener: TcpListener, script: Vec<Reply>) -> Endpoint {
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let holds = script.iter().filter_map(|reply| Some(reply.hold.as_ref()?.0.clone()));
        shared.lock().holds = holds.collect();
        shared.lock().script = script.into();
        let served = Arc::clone(&shared);
        let listener = Some(thread::spawn(move || listen(&listener, &served)));
        Endpoint { address, shared, listener }
    }

    /// From now on every request must carry this key; without, none may carry any.
    pub(crate) fn expect_key(self, key: &str) -> Endpoint {
        self.shared.lock().key = Some(key.to_owned());
        self
    }

    /// Requests may break the rules.
    pub(crate) fn unpoliced(self) -> Endpoint {
        self.shared.lock().unpoliced = true;
        self
    }

    /// Replies may be left over.
    pub(crate) fn allow_unused(self) -> Endpoint {
        self.shared.lock().allow_unused = true;
        self
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What goes into `--base-url`.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Waits until so many requests have come in.
    #[track_caller]
    pub(crate) fn wait_for_requests(&self, count: usize) {
        let few = |state: &mut State| state.requests.len() < count;
        let state = self.shared.lock();
        let (state, waited) = self.shared.changed.wait_timeout_while(state, PATIENCE, few).unwrap();
        assert!(!waited.timed_out(), "{} requests instead of {count}", state.requests.len());
    }

    /// Ends it and returns the requests.
    ///
    /// # Panics
    ///
    /// When a request broke the rules or replies are left over.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Vec<Request> {
        self.stop();
        self.check();
        std::mem::take(&mut self.shared.lock().requests)
    }

    fn stop(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        let mut state = self.shared.lock();
        state.over = true;
        for (_, connection) in &state.connections {
            // Its caller may have closed it long ago.
            let _ = connection.shutdown(Shutdown::Both);
        }
        for hold in &state.holds {
            // Its reply may have gone out long ago.
            let _ = hold.send(());
        }
        drop(state);
        self.shared.changed.notify_all();
        // Wakes the listener up.
        let _ = TcpStream::connect_timeout(&self.address, PATIENCE);
        listener.join().expect("the endpoint has a fault of its own");
    }

    #[track_caller]
    fn check(&self) {
        let state = self.shared.lock();
        assert!(state.violations.is_empty(), "the endpoint complains: {:#?}", state.violations);
        if !state.allow_unused {
            assert!(state.script.is_empty(), "{} replies were not used", state.script.len());
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if self.listener.is_some() {
            self.stop();
            if !thread::panicking() {
                self.check();
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end.
    fn wait_until_over(&self) {
        let going_on = |state: &mut State| !state.over;
        let _ = self.changed.wait_timeout_while(self.lock(), PATIENCE, going_on);
    }

    /// Takes the next reply, as soon as the head of a request is there.
    fn next_reply(&self) -> Reply {
        let mut state = self.lock();
        state.script.pop_front().unwrap_or_else(|| {
            let count = state.requests.len() + 1;
            state.violations.push(format!("request {count} came when the script was over"));
            Reply::status(500, "the script is over")
        })
    }

    fn record(&self, request: Request) {
        let mut state = self.lock();
        if !state.unpoliced
            && let Err(violation) = police(&request, state.key.as_deref())
        {
            let count = state.requests.len() + 1;
            state.violations.push(format!("request {count}: {violation}"));
        }
        state.requests.push(request);
        drop(state);
        self.changed.notify_all();
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    loop {
        let (stream, peer) = listener.accept().unwrap();
        let mut state = shared.lock();
        if state.over {
            break;
        }
        state.connections.push((peer, stream.try_clone().unwrap()));
        drop(state);
        let shared = Arc::clone(shared);
        threads.push(thread::spawn(move || {
            // A caller that hangs up in the middle is a caller's right, and some tests' subject.
            let _ = converse(&stream, &shared);
            // The copy would keep the connection open.
            shared.lock().connections.retain(|(other, _)| *other != peer);
        }));
    }
    for thread in threads {
        thread.join().expect("a connection of the endpoint has a fault of its own");
    }
}

/// Serves the requests of one connection.
fn converse(mut stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    while let Some(head) = read_head(stream)? {
        let reply = shared.next_reply();
        shared.record(read_request(stream, head, reply.then)?);
        if let Some((_, released)) = &reply.hold {
            let _ = released.recv_timeout(PATIENCE);
        }
        thread::sleep(reply.delay);
        stream.write_all(reply.head().as_bytes())?;
        if reply.then != Then::Repeat {
            reply.pace.send(stream, &reply.body)?;
        }
        match reply.then {
            Then::Keep => {}
            Then::Close | Then::Reset => return Ok(()),
            Then::Stall => {
                shared.wait_until_over();
                return Ok(());
            }
            Then::Repeat => loop {
                write!(stream, "{:x}\r\n", reply.body.len())?;
                reply.pace.send(stream, &reply.body)?;
                stream.write_all(b"\r\n")?;
            },
        }
    }
    Ok(())
}

/// Reads up to the blank line, byte by byte so that nothing of the body is taken; none where the
/// caller is done.
fn read_head(mut stream: &TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    Ok(Some(String::from_utf8(head).map_err(io::Error::other)?))
}

fn read_request(mut stream: &TcpStream, head: String, then: Then) -> io::Result<Request> {
    let peer = stream.peer_addr()?;
    let mut request = Request { peer, head, raw: Vec::new(), body: Value::Null };
    let length = request.header("content-length").and_then(|length| length.parse().ok());
    request.raw.resize(length.unwrap_or(0), 0);
    // Closing a socket that has something unread resets the connection.
    let unread = usize::from(then == Then::Reset && !request.raw.is_empty());
    let (read, peeked) = request.raw.split_at_mut(length.unwrap_or(0) - unread);
    stream.read_exact(read)?;
    if !peeked.is_empty() {
        stream.peek(peeked)?;
    }
    request.body = serde_json::from_slice(&request.raw).unwrap_or(Value::Null);
    Ok(request)
}

/// What any strict server would refuse.
fn police(request: &Request, key: Option<&str>) -> Result<(), String> {
    let line = request.head.lines().next().unwrap_or_default();
    let path = line.strip_prefix("POST ").and_then(|rest| rest.strip_suffix(" HTTP/1.1"));
    let path = path.ok_or_else(|| format!("not a POST: {line}"))?;
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    check(path.ends_with("/chat/completions"), || format!("posted to {path}"))?;
    check(request.header("content-length").is_some(), || "no content-length".to_owned())?;
    let kind = request.header("content-type");
    check(kind == Some("application/json"), || format!("content-type {kind:?}"))?;
    let authorization = key.map(|key| format!("Bearer {key}"));
    check(request.header("authorization") == authorization.as_deref(), || {
        format!(
            "authorization {:?} where it should be {authorization:?}",
            request.header("authorization")
        )
    })?;
    check(request.body.is_object(), || "the body is not a JSON object".to_owned())?;
    let model = request.body["model"].as_str().unwrap_or_default();
    check(!model.is_empty(), || "no model".to_owned())?;
    let tools = request.body["tools"].as_array();
    check(tools.is_some_and(|tools| !tools.is_empty()), || "no tools".to_owned())?;
    let messages = request.body["messages"].as_array().ok_or("no messages")?;
    check(!messages.is_empty(), || "empty messages".to_owned())?;
    police_messages(messages)
}

/// Every tool message answers a call of the assistant message before it, and every call has its
/// answer before anything else is said.
fn police_messages(messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages[{index}]");
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let found = open.iter().position(|open| *open == id);
            open.remove(found.ok_or_else(|| format!("{place} answers no call: {id:?}"))?);
            continue;
        }
        check(open.is_empty(), || format!("{place} comes before the results of {open:?}"))?;
        check(["system", "user", "assistant"].contains(&role), || format!("{place}: {role:?}"))?;
        let calls = message["tool_calls"].as_array();
        check(calls.is_some() || message.get("tool_calls").is_none(), || {
            format!("{place}.tool_calls is not a list")
        })?;
        for call in calls.into_iter().flatten() {
            let id = police_call(call).map_err(|violation| format!("{place}: {violation}"))?;
            check(!open.contains(&id), || format!("{place} has the id {id:?} twice"))?;
            open.push(id);
        }
    }
    check(open.is_empty(), || format!("no results of {open:?}"))
}

fn police_call(call: &Value) -> Result<&str, String> {
    let id = call["id"].as_str().unwrap_or_default();
    check(!id.is_empty(), || format!("a call without an id: {call}"))?;
    check(call["type"] == "function", || format!("a call without its type: {call}"))?;
    let name = call["function"]["name"].as_str().unwrap_or_default();
    check(!name.is_empty(), || format!("a call without a name: {call}"))?;
    for text in [id, name] {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        check(text.len() <= 64 && text.bytes().all(plain), || format!("{text:?} in {call}"))?;
    }
    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
    let object = serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object());
    check(object, || format!("arguments that are not an object: {call}"))?;
    Ok(id)
}

fn check(right: bool, violation: impl FnOnce() -> String) -> Result<(), String> {
    if right { Ok(()) } else { Err(violation()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request with these messages that is right in everything else.
    fn request(messages: &Value) -> Request {
        let body = json!({"model": "m", "tools": [{}], "messages": messages});
        let head = "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 1\r\n\
                    Content-Type: application/json\r\nAuthorization: Bearer k\r\n\r\n";
        Request { peer: ([127, 0, 0, 1], 1).into(), head: head.to_owned(), raw: Vec::new(), body }
    }

    fn call(id: &str, name: &str, arguments: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    }

    #[track_caller]
    fn check_violation(request: &Request, expected: &str) {
        let violation = police(request, Some("k")).expect_err("it was let through");
        assert!(violation.contains(expected), "{violation}");
    }

    #[test]
    fn a_request_in_order_is_let_through() {
        let call = call("c", "shell", "{}");
        let mut right = request(&json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": ""},
            {"role": "user", "content": "on"},
        ]));
        assert_eq!(police(&right, Some("k")), Ok(()));
        assert!(police(&right, None).is_err());
        assert!(police(&right, Some("other")).is_err());
        right.body["tools"] = json!([]);
        check_violation(&right, "no tools");
        right.body["model"] = json!("");
        check_violation(&right, "no model");
        for (part, wrong, expected) in [
            ("POST", "GET", "not a POST"),
            ("/completions", "/responses", "posted to"),
            ("Content-Length", "X-Length", "no content-length"),
            ("application/json", "text/plain", "content-type"),
        ] {
            right.head = right.head.replace(part, wrong);
            check_violation(&right, expected);
            right.head = right.head.replace(wrong, part);
        }
    }

    #[test]
    fn calls_and_results_must_match() {
        let right = call("c", "s", "{}");
        for (messages, expected) in [
            (json!([]), "empty messages"),
            (json!([{"role": "robot"}]), "robot"),
            (json!([{"role": "tool", "tool_call_id": "c"}]), "answers no call"),
            (json!([{"role": "assistant", "tool_calls": null}]), "not a list"),
            (json!([{"role": "assistant", "tool_calls": [right]}]), "no results"),
            (
                json!([
                    {"role": "assistant", "tool_calls": [right]},
                    {"role": "user", "content": "on"},
                ]),
                "before the results",
            ),
            (json!([{"role": "assistant", "tool_calls": [right, right]}]), "twice"),
            (json!([{"role": "assistant", "tool_calls": [call("", "s", "{}")]}]), "without an id"),
            (json!([{"role": "assistant", "tool_calls": [call("c", "", "{}")]}]), "without a name"),
            (json!([{"role": "assistant", "tool_calls": [call("c", "s", "[]")]}]), "not an object"),
            (json!([{"role": "assistant", "tool_calls": [call("c", "s", "")]}]), "not an object"),
        ] {
            check_violation(&request(&messages), expected);
        }
    }
}
