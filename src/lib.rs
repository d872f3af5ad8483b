//! uncut: a headless coding agent. A prompt goes in; a finished answer or a named failure comes out.

pub mod agent;
pub mod error;
pub mod file;
pub mod json;
pub mod message;
pub mod openai;
pub mod outcome;
pub mod process;
pub mod prompt;
pub mod provider;
pub mod proxy;
pub mod replay;
pub mod secret;
pub mod session;
pub mod text;
pub mod time;
pub mod tools;
pub mod url;
pub mod verdict;
pub mod wire;
