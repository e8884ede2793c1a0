//! Connections to read with: at most so many at once, given back after each look.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use crate::error::StoreError;
use crate::limits::READ_PATIENCE;
use crate::look::Parsed;

use super::{Link, Server};

/// What a reader's connection is set to. Looks are look-ups, or they go along an index: a plan is made when tables may be empty
/// yet.
const SETTINGS: &str = "SET enable_seqscan = off; SET jit = off; SET client_connection_check_interval = '1s'";

/// The connections there are.
struct Idle {
    links: Vec<Link>,
    /// Looks under way.
    open: usize,
    closed: bool,
}

/// A bounded pool.
pub(super) struct Pool {
    server: Arc<Server>,
    idle: Mutex<Idle>,
    freed: Condvar,
    links_max: usize,
}

/// A place among those that may have a connection; it is free again however the work ends.
struct Place<'a>(&'a Pool);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.idle.lock().expect("nothing panics under the pool's lock").open -= 1;
        self.0.freed.notify_one();
    }
}

impl Pool {
    pub(super) fn new(server: Arc<Server>, links_max: usize) -> Pool {
        let idle = Mutex::new(Idle { links: Vec::new(), open: 0, closed: false });
        Pool { server, idle, freed: Condvar::new(), links_max }
    }

    /// Work on a connection. Where a kept one turns out to be dead it is done once more on a new one.
    pub(super) fn with_link<R>(&self, work: impl Fn(&Link) -> Parsed<R>) -> Parsed<R> {
        let (_place, kept) = self.take()?;
        if let Some(link) = kept.filter(Link::is_sound) {
            let done = work(&link);
            if done.is_ok() || link.is_sound() {
                self.give_back(link, &done);
                return done;
            }
            // Another program may have been waited for in vain already: a look that had no answer isn't tried twice.
            if matches!(done, Err(StoreError::NoAnswer)) {
                return done;
            }
        }
        let link = self.server.connect(SETTINGS)?;
        let done = work(&link);
        self.give_back(link, &done);
        done
    }

    fn take(&self) -> Parsed<(Place<'_>, Option<Link>)> {
        let by = Instant::now() + READ_PATIENCE;
        let mut idle = self.idle.lock().expect("nothing panics under the pool's lock");
        while idle.open >= self.links_max {
            let left = by.checked_duration_since(Instant::now()).ok_or(StoreError::NoAnswer)?;
            idle = self.freed.wait_timeout(idle, left).expect("nothing panics under the pool's lock").0;
        }
        idle.open += 1;
        let link = idle.links.pop();
        Ok((Place(self), link))
    }

    /// Keeps a connection that may be used again: not one in the midst of something.
    fn give_back<R>(&self, link: Link, done: &Parsed<R>) {
        if done.is_ok() {
            self.server.is_here();
        }
        let mut idle = self.idle.lock().expect("nothing panics under the pool's lock");
        if done.is_ok() && !idle.closed {
            idle.links.push(link);
        }
    }

    /// Whether it has been closed.
    pub(super) fn is_closed(&self) -> bool {
        self.idle.lock().expect("nothing panics under the pool's lock").closed
    }

    /// Closes what isn't used, and keeps nothing more.
    pub(super) fn close(&self) {
        let mut idle = self.idle.lock().expect("nothing panics under the pool's lock");
        idle.closed = true;
        idle.links.clear();
    }
}
