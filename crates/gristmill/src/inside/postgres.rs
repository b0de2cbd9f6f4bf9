//! Transactions of tokio-postgres and of sqlx: one round trip a request.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use gristmill_postgres::tokio_postgres::Transaction;
use gristmill_postgres::{PostgresStore, WakeGuard};

use super::sealed::Asks;
use super::{Answered, Ask};
use crate::{Error, Mill};

type Asking<'t> = Pin<Box<dyn Future<Output = Result<Answered, Error>> + Send + 't>>;

fn store(mill: &Mill) -> Result<Arc<PostgresStore>, Error> {
    mill.postgres().cloned().ok_or(Error::NotPostgres("this transaction"))
}

/// Asks the store by these two calls of it.
macro_rules! ask {
    ($mill:expr, $ask:expr, $transaction:expr, $put:ident, $complete:ident) => {
        Box::pin(async move {
            let store = store(&$mill)?;
            let mut answered = Answered { put: Vec::new(), settled: Vec::new(), wakes: Vec::new() };
            match $ask {
                Ask::Put(requests) => {
                    for request in &requests {
                        let (report, wake) = store.$put($transaction, request).await?;
                        answered.put.push(report);
                        answered.wakes.push(wakes(wake));
                    }
                }
                Ask::Settle(settlement) => {
                    let (settled, wake) = store.$complete($transaction, &[settlement]).await?;
                    answered.settled = settled;
                    answered.wakes.push(wakes(wake));
                }
            }
            Ok(answered)
        })
    };
}

fn wakes(guard: WakeGuard) -> Box<dyn Any + Send> {
    Box::new(guard)
}

impl<'t> Asks for &'t Transaction<'_> {
    type Asking = Asking<'t>;

    fn ask(self, mill: Mill, ask: Ask) -> Asking<'t> {
        ask!(mill, ask, self, put_in, complete_in)
    }
}

impl<'t> Asks for &'t mut Transaction<'_> {
    type Asking = Asking<'t>;

    fn ask(self, mill: Mill, ask: Ask) -> Asking<'t> {
        ask!(mill, ask, &*self, put_in, complete_in)
    }
}

#[cfg(feature = "sqlx")]
impl<'t, 'c: 't> Asks for &'t mut gristmill_postgres::sqlx::Transaction<'c> {
    type Asking = Asking<'t>;

    fn ask(self, mill: Mill, ask: Ask) -> Asking<'t> {
        ask!(mill, ask, &mut *self, put_in_sqlx, complete_in_sqlx)
    }
}
