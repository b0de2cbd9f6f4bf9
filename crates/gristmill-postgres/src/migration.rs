//! The schema's own history: each step of the tables runs once, under an advisory
//! lock however many processes start at once, and is remembered with a checksum of
//! its text. In the same transaction functions, views and triggers are made that are
//! not those of this program; see [`crate::definition`].

use gristmill_core::{Result, StoreError, Token};
use gristmill_text::statement;
use sha2::{Digest, Sha256};
use tokio_postgres::types::ToSql;

use crate::answer::column;
use crate::connection::in_schema;
use crate::deadline::Class;
use crate::pool::{Pool, Taken};
use crate::sql::{Sql, at};
use crate::{Options, definition, rights};

/// All steps in order; the position is the version.
const STEPS: &[&str] = &[
    include_str!("sql/migration/0001_tables.sql"),
    include_str!("sql/migration/0002_subjects.sql"),
    include_str!("sql/migration/0003_lists.sql"),
    include_str!("sql/migration/0004_waits.sql"),
];

/// The newest schema this program knows.
const KNOWN: i32 = STEPS.len() as i32;

const META: &str = statement(include_str!("sql/migration.sql"), "meta_make");
const DEFINE: &str = include_str!("sql/define.sql");
const DROP: &str = statement(include_str!("sql/migration.sql"), "definition_drop");
const RECORD: &str = statement(include_str!("sql/migration.sql"), "print_record");
const RECORD_DEFINITION: &str = statement(include_str!("sql/migration.sql"), "print_definition");
const RECORD_META: &str = statement(include_str!("sql/migration.sql"), "print_meta");

/// The statements that make the newest schema out of nothing, as one script
/// to be run in one transaction. It says of itself what it made, so that a
/// program that opens the store finds nothing left to do.
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
    for text in definition::texts() {
        script += &in_schema(text, schema);
        script.push('\n');
    }
    for one in definition::all() {
        script += &in_schema(RECORD_DEFINITION, schema)
            .replace("{kind}", one.kind)
            .replace("{name}", one.name)
            .replace("{checksum}", &one.checksum);
    }
    let program: Vec<String> = definition::program().iter().map(ToString::to_string).collect();
    script
        + &in_schema(RECORD_META, schema)
            .replace("{definitions}", definition::fingerprint())
            .replace("{program}", &format!("{{{}}}", program.join(",")))
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

/// Makes a store's functions and views again, and the triggers that are missing, and
/// tells what was not as it should be. Those of a newer program than this one are
/// left as they are.
///
/// # Errors
/// When the URL cannot be read, the server cannot be reached, there is no store,
/// or the role that connects does not own the schema.
pub async fn restore(url: &str) -> Result<Vec<String>> {
    let (server, options) = crate::url::read(url, Options::default())?;
    let pool = Pool::new(server, &Options { connections: 1, ..options })?;
    let made = run(&pool, true).await;
    pool.close();
    made
}

/// Brings the schema to the newest version, or with `migrate` off says what is
/// missing. Returns the store's own id.
pub(crate) async fn migrate(pool: &Pool, migrate: bool) -> Result<String> {
    // Most opens find nothing to do and should not wait for a lock.
    let found = recorded(pool).await?;
    let schema = &pool.texts.schema;
    if found < KNOWN {
        if !migrate {
            return Err(StoreError::not_a_store(format!(
                "schema '{schema}' has version {found} and this program needs {KNOWN}: run \
                 `gristmill migrate`"
            )));
        }
        run(pool, false).await?;
    } else if is_behind(&pool.read(Sql::DefinitionStanding, &[]).await?)? {
        if !migrate {
            return Err(StoreError::not_a_store(format!(
                "the functions of schema '{schema}' are an older program's: run `gristmill migrate`"
            )));
        }
        run(pool, false).await?;
    }
    let rows = pool.read(Sql::MetaGet, &[]).await?;
    match rows.first() {
        Some(row) => column(row, at!(MetaGet.store_id)),
        None => Err(StoreError::not_a_store("the store has lost its id".to_owned())),
    }
}

/// Everything that is to be done, in one transaction and one at a time. With
/// `restore` also what somebody changed by hand; tells what that was.
async fn run(pool: &Pool, restore: bool) -> Result<Vec<String>> {
    let mut connection = pool.take(Class::Long).await?;
    connection.begin().await?;
    connection.run(Sql::MigrationLock, &[&pool.texts.schema]).await?;
    steps(&mut connection, pool).await?;
    let before = if restore { standing(&mut connection, pool).await? } else { Vec::new() };
    definitions(&mut connection, pool, restore).await?;
    let after = if restore { standing(&mut connection, pool).await? } else { Vec::new() };
    connection.commit().await?;
    let made = after.into_iter().filter(|one| !before.contains(one));
    Ok(made.map(|(name, _)| name).collect())
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
    if found > 0 && found < KNOWN {
        rights::grant_tables(connection, schema).await?;
    }
    if found == 0 {
        let id = Token::random()?;
        let make = in_schema(META, schema).replace("{id}", &id.to_string());
        connection.run_script(&make).await?;
    }
    Ok(())
}

/// Everything in the schema by its name, each with the statement that makes it.
async fn standing(connection: &mut Taken<'_>, pool: &Pool) -> Result<Vec<(String, String)>> {
    let rows = connection.run(Sql::DiagnoseObjects, &[&pool.texts.schema]).await?;
    let named = |row| {
        let (name, definition): (String, String) = (
            column(row, at!(DiagnoseObjects.name))?,
            column(row, at!(DiagnoseObjects.definition))?,
        );
        let name = name.split('(').next().unwrap_or_default().to_owned();
        Ok((name, definition))
    };
    rows.iter().map(named).collect()
}

/// Makes what was made by another text or is missing, or with `again` whatever can
/// be made anew in its place; unless a newer program made it.
async fn definitions(connection: &mut Taken<'_>, pool: &Pool, again: bool) -> Result<()> {
    let schema = pool.texts.schema.as_str();
    if is_newer(&connection.run(Sql::DefinitionStanding, &[]).await?)? {
        return Ok(());
    }
    let standing = definition::standing(&connection.run(Sql::DefinitionList, &[]).await?)?;
    let all = definition::all();
    let (mut kinds, mut names, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut checksums, mut marked) = (Vec::new(), Vec::new());
    for one in all {
        kinds.push(one.kind);
        names.push(one.name);
        texts.push(one.replacing(schema));
        checksums.push(one.checksum.as_str());
        // A trigger that is made anew locks its table.
        marked.push(again && one.kind != "trigger" || one.is_to_make(&standing));
    }
    connection.run_script(&in_schema(DEFINE, schema)).await?;
    let values: [&(dyn ToSql + Sync); 5] = [&kinds, &names, &texts, &checksums, &marked];
    let rows = connection.run(Sql::DefinitionDefine, &values).await?;
    connection.run_script(&in_schema(DROP, schema)).await?;
    let (whole, program) = (definition::fingerprint(), definition::program());
    connection.run(Sql::DefinitionRemember, &[&whole, &program]).await?;
    let new: Vec<String> =
        rows.first().map_or(Ok(Vec::new()), |row| column(row, at!(DefinitionDefine.new)))?;
    rights::grant_new(connection, schema, &new).await
}

/// Whether a newer program made what stands besides tables.
pub(crate) fn is_newer(rows: &[tokio_postgres::Row]) -> Result<bool> {
    let Some(row) = rows.first() else {
        return Ok(false);
    };
    let program: Vec<i32> = column(row, at!(DefinitionStanding.program))?;
    Ok(program > definition::program())
}

/// Whether what stands besides tables is another program's, and not a newer one's.
fn is_behind(rows: &[tokio_postgres::Row]) -> Result<bool> {
    let Some(row) = rows.first() else {
        return Ok(true);
    };
    let whole: String = column(row, at!(DefinitionStanding.definitions))?;
    Ok(whole != definition::fingerprint() && !is_newer(rows)?)
}

/// The version the schema is at, after comparing every step with ours; 0 when
/// there is none.
async fn recorded(pool: &Pool) -> Result<i32> {
    let table = in_schema("gristmill.migration", &pool.texts.schema);
    let rows = pool.read(Sql::MigrationKnown, &[&table]).await?;
    let there: bool =
        rows.first().map_or(Ok(false), |row| column(row, at!(MigrationKnown.stands)))?;
    if !there {
        return Ok(0);
    }
    check(&pool.read(Sql::MigrationList, &[]).await?)
}

fn check(rows: &[tokio_postgres::Row]) -> Result<i32> {
    let mut newest = 0;
    for row in rows {
        let (version, found): (i32, String) =
            (column(row, at!(MigrationList.version))?, column(row, at!(MigrationList.checksum))?);
        newest = version;
        let step = usize::try_from(version - 1).ok().and_then(|at| STEPS.get(at));
        if step.is_some_and(|text| checksum(text) != found) {
            return Err(StoreError::not_a_store(format!(
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

/// What tells one text from another.
pub(crate) fn checksum(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
