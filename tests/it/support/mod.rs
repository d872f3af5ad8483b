//! What the tests run against.

pub(crate) mod endpoint;

pub(crate) mod proxy;

pub(crate) mod sandbox;

pub(crate) mod server;

pub(crate) mod tls;

#[cfg(unix)]
pub(crate) mod tools;
