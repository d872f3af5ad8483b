//! Keeps a mask from being written over the secret that it stands for.
//!
//! A model sees `[api key]` where a file has the key. When it writes back what it saw, the key
//! would be gone.

use std::io::{self, Read as _};

use crate::fs::replace::Target;
use crate::secret::Mask;

/// As much of a file is searched.
const READ_MAX: u64 = 32 * 1024 * 1024;

/// Refuses `text` where it has a mask for a secret that `replaced` holds. `name` says which text.
///
/// # Errors
///
/// It has one; the message says what to do.
pub(super) fn check(mask: &Mask, name: &str, text: &str, replaced: &[u8]) -> io::Result<()> {
    let Some(label) = mask.standing_in(text, replaced) else { return Ok(()) };
    let message = format!(
        "{name} has {label}, which is shown in place of a secret that stands in the file; \
         nothing was changed: use edit_file on the text around the secret"
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// The same for a text that takes the place of a whole file.
pub(super) fn check_file(mask: &Mask, text: &str, target: &mut Target) -> io::Result<()> {
    if target.existing().is_none() || !mask.has_label(text) {
        return Ok(());
    }
    let (file, _) = target.open()?;
    let mut bytes = Vec::new();
    file.take(READ_MAX).read_to_end(&mut bytes)?;
    check(mask, "content", text, &bytes)
}
