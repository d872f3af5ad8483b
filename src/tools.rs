//! The tools that the model may call.
//!
//! A [`Toolbox`] finds the tool that a call names, reads the arguments, and makes a result of
//! whatever comes of it: a tool never ends a run. What went wrong is said to the model in words
//! that tell it what to do differently.

mod agents_md;
mod arguments;
mod edit;
mod lines;
mod masked;
mod mismatch;
mod path;
mod read;
mod replacement;
mod shell;
mod similar_names;
mod text_search;
mod time_limit;
mod write;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::agents_md::{Loaded, Unusable};
use crate::fs::replace::{Replaced, Target};
use crate::message::{Message, ToolCall};
use crate::provider::ToolDefinition;
use crate::secret::Mask;
use crate::text::one_line;
use crate::time::Deadline;

use self::agents_md::AgentsMdBelow;
use self::arguments::Arguments;
use self::edit::EditFile;
use self::read::ReadFile;
use self::time_limit::{CALL_MAX, TimeLimit};
use self::write::WriteFile;

pub use self::shell::{Finished, Shell};

/// Runs tool calls.
pub trait Executor {
    /// The tools to offer; the same in every call.
    fn definitions(&self) -> &[ToolDefinition];

    /// Runs one call. What goes wrong is for the model to know, so it is a result like any other.
    /// Nothing runs on past `deadline`.
    fn execute(&mut self, call: &ToolCall, deadline: Deadline) -> Output;

    /// The AGENTS.md files that came with the results since it was last asked, and those that were
    /// due and can't be used.
    fn take_instructions(&mut self) -> Vec<Result<Loaded, Unusable>> {
        Vec::new()
    }
}

/// What a tool call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// What the model is told.
    pub text: String,
    /// The same in a few words for people ("exit 0", "3 lines", "error: no such file").
    pub summary: String,
    /// Whether the end of the run's time ended the call.
    pub is_cut: bool,
}

impl Output {
    /// A result, and the same in a few words.
    pub fn new(text: impl Into<String>, summary: impl Into<String>) -> Output {
        Output { text: text.into(), summary: summary.into(), is_cut: false }
    }
}

/// One tool: what the model is told of it, and what it does.
trait Tool {
    /// The same whenever it is asked.
    fn definition(&self) -> ToolDefinition;

    /// Runs one call, and not on past `deadline`.
    ///
    /// # Errors
    ///
    /// What the model has to know to do better.
    fn run(&mut self, arguments: Arguments<'_>, deadline: Deadline) -> Result<Output, ToolError>;
}

/// Where the tools for files work.
#[derive(Clone, Debug)]
struct Workspace {
    /// Where relative paths start.
    directory: PathBuf,
    /// Whether there is a shell that the model can be told to use.
    has_shell: bool,
    /// What is masked in everything that is cut.
    mask: Mask,
    /// The longest that a call takes.
    call_max: Duration,
}

impl Workspace {
    /// The limit of a call that starts now.
    fn time_limit(&self, run: Deadline) -> TimeLimit {
        TimeLimit::new(run, self.call_max)
    }

    /// Replaces a file's content. All that a tool writes to a file goes through here; `before` is
    /// the old content where it was read.
    fn replace(
        &self,
        target: &Target,
        _before: Option<&[u8]>,
        after: &[u8],
    ) -> io::Result<Replaced> {
        target.replace(&|out| out.write_all(after))
    }
}

/// Why a call has no result, in words for the model.
#[derive(Debug, PartialEq, Eq)]
struct ToolError(String);

impl ToolError {
    fn new(message: impl Into<String>) -> ToolError {
        ToolError(message.into())
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Bytes of an error that a summary shows.
const SUMMARY: usize = 120;

impl From<ToolError> for Output {
    fn from(error: ToolError) -> Output {
        let text = format!("error: {error}");
        let summary = one_line(&text, SUMMARY);
        Output::new(text, summary)
    }
}

/// The names of all tools.
pub const NAMES: [&str; 4] = ["shell", "read_file", "write_file", "edit_file"];

/// The tools of a run, in the order in which they are offered.
pub struct Toolbox {
    tools: Vec<Box<dyn Tool>>,
    /// One for each tool, in the same order.
    definitions: Vec<ToolDefinition>,
    mask: Mask,
    agents_md: AgentsMdBelow,
    /// What was told of AGENTS.md files and not yet asked for.
    told: Vec<Result<Loaded, Unusable>>,
}

impl Toolbox {
    /// The tools, working in `directory`; those for files only where there is no shell. What they
    /// tell has the secrets of `mask` masked, before any of it is cut.
    pub fn new(directory: &Path, shell: Option<Shell>, mask: &Mask) -> Toolbox {
        let workspace = Workspace {
            directory: directory.to_owned(),
            has_shell: shell.is_some(),
            mask: mask.clone(),
            call_max: CALL_MAX,
        };
        let mut tools: Vec<Box<dyn Tool>> = Vec::new();
        if let Some(shell) = shell {
            tools.push(Box::new(shell.with_mask(mask.clone())));
        }
        tools.push(Box::new(ReadFile(workspace.clone())));
        tools.push(Box::new(WriteFile(workspace.clone())));
        tools.push(Box::new(EditFile(workspace)));
        Toolbox::of(tools, mask.clone())
    }

    fn of(tools: Vec<Box<dyn Tool>>, mask: Mask) -> Toolbox {
        let definitions = tools.iter().map(|tool| tool.definition()).collect();
        Toolbox { tools, definitions, mask, agents_md: AgentsMdBelow::default(), told: Vec::new() }
    }

    /// The tools, which tell what AGENTS.md files below `directory` say when a call first touches
    /// what they are for: up to `left` bytes, and nothing that the conversation holds already.
    #[must_use]
    pub fn with_instructions(
        self,
        directory: &Path,
        left: usize,
        conversation: &[Message],
    ) -> Toolbox {
        Toolbox { agents_md: AgentsMdBelow::new(directory, left, conversation), ..self }
    }

    fn find(&mut self, name: &str) -> Result<&mut Box<dyn Tool>, ToolError> {
        let offered = &self.definitions;
        let index = offered.iter().position(|tool| tool.name == name).ok_or_else(|| {
            let names: Vec<&str> = offered.iter().map(|tool| tool.name).collect();
            ToolError::new(format!(
                "there is no tool \"{}\"; the tools are {}",
                one_line(&self.mask.text(name), 80),
                names.join(", ")
            ))
        })?;
        Ok(&mut self.tools[index])
    }
}

impl Executor for Toolbox {
    fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    fn execute(&mut self, call: &ToolCall, deadline: Deadline) -> Output {
        let arguments = Arguments::parse(&call.arguments, &self.mask);
        let result = self.find(&call.name).and_then(|tool| tool.run(arguments?, deadline));
        let masked = |text: &str| self.mask.text(text).into_owned();
        let mut output = match result {
            Ok(Output { text, summary, is_cut }) => {
                Output { is_cut, ..Output::new(masked(&text), masked(&summary)) }
            }
            // The summary of an error is cut.
            Err(ToolError(message)) => Output::from(ToolError(masked(&message))),
        };
        let told = self.agents_md.touched(call, &self.mask);
        if !told.is_empty() {
            agents_md::append(&mut output.text, &told);
            output.text = masked(&output.text);
        }
        self.told.extend(told.into_iter().map(|told| told.map(|instructions| instructions.file)));
        without_nuls(output)
    }

    fn take_instructions(&mut self) -> Vec<Result<Loaded, Unusable>> {
        std::mem::take(&mut self.told)
    }
}

/// The output with NUL characters made visible: some endpoints cut a message at one or refuse it.
fn without_nuls(output: Output) -> Output {
    let count = output.text.matches('\0').count();
    let Output { mut text, summary, is_cut } = output;
    if count > 0 {
        text = text.replace('\0', "\u{2400}");
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{count} NUL bytes are shown as U+2400]"));
    }
    Output { text, summary: summary.replace('\0', "\u{2400}"), is_cut }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.definitions.iter().map(|tool| tool.name)).finish()
    }
}

#[cfg(test)]
impl crate::fs::tests::Folder {
    /// The folder for a tool, on a machine with a shell and for a run with a key.
    fn workspace(&self) -> Workspace {
        let mask = Mask::new(crate::secret::Secret::parse("sk-TESTKEY-1").unwrap_or_default());
        Workspace { directory: self.path().to_owned(), has_shell: true, mask, call_max: CALL_MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use std::sync::Arc;

    struct Greet;

    impl Tool for Greet {
        fn definition(&self) -> ToolDefinition {
            ToolDefinition {
                name: "greet",
                description: "Greets.",
                parameters: Json::from_static("{}"),
            }
        }

        fn run(&mut self, mut arguments: Arguments<'_>, _: Deadline) -> Result<Output, ToolError> {
            Ok(Output::new(format!("Hello, {}!", arguments.string("name")?), "greeted"))
        }
    }

    fn mask() -> Mask {
        Mask::new(crate::secret::Secret::parse("sk-TESTKEY-1").unwrap())
    }

    fn execute(name: &str, arguments: &str) -> Output {
        let mut toolbox = Toolbox::of(vec![Box::new(Greet)], mask());
        toolbox.execute(&ToolCall::new("1", name, arguments), Deadline::NONE)
    }

    #[test]
    fn a_call_goes_to_the_tool_that_it_names() {
        let output = execute("greet", "{\"name\":\"Ada\"}");
        assert_eq!(output, Output::new("Hello, Ada!", "greeted"));
    }

    #[test]
    fn an_unknown_tool_is_told_with_those_that_there_are() {
        let output = execute("bash", "{}");
        assert_eq!(output.text, "error: there is no tool \"bash\"; the tools are greet");
        assert_eq!(output.summary, output.text);
    }

    #[test]
    fn what_is_wrong_with_the_arguments_is_a_result() {
        assert!(execute("greet", "{}").text.starts_with("error: "));
        assert!(execute("greet", "[]").text.starts_with("error: "));
    }

    #[test]
    fn no_secret_and_no_nul_character_gets_out() {
        let output = execute("greet", r#"{"name":"sk-TESTKEY-1\u0000"}"#);
        assert_eq!(output.text, "Hello, [api key]\u{2400}!\n[1 NUL bytes are shown as U+2400]");
        // An error whose summary ends within the key.
        let folder = crate::fs::tests::Folder::new();
        let mut toolbox = Toolbox::new(folder.path(), None, &mask());
        let path = format!("{}sk-TESTKEY-1", "x".repeat(SUMMARY - 12));
        let arguments = format!("{{\"path\":\"{path}\"}}");
        let call = ToolCall::new("1", "read_file", arguments);
        let output = toolbox.execute(&call, Deadline::NONE);
        assert!(!output.summary.contains("sk-"), "{output:?}");
        // What is quoted of a call, whose quotation ends within the key.
        for fill in 0..400 {
            let quoted = format!("{}sk-TESTKEY-1", "x".repeat(fill));
            for (name, arguments) in [
                ("read_file", format!("{{\"path\":[\"{quoted}\"]}}")),
                ("read_file", format!("{{\"path\":\"\",\"offset\":\"{quoted}\"}}")),
                ("read_file", format!("{{\"{quoted}\":1,\"{quoted}\":2}}")),
                (&quoted, "{}".to_owned()),
            ] {
                let call = ToolCall::new("1", name, arguments);
                let Output { text, summary, .. } = toolbox.execute(&call, Deadline::NONE);
                assert!(!text.contains("sk-") && !summary.contains("sk-"), "{fill}: {text}");
            }
        }
        let call = ToolCall::new("1", "write_file", r#"{"path":"a\u0000b","content":""}"#);
        let output = toolbox.execute(&call, Deadline::NONE);
        let told = "error: a\u{2400}b: the path holds a NUL character";
        assert_eq!(output.text, format!("{told}\n[1 NUL bytes are shown as U+2400]"));
        assert_eq!(output.summary.replace("\\u{0}", "\u{2400}"), told);
    }

    #[test]
    fn the_tools_are_offered_in_a_fixed_order_and_few_words() {
        let directory = std::env::temp_dir();
        let shell = Shell::new(&directory, [], None, Arc::default());
        let toolbox = Toolbox::new(&directory, shell, &Mask::default());
        let names: Vec<&str> = toolbox.definitions().iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["shell", "read_file", "write_file", "edit_file"]);
        let mut bytes = 0;
        for tool in toolbox.definitions() {
            assert!(tool.description.len() <= 200, "{}", tool.name);
            let parameters = tool.parameters.as_str();
            assert!(parameters.contains("\"additionalProperties\":false"), "{parameters}");
            bytes += tool.name.len() + tool.description.len() + parameters.len();
        }
        // At the usual four bytes a token, half of what the system prompt and these may take.
        assert!(bytes <= 4 * 450, "{bytes} bytes");
        let files = Toolbox::new(&directory, None, &Mask::default());
        assert_eq!(files.definitions(), &toolbox.definitions()[1..]);
    }
}
