//! The store's own part of `doctor`: is the schema as the steps made it, does
//! the server keep what it promises, and what holds vacuum up?

mod drift;
mod failover;
mod server;
mod subject;

use gristmill_core::{Diagnosis, Result, StoreError, Token};

use crate::PostgresStore;
use crate::answer::column;
use crate::deadline::Class;
use crate::definition::{self, Definition};
use crate::migration;
use crate::sql::{Sql, at};
use crate::store::Inner;
use drift::Object;

impl PostgresStore {
    /// Transactions of others with puts or settlements in them that are open for
    /// longer than ten seconds, each in a sentence.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn open_puts(&self) -> Result<Vec<String>> {
        let holders = self.inner.holders().await?;
        Ok(holders.iter().filter_map(server::open_for_long).collect())
    }
}

impl Inner {
    async fn holders(&self) -> Result<Vec<server::Holder>> {
        let rows = self.pool.read(Sql::DiagnoseTransactions, &[&self.now()]).await?;
        let holder = |row| {
            Ok(server::Holder {
                kind: column(row, at!(DiagnoseTransactions.kind))?,
                name: column(row, at!(DiagnoseTransactions.name))?,
                seconds: column(row, at!(DiagnoseTransactions.seconds))?,
                who: column(row, at!(DiagnoseTransactions.who))?,
                program: column(row, at!(DiagnoseTransactions.program))?,
                state: column(row, at!(DiagnoseTransactions.state))?,
                age: column(row, at!(DiagnoseTransactions.age))?,
                is_ours: column(row, at!(DiagnoseTransactions.is_ours))?,
            })
        };
        rows.iter().map(holder).collect()
    }

    /// What is not as it should be.
    pub(crate) async fn diagnose(&self) -> Result<Vec<Diagnosis>> {
        let mut found = Vec::new();
        let mut read_only = false;
        for row in self.pool.read(Sql::DiagnoseStandbys, &[]).await? {
            let standbys = failover::Standbys {
                read_only: column(&row, at!(DiagnoseStandbys.read_only))?,
                wanted: column(&row, at!(DiagnoseStandbys.wanted))?,
                commits: column(&row, at!(DiagnoseStandbys.commits))?,
                following: column(&row, at!(DiagnoseStandbys.following))?,
                synchronous: column(&row, at!(DiagnoseStandbys.synchronous))?,
                unseen: column(&row, at!(DiagnoseStandbys.unseen))?,
            };
            read_only = standbys.read_only;
            found.extend(failover::read_only(&standbys));
            found.extend(failover::failover(&standbys));
        }
        found.extend(self.schema(read_only).await?);
        let settings = self.pool.read(Sql::DiagnoseSettings, &[]).await?;
        for row in &settings {
            let (name, value): (String, String) = (
                column(row, at!(DiagnoseSettings.name))?,
                column(row, at!(DiagnoseSettings.setting))?,
            );
            found.extend(server::setting(&name, &value));
        }
        found.extend(self.holders().await?.iter().filter_map(server::holder));
        let schema = &self.pool.texts.schema;
        for row in self.pool.read(Sql::DiagnoseTables, &[schema]).await? {
            found.extend(server::table(&server::Table {
                name: column(&row, at!(DiagnoseTables.name))?,
                live: column(&row, at!(DiagnoseTables.live))?,
                dead: column(&row, at!(DiagnoseTables.dead))?,
                bytes: column(&row, at!(DiagnoseTables.bytes))?,
                vacuumed: column(&row, at!(DiagnoseTables.vacuumed))?,
            }));
        }
        for row in self.pool.read(Sql::DiagnoseSubjects, &[]).await? {
            found.extend(subject::told(&subject::Bound {
                queue: column(&row, at!(DiagnoseSubjects.queue))?,
                table: column(&row, at!(DiagnoseSubjects.bind_table))?,
                column: column(&row, at!(DiagnoseSubjects.bind_column))?,
                fault: column(&row, at!(DiagnoseSubjects.fault))?,
                table_now: column(&row, at!(DiagnoseSubjects.table_now))?,
                column_now: column(&row, at!(DiagnoseSubjects.column_now))?,
                renamed: column(&row, at!(DiagnoseSubjects.renamed))?,
                missing: column(&row, at!(DiagnoseSubjects.missing))?,
                indexed: column(&row, at!(DiagnoseSubjects.indexed))?,
                readable: column(&row, at!(DiagnoseSubjects.readable))?,
            }));
        }
        for row in self.pool.read(Sql::DiagnoseLoad, &[]).await? {
            let (used, most): (i64, i64) = (
                column(&row, at!(DiagnoseLoad.connections))?,
                column(&row, at!(DiagnoseLoad.most))?,
            );
            let (notifications, age): (f64, i64) = (
                column(&row, at!(DiagnoseLoad.notifications))?,
                column(&row, at!(DiagnoseLoad.age))?,
            );
            found.extend(server::load(used, most, notifications, age));
        }
        Ok(found)
    }

    /// Is the schema as this program makes it?
    async fn schema(&self, read_only: bool) -> Result<Vec<Diagnosis>> {
        if migration::is_newer(&self.pool.read(Sql::DefinitionStanding, &[]).await?)? {
            return Ok(vec![Diagnosis::note(
                "newer_functions",
                "the functions of this store are those of a newer gristmill, so they were not \
                 compared",
                "run its doctor; this program uses them as they are",
            )]);
        }
        if read_only {
            return self.functions().await;
        }
        match self.drift().await {
            // Only who may make schemas can make one to compare with.
            Err(StoreError::Permission(why)) => {
                let mut found = self.functions().await?;
                found.push(Diagnosis::note(
                    "drift_unknown",
                    format!("of the schema only the functions were compared: {why:#}"),
                    "run doctor as a role that may create schemas in this database",
                ));
                Ok(found)
            }
            found => found,
        }
    }

    /// The bodies of the functions beside those this program carries: needs no
    /// right, and writes nothing.
    async fn functions(&self) -> Result<Vec<Diagnosis>> {
        let schema = &self.pool.texts.schema;
        let rows = self.pool.read(Sql::DefinitionList, &[]).await?;
        let object = |kind: &str, name: &str, definition: String| {
            let (kind, name) = (kind.to_owned(), name.to_owned());
            Object { kind, name, definition, valid: true }
        };
        let body =
            |one: &Definition| object(one.kind, one.name, one.body(schema).unwrap_or_default());
        let wanted: Vec<Object> = definition::all().iter().map(body).collect();
        let standing = definition::standing(&rows)?.into_iter();
        let standing = standing
            .filter_map(|((kind, name), (_, body))| body.map(|body| object(&kind, &name, body)));
        Ok(drift::compare(schema, &wanted, &standing.collect::<Vec<_>>()))
    }

    /// Makes the schema anew beside the real one, compares both, and takes the
    /// new one back: nobody else ever sees it.
    async fn drift(&self) -> Result<Vec<Diagnosis>> {
        let schema = self.pool.texts.schema.clone();
        let token = Token::random()?.to_string();
        let beside = format!("gristmill_doctor_{}", token.get(..12).unwrap_or_default());
        let mut connection = self.pool.take(Class::Operator).await?;
        connection.begin().await?;
        let script = migration::print(&beside);
        connection.run_script(&script).await?;
        let mut sides = Vec::with_capacity(2);
        for name in [&beside, &schema] {
            let rows = connection.run(Sql::DiagnoseObjects, &[name]).await?;
            let objects: Result<Vec<Object>> = rows
                .iter()
                .map(|row| {
                    let text = |at| -> Result<String> {
                        Ok(column::<String>(row, at)?.replace(&beside, &schema))
                    };
                    let (kind, valid) = (
                        column(row, at!(DiagnoseObjects.kind))?,
                        column(row, at!(DiagnoseObjects.valid))?,
                    );
                    Ok(Object {
                        kind,
                        name: text(at!(DiagnoseObjects.name))?,
                        definition: text(at!(DiagnoseObjects.definition))?,
                        valid,
                    })
                })
                .collect();
            sides.push(objects?);
        }
        connection.roll_back().await?;
        let standing = sides.pop().unwrap_or_default();
        let wanted = sides.pop().unwrap_or_default();
        Ok(drift::compare(&schema, &wanted, &standing))
    }
}
