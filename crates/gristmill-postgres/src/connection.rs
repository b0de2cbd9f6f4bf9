//! One connection to the server, and the way statements go over it.

use std::collections::HashMap;

use gristmill_core::{Result, StoreError};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, SimpleQueryMessage, Statement, Transaction};

use crate::StatementMode;
use crate::driver::Driver;
use crate::errors::{Intent, fault};
use crate::server::Server;
use crate::sql::Sql;

/// The transactions that our statements are written for: who waited for a lock
/// sees what its holder did. A database or role may have stricter ones as its
/// default, in which he would be told to try again instead.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

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
    mode: StatementMode,
    prepared: HashMap<Sql, Statement>,
    /// A statement by itself would be a stricter transaction than ours.
    is_strict: bool,
    /// Between BEGIN and COMMIT: not to be given to anybody else.
    pub(crate) in_transaction: bool,
}

impl Connection {
    pub(crate) async fn open(
        driver: &Driver,
        server: &Server,
        mode: StatementMode,
    ) -> Result<Self> {
        let (server, limit) = (server.clone(), server.patience());
        let opening = driver.spawn(async move { server.connect().await });
        let ended = |error| StoreError::Unavailable(format!("no connection was made: {error}"));
        let (client, connection) = opening.await.map_err(ended)??;
        driver.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to PostgreSQL ended");
            }
        });
        let is_strict = match tokio::time::timeout(limit, is_strict(&client)).await {
            Ok(answer) => answer.map_err(|e| fault(&e, Intent::Read))?,
            Err(_) => {
                let why = format!("no answer on a new connection within {limit:?}");
                return Err(StoreError::Unavailable(why));
            }
        };
        let (prepared, in_transaction) = (HashMap::new(), false);
        Ok(Connection { client, mode, prepared, is_strict, in_transaction })
    }

    /// Whether it can be used again.
    pub(crate) fn is_sound(&self) -> bool {
        !self.in_transaction && !self.client.is_closed()
    }

    /// Runs one statement and brings its rows.
    pub(crate) async fn query(
        &mut self,
        texts: &Texts,
        sql: Sql,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        if self.mode == StatementMode::Unnamed {
            let typed: Vec<_> = typed(sql, values).collect();
            return self.as_ours(self.client.query_typed(texts.of(sql), &typed)).await;
        }
        let statement = match self.prepared.get(&sql) {
            Some(statement) => statement.clone(),
            None => {
                let made = self.client.prepare_typed(texts.of(sql), sql.types()).await?;
                self.prepared.insert(sql, made.clone());
                made
            }
        };
        self.as_ours(self.client.query(&statement, values)).await
    }

    /// Runs a statement in a transaction of the kind it is written for. Where a
    /// plain one would be another kind, BEGIN and COMMIT are sent around it at
    /// once: no more waiting, and nothing that outlives the transaction, which
    /// a pooler would hand to somebody else.
    async fn as_ours<T>(
        &self,
        statement: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if !self.is_strict || self.in_transaction {
            return statement.await;
        }
        // Each sends when it is first polled, in this order.
        let (begun, answer, ended) =
            tokio::join!(self.script(BEGIN), statement, self.script("COMMIT"));
        begun?;
        let answer = answer?;
        ended.map(|()| answer)
    }

    /// Runs a script without values.
    pub(crate) async fn script(&self, text: &str) -> Result<(), Error> {
        self.client.batch_execute(text).await
    }
}

/// Whether a transaction begun without further words is stricter than ours.
async fn is_strict(client: &Client) -> Result<bool, Error> {
    let said = client.simple_query("SHOW default_transaction_isolation").await?;
    let level = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    // "read uncommitted" is the same in PostgreSQL.
    Ok(level.is_some_and(|level| !level.starts_with("read ")))
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
