//! Files whose names come from outside: opened without blocking, and replaced as a whole.

mod open;
pub(crate) mod replace;
mod sync;
mod temp;
#[cfg(target_os = "linux")]
mod xattr;

#[cfg(test)]
pub(crate) use self::open::tests;
pub use self::open::{
    are_same, directory_of, follow_links, identity, make_private, open_regular, refuse_irregular,
    without_blocking,
};
pub use self::sync::sync_directory;
