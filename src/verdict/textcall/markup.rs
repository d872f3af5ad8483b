//! The markups in which models write calls. A new one is a line of the table, and one of its test.

/// How the text goes on behind the sign that opens a markup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// With calls as JSON or Python, or with a name and its arguments. A name that is offered is
    /// enough where the rest is cut off or no valid JSON.
    Calls,
    /// With calls as JSON, or with a name and an object: the sign has other uses.
    Json,
    /// With a name and an object, of which the start is enough.
    Named,
    /// With the name, the end of the tag, and a parameter in each tag of this name.
    Element(&'static str),
}

/// One markup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Markup {
    /// The sign that opens it.
    pub(super) open: &'static str,
    /// The sign that closes it; empty where there is none.
    pub(super) close: &'static str,
    pub(super) body: Body,
}

const fn row(open: &'static str, close: &'static str, body: Body) -> Markup {
    Markup { open, close, body }
}

/// All of them, but for JSON alone. What one of them is the start of stands behind it.
pub(super) const TABLE: &[Markup] = &[
    // Hermes, Qwen, ERNIE, GLM, MiMo.
    row("<tool_call>", "</tool_call>", Body::Calls),
    // Jamba, Hunyuan, MiniMax M1.
    row("<tool_calls>", "</tool_calls>", Body::Calls),
    // Qwen2.5-Coder. Templates list the definitions of tools in it.
    row("<tools>", "</tools>", Body::Json),
    // Nemotron.
    row("<TOOLCALL>", "</TOOLCALL>", Body::Calls),
    row("<toolcall>", "</toolcall>", Body::Calls),
    row("<tool_use>", "</tool_use>", Body::Calls),
    row("<tool>", "</tool>", Body::Json),
    // Granite 20B, and OLMo 3 in Python.
    row("<function_call>", "</function_call>", Body::Calls),
    row("<function_calls>", "</function_calls>", Body::Calls),
    row("<|function_call|>", "<|/function_call|>", Body::Calls),
    row("<|function_calls|>", "<|/function_calls|>", Body::Calls),
    // LongCat.
    row("<longcat_tool_call>", "</longcat_tool_call>", Body::Calls),
    // Granite 3, Phi 4, Gemma 4.
    row("<|tool_call|>", "<|/tool_call|>", Body::Calls),
    row("<|tool_calls|>", "<|/tool_calls|>", Body::Calls),
    row("<|tool_call>", "<tool_call|>", Body::Calls),
    // FunctionGemma.
    row("<start_function_call>", "<end_function_call>", Body::Calls),
    // LFM2.
    row("<|tool_call_start|>", "<|tool_call_end|>", Body::Calls),
    // Apertus.
    row("<|tools_prefix|>", "<|tools_suffix|>", Body::Calls),
    // Llama 3 and 4.
    row("<|python_tag|>", "<|eom_id|>", Body::Calls),
    row("<|python_start|>", "<|python_end|>", Body::Calls),
    // Command R and A.
    row("<|START_ACTION|>", "<|END_ACTION|>", Body::Calls),
    row("Action:", "", Body::Json),
    // InternLM.
    row("<|plugin|>", "<|action_end|>", Body::Calls),
    // Mistral.
    row("[TOOL_CALLS]", "</s>", Body::Calls),
    // LM Studio.
    row("[TOOL_REQUEST]", "[END_TOOL_REQUEST]", Body::Calls),
    // Pangu.
    row("[unused11]", "[unused12]", Body::Calls),
    // GigaChat 3.
    row("function call<|role_sep|>", "", Body::Calls),
    // FireFunction, Functionary, and Phi 4 mini without its tags.
    row("functools", "", Body::Json),
    row(">>>", "", Body::Json),
    // Qwen-Agent.
    row("\u{273f}FUNCTION\u{273f}:", "", Body::Calls),
    // Kimi K2.
    row("<|tool_call_begin|>", "<|tool_call_end|>", Body::Calls),
    // DeepSeek V3 and R1, with either kind of underscore.
    row("<\u{ff5c}tool\u{2581}call\u{2581}begin\u{ff5c}>", TOOL_CALL_END, Body::Calls),
    row("<\u{ff5c}tool_call_begin\u{ff5c}>", "<\u{ff5c}tool_call_end\u{ff5c}>", Body::Calls),
    // The Harmony of gpt-oss, whatever is left of its other signs.
    row("to=functions.", "<|call|>", Body::Named),
    // Qwen3-Coder, Seed-OSS, Llama 3.1.
    row("<function=", "</function>", Body::Element("parameter")),
    // MiniCPM.
    row("<function name=", "</function>", Body::Element("param")),
    // MiniMax M2, Claude.
    row("<invoke name=", "</invoke>", Body::Element("parameter")),
    row("<antml:invoke name=", "</antml:invoke>", Body::Element("antml:parameter")),
    // Step 3.
    row("<steptml:invoke name=", "</steptml:invoke>", Body::Element("steptml:parameter")),
    // DeepSeek V3.2.
    row(DSML_OPEN, DSML_CLOSE, Body::Element("\u{ff5c}DSML\u{ff5c}parameter")),
];

const TOOL_CALL_END: &str = "<\u{ff5c}tool\u{2581}call\u{2581}end\u{ff5c}>";
const DSML_OPEN: &str = "<\u{ff5c}DSML\u{ff5c}invoke name=";
const DSML_CLOSE: &str = "</\u{ff5c}DSML\u{ff5c}invoke>";

/// Signs that stand between a name and its arguments.
pub(super) const BETWEEN: &[&str] = &[
    "[ARGS]",
    "<|tool_call_argument_begin|>",
    "<\u{ff5c}tool\u{2581}sep\u{ff5c}>",
    "<\u{ff5c}tool_sep\u{ff5c}>",
    "\u{273f}ARGS\u{273f}:",
    "Action Input:",
    "<|constrain|>",
    "<|channel|>",
    "<|message|>",
    "<|recipient|>",
    "<|content|>",
    "commentary",
    "analysis",
    "json",
    "code",
    "```",
];
