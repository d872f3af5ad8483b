//! Streams that servers really sent.

use uncut::provider::{Completion, FinishReason, ProviderError, StatusError, Usage};
use uncut::wire::Assembler;

/// Reads a stream that comes in pieces, each as long as `next_length` says.
fn read(
    stream: &[u8],
    mut next_length: impl FnMut() -> usize,
) -> Result<Completion, ProviderError> {
    let mut assembler = Assembler::new();
    let mut rest = stream;
    while !rest.is_empty() && !assembler.is_done() {
        let (piece, after) = rest.split_at(next_length().clamp(1, rest.len()));
        assembler.push(piece)?;
        rest = after;
    }
    assembler.finish()
}

/// The body of a recorded response, without the framing of its chunks.
#[track_caller]
fn body(recorded: &[u8]) -> Vec<u8> {
    let find = |text: &[u8], what: &[u8]| text.windows(what.len()).position(|part| part == what);
    let mut rest = &recorded[find(recorded, b"\r\n\r\n").unwrap() + 4..];
    let mut body = Vec::new();
    // A connection that broke off has no last chunk.
    while let Some(end) = find(rest, b"\r\n") {
        let length = std::str::from_utf8(&rest[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        body.extend_from_slice(&rest[end + 2..][..length]);
        rest = &rest[end + 2 + length + 2..];
    }
    body
}

/// However a recorded stream is cut, it is read as the same.
#[track_caller]
fn recorded(response: &[u8]) -> Result<Completion, ProviderError> {
    let body = body(response);
    let whole = read(&body, || body.len());
    for piece in [1, 7, 100] {
        let cut = read(&body, || piece);
        assert_eq!(format!("{cut:?}"), format!("{whole:?}"), "in pieces of {piece}");
    }
    whole
}

fn tokens(prompt: u64, cached: Option<u64>, completion: u64) -> Usage {
    Usage {
        prompt_tokens: Some(prompt),
        cached_tokens: cached,
        completion_tokens: Some(completion),
    }
}

#[test]
fn recorded_streams_are_read() {
    let write_file = r#"{"path": "hello.txt", "content": "Hello, world"}"#;
    let completion = recorded(include_bytes!("exchanges/llamacpp-stream-tool-call.http")).unwrap();
    assert_eq!(completion.finish_reason, FinishReason::ToolCalls);
    let [call] = completion.message.tool_calls.as_slice() else { panic!("{completion:?}") };
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("write_file", write_file));
    assert_eq!(completion.usage, tokens(320, Some(319), 26));
    assert_eq!(completion.model.as_deref(), Some("qwen2.5-coder-1.5b"));

    let completion = recorded(include_bytes!("exchanges/litellm-stream-tool-call.http")).unwrap();
    assert_eq!(completion.finish_reason, FinishReason::ToolCalls);
    let [call] = completion.message.tool_calls.as_slice() else { panic!("{completion:?}") };
    assert_eq!(call.id, "XfN1PQR0341cuWOb91J8QdnelLpWHzEm");
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("write_file", write_file));
    assert_eq!(completion.usage, tokens(347, Some(346), 30));

    let response = include_bytes!("exchanges/llamacpp-stream-cut-arguments.http");
    let completion = recorded(response).unwrap();
    assert_eq!(completion.finish_reason, FinishReason::Truncated("length".to_owned()));
    assert_eq!(completion.message.tool_calls[0].arguments, r#"{"path"#);

    let completion = recorded(include_bytes!("exchanges/llamacpp-stream-usage-last.http")).unwrap();
    assert_eq!(completion.message.as_text(), "Hello!");
    assert_eq!(completion.usage, tokens(35, Some(25), 3));

    let completion = recorded(include_bytes!("exchanges/litellm-stream-answer.http")).unwrap();
    assert_eq!(completion.message.as_text(), "Hello from the mock.");
    assert_eq!(completion.usage, tokens(8, None, 5));
}

#[test]
fn a_recorded_error_in_the_middle_is_the_status_that_it_names() {
    let error = recorded(include_bytes!("exchanges/llamacpp-stream-error-500.http")).unwrap_err();
    let ProviderError::Status(StatusError { status, message, .. }) = error else {
        panic!("{error:?}")
    };
    let expected = "The model produced output that does not match the expected peg-native format";
    assert_eq!((status, message.as_deref()), (500, Some(expected)));
}

#[test]
fn a_recorded_stream_that_broke_off_is_no_answer() {
    let error = recorded(include_bytes!("exchanges/llamacpp-stream-broken-off.http")).unwrap_err();
    assert!(matches!(error, ProviderError::Transport { .. }), "{error:?}");
}
