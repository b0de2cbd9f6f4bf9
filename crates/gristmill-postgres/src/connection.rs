//! One connection to the server, and the way statements go over it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use gristmill_core::{Result, StoreError};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Column, Error, Row, SimpleQueryMessage, Statement, Transaction};

use crate::StatementMode;
use crate::deadline::Deadline;
use crate::driver::Driver;
use crate::line::Line;
use crate::server::{Need, Reached, Server, Wanted};
use crate::session::{self, Session};
use crate::sql::Sql;

/// How long readers go on with a server that takes no writes before another one
/// is looked for.
const STANDS_IN: Duration = Duration::from_secs(5);

/// The default name of the schema, as it stands in every `.sql` file.
const SCHEMA: &str = "gristmill";

/// The texts of all statements for one schema.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(crate) schema: String,
    made: HashMap<Sql, String>,
}

impl Texts {
    pub(crate) fn new(schema: &str) -> Self {
        let made = Sql::ALL.iter().map(|sql| (*sql, in_schema(sql.text(), schema))).collect();
        Texts { schema: schema.to_owned(), made }
    }

    pub(crate) fn of(&self, sql: Sql) -> &str {
        self.made.get(&sql).map_or_else(|| sql.text(), String::as_str)
    }

    /// The channel that wake-ups travel on.
    pub(crate) fn channel(&self) -> String {
        in_schema("gristmill.wake", &self.schema)
    }
}

/// A statement's text with another schema. Every name in it is qualified.
pub(crate) fn in_schema(text: &str, schema: &str) -> String {
    if schema == SCHEMA {
        return text.to_owned();
    }
    text.replace("gristmill.", &format!("{schema}."))
        .replace("SCHEMA IF NOT EXISTS gristmill;", &format!("SCHEMA IF NOT EXISTS {schema};"))
        .replace("SCHEMA gristmill ", &format!("SCHEMA {schema} "))
}

/// A connection of this store's own.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
    line: Line,
    session: Session,
    mode: StatementMode,
    prepared: HashMap<Sql, Statement>,
    /// Between BEGIN and COMMIT: not to be given to anybody else.
    pub(crate) in_transaction: bool,
    /// Not to be used again.
    is_spent: bool,
    /// It takes no writes, and stands in for readers until then: one that does
    /// may be there again.
    stands_in: Option<Instant>,
    /// Which of the pool's generations it belongs to.
    pub(crate) generation: u64,
}

/// Why a statement has no answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server or the driver says why.
    Said(Error),
    /// Nobody said anything in time. Whether it was sent.
    Late { sent: bool },
    /// It stands at the server, and perhaps on no standby that it should be on.
    Unsynced,
    /// It would be answered with other columns than those that are read.
    Strange(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Said(error)
    }
}

impl Connection {
    /// Makes a connection, driven by the driver's thread, before the deadline.
    pub(crate) async fn open(
        driver: &Driver,
        server: &Server,
        mode: StatementMode,
        wanted: Wanted,
        deadline: &Deadline,
    ) -> Result<Self> {
        let (server, on) = (server.clone(), driver.clone());
        let opening = driver.spawn(async move { server.reach(&on, wanted).await });
        let opening = AbortOnDrop(opening);
        let ended = |error| StoreError::unavailable("no connection was made").caused_by(error);
        let reached = match timeout_at(deadline.at, opening).await {
            Ok(reached) => reached.map_err(ended)??,
            Err(_) => {
                let why = format!("no connection within {:?}", deadline.limit);
                return Err(StoreError::unavailable(why));
            }
        };
        let Reached { client, line, session, is_spare } = reached;
        Ok(Connection {
            client,
            line,
            session,
            mode,
            prepared: HashMap::new(),
            in_transaction: false,
            is_spent: false,
            stands_in: is_spare.then(|| Instant::now() + STANDS_IN),
            generation: 0,
        })
    }

    /// Whether it can be used again.
    pub(crate) fn is_sound(&self) -> bool {
        !self.in_transaction && !self.is_spent && !self.client.is_closed()
    }

    /// Whether it does for this.
    pub(crate) fn suits(&self, need: Need) -> bool {
        self.stands_in.is_none_or(|until| need == Need::Any && Instant::now() < until)
    }

    /// It is not to be used again.
    pub(crate) fn spend(&mut self) {
        self.is_spent = true;
    }

    /// Runs one statement and brings its rows, or ends with the deadline. A
    /// transaction of its own unless one was begun. The notice goes right behind
    /// it, in a transaction of its own, and nobody waits for that one's answer.
    pub(crate) async fn query(
        &mut self,
        texts: &Texts,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
        notice: Option<&str>,
        deadline: &Deadline,
    ) -> Result<Vec<Row>, Fault> {
        // Without a name it is planned anew each time.
        let is_kept = !sql.needs_indexes() || self.session.keeps_to_indexes;
        if self.mode == StatementMode::Unnamed || !is_kept {
            let typed: Vec<_> = typed(sql, values).collect();
            let statement = self.client.query_typed(texts.of(sql), &typed);
            let answer = timeout_at(deadline.at, self.as_ours(statement, deadline)).await;
            return self.answered(answer, true);
        }
        let statement = self.prepared(texts, sql, deadline).await?;
        let notice = match notice {
            Some(words) => Some((self.prepared(texts, Sql::Notify, deadline).await?, words)),
            None => None,
        };
        let answer = self.as_ours(self.client.query(&statement, values), deadline);
        let answer = match notice {
            None => timeout_at(deadline.at, answer).await,
            Some((notify, words)) => {
                let channel = texts.channel();
                let words: [&(dyn ToSql + Sync); 2] = [&channel, &words];
                let notice = self.client.query(&notify, &words);
                timeout_at(deadline.at, followed(answer, notice)).await
            }
        };
        self.answered(answer, true)
    }

    /// The statement, prepared on this connection.
    async fn prepared(
        &mut self,
        texts: &Texts,
        sql: Sql,
        deadline: &Deadline,
    ) -> Result<Statement, Fault> {
        if let Some(statement) = self.prepared.get(&sql) {
            return Ok(statement.clone());
        }
        let made = self.client.prepare_typed(texts.of(sql), sql.types());
        let made = timeout_at(deadline.at, made).await;
        let made = self.answered(made, false)?;
        if let Some(why) = sql.strange(made.columns().iter().map(Column::name)) {
            return Err(Fault::Strange(why));
        }
        self.prepared.insert(sql, made.clone());
        Ok(made)
    }

    /// An answer, or the end of a connection whose server did not answer.
    fn answered<T>(
        &mut self,
        answer: Result<Result<T, Error>, Elapsed>,
        sent: bool,
    ) -> Result<T, Fault> {
        match answer {
            Ok(answer) if self.line.take_unsynced() => {
                answer?;
                Err(Fault::Unsynced)
            }
            Ok(answer) => Ok(answer?),
            Err(_) => {
                self.is_spent = true;
                self.line.cut();
                Err(Fault::Late { sent })
            }
        }
    }

    /// Runs a statement in a transaction of the kind it is written for, and
    /// within its time at the server. Where a plain one would be another kind,
    /// BEGIN and COMMIT are sent around it.
    async fn as_ours<T>(
        &self,
        statement: impl Future<Output = Result<T, Error>>,
        deadline: &Deadline,
    ) -> Result<T, Error> {
        if self.in_transaction || self.session.suits(deadline) {
            return statement.await;
        }
        let begin = session::begin(deadline);
        // Each sends when it is first polled, in this order.
        let (begun, answer, ended) = tokio::join!(
            self.client.batch_execute(&begin),
            statement,
            self.client.batch_execute("COMMIT")
        );
        begun?;
        let answer = answer?;
        ended.map(|()| answer)
    }

    /// Asks the server for a sign of life.
    pub(crate) async fn check(&mut self, deadline: &Deadline) -> Result<(), Fault> {
        let answer = timeout_at(deadline.at, self.client.check_connection()).await;
        self.answered(answer, false)
    }

    /// Begins a transaction of several statements; whether it can write.
    pub(crate) async fn begin(&mut self, deadline: &Deadline) -> Result<bool, Fault> {
        let begin = session::begin_several(deadline);
        let said = timeout_at(deadline.at, self.client.simple_query(&begin)).await;
        let said = self.answered(said, false)?;
        Ok(!said.iter().any(
            |message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("on")),
        ))
    }

    /// Runs a script without values.
    pub(crate) async fn script(&mut self, text: &str, deadline: &Deadline) -> Result<(), Fault> {
        let answer = timeout_at(deadline.at, self.client.batch_execute(text)).await;
        self.answered(answer, true)
    }
}

/// The first one's answer. The second is sent right behind it, and its answer is
/// left to the connection, which throws it away.
async fn followed<T>(first: impl Future<Output = T>, second: impl Future) -> T {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let mut is_sent = false;
    poll_fn(|cx| {
        // Each sends all it has to say when it is first polled.
        let answer = first.as_mut().poll(cx);
        if !std::mem::replace(&mut is_sent, true) {
            let _ = second.as_mut().poll(cx);
        }
        answer
    })
    .await
}

/// Ends a task with whoever waits for it.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs one statement in the caller's transaction, without a name: the
/// caller's connection may go through a pooler.
pub(crate) async fn query_in(
    transaction: &Transaction<'_>,
    texts: &Texts,
    sql: Sql,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, Error> {
    let typed: Vec<_> = typed(sql, values).collect();
    transaction.query_typed(texts.of(sql), &typed).await
}

fn typed<'a>(
    sql: Sql,
    values: &'a [&'a (dyn ToSql + Sync)],
) -> impl Iterator<Item = (&'a (dyn ToSql + Sync), Type)> {
    values.iter().copied().zip(sql.types().iter().cloned())
}
