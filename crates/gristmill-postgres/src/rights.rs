//! The database roles of a store: who may put, work, look and operate.

use gristmill_core::Result;

use crate::Options;
use crate::connection::in_schema;
use crate::deadline::Class;
use crate::pool::Pool;

const RIGHTS: &str = include_str!("sql/rights.sql");

/// The statements that make the roles of a schema and grant each what it may do.
/// They can be run again, and are to be after a migration.
#[must_use]
pub fn print(schema: &str) -> String {
    in_schema(RIGHTS, schema)
        .replace("SCHEMA gristmill\n", &format!("SCHEMA {schema}\n"))
        .replace("gristmill_", &format!("{schema}_"))
}

/// As [`print()`], for the schema that a store's URL names.
///
/// # Errors
/// When the URL cannot be read.
pub fn print_for(url: &str) -> Result<String> {
    Ok(print(&crate::url::read(url, Options::default())?.1.schema))
}

/// Makes the roles of a store and grants each what it may do.
///
/// # Errors
/// When the URL cannot be read, the server cannot be reached, there is no store,
/// or the role that connects may not make roles or does not own the schema.
pub async fn make(url: &str) -> Result<()> {
    let (server, options) = crate::url::read(url, Options::default())?;
    let script = print(&options.schema);
    let pool = Pool::new(server, &Options { connections: 1, ..options })?;
    let made = run(&pool, &script).await;
    pool.close();
    made
}

async fn run(pool: &Pool, script: &str) -> Result<()> {
    let mut connection = pool.take(Class::Long).await?;
    connection.begin().await?;
    connection.run_script(script).await?;
    connection.commit().await
}
