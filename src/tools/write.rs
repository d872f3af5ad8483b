//! The `write_file` tool: a file gets new content as a whole.

use crate::fs::replace::Target;
use crate::json::Json;
use crate::provider::ToolDefinition;
use crate::time::Deadline;

use super::arguments::Arguments;
use super::path::resolve;
use super::{Output, Tool, ToolError, Workspace, masked};

/// The `write_file` tool.
#[derive(Debug)]
pub(super) struct WriteFile(pub(super) Workspace);

impl Tool for WriteFile {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "write_file",
            description: "Create a file, or replace the whole content of one. Missing directories \
                          are created. To change a part of a file, use edit_file.",
            parameters: Json::from_static(
                r#"{
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "content": {"type": "string"}
                    },
                    "required": ["path", "content"],
                    "additionalProperties": false
                }"#,
            ),
        }
    }

    fn run(&mut self, mut arguments: Arguments<'_>, _: Deadline) -> Result<Output, ToolError> {
        let given = arguments.string("path")?;
        let content = arguments.string("content")?;
        let write = || {
            let mut target = Target::find(&resolve(&self.0.directory, &given)?)?;
            masked::check_file(&self.0.mask, &content, &mut target)?;
            let replaced = self.0.replace(&target, None, content.as_bytes())?;
            let bytes = replaced.bytes;
            let text = match target.existing() {
                None => format!("created {given}: {bytes} bytes"),
                Some(existing) => {
                    format!("replaced {given}: {bytes} bytes, {} before", existing.len())
                }
            };
            let text = if replaced.in_place { text + " (written in place)" } else { text };
            Ok(Output::new(text, format!("{bytes} bytes")))
        };
        write().map_err(|error: std::io::Error| ToolError::new(format!("{given}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fs::tests::Folder;
    use crate::secret::Mask;

    fn write(folder: &Folder, path: &str, content: &str) -> String {
        let arguments = format!(
            "{{\"path\":{},\"content\":{}}}",
            serde_json::to_string(path).unwrap(),
            serde_json::to_string(content).unwrap()
        );
        Arguments::parse(&arguments, &Mask::default())
            .and_then(|arguments| WriteFile(folder.workspace()).run(arguments, Deadline::NONE))
            .unwrap_or_else(Output::from)
            .text
    }

    #[test]
    fn a_file_is_created_and_replaced() {
        let folder = Folder::new();
        assert_eq!(write(&folder, "f", "one\r\n"), "created f: 5 bytes");
        assert_eq!(folder.read("f"), b"one\r\n");
        assert_eq!(write(&folder, "f", ""), "replaced f: 0 bytes, 5 before");
        assert_eq!(folder.read("f"), b"");
        assert_eq!(folder.names(), ["f"]);
    }

    #[test]
    fn missing_directories_are_created() {
        let folder = Folder::new();
        assert_eq!(write(&folder, "a/b/c.txt", "x"), "created a/b/c.txt: 1 bytes");
        assert_eq!(folder.read("a/b/c.txt"), b"x");
        let text = write(&folder, "a/b/c.txt/d", "x");
        assert!(text.starts_with("error: a/b/c.txt/d: "), "{text}");
    }

    #[test]
    fn what_names_no_file_is_refused() {
        let folder = Folder::new();
        fs::create_dir(folder.path().join("d")).unwrap();
        assert_eq!(write(&folder, "d", "x"), "error: d: it is a directory");
        for path in ["new/", "new/.", "new/.."] {
            let expected = format!("error: {path}: the path ends like that of a directory");
            assert_eq!(write(&folder, path, "x"), expected);
        }
        assert_eq!(write(&folder, "a\0b", "x"), "error: a\0b: the path holds a NUL character");
        assert_eq!(folder.names(), ["d"]);
    }

    #[test]
    fn a_name_of_the_longest_kind_is_no_problem_and_a_longer_one_is_named() {
        let folder = Folder::new();
        let name = "n".repeat(255);
        assert_eq!(write(&folder, &name, "x"), format!("created {name}: 1 bytes"));
        let name = "n".repeat(256);
        let text = write(&folder, &name, "x");
        assert!(text.starts_with(&format!("error: {name}: ")), "{text}");
        assert_eq!(folder.names().len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_and_a_device_are_refused() {
        let folder = Folder::new();
        crate::fs::tests::make_fifo(&folder.path().join("pipe"));
        assert_eq!(write(&folder, "pipe", "x"), "error: pipe: it is a FIFO, not a regular file");
        assert_eq!(
            write(&folder, "/dev/null", "x"),
            "error: /dev/null: it is a device, not a regular file"
        );
    }
}
