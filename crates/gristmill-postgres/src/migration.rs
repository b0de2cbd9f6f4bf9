//! The schema's own history: each step runs once, under an advisory lock
//! however many processes start at once, and is remembered with a checksum of
//! its text.

use gristmill_core::{Result, StoreError, Token};
use sha2::{Digest, Sha256};

use crate::Options;
use crate::answer::column;
use crate::connection::in_schema;
use crate::deadline::Class;
use crate::pool::{Pool, Taken};
use crate::sql::Sql;

/// All steps in order; the position is the version.
const STEPS: &[&str] = &[
    include_str!("sql/migration/0001_tables.sql"),
    include_str!("sql/migration/0002_policy.sql"),
    include_str!("sql/migration/0003_put.sql"),
    include_str!("sql/migration/0004_moves.sql"),
    include_str!("sql/migration/0005_claim.sql"),
    include_str!("sql/migration/0006_settle.sql"),
    include_str!("sql/migration/0007_watch.sql"),
    include_str!("sql/migration/0008_subject.sql"),
    include_str!("sql/migration/0009_surface.sql"),
    include_str!("sql/migration/0010_import.sql"),
    include_str!("sql/migration/0011_arguments.sql"),
    include_str!("sql/migration/0012_queues.sql"),
    include_str!("sql/migration/0013_operators.sql"),
    include_str!("sql/migration/0014_schedules.sql"),
    include_str!("sql/migration/0015_maintain.sql"),
];

/// The newest schema this program knows.
const KNOWN: i32 = STEPS.len() as i32;

const META: &str = include_str!("sql/meta_make.sql");
const RECORD: &str = include_str!("sql/print_record.sql");

/// The statements that make the newest schema out of nothing, as one script
/// to be run in one transaction. It says of itself which steps it took, so that
/// a program that opens the store finds nothing left to do.
#[must_use]
pub fn print(schema: &str) -> String {
    let mut script = format!("{};\n\n", in_schema(Sql::MigrationTable.text(), schema).trim_end());
    for (version, text) in (1..).zip(STEPS) {
        let version: i32 = version;
        script += &in_schema(text, schema);
        script += &in_schema(RECORD, schema)
            .replace("{version}", &version.to_string())
            .replace("{checksum}", &checksum(text));
        script.push('\n');
    }
    let meta = in_schema(META, schema).replace("'{id}'", "gen_random_uuid()");
    script + meta.trim_end() + ";\n"
}

/// As [`print()`], for the schema that a store's URL names.
///
/// # Errors
/// When the URL cannot be read.
pub fn print_for(url: &str) -> Result<String> {
    Ok(print(&crate::url::read(url, Options::default())?.1.schema))
}

/// The schema's version, 0 when there is none, and the newest this program
/// knows.
///
/// # Errors
/// When the URL cannot be read, the server cannot be reached, or the schema is
/// not one this program knows.
pub async fn versions(url: &str) -> Result<(u32, u32)> {
    let (server, options) = crate::url::read(url, Options::default())?;
    let pool = Pool::new(server, &Options { connections: 1, ..options })?;
    let found = recorded(&pool).await?;
    pool.close();
    Ok((found.unsigned_abs(), KNOWN.unsigned_abs()))
}

/// Brings the schema to the newest version, or with `migrate` off says what is
/// missing. Returns the store's own id.
pub(crate) async fn migrate(pool: &Pool, migrate: bool) -> Result<String> {
    // Most opens find nothing to do and should not wait for a lock.
    let found = recorded(pool).await?;
    if found < KNOWN {
        if !migrate {
            return Err(StoreError::NotAStore(format!(
                "schema '{}' has version {found} and this program needs {KNOWN}: run `gristmill \
                 migrate`",
                pool.texts.schema
            )));
        }
        let mut connection = pool.take(Class::Long).await?;
        connection.begin().await?;
        connection.run(Sql::MigrationLock, &[&pool.texts.schema]).await?;
        steps(&mut connection, pool).await?;
        connection.commit().await?;
    }
    let rows = pool.read(Sql::MetaGet, &[]).await?;
    match rows.first() {
        Some(row) => column(row, 0),
        None => Err(StoreError::NotAStore("the store has lost its id".to_owned())),
    }
}

async fn steps(connection: &mut Taken<'_>, pool: &Pool) -> Result<()> {
    let schema = pool.texts.schema.as_str();
    let table = in_schema(Sql::MigrationTable.text(), schema);
    connection.run_script(&table).await?;
    let rows = connection.run(Sql::MigrationList, &[]).await?;
    let found = check(&rows)?;
    for (version, text) in (1i32..).zip(STEPS).filter(|(version, _)| *version > found) {
        let script = in_schema(text, schema);
        connection.run_script(&script).await?;
        connection.run(Sql::MigrationRecord, &[&version, &checksum(text)]).await?;
    }
    if found == 0 {
        let id = Token::random()?;
        let make = in_schema(META, schema).replace("{id}", &id.to_string());
        connection.run_script(&make).await?;
    }
    Ok(())
}

/// The version the schema is at, after comparing every step with ours; 0 when
/// there is none.
async fn recorded(pool: &Pool) -> Result<i32> {
    let table = in_schema("gristmill.migration", &pool.texts.schema);
    let rows = pool.read(Sql::MigrationKnown, &[&table]).await?;
    let there: bool = rows.first().map_or(Ok(false), |row| column(row, 0))?;
    if !there {
        return Ok(0);
    }
    check(&pool.read(Sql::MigrationList, &[]).await?)
}

fn check(rows: &[tokio_postgres::Row]) -> Result<i32> {
    let mut newest = 0;
    for row in rows {
        let (version, found): (i32, String) = (column(row, 0)?, column(row, 1)?);
        newest = version;
        let step = usize::try_from(version - 1).ok().and_then(|at| STEPS.get(at));
        if step.is_some_and(|text| checksum(text) != found) {
            return Err(StoreError::NotAStore(format!(
                "step {version} of the schema is not the one this program knows; it was made by a \
                 changed gristmill, or changed by hand"
            )));
        }
    }
    if newest > KNOWN {
        return Err(StoreError::NewerSchema { found: newest.into(), known: KNOWN.into() });
    }
    Ok(newest)
}

fn checksum(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
