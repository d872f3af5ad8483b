//! Shapes of messages that endpoints really send, in one body and as a stream, and how such a
//! message goes back: through the spawned binary.

use std::fs;

use serde_json::{Value, json};

use crate::support::endpoint::{Endpoint, Reply, Request};
use crate::support::sandbox::{Dir, Ran, Uncut};

/// The same message as one body and as a stream of one delta.
fn both_forms(message: &str, finish_reason: &str) -> [Reply; 2] {
    let choice = |name: &str| {
        format!(
            r#"{{"choices":[{{"index":0,"{name}":{message},"finish_reason":"{finish_reason}"}}]}}"#
        )
    };
    let events = [format!("data: {}", choice("delta")), "data: [DONE]".to_owned()];
    [Reply::status(200, choice("message")), Reply::stream(&events)]
}

fn run_in(dir: &Dir, replies: Vec<Reply>, prompt: &str) -> (Ran, Vec<Request>) {
    let endpoint = Endpoint::start(replies);
    let uncut = Uncut::new(dir).args(["--base-url", &endpoint.base_url(), "--model", "m"]);
    let ran = uncut.args(["--session", "s.jsonl", prompt]).run();
    (ran, endpoint.finish())
}

#[track_caller]
fn assert_answer(ran: &Ran, answer: &str) {
    let expected = format!("{answer}\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), expected.as_str()), "{ran:?}");
}

/// Sends a message with calls, then "ok". Returns the log and the message as it went back, together
/// with the results, in the run and again on resume.
#[track_caller]
fn sent_back(reply: Reply) -> (String, Vec<Value>) {
    let dir = Dir::new("shapes");
    let (ran, requests) = run_in(&dir, vec![reply, Reply::answer("ok")], "go");
    assert_answer(&ran, "ok");
    let raw = |request: &Request| String::from_utf8(request.raw.clone()).unwrap();
    let first = raw(&requests[1]);
    let (ran, again) = run_in(&dir, vec![Reply::answer("ok")], "more");
    assert_answer(&ran, "ok");
    let start = first.strip_suffix("]}").unwrap();
    assert!(raw(&again[0]).starts_with(start), "{} after {first}", raw(&again[0]));
    let log = fs::read_to_string(dir.path("s.jsonl")).unwrap();
    (log, requests[1].messages()[2..].to_vec())
}

#[test]
fn a_member_that_is_null_or_empty_announces_no_call() {
    for member in ["null", "{}", r#"{"name":"","arguments":""}"#, r#"{"name":null}"#] {
        let message = format!(
            r#"{{"role":null,"content":"42","function_call":{member},"tool_calls":null,
                "refusal":null,"audio":null,"annotations":null,"index":null}}"#
        );
        for reply in both_forms(&message.replace('\n', " "), "stop") {
            let (ran, _) = run_in(&Dir::new("shapes"), vec![reply], "go");
            assert_answer(&ran, "42");
        }
    }
    let call = r#"{"content":"42","function_call":{"name":"shell","arguments":"{}"}}"#;
    for reply in both_forms(call, "stop") {
        let (ran, _) = run_in(&Dir::new("shapes"), vec![reply], "go");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(14), ""), "{ran:?}");
    }
}

#[test]
fn null_is_absence_at_every_level() {
    let body = r#"{"id":null,"object":null,"error":null,"model":null,"usage":null,"choices":[
        {"index":null,"error":null,"logprobs":null,"finish_reason":"tool_calls",NAME:{"content":null,
        "tool_calls":[{"index":null,"id":"c1","type":null,"extra_content":null,
        "function":{"name":"shell","arguments":null,"strict":null}}]}}]}"#;
    let body = body.replace('\n', " ");
    let whole = Reply::status(200, body.replace("NAME", "\"delta\":null,\"message\""));
    let event = format!("data: {}", body.replace("NAME", "\"message\":null,\"delta\""));
    for reply in [whole, Reply::stream(&[event.as_str(), "data: [DONE]"])] {
        let (_, messages) = sent_back(reply);
        let text = messages[1]["content"].as_str().unwrap();
        assert!(text.contains("\"command\""), "{text}");
    }
}

#[test]
fn a_content_goes_back_as_it_came_be_it_null_empty_or_absent() {
    let call = r#""tool_calls":[{"index":0,"id":"c1","function":{"name":"shell",
        "arguments":"{\"command\":\"true\"}"}}]"#
        .replace('\n', " ");
    for (member, expected) in [
        ("", None),
        (r#""content":null,"#, Some(Value::Null)),
        (r#""content":"","#, Some(json!(""))),
        (r#""content":[],"#, Some(json!([]))),
    ] {
        for reply in both_forms(&format!("{{{member}{call}}}"), "tool_calls") {
            let (log, messages) = sent_back(reply);
            assert_eq!(messages[0].get("content"), expected.as_ref(), "{member}");
            let record: Value = serde_json::from_str(log.lines().nth(1).unwrap()).unwrap();
            assert_eq!(record["message"].get("content"), expected.as_ref(), "{member}");
        }
    }
}

#[test]
fn names_and_ids_that_do_not_fit_go_out_as_ones_that_do_and_the_log_keeps_them() {
    let long = "x".repeat(200);
    let calls = [
        ("call|1", "browser.tabs.open"),
        ("call|2", "functions.shell"),
        (":", "read file"),
        ("c4", &long),
        ("functions.shell:0", "\u{68c0}\u{7d22}"),
        ("c6", "browser.tabs.open"),
    ];
    let list = calls.iter().enumerate().map(|(index, (id, name))| {
        json!({"index": index, "id": id, "function": {"name": name, "arguments": "{}"}})
    });
    let message = json!({ "tool_calls": list.collect::<Vec<_>>() }).to_string();
    let mut forms = Vec::new();
    for reply in both_forms(&message, "tool_calls") {
        let (log, messages) = sent_back(reply);
        for (id, name) in calls {
            assert!(log.contains(&format!("\"{id}\"")), "{id} in {log}");
            assert!(log.contains(&format!("\"{name}\"")), "{name} in {log}");
        }
        let sent = messages[0]["tool_calls"].as_array().unwrap();
        let fits = |text: &Value| {
            let text = text.as_str().unwrap();
            let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            (1..=64).contains(&text.len()) && text.bytes().all(plain)
        };
        for (call, result) in sent.iter().zip(&messages[1..]) {
            assert!(fits(&call["id"]) && fits(&call["function"]["name"]), "{call}");
            assert_eq!(result["tool_call_id"], call["id"]);
        }
        assert_eq!((&sent[3]["id"], &sent[5]["id"]), (&json!("c4"), &json!("c6")));
        assert_eq!(sent[0]["function"]["name"], sent[5]["function"]["name"]);
        forms.push(messages);
    }
    assert_eq!(forms[0], forms[1]);
}

#[test]
fn an_empty_object_before_the_arguments_only_held_their_place() {
    let fragment = |arguments: &str| {
        let function = json!({"name": "shell", "arguments": arguments});
        let call = json!({"index": 0, "id": "c1", "function": function});
        let choices = json!([{"index": 0, "delta": {"tool_calls": [call]}}]);
        format!("data: {}", json!({ "choices": choices }))
    };
    let end = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
    let streamed = ["{}", "{\"comma", "nd\":\"echo did\"}"].map(fragment);
    let [one, two, three] = &streamed;
    let stream = Reply::stream(&[one, two, three, end, "data: [DONE]"]);
    let whole = Reply::tool_call("c1", "shell", "{} {\"command\":\"echo did\"}");
    for reply in [stream, whole] {
        let (_, messages) = sent_back(reply);
        assert_eq!(messages[1]["content"], "did\n[exit 0]");
    }
    for odd in [r#"{"command":"echo did"}{}"#, r#"{}[]{"command":"echo did"}"#, "{}{}x"] {
        let (_, messages) = sent_back(Reply::tool_call("c1", "shell", odd));
        let text = messages[1]["content"].as_str().unwrap();
        assert!(text.contains("the arguments are no valid JSON object"), "{odd}: {text}");
    }
    let (ran, _) = run_in(
        &Dir::new("shapes"),
        vec![Reply::tool_call("c1", "shell", "{}{\"command\":\"ec")],
        "go",
    );
    assert_eq!(ran.code, Some(12), "{ran:?}");
}

#[test]
fn a_message_has_at_most_128_calls_in_every_form() {
    let message = |count: usize| {
        let call = json!({"id": "c", "function": {"name": "shell", "arguments": "{}"}});
        let calls = (0..count).map(|index| {
            let mut call = call.clone();
            call["index"] = json!(index);
            call
        });
        json!({ "tool_calls": calls.collect::<Vec<_>>() }).to_string()
    };
    for count in [129, 4_000] {
        for reply in both_forms(&message(count), "tool_calls") {
            let (ran, _) = run_in(&Dir::new("shapes"), vec![reply], "go");
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(11), ""), "{ran:?}");
            let line = ran.stderr.lines().last().unwrap_or_default();
            assert!(line.contains("more than 128 calls"), "{line}");
        }
    }
}

#[test]
fn a_whole_completion_is_one_at_201_and_203_too() {
    for status in [201, 203] {
        let body = r#"{"choices":[{"finish_reason":"stop","message":{"content":"hi"}}]}"#;
        let (ran, _) = run_in(&Dir::new("shapes"), vec![Reply::status(status, body)], "go");
        assert_answer(&ran, "hi");
        let cut = Reply::status(status, &body[..60]);
        let (ran, _) = run_in(&Dir::new("shapes"), vec![cut], "go");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(11), ""), "{ran:?}");
    }
}

/// Templates of Mistral and Gemma refuse two user messages in a row, and with them every later
/// request of the session.
#[test]
fn prompts_after_runs_that_failed_go_out_as_one_message_and_are_logged_as_several() {
    let arguments = r#""{\"command\":\"true\"}""#;
    let call = format!(
        r#"{{"tool_calls":[{{"index":0,"id":"c1","function":{{"name":"shell","arguments":{arguments}}}}}]}}"#
    );
    let user = |content: &str| json!({"role": "user", "content": content});
    let raw = |request: &Request| String::from_utf8(request.raw.clone()).unwrap();
    for reply in both_forms(&call, "tool_calls") {
        let dir = Dir::new("shapes");
        for (prompt, sent) in [("go", "go"), ("more", "go\n\nmore")] {
            let (ran, requests) = run_in(&dir, vec![Reply::status(400, "no")], prompt);
            assert_eq!(ran.code, Some(10), "{ran:?}");
            assert_eq!(requests[0].messages()[1..], [user(sent)]);
        }
        let (ran, requests) = run_in(&dir, vec![reply, Reply::answer("ok")], "again");
        assert_answer(&ran, "ok");
        assert_eq!(requests[0].messages()[1..], [user("go\n\nmore\n\nagain")]);
        let (ran, later) = run_in(&dir, vec![Reply::status(400, "no")], "last");
        assert_eq!(ran.code, Some(10), "{ran:?}");
        let (before, now) = (raw(&requests[1]), raw(&later[0]));
        assert!(before.starts_with(raw(&requests[0]).strip_suffix("]}").unwrap()), "{before}");
        assert!(now.starts_with(before.strip_suffix("]}").unwrap()), "{now} after {before}");
        assert_eq!(later[0].messages().last(), Some(&user("last")));
        let log = dir.read("s.jsonl");
        for prompt in ["go", "more", "again", "last"] {
            let record = format!(r#""message":{{"role":"user","content":"{prompt}"}}"#);
            assert_eq!(log.matches(&record).count(), 1, "{log}");
        }
    }
}

/// The summing up comes behind what the gate said, which is a user message too.
#[test]
fn the_question_for_a_summary_joins_the_user_message_before_it() {
    let dir = Dir::new("shapes");
    let endpoint = Endpoint::start(vec![Reply::answer("a"), Reply::answer("summed up")]);
    let uncut = Uncut::new(&dir).args(["--base-url", &endpoint.base_url(), "--model", "m"]);
    let ran = uncut.args(["--max-steps=1", "--verify=false", "go"]).run();
    assert_eq!(ran.code, Some(20), "{ran:?}");
    let requests = endpoint.finish();
    let messages = requests[1].messages();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    let last = messages[3]["content"].as_str().unwrap();
    assert!(last.starts_with("The answer does not count yet: "), "{last}");
    assert!(last.contains("\n\nThe run ends here: "), "{last}");
}

/// The peak of a run, in KiB, whose first message is this one.
#[cfg(target_os = "linux")]
#[track_caller]
fn peak(reply: Reply) -> usize {
    let look = json!({"command": "grep VmHWM /proc/$PPID/status"}).to_string();
    let replies = vec![reply, Reply::tool_call("c2", "shell", &look), Reply::answer("ok")];
    let (ran, requests) = run_in(&Dir::new("shapes"), replies, "go");
    assert_answer(&ran, "ok");
    let told = requests[2].messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    told.split_whitespace().nth(1).unwrap().parse().expect("a number")
}

/// A tree of these values would take twenty times their size and more. What is held at once is the
/// message, its record and the request, and what the allocator does not give back.
#[cfg(target_os = "linux")]
#[test]
fn large_values_take_no_more_memory_than_a_few_times_their_size() {
    const SIZE: usize = 2 << 20;
    let zeros = "0,".repeat(SIZE / 2) + "0";
    let call = |arguments: &str, rest: &str| {
        format!(
            r#"{{"tool_calls":[{{"index":0,"id":"c1","function":{{"name":"shell",
            "arguments":{arguments}}}}}]{rest}}}"#
        )
        .replace('\n', " ")
    };
    let quoted = Value::from(format!("{{\"a\":[{zeros}]}}")).to_string();
    let value = format!("{{\"a\":[{zeros}]}}");
    let odd = format!(",\"odd\":[{zeros}]");
    let truth = r#""{\"command\":\"true\"}""#;
    for message in [call(&quoted, ""), call(&value, ""), call(truth, &odd)] {
        for reply in both_forms(&message, "tool_calls") {
            let peak = peak(reply);
            assert!(peak * 1024 < (10 << 20) + 5 * SIZE, "{peak} KiB");
        }
    }
}
