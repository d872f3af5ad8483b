//! What an endpoint says in place of a completion, and what that means for the next request.
//!
//! The status alone does not tell: an overflow comes as 400, 413, 429 or 500, an exhausted quota as
//! the same 429 as a busy minute, a proxy turns everything into 500, and some errors come with 200.
//! So the words decide where they are clear, and the status where they are not. The words stand in
//! one table of `provider`.

use std::time::Duration;

use serde_json::value::RawValue;

use super::pause;
use crate::json::{Members, first_element, list, object, string};
use crate::provider::words::{self, Says};
use crate::provider::{Meaning, Overflow, ProviderError, StatusError, is_transient};
use crate::text::{Lossy, head, tail};

/// The error of a status that is not 200, with the endpoint's own words where the body has some.
pub fn status_error(
    status: u16,
    location: Option<String>,
    retry_after: Option<Duration>,
    body: Vec<u8>,
) -> ProviderError {
    let error = ErrorObject::find(&body).unwrap_or_default();
    error.judge(Some(status), location, retry_after, body)
}

/// Bytes of a body without a message in which words are looked for.
const WORDS_MAX: usize = 4 << 10;

/// Bytes of the start of a message, and of its end, in which words are looked for.
const MESSAGE_MAX: usize = 16 << 10;

/// How many errors may stand in each other.
const DEPTH_MAX: u32 = 3;

/// What an endpoint says in place of a completion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorObject {
    /// The message for people.
    pub(super) message: String,
    /// Codes, types and statuses, in the endpoint's words or numbers.
    labels: Vec<String>,
    /// Which quotas are used up, by Google's names.
    quotas: Vec<String>,
    /// How long to wait, where a member of its own says so.
    wait: Option<Duration>,
    /// Numbers in members of their own.
    overflow: Overflow,
}

impl ErrorObject {
    /// Finds the error in a body that came with a status other than 200.
    ///
    /// Read are the forms of OpenAI (an `error` object), of Gemini (a list of one), of older vLLM
    /// servers (the members without the `error` around them), and a mere string as `error`,
    /// `message` or `detail`.
    pub(super) fn find(body: &[u8]) -> Option<ErrorObject> {
        let text = std::str::from_utf8(body).ok()?;
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        ErrorObject::find_raw(raw, 0)
    }

    fn find_raw(raw: &RawValue, depth: u32) -> Option<ErrorObject> {
        let raw = first_element(raw).unwrap_or(raw);
        let mut members = object(raw)?;
        ErrorObject::take(&mut members, depth).or_else(|| ErrorObject::from_members(members, depth))
    }

    /// Takes the error out of the members of a response, if there is one.
    pub(super) fn take_from(members: &mut Members<'_>) -> Option<ErrorObject> {
        ErrorObject::take(members, 0)
    }

    fn take(members: &mut Members<'_>, depth: u32) -> Option<ErrorObject> {
        if let Some(mut error) = members.take("error").and_then(|raw| ErrorObject::read(raw, depth))
        {
            // Some servers have the code beside the error.
            error.take_labels(members);
            return Some(error);
        }
        // MiniMax, with 0 where there is no error.
        if let Some(mut base) = members.take("base_resp").and_then(object) {
            let code = base.take("status_code").and_then(word).filter(|code| code != "0");
            if let Some(code) = code {
                let message = base.take("status_msg").and_then(word).unwrap_or_default();
                return Some(ErrorObject { message, labels: vec![code], ..ErrorObject::default() });
            }
        }
        // Gemini, of a prompt that a filter refused.
        let mut feedback = members.take("promptFeedback").and_then(object)?;
        let reason = feedback.take("blockReason").and_then(word)?;
        let message = format!("promptFeedback.blockReason: {reason}");
        Some(ErrorObject { message, ..ErrorObject::default() })
    }

    /// The status that the code or the type stands for.
    pub(super) fn status(&self) -> Option<u16> {
        let number = self.labels.iter().find_map(|label| label.parse().ok());
        let known = || self.labels.iter().find_map(|label| words::status(label));
        number.filter(|code| (400..600).contains(code)).or_else(known)
    }

    pub(super) fn from_raw(error: &RawValue) -> Option<ErrorObject> {
        ErrorObject::read(error, 0)
    }

    fn read(error: &RawValue, depth: u32) -> Option<ErrorObject> {
        match string(error) {
            Some(message) => Some(ErrorObject { message, ..ErrorObject::default() }),
            None => ErrorObject::from_members(object(error)?, depth),
        }
        // Some servers always send the member, and leave it empty where there is no error.
        .filter(|error| *error != ErrorObject::default())
    }

    /// Reads the members of an error.
    pub(super) fn from_own(members: Members<'_>) -> Option<ErrorObject> {
        ErrorObject::from_members(members, 0)
    }

    fn from_members(mut members: Members<'_>, depth: u32) -> Option<ErrorObject> {
        let mut error = ErrorObject::default();
        let message = ["message", "detail", "msg"].into_iter().find_map(|name| members.take(name));
        let message = message.and_then(word);
        error.take_labels(&mut members);
        if message.is_none() && error.labels.is_empty() {
            return None;
        }
        error.message = message.unwrap_or_default();
        error.take_wait(&mut members);
        let mut number = |name| members.take(name).and_then(|raw| raw.get().parse().ok());
        // llama.cpp
        error.overflow = Overflow { requested: number("n_prompt_tokens"), window: number("n_ctx") };
        // Google
        if let Some(details) = members.take("details") {
            for detail in list(details, "").unwrap_or_default() {
                error.take_detail(detail);
            }
        }
        // Azure
        if let Some(mut inner) = members.take("innererror").and_then(object) {
            error.take_labels(&mut inner);
        }
        if let Some(metadata) = members.take("metadata").and_then(object) {
            error.take_metadata(metadata, depth);
        }
        Some(error)
    }

    fn take_labels(&mut self, members: &mut Members<'_>) {
        let names = ["code", "type", "status", "status_code"];
        self.labels
            .extend(names.into_iter().filter_map(|name| members.take(name)).filter_map(word));
    }

    fn take_wait(&mut self, members: &mut Members<'_>) {
        for (name, unit) in
            [("retry_after", 1.0), ("retry_after_seconds", 1.0), ("retry_after_ms", 0.001)]
        {
            let number = members.take(name).and_then(|raw| raw.get().parse::<f64>().ok());
            let wait = number.and_then(|number| Duration::try_from_secs_f64(number * unit).ok());
            self.wait = self.wait.or(wait);
        }
    }

    /// Takes what Google tells of a quota: which it is, and when to come back.
    fn take_detail(&mut self, detail: &RawValue) {
        let Some(mut detail) = object(detail) else { return };
        let delay = detail.take("retryDelay").and_then(string);
        self.wait = self.wait.or(delay.and_then(|delay| pause::length(&delay)));
        let violations = detail.take("violations").and_then(|raw| list(raw, "").ok());
        for violation in violations.unwrap_or_default() {
            let quota = object(violation).and_then(|mut violation| violation.take("quotaId"));
            self.quotas.extend(quota.and_then(string));
        }
    }

    /// Takes what OpenRouter tells of the provider behind it: its name, and its own error, which
    /// may be JSON in a string.
    fn take_metadata(&mut self, mut metadata: Members<'_>, depth: u32) {
        self.take_wait(&mut metadata);
        let provider = metadata.take("provider_name").and_then(string).unwrap_or_default();
        let raw = metadata.take("raw").filter(|_| depth < DEPTH_MAX);
        let inner = raw.map(|raw| {
            let text = string(raw).unwrap_or_else(|| raw.get().to_owned());
            let found = serde_json::from_str::<&RawValue>(&text).ok();
            let found = found.and_then(|raw| ErrorObject::find_raw(raw, depth + 1));
            found.unwrap_or(ErrorObject { message: text, ..ErrorObject::default() })
        });
        let inner = inner.unwrap_or_default();
        let mut parts = vec![std::mem::take(&mut self.message), provider, inner.message];
        parts.retain(|part| !part.trim().is_empty());
        parts.dedup();
        self.message = parts.join(": ");
        self.labels.extend(inner.labels);
        self.quotas.extend(inner.quotas);
        self.wait = self.wait.or(inner.wait);
        self.overflow = self.overflow.or(inner.overflow);
    }

    /// The error of a response that has no choices and does not call itself an error, where its
    /// words or labels are known ones.
    pub(super) fn without_choices(members: Members<'_>) -> Option<ErrorObject> {
        let error = ErrorObject::from_members(members, 0)?;
        let (said, _) = words::find(&error.words(&[]), &error.labels);
        (!said.is_empty()).then_some(error)
    }

    /// A fault of the server's, in these words.
    pub(super) fn fault(message: &str) -> ErrorObject {
        let (message, labels) = (message.to_owned(), vec!["500".to_owned()]);
        ErrorObject { message, labels, ..ErrorObject::default() }
    }

    /// The error that came with status 200.
    pub(super) fn reported(self, body: Vec<u8>) -> ProviderError {
        self.judge(self.status(), None, None, body)
    }

    fn judge(
        &self,
        status: Option<u16>,
        location: Option<String>,
        retry_after: Option<Duration>,
        body: Vec<u8>,
    ) -> ProviderError {
        let words = self.words(&body);
        let meaning = self.meaning(status, retry_after.is_some(), &words);
        // The header is often rounded, and whoever comes too early is refused again.
        let retry_after = retry_after.max(self.wait.or_else(|| pause::asked(&words)));
        let message = Some(self.message.clone()).filter(|message| !message.trim().is_empty());
        let status = status.unwrap_or(200);
        ProviderError::Status(StatusError { status, meaning, message, location, retry_after, body })
    }

    /// The words to judge by, in lower case.
    fn words(&self, body: &[u8]) -> String {
        let message = &self.message;
        match message.len() {
            0 => Lossy::new(&body[..body.len().min(WORDS_MAX)]).text.to_ascii_lowercase(),
            // What a template or a gateway says in the end may be the reason.
            length if length > 2 * MESSAGE_MAX => {
                let ends = [head(message, MESSAGE_MAX), tail(message, MESSAGE_MAX)];
                ends.join("\n").to_ascii_lowercase()
            }
            _ => message.to_ascii_lowercase(),
        }
    }

    /// What the error means. `asked` is whether a header says when to come back.
    fn meaning(&self, status: Option<u16>, asked: bool, words: &str) -> Meaning {
        let (mut said, overflow) = words::find(words, &self.labels);
        if !self.quotas.is_empty() || self.wait.is_some() {
            // Names of quotas and members for the wait are meant for programs, and mean it.
            let is_passing =
                |said: &Says| matches!(said, Says::PerDay | Says::Rate | Says::QuotaOrRate);
            let quotas = self.quotas.join(" ").to_ascii_lowercase();
            said.retain(|said| !is_passing(said));
            said.extend(words::find(&quotas, &[]).0.into_iter().filter(is_passing));
        }
        let says = |wanted| said.contains(&wanted);
        match said.iter().min() {
            Some(Says::BadCall) => return Meaning::BadCall,
            Some(Says::RoleOrder) => return Meaning::RoleOrder,
            Some(Says::Unfit) => return Meaning::Unfit,
            Some(Says::Overflow) => return Meaning::Context(overflow.or(self.overflow)),
            Some(Says::Filtered) => return Meaning::Filtered,
            _ => {}
        }
        // Who says when to come back means a rate, whatever else the message advertises.
        let is_rate = asked || self.wait.is_some() || says(Says::Rate);
        let per_day = says(Says::PerDay) && status.is_none_or(is_transient);
        let quota = says(Says::QuotaOrRate) && status.is_none_or(|status| status == 429);
        if status == Some(402) || says(Says::Quota) || per_day || quota && !is_rate {
            return Meaning::Quota;
        }
        let loading = says(Says::Loading) && !says(Says::LoadFailed);
        let busy = says(Says::Busy);
        match status {
            Some(503) | None if loading => Meaning::Loading,
            // Some servers say 400 of what has happened to them.
            Some(400) if busy => Meaning::Busy,
            Some(status) if is_transient(status) => Meaning::Busy,
            Some(_) => Meaning::Refused,
            None if busy || is_rate => Meaning::Busy,
            None if says(Says::LoadFailed) => Meaning::Refused,
            None => Meaning::Unclear,
        }
    }
}

/// A string, or the text of any other value but null.
fn word(raw: &RawValue) -> Option<String> {
    string(raw).or_else(|| Some(raw.get().to_owned())).filter(|word| word != "null")
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use Meaning::{
        BadCall, Busy, Context, Filtered, Loading, Quota, Refused, RoleOrder, Unclear, Unfit,
    };

    /// An error as an endpoint sends it, perhaps shortened: what it says, and the tokens of an
    /// overflow.
    struct Sample {
        line: &'static str,
        says: String,
        error: ErrorObject,
        words: String,
        numbers: Overflow,
    }

    fn samples() -> Vec<Sample> {
        include_str!("samples.jsonl").lines().map(sample).collect()
    }

    fn sample(line: &'static str) -> Sample {
        let value: serde_json::Value = serde_json::from_str(line).expect(line);
        let error = ErrorObject::find(value["body"].to_string().as_bytes()).expect(line);
        let numbers = overflow(value["requested"].as_u64(), value["window"].as_u64());
        let says = value["says"].as_str().expect(line).to_owned();
        Sample { line, says, words: error.words(&[]), error, numbers }
    }

    /// What may be said beside it: the words of a template stand around those about roles, and
    /// those of a rate in most messages about quotas. The order of the meanings decides then.
    fn beside(says: Says) -> &'static [Says] {
        match says {
            Says::BadCall => &[Says::Overflow],
            Says::RoleOrder => &[Says::Unfit],
            Says::Overflow => &[Says::PerDay, Says::Rate, Says::Busy],
            Says::PerDay => &[Says::Rate, Says::Busy],
            Says::Quota => &[Says::QuotaOrRate],
            Says::Rate => &[Says::Busy],
            Says::LoadFailed => &[Says::Loading],
            _ => &[],
        }
    }

    #[test]
    fn a_sample_says_what_it_means_and_hits_no_row_of_another_meaning() {
        for Sample { line, says, error, words, .. } in samples() {
            let (said, _) = words::find(&words, &error.labels);
            let first = *said.first().unwrap_or_else(|| panic!("no row for {line}"));
            assert_eq!(format!("{first:?}"), says, "{line}");
            let other = said[1..].iter().find(|other| !beside(first).contains(other));
            assert_eq!(other, None, "{line}");
        }
    }

    #[test]
    fn every_row_of_the_table_has_a_sample() {
        let samples = samples();
        for row in words::ROWS {
            let says = format!("{:?}", row.says);
            let is_hit = |sample: &Sample| {
                says == sample.says && row.find(&sample.words, &sample.error.labels).is_some()
            };
            assert!(samples.iter().any(is_hit), "no sample for {row:?}");
        }
    }

    #[test]
    fn the_numbers_of_an_overflow_are_read() {
        for Sample { line, error, words, numbers, .. } in samples() {
            let (said, found) = words::find(&words, &error.labels);
            if said.first() == Some(&Says::Overflow) {
                assert_eq!(found.or(error.overflow), numbers, "{line}");
            }
        }
    }

    #[track_caller]
    fn check(status: u16, body: &str, expected: Meaning) {
        match status_error(status, None, None, body.as_bytes().to_vec()) {
            ProviderError::Status(error) => assert_eq!(error.meaning, expected, "{status} {body}"),
            other => panic!("{other:?}"),
        }
    }

    fn says(message: &str) -> String {
        serde_json::json!({"error": {"message": message}}).to_string()
    }

    fn overflow(requested: Option<u64>, window: Option<u64>) -> Overflow {
        let number = |number: Option<u64>| number.and_then(NonZeroU64::new);
        Overflow { requested: number(requested), window: number(window) }
    }

    fn context(requested: Option<u64>, window: Option<u64>) -> Meaning {
        Context(overflow(requested, window))
    }

    #[test]
    fn an_overflow_is_known_by_its_words_whatever_the_status() {
        let overflow = "request (12030 tokens) exceeds the available context size (8192 tokens)";
        for status in [400, 413, 429, 500] {
            check(status, &says(overflow), context(Some(12_030), Some(8192)));
        }
        check(500, "Context size has been exceeded.", context(None, None));
        // The members of llama.cpp, and of the provider behind OpenRouter.
        let members = r#"{"error":{"message":"Context size has been exceeded.","n_ctx":8192}}"#;
        check(500, members, context(None, Some(8192)));
        let raw = r#"{"error":{"message":"Provider returned error","code":400,"metadata":{
            "raw":"{\"error\":{\"message\":\"prompt is too long: 9 tokens > 8 maximum\"}}"}}}"#;
        check(400, raw, context(Some(9), Some(8)));
    }

    #[test]
    fn what_could_never_be_let_through_is_an_overflow_and_no_rate() {
        let large =
            "Request too large for m on tokens per minute (TPM): Limit 6000, Requested 7391";
        check(413, &says(large), context(Some(7391), Some(6000)));
        check(429, &says(large), context(Some(7391), Some(6000)));
        let soon = "Rate limit reached on tokens per minute (TPM): Limit 6000, Used 5900, \
                    Requested 700. Please try again in 6s.";
        check(429, &says(soon), Busy);
    }

    #[test]
    fn a_template_that_fails_fails_again_whatever_the_status() {
        for status in [400, 500, 503] {
            check(status, &says("Error: Jinja Exception: Unknown test"), Unfit);
            let roles = "Jinja Exception: Conversation roles must alternate user/assistant";
            check(status, &says(roles), RoleOrder);
        }
        let gateway = format!("{}Conversation roles must alternate", "x".repeat(100_000));
        check(500, &says(&gateway), RoleOrder);
    }

    #[test]
    fn what_the_model_wrote_is_quoted_and_means_nothing() {
        let quoted = "error parsing tool call: raw='{\"prompt is too long', err=unexpected end";
        check(500, &says(quoted), BadCall);
    }

    #[test]
    fn names_of_quotas_and_members_for_the_wait_win_over_words() {
        let google = |quota: &str, message: &str| {
            serde_json::json!([{"error": {"code": 429, "message": message,
            "status": "RESOURCE_EXHAUSTED", "details": [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [{"quotaId": quota}]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "32s"},
            ]}}])
            .to_string()
        };
        let message = "You exceeded your current quota. Please retry in 32s.";
        check(429, &google("GenerateRequestsPerDayPerProjectPerModel-FreeTier", message), Quota);
        check(429, &google("GenerateRequestsPerMinutePerProject", "limit per day"), Busy);
        let delay = r#"{"error":{"message":"limit per day","details":[{"retryDelay":"3.2s"}]}}"#;
        check(429, delay, Busy);
        check(429, &says("limit per day, try again in 3.2s"), Quota);
        check(400, &says("give the rate per day"), Refused);
    }

    #[track_caller]
    fn check_wait(header: Option<u64>, body: &str, expected: Option<u64>) {
        let header = header.map(Duration::from_millis);
        match status_error(429, None, header, body.as_bytes().to_vec()) {
            ProviderError::Status(error) => {
                assert_eq!(error.retry_after, expected.map(Duration::from_millis), "{body}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_longer_of_the_waits_counts_and_a_member_before_the_words() {
        check_wait(None, &says("try again in 2.5s"), Some(2_500));
        check_wait(Some(1_000), &says("try again in 2.5s"), Some(2_500));
        check_wait(Some(3_000), &says("try again in 2.5s"), Some(3_000));
        check_wait(Some(1), &says("busy"), Some(1));
        let delay = r#"{"error":{"message":"retry in 9s","details":[{"retryDelay":"3.2s"}]}}"#;
        check_wait(None, delay, Some(3_200));
        let raw = r#"{"error":{"message":"no","metadata":{"raw":"retry in 9s","retry_after":7}}}"#;
        check_wait(None, raw, Some(7_000));
    }

    /// What an error means that came with status 200.
    #[track_caller]
    fn check_reported(body: &str, status: u16, expected: Meaning) {
        match crate::wire::completion(body.into()) {
            Err(ProviderError::Status(error)) => {
                assert_eq!((error.status, error.meaning), (status, expected), "{body}");
            }
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn an_error_with_status_200_is_judged_by_its_code_and_its_words() {
        check_reported(r#"{"error":"The model has crashed. (Exit code: 11)"}"#, 200, Busy);
        check_reported(r#"{"error":"Model unloaded."}"#, 200, Busy);
        check_reported(r#"{"error":"no capacity","code":503}"#, 503, Busy);
        check_reported(r#"{"error":"no capacity","code":"RESOURCE_EXHAUSTED"}"#, 429, Busy);
        check_reported(r#"{"error":"Loading model"}"#, 200, Loading);
        check_reported(r#"{"error":"Failed to load model"}"#, 200, Refused);
        check_reported(r#"{"error":"Prompt exceeds max length"}"#, 200, context(None, None));
        check_reported(r#"{"error":{"code":"1113","message":"x"}}"#, 200, Quota);
        check_reported(r#"{"error":"no idea"}"#, 200, Unclear);
        let base = r#"{"choices":null,"base_resp":{"status_code":1002,"status_msg":"rpm"}}"#;
        check_reported(base, 200, Busy);
        let native = r#"{"code":"DataInspectionFailed","message":"x","request_id":"1"}"#;
        check_reported(native, 200, Filtered);
        let feedback = r#"{"choices":[],"promptFeedback":{"blockReason":"SAFETY"}}"#;
        check_reported(feedback, 200, Filtered);
        let choice = r#"{"choices":[{"error":{"message":"Overloaded"}}]}"#;
        check_reported(choice, 200, Busy);
    }

    #[test]
    fn the_provider_behind_a_gateway_is_named_and_its_reason_is_shown() {
        let message = |body: &str| ErrorObject::find(body.as_bytes()).expect(body).message;
        let text = r#"{"error":{"message":"Provider returned error","code":429,"metadata":{
            "raw":"m is temporarily rate-limited upstream","provider_name":"BaseTen"}}}"#;
        let shown = "Provider returned error: BaseTen: m is temporarily rate-limited upstream";
        assert_eq!(message(text), shown);
        let json = r#"{"error":{"message":"Provider returned error","code":400,"metadata":{
            "raw":"{\"error\":{\"message\":\"bad\",\"code\":\"content_filter\"}}",
            "provider_name":"OpenAI"}}}"#;
        assert_eq!(message(json), "Provider returned error: OpenAI: bad");
        check(400, json, Filtered);
        let object = r#"{"error":{"message":"x","metadata":{"raw":{"error":{"message":"bad"}}}}}"#;
        assert_eq!(message(object), "x: bad");
        // However deep they stand in each other.
        let deep = format!(
            r#"{}{{"message":"x"}}{}"#,
            r#"{"message":"x","metadata":{"raw":"#.repeat(40),
            "}}".repeat(40)
        );
        assert_eq!(message(&deep), "x");
    }

    #[test]
    fn an_exhausted_quota_is_no_rate_limit() {
        check(429, r#"{"error":{"message":"no","type":"insufficient_quota"}}"#, Quota);
        check(429, r#"{"error":{"message":"no","code":"insufficient_quota"}}"#, Quota);
        check(429, &says("You exceeded your current quota"), Quota);
        let monthly = "You have reached the monthly usage limit for this billing cycle. It will be \
                       refreshed in the next cycle.";
        check(429, &says(monthly), Quota);
        check(402, &says("pay first"), Quota);
        check(429, &says("Rate limit reached, please retry shortly"), Busy);
        check(400, &says("see our billing page"), Refused);
        let groq = "Rate limit reached for model. Please try again in 1s. Need more tokens? \
                    Upgrade at https://console.groq.com/settings/billing";
        check(429, &says(groq), Busy);
        let gemini = "You exceeded your current quota, please check your plan and billing \
                      details. Please retry in 32s.";
        check(429, &says(gemini), Busy);
    }

    #[test]
    fn a_model_that_is_loading_is_no_failure() {
        let body = r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#;
        check(503, body, Loading);
        check(503, r#"{"error":"Model m is currently loading","estimated_time":20}"#, Loading);
        check(503, &says("overloaded"), Busy);
        let failed = says("llama runner process has terminated: error loading model: no memory");
        check(500, &failed, Busy);
        check(503, &failed, Busy);
    }

    #[test]
    fn the_status_decides_where_the_words_do_not() {
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 524, 529] {
            check(status, "busy", Busy);
        }
        for status in [301, 307, 400, 401, 403, 404, 405, 413, 422, 501, 505] {
            check(status, "no", Refused);
        }
    }

    #[test]
    fn an_error_object_is_found_in_every_form() {
        for (body, message, status) in [
            (r#"{"error":{"message":"bad","type":"invalid_request_error"}}"#, "bad", Some(400)),
            (r#"[{"error":{"code":400,"message":"bad"}}]"#, "bad", Some(400)),
            (r#"{"object":"error","message":"bad","type":"BadRequestError"}"#, "bad", Some(400)),
            (r#"{"error":"bad"}"#, "bad", None),
            (r#"{"detail":"bad"}"#, "bad", None),
        ] {
            let error = ErrorObject::find(body.as_bytes()).expect(body);
            assert_eq!((error.message.as_str(), error.status()), (message, status), "{body}");
        }
        assert_eq!(ErrorObject::find(b"<html>"), None);
        assert_eq!(ErrorObject::find(b"{\"a\":1}"), None);
    }
}
