//! Which of several programs does what only one needs to do. A duty is a lock of the server's that lives and dies with one
//! connection. It is for promptness alone: two programs that both think that it is theirs do twice what does no harm twice, and
//! none that has it is late, not wrong. So nothing else may depend on it.

use std::sync::Arc;

use crate::limits::DUTY_PATIENCE;
use crate::look::{Parsed, Value};

use super::{Link, Server};

/// The lock's number: "onsale" and a digit. The one without it is that of the migrations.
const DUTY_LOCK: i64 = 0x6f_6e73_616c_6531;

/// A server that hears nothing of this program's machine gives the duty to another after these seconds.
const SETTINGS: &str =
    "SET tcp_keepalives_idle = 3; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;
     SET idle_session_timeout = 0";

/// The duty of one database, which one program has at a time.
pub struct Duty {
    /// None where there is nobody to share it with.
    server: Option<Arc<Server>>,
    link: Option<Link>,
    is_ours: bool,
}

impl Duty {
    /// Of a database whose programs needn't take turns: each has the duty.
    pub(crate) fn everyones() -> Duty {
        Duty { server: None, link: None, is_ours: true }
    }

    pub(super) fn of(server: Arc<Server>) -> Duty {
        Duty { server: Some(server), link: None, is_ours: false }
    }

    /// Asks whether the duty is this program's, and takes it when it is nobody's. It stays until a later question finds the
    /// connection lost, or until this is dropped. Blocks, though not for long.
    pub fn is_ours(&mut self) -> bool {
        let Some(server) = &self.server else {
            return true;
        };
        let link = self.link.take().filter(Link::is_sound);
        let had = self.is_ours && link.is_some();
        let asked = link.map_or_else(|| server.connect(SETTINGS), Ok).and_then(|link| {
            link.be_patient(DUTY_PATIENCE);
            let is_ours = ask(&link, had)?;
            Ok((link, is_ours))
        });
        let is_ours = match asked {
            Ok((link, is_ours)) => {
                self.link = Some(link);
                is_ours
            }
            // The connection is closed, and the duty with it.
            Err(_) => false,
        };
        if is_ours != self.is_ours {
            let home = &*server.address.home;
            tracing::info!(
                home,
                duty = is_ours,
                "The duty of a home {}",
                if is_ours { "is taken" } else { "is lost" }
            );
        }
        self.is_ours = is_ours;
        is_ours
    }
}

/// Whether the lock is this connection's. What it has it keeps; the question is then only whether the server still answers.
fn ask(link: &Link, had: bool) -> Parsed<bool> {
    if had {
        return link.batch("SELECT 1").map(|()| true);
    }
    let rows = link.query("SELECT pg_try_advisory_lock($1)::integer", &[Value::Int(DUTY_LOCK)])?;
    Ok(rows.first().is_some_and(|row| row.get::<_, i32>(0) != 0))
}
