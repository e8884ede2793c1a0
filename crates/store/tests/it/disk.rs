//! A disk that loses power, fails to sync, fills up, or may only be read: what was acknowledged is there, nothing is done by
//! halves, and what can't be done is said.

mod crowd;
mod damage;
mod fsync;
mod full;
mod power;

use onsale_faulty_disk::Disk;
use onsale_store::Ground;

/// A store on a faulty disk. Its WAL is short, so that a small sale sees both kinds of checkpoints.
fn ground(disk: Disk) -> Ground {
    Ground { vfs: Some(disk.vfs()), checkpoint_pages: 60, checkpoint_pages_forced: 400, ..Ground::default() }
}
