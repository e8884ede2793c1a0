//! A world whose database is a file, for tests that are about the file.

use std::path::Path;
use std::sync::Arc;

use onsale_store::{Clock, Options, Store};
use rusqlite::Connection;

use crate::world::{TestClock, World};

impl World {
    pub(crate) fn options(&self) -> Options {
        let options = Options::new(self.folder.path().to_owned(), Arc::clone(&self.clock) as Arc<dyn Clock>);
        Options { ground: self.ground, ..options }
    }

    /// Closes the file and opens it again.
    pub(crate) fn reopen(&mut self, options: Options) {
        self.store.close();
        self.store = Arc::new(Store::open(options, |_| ()).expect("the database opens again"));
    }

    /// A plain connection to the same file.
    pub(crate) fn db(&self) -> Connection {
        Connection::open(self.path()).expect("the database opens")
    }
}

pub(crate) fn open(folder: &Path, clock: &Arc<TestClock>) -> Store {
    let options = Options::new(folder.to_owned(), Arc::clone(clock) as Arc<dyn Clock>);
    Store::open(options, |_| ()).expect("the database opens")
}
