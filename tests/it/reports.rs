//! Faults that users of such tools reported, through the spawned binary where only that shows them.
//!
//! The number stands for the report, or for a kind of which nobody has reported one.
//!
//! | | what | reported as | test |
//! |---|---|---|---|
//! | 1 | malformed_function_call | BerriAI/litellm#21348 | reports::no_kind_of_unfinished_or_refused_message_is_executed_or_shown |
//! | 2 | a call with content_filter | HKUDS/nanobot#3220 | reports::no_kind_of_unfinished_or_refused_message_is_executed_or_shown |
//! | 3 | refusal beside blank content, or as a part | openai/openai-agents-js#1495 | verdict::a_refusal_is_never_an_answer_and_its_calls_never_run |
//! | 4 | a cut relabelled as tool_calls | vllm-project/vllm#58228 | reports::a_call_that_fills_the_token_limit_is_cut_off_and_one_below_it_runs |
//! | 5 | length, and arguments that parse | ahwurm/localharness#77 | reports::a_call_that_was_cut_off_is_not_run_by_the_next_run_either |
//! | 6 | length behind a preamble | Hal0ai/hal0#1598 | reports::no_kind_of_unfinished_or_refused_message_is_executed_or_shown |
//! | 7 | an unclosed call in the text | jundot/omlx#3153 | reports::no_kind_of_unfinished_or_refused_message_is_executed_or_shown |
//! | 8 | stop at the token limit | BerriAI/litellm#25825 | contract::a_reply_that_the_model_did_not_finish_is_never_an_answer |
//! | 9 | arguments that stop in a string | NousResearch/hermes-agent#7680 | verdict::arguments_that_end_in_the_middle_are_a_cut_and_other_faults_are_the_tools_business |
//! | 10 | tool_calls without a call | NousResearch/hermes-agent#75926 | contract::silence_is_empty |
//! | 11 | reasoning echoed as "" | SillyTavern/SillyTavern#5545 | reports::reasoning_goes_back_as_it_came_and_is_not_made_up |
//! | 12 | a signature on one of two calls | googleapis/js-genai#1275 | reports::signatures_stay_on_their_calls_and_the_tools_in_every_request_also_after_a_resume |
//! | 13 | no choices | promptfoo/promptfoo#10203 | wire::gzip_that_nobody_asked_for_is_taken_off |
//! | 14 | reasoning_details | jeremychone/rust-genai#298 | wire::unknown_members_of_a_message_go_back_byte_for_byte |
//! | 15 | an error in a list | securo-finance/securo#884 | wire::an_error_in_a_list_keeps_its_status |
//! | 16 | one odd member | 0xPlaygrounds/rig#1172 | wire::odd_members_of_a_message_do_no_harm |
//! | 16 | finish_reason is a number | 0xPlaygrounds/rig#1172 | wire::response::a_choice_of_the_wrong_form_is_named |
//! | 17 | the same id twice | camel-ai/camel#3027 | reports::ids_that_come_again_in_a_message_and_in_the_next_have_the_results_of_their_own_calls |
//! | 18 | thinking parts | enricoros/big-AGI#873 | wire::of_content_in_parts_only_the_text_is_text |
//! | 18 | nothing but thinking parts | enricoros/big-AGI#873 | verdict::nothing_said_is_no_answer |
//! | 19 | an argument given twice | google/adk-go#1254 | reports::an_argument_that_is_given_twice_is_an_error_in_every_form |
//! | 20 | a call without a type, with an index | run-llama/llama_index#19789 | wire::a_call_without_type_and_with_an_index_goes_back_as_a_function |
//! | 20 | a call without a name | run-llama/llama_index#19789 | verdict::a_call_without_a_name_or_an_id_aborts_before_anything_runs |
//! | 21 | usage absent or odd | zed-industries/zed#43613 | reports::tokens_that_are_not_reported_are_unknown_and_end_nothing |
//! | 22 | slow but alive | AtomicBot-ai/atomic-agent#323 | limits::a_stream_that_is_alive_may_take_longer_than_silence_may |
//! | 23 | nulls in deltas | QwenLM/Qwen-Agent#943 | reports::members_that_say_nothing_end_nothing_and_add_nothing |
//! | 24 | an error behind partial text | farzaa/clicky#132 | reports::an_error_in_the_middle_of_a_stream_is_tried_again_and_its_text_forgotten |
//! | 25 | open behind [DONE] | ltmoerdani/opencode-copilot-chat#170 | limits::a_connection_that_stays_open_behind_the_last_event_is_not_waited_for |
//! | 26 | the finish reason "null" | PowerShell/AIShell#350 | reports::members_that_say_nothing_end_nothing_and_add_nothing |
//! | 27 | characters cut between writes | xberg-io/liter-llm#152 | reports::a_text_that_comes_byte_by_byte_is_the_same |
//! | 28 | a stream that just ends | vercel/ai#19165 | reports::a_stream_that_just_ends_is_tried_again_and_its_text_forgotten |
//! | 29 | no [DONE] | agentjido/req_llm#638 | reports::a_stream_is_whole_without_its_last_event |
//! | 30 | chunks without choices | BDFFZI/Alife#36 | reports::chunks_without_choices_are_read_for_their_usage |
//! | 31 | prompt and max_tokens over the window | vllm-project/vllm#42474 | contract::what_a_retry_can_not_change_is_sent_once |
//! | 32 | a prompt cut away | ollama/ollama#18107 | reports::a_prompt_that_the_server_cut_away_is_told_with_the_way_out |
//! | 33 | Retry-After with 429 | NousResearch/hermes-agent#2724 | contract::a_request_that_failed_for_now_is_sent_again_byte_for_byte |
//! | 33 | Retry-After with 503 | LanternOps/breeze#551 | reports::the_pause_that_a_busy_server_asks_for_is_made |
//! | 34 | a quota told in words | NousResearch/hermes-agent#36276 | reports::a_quota_that_is_told_in_words_is_no_rate_limit |
//! | 35 | max_tokens refused | openhab/openhab-addons#21459 | contract::what_an_endpoint_does_not_know_is_left_out_once_and_for_the_rest_of_the_run |
//! | 36 | insufficient_quota | openai/codex#6340 | contract::what_a_retry_can_not_change_is_sent_once |
//! | 37 | overflow as 500 | llmmllab/llmmllab-api#202 | contract::what_a_retry_can_not_change_is_sent_once |
//! | 38 | 401 | QwenLM/qwen-code#1376 | contract::credentials_that_are_refused_are_named_by_where_they_came_from |
//! | 39 | a connection lost in a body | tetsuo-ai/agenc-core#2487 | contract::a_request_that_failed_for_now_is_sent_again_byte_for_byte |
//! | 40 | the last words of spent retries | use-agent-os/agent-os#735 | contract::spent_retries_are_told_with_the_last_words |
//! | 75 | notices on stdout | withoneai/cli#88 | reports::whatever_there_is_to_tell_stdout_has_the_answer_alone |
//! | 76 | exit 0 after 400 or 401 | PrimeIntellect-ai/prime-agent#2404 | contract::an_endpoint_that_refuses_is_rejected_with_its_own_words |
//! | 77 | the key in an error | stakpak/agent#744 | contract::the_key_is_sent_and_appears_nowhere_else |
//! | 77 | the password of the URL in an error | ducks/claux#34 | contract::what_an_endpoint_quotes_of_the_url_is_masked |
//! | 78 | forms of NO_PROXY | sigoden/aichat#1013 | network::what_no_proxy_lists_is_reached_directly |
//! | 79 | SSL_CERT_DIR of somebody else | rust-lang/rustup#4305 | network::variables_that_others_read_too_can_do_no_harm |
//! | 80 | slashes in the base URL | sigoden/aichat#767 | openai::endpoint::the_path_is_completed_once |
//! | 81 | stdin is an open pipe | earendil-works/pi#5571 | contract::a_prompt_in_the_arguments_leaves_stdin_alone |
//! | 82 | odd characters in a key | logicalclocks/hopsworks-api#185 | secret::a_key_that_no_header_can_carry_is_refused_without_showing_it |
//! | 83 | no certificates on the machine | henrygd/beszel#2291 | openai::tls::what_is_added_stands_beside_the_built_in_issuers |
//! | 84 | the input of a loop | google-gemini/gemini-cli#10556 | reports::a_loop_around_it_keeps_its_input |
//! | 88 | a BOM in AGENTS.md | anthropics/claude-code#73158 | reports::a_byte_order_mark_of_an_agents_md_is_not_sent |
//! | 89 | a cut call in the text | NousResearch/hermes-agent#83023 | reports::no_kind_of_unfinished_or_refused_message_is_executed_or_shown |
//! | 90 | a call in the text | QwenLM/qwen-code#8003 | reports::no_kind_of_unfinished_or_refused_message_is_executed_or_shown |
//! | 91 | the same call without end | earendil-works/pi#9637 | contract::the_steps_the_tokens_and_the_time_of_a_run_are_limited |
//! | 92 | a bare line break in arguments | futuregene/future-os#334 | reports::a_bare_line_break_in_an_argument_is_told_to_the_model |
//! | 93 | whole numbers as floats | openai/codex#33452 | tools::arguments::a_whole_number_may_come_in_any_spelling |
//! | 93 | numbers that are none | tontinton/maki#142 | tools::arguments::any_other_number_is_refused |
//! | 94 | a text about calls | Gitlawb/openclaude#1791 | reports::a_text_that_only_shows_a_call_is_an_answer |
//! | 95 | tools missing from later requests | sipeed/picoclaw#2104 | reports::signatures_stay_on_their_calls_and_the_tools_in_every_request_also_after_a_resume |
//! | 96 | invented arguments | openclaw/openclaw#49876 | contract::tool_failures_are_results_and_end_nothing |
//! | 97 | gzip that nobody asked for | - | wire::gzip_that_nobody_asked_for_is_taken_off |
//! | 98 | a BOM and blank lines around a body | - | wire::response::a_byte_order_mark_and_white_space_around_the_body_are_accepted |
//! | 98 | garbage behind a body | - | wire::response::what_is_no_json_is_said_to_be_what_it_is |
//! | 99 | an argument that is not UTF-8 | - | flags::an_argument_or_variable_that_is_not_utf8_is_a_usage_error |
//! | 99 | standard input that is not UTF-8 | - | flags::an_empty_prompt_is_told_wherever_it_comes_from |
//! | 100 | which statuses are tried again | - | wire::every_status_that_is_no_success_is_an_error_with_its_body |
//! | 100 | a redirect to another host | - | wire::a_redirect_is_an_error_and_the_key_is_not_sent_there |
//! | 101 | no git | - | reports::git_is_not_needed_and_a_broken_repository_does_no_harm |

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::endpoint::{Endpoint, Reply, Request};
use crate::support::sandbox::{Dir, Ran, Uncut};

/// What a run in a folder of its own left behind.
struct Told {
    dir: Dir,
    ran: Ran,
    requests: Vec<Request>,
}

impl Told {
    /// The results of the tool calls, as the last request has them.
    fn results(&self) -> Vec<&str> {
        let messages = self.requests.last().expect("a request").messages().iter();
        let results = messages.filter(|message| message["role"] == "tool");
        results.map(|message| message["content"].as_str().expect("a text")).collect()
    }
}

fn uncut(dir: &Dir, endpoint: &Endpoint) -> Uncut {
    Uncut::new(dir).args(["--base-url", &endpoint.base_url(), "--model", "m"])
}

/// Runs with exactly these replies.
#[track_caller]
fn run(replies: Vec<Reply>, flags: &[&str]) -> Told {
    let dir = Dir::new("reports");
    let endpoint = Endpoint::start(replies);
    let ran = uncut(&dir, &endpoint).args(flags).arg("go").run();
    Told { dir, ran, requests: endpoint.finish() }
}

#[track_caller]
fn answered(replies: Vec<Reply>, answer: &str) -> Told {
    let told = run(replies, &[]);
    let ran = &told.ran;
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), format!("{answer}\n").as_str()),
        "{ran:?}"
    );
    told
}

/// A run that fails, with a last line that has these words, and that leaves no file behind.
#[track_caller]
fn failed(replies: Vec<Reply>, flags: &[&str], outcome: (i32, &str), says: &str) -> Told {
    let told = run(replies, flags);
    let (ran, (code, word)) = (&told.ran, outcome);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:?}");
    let line = ran.stderr.lines().last().unwrap_or_default();
    assert!(line.starts_with(&format!("uncut: {word}: ")) && line.contains(says), "{line}: {says}");
    assert_eq!(told.dir.names(), [""; 0], "something was executed");
    told
}

fn choice(finish_reason: &str, message: Value) -> Reply {
    Reply::choice(json!({"finish_reason": finish_reason, "message": message}))
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn calls(calls: &[Value]) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn shell(id: &str, command: &str) -> Value {
    call(id, "shell", &json!({"command": command}).to_string())
}

/// Writes `a.txt`.
fn write() -> Value {
    calls(&[call("c1", "write_file", r#"{"path":"a.txt","content":"half"}"#)])
}

// A chunk of a stream, as the lines of its event.

fn data(chunk: &Value) -> String {
    format!("data: {chunk}")
}

fn delta(delta: Value) -> String {
    data(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

fn text(text: &str) -> String {
    delta(json!({"content": text}))
}

fn end(finish_reason: &str) -> String {
    data(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason}]}))
}

fn done() -> String {
    "data: [DONE]".to_owned()
}

// What the model did not finish, or should not have begun.

#[test]
fn no_kind_of_unfinished_or_refused_message_is_executed_or_shown() {
    let pwned = || calls(&[shell("c1", "touch pwned")]);
    let text = |text: &str| json!({"role": "assistant", "content": text});
    let cut = r##"{"path":"out.md","content":"# Title\nfirst li"##;
    let table = r#"{"path":"a.txt","content":"| a | b |\n| 1"}"#;
    let (truncated, filtered) = ((12, "truncated"), (13, "filtered"));
    let (protocol, empty) = ((11, "protocol"), (14, "empty"));
    let refusal = json!({"content": [{"type": "refusal", "refusal": "No."}]});
    let thinking = json!({"content": [{"type": "thinking", "thinking": "secret plan"}]});
    let preamble = json!({"content": "Let me check:", "reasoning_content": "long"});
    let open = "<tool_call>\n{\"name\":\"shell\",\"arguments\":{\"command\":\"touch pwned";
    let closed = "Reading.\n<tool_call>\n<function=shell><parameter=command>touch pwned\
                  </parameter></function>\n</tool_call>";
    let malformed = "malformed_function_call";
    for (finish_reason, message, outcome, says) in [
        (malformed, json!({"content": null}), protocol, malformed),
        (malformed, pwned(), protocol, malformed),
        ("content_filter", pwned(), filtered, "content_filter"),
        ("stop", json!({"content": "", "refusal": "No."}), filtered, "No."),
        ("stop", refusal, filtered, "No."),
        ("length", calls(&[call("c", "write_file", table)]), truncated, "length"),
        ("length", preamble, truncated, "--max-tokens"),
        ("length", text("<function=shell><parameter=command>touch pwned"), truncated, "length"),
        ("tool_calls", calls(&[call("c", "write_file", cut)]), truncated, "write_file"),
        ("tool_calls", json!({"content": "I will read.", "tool_calls": []}), empty, "announced"),
        ("tool_calls", calls(&[shell("a", "touch pwned"), call("b", "", "")]), protocol, "name"),
        ("stop", text(open), protocol, "parser"),
        ("stop", text(closed), protocol, "parser"),
        ("stop", thinking, empty, "without an answer"),
    ] {
        failed(vec![choice(finish_reason, message)], &[], outcome, says);
    }
}

#[test]
fn a_call_that_fills_the_token_limit_is_cut_off_and_one_below_it_runs() {
    let truncated = (12, "truncated");
    let write = || vec![choice("tool_calls", write())];
    failed(write(), &["--max-tokens=5"], truncated, "--max-tokens");
    let mut replies = write();
    replies.push(Reply::answer("ok"));
    let told = run(replies, &["--max-tokens=6"]);
    // The answer has 5 tokens, too.
    assert_eq!(told.ran.code, Some(0), "{:?}", told.ran);
    assert_eq!(told.dir.read("a.txt"), "half");
}

#[test]
fn a_call_that_was_cut_off_is_not_run_by_the_next_run_either() {
    let dir = Dir::new("reports");
    let endpoint = Endpoint::start(vec![choice("length", write()), Reply::answer("ok")]);
    let run = || uncut(&dir, &endpoint).args(["--session", "s.jsonl", "go"]).run();
    assert_eq!(run().code, Some(12));
    assert_eq!(run().code, Some(0));
    assert_eq!(dir.names(), ["s.jsonl"]);
    let requests = endpoint.finish();
    assert_eq!(requests[0].messages(), requests[1].messages());
}

// Odd shapes.

#[test]
fn signatures_stay_on_their_calls_and_the_tools_in_every_request_also_after_a_resume() {
    let dir = Dir::new("reports");
    let mut signed = shell("c1", "echo one");
    signed["extra_content"] = json!({"google": {"thought_signature": "c2ln"}});
    let message = calls(&[signed, shell("c2", "echo two")]);
    let replies =
        vec![choice("tool_calls", message.clone()), Reply::answer("a"), Reply::answer("b")];
    let endpoint = Endpoint::start(replies);
    for prompt in ["one", "two"] {
        let ran = uncut(&dir, &endpoint).args(["--session", "s.jsonl", prompt]).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let requests = endpoint.finish();
    for request in &requests {
        assert_eq!(request.body["tools"], requests[0].body["tools"]);
    }
    for request in &requests[1..] {
        assert_eq!(request.messages()[2], message);
    }
}

#[test]
fn reasoning_goes_back_as_it_came_and_is_not_made_up() {
    let mut thought = calls(&[shell("c1", "true")]);
    thought["reasoning_content"] = json!("because");
    let plain = calls(&[shell("c2", "true")]);
    let told = answered(
        vec![choice("tool_calls", thought), choice("tool_calls", plain), Reply::answer("ok")],
        "ok",
    );
    let messages = told.requests[2].messages();
    assert_eq!(messages[2]["reasoning_content"], "because");
    assert!(messages[4].get("reasoning_content").is_none(), "{}", messages[4]);
    let streamed = vec![
        delta(json!({"role": "assistant", "content": null, "reasoning_content": null})),
        delta(json!({"tool_calls": [shell("c3", "true")]})),
        end("tool_calls"),
    ];
    let told = answered(vec![Reply::stream(&streamed), Reply::answer("ok")], "ok");
    let message = &told.requests[1].messages()[2];
    // It was null, which says as much as nothing.
    assert!(message["reasoning_content"].is_null(), "{message}");
}

#[test]
fn ids_that_come_again_in_a_message_and_in_the_next_have_the_results_of_their_own_calls() {
    let twice = |first: &str, second: &str| {
        choice("tool_calls", calls(&[shell("call_001", first), shell("call_001", second)]))
    };
    let replies =
        vec![twice("echo a; echo >> a", "echo b"), twice("echo c", "echo d"), Reply::answer("ok")];
    let told = answered(replies, "ok");
    let expected = ["a\n[exit 0]", "b\n[exit 0]", "c\n[exit 0]", "d\n[exit 0]"];
    assert_eq!(told.results(), expected);
    assert_eq!(told.dir.read("a"), "\n", "it ran once");
}

#[test]
fn an_argument_that_is_given_twice_is_an_error_in_every_form() {
    let twice = r#"{"path":"a","path":"b","content":""}"#;
    let body = |arguments: &str| {
        let function = format!(r#"{{"name":"write_file","arguments":{arguments}}}"#);
        format!(r#"{{"tool_calls":[{{"index":0,"id":"c1","function":{function}}}]}}"#)
    };
    for arguments in [Value::from(twice).to_string(), twice.to_owned()] {
        let message = body(&arguments);
        let whole =
            format!(r#"{{"choices":[{{"finish_reason":"tool_calls","message":{message}}}]}}"#);
        let streamed = [format!(r#"data: {{"choices":[{{"delta":{message}}}]}}"#), end("stop")];
        for reply in [Reply::status(200, whole), Reply::stream(&streamed)] {
            let told = answered(vec![reply, Reply::answer("ok")], "ok");
            let [result] = told.results()[..] else { panic!("{:?}", told.results()) };
            assert!(result.contains("\"path\" is given twice"), "{result}");
            assert_eq!(told.dir.names(), [""; 0]);
        }
    }
}

#[test]
fn a_bare_line_break_in_an_argument_is_told_to_the_model() {
    let arguments = "{\"path\":\"a\",\"content\":\"l1\nl2\"}";
    let told =
        answered(vec![Reply::tool_call("c1", "write_file", arguments), Reply::answer("ok")], "ok");
    let [result] = told.results()[..] else { panic!("{:?}", told.results()) };
    assert!(result.contains("no valid JSON object (control character"), "{result}");
    assert_eq!(told.dir.names(), [""; 0]);
}

#[test]
fn a_text_that_only_shows_a_call_is_an_answer() {
    let text = "Like so:\n```\n<tool_call>{\"name\":\"shell\",\"arguments\":{}}</tool_call>\n```\n\
                and not <invoke name=\"shell\">.";
    answered(vec![Reply::answer(text)], text);
}

#[test]
fn a_call_in_the_markup_of_any_model_is_no_answer_in_either_form() {
    for text in [
        "[TOOL_CALLS]shell[ARGS]{\"command\":\"touch pwned\"}",
        "I look. <|python_tag|>{\"name\":\"shell\",\"parameters\":{\"command\":\"touch pwned\"}}",
        "<|channel|>commentary to=functions.shell <|message|>{\"command\":\"touch pwned\"}<|call|>",
        "<tools>\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n</tools>",
        "<invoke name=\"shell\"><parameter name=\"command\">touch pwned</parameter></invoke>",
        "[{\"name\":\"shell\",\"arguments\":{\"command\":\"touch pwned\"}}]",
    ] {
        let says = "parser seems to be off; turn the server's tool-call parser on";
        let protocol = (11, "protocol");
        let whole = choice("stop", json!({"content": text}));
        failed(vec![whole], &["--no-stream"], protocol, says);
        let streamed = Reply::stream(&[self::text(text), end("stop"), done()]);
        failed(vec![streamed], &[], protocol, says);
    }
}

#[test]
fn reasoning_in_the_text_is_not_printed_and_goes_back_as_it_came() {
    let call = "<tool_call>{\"name\":\"shell\",\"arguments\":{}}</tool_call>";
    for thought in [
        format!("<think>\nI could {call}\n</think>\n\n"),
        format!("I could {call}\n</think>\n\n"),
        "<thinking>a</thinking><think>b</think>".to_owned(),
    ] {
        let text = format!("{thought}The tag `</think>` closes it.");
        for flags in [&[][..], &["--no-stream"]] {
            let dir = Dir::new("reports");
            let reply = || match flags {
                [] => Reply::stream(&[self::text(&text), end("stop"), done()]),
                _ => Reply::answer(&text),
            };
            let replies = vec![reply(), reply(), reply()];
            let endpoint = Endpoint::start(replies);
            let run = |more: &[&str]| {
                uncut(&dir, &endpoint).args(flags).args(more).args(["--session", "s"]).run()
            };
            let ran = run(&["one"]);
            let answer = "The tag `</think>` closes it.";
            assert_eq!((ran.code, ran.stdout), (Some(0), format!("{answer}\n")), "{flags:?}");
            let ran = run(&["--output=json", "-o", "out", "two"]);
            let result: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(result["answer"], answer, "{result}");
            assert_eq!(dir.read("out"), ran.stdout);
            let shown = run(&["--show-session"]).stdout;
            assert!(shown.contains(answer) && !shown.contains("think>\n"), "{shown}");
            assert_eq!(run(&["three"]).code, Some(0));
            let requests = endpoint.finish();
            let messages = requests.last().unwrap().messages();
            let same = messages.iter().filter(|message| message["content"] == text.as_str());
            assert_eq!(same.count(), 2, "{messages:?}");
        }
    }
}

// Streams.

#[test]
fn members_that_say_nothing_end_nothing_and_add_nothing() {
    let chunk = |delta: Value, finish_reason: &str| {
        data(&json!({"choices": [{"delta": delta, "finish_reason": finish_reason}]}))
    };
    for nothing in ["", "null"] {
        let arguments = |arguments: Value| {
            let call = json!({"index": 0, "function": {"arguments": arguments}});
            chunk(json!({"role": null, "content": null, "tool_calls": [call]}), nothing)
        };
        let first = json!([{"index": 0, "id": "c1", "function": {"name": "shell"}}]);
        let call = [
            chunk(json!({"role": null, "content": null, "tool_calls": null}), nothing),
            chunk(json!({"tool_calls": first}), nothing),
            arguments(json!(null)),
            arguments(json!("{\"command\":")),
            arguments(json!("\"echo hi\"}")),
            arguments(json!(null)),
            end("tool_calls"),
            done(),
        ];
        let answer = [
            chunk(json!({"role": "assistant", "content": ""}), nothing),
            chunk(json!({"content": "All "}), nothing),
            chunk(json!({"content": null}), nothing),
            chunk(json!({"content": "done"}), "stop"),
            done(),
        ];
        let told = answered(vec![Reply::stream(&call), Reply::stream(&answer)], "All done");
        assert_eq!(told.results(), ["hi\n[exit 0]"]);
    }
}

#[test]
fn an_error_in_the_middle_of_a_stream_is_tried_again_and_its_text_forgotten() {
    let error = r#"data: {"error":{"type":"overloaded_error","message":"Overloaded","code":529}}"#;
    for error in [error.to_owned(), format!("event: error\n{error}")] {
        let broken = || Reply::stream(&[text("Par"), error.clone()]);
        let (once, transient) = (&["--max-retries=0"], (75, "transient"));
        failed(vec![broken()], once, transient, "529: Overloaded");
        let told = answered(vec![broken(), Reply::answer("whole")], "whole");
        assert_eq!(told.requests[0].raw, told.requests[1].raw);
    }
}

#[test]
fn a_stream_that_just_ends_is_tried_again_and_its_text_forgotten() {
    let broken = || Reply::stream(&[text("The answer is")]);
    let (once, transient) = (&["--max-retries=0"], (75, "transient"));
    failed(vec![broken()], once, transient, "ended before the model said that it was done");
    let told = answered(vec![broken(), Reply::answer("whole")], "whole");
    assert_eq!(told.requests[0].raw, told.requests[1].raw);
}

#[test]
fn a_stream_is_whole_without_its_last_event() {
    let last = r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{}}"#;
    answered(vec![Reply::stream(&[text("ok"), last.to_owned()])], "ok");
}

#[test]
fn a_text_that_comes_byte_by_byte_is_the_same() {
    let wide = "\u{65e5}\u{672c}\u{8a9e}\u{1f642}";
    let stream = Reply::stream(&[text(wide), end("stop"), done()]);
    answered(vec![stream.in_pieces(1, Duration::ZERO)], wide);
}

#[test]
fn chunks_without_choices_are_read_for_their_usage() {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 3});
    for last in [json!({"choices": [], "usage": usage}), json!({"usage": usage})] {
        let first = json!({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]});
        let events = [data(&first), text("ok"), end("stop"), data(&last), done()];
        let told = answered(vec![Reply::stream(&events)], "ok");
        assert!(told.ran.stderr.contains(", tokens 9 + 3, "), "{:?}", told.ran);
    }
}

// Usage.

/// Completions of a run of two steps, with this usage each.
fn with_usage(usages: [Value; 2]) -> Vec<Reply> {
    let [first, second] = usages;
    let completion = |finish_reason: &str, message: Value, usage: Value| {
        let choice = json!({"index": 0, "finish_reason": finish_reason, "message": message});
        Reply::json(&json!({"choices": [choice], "usage": usage}))
    };
    vec![
        completion("tool_calls", calls(&[shell("c1", "true")]), first),
        completion("stop", json!({"content": "ok"}), second),
    ]
}

#[test]
fn the_tokens_of_a_run_are_added_up_on_the_last_line() {
    let usage = |prompt: u32, cached: u32, completion: u32| {
        json!({"prompt_tokens": prompt, "completion_tokens": completion,
            "prompt_tokens_details": {"cached_tokens": cached}})
    };
    let replies = || with_usage([usage(100, 80, 7), usage(120, 110, 3)]);
    let last = |told: &Told| told.ran.stderr.lines().last().unwrap_or_default().to_owned();
    let line = last(&run(replies(), &[]));
    assert!(line.starts_with("uncut: ok: steps 2, tool calls 1, tokens 220 + 10, "), "{line}");
    let told = run(replies(), &["-v"]);
    for step in ["tokens 100 (80 cached) + 7\n", "tokens 120 (110 cached) + 3\n"] {
        assert!(told.ran.stderr.contains(step), "{:?}", told.ran);
    }
    // What is not known makes the sum unknown, and not smaller.
    let line = last(&run(with_usage([usage(100, 80, 7), json!({"prompt_tokens": 120})]), &[]));
    assert!(line.contains(", tokens 220 + ?, "), "{line}");
}

#[test]
fn tokens_that_are_not_reported_are_unknown_and_end_nothing() {
    let odd = json!({"prompt_tokens": 12.0, "completion_tokens": "7", "cost": 0.1});
    for (usage, tokens) in [
        (json!(null), "not reported"),
        (json!({}), "not reported"),
        (json!("?"), "not reported"),
        (odd, "24 + 14"),
    ] {
        let told = answered(with_usage([usage.clone(), usage]), "ok");
        let expected = format!("uncut: ok: steps 2, tool calls 1, tokens {tokens}, ");
        assert!(told.ran.stderr.contains(&expected), "{:?}", told.ran);
    }
    let without = json!({"choices": [{"finish_reason": "stop", "message": {"content": "ok"}}]});
    let told = answered(vec![Reply::json(&without)], "ok");
    assert!(told.ran.stderr.contains(", tokens not reported, "), "{:?}", told.ran);
}

// Retries.

fn says(status: u16, message: &str) -> Reply {
    let reply = Reply::status(status, json!({"error": {"message": message}}).to_string());
    reply.with_header("retry-after-ms", "1")
}

#[test]
fn a_prompt_that_the_server_cut_away_is_told_with_the_way_out() {
    let lost = || says(500, "no user query found in messages");
    let told = failed(vec![lost()], &[], (15, "context"), "no user query found in messages");
    assert!(told.ran.stderr.contains("num_ctx"), "{:?}", told.ran);
}

#[test]
fn a_quota_that_is_told_in_words_is_no_rate_limit() {
    let monthly = "You have reached the monthly usage limit for this billing cycle. It will be \
                   refreshed in the next cycle.";
    let spent = Reply::status(429, json!({"error": {"message": monthly}}).to_string());
    failed(vec![spent], &[], (10, "rejected"), monthly);
    let soon = says(429, "Rate limit reached, please retry shortly");
    answered(vec![soon, Reply::answer("ok")], "ok");
}

#[test]
fn the_pause_that_a_busy_server_asks_for_is_made() {
    let started = Instant::now();
    let busy = Reply::status(503, "busy").with_header("retry-after", "1");
    answered(vec![busy, Reply::answer("ok")], "ok");
    assert!(started.elapsed() >= Duration::from_secs(1));
}

// The world around.

#[test]
fn whatever_there_is_to_tell_stdout_has_the_answer_alone() {
    let dir = Dir::new("reports").with("AGENTS.md", "x\n".repeat(30_000));
    let loading = Reply::status(503, r#"{"error":{"message":"Loading model","code":503}}"#);
    let endpoint = Endpoint::start(vec![
        loading.with_header("retry-after-ms", "1"),
        says(429, "slow down"),
        Reply::tool_call("c1", "shell", r#"{"command":"echo to stdout; echo to stderr >&2"}"#),
        Reply::answer("done"),
    ]);
    let ran = uncut(&dir, &endpoint).args(["-v", "go"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
    for notice in ["AGENTS.md", "is loading its model", "retry 1/4", "echo to stdout", "uncut: ok"]
    {
        assert!(ran.stderr.contains(notice), "{notice}: {ran:?}");
    }
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn a_loop_around_it_keeps_its_input() {
    let dir = Dir::new("reports");
    let endpoint = Endpoint::start(vec![Reply::answer("a"), Reply::answer("b")]);
    let script = "printf '1\\n2\\n' | while read -r n; do echo n=$n; \"$0\" \"$@\"; done";
    let uncut = Uncut::below(&dir, "sh", &["-c", script]);
    let ran = uncut.args(["--base-url", &endpoint.base_url(), "--model", "m", "go"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "n=1\na\nn=2\nb\n"), "{ran:?}");
}

#[test]
fn a_byte_order_mark_of_an_agents_md_is_not_sent() {
    let dir = Dir::new("reports").with("AGENTS.md", "\u{feff}Rule 1\n");
    let endpoint = Endpoint::start(vec![Reply::answer("ok")]);
    assert_eq!(uncut(&dir, &endpoint).arg("go").run().code, Some(0));
    let raw = String::from_utf8(endpoint.finish().remove(0).raw).unwrap();
    assert!(
        raw.contains("Rule 1") && !raw.contains('\u{feff}') && !raw.contains("\\ufeff"),
        "{raw}"
    );
}

#[test]
fn git_is_not_needed_and_a_broken_repository_does_no_harm() {
    let dir = Dir::new("reports").with(".git", "gitdir: nowhere").with("AGENTS.md", "Rule 1\n");
    let reply = Reply::tool_call("c1", "shell", r#"{"command":"echo hi"}"#);
    let endpoint = Endpoint::start(vec![reply, Reply::answer("ok")]);
    let ran = uncut(&dir, &endpoint).env("PATH", dir.path("nowhere")).arg("go").run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"), "{ran:?}");
    let requests = endpoint.finish();
    assert!(requests[0].messages()[0]["content"].as_str().unwrap().contains("Rule 1"));
    assert_eq!(requests[1].messages()[3]["content"], "hi\n[exit 0]");
}

// The table above.

#[test]
fn every_test_of_the_table_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = include_str!("reports.rs").lines().filter(|line| line.starts_with("//! | "));
    // Without the heads of the columns.
    for row in rows.skip(1) {
        let test = row.trim_end_matches([' ', '|']).rsplit(' ').next().unwrap();
        let (module, name) = test.rsplit_once("::").unwrap_or_else(|| panic!("no test in {row}"));
        let file = module.replace("::", "/") + ".rs";
        let texts =
            ["tests/it", "src"].map(|folder| fs::read_to_string(root.join(folder).join(&file)));
        let function = format!("#[test]\nfn {name}() {{\n");
        let lines = |text: &String| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
        let exists = |text: &String| lines(text).contains(&function);
        assert!(texts.iter().flatten().any(exists), "{test} does not exist");
    }
}
