//! A plain connection to the database under a store, to look at it, to lock it and to damage it.

use std::cell::RefCell;
use std::path::Path;

use postgres::{Client, NoTls};
use rusqlite::Connection;

/// A connection of either kind.
pub(crate) enum Raw {
    File(Connection),
    Server(RefCell<Client>),
}

impl Raw {
    pub(crate) fn file(path: &Path) -> Raw {
        Raw::File(Connection::open(path).expect("the database opens"))
    }

    pub(crate) fn server(url: &str) -> Raw {
        Raw::Server(RefCell::new(Client::connect(url, NoTls).expect("the server answers")))
    }

    /// Runs statements.
    pub(crate) fn execute(&self, text: &str) {
        match self {
            Raw::File(db) => db.execute_batch(text).expect(text),
            Raw::Server(db) => db.borrow_mut().batch_execute(text).expect(text),
        }
    }

    /// The one number that a statement tells.
    pub(crate) fn number(&self, text: &str) -> i64 {
        match self {
            Raw::File(db) => db.query_row(text, [], |row| row.get(0)).expect(text),
            Raw::Server(db) => db.borrow_mut().query_one(text, &[]).expect(text).get(0),
        }
    }
}
