//! Telling the store how attempts ended.

pub(crate) mod aside;
pub(crate) mod pending;
pub(crate) mod settler;
