//! What a power cut leaves.

use std::io;
use std::path::Path;

use super::{Change, Files};
use crate::chance::Chance;

/// Sectors are written whole or not at all.
const SECTOR: usize = 512;

/// The files as a power cut has left them.
pub struct Image {
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// How much had been acknowledged before the cut, as it was noted.
    pub acknowledged: usize,
    /// After so many operations.
    pub operations: u64,
    /// Changes that weren't durable.
    pub pending: usize,
    /// Of these, how many are missing, in part or as a whole.
    pub lost: usize,
    /// Of these, how many are there in part.
    pub torn: usize,
    /// Files whose names are lost, or whose deletion is.
    pub names: usize,
}

impl Image {
    /// Writes the files into a folder.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        self.files.iter().try_for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes))
    }
}

#[derive(Default)]
pub(super) struct Tally {
    lost: usize,
    torn: usize,
}

/// What of the pending changes is there.
#[derive(Clone, Copy)]
pub(super) enum Manner {
    Nothing,
    All,
    /// The first ones; the last of them in part.
    First,
    /// Any.
    Any,
    /// Any sectors of any.
    Torn,
}

impl Manner {
    pub(super) fn draw(chance: &mut Chance) -> Manner {
        const MANNERS: [Manner; 5] = [Manner::Nothing, Manner::All, Manner::First, Manner::Any, Manner::Torn];
        MANNERS[chance.below(MANNERS.len() as u64) as usize]
    }
}

impl Files {
    /// What a power cut at this moment may leave.
    pub(crate) fn image(&mut self) -> Image {
        let manner = Manner::draw(&mut self.chance);
        let mut tally = Tally::default();
        let mut image = Image {
            files: Vec::new(),
            acknowledged: self.acknowledged,
            operations: self.operations,
            pending: 0,
            lost: 0,
            torn: 0,
            names: 0,
        };
        let mut put = |path: &str, bytes| {
            let name = path.rsplit('/').next().unwrap_or(path);
            image.files.push((name.to_owned(), bytes));
        };
        for (path, file) in &self.files {
            image.pending += file.pending.len();
            if !file.is_named && self.chance.once_in(2) {
                image.names += 1;
                // Its predecessor may still be there.
                if let Some(old) = self.deleted.get(path)
                    && self.chance.once_in(2)
                {
                    put(path, old.clone());
                }
                continue;
            }
            let mut bytes = file.durable.clone();
            keep(&mut bytes, &file.pending, manner, &mut self.chance, &mut tally);
            put(path, bytes);
        }
        for (path, old) in &self.deleted {
            if !self.files.contains_key(path) && self.chance.once_in(2) {
                image.names += 1;
                put(path, old.clone());
            }
        }
        (image.lost, image.torn) = (tally.lost, tally.torn);
        image
    }
}

/// Brings pending changes into what is durable, as far as chance and manner let them.
pub(super) fn keep(
    durable: &mut Vec<u8>,
    pending: &[Change],
    manner: Manner,
    chance: &mut Chance,
    tally: &mut Tally,
) {
    let count = pending.len();
    let whole = match manner {
        Manner::First if count > 0 => chance.below(count as u64) as usize,
        _ => count,
    };
    for (at, change) in pending.iter().enumerate() {
        let (may_keep, may_tear) = match manner {
            Manner::Nothing => (false, false),
            Manner::All => (true, false),
            Manner::First => (at <= whole, at == whole),
            Manner::Any => (chance.once_in(2), false),
            Manner::Torn => (true, true),
        };
        let (kept, parts) = match may_keep {
            true => apply(durable, change, may_tear, chance),
            false => (0, 1),
        };
        tally.lost += usize::from(kept < parts);
        tally.torn += usize::from(kept > 0 && kept < parts);
    }
}

/// Applies a change, or any of its sectors; how many of how many parts.
fn apply(durable: &mut Vec<u8>, change: &Change, may_tear: bool, chance: &mut Chance) -> (usize, usize) {
    let mut keeps = || !may_tear || chance.once_in(2);
    match change {
        Change::Truncate(size) => {
            let is_kept = keeps();
            if is_kept {
                durable.resize(*size, 0);
            }
            (usize::from(is_kept), 1)
        }
        Change::Write { offset, data } => {
            let (mut kept, mut parts, mut begin) = (0, 0, 0);
            while begin < data.len() {
                let at = offset + begin;
                let end = (begin + SECTOR - at % SECTOR).min(data.len());
                parts += 1;
                if keeps() {
                    kept += 1;
                    if durable.len() < offset + end {
                        durable.resize(offset + end, 0);
                    }
                    durable[at..offset + end].copy_from_slice(&data[begin..end]);
                }
                begin = end;
            }
            (kept, parts)
        }
    }
}
