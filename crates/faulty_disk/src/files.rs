//! The files of a disk: what of each is durable, what has changed since, and what goes wrong.

mod image;

use std::collections::BTreeMap;
use std::ffi::c_int;

use rusqlite::ffi;

use crate::chance::Chance;

pub use image::Image;
use image::{Manner, Tally, keep};

/// What a file is to the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The database.
    Database,
    /// Its write-ahead log.
    Wal,
    /// Its rollback journal.
    Journal,
}

impl Kind {
    fn of(path: &str) -> Kind {
        match path {
            path if path.ends_with("-wal") => Kind::Wal,
            path if path.ends_with("-journal") => Kind::Journal,
            _ => Kind::Database,
        }
    }
}

/// What fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A read.
    Read,
    /// A read that finds the file ended early.
    ShortRead,
    /// A write, of which nothing is done.
    Write,
    /// A write, of which a part is done.
    ShortWrite,
    /// A sync.
    Sync(Left),
}

/// What a failed sync has brought to the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// Any part.
    Some,
    /// All of it.
    All,
}

/// An operation that fails.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// On which file.
    pub kind: Kind,
    /// Which operation, and how.
    pub operation: Operation,
    /// So many succeed first.
    pub after: u64,
    /// So many fail.
    pub times: u64,
}

/// How much can be written before the disk is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Whatever comes.
    Enough,
    /// Files may grow by so many bytes.
    ToGrow(u64),
    /// So many bytes can be written, and writing in place takes room too, as on a disk that copies on write.
    ToWrite(u64),
}

/// A change that isn't durable.
#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, data: Vec<u8> },
    Truncate(usize),
}

struct File {
    kind: Kind,
    durable: Vec<u8>,
    /// Whether its name would be found after a power cut.
    is_named: bool,
    pending: Vec<Change>,
    /// As the programs see it.
    size: usize,
    /// Syncs of it that failed.
    failures: u64,
}

/// All files, by path.
pub(crate) struct Files {
    files: BTreeMap<String, File>,
    /// Files that were deleted, and may be there again after a power cut.
    deleted: BTreeMap<String, Vec<u8>>,
    chance: Chance,
    pub(crate) cuts_every: u64,
    pub(crate) cuts_left: usize,
    pub(crate) images: Vec<Image>,
    pub(crate) acknowledged: usize,
    pub(crate) operations: u64,
    pub(crate) faults: Vec<Fault>,
    pub(crate) struck: u64,
    pub(crate) room: Room,
    pub(crate) may_only_read: bool,
}

impl Files {
    pub(crate) fn new(chance: Chance) -> Files {
        Files {
            files: BTreeMap::new(),
            deleted: BTreeMap::new(),
            chance,
            cuts_every: u64::MAX,
            cuts_left: 0,
            images: Vec::new(),
            acknowledged: 0,
            operations: 0,
            faults: Vec::new(),
            struck: 0,
            room: Room::Enough,
            may_only_read: false,
        }
    }

    /// A handle is opened. What was there when the disk first heard of a file is durable, but for the name of an empty one: the
    /// store has just made it. How often its syncs have failed so far.
    pub(crate) fn open(&mut self, path: &str, content: impl FnOnce() -> Vec<u8>) -> u64 {
        let file = self.files.entry(path.to_owned()).or_insert_with(|| {
            let durable = content();
            let (size, is_named) = (durable.len(), !durable.is_empty());
            File { kind: Kind::of(path), durable, is_named, pending: Vec::new(), size, failures: 0 }
        });
        file.failures
    }

    /// A file is deleted; its folder may be synced with it.
    pub(crate) fn delete(&mut self, path: &str, with_folder: bool) {
        self.operate();
        if let Some(mut file) = self.files.remove(path)
            && file.is_named
        {
            let manner = Manner::draw(&mut self.chance);
            keep(&mut file.durable, &file.pending, manner, &mut self.chance, &mut Tally::default());
            self.deleted.insert(path.to_owned(), file.durable);
        }
        if with_folder {
            self.sync_folder();
        }
    }

    /// What a read fails with.
    pub(crate) fn read(&mut self, path: &str) -> Result<(), c_int> {
        if self.strikes(path, Operation::Read) {
            return Err(ffi::SQLITE_IOERR_READ);
        }
        if self.strikes(path, Operation::ShortRead) {
            return Err(ffi::SQLITE_IOERR_SHORT_READ);
        }
        Ok(())
    }

    /// Bytes are written: how many of them, and what the write fails with.
    pub(crate) fn write(&mut self, path: &str, offset: usize, data: &[u8]) -> (usize, Result<(), c_int>) {
        self.operate();
        let (count, done) = self.may_write(path, offset, data.len());
        if let Some(file) = self.files.get_mut(path)
            && count > 0
        {
            file.pending.push(Change::Write { offset, data: data[..count].to_vec() });
            file.size = file.size.max(offset + count);
        }
        (count, done)
    }

    fn may_write(&mut self, path: &str, offset: usize, length: usize) -> (usize, Result<(), c_int>) {
        if self.may_only_read || self.strikes(path, Operation::Write) {
            return (0, Err(ffi::SQLITE_IOERR_WRITE));
        }
        if self.strikes(path, Operation::ShortWrite) {
            return (self.chance.below(length as u64) as usize, Err(ffi::SQLITE_IOERR_WRITE));
        }
        let size = self.files.get(path).map_or(0, |file| file.size);
        let in_place = size.saturating_sub(offset).min(length);
        let (left, free) = match &mut self.room {
            Room::Enough => return (length, Ok(())),
            Room::ToGrow(left) => (left, in_place),
            Room::ToWrite(left) => (left, 0),
        };
        let wanted = length - free;
        let fits = wanted.min(*left as usize);
        *left -= fits as u64;
        if fits == wanted {
            return (length, Ok(()));
        }
        self.struck += 1;
        (free + fits, Err(ffi::SQLITE_FULL))
    }

    /// A file is cut to a size.
    pub(crate) fn truncate(&mut self, path: &str, size: usize) -> Result<(), c_int> {
        self.operate();
        if self.may_only_read {
            return Err(ffi::SQLITE_IOERR_TRUNCATE);
        }
        if let Some(file) = self.files.get_mut(path) {
            file.pending.push(Change::Truncate(size));
            file.size = size;
        }
        Ok(())
    }

    /// A handle, which has heard of so many failures, syncs its file.
    pub(crate) fn sync(&mut self, path: &str, heard: &mut u64) -> Result<(), c_int> {
        self.operate();
        for left in [Left::Nothing, Left::Some, Left::All] {
            if self.strikes(path, Operation::Sync(left)) {
                if let Some(file) = self.files.get_mut(path) {
                    file.failures += 1;
                    *heard = file.failures;
                    leave(file, left, &mut self.chance);
                }
                return Err(ffi::SQLITE_IOERR_FSYNC);
            }
        }
        let Some(file) = self.files.get_mut(path) else { return Ok(()) };
        if *heard < file.failures {
            // The failure came between two syncs of this handle: the later one tells, although it has done its own work. Were
            // that lost too, every other handle would have to hear of it in turn.
            *heard = file.failures;
            leave(file, Left::All, &mut self.chance);
            return Err(ffi::SQLITE_IOERR_FSYNC);
        }
        leave(file, Left::All, &mut self.chance);
        if !file.is_named && file.kind != Kind::Database {
            self.sync_folder();
        }
        Ok(())
    }

    fn sync_folder(&mut self) {
        self.files.values_mut().for_each(|file| file.is_named = true);
        self.deleted.clear();
    }

    /// Whether a fault strikes now.
    fn strikes(&mut self, path: &str, operation: Operation) -> bool {
        let kind = Kind::of(path);
        let mut strikes = false;
        for fault in self.faults.iter_mut().filter(|fault| (fault.kind, fault.operation) == (kind, operation))
        {
            if fault.after > 0 {
                fault.after -= 1;
            } else if fault.times > 0 {
                fault.times -= 1;
                strikes = true;
            }
        }
        self.struck += u64::from(strikes);
        strikes
    }

    /// Something is about to change: the power may be cut before it is.
    fn operate(&mut self) {
        self.operations += 1;
        if self.cuts_left > 0 && self.chance.once_in(self.cuts_every) {
            self.cuts_left -= 1;
            let image = self.image();
            self.images.push(image);
        }
    }
}

/// What is pending becomes durable as far as it may, and is forgotten.
fn leave(file: &mut File, left: Left, chance: &mut Chance) {
    let manner = match left {
        Left::Nothing => Manner::Nothing,
        Left::Some => Manner::draw(chance),
        Left::All => Manner::All,
    };
    keep(&mut file.durable, &file.pending, manner, chance, &mut Tally::default());
    file.pending.clear();
}

#[cfg(test)]
mod tests;
