//! A store's URL as it is typed.

use std::convert::Infallible;
use std::str::FromStr;

use gristmill::{StoreUrl, StoreUrlError};

use crate::failure::Failure;

/// What was typed for a store, read at once. A mistake in it is kept until it is
/// known whether the command uses it: clap would tell it with the whole text,
/// password and all.
#[derive(Debug, Clone)]
pub(crate) struct TypedUrl(Result<StoreUrl, StoreUrlError>);

impl TypedUrl {
    /// The store that is meant.
    ///
    /// # Errors
    /// When it names no store.
    pub(crate) fn meant(self) -> Result<StoreUrl, Failure> {
        self.0.map_err(|error| Failure::usage(error.to_string()))
    }
}

impl FromStr for TypedUrl {
    type Err = Infallible;

    fn from_str(typed: &str) -> Result<Self, Infallible> {
        Ok(TypedUrl(typed.parse()))
    }
}
