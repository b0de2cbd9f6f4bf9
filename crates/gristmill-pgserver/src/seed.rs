//! A data directory as `initdb` leaves it, made once and copied for each
//! server: a copy takes a tenth of the time.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::binaries::Binaries;
use crate::error::run;
use crate::place::Place;
use crate::{Error, Result};

/// A data directory to copy, and the password of its superuser.
pub(crate) struct Seed {
    data: PathBuf,
    password: String,
}

impl Seed {
    /// The seed of this version, made now if there is none yet.
    pub(crate) fn ready(place: &Place, binaries: &Binaries) -> Result<Self> {
        let _making = place.lock("seed.lock")?;
        let dir = place.path(&format!("seed-{}", binaries.label()));
        let password = dir.join("password");
        // The password is written last, so it stands for a whole seed.
        if !password.is_file() {
            make(place, binaries, &dir)?;
        }
        let password =
            fs::read_to_string(&password).map_err(|error| Error::at(&password, &error))?;
        Ok(Self { data: dir.join("data"), password })
    }

    pub(crate) fn password(&self) -> &str {
        &self.password
    }

    /// Copies the data directory to a path that does not exist yet.
    pub(crate) fn copy(&self, place: &Place, to: &Path) -> Result<()> {
        let mut copy = place.account().command("cp");
        run(copy.arg("-a").arg(&self.data).arg(to))?;
        Ok(())
    }
}

fn make(place: &Place, binaries: &Binaries, dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(|error| Error::at(dir, &error))?;
    }
    place.make_private(dir)?;
    let given = dir.join("password-for-initdb");
    let password = random_password()?;
    fs::write(&given, &password).map_err(|error| Error::at(&given, &error))?;
    place.account().own(&given)?;
    let mut initdb = place.account().command(binaries.path("initdb"));
    initdb
        .args(["--username=postgres", "--encoding=UTF8", "--no-sync", "--no-instructions"])
        // The socket stands in a closed folder; the port is open to everyone
        // on this machine.
        .args(["--auth-local=trust", "--auth-host=scram-sha-256"])
        .arg("--pwfile")
        .arg(&given)
        .arg("-D")
        .arg(dir.join("data"));
    if binaries.version().parse().is_ok_and(|version: u32| version >= 15) {
        // Users' databases rarely sort by bytes. A store that relies on it must
        // not pass its tests here.
        initdb.args(["--locale=C", "--locale-provider=icu", "--icu-locale=en-US"]);
    } else {
        initdb.arg("--locale=C");
    }
    run(&mut initdb)?;
    let done = dir.join("password");
    fs::rename(&given, &done).map_err(|error| Error::at(&done, &error))
}

fn random_password() -> Result<String> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0; 16];
    fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| Error::at(path, &error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
