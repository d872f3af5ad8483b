//! The loop: one completion after the other, until there is an answer or a reason why not.
//!
//! It does nothing itself. Completions come from a [`Provider`], tools run in an [`Executor`],
//! messages go through a [`Session`], and whoever wants to watch is told by [`Event`]s.

mod counters;
mod event;

use std::cell::RefCell;
use std::num::{NonZeroU32, NonZeroU64};

use crate::error::Error;
use crate::message::{AssistantMessage, Message, ToolCall};
use crate::provider::{Completion, CompletionRequest, Notice, Notify, Provider};
use crate::session::{NOT_STARTED, Record, Session};
use crate::time::Deadline;
use crate::tools::{Executor, Output};
use crate::verdict::{self, Accept, Verdict};

use counters::{Repeats, Spent};
pub use event::Event;

/// What a run is made of.
pub struct Agent<'a> {
    /// Where completions come from.
    pub provider: &'a mut dyn Provider,
    /// What runs the tool calls.
    pub executor: &'a mut dyn Executor,
    /// The conversation so far, and where it is logged.
    pub session: &'a mut Session,
    /// What an answer has to pass; none takes every answer.
    pub verify: Option<Verify<'a>>,
    /// The limits of the run.
    pub options: RunOptions<'a>,
    /// Is told what happens, while it happens.
    pub observe: &'a mut dyn FnMut(Event<'_>),
}

/// What an answer has to pass before it is one.
pub struct Verify<'a> {
    /// What is run, as the model is told it.
    pub command: &'a str,
    /// So many answers may fail, then the run does.
    pub attempts: NonZeroU32,
    /// Runs it, not on past the deadline.
    pub run: &'a mut dyn FnMut(Deadline) -> Verified,
}

/// What came of verifying an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Whether the answer counts.
    pub passed: bool,
    /// What was printed, and how it ended.
    pub output: Output,
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
    /// After this no step begins, and no tool call goes on: what is left until the deadline is for
    /// the model to sum up.
    pub work_until: Deadline,
    /// Oddities of the endpoint to live with.
    pub accept: Accept,
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

/// Asks for the summary of a run that ends without an answer.
const SUM_UP: &str = "The run ends here: no further step is allowed. Call no tool. In a few \
    sentences, say what was done, what is left to do, and what whoever goes on should know.";

/// The result of a call that there was no time for.
const NO_TIME: &str = "not run: the run's time is over";

impl Agent<'_> {
    /// Takes a prompt to its answer.
    ///
    /// In each step the budgets are checked, the whole conversation is sent, and the completion is
    /// judged, logged together with the verdict, and only then acted upon. So the log may end in a
    /// message that was refused: it is there for the reader, marked, and no part of the
    /// conversation. A tool result is logged before the next call runs.
    ///
    /// When the steps or the time are used up, the model is asked once to sum up, which is not a
    /// step: see [`Event::SummedUp`].
    ///
    /// # Errors
    ///
    /// Everything that ends a run without an answer. What was logged until then stays.
    pub fn run(&mut self, prompt: &str) -> Result<Answer, Error> {
        if let Some(unanswered) = self.session.answer_interrupted_calls()? {
            self.warn(&unanswered.to_string());
        }
        self.ask(prompt)?;
        let mut spent = Spent::default();
        let result = self.take_steps(&mut spent);
        if let Err(Error::MaxSteps { .. } | Error::Deadline) = result
            && !self.options.deadline.has_passed()
            && self.check_tokens(&spent).is_ok()
        {
            self.sum_up();
        }
        result
    }

    /// Adds the prompt, unless it still waits there for its answer: a run that is tried again asks
    /// once and not twice, and goes on behind the calls that were made for it.
    fn ask(&mut self, prompt: &str) -> Result<(), Error> {
        let prompt = Message::user(prompt);
        let latest = self.session.messages().iter().rev().find(|message| match message {
            Message::System(_) | Message::User(_) => true,
            Message::Assistant(message) => message.tool_calls.is_empty(),
            Message::Tool(_) => false,
        });
        if latest != Some(&prompt) {
            self.session.append(&prompt.into())?;
        }
        Ok(())
    }

    fn take_steps(&mut self, spent: &mut Spent) -> Result<Answer, Error> {
        let mut repeats = Repeats::default();
        let mut attempt = 0;
        for step in 1..=self.options.max_steps.get() {
            if self.options.work_until.has_passed() {
                return Err(Error::Deadline);
            }
            self.check_tokens(spent)?;
            let completion = self.complete(step)?;
            let budget = self.options.max_total_tokens.is_some();
            for warning in spent.add(completion.usage, budget) {
                self.warn(&warning);
            }
            let (verdict, message) = self.judge_and_log(completion)?;
            if verdict == Verdict::Answer {
                attempt += 1;
                if self.verify(attempt)? {
                    let text = verdict::answer_text(&message).trim_end().to_owned();
                    // A command may have taken the log away since, also that of the gate.
                    self.session.confirm()?;
                    return Ok(Answer { text, steps: step });
                }
            }
            self.execute_all(step, &message.tool_calls, &mut repeats)?;
        }
        Err(Error::MaxSteps { max_steps: self.options.max_steps.get() })
    }

    /// Runs the calls in order. Where the run ends at one of them, those behind it are recorded as
    /// not run: without results the conversation could not go on, and they had no effect.
    fn execute_all(
        &mut self,
        step: u32,
        calls: &[ToolCall],
        repeats: &mut Repeats,
    ) -> Result<(), Error> {
        let mut end = None;
        for call in calls {
            if end.is_none() && self.options.work_until.has_passed() {
                end = Some(Error::Deadline);
            }
            let text = match end {
                None => {
                    end = self.execute(step, call, repeats)?;
                    continue;
                }
                Some(Error::Deadline) => NO_TIME,
                Some(_) => NOT_STARTED,
            };
            self.session.append(&Message::tool_result(call, text).into())?;
        }
        end.map_or(Ok(()), Err)
    }

    fn check_tokens(&self, spent: &Spent) -> Result<(), Error> {
        match self.options.max_total_tokens {
            Some(limit) if spent.total >= limit.get() => {
                Err(Error::MaxTokensTotal { spent: spent.total, limit: limit.get() })
            }
            _ => Ok(()),
        }
    }

    fn complete(&mut self, step: u32) -> Result<Completion, Error> {
        (self.observe)(Event::StepStarted { step });
        let completion = self.request(None)?;
        (self.observe)(Event::Completed {
            step,
            finish_reason: &completion.finish_reason,
            usage: completion.usage,
        });
        Ok(completion)
    }

    fn request(&mut self, closing: Option<&Message>) -> Result<Completion, Error> {
        let observe = RefCell::new(&mut *self.observe);
        let notify = |notice: &Notice<'_>| (observe.borrow_mut())(Event::Notice(notice));
        let completion = self.provider.complete(&CompletionRequest {
            model: self.options.model,
            system_prompt: self.options.system_prompt,
            messages: self.session.messages(),
            closing,
            tools: self.executor.definitions(),
            max_tokens: self.options.max_tokens,
            deadline: self.options.deadline,
            notify: Notify(&notify),
        })?;
        Ok(completion)
    }

    /// Returns the message as it was logged, with the ids that its results are to carry.
    fn judge_and_log(
        &mut self,
        mut completion: Completion,
    ) -> Result<(Verdict, AssistantMessage), Error> {
        let judged = self.judge(&completion);
        if judged.is_ok() {
            verdict::make_ids_unique(&mut completion.message, self.session.messages().len());
        }
        let refused = judged.as_ref().err().map(verdict::Refusal::outcome);
        let record = Record { refused, ..record(completion) };
        self.session.append(&record)?;
        let Message::Assistant(message) = record.message else {
            unreachable!("the message of a completion is the model's")
        };
        Ok((judged?, message))
    }

    /// Gives why the run ends here, if it does.
    fn execute(
        &mut self,
        step: u32,
        call: &ToolCall,
        repeats: &mut Repeats,
    ) -> Result<Option<Error>, Error> {
        (self.observe)(Event::ToolStarted { step, call });
        let output = self.executor.execute(call, self.options.work_until);
        (self.observe)(Event::ToolEnded { step, call, output: &output });
        for told in self.executor.take_instructions() {
            match told {
                Ok(loaded) => (self.observe)(Event::Instructions(&loaded)),
                Err(unusable) => self.warn(&format!("{unusable}; the model is told so")),
            }
        }
        let times = repeats.count(call, &output.text);
        self.session.append(&Message::tool_result(call, output.text).into())?;
        if times >= STUCK_AFTER {
            return Ok(Some(Error::Stuck { tool: call.name.clone(), times }));
        }
        Ok(output.is_cut.then_some(Error::Deadline))
    }

    /// Whether the answer counts. The model is told why it does not.
    fn verify(&mut self, attempt: u32) -> Result<bool, Error> {
        let Some(verify) = &mut self.verify else { return Ok(true) };
        let attempts = verify.attempts.get();
        (self.observe)(Event::VerifyStarted { attempt, attempts });
        // An answer is there: all of the time that is left is for finding out whether it counts.
        let verified = (verify.run)(self.options.deadline);
        (self.observe)(Event::VerifyEnded { attempt, attempts, verified: &verified });
        if verified.output.is_cut {
            return Err(Error::Deadline);
        }
        if verified.passed {
            return Ok(true);
        }
        let told = format!(
            "The answer does not count yet: `{}` did not pass (attempt {attempt} of {attempts}). \
             Mend what it found. It printed:\n{}",
            verify.command, verified.output.text
        );
        self.session.append(&Message::user(told).into())?;
        if attempt >= attempts {
            let command = verify.command.to_owned();
            let summary = verified.output.summary;
            return Err(Error::VerifyFailed { command, attempts, summary });
        }
        Ok(false)
    }

    /// Asks what was done and what is left. Whatever goes wrong changes nothing: how the run ended
    /// is settled, and the log gets the question only together with an answer.
    fn sum_up(&mut self) {
        (self.observe)(Event::SummingUp);
        let question = Message::user(SUM_UP);
        let Ok(completion) = self.request(Some(&question)) else { return };
        let usage = completion.usage;
        let summary = self.log_summary(question, completion);
        (self.observe)(Event::SummedUp { summary: summary.as_deref(), usage });
    }

    fn log_summary(&mut self, question: Message, completion: Completion) -> Option<String> {
        if self.judge(&completion).ok()? != Verdict::Answer {
            return None;
        }
        let summary = verdict::answer_text(&completion.message).trim_end().to_owned();
        self.session.append(&question.into()).ok()?;
        self.session.append(&record(completion)).ok()?;
        Some(summary)
    }

    fn judge(&self, completion: &Completion) -> Result<Verdict, verdict::Refusal> {
        let RunOptions { max_tokens, accept, .. } = &self.options;
        verdict::judge(completion, *max_tokens, self.executor.definitions(), accept)
    }

    fn warn(&mut self, warning: &str) {
        (self.observe)(Event::Warning(warning));
    }
}

fn record(completion: Completion) -> Record {
    Record {
        message: Message::Assistant(completion.message),
        finish_reason: completion.finish_reason.word().map(str::to_owned),
        usage: completion.usage,
        model: completion.model,
        refused: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Content;
    use crate::provider::{FinishReason, ProviderError, ToolDefinition, Usage};
    use crate::verdict::{Refusal, Truncation};

    /// Serves completions in order and keeps what it was sent.
    #[derive(Default)]
    struct Script {
        completions: Vec<Completion>,
        seen: Vec<Vec<Message>>,
        closed: Vec<bool>,
    }

    impl Provider for Script {
        fn complete(
            &mut self,
            request: &CompletionRequest<'_>,
        ) -> Result<Completion, ProviderError> {
            self.seen.push(request.messages.iter().chain(request.closing).cloned().collect());
            self.closed.push(request.closing.is_some());
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
            output(&format!("did {}", call.arguments), "done")
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
            work_until: Deadline::NONE,
            accept: Accept::default(),
        }
    }

    fn output(text: &str, summary: &str) -> Output {
        Output::new(text, summary)
    }

    struct Ran {
        result: Result<Answer, Error>,
        executed: Vec<String>,
        seen: Vec<Vec<Message>>,
        /// Whether that request was one for a summary.
        closed: Vec<bool>,
        warnings: Vec<String>,
        summaries: Vec<Option<String>>,
        conversation: Vec<Message>,
    }

    fn run_verified(
        completions: Vec<Completion>,
        set: impl FnOnce(&mut RunOptions<'_>),
        verify: Option<(u32, &mut dyn FnMut(Deadline) -> Verified)>,
    ) -> Ran {
        let mut provider = Script { completions, ..Script::default() };
        let mut executor = Echo::default();
        let mut session = Session::ephemeral();
        let (mut warnings, mut summaries) = (Vec::new(), Vec::new());
        let mut options = options();
        set(&mut options);
        let result = Agent {
            provider: &mut provider,
            executor: &mut executor,
            session: &mut session,
            verify: verify.map(|(attempts, run)| Verify {
                command: "make test",
                attempts: NonZeroU32::new(attempts).unwrap(),
                run,
            }),
            options,
            observe: &mut |event| match event {
                Event::Warning(warning) => warnings.push(warning.to_owned()),
                Event::SummedUp { summary, .. } => summaries.push(summary.map(str::to_owned)),
                _ => {}
            },
        }
        .run("go");
        Ran {
            result,
            executed: executor.executed,
            seen: provider.seen,
            closed: provider.closed,
            warnings,
            summaries,
            conversation: session.messages().to_vec(),
        }
    }

    fn run_with(completions: Vec<Completion>, set: impl FnOnce(&mut RunOptions<'_>)) -> Ran {
        run_verified(completions, set, None)
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
        let ids: Vec<&str> = results.iter().map(|(id, _)| *id).collect();
        assert!(ids[0] == "c" && ids[1].len() == 9, "{ids:?}");
        assert_eq!(results, [("c", "did 1"), (ids[1], "did 2")]);
        assert_eq!(ran.executed, ids);
    }

    #[test]
    fn the_last_step_may_not_end_in_calls() {
        let two = NonZeroU32::MIN.saturating_add(1);
        let script = vec![call("a", "1"), call("b", "2"), answer("Half is done.\n")];
        let ran = run_with(script, |options| options.max_steps = two);
        assert!(matches!(ran.result, Err(Error::MaxSteps { max_steps: 2 })));
        assert_eq!(ran.executed, ["a", "b"]);
        assert_eq!(ran.closed, [false, false, true]);
        assert_eq!(ran.summaries, [Some("Half is done.".to_owned())]);
        assert_eq!(ran.seen[2][5], Message::user(SUM_UP));
        let logged = [Message::user(SUM_UP), Message::Assistant(answer("Half is done.\n").message)];
        assert_eq!(ran.conversation[5..], logged);
    }

    #[test]
    fn a_summary_that_fails_changes_nothing() {
        let cut = says("length", AssistantMessage::text("Half is"));
        for last in [vec![], vec![cut], vec![call("b", "2")], vec![answer(" \n")]] {
            let mut script = vec![call("a", "1")];
            script.extend(last);
            let ran = run_with(script, |options| options.max_steps = NonZeroU32::MIN);
            assert!(matches!(ran.result, Err(Error::MaxSteps { max_steps: 1 })));
            assert!(ran.summaries.iter().all(Option::is_none));
            assert_eq!((ran.executed.len(), ran.conversation.len()), (1, 3));
        }
    }

    #[test]
    fn no_summary_is_asked_for_once_the_tokens_are_spent() {
        let ran = run_with(vec![costing(100, call("a", "1"))], |options| {
            options.max_steps = NonZeroU32::MIN;
            options.max_total_tokens = NonZeroU64::new(100);
        });
        assert!(matches!(ran.result, Err(Error::MaxSteps { .. })));
        assert_eq!(ran.closed, [false]);
    }

    /// Verifies with these results, one after the other; the last one stands for all that follow.
    fn verifying(results: &[bool], attempts: u32, completions: Vec<Completion>) -> Ran {
        let mut results = results.iter().copied();
        let mut last = false;
        let mut run = |_: Deadline| {
            last = results.next().unwrap_or(last);
            Verified { passed: last, output: output("1 failed", "exit 1") }
        };
        run_verified(completions, |_| {}, Some((attempts, &mut run)))
    }

    #[test]
    fn an_answer_counts_once_it_passes() {
        let ran = verifying(&[true], 1, vec![answer("fine")]);
        assert_eq!(ran.result.unwrap().text, "fine");
        assert_eq!(ran.conversation.len(), 2);
        let script = vec![answer("fine"), call("a", "1"), answer("now it is")];
        let ran = verifying(&[false, true], 2, script);
        assert_eq!(ran.result.unwrap(), Answer { text: "now it is".to_owned(), steps: 3 });
        let told = "The answer does not count yet: `make test` did not pass (attempt 1 of 2). \
                    Mend what it found. It printed:\n1 failed";
        assert_eq!(ran.seen[1][2], Message::user(told));
    }

    #[test]
    fn an_answer_that_there_is_no_time_to_verify_ends_in_the_deadline() {
        let cut = Output { is_cut: true, ..output("", "cut") };
        let mut run = |_: Deadline| Verified { passed: false, output: cut.clone() };
        let ran = run_verified(vec![answer("fine")], |_| {}, Some((3, &mut run)));
        assert!(matches!(ran.result, Err(Error::Deadline)));
        // Nothing is known against it, so nothing is said.
        assert_eq!(ran.conversation.len(), 2);
    }

    #[test]
    fn an_answer_that_never_passes_is_none() {
        let ran = verifying(&[false], 2, vec![answer("fine"), answer("fine"), answer("fine")]);
        let Err(Error::VerifyFailed { attempts: 2, summary, .. }) = ran.result else {
            panic!("{:?}", ran.result)
        };
        assert_eq!((summary.as_str(), ran.seen.len()), ("exit 1", 2));
        assert_eq!(ran.conversation.len(), 5);
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
    fn calls_behind_the_one_that_was_stuck_are_not_run() {
        let calls = (0..10).map(|n| ToolCall::new(n.to_string(), "shell", "{}")).collect();
        let ran = run(vec![says("tool_calls", AssistantMessage::calls(calls))]);
        assert!(matches!(ran.result, Err(Error::Stuck { times: 8, .. })));
        assert_eq!(ran.executed.len(), 8);
        let results = ran.conversation[2..].iter().map(|message| match message {
            Message::Tool(result) => result.content.as_str(),
            other => panic!("{other:?}"),
        });
        let expected = [["did {}"; 8].as_slice(), &[NOT_STARTED; 2]].concat();
        assert_eq!(results.collect::<Vec<_>>(), expected);
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
        let ran = run_with(vec![answer("ok")], |options| {
            (options.deadline, options.work_until) = (passed, passed);
        });
        assert!(matches!(ran.result, Err(Error::Deadline)));
        assert!(ran.seen.is_empty());
    }

    #[test]
    fn what_is_left_for_the_summary_is_used_for_nothing_else() {
        let passed = Deadline::after(Some(std::time::Duration::ZERO));
        let ran = run_with(vec![answer("Nothing.")], |options| options.work_until = passed);
        assert!(matches!(ran.result, Err(Error::Deadline)));
        assert_eq!(ran.closed, [true]);
        assert_eq!(ran.summaries, [Some("Nothing.".to_owned())]);
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
            Output { is_cut: true, ..output(&call.id, "") }
        }
    }

    #[test]
    fn no_call_is_run_after_the_deadline() {
        let calls = vec![ToolCall::new("a", "shell", "1"), ToolCall::new("b", "shell", "2")];
        let completions = vec![says("stop", AssistantMessage::calls(calls))];
        let mut session = Session::ephemeral();
        let end = Deadline::after(Some(std::time::Duration::from_millis(100)));
        let mut agent = Agent {
            provider: &mut Script { completions, ..Script::default() },
            executor: &mut Slow,
            session: &mut session,
            verify: None,
            options: RunOptions { deadline: end, work_until: end, ..options() },
            observe: &mut |_| {},
        };
        assert!(matches!(agent.run("go"), Err(Error::Deadline)));
        // Every call has its result, so that the conversation can go on.
        let results = session.messages()[2..].iter().map(|message| match message {
            Message::Tool(result) => result.content.as_str(),
            other => panic!("{other:?}"),
        });
        assert_eq!(results.collect::<Vec<_>>(), ["a", NO_TIME]);
    }

    #[test]
    fn a_prompt_that_waits_for_its_answer_is_not_asked_twice() {
        let mut session = Session::ephemeral();
        let completions =
            [vec![], vec![call("1", "{}")], vec![answer("done")], vec![], vec![], vec![]];
        for (prompt, completions) in ["go", "go", "go", "go", "go", "go on"].iter().zip(completions)
        {
            let mut agent = Agent {
                provider: &mut Script { completions, ..Script::default() },
                executor: &mut Echo::default(),
                session: &mut session,
                verify: None,
                options: options(),
                observe: &mut |_| {},
            };
            let _ = agent.run(prompt);
        }
        let roles = session.messages().iter().map(|message| match message {
            Message::System(_) => "system",
            Message::User(content) => content.as_str(),
            Message::Assistant(message) if message.tool_calls.is_empty() => "answer",
            Message::Assistant(_) => "call",
            Message::Tool(_) => "result",
        });
        let expected = ["go", "call", "result", "answer", "go", "go on"];
        assert_eq!(roles.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_provider_error_ends_the_run_and_keeps_what_was_logged() {
        let ran = run(vec![call("a", "{}")]);
        assert!(matches!(ran.result, Err(Error::Provider(ProviderError::Replay { .. }))));
        assert_eq!(ran.conversation.len(), 3);
        assert_eq!(ran.conversation[0], Message::User(Content::from("go".to_owned())));
    }
}
