//! What endpoints say in words, through the spawned binary: as a status, in a body, in a stream.

use serde_json::{Value, json};

use crate::support::endpoint::{Endpoint, Reply};
use crate::support::sandbox::{Dir, Ran, Uncut};

/// The three ways in which an error reaches a client.
const FORMS: [fn(u16, &Value) -> Reply; 3] = [
    |status, error| Reply::status(status, error.to_string()),
    |_, error| Reply::json(error),
    |_, error| {
        let part = json!({"choices": [{"index": 0, "delta": {"content": "Par"}}]});
        Reply::stream(&[format!("data: {part}"), format!("data: {error}"), "data: [DONE]".into()])
    },
];

fn says(message: &str) -> Value {
    json!({"error": {"message": message, "type": "error"}})
}

fn run(replies: Vec<Reply>, flags: &[&str]) -> Ran {
    let dir = Dir::new("words");
    let endpoint = Endpoint::start(replies);
    let base_url = endpoint.base_url();
    let ran = Uncut::new(&dir)
        .args(["--base-url", &base_url, "--model", "m"])
        .args(flags)
        .arg("go")
        .run();
    endpoint.finish();
    ran
}

#[track_caller]
fn check_last(ran: &Ran, outcome: (i32, &str), says: &[&str]) {
    let last = ran.stderr.lines().last().unwrap_or_default();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(outcome.0), ""), "{ran:?}");
    assert!(last.starts_with(&format!("uncut: {}: ", outcome.1)), "{last}");
    for words in says {
        assert!(last.contains(words), "{words} is missing: {last}");
    }
}

/// In every form the run ends after one request, and says so on one line.
#[track_caller]
fn check_final(status: u16, error: &Value, outcome: (i32, &str), says: &[&str]) {
    for form in FORMS {
        let ran = run(vec![form(status, error)], &[]);
        check_last(&ran, outcome, says);
        assert!(!ran.stderr.contains("retry 1/") && !ran.stderr.contains("again 1/"), "{ran:?}");
    }
}

#[test]
fn an_overflow_is_told_in_the_words_of_any_endpoint() {
    let bedrock = says("Input is too long for requested model.");
    check_final(400, &bedrock, (15, "context"), &["Input is too long", "context size"]);
    let zai = json!({"error": {"code": "1261", "message": "Prompt exceeds max length"}});
    check_final(500, &zai, (15, "context"), &["Prompt exceeds max length"]);
    let groq =
        says("Request too large for m on tokens per minute (TPM): Limit 6000, Requested 9000");
    check_final(413, &groq, (15, "context"), &["Limit 6000"]);
}

#[test]
fn a_filter_is_told_in_the_words_of_any_endpoint() {
    let azure =
        json!({"error": {"message": "The response was filtered", "code": "content_filter"}});
    check_final(400, &azure, (13, "filtered"), &["The response was filtered", "change the prompt"]);
    let openrouter = json!({"error": {"message": "Provider returned error", "code": 403,
        "metadata": {"provider_name": "Alibaba", "raw": json!({"error": {
            "code": "data_inspection_failed", "message": "bad input"}}).to_string()}}});
    check_final(
        403,
        &openrouter,
        (13, "filtered"),
        &["Provider returned error: Alibaba: bad input"],
    );
}

#[test]
fn a_used_up_account_is_not_waited_for() {
    let balance = says("Insufficient Balance");
    check_final(402, &balance, (10, "rejected"), &["Insufficient Balance", "quota or billing"]);
    let day = json!([{"error": {"message": "Please retry in 0.1s.", "code": 429, "details": [
        {"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]},
        {"retryDelay": "0.1s"}]}}]);
    check_final(429, &day, (10, "rejected"), &["quota or billing"]);
}

#[test]
fn a_template_that_fails_is_not_asked_again() {
    let jinja = says("Error: Jinja Exception: Unknown test: sequence");
    check_final(500, &jinja, (10, "rejected"), &["Jinja Exception", "chat template"]);
    let roles = says("Jinja Exception: Conversation roles must alternate user/assistant");
    check_final(500, &roles, (10, "rejected"), &["must alternate", "in turn"]);
}

#[test]
fn an_error_that_says_nothing_is_not_blamed_on_the_address() {
    for form in &FORMS[1..] {
        let ran = run(vec![form(200, &json!({"error": "no idea"}))], &[]);
        check_last(&ran, (11, "protocol"), &["reports an error: no idea", "the server's own log"]);
        assert!(!ran.stderr.contains("--base-url"), "{ran:?}");
    }
}

#[test]
fn a_call_that_the_endpoint_could_not_read_is_asked_for_twice_more() {
    let groq =
        json!({"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}});
    let llama =
        says("The model produced output that does not match the expected peg-native format");
    for (status, error) in [(400, &groq), (500, &llama)] {
        for form in FORMS {
            let bad = || form(status, error);
            // Beside the retries, of which there are none.
            let flags = &["--max-retries=0"];
            let cured = run(vec![bad(), bad(), Reply::answer("ok")], flags);
            assert_eq!((cured.code, cured.stdout.as_str()), (Some(0), "ok\n"), "{cured:?}");
            for line in ["asking again 1/2: ", "asking again 2/2: "] {
                assert_eq!(cured.stderr.matches(line).count(), 1, "{cured:?}");
            }
            let ran = run(vec![bad(), bad(), bad()], flags);
            let says = ["could not read the model's call", "(3 attempts)", "tool-call parser"];
            check_last(&ran, (11, "protocol"), &says);
        }
    }
}

#[test]
fn a_call_is_asked_for_again_with_the_same_bytes_and_anew_in_each_step() {
    let bad = || Reply::status(500, says("error parsing tool call: raw='{'").to_string());
    let dir = Dir::new("words");
    let call = Reply::tool_call("c1", "shell", r#"{"command":"true"}"#);
    let endpoint = Endpoint::start(vec![bad(), bad(), call, bad(), bad(), Reply::answer("ok")]);
    let flags = ["--base-url", &endpoint.base_url(), "--model", "m", "--output=jsonl", "go"];
    let ran = Uncut::new(&dir).args(flags).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout.matches(r#""type":"ask_again""#).count(), 4, "{ran:?}");
    assert!(ran.stdout.contains(r#""retries":0"#), "{ran:?}");
    let requests = endpoint.finish();
    assert_eq!(requests[0].body, requests[2].body);
    assert_eq!(requests[3].body, requests[5].body);
}

#[test]
fn what_has_happened_to_a_model_is_tried_again_whatever_form_it_is_told_in() {
    for error in ["The model has crashed without additional information.", "Model unloaded."] {
        for form in FORMS {
            let ran = run(vec![form(400, &json!({"error": error})), Reply::answer("ok")], &[]);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"), "{ran:?}");
            assert!(ran.stderr.contains("retry 1/4 in ") && ran.stderr.contains(error), "{ran:?}");
        }
    }
    let beside = json!({"error": "no capacity", "code": 503});
    let ran = run(vec![Reply::json(&beside), Reply::json(&beside)], &["--max-retries=1"]);
    check_last(&ran, (75, "transient"), &["answered 503: no capacity", "(2 attempts)"]);
}

#[test]
fn the_wait_that_stands_in_the_body_is_made() {
    for error in [
        json!([{"error": {"message": "x", "code": 429, "details": [{"retryDelay": "0.61s"}]}}]),
        json!({"error": {"message": "Please try again in 610ms.", "code": 429}}),
    ] {
        for form in FORMS {
            let ran = run(vec![form(429, &error), Reply::answer("ok")], &[]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert!(ran.stderr.contains("retry 1/4 in 0.6 s: "), "{ran:?}");
        }
    }
    let long = says("Rate limit reached. Please try again in 7m12s.");
    let ran = run(vec![Reply::status(429, long.to_string())], &[]);
    check_last(&ran, (75, "transient"), &["it asks to wait 432.0 s"]);
}

#[test]
fn a_finish_reason_is_judged_by_its_word() {
    let streamed = |word: &str| {
        let event = |choice: Value| format!("data: {}", json!({"choices": [choice]}));
        Reply::stream(&[
            event(json!({"index": 0, "delta": {"content": "hi"}})),
            event(json!({"index": 0, "delta": {}, "finish_reason": word})),
            "data: [DONE]".to_owned(),
        ])
    };
    let whole =
        |word: &str| Reply::choice(json!({"finish_reason": word, "message": {"content": "hi"}}));
    for (word, outcome, says) in [
        ("model_context_window_exceeded", (15, "context"), "context size"),
        ("sensitive", (13, "filtered"), "change the prompt"),
        ("network_error", (11, "protocol"), "failed in the middle"),
        ("abort", (11, "protocol"), "run it again"),
        ("insufficient_system_resource", (11, "protocol"), "run it again"),
        ("malformed_function_call", (11, "protocol"), "run it again"),
    ] {
        for reply in [whole(word), streamed(word)] {
            let ran = run(vec![reply], &[]);
            check_last(&ran, outcome, &[word, says]);
            assert!(!ran.stderr.contains("--accept"), "{ran:?}");
        }
    }
    for reply in [whole("end_turn"), streamed("end_turn")] {
        let ran = run(vec![reply], &[]);
        check_last(&ran, (11, "protocol"), &["--accept finish-reason:end_turn"]);
    }
    let ran = run(vec![], &["--accept", "finish-reason:abort"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("says that the endpoint failed"), "{ran:?}");
}

#[test]
fn tokens_that_leave_out_the_cached_part_are_no_cut() {
    let completion = |word: &str, message: Value, prompt: u32, cached: u32| {
        let choice = json!({"index": 0, "finish_reason": word, "message": message});
        let usage = json!({"prompt_tokens": prompt, "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": cached}});
        Reply::json(&json!({"choices": [choice], "usage": usage}))
    };
    let call = json!({"tool_calls": [{"id": "c1", "type": "function",
        "function": {"name": "shell", "arguments": "{\"command\":\"true\"}"}}]});
    let second = |prompt, cached| {
        let first = completion("tool_calls", call.clone(), 10_000, 0);
        run(vec![first, completion("stop", json!({"content": "ok"}), prompt, cached)], &[])
    };
    for (prompt, cached) in [(300, 9_800), (9_100, 0), (0, 0)] {
        let ran = second(prompt, cached);
        assert!(ran.code == Some(0) && !ran.stderr.contains("warning"), "{ran:?}");
    }
    let ran = second(300, 0);
    assert!(ran.stderr.contains("seems to cut the prompt silently"), "{ran:?}");
}
