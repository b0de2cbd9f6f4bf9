//! One connection to the server, and the way statements go over it.

use std::collections::HashMap;

use gristmill_core::{Result, StoreError};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Statement, Transaction};

use crate::StatementMode;
use crate::driver::Driver;
use crate::server::Server;
use crate::sql::Sql;

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
}

/// A connection of this store's own.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
    mode: StatementMode,
    prepared: HashMap<Sql, Statement>,
    /// Between BEGIN and COMMIT: not to be given to anybody else.
    pub(crate) in_transaction: bool,
}

impl Connection {
    pub(crate) async fn open(
        driver: &Driver,
        server: &Server,
        mode: StatementMode,
    ) -> Result<Self> {
        let server = server.clone();
        let opening = driver.spawn(async move { server.connect().await });
        let ended = |error| StoreError::Unavailable(format!("no connection was made: {error}"));
        let (client, connection) = opening.await.map_err(ended)??;
        driver.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to PostgreSQL ended");
            }
        });
        Ok(Connection { client, mode, prepared: HashMap::new(), in_transaction: false })
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
            return self.client.query_typed(texts.of(sql), &typed).await;
        }
        let statement = match self.prepared.get(&sql) {
            Some(statement) => statement.clone(),
            None => {
                let made = self.client.prepare_typed(texts.of(sql), sql.types()).await?;
                self.prepared.insert(sql, made.clone());
                made
            }
        };
        self.client.query(&statement, values).await
    }

    /// Runs a script without values.
    pub(crate) async fn script(&self, text: &str) -> Result<(), Error> {
        self.client.batch_execute(text).await
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
