//! A disk under SQLite that loses power, fails to sync, fills up and may only be read. For tests of the store alone.
//!
//! A [`Disk`] is a file layer of the engine (a VFS) over the usual one. Reads, writes and locks go through to real files;
//! beside them the disk keeps what of each file is durable, and every change since. So a power cut can be had at any moment:
//! an [`Image`] is what is durable with any part of the rest, and the real files know nothing of it.
//!
//! What is taken to be durable:
//!
//! - the content of a file, after a sync of it that succeeded;
//! - the name of a new file, after the first sync of a file that the engine syncs together with its folder (a WAL or a
//!   journal); the absence of a deleted one likewise;
//! - what a failed sync was to write: nothing, a part or all of it. A later sync doesn't write it again, and every handle that
//!   was open hears of the failure once. That is what Linux does.
//!
//! Of changes that aren't durable any may be there and any may be missing, also in part: sectors of 512 bytes are whole.

#![deny(unsafe_code)]

mod chance;
mod files;
mod vfs;

pub use chance::Chance;
pub use files::{Fault, Image, Kind, Left, Operation, Room};

use std::sync::{Mutex, MutexGuard};

use files::Files;

/// A disk. It stays for as long as the process, as the engine's list of file layers does.
#[derive(Clone, Copy)]
pub struct Disk(&'static Shared);

/// What a disk's connections share.
struct Shared {
    vfs: String,
    files: Mutex<Files>,
}

impl Shared {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().expect("nothing panics under the disk's lock")
    }
}

impl Disk {
    /// A sound disk. What it leaves to chance follows from the seed.
    pub fn new(seed: u64) -> Disk {
        Disk(vfs::register(Files::new(Chance::new(seed))))
    }

    /// The name under which the engine knows it.
    pub fn vfs(self) -> &'static str {
        &self.0.vfs
    }

    /// Notes how much has been acknowledged to callers; each image from now on says at least so much.
    pub fn note(self, acknowledged: usize) {
        self.0.files().acknowledged = acknowledged;
    }

    /// Takes images of power cuts from now on, after about every so many operations, up to so many more.
    pub fn cut_about_every(self, operations: u64, most: usize) {
        let mut files = self.0.files();
        (files.cuts_every, files.cuts_left) = (operations, most);
    }

    /// The images taken so far; they are the caller's now.
    pub fn take_images(self) -> Vec<Image> {
        std::mem::take(&mut self.0.files().images)
    }

    /// What a power cut at this moment may leave.
    pub fn cut(self) -> Image {
        self.0.files().image()
    }

    /// From now on an operation fails.
    pub fn fail(self, fault: Fault) {
        self.0.files().faults.push(fault);
    }

    /// Every operation succeeds again; what is lost stays lost.
    pub fn mend(self) {
        let mut files = self.0.files();
        files.faults.clear();
        files.room = Room::Enough;
        files.may_only_read = false;
    }

    /// How much can be written before the disk is full.
    pub fn set_room(self, room: Room) {
        self.0.files().room = room;
    }

    /// From now on the disk may only be read.
    pub fn forbid_writing(self) {
        self.0.files().may_only_read = true;
    }

    /// Operations so far that change something: writes, truncations, syncs.
    pub fn operations(self) -> u64 {
        self.0.files().operations
    }

    /// Faults that have struck so far.
    pub fn struck(self) -> u64 {
        self.0.files().struck
    }
}
