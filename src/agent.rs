//! The loop: one completion after the other, until there is an answer or a reason why not.
//!
//! It does nothing itself. Completions come from a [`Provider`], tools run in an [`Executor`],
//! messages go through a [`Session`], and whoever wants to watch is told by [`Event`]s.

use std::cell::RefCell;
use std::num::{NonZeroU32, NonZeroU64};

use crate::error::Error;
use crate::instructions::Loaded;
use crate::message::{AssistantMessage, Message, ToolCall};
use crate::provider::{
    Completion, CompletionRequest, FinishReason, Notice, Notify, Provider, Usage,
};
use crate::session::{Record, Session};
use crate::time::Deadline;
use crate::tools::{Executor, Output};
use crate::verdict::{self, Accept, Verdict};

/// What a run is made of.
pub struct Agent<'a> {
    /// Where completions come from.
    pub provider: &'a mut dyn Provider,
    /// What runs the tool calls.
    pub executor: &'a mut dyn Executor,
    /// The conversation so far, and where it is logged.
    pub session: &'a mut Session,
    /// The limits of the run.
    pub options: RunOptions<'a>,
    /// Is told what happens, while it happens.
    pub observe: &'a mut dyn FnMut(Event<'_>),
}

/// The limits of a run.
#[derive(Clone, Debug)]
pub struct RunOptions<'a> {
    /// The model's id.
    pub model: &'a str,
    /// Stands before the conversation in every request.
    pub system_prompt: &'a str,
    /// Completions per run.
    pub max_steps: NonZeroU32,
    /// Tokens of one completion.
    pub max_tokens: Option<NonZeroU64>,
    /// Tokens of the run, prompts and completions, as the endpoint reports them.
    pub max_total_tokens: Option<NonZeroU64>,
    /// When the run must have ended.
    pub deadline: Deadline,
    /// Oddities of the endpoint to live with.
    pub accept: Accept,
}

/// What happens in a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A completion is asked for.
    StepStarted {
        /// Counted from 1.
        step: u32,
    },
    /// The completion is there; whether it is accepted is not yet said.
    Completed {
        /// Counted from 1.
        step: u32,
        /// Why the model stopped.
        finish_reason: &'a FinishReason,
        /// What it cost.
        usage: Usage,
    },
    /// A tool call is about to run.
    ToolStarted {
        /// Counted from 1.
        step: u32,
        /// The call.
        call: &'a ToolCall,
    },
    /// A tool call has run.
    ToolEnded {
        /// Counted from 1.
        step: u32,
        /// The call.
        call: &'a ToolCall,
        /// What it came to.
        output: &'a Output,
    },
    /// The result of a tool call brought along what an AGENTS.md file says.
    Instructions(&'a Loaded),
    /// What the provider has to tell while the completion is waited for.
    Notice(&'a Notice<'a>),
    /// Something that is worth knowing and ends nothing.
    Warning(&'a str),
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The model's last words, without white space at the end.
    pub text: String,
    /// How many completions it took.
    pub steps: u32,
}

/// The same call with the same result so many times running is a loop.
const STUCK_AFTER: u32 = 8;

impl Agent<'_> {
    /// Takes a prompt to its answer.
    ///
    /// In each step the budgets are checked, the whole conversation is sent, and the completion is
    /// judged, logged together with the verdict, and only then acted upon. So the log may end in a
    /// message that was refused: it is there for the reader, marked, and no part of the
    /// conversation. A tool result is logged before the next call runs.
    ///
    /// # Errors
    ///
    /// Everything that ends a run without an answer. What was logged until then stays.
    pub fn run(&mut self, prompt: &str) -> Result<Answer, Error> {
        let interrupted = self.session.answer_interrupted_calls()?;
        if interrupted > 0 {
            self.warn(&format!(
                "{interrupted} tool calls of an earlier run have no result; the model is told \
                 that they may or may not have taken effect"
            ));
        }
        self.ask(prompt)?;
        let mut spent = Spent::default();
        let mut repeats = Repeats::default();
        for step in 1..=self.options.max_steps.get() {
            self.check_budgets(&spent)?;
            let completion = self.complete(step)?;
            self.count(&mut spent, completion.usage);
            let (verdict, message) = self.judge_and_log(completion)?;
            if verdict == Verdict::Answer {
                return Ok(Answer { text: message.as_text().trim_end().to_owned(), steps: step });
            }
            for call in &message.tool_calls {
                self.execute(step, call, &mut repeats)?;
            }
        }
        Err(Error::MaxSteps { max_steps: self.options.max_steps.get() })
    }

    /// Adds the prompt, unless it is already waiting there: a run that ended before the model said
    /// anything, and is tried again, asks once and not twice.
    fn ask(&mut self, prompt: &str) -> Result<(), Error> {
        let prompt = Message::user(prompt);
        if self.session.messages().last() != Some(&prompt) {
            self.session.append(prompt.into())?;
        }
        Ok(())
    }

    fn check_budgets(&self, spent: &Spent) -> Result<(), Error> {
        if self.options.deadline.has_passed() {
            return Err(Error::Deadline);
        }
        match self.options.max_total_tokens {
            Some(limit) if spent.total >= limit.get() => {
                Err(Error::MaxTokensTotal { spent: spent.total, limit: limit.get() })
            }
            _ => Ok(()),
        }
    }

    fn complete(&mut self, step: u32) -> Result<Completion, Error> {
        (self.observe)(Event::StepStarted { step });
        let observe = RefCell::new(&mut *self.observe);
        let notify = |notice: &Notice<'_>| (observe.borrow_mut())(Event::Notice(notice));
        let completion = self.provider.complete(&CompletionRequest {
            model: self.options.model,
            system_prompt: self.options.system_prompt,
            messages: self.session.messages(),
            tools: self.executor.definitions(),
            max_tokens: self.options.max_tokens,
            deadline: self.options.deadline,
            notify: Notify(&notify),
        })?;
        (self.observe)(Event::Completed {
            step,
            finish_reason: &completion.finish_reason,
            usage: completion.usage,
        });
        Ok(completion)
    }

    /// Adds a completion to what is spent, and says what its numbers give away.
    fn count(&mut self, spent: &mut Spent, usage: Usage) {
        if let (Some(before), Some(now)) = (spent.last_prompt, usage.prompt_tokens)
            && now < before
        {
            self.warn(&format!(
                "the endpoint counted {before} prompt tokens and now {now}, although the \
                 conversation grew: it seems to cut the prompt silently; raise its context size \
                 (Ollama: num_ctx)"
            ));
        }
        let unknown = usage.prompt_tokens.is_none() || usage.completion_tokens.is_none();
        if unknown && self.options.max_total_tokens.is_some() && !spent.unknown {
            self.warn(
                "the endpoint does not report all of its tokens; --max-total-tokens counts only \
                 those that it reports",
            );
        }
        spent.unknown |= unknown;
        spent.last_prompt = usage.prompt_tokens.or(spent.last_prompt);
        for tokens in [usage.prompt_tokens, usage.completion_tokens].into_iter().flatten() {
            spent.total = spent.total.saturating_add(tokens);
        }
    }

    /// Returns the message as it was logged, with the ids that its results are to carry.
    fn judge_and_log(
        &mut self,
        completion: Completion,
    ) -> Result<(Verdict, AssistantMessage), Error> {
        let tools = self.executor.definitions();
        let judged =
            verdict::judge(&completion, self.options.max_tokens, tools, &self.options.accept);
        let mut message = completion.message;
        if judged.is_ok() {
            verdict::make_ids_unique(&mut message, self.session.messages().len());
        }
        self.session.append(Record {
            message: Message::Assistant(message.clone()),
            finish_reason: completion.finish_reason.word().map(str::to_owned),
            usage: completion.usage,
            model: completion.model,
            refused: judged.as_ref().err().map(verdict::Refusal::outcome),
        })?;
        Ok((judged?, message))
    }

    fn execute(&mut self, step: u32, call: &ToolCall, repeats: &mut Repeats) -> Result<(), Error> {
        if self.options.deadline.has_passed() {
            return Err(Error::Deadline);
        }
        (self.observe)(Event::ToolStarted { step, call });
        let output = self.executor.execute(call, self.options.deadline);
        (self.observe)(Event::ToolEnded { step, call, output: &output });
        for told in self.executor.take_instructions() {
            match told {
                Ok(loaded) => (self.observe)(Event::Instructions(&loaded)),
                Err(unusable) => self.warn(&format!("{unusable}; the model is told so")),
            }
        }
        let times = repeats.count(call, &output.text);
        self.session.append(Message::tool_result(call, output.text).into())?;
        if times >= STUCK_AFTER {
            return Err(Error::Stuck { tool: call.name.clone(), times });
        }
        Ok(())
    }

    fn warn(&mut self, warning: &str) {
        (self.observe)(Event::Warning(warning));
    }
}

/// What the run has used so far.
#[derive(Default)]
struct Spent {
    total: u64,
    last_prompt: Option<u64>,
    /// Some completion came without its numbers.
    unknown: bool,
}

/// The last call with its result, and how many times running it has been made.
#[derive(Default)]
struct Repeats {
    last: Option<(String, String, String)>,
    times: u32,
}

impl Repeats {
    fn count(&mut self, call: &ToolCall, result: &str) -> u32 {
        let same = self.last.as_ref().is_some_and(|(name, arguments, earlier)| {
            *name == call.name && *arguments == call.arguments && earlier == result
        });
        if same {
            self.times += 1;
        } else {
            self.last = Some((call.name.clone(), call.arguments.clone(), result.to_owned()));
            self.times = 1;
        }
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Content;
    use crate::provider::{ProviderError, ToolDefinition};
    use crate::verdict::{Refusal, Truncation};

    /// Serves completions in order and keeps what it was sent.
    #[derive(Default)]
    struct Script {
        completions: Vec<Completion>,
        seen: Vec<Vec<Message>>,
    }

    impl Provider for Script {
        fn complete(
            &mut self,
            request: &CompletionRequest<'_>,
        ) -> Result<Completion, ProviderError> {
            self.seen.push(request.messages.to_vec());
            if self.completions.is_empty() {
                return Err(ProviderError::Replay { detail: "the script is over".to_owned() });
            }
            Ok(self.completions.remove(0))
        }
    }

    /// Answers each call with its arguments, and counts.
    #[derive(Default)]
    struct Echo {
        executed: Vec<String>,
    }

    impl Executor for Echo {
        fn definitions(&self) -> &[ToolDefinition] {
            &[]
        }

        fn execute(&mut self, call: &ToolCall, _: Deadline) -> Output {
            self.executed.push(call.id.clone());
            Output { text: format!("did {}", call.arguments), summary: "done".to_owned() }
        }
    }

    fn says(word: &str, message: AssistantMessage) -> Completion {
        let finish_reason = FinishReason::parse(Some(word));
        Completion { message, finish_reason, usage: Usage::default(), model: None }
    }

    fn answer(text: &str) -> Completion {
        says("stop", AssistantMessage::text(text))
    }

    fn call(id: &str, arguments: &str) -> Completion {
        let call = ToolCall::new(id, "shell", arguments);
        says("tool_calls", AssistantMessage::calls(vec![call]))
    }

    fn costing(prompt: u64, mut completion: Completion) -> Completion {
        completion.usage.prompt_tokens = Some(prompt);
        completion.usage.completion_tokens = Some(10);
        completion
    }

    fn options() -> RunOptions<'static> {
        RunOptions {
            model: "m",
            system_prompt: "s",
            max_steps: NonZeroU32::MIN.saturating_add(11),
            max_tokens: None,
            max_total_tokens: None,
            deadline: Deadline::NONE,
            accept: Accept::default(),
        }
    }

    struct Ran {
        result: Result<Answer, Error>,
        executed: Vec<String>,
        seen: Vec<Vec<Message>>,
        warnings: Vec<String>,
        conversation: Vec<Message>,
    }

    fn run_with(completions: Vec<Completion>, set: impl FnOnce(&mut RunOptions<'_>)) -> Ran {
        let mut provider = Script { completions, ..Script::default() };
        let mut executor = Echo::default();
        let mut session = Session::ephemeral();
        let mut warnings = Vec::new();
        let mut options = options();
        set(&mut options);
        let result = Agent {
            provider: &mut provider,
            executor: &mut executor,
            session: &mut session,
            options,
            observe: &mut |event| {
                if let Event::Warning(warning) = event {
                    warnings.push(warning.to_owned());
                }
            },
        }
        .run("go");
        Ran {
            result,
            executed: executor.executed,
            seen: provider.seen,
            warnings,
            conversation: session.messages().to_vec(),
        }
    }

    fn run(completions: Vec<Completion>) -> Ran {
        run_with(completions, |_| {})
    }

    #[test]
    fn a_call_is_run_and_its_result_goes_back_before_the_answer() {
        let ran = run(vec![call("c1", "{}"), answer("fine\n")]);
        assert_eq!(ran.result.unwrap(), Answer { text: "fine".to_owned(), steps: 2 });
        let asked = ToolCall::new("c1", "shell", "{}");
        let conversation = [
            Message::user("go"),
            Message::Assistant(AssistantMessage::calls(vec![asked.clone()])),
            Message::tool_result(&asked, "did {}"),
        ];
        assert_eq!(ran.seen, [&conversation[..1], &conversation[..]]);
        assert_eq!(ran.conversation.len(), 4);
    }

    #[test]
    fn all_calls_of_a_message_are_checked_before_the_first_is_run() {
        let calls = vec![ToolCall::new("c1", "shell", "{}"), ToolCall::new("c2", "", "{}")];
        let ran = run(vec![says("tool_calls", AssistantMessage::calls(calls))]);
        assert_eq!(ran.result.unwrap_err().outcome(), crate::outcome::Outcome::Protocol);
        assert!(ran.executed.is_empty());
    }

    #[test]
    fn a_refused_message_is_no_part_of_the_conversation() {
        let ran = run(vec![says("length", AssistantMessage::text("half an ans"))]);
        let error = ran.result.unwrap_err();
        let cut = Truncation::FinishReason("length".to_owned());
        assert!(matches!(error, Error::Refused(Refusal::Truncated(c)) if c == cut));
        assert_eq!(ran.conversation, [Message::user("go")]);
    }

    #[test]
    fn results_go_to_their_calls_when_ids_stand_twice() {
        let calls = vec![ToolCall::new("c", "shell", "1"), ToolCall::new("c", "shell", "2")];
        let ran = run(vec![says("stop", AssistantMessage::calls(calls)), answer("ok")]);
        let results: Vec<_> = ran.conversation[2..4]
            .iter()
            .map(|message| match message {
                Message::Tool(result) => (result.tool_call_id.as_str(), result.content.as_str()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(results, [("c", "did 1"), ("c_2", "did 2")]);
        assert_eq!(ran.executed, ["c", "c_2"]);
    }

    #[test]
    fn the_last_step_may_not_end_in_calls() {
        let two = NonZeroU32::MIN.saturating_add(1);
        let script = vec![call("a", "1"), call("b", "2"), answer("too late")];
        let ran = run_with(script, |options| options.max_steps = two);
        assert!(matches!(ran.result, Err(Error::MaxSteps { max_steps: 2 })));
        assert_eq!(ran.executed, ["a", "b"]);
    }

    #[test]
    fn eight_times_the_same_is_stuck_and_a_different_call_in_between_is_not() {
        let ran = run((0..8).map(|n| call(&n.to_string(), "{}")).collect());
        assert!(matches!(ran.result, Err(Error::Stuck { times: 8, .. })));
        let mut script: Vec<_> = (0..7).map(|n| call(&n.to_string(), "{}")).collect();
        script.extend([call("x", "other"), call("y", "{}"), answer("ok")]);
        assert!(run(script).result.is_ok());
    }

    #[test]
    fn a_token_budget_ends_the_run_before_the_next_request() {
        let script = vec![costing(90, call("a", "1")), costing(100, answer("late"))];
        let ran = run_with(script, |options| options.max_total_tokens = NonZeroU64::new(100));
        assert!(matches!(ran.result, Err(Error::MaxTokensTotal { spent: 100, limit: 100 })));
        assert_eq!(ran.seen.len(), 1);
    }

    #[test]
    fn a_budget_that_nobody_counts_is_warned_of_once() {
        let script = vec![call("a", "1"), call("b", "2"), answer("ok")];
        let ran = run_with(script, |options| options.max_total_tokens = NonZeroU64::new(100));
        assert!(ran.result.is_ok());
        assert_eq!(ran.warnings.len(), 1, "{:?}", ran.warnings);
    }

    #[test]
    fn prompt_tokens_that_fall_are_warned_of() {
        let script = vec![
            costing(90, call("a", "1")),
            costing(91, call("b", "2")),
            costing(40, answer("ok")),
        ];
        let ran = run(script);
        assert_eq!(ran.warnings.len(), 1);
        assert!(ran.warnings[0].contains("counted 91 prompt tokens and now 40"));
    }

    #[test]
    fn a_deadline_that_has_passed_sends_nothing() {
        let passed = Deadline::after(Some(std::time::Duration::ZERO));
        let ran = run_with(vec![answer("ok")], |options| options.deadline = passed);
        assert!(matches!(ran.result, Err(Error::Deadline)));
        assert!(ran.seen.is_empty());
    }

    /// Takes as long as the run may.
    struct Slow;

    impl Executor for Slow {
        fn definitions(&self) -> &[ToolDefinition] {
            &[]
        }

        fn execute(&mut self, call: &ToolCall, deadline: Deadline) -> Output {
            while !deadline.has_passed() {
                std::hint::spin_loop();
            }
            Output { text: call.id.clone(), summary: String::new() }
        }
    }

    #[test]
    fn no_call_is_run_after_the_deadline() {
        let calls = vec![ToolCall::new("a", "shell", "1"), ToolCall::new("b", "shell", "2")];
        let completions = vec![says("stop", AssistantMessage::calls(calls))];
        let mut session = Session::ephemeral();
        let mut agent = Agent {
            provider: &mut Script { completions, ..Script::default() },
            executor: &mut Slow,
            session: &mut session,
            options: RunOptions {
                deadline: Deadline::after(Some(std::time::Duration::from_millis(100))),
                ..options()
            },
            observe: &mut |_| {},
        };
        assert!(matches!(agent.run("go"), Err(Error::Deadline)));
        assert_eq!(session.messages().len(), 3);
    }

    #[test]
    fn a_prompt_that_waits_for_its_answer_is_not_asked_twice() {
        let mut session = Session::ephemeral();
        session.append(Message::user("go").into()).unwrap();
        for prompt in ["go", "go", "go on"] {
            let mut agent = Agent {
                provider: &mut Script::default(),
                executor: &mut Echo::default(),
                session: &mut session,
                options: options(),
                observe: &mut |_| {},
            };
            assert!(agent.run(prompt).is_err());
        }
        assert_eq!(session.messages(), [Message::user("go"), Message::user("go on")]);
    }

    #[test]
    fn a_provider_error_ends_the_run_and_keeps_what_was_logged() {
        let ran = run(vec![call("a", "{}")]);
        assert!(matches!(ran.result, Err(Error::Provider(ProviderError::Replay { .. }))));
        assert_eq!(ran.conversation.len(), 3);
        assert_eq!(ran.conversation[0], Message::User(Content::from("go".to_owned())));
    }
}
