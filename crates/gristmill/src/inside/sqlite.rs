//! Transactions of rusqlite: everything happens in the call itself.

use std::any::Any;
use std::future::{Ready, ready};

use gristmill_sqlite::rusqlite::Transaction;

use super::sealed::Asks;
use super::{Answered, Ask};
use crate::{Error, Mill};

/// A transaction that is asked without waiting: ours to change.
#[diagnostic::on_unimplemented(
    message = "only a transaction of SQLite can be asked without an await",
    label = "this is another driver's",
    note = "await it instead of saying `now()`"
)]
pub trait Immediate: Asks {
    /// Asks the store one thing inside the transaction, now.
    ///
    /// # Errors
    /// When the store is another, or cannot do it.
    fn ask_now(self, mill: &Mill, ask: Ask) -> Result<Answered, Error>;
}

impl Immediate for &Transaction<'_> {
    fn ask_now(self, mill: &Mill, ask: Ask) -> Result<Answered, Error> {
        let sqlite = mill.sqlite().ok_or(Error::NotSqlite("this transaction"))?;
        let mut answered = Answered { put: Vec::new(), settled: Vec::new(), wakes: Vec::new() };
        match ask {
            Ask::Put(requests) => {
                for request in &requests {
                    let (report, wake) = sqlite.put_in(self, request)?;
                    answered.put.push(report);
                    answered.wakes.push(Box::new(wake) as Box<dyn Any + Send>);
                }
            }
            Ask::Settle(settlement) => {
                let (settled, wake) = sqlite.complete_in(self, &[settlement])?;
                answered.settled = settled;
                answered.wakes.push(Box::new(wake));
            }
        }
        Ok(answered)
    }
}

impl Immediate for &mut Transaction<'_> {
    fn ask_now(self, mill: &Mill, ask: Ask) -> Result<Answered, Error> {
        (&*self).ask_now(mill, ask)
    }
}

impl Asks for &Transaction<'_> {
    type Asking = Ready<Result<Answered, Error>>;

    fn ask(self, mill: Mill, ask: Ask) -> Self::Asking {
        ready(self.ask_now(&mill, ask))
    }
}

impl Asks for &mut Transaction<'_> {
    type Asking = Ready<Result<Answered, Error>>;

    fn ask(self, mill: Mill, ask: Ask) -> Self::Asking {
        ready(self.ask_now(&mill, ask))
    }
}
