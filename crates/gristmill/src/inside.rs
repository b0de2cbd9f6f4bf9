//! Putting and completing inside the caller's own transaction, of whichever
//! driver it is.

use std::any::Any;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use gristmill_core::{PutReport, PutRequest, SettleAnswer, Settlement};

use crate::{Error, Mill};

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "sqlite")]
pub(crate) use sqlite::Immediate;

/// Your own transaction, on the file or database that the store is in. Pass `&mut`
/// a transaction of
///
/// - rusqlite 0.39, 0.40 or 0.41 ([`gristmill::sqlite::rusqlite`](crate::sqlite)
///   is the one that fits; one build has one libsqlite3-sys, so say
///   `rusqlite = ">=0.39, <0.42"` and let Cargo choose);
/// - tokio-postgres 0.7 ([`gristmill::postgres::tokio_postgres`](crate::postgres));
/// - sqlx 0.9 on PostgreSQL, with the feature `sqlx`, which needs Rust 1.94.
///
/// A shared borrow does as well where the driver needs no more.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no transaction that Gristmill can put in",
    label = "not a transaction of a driver that fits",
    note = "pass `&mut` a transaction of rusqlite 0.39 to 0.41, of tokio-postgres 0.7, or, with \
            the feature `sqlx`, of sqlx 0.9 on PostgreSQL; another version of a driver is another \
            type"
)]
pub trait Transaction: sealed::Asks {}

impl<Tx: sealed::Asks> Transaction for Tx {}

pub(crate) mod sealed {
    use std::future::Future;

    use super::{Answered, Ask};
    use crate::{Error, Mill};

    /// A driver's transaction: ours to change.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is no transaction that Gristmill can put in",
        label = "not a transaction of a driver that fits",
        note = "pass `&mut` a transaction of rusqlite 0.39 to 0.41, of tokio-postgres 0.7, or, \
                with the feature `sqlx`, of sqlx 0.9 on PostgreSQL; another version of a driver \
                is another type"
    )]
    pub trait Asks: Sized {
        /// The answer under way.
        type Asking: Future<Output = Result<Answered, Error>> + Unpin;

        /// Asks the store one thing inside the transaction.
        fn ask(self, mill: Mill, ask: Ask) -> Self::Asking;
    }
}

/// What is asked inside a transaction.
#[derive(Debug)]
pub enum Ask {
    /// Puts, a request a queue.
    Put(Vec<PutRequest>),
    /// The end of one attempt.
    Settle(Settlement),
}

/// What the store says, and what wakes workers when it is dropped.
#[derive(Debug)]
pub struct Answered {
    /// A report a request.
    pub(crate) put: Vec<PutReport>,
    /// Of a settlement.
    pub(crate) settled: Vec<SettleAnswer>,
    pub(crate) wakes: Vec<Box<dyn Any + Send>>,
}

/// Makes of the answer what the caller asked for.
type Read<A> = Box<dyn FnOnce(Answered) -> Result<A, Error> + Send>;

/// Something asked for inside your transaction. It happens when it is awaited;
/// in a transaction of SQLite, whose calls do not wait, [`Within::now`] does it
/// without an await, also where a future may go from thread to thread and a
/// transaction of rusqlite may not.
#[must_use = "this happens when it is awaited"]
pub struct Within<Tx, A> {
    mill: Mill,
    transaction: Tx,
    ask: Result<Ask, Error>,
    read: Read<Uncommitted<A>>,
}

impl<Tx, A> fmt::Debug for Within<Tx, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Within").field("ask", &self.ask).finish_non_exhaustive()
    }
}

impl<Tx: Transaction, A: 'static> Within<Tx, A> {
    pub(crate) fn put(
        mill: Mill,
        transaction: Tx,
        requests: Result<Vec<PutRequest>, Error>,
        read: impl FnOnce(Vec<PutReport>) -> Result<A, Error> + Send + 'static,
    ) -> Self {
        Within {
            mill,
            transaction,
            ask: requests.map(Ask::Put),
            read: Box::new(|Answered { put, wakes, .. }| {
                Ok(Uncommitted { answer: read(put)?, wakes })
            }),
        }
    }

    pub(crate) fn settle(
        mill: Mill,
        transaction: Tx,
        settlement: Settlement,
        read: fn(&[SettleAnswer]) -> Result<A, Error>,
    ) -> Self {
        Within {
            mill,
            transaction,
            ask: Ok(Ask::Settle(settlement)),
            read: Box::new(move |Answered { settled, wakes, .. }| {
                Ok(Uncommitted { answer: read(&settled)?, wakes })
            }),
        }
    }
}

#[cfg(feature = "sqlite")]
impl<Tx: Immediate, A> Within<Tx, A> {
    /// Does it now, without an await: in a transaction of SQLite.
    ///
    /// # Errors
    /// As awaiting it.
    pub fn now(self) -> Result<Uncommitted<A>, Error> {
        (self.read)(self.transaction.ask_now(&self.mill, self.ask?)?)
    }
}

impl<Tx: Transaction, A> IntoFuture for Within<Tx, A> {
    type Output = Result<Uncommitted<A>, Error>;
    type IntoFuture = Asking<Tx::Asking, A>;

    fn into_future(self) -> Self::IntoFuture {
        let Within { mill, transaction, ask, read } = self;
        Asking { asking: ask.map(|ask| transaction.ask(mill, ask)), read: Some(read) }
    }
}

/// The future of a [`Within`].
pub struct Asking<F, A> {
    asking: Result<F, Error>,
    read: Option<Read<Uncommitted<A>>>,
}

impl<F, A> fmt::Debug for Asking<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").finish_non_exhaustive()
    }
}

// Nothing in it is pinned: the future inside can be moved itself.
impl<F: Unpin, A> Unpin for Asking<F, A> {}

impl<F, A> Future for Asking<F, A>
where
    F: Future<Output = Result<Answered, Error>> + Unpin,
{
    type Output = Result<Uncommitted<A>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answered = match &mut self.asking {
            Ok(asking) => match Pin::new(asking).poll(context) {
                Poll::Ready(answered) => answered,
                Poll::Pending => return Poll::Pending,
            },
            Err(error) => Err(std::mem::replace(error, Error::LeaseLost)),
        };
        // A future is not asked again once it has answered.
        let Some(read) = self.read.take() else { return Poll::Pending };
        Poll::Ready(answered.and_then(read))
    }
}

/// What was put or settled inside your transaction: it comes true when, and only
/// when, that commits.
///
/// Say [`Uncommitted::committed`] right after the commit, so that workers hear of
/// it at once. One that is dropped wakes them too: a worker that looks in vain
/// costs less than one that sleeps, and a commit after that is seen at its next
/// look.
pub struct Uncommitted<A> {
    answer: A,
    wakes: Vec<Box<dyn Any + Send>>,
}

impl<A: fmt::Debug> fmt::Debug for Uncommitted<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Uncommitted").field(&self.answer).finish()
    }
}

impl<A> Uncommitted<A> {
    /// The answer, which holds if the transaction commits.
    pub const fn answer(&self) -> &A {
        &self.answer
    }

    /// The transaction was committed: wakes workers, and gives the answer.
    pub fn committed(self) -> A {
        drop(self.wakes);
        self.answer
    }
}
