//! Power cuts: a file system in a file is shut down under running children.
//!
//! A killed process proves nothing about durability: what it wrote is in the
//! page cache and survives it. `xfs_io -x -c shutdown` makes the file system
//! forget everything that was not flushed, as a power cut would; mounting it
//! again replays its journal.
//!
//! A power cut stops the processes at the same instant. So they are stopped
//! first: otherwise they would go on for some milliseconds on a file system
//! that is being shut down, whose `fsync` may then say yes to what it no longer
//! writes, and note an answer that nobody could have heard.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use super::child::Dice;
use super::nemesis::{Site, kill, standing};
use super::record;
use super::verdict::{Power, Verdict, judge};
use super::{Open, block_on};

/// How a run of power cuts goes.
#[derive(Debug, Clone)]
pub struct PowerPlan {
    /// The full name of the store's child test, as the test binary knows it.
    pub child: &'static str,
    /// How many times the power is cut.
    pub cuts: usize,
    /// `ext4` or `xfs`.
    pub file_system: &'static str,
}

/// What runs beside the children on the same disk: a database has processes of
/// its own, which a power cut stops too.
pub trait Server {
    /// Starts it on the data in this folder, which is empty the first time.
    fn start(&mut self, folder: &Path);
    /// All its processes.
    fn processes(&mut self) -> Vec<u32>;
    /// Ends it after its disk is gone: it cannot be asked to.
    fn end(&mut self);
}

/// Stores that live in their user's process have none.
struct NoServer;

impl Server for NoServer {
    fn start(&mut self, _folder: &Path) {}

    fn processes(&mut self) -> Vec<u32> {
        Vec::new()
    }

    fn end(&mut self) {}
}

/// Runs children on a store inside a mounted image, cuts the power at random,
/// mounts again and judges after every cut. Needs root and loop devices.
///
/// # Errors
/// When the machine cannot do it: no root, no loop device, no tools.
pub fn power_cuts(plan: &PowerPlan, folder: &Path, open: Open) -> Result<Verdict, String> {
    power_cuts_under(plan, folder, open, &mut NoServer)
}

/// The same with a server on that disk.
///
/// # Errors
/// When the machine cannot do it: no root, no loop device, no tools.
pub fn power_cuts_under(
    plan: &PowerPlan,
    folder: &Path,
    open: Open,
    server: &mut dyn Server,
) -> Result<Verdict, String> {
    let image = Image::make(folder, plan.file_system)?;
    image.mount()?;
    let mut site = Site::new(folder, plan.child);
    site.store = image.mount.join("store");
    std::fs::create_dir_all(&site.store).map_err(|e| e.to_string())?;
    server.start(&site.store);
    block_on(async { open(&site.store).await.close().await }).map_err(|e| e.to_string())?;
    let mut dice = Dice::new();
    let mut verdict = Verdict::default();
    for cut in 1..=plan.cuts {
        let mut children = [site.start("producer"), site.start("producer"), site.start("worker")];
        std::thread::sleep(Duration::from_millis(250 + dice.below(450) as u64));
        let mut running: Vec<u32> = children.iter().map(Child::id).collect();
        // The children first: an answer of the server that they no longer
        // hear is not acknowledged.
        stop(&running)?;
        running = server.processes();
        stop(&running)?;
        image.cut()?;
        for child in &mut children {
            kill(child);
        }
        server.end();
        image.unmount()?;
        image.mount()?;
        server.start(&site.store);
        verdict = judge(&record::read_all(&site.log), &standing(&site.store, open), Power::Cut);
        if !verdict.faults.is_empty() {
            verdict.faults.push(format!("seen after cut {cut} on {}", plan.file_system));
            break;
        }
    }
    server.end();
    Ok(verdict)
}

/// Stops processes where they are, and returns when all stand still.
///
/// # Errors
/// When one of them is not there.
pub fn stop(processes: &[u32]) -> Result<(), String> {
    if processes.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = processes.iter().map(u32::to_string).collect();
    let mut arguments = vec!["-STOP"];
    arguments.extend(ids.iter().map(String::as_str));
    run("kill", &arguments)?;
    for id in &ids {
        // Every thread: one that is inside a system call stops at its end.
        let threads = Path::new("/proc").join(id).join("task");
        while !std::fs::read_dir(&threads).map_err(|e| e.to_string())?.all(|thread| {
            thread.is_ok_and(|thread| {
                let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
                stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
            })
        }) {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// A file system in a file.
#[derive(Debug)]
pub struct Image {
    file: PathBuf,
    pub(super) mount: PathBuf,
    kind: &'static str,
}

impl Image {
    /// Makes one of this kind, `ext4` or `xfs`, in the folder.
    ///
    /// # Errors
    /// When the machine cannot do it.
    pub fn make(folder: &Path, kind: &'static str) -> Result<Self, String> {
        let image = Image { file: folder.join("disk.img"), mount: folder.join("mnt"), kind };
        std::fs::create_dir_all(&image.mount).map_err(|e| e.to_string())?;
        let file = std::fs::File::create(&image.file).map_err(|e| e.to_string())?;
        file.set_len(512 << 20).map_err(|e| e.to_string())?;
        let quiet = if kind == "ext4" { "-F" } else { "-f" };
        run(&format!("mkfs.{kind}"), &["-q", quiet, &text(&image.file)])?;
        Ok(image)
    }

    /// Where it is mounted.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.mount
    }

    /// Mounts it. Needs root and loop devices.
    ///
    /// # Errors
    /// When the machine cannot do it.
    pub fn mount(&self) -> Result<(), String> {
        run("mount", &["-t", self.kind, "-o", "loop", &text(&self.file), &text(&self.mount)])
    }

    /// Forgets what was not flushed, as a power cut does. It must be unmounted and
    /// mounted again before it can be used.
    ///
    /// # Errors
    /// When `xfs_io` cannot do it.
    pub fn cut(&self) -> Result<(), String> {
        run("xfs_io", &["-x", "-c", "shutdown", &text(&self.mount)])
    }

    /// Unmounts it.
    ///
    /// # Errors
    /// When somebody still uses it.
    pub fn unmount(&self) -> Result<(), String> {
        run("umount", &[&text(&self.mount)])
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // Best effort: the test's own fault must not be hidden by this one.
        let _ = self.unmount();
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|e| format!("{program} cannot be run: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{program} {}: {said}", arguments.join(" ")))
}
