//! `failed`: a list of what was given up, newest first.

use gristmill::port::{Order, State};

use super::list::List;
use crate::args::ListArgs;
use crate::failure::Failure;

/// Works out which list is meant.
pub(crate) fn meant(mut args: ListArgs) -> Result<List, Failure> {
    match args.state.as_deref() {
        None | Some("failed") => {}
        Some(other) => {
            return Err(Failure::usage(format!(
                "'failed' lists failed tasks only: use 'gristmill list --state {other}'"
            )));
        }
    }
    args.state = Some(State::Failed.as_str().to_owned());
    let mut list = List::meant(args)?;
    list.order = Order::Newest;
    Ok(list)
}
