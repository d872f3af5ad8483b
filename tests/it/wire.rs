//! What is sent, what is accepted and what is refused, over a real socket.

use std::thread;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use uncut::json::Json;
use uncut::message::Message;
use uncut::openai::{self, OpenAi, Roots, Settings};
use uncut::outcome::Outcome;
use uncut::provider::{
    Completion, CompletionRequest, FinishReason, Notify, Provider, ProviderError, StatusError,
    ToolDefinition, Usage,
};
use uncut::secret::{Mask, Secret};
use uncut::time::Deadline;
use uncut::wire::RequestForm;

use crate::support::endpoint::{Endpoint, Reply, Request};
use crate::support::server::Refusing;

const KEY: &str = "sk-TESTKEY-9";

/// A limit that silence runs into. On a busy machine it may pass before the endpoint has seen the
/// request, so the tests that use it allow replies to be left over.
pub(crate) const SHORT: Duration = Duration::from_millis(50);

pub(crate) fn settings(base_url: &str) -> Settings {
    Settings {
        endpoint: openai::Endpoint::parse(base_url).expect(base_url),
        key: None,
        idle_timeout: Some(Duration::from_secs(30)),
        request_timeout: None,
        proxy: None,
        roots: Roots::default(),
        mask: Mask::default(),
        max_retries: 0,
        form: RequestForm::default(),
        headers: Vec::new(),
    }
}

fn with_key(settings: Settings) -> Settings {
    let key = Secret::parse(KEY).expect("a key");
    Settings { mask: Mask::new(key.clone()), key, ..settings }
}

fn complete(
    settings: Settings,
    messages: &[Message],
    deadline: Deadline,
) -> Result<Completion, ProviderError> {
    let mut openai = OpenAi::new(settings).expect("settings");
    complete_by(&mut openai, messages, deadline, Notify::NOBODY)
}

fn complete_by(
    openai: &mut OpenAi,
    messages: &[Message],
    deadline: Deadline,
    notify: Notify<'_>,
) -> Result<Completion, ProviderError> {
    let schema = RawValue::from_string(r#"{"type":"object"}"#.to_owned()).expect("JSON");
    let tools = [ToolDefinition {
        name: "shell",
        description: "Runs a command.",
        parameters: Json::from_raw(&schema),
    }];
    let request = CompletionRequest {
        model: "m",
        system_prompt: "Be brief.",
        messages,
        closing: None,
        tools: &tools,
        max_tokens: None,
        deadline,
        notify,
    };
    openai.complete(&request)
}

/// Asks what may have been asked before.
pub(crate) fn ask_again(
    openai: &mut OpenAi,
    notify: Notify<'_>,
) -> Result<Completion, ProviderError> {
    complete_by(openai, &[Message::user("hi")], Deadline::NONE, notify)
}

pub(crate) fn ask(settings: Settings) -> Result<Completion, ProviderError> {
    complete(settings, &[Message::user("hi")], Deadline::NONE)
}

/// What one reply is read as, and the request that it came to.
#[track_caller]
fn exchange(reply: Reply) -> (Result<Completion, ProviderError>, Request) {
    let endpoint = Endpoint::start(vec![reply]);
    let result = ask(settings(&endpoint.base_url()));
    (result, endpoint.finish().remove(0))
}

#[track_caller]
fn accepted(reply: Reply) -> Completion {
    exchange(reply).0.expect("it was refused")
}

#[track_caller]
fn refused(reply: Reply) -> ProviderError {
    exchange(reply).0.expect_err("it was accepted")
}

/// The message of an error of which the response is to blame.
#[track_caller]
fn check_protocol(reply: Reply, expected: &str) {
    let error = refused(reply);
    assert_eq!(error.outcome(), Outcome::Protocol, "{error:?}");
    assert!(error.to_string().contains(expected), "{error} without {expected}");
}

#[track_caller]
pub(crate) fn check_transport(error: &ProviderError, expected: &str) {
    assert!(matches!(error, ProviderError::Transport { .. }), "{error:?}");
    assert!(error.to_string().contains(expected), "{error} without {expected}");
}

// What is sent.

#[test]
fn a_request_says_who_asks_and_what_is_accepted() {
    let (_, request) = exchange(Reply::answer("hi"));
    assert!(request.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", request.head);
    let user_agent = concat!("uncut/", env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("user-agent", Some(user_agent)),
        ("accept", Some("application/json")),
        ("accept-encoding", Some("identity")),
        ("content-type", Some("application/json")),
        ("authorization", None),
        ("cookie", None),
        ("transfer-encoding", None),
        ("expect", None),
    ] {
        assert_eq!(request.header(name), value, "{name}");
    }
    assert_eq!(request.body["stream"], true);
    assert_eq!(request.messages()[0], json!({"role": "system", "content": "Be brief."}));
    assert!(request.raw.starts_with(br#"{"model":"m","#));
}

#[test]
fn a_key_is_sent_as_bearer_even_where_the_url_has_a_password() {
    let endpoint = Endpoint::start(vec![Reply::answer("hi"), Reply::answer("hi")]).expect_key(KEY);
    let base_url = endpoint.base_url();
    ask(with_key(settings(&base_url))).unwrap();
    ask(with_key(settings(&base_url.replace("http://", "http://user:hunter2@")))).unwrap();
    endpoint.finish();
}

#[test]
fn a_password_in_the_url_is_sent_where_there_is_no_key() {
    let endpoint = Endpoint::start(vec![Reply::answer("hi")]).unpoliced();
    ask(settings(&endpoint.base_url().replace("http://", "http://user:hunter2@"))).unwrap();
    let request = endpoint.finish().remove(0);
    assert_eq!(request.header("authorization"), Some("Basic dXNlcjpodW50ZXIy"));
    assert!(!request.head.contains("hunter2"), "{}", request.head);
}

#[test]
fn localhost_needs_no_lookup() {
    let endpoint = Endpoint::start(vec![Reply::answer("hi")]);
    ask(settings(&endpoint.base_url().replace("127.0.0.1", "localhost"))).unwrap();
    endpoint.finish();
}

/// Sends a message back behind the results of its calls and returns it as it went out.
#[track_caller]
fn echoed(message: &Value) -> (Value, String) {
    let choice = json!({"finish_reason": "tool_calls", "message": message});
    let endpoint = Endpoint::start(vec![Reply::choice(choice), Reply::answer("done")]);
    let settings = settings(&endpoint.base_url());
    let completion = ask(settings.clone()).expect("it was refused");
    let mut messages = vec![Message::user("hi")];
    let calls = completion.message.tool_calls.clone();
    messages.push(Message::Assistant(completion.message));
    messages.extend(calls.iter().map(|call| Message::tool_result(call, "ok")));
    complete(settings, &messages, Deadline::NONE).expect("it was refused");
    let request = endpoint.finish().remove(1);
    (request.messages()[2].clone(), String::from_utf8(request.raw).expect("UTF-8"))
}

#[test]
fn unknown_members_of_calls_go_back_on_the_call_that_they_came_with() {
    let function = json!({"name": "shell", "arguments": "{}"});
    let call = |id: &str| json!({"id": id, "type": "function", "function": function});
    let mut signed = call("c1");
    signed["extra_content"] = json!({"google": {"thought_signature": "c2ln"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [signed, call("c2")]});
    assert_eq!(echoed(&message).0, message);
}

#[test]
fn unknown_members_of_a_message_go_back_byte_for_byte() {
    let details = concat!(
        r#"[{"type":"reasoning.encrypted","data":"QUJD","id":"r1","format":"x","index":0},"#,
        r#"{"type":"reasoning.text","text":"t","signature":"s","b":1.50,"a":1e40}]"#
    );
    let body = format!(
        r#"{{"choices":[{{"finish_reason":"tool_calls","message":{{"role":"assistant",
        "reasoning_details":{details},"reasoning_content":"because","tool_calls":[
        {{"id":"c1","function":{{"name":"shell","arguments":"{{}}"}}}}]}}}}]}}"#
    );
    let endpoint = Endpoint::start(vec![Reply::status(200, body), Reply::answer("done")]);
    let settings = settings(&endpoint.base_url());
    let message = ask(settings.clone()).unwrap().message;
    let result = Message::tool_result(&message.tool_calls[0], "ok");
    let messages = [Message::user("hi"), Message::Assistant(message), result];
    complete(settings, &messages, Deadline::NONE).unwrap();
    let raw = String::from_utf8(endpoint.finish().remove(1).raw).unwrap();
    assert!(raw.contains(&format!(r#""reasoning_details":{details}"#)), "{raw}");
    assert!(raw.contains(r#""reasoning_content":"because""#), "{raw}");
}

#[test]
fn a_call_without_type_and_with_an_index_goes_back_as_a_function() {
    let message = json!({"role": "assistant", "tool_calls": [
        {"index": 0, "id": "c1", "function": {"name": "shell", "arguments": {"command": "ls"}}},
    ]});
    let (echo, _) = echoed(&message);
    let arguments = r#"{"command":"ls"}"#;
    let call = json!({
        "id": "c1",
        "type": "function",
        "function": {"name": "shell", "arguments": arguments},
    });
    assert_eq!(echo["tool_calls"], json!([call]));
}

#[test]
fn arguments_that_are_no_json_go_back_inside_an_object() {
    let message = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "function": {"name": "shell", "arguments": "{\"command\": \"l"}},
        {"id": "c2", "function": {"name": "shell", "arguments": ""}},
    ]});
    let (echo, _) = echoed(&message);
    let arguments = |index: usize| echo["tool_calls"][index]["function"]["arguments"].clone();
    assert_eq!(arguments(0), r#"{"invalid_arguments":"{\"command\": \"l"}"#);
    assert_eq!(arguments(1), "{}");
}

// What is accepted.

#[test]
fn an_answer_is_read() {
    let completion = accepted(Reply::answer("hi"));
    assert_eq!(completion.message.as_text(), "hi");
    assert_eq!(completion.finish_reason, FinishReason::Stop);
    assert_eq!(completion.model.as_deref(), Some("m"));
    let usage = Usage { prompt_tokens: Some(10), cached_tokens: None, completion_tokens: Some(5) };
    assert_eq!(completion.usage, usage);
}

#[test]
fn several_calls_are_read_in_order() {
    let reply = Reply::tool_calls(&[("c1", "shell", "{}"), ("c2", "read_file", "not json")]);
    let calls = accepted(reply).message.tool_calls;
    let found: Vec<_> =
        calls.iter().map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str())).collect();
    assert_eq!(found, [("c1", "shell", "{}"), ("c2", "read_file", "not json")]);
    let one = accepted(Reply::tool_call("c1", "", ""));
    assert_eq!(one.message.tool_calls[0].name, "");
    assert_eq!(one.finish_reason, FinishReason::ToolCalls);
}

#[test]
fn odd_members_of_a_message_do_no_harm() {
    let completion = accepted(Reply::choice(json!({
        "finish_reason": "stop",
        "message": {"content": "hi", "annotations": {"x": 1}, "reasoning": null},
    })));
    assert_eq!(completion.message.as_text(), "hi");
}

#[test]
fn of_content_in_parts_only_the_text_is_text() {
    let completion = accepted(Reply::choice(json!({
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "secret plan"}]},
            {"type": "text", "text": "Answer"},
            {"type": "text", "text": " B"},
        ]},
    })));
    assert_eq!(completion.message.as_text(), "Answer B");
}

#[test]
fn an_answer_without_usage_is_an_answer() {
    for usage in ["", r#","usage":null"#, r#","usage":{}"#, r#","usage":{"prompt_tokens":"?"}"#] {
        let body = format!(
            r#"{{"choices":[{{"finish_reason":"stop","message":{{"content":"hi"}}}}]{usage}}}"#
        );
        let completion = accepted(Reply::status(200, body));
        assert_eq!(completion.message.as_text(), "hi");
        assert_eq!(completion.usage, Usage::default());
    }
}

#[test]
fn a_body_without_a_length_is_read_to_the_end_of_the_connection() {
    let body = r#"{"choices":[{"finish_reason":"stop","message":{"content":"hi"}}]}"#;
    let raw = format!("HTTP/1.1 200 OK\r\n\r\n\u{feff}{body}\n\n");
    assert_eq!(accepted(Reply::raw(raw)).message.as_text(), "hi");
}

#[test]
fn an_answer_that_takes_its_time_is_waited_for() {
    let (reply, hold) = Reply::answer("hi").held();
    let endpoint = Endpoint::start(vec![reply]);
    let settings = settings(&endpoint.base_url());
    let asking = thread::spawn(move || ask(settings));
    endpoint.wait_for_requests(1);
    assert!(!asking.is_finished());
    drop(hold);
    assert_eq!(asking.join().unwrap().unwrap().message.as_text(), "hi");
}

// What is refused.

#[test]
fn a_body_that_is_no_completion_is_a_fault_of_the_protocol() {
    for body in [r#"{"choices":[]}"#, r#"{"id":"x"}"#, r#"{"choices":null}"#, "[]", r#""ok""#] {
        check_protocol(Reply::status(200, body), "no choices");
    }
    check_protocol(Reply::choice(json!({"finish_reason": 7, "message": {}})), "finish_reason");
    check_protocol(Reply::not_utf8(), "not UTF-8");
    check_protocol(Reply::status(200, "<html><body>Welcome</body></html>"), "HTML");
    check_protocol(Reply::status(200, r#"{"choices":[]}}garbage"#), "not one JSON value");
    check_protocol(Reply::raw("220 mail.example ESMTP\r\n\r\n"), "not HTTP");
    let squeezed = Reply::status(200, b"\x0b\x02\x80".as_slice());
    check_protocol(squeezed.with_header("content-encoding", "br"), "encoded as br");
}

#[test]
fn gzip_that_nobody_asked_for_is_taken_off() {
    for raw in [
        include_bytes!("exchanges/gzip-answer.http").as_slice(),
        include_bytes!("exchanges/gzip-stream.http").as_slice(),
    ] {
        assert_eq!(accepted(Reply::raw(raw)).message.as_text(), "zipped");
        let cut = Reply::raw(&raw[..raw.len() - 20]);
        assert!(matches!(refused(cut), ProviderError::Transport { .. }));
    }
    let broken = Reply::status(200, b"\x1f\x8b\x08garbage".as_slice());
    let error = refused(broken.with_header("content-encoding", "gzip"));
    assert_ne!(error.outcome(), Outcome::Ok, "{error}");
}

#[test]
fn a_body_without_end_is_given_up_at_a_limit() {
    let error = refused(Reply::endless());
    let ProviderError::Response { detail, body } = error else { panic!("{error:?}") };
    assert_eq!(detail, "the response is larger than 64 MB");
    assert!(body.len() <= 1 << 20, "{} bytes are kept", body.len());
}

#[test]
fn every_status_that_is_no_success_is_an_error_with_its_body() {
    let transient = [408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529];
    let rejected = [202, 400, 401, 403, 404, 405, 413, 422, 451, 501];
    for status in transient.into_iter().chain(rejected) {
        let body = format!("{{\"error\":{{\"message\":\"{status}\"}}}}");
        let error = refused(Reply::status(status, body.as_str()));
        let ProviderError::Status(StatusError {
            status: found, location: None, body: kept, ..
        }) = &error
        else {
            panic!("{error:?}")
        };
        assert_eq!((*found, kept.as_slice()), (status, body.as_bytes()));
        let retriable = error.outcome() == Outcome::Transient;
        assert_eq!(retriable, transient.contains(&status), "{status}");
    }
}

#[test]
fn an_error_in_a_list_keeps_its_status() {
    let body = r#"[{"error":{"code":400,"message":"no thought_signature"}}]"#;
    let error = refused(Reply::status(400, body));
    assert_eq!(error.outcome(), Outcome::Rejected);
    assert_eq!(error.to_string(), "the endpoint answered 400: no thought_signature");
}

#[test]
fn an_error_whose_body_is_cut_keeps_its_status() {
    let error = refused(Reply::status(503, "loading the model").close_after(7));
    let ProviderError::Status(StatusError { status: 503, body, .. }) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(body, b"loading");
}

#[test]
fn a_redirect_is_an_error_and_the_key_is_not_sent_there() {
    let elsewhere = Endpoint::start(vec![]);
    for status in [301, 302, 303, 307, 308] {
        let reply = Reply::status(status, "").with_header("location", &elsewhere.base_url());
        let endpoint = Endpoint::start(vec![reply]).expect_key(KEY);
        let error = ask(with_key(settings(&endpoint.base_url()))).unwrap_err();
        endpoint.finish();
        let ProviderError::Status(StatusError { status: found, location, .. }) = &error else {
            panic!("{error:?}")
        };
        assert_eq!((*found, location), (status, &Some(elsewhere.base_url())));
        assert_eq!(error.outcome(), Outcome::Rejected);
    }
    assert_eq!(elsewhere.finish().len(), 0);
}

#[test]
fn a_connection_that_breaks_is_a_transport_error() {
    check_transport(&refused(Reply::answer("hi").close_after(20)), "after 20 bytes");
    check_transport(&refused(Reply::reset()), "no response from 127.0.0.1:");
    check_transport(&refused(Reply::raw("")), "the connection was closed");
    check_transport(&refused(Reply::raw("HTTP/1.1 200 OK\r\n\r\n{\"cho")), "in the middle");
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"cho\r\n";
    check_transport(&refused(Reply::raw(chunked)), "after 5 bytes");
}

#[test]
fn nobody_at_the_other_end_is_a_transport_error_that_says_where() {
    let refusing = Refusing::start();
    let address = refusing.address();
    let error = ask(settings(&format!("http://user:hunter2@{address}/v1"))).unwrap_err();
    check_transport(&error, &format!("no response from {address}: "));
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    // A label of 64 characters is no name, so that nobody needs to be asked about it.
    let host = format!("{}.invalid", "a".repeat(64));
    let error = ask(settings(&format!("http://{host}/v1"))).unwrap_err();
    check_transport(&error, &format!("no response from {host}:80: can't look up {host}"));
}

#[test]
fn silence_ends_a_request_whether_it_comes_before_or_in_the_body() {
    for reply in [Reply::stall(), Reply::answer("hi").stall_after(9)] {
        let endpoint = Endpoint::start(vec![reply]).allow_unused();
        let settings = Settings { idle_timeout: Some(SHORT), ..settings(&endpoint.base_url()) };
        let error = ask(settings).unwrap_err();
        let ProviderError::Timeout { limit: "--idle-timeout", after: SHORT } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(error.outcome(), Outcome::Transient);
    }
}

#[test]
fn a_request_has_a_limit_of_its_own() {
    let endpoint = Endpoint::start(vec![Reply::answer("hi").stall_after(9)]).allow_unused();
    let settings = Settings { request_timeout: Some(SHORT), ..settings(&endpoint.base_url()) };
    let deadline = Deadline::after(Some(Duration::from_secs(60)));
    let error = complete(settings, &[Message::user("hi")], deadline).unwrap_err();
    let ProviderError::Timeout { limit: "--request-timeout", after: SHORT } = &error else {
        panic!("{error:?}")
    };
}

#[test]
fn the_deadline_of_the_run_ends_a_request() {
    let endpoint = Endpoint::start(vec![Reply::stall()]).allow_unused();
    let settings =
        Settings { request_timeout: Some(Duration::MAX), ..settings(&endpoint.base_url()) };
    for limit in [SHORT, Duration::ZERO] {
        let deadline = Deadline::after(Some(limit));
        let error =
            complete(settings.clone(), &[Message::user("hi")], deadline).expect_err("it waited");
        assert!(matches!(error, ProviderError::Deadline), "{error:?}");
    }
    assert!(endpoint.finish().len() <= 1);
}

#[test]
fn limits_beyond_all_clocks_are_no_limits() {
    let endpoint = Endpoint::start(vec![Reply::answer("hi")]);
    let settings = Settings {
        idle_timeout: Some(Duration::MAX),
        request_timeout: Some(Duration::MAX),
        ..settings(&endpoint.base_url())
    };
    ask(settings).unwrap();
}

#[test]
fn no_error_shows_the_key() {
    let echo = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let location = format!("http://elsewhere.example/?key={KEY}");
    let script = vec![
        Reply::status(401, echo.as_str()),
        Reply::status(200, echo.as_str()),
        Reply::status(307, "").with_header("location", &location),
        Reply::answer(KEY).close_after(150),
    ];
    let count = script.len();
    let endpoint = Endpoint::start(script).expect_key(KEY);
    let settings = with_key(settings(&endpoint.base_url()));
    for _ in 0..count {
        let error = ask(settings.clone()).unwrap_err();
        let (ProviderError::Status(StatusError { body, .. })
        | ProviderError::Response { body, .. }) = &error
        else {
            check_transport(&error, "after 150 bytes");
            continue;
        };
        let body = String::from_utf8(body.clone()).unwrap();
        let shown = format!("{error} {error:?} {body}");
        assert!(!shown.contains(KEY), "{shown}");
    }
    endpoint.finish();
    let provider = OpenAi::new(settings).unwrap();
    assert!(!format!("{provider:?}").contains(KEY), "{provider:?}");
}

// Responses as servers really send them, head and framing included.

#[test]
fn recorded_completions_are_read() {
    let write_file = r#"{"path": "hello.txt", "content": "Hello, world"}"#;
    let tokens = |prompt, cached, completion| Usage {
        prompt_tokens: Some(prompt),
        cached_tokens: cached,
        completion_tokens: Some(completion),
    };
    let completion =
        accepted(Reply::raw(include_bytes!("exchanges/llamacpp-tool-call.http").as_slice()));
    assert_eq!(completion.finish_reason, FinishReason::ToolCalls);
    assert_eq!(completion.message.tool_calls[0].name, "write_file");
    assert_eq!(completion.message.tool_calls[0].arguments, write_file);
    assert_eq!(completion.usage, tokens(320, Some(0), 26));
    assert_eq!(completion.model.as_deref(), Some("qwen2.5-coder-1.5b"));

    let completion =
        accepted(Reply::raw(include_bytes!("exchanges/llamacpp-cut-arguments.http").as_slice()));
    assert_eq!(completion.finish_reason, FinishReason::Truncated("length".to_owned()));
    assert_eq!(completion.message.tool_calls[0].arguments, r#"{"path"#);

    let completion =
        accepted(Reply::raw(include_bytes!("exchanges/litellm-tool-call-stop.http").as_slice()));
    assert_eq!(completion.finish_reason, FinishReason::Stop);
    assert_eq!(completion.message.tool_calls[0].id, "call_mock_1");
    assert_eq!(completion.usage, tokens(10, None, 20));

    let completion =
        accepted(Reply::raw(include_bytes!("exchanges/litellm-answer.http").as_slice()));
    assert_eq!(completion.message.as_text(), "Hello from the mock.");
}

#[test]
fn recorded_refusals_keep_their_status_and_their_words() {
    for (raw, expected, outcome, words) in [
        (
            include_bytes!("exchanges/llamacpp-overflow-400.http").as_slice(),
            400,
            Outcome::Context,
            "exceeds the available context size",
        ),
        (
            include_bytes!("exchanges/llamacpp-no-key-401.http").as_slice(),
            401,
            Outcome::Rejected,
            "Invalid API Key",
        ),
        (
            include_bytes!("exchanges/llamacpp-arguments-not-json-500.http").as_slice(),
            500,
            Outcome::Rejected,
            "Failed to parse tool call arguments as JSON",
        ),
        (
            include_bytes!("exchanges/litellm-429.http").as_slice(),
            429,
            Outcome::Transient,
            "No deployments available",
        ),
        (
            include_bytes!("exchanges/litellm-chunked-500.http").as_slice(),
            500,
            Outcome::Transient,
            "Internal Server Error",
        ),
    ] {
        let error = refused(Reply::raw(raw));
        let ProviderError::Status(StatusError { status, .. }) = &error else { panic!("{error:?}") };
        assert_eq!((*status, error.outcome()), (expected, outcome));
        assert!(error.to_string().contains(words), "{error} without {words}");
    }
}
