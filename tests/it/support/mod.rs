//! What the tests run against.

pub(crate) mod endpoint;

pub(crate) mod sandbox;
