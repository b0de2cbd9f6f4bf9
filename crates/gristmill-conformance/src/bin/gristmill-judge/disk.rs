//! The disk of a run on an embedded store: a folder, a file system whose power can
//! be cut, or a small one that can be filled.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use gristmill_conformance::crash::Image;
use gristmill_conformance::judge::Dice;
use gristmill_conformance::small_disk::SmallDisk;

use crate::Result;

/// Room of the small disk.
const SMALL: usize = 96 << 20;

/// Where the store is.
#[derive(Debug)]
pub(crate) enum Disk {
    /// On the machine's own.
    Plain(PathBuf),
    /// On a file system in a file.
    Image(Image),
    /// On a small one, which is there as long as the value is.
    Small {
        #[expect(dead_code, reason = "it unmounts when it is dropped")]
        disk: SmallDisk,
        place: PathBuf,
    },
}

impl Disk {
    pub(crate) fn plain(folder: &Path) -> Result<Self> {
        let place = folder.join("store");
        std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        Ok(Disk::Plain(place))
    }

    /// One whose power can be cut; its kind is up to the dice.
    pub(crate) fn image(folder: &Path, dice: &mut Dice) -> Result<Self> {
        let kind = if dice.once_in(2) { "ext4" } else { "xfs" };
        let image = Image::make(folder, kind)?;
        image.mount()?;
        Ok(Disk::Image(image))
    }

    /// One that can be filled.
    pub(crate) fn small(folder: &Path) -> Result<Self> {
        let place = folder.join("small");
        std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        let disk = SmallDisk::mount(&place, SMALL).ok_or("no file system can be mounted here")?;
        Ok(Disk::Small { disk, place })
    }

    /// Where a store can be made.
    pub(crate) fn place(&self) -> PathBuf {
        match self {
            Disk::Plain(place) | Disk::Small { place, .. } => place.clone(),
            Disk::Image(image) => image.folder().to_owned(),
        }
    }

    /// Forgets what was not synced.
    pub(crate) fn cut(&self) -> Result<()> {
        match self {
            Disk::Image(image) => image.cut(),
            _ => Err("this disk has no power of its own".to_owned()),
        }
    }

    /// Is there again after a cut.
    pub(crate) fn come_back(&self) -> Result<()> {
        match self {
            Disk::Image(image) => image.unmount().and_then(|()| image.mount()),
            _ => Ok(()),
        }
    }

    /// Leaves no room, until [`Disk::empty`].
    pub(crate) fn fill(&self) -> Result<()> {
        let file = OpenOptions::new().create(true).append(true).open(self.filler());
        let mut file: File = file.map_err(|error| error.to_string())?;
        for size in [1 << 20, 1 << 12, 1 << 6] {
            let block = vec![7_u8; size];
            while file.write_all(&block).is_ok() {}
        }
        Ok(())
    }

    /// Gives the room back.
    pub(crate) fn empty(&self) -> Result<()> {
        std::fs::remove_file(self.filler()).map_err(|error| error.to_string())
    }

    fn filler(&self) -> PathBuf {
        self.place().join("filler")
    }
}
