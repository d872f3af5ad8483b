//! Looks whether an endpoint is fit for a run: what a run will need, one thing after the other.
//!
//! Two completions are asked for, in requests like those of a run: with its system prompt and its
//! tools, so that a context too small for them shows. What comes is judged as in a run, and no tool
//! is run.

use std::net::SocketAddr;

use super::args::{Completions, Options, UsageError};
use super::failure::Failure;
use super::inputs;
use super::inputs::Inputs;
use super::ledger::Probed;
use super::object::Object;
use super::providers::{credentials, failure, openai};
use super::publish::unwritten;
use super::report::Reporter;
use super::run::{Prepared, prepare, system_prompt};
use crate::agent::Event;
use crate::error::Error;
use crate::message::{Message, ToolCall};
use crate::openai::{OpenAi, Progress};
use crate::outcome::Outcome;
use crate::provider::{
    Completion, CompletionRequest, Meaning, Notice, Notify, Provider, ProviderError, StatusError,
    ToolDefinition, Usage,
};
use crate::text::one_line;
use crate::time::Deadline;
use crate::tools::{Executor as _, Shell, Toolbox};
use crate::verdict;
use crate::wire::Stream;

/// Everything that is looked at, in this order.
const NAMES: [&str; 8] =
    ["resolve", "connect", "tls", "authenticate", "answer", "tool call", "stream", "usage"];

/// What the model is to say.
const SAY: &str = "Reply with the one word: ready. Call no tool.";

/// What the model is to call, and the path that it is to do so with.
const CALL: &str = "Call the tool read_file with the path uncut-check.txt now.";
const PATH: &str = "uncut-check.txt";

/// Bytes of a text of others that are shown.
const SHOWN_MAX: usize = 60;

/// A prompt of so many bytes a token would be a strange one: fewer tokens mean that it was cut.
const BYTES_PER_TOKEN: usize = 12;

/// Looks, and reports what it finds line by line.
///
/// # Errors
///
/// The first thing that a run would fail of.
pub(super) fn run(
    mut options: Options,
    inputs: &Inputs<'_>,
    reporter: &mut Reporter<'_>,
) -> Result<(), Failure> {
    // Whoever looks wants to know how it is now; but a model that is loading is waited for.
    options.settings.max_retries = 0;
    let deadline = Deadline::after(options.common.timeout);
    let Prepared { processes, key, origin } =
        prepare(&options.common, &options.files(), inputs, reporter)?;
    reporter.publisher.ledger().model = Some(options.model.clone());
    let Completions::Endpoint(endpoint) = &options.completions else {
        return Err(UsageError::new("--check", "needs an endpoint").into());
    };
    let directory = inputs::directory(inputs.base_dir(), &options.directory)?;
    let env = inputs.env.iter().cloned();
    let shell = Shell::new(&directory, env, options.settings.command_timeout, processes);
    let mask = &reporter.mask().clone();
    let prompt = system_prompt(&options, inputs.base_dir(), &directory, shell.is_some(), mask)?;
    let tools = Toolbox::new(&directory, shell, mask);
    let openai = openai(&options, endpoint, inputs, key, reporter)?;
    let credentials = credentials(&options, origin.as_ref());
    let mut check = Check { options: &options, openai, credentials, found: Vec::new(), reporter };
    check.all(&prompt.text, tools.definitions(), deadline)
}

struct Check<'a, 'r> {
    options: &'a Options,
    openai: OpenAi,
    credentials: String,
    /// The names of what has been reported.
    found: Vec<&'static str>,
    reporter: &'a mut Reporter<'r>,
}

impl Check<'_, '_> {
    fn all(
        &mut self,
        system_prompt: &str,
        tools: &[ToolDefinition],
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let said = self.complete(SAY, system_prompt, tools, deadline);
        let progress = self.openai.progress();
        self.reached(&progress)?;
        let said = match said {
            Ok(said) => said,
            Err(error) => return self.fail(failing(&progress, &error, self), error),
        };
        self.ok("authenticate", "the endpoint takes the credentials, or asks for none")?;
        if let Err(refusal) = self.judge(&said, tools) {
            return self.fail("answer", refusal.into());
        }
        self.ok("answer", &self.answer(&said))?;
        let called = match self.complete(CALL, system_prompt, tools, deadline) {
            Ok(called) => called,
            Err(error) => return self.fail("tool call", error),
        };
        if let Err(refusal) = self.judge(&called, tools) {
            return self.fail("tool call", refusal.into());
        }
        self.tool_call(&called)?;
        self.ok("stream", self.stream(&progress))?;
        let bytes = system_prompt.len() + tools.iter().map(length).sum::<usize>();
        if let Some(warning) = cut(called.usage, bytes) {
            self.reporter.warning(&warning);
        }
        self.ok("usage", &usage(called.usage))
    }

    fn complete(
        &mut self,
        prompt: &str,
        system_prompt: &str,
        tools: &[ToolDefinition],
        deadline: Deadline,
    ) -> Result<Completion, Error> {
        self.reporter.doing("waiting for the model");
        let reporter = std::cell::RefCell::new(&mut *self.reporter);
        let notify = |notice: &Notice<'_>| reporter.borrow_mut().observe(&Event::Notice(notice));
        let completion = self.openai.complete(&CompletionRequest {
            model: &self.options.model,
            system_prompt,
            messages: &[Message::user(prompt)],
            closing: None,
            tools,
            max_tokens: self.options.settings.max_tokens,
            deadline,
            notify: Notify(&notify),
        })?;
        Ok(completion)
    }

    fn judge(
        &self,
        completion: &Completion,
        tools: &[ToolDefinition],
    ) -> Result<verdict::Verdict, verdict::Refusal> {
        let settings = &self.options.settings;
        verdict::judge(completion, settings.max_tokens, tools, &settings.accept)
    }

    /// Reports the way to the endpoint as far as the first request came on it.
    fn reached(&mut self, progress: &Progress) -> Result<(), Failure> {
        if !progress.addresses.is_empty() {
            let all: Vec<String> = progress.addresses.iter().map(SocketAddr::to_string).collect();
            self.ok("resolve", &all.join(", "))?;
        }
        if let Some(address) = progress.connected {
            self.ok("connect", &address.to_string())?;
            if progress.tls {
                self.ok("tls", "the certificate is trusted")?;
            } else if !self.is_https() {
                self.ok("tls", "none, as the base URL says http://")?;
            }
        }
        Ok(())
    }

    fn is_https(&self) -> bool {
        match &self.options.completions {
            Completions::Endpoint(endpoint) => endpoint.is_https(),
            Completions::Replay(_) => false,
        }
    }

    fn answer(&self, said: &Completion) -> String {
        let model = said.model.as_deref().unwrap_or(&self.options.model);
        let model = self.shown(model);
        match said.message.tool_calls.first() {
            None => format!("{model} says \"{}\"", self.shown(verdict::answer_text(&said.message))),
            Some(call) => {
                format!("{model} calls {}, and was asked to call none", self.shown(&call.name))
            }
        }
    }

    fn tool_call(&mut self, called: &Completion) -> Result<(), Failure> {
        let is_right = |call: &ToolCall| call.name == "read_file" && call.arguments.contains(PATH);
        match called.message.tool_calls.first() {
            Some(call) if is_right(call) => {
                let arguments = self.shown(&call.arguments);
                self.ok("tool call", &format!("read_file {arguments}"))
            }
            Some(call) => {
                let (name, arguments) = (self.shown(&call.name), self.shown(&call.arguments));
                let found = format!("it was asked for read_file and called {name} {arguments}");
                self.ok("tool call", &found)
            }
            None => {
                let said = self.shown(verdict::answer_text(&called.message));
                let what = format!("the model was asked to call a tool and said \"{said}\"");
                let advice = "turn tool calling on in the server (llama.cpp: --jinja; vLLM: \
                              --enable-auto-tool-choice and --tool-call-parser), or take a model \
                              that was trained for it";
                let outcome = Outcome::Protocol;
                self.failed("tool call", Failure { outcome, what, advice: Some(advice.to_owned()) })
            }
        }
    }

    fn stream(&self, progress: &Progress) -> &'static str {
        if progress.streamed {
            "completions come as a stream"
        } else if self.options.settings.form.stream == Stream::Off {
            "not asked for"
        } else {
            "completions come as one body; a slow model is silent until it is done, see \
             --idle-timeout"
        }
    }

    /// Text of others, short and without secrets.
    fn shown(&self, text: &str) -> String {
        one_line(&self.reporter.mask().text(text), SHOWN_MAX)
    }

    fn ok(&mut self, name: &'static str, found: &str) -> Result<(), Failure> {
        self.report(name, Outcome::Ok, found)
    }

    fn fail(&mut self, name: &'static str, error: Error) -> Result<(), Failure> {
        let failure = failure(error, &self.credentials);
        self.failed(name, failure)
    }

    /// Reports what is wrong, and what was not looked at because of that.
    fn failed(&mut self, name: &'static str, failure: Failure) -> Result<(), Failure> {
        let advice = failure.advice.as_ref().map(|advice| format!("; {advice}"));
        let found = format!("{}{}", failure.what, advice.unwrap_or_default());
        self.report(name, failure.outcome, &found)?;
        for name in NAMES {
            if !self.found.contains(&name) {
                self.print(&format!("{name}: not checked\n"))?;
            }
        }
        Err(failure)
    }

    fn report(&mut self, name: &'static str, outcome: Outcome, found: &str) -> Result<(), Failure> {
        self.found.push(name);
        let found = self.reporter.line(found);
        let line = format!("{name}: {outcome}: {found}\n");
        let probed = Probed { name, outcome, found };
        self.reporter.event("check", probed.add_to(Object::new()));
        self.reporter.publisher.ledger().probed(probed);
        self.print(&line)
    }

    fn print(&mut self, line: &str) -> Result<(), Failure> {
        if !self.reporter.publisher.is_text() {
            return Ok(());
        }
        self.reporter.print_text(line).map_err(|error| unwritten("stdout", &error))
    }
}

/// Which of the things that are looked at a failed request is about.
fn failing(progress: &Progress, error: &Error, check: &Check<'_, '_>) -> &'static str {
    match error {
        Error::Provider(ProviderError::Status(StatusError {
            status: 401 | 403,
            meaning: Meaning::Refused,
            ..
        })) => "authenticate",
        Error::Provider(ProviderError::Proxy { .. }) => "connect",
        _ if progress.addresses.is_empty() => "resolve",
        _ if progress.connected.is_none() => "connect",
        _ if check.is_https() && !progress.tls => "tls",
        _ => "answer",
    }
}

fn length(tool: &ToolDefinition) -> usize {
    tool.name.len() + tool.description.len() + tool.parameters.as_str().len()
}

/// What the usage gives away about a prompt of so many bytes.
fn cut(usage: Usage, bytes: usize) -> Option<String> {
    let tokens = usage.prompt_tokens.filter(|tokens| *tokens < (bytes / BYTES_PER_TOKEN) as u64)?;
    Some(format!(
        "{tokens} prompt tokens for {bytes} bytes: the server seems to cut the prompt silently; \
         raise its context size (Ollama: num_ctx)"
    ))
}

fn usage(usage: Usage) -> String {
    match (usage.prompt_tokens, usage.completion_tokens) {
        (Some(prompt), Some(completion)) => {
            format!("{prompt} prompt tokens and {completion} of the completion")
        }
        _ => "not reported; --max-total-tokens can't count, and a prompt that the server cuts is \
              not noticed"
            .to_owned(),
    }
}
