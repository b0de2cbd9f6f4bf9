//! The database roles of a store: who may put, work, look and operate.

use gristmill_core::Result;
use gristmill_text::statement;

use crate::Options;
use crate::answer::column;
use crate::connection::in_schema;
use crate::deadline::Class;
use crate::pool::{Pool, Taken};
use crate::sql::{Sql, at};

const RIGHTS: &str = include_str!("sql/rights.sql");
const GRANT: &str = statement(include_str!("sql/migration.sql"), "rights_grant");

/// Where what programs may do begins: with the tables.
const TABLES: &str = "-- Programs that use the library";

/// All roles, as they are called with the schema's default name.
const ROLES: [&str; 5] =
    ["gristmill_put", "gristmill_work", "gristmill_read", "gristmill_admin", STORE];
const STORE: &str = "gristmill_store";

/// The statements that make the roles of a schema and grant each what it may do.
/// They can be run again, and are to be after a migration.
#[must_use]
pub fn print(schema: &str) -> String {
    with_roles(RIGHTS, schema)
}

/// Statements with another schema and its roles.
fn with_roles(text: &str, schema: &str) -> String {
    in_schema(text, schema)
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

/// Those of the roles that were made for this schema.
async fn standing(connection: &mut Taken<'_>, schema: &str) -> Result<Vec<String>> {
    let roles: Vec<String> = ROLES.iter().map(|role| named(role, schema)).collect();
    let rows = connection.run(Sql::RoleStanding, &[&roles]).await?;
    rows.iter().map(|row| column(row, at!(RoleStanding.role))).collect()
}

/// A role's name in a schema of another name than the default.
fn named(role: &str, schema: &str) -> String {
    role.replacen("gristmill", schema, 1)
}

/// Grants what a step may have made to the role of programs, where it stands.
pub(crate) async fn grant_tables(connection: &mut Taken<'_>, schema: &str) -> Result<()> {
    let tables = RIGHTS.find(TABLES).and_then(|at| RIGHTS.get(at..)).unwrap_or_default();
    if standing(connection, schema).await?.contains(&named(STORE, schema)) {
        connection.run_script(&with_roles(tables, schema)).await?;
    }
    Ok(())
}

/// Grants new functions to the roles they are for, where these were made: a
/// process with the rights of a role goes on after a migration. What somebody took
/// from a role of what stood before stays taken.
pub(crate) async fn grant_new(
    connection: &mut Taken<'_>,
    schema: &str,
    functions: &[String],
) -> Result<()> {
    let standing = standing(connection, schema).await?;
    let mut script = String::new();
    for function in functions {
        let to: Vec<String> = roles_of(function)
            .map(|role| named(role, schema))
            .filter(|role| standing.contains(role))
            .collect();
        if !to.is_empty() {
            script += &in_schema(GRANT, schema)
                .replace("{function}", function)
                .replace("{roles}", &to.join(", "));
        }
    }
    connection.run_script(&script).await
}

/// The roles that may call a function.
fn roles_of(function: &str) -> impl Iterator<Item = &'static str> {
    let granted = RIGHTS.split(';').filter_map(move |statement| {
        let (_, grant) = statement.split_once("GRANT EXECUTE ON FUNCTION ")?;
        let (functions, roles) = grant.split_once(" TO ")?;
        let meant = |one: &str| one.trim().strip_prefix("gristmill.") == Some(function);
        functions.split(',').any(meant).then(|| roles.split(',').map(str::trim))
    });
    // Every function is for programs.
    granted.flatten().chain([STORE])
}

async fn run(pool: &Pool, script: &str) -> Result<()> {
    let mut connection = pool.take(Class::Long).await?;
    connection.begin().await?;
    connection.run_script(script).await?;
    connection.commit().await
}
