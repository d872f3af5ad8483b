//! The words of endpoints: which of them say what. One row each, and for each a sample in
//! `wire/samples.jsonl`, of which the tests are made.
//!
//! A row is a pattern that stands in the message, in lower case, or a label: the whole of a code,
//! type or status of the error, in any case. Where rows of several meanings fit, the order of
//! [`Says`] decides: the words that quote others come first.

use super::pattern::{self, Overflow};

/// What an endpoint says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Says {
    /// It could not read the call that the model wrote. The model's text is quoted.
    BadCall,
    /// The chat template does not take the roles in this order.
    RoleOrder,
    /// The chat template fails, or the server can't do what the request asks, whatever its status.
    Unfit,
    /// The conversation does not fit.
    Overflow,
    /// A filter refused.
    Filtered,
    /// The quota of a day is used up.
    PerDay,
    /// The account's means are used up.
    Quota,
    /// The rate is too high just now.
    Rate,
    /// The same words for a used-up quota and for a busy minute.
    QuotaOrRate,
    /// A model can't be loaded. Loaded again, it fails again.
    LoadFailed,
    /// The model is being loaded.
    Loading,
    /// It may go better later, if the status does not say otherwise.
    Busy,
}

/// How a row is found.
#[derive(Clone, Copy, Debug)]
enum Sign {
    /// The pattern stands in the message.
    Words(&'static str),
    /// The same, and the numbers in it say that more was asked for than there may ever be.
    Exceeding(&'static str),
    /// The code, type or status of the error.
    Label(&'static str),
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) says: Says,
    sign: Sign,
}

impl Row {
    /// The numbers that the row finds, if it fits. `words` is in lower case.
    pub(crate) fn find(&self, words: &str, labels: &[String]) -> Option<Overflow> {
        match self.sign {
            Sign::Words(pattern) => pattern::find(pattern, words),
            Sign::Exceeding(pattern) => {
                pattern::find(pattern, words).filter(|found| found.is_over())
            }
            Sign::Label(label) => {
                labels.iter().any(|other| other.eq_ignore_ascii_case(label)).then(Overflow::default)
            }
        }
    }
}

/// What the words and labels say, the most telling first, and the numbers of an overflow.
pub(crate) fn find(words: &str, labels: &[String]) -> (Vec<Says>, Overflow) {
    let mut said = Vec::new();
    let mut overflow = Overflow::default();
    for row in ROWS {
        if let Some(found) = row.find(words, labels) {
            said.push(row.says);
            overflow = overflow.or(found);
        }
    }
    said.sort_unstable();
    said.dedup();
    (said, overflow)
}

const fn words(says: Says, pattern: &'static str) -> Row {
    Row { says, sign: Sign::Words(pattern) }
}

const fn exceeding(says: Says, pattern: &'static str) -> Row {
    Row { says, sign: Sign::Exceeding(pattern) }
}

const fn label(says: Says, label: &'static str) -> Row {
    Row { says, sign: Sign::Label(label) }
}

use Says::{
    BadCall, Busy, Filtered, LoadFailed, Loading, Overflow as Over, PerDay, Quota, QuotaOrRate,
    Rate, RoleOrder, Unfit,
};

/// The table. Of an overflow, rows with numbers stand before those without.
pub(crate) const ROWS: &[Row] = &[
    // Groq
    label(BadCall, "tool_use_failed"),
    label(BadCall, "output_parse_failed"),
    words(BadCall, "failed to call a function. please adjust your prompt"),
    // gpt-oss, on vLLM and others
    words(BadCall, "harmonyerror"),
    words(BadCall, "unexpected tokens remaining in message header"),
    words(BadCall, "while expecting start token"),
    // llama.cpp
    words(BadCall, "model produced output that does not match the expected"),
    words(BadCall, "failed to parse input at pos"),
    words(BadCall, "unexpected empty grammar stack"),
    // Ollama
    words(BadCall, "error parsing tool call"),
    words(BadCall, "xml syntax error on line"),
    // LM Studio
    words(BadCall, "failed to parse tool call:"),
    words(BadCall, "model failed to generate a tool call"),
    // The templates of Mistral, Devstral, Gemma and Llama 2
    words(RoleOrder, "roles must alternate"),
    words(RoleOrder, "user, assistant and tool roles are supported"),
    words(RoleOrder, "user and assistant roles are supported"),
    // Mistral
    words(RoleOrder, "expected last role user or tool"),
    words(RoleOrder, "unexpected role"),
    // Perplexity
    words(RoleOrder, "should alternate with assistant"),
    // Gemini
    words(RoleOrder, "turn comes immediately after"),
    // llama.cpp, LM Studio, vLLM
    words(Unfit, "jinja"),
    words(Unfit, "minja"),
    words(Unfit, "raise_exception"),
    words(Unfit, "templateerror"),
    words(Unfit, "chat template"),
    words(Unfit, "system role not supported"),
    words(Unfit, "system message must be at the beginning"),
    // llama.cpp, which says 500 of what it does not take
    words(Unfit, "failed to parse tool call arguments as json"),
    words(Unfit, "failed to parse tools"),
    words(Unfit, "failed to parse messages"),
    words(Unfit, "image input is not supported"),
    // OpenAI and those that follow it
    label(Over, "context_length_exceeded"),
    words(Over, "maximum context length is {window} tokens*for a total of at least {requested} "),
    words(Over, "maximum context length is {window} tokens*you requested {requested} tokens"),
    words(Over, "maximum context length is {window} tokens*requested about {requested} tokens"),
    words(Over, "maximum context length is {window} tokens*resulted in {requested} tokens"),
    words(Over, "maximum context length is {window} tokens*at least {requested} input tokens"),
    words(Over, "maximum context length is {window} tokens*request has {requested} input tokens"),
    words(Over, "maximum context length is {window}"),
    words(Over, "maximum context length of {window} tokens*a total of {requested} tokens"),
    words(Over, "input length ({requested}) exceeds model's maximum context length ({window})"),
    words(Over, "maximum context length"),
    words(Over, "exceeds the context window"),
    words(Over, "reduce the length of the messages"),
    label(Over, "string_above_max_length"),
    label(Over, "request_too_large"),
    // Cerebras
    words(Over, "current length is {requested} while limit is {window}"),
    // vLLM
    words(Over, "prompt (length {requested}) is longer than the maximum model length of {window}"),
    words(Over, "longer than the maximum model length"),
    words(Over, "max_tokens must be at least 1, got -"),
    // SGLang, Together
    words(Over, "input ({requested} tokens) is longer than the model's context length ({window} "),
    // llama.cpp
    label(Over, "exceed_context_size_error"),
    words(Over, "request ({requested} tokens) exceeds the available context size ({window} "),
    words(Over, "exceeds the available context size"),
    words(Over, "context size has been exceeded"),
    words(Over, "input prompt is too big compared to kv size"),
    words(Over, "context shift is disabled"),
    // Ollama. Of the last it is known that the prompt was cut before.
    words(Over, "exceeds the context length"),
    words(Over, "exceeded max context length"),
    words(Over, "no user query found"),
    // LM Studio
    words(Over, "keep the first {requested} tokens when context the overflows*only {window} "),
    words(Over, "when context the overflows"),
    words(Over, "greater than the context length (n_keep: {requested}>= n_ctx: {window})"),
    words(Over, "tokens to keep from the initial prompt is greater than the context length"),
    words(Over, "reached context length of {window} tokens"),
    // Text Generation Inference
    words(Over, "`max_new_tokens` must be <= {window}. given: {requested} `inputs` tokens"),
    words(Over, "`inputs` must have less than {window} tokens. given: {requested}"),
    // TensorRT-LLM, TabbyAPI
    words(Over, "prompt length ({requested}) should not exceed max_input_len ({window})"),
    words(Over, "length {requested} is greater than max_seq_len {window}"),
    // LiteLLM
    words(Over, "contextwindowexceedederror"),
    // Gemini, Vertex AI
    words(Over, "count ({requested}) exceeds the maximum number of tokens allowed ({window})"),
    words(Over, "exceeds the maximum number of tokens allowed {window}"),
    words(Over, "exceeds the maximum number of tokens allowed"),
    words(Over, "input token count is {requested} but model only supports up to {window}"),
    // Anthropic, Fireworks, xAI, Mistral
    words(Over, "prompt is too long: {requested} tokens > {window} maximum"),
    words(Over, "prompt is too long: {requested}, model maximum context length: {window}"),
    words(Over, "prompt is too long"),
    words(Over, "exceed context limit: {requested} + * > {window}"),
    words(Over, "maximum prompt length is {window} but the request contains {requested} tokens"),
    words(Over, "prompt contains {requested} tokens*too large for model with {window} maximum"),
    // Amazon Bedrock
    words(Over, "input is too long for requested model"),
    words(Over, "max input tokens: {window}, request input token count: {requested}"),
    // Moonshot, MiniMax, DashScope, Z.ai
    words(Over, "exceeded model token limit: {window} (requested: {requested})"),
    words(Over, "exceeded model token limit: {window}"),
    words(Over, "context window exceeds limit"),
    label(Over, "1039"),
    words(Over, "range of input length should be [1, {window}]"),
    label(Over, "1261"),
    words(Over, "prompt exceeds max length"),
    label(Over, "model_context_window_exceeded"),
    // GitHub, Cohere, Poolside, Cloudflare
    label(Over, "model_max_prompt_tokens_exceeded"),
    words(Over, "prompt token count of {requested} exceeds the limit of {window}"),
    words(Over, "tokens in the prompt cannot exceed {window} - received {requested}"),
    words(Over, "length {requested} exceeds the maximum allowed input length of {window}"),
    words(Over, "tokens ({requested}) exceeded this model context window limit ({window})"),
    // Groq and OpenAI: more than a minute or a day allows is never let through
    exceeding(Over, "tokens per min*limit {window}, *requested {requested}"),
    exceeding(Over, "tokens per day*limit {window}, *requested {requested}"),
    // OpenAI, Azure, Moonshot
    label(Filtered, "content_filter"),
    label(Filtered, "content_policy_violation"),
    label(Filtered, "responsibleaipolicyviolation"),
    words(Filtered, "content management policy"),
    words(Filtered, "flagged as potentially violating"),
    words(Filtered, "as a result of our safety system"),
    words(Filtered, "it was considered high risk"),
    // LiteLLM
    words(Filtered, "contentpolicyviolationerror"),
    // Z.ai, DashScope, MiniMax, DeepSeek
    label(Filtered, "1301"),
    label(Filtered, "data_inspection_failed"),
    label(Filtered, "datainspectionfailed"),
    words(Filtered, "data may contain inappropriate content"),
    label(Filtered, "1026"),
    label(Filtered, "1027"),
    words(Filtered, "content exists risk"),
    // Gemini, xAI, OpenRouter
    words(Filtered, "blockreason"),
    label(Filtered, "prohibited_content"),
    words(Filtered, "content violates usage guidelines"),
    words(Filtered, "your input was flagged"),
    // Groq, Gemini, OpenRouter, Z.ai
    words(PerDay, "per day"),
    words(PerDay, "-per-day"),
    words(PerDay, "perday"),
    words(PerDay, "daily limit"),
    label(PerDay, "1304"),
    // OpenAI, DeepSeek, Moonshot, MiniMax, Z.ai, Anthropic, OpenRouter
    label(Quota, "insufficient_quota"),
    label(Quota, "insufficient_balance"),
    label(Quota, "billing_hard_limit_reached"),
    label(Quota, "billing_not_active"),
    label(Quota, "quota_exceeded"),
    label(Quota, "exceeded_current_quota_error"),
    label(Quota, "1113"),
    label(Quota, "1008"),
    label(Quota, "1308"),
    label(Quota, "1310"),
    words(Quota, "insufficient balance"),
    words(Quota, "insufficient credit"),
    words(Quota, "credit balance is too low"),
    words(Quota, "out of credit"),
    words(Quota, "requires more credits"),
    words(Quota, "used all available credits"),
    words(Quota, "monthly included credits"),
    words(Quota, "billing cycle"),
    words(Quota, "monthly limit"),
    // OpenAI and Gemini
    words(QuotaOrRate, "exceeded your current quota"),
    words(QuotaOrRate, "usage limit"),
    // OpenAI, Groq and Gemini, which tell in the same breath how to buy more
    label(Rate, "rate_limit_exceeded"),
    label(Rate, "rate_limit_error"),
    words(Rate, "try again in"),
    words(Rate, "retry in"),
    words(Rate, "per min"),
    words(Rate, "perminute"),
    // Servers that load on demand
    words(LoadFailed, "error loading"),
    words(LoadFailed, "failed to load"),
    words(LoadFailed, "failed loading"),
    // llama.cpp, Text Generation Inference
    words(Loading, "loading model"),
    words(Loading, "model is loading"),
    words(Loading, "model is still loading"),
    words(Loading, "currently loading"),
    // LM Studio
    words(Busy, "has crashed"),
    words(Busy, "model unloaded"),
    words(Busy, "model was unloaded"),
    // Anybody, and MiniMax
    words(Busy, "overloaded"),
    words(Busy, "is busy"),
    words(Busy, "rate limit"),
    words(Busy, "too many requests"),
    words(Busy, "temporarily unavailable"),
    words(Busy, "service unavailable"),
    words(Busy, "internal server error"),
    words(Busy, "timed out"),
    words(Busy, "try again later"),
    label(Busy, "1002"),
];

/// The words of OpenAI, Anthropic, llama.cpp, Google, Moonshot and proxies before them for what
/// HTTP has numbers for, parted by spaces.
const STATUSES: &[(u16, &str)] = &[
    (400, "BadRequestError context_length_exceeded exceed_context_size_error INVALID_ARGUMENT"),
    (400, "invalid_request_error"),
    (401, "auth_error authentication_error invalid_api_key UNAUTHENTICATED"),
    (403, "permission_error PERMISSION_DENIED"),
    (404, "model_not_found not_found_error NOT_FOUND"),
    (413, "request_too_large"),
    (429, "insufficient_quota rate_limit_error rate_limit_exceeded RESOURCE_EXHAUSTED"),
    (429, "engine_overloaded_error"),
    (500, "api_error internal_server_error server_error InternalServerError"),
    (503, "service_unavailable unavailable_error UNAVAILABLE"),
    (504, "timeout_error DEADLINE_EXCEEDED"),
    (529, "overloaded_error"),
];

/// The status that the word stands for.
pub(crate) fn status(word: &str) -> Option<u16> {
    let known = STATUSES.iter().find(|(_, words)| words.split(' ').any(|known| known == word));
    known.map(|(status, _)| *status)
}

/// What a finish reason means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    Missing,
    Stop,
    ToolCalls,
    Truncated,
    Filtered,
    Overflow,
    Failed,
}

/// The finish reasons whose meaning is known, parted by spaces. Any other word may mean a finished
/// text.
pub(super) const FINISH_REASONS: &[(Finish, &str)] = &[
    // Some servers write the word null where they mean the value.
    (Finish::Missing, "null"),
    (Finish::Stop, "stop"),
    (Finish::ToolCalls, "tool_calls function_call"),
    // OpenAI, Mistral, Anthropic and Gemini
    (Finish::Truncated, "length max_tokens model_length max_output_tokens"),
    // OpenAI, Anthropic, Z.ai, Amazon Bedrock
    (Finish::Filtered, "content_filter content_filtered refusal sensitive guardrail_intervened"),
    // Gemini
    (Finish::Filtered, "safety recitation blocklist prohibited_content spii image_safety"),
    // Z.ai, Anthropic
    (Finish::Overflow, "model_context_window_exceeded"),
    // Z.ai, DeepSeek, vLLM and SGLang, OpenRouter, Cohere
    (Finish::Failed, "network_error insufficient_system_resource abort aborted error timeout"),
    (Finish::Failed, "cancel cancelled canceled failed"),
    // Gemini
    (Finish::Failed, "malformed_function_call unexpected_tool_call too_many_tool_calls"),
    (Finish::Failed, "missing_thought_signature malformed_response"),
];

/// What the finish reason means, whatever its case; none where nobody knows.
pub(super) fn finish(word: &str) -> Option<Finish> {
    if word.is_empty() {
        return Some(Finish::Missing);
    }
    let is = |known: &str| known.eq_ignore_ascii_case(word);
    let known = FINISH_REASONS.iter().find(|(_, words)| words.split(' ').any(is));
    known.map(|(finish, _)| *finish)
}
