//! All databases of an installation, and which event is at home in which. The first is the main home: it has what belongs to no
//! event (keys, secrets, the house) and the directory. The directory only tells where to ask. That an event is nowhere else is
//! told by the event's own row in each home, under its lock; who asks at the wrong place is refused there.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, RwLock};

use onsale_core::id::EventNo;

use crate::error::StoreError;
use crate::store::Store;

/// A database with its name.
pub struct Home {
    /// What it is called in the settings.
    pub name: Arc<str>,
    /// The database.
    pub store: Store,
}

/// The databases of an installation.
pub struct Homes {
    homes: Vec<Home>,
    directory: RwLock<Directory>,
}

/// What was read of the directory last.
#[derive(Default)]
struct Directory {
    /// Events that aren't at home in the main home: the home's place in the list, or `None` for one that isn't in it.
    away_from_main: HashMap<EventNo, Option<usize>>,
    /// Events on their way to another home.
    moving: HashSet<EventNo>,
}

impl Homes {
    /// An installation; the first is the main home. The directory is yet to be read: see [`refresh`](Homes::refresh).
    ///
    /// # Panics
    /// When there is none.
    pub fn new(homes: Vec<Home>) -> Homes {
        assert!(!homes.is_empty(), "an installation has a database");
        Homes { homes, directory: RwLock::default() }
    }

    /// The main home.
    pub fn main(&self) -> &Store {
        &self.homes[0].store
    }

    /// All homes, the main one first.
    pub fn all(&self) -> &[Home] {
        &self.homes
    }

    /// The home of that name.
    pub fn named(&self, name: &str) -> Option<&Home> {
        self.homes.iter().find(|home| &*home.name == name)
    }

    /// The home of an event, as far as this program knows; `None` when it is one that this program wasn't told of.
    pub fn of(&self, event: EventNo) -> Option<&Home> {
        let known = self.directory.read().expect("nothing panics under the directory's lock");
        match known.away_from_main.get(&event) {
            None => self.homes.first(),
            Some(place) => place.and_then(|place| self.homes.get(place)),
        }
    }

    /// Whether an event is on its way to another home, as far as this program knows: nothing of it is decided meanwhile.
    pub fn is_moving(&self, event: EventNo) -> bool {
        self.directory.read().expect("nothing panics under the directory's lock").moving.contains(&event)
    }

    /// Reads the directory anew. Blocks. What was known stays when it can't be read.
    pub fn refresh(&self) -> Result<(), StoreError> {
        if self.homes.len() == 1 && !self.main().looks_block() {
            return Ok(());
        }
        let read = self.main().read(|reader| reader.directory())?;
        let place = |name: &str| self.homes.iter().position(|home| &*home.name == name);
        let mut fresh = Directory::default();
        for line in read {
            fresh.away_from_main.insert(line.event, place(&line.home));
            if line.is_moving {
                fresh.moving.insert(line.event);
            }
        }
        *self.directory.write().expect("nothing panics under the directory's lock") = fresh;
        Ok(())
    }

    /// Enters the home of an event that is yet to be made. Blocks.
    pub fn enter(&self, event: EventNo, home: &Home) -> Result<(), StoreError> {
        if std::ptr::eq(home, &self.homes[0]) {
            return Ok(());
        }
        self.main().enter_home(event, &home.name)?;
        self.refresh()
    }
}
