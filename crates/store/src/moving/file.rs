//! Moving a whole installation from its file to a home on a server.
//!
//! The file keeps, beside what it is on its way to, a number that is drawn for each try and that the database has too, and
//! whether the database may serve yet. As long as it may not, another database may be begun with, or the file be opened again,
//! without asking the first: it will never serve.

use onsale_core::time::Timestamp;
use rand::RngExt;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::audit::Scope;
use crate::look::{Look, Parsed, Value};
use crate::migrate;
use crate::postgres::{HomeOptions, Link};
use crate::sqlite::{self, Options};
use crate::upkeep::moved_to;

use super::clear::remove_all;
use super::tables::{self, Part, TOKEN, Table};
use super::{
    MoveError, Moved, Named, Step, analyze, audited, compare_all, copy_all, durably, lock, open, open_current,
};

/// Where the database says that it is at home while it comes from a file.
const FILE: &str = "the file";
/// All rows.
const ALL: Part = Part { event: None, keys_since: Timestamp::ZERO };

/// How far the file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The database doesn't serve, and won't without our word.
    Copying,
    /// The database may serve.
    Switching,
    /// The database will never serve: said there, by whoever undoes a move.
    Revoked,
}

/// Which try a database belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Token {
    drawn: [u8; 16],
    stage: Stage,
}

impl Token {
    fn draw() -> Token {
        let mut drawn = [0; 16];
        rand::rng().fill(&mut drawn);
        Token { drawn, stage: Stage::Copying }
    }

    /// Sixteen bytes of chance, and the stage.
    fn bytes(self) -> Vec<u8> {
        let stage = match self.stage {
            Stage::Copying => 0,
            Stage::Switching => 1,
            Stage::Revoked => 2,
        };
        self.drawn.into_iter().chain([stage]).collect()
    }

    fn of(bytes: &[u8]) -> Option<Token> {
        let (stage, drawn) = bytes.split_last()?;
        let stage = match stage {
            0 => Stage::Copying,
            1 => Stage::Switching,
            _ => Stage::Revoked,
        };
        Some(Token { drawn: drawn.try_into().ok()?, stage })
    }

    fn at(self, stage: Stage) -> Token {
        Token { stage, ..self }
    }
}

/// What a database says of itself: where it is at home, and which try it belongs to.
fn state(db: Look<'_>) -> Parsed<(Option<String>, Option<Token>)> {
    let text = "SELECT value FROM secrets WHERE name = ?1";
    let token = db.one(text, &[TOKEN.into()], |row| row.bytes(0))?;
    Ok((moved_to(db)?, token.and_then(|bytes| Token::of(&bytes))))
}

/// Enters a try, within a transaction.
fn enter(db: Look<'_>, token: Token, now: Timestamp) -> Parsed<()> {
    let text =
        "INSERT INTO secrets VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    db.execute(text, &[TOKEN.into(), Value::Bytes(&token.bytes()), now.millis().into()]).map(drop)
}

/// Changes the file in one synced transaction, if it still belongs to a try.
fn change_file(
    file: &Connection,
    what: &'static str,
    belongs_to: Option<Token>,
    work: impl FnOnce(Look<'_>) -> Parsed<()>,
) -> Moved<()> {
    let begin = || Ok(Transaction::new_unchecked(file, TransactionBehavior::Immediate)?);
    let transaction: Transaction<'_> = begin().while_to(what)?;
    let db = Look::Sqlite(&transaction);
    if state(db).while_to(what)?.1 != belongs_to {
        return Err(MoveError::Overtaken);
    }
    work(db).while_to(what)?;
    transaction.commit().map_err(Into::into).while_to(what)
}

/// Moves everything in the file of a folder to a home, whose database must be new, or finishes what was begun. Keys, sessions and
/// answered requests stay what they are. Blocks.
pub fn to_postgres(
    file: &Options,
    home: &HomeOptions,
    now: Timestamp,
    told: &mut dyn FnMut(Step),
) -> Moved<()> {
    let place = file.folder.join("onsale.db").display().to_string();
    let file = sqlite::existing_for_writing(&Options { upgrades: false, ..file.clone() })?;
    let db = Look::Sqlite(&file);
    let link = open(home)?;
    migrate::migrate_postgres(&link, false)?;
    lock(&link, 0)?;
    let tables = tables::all(&link).while_to("read the schema")?;
    let tables: Vec<&Table> = tables.iter().collect();

    let (gone, ours) = state(db).while_to("look at the file")?;
    let (coming, theirs) = state(Look::Postgres(&link)).while_to("look at the database")?;
    let is_same = ours.zip(theirs).is_some_and(|(ours, theirs)| ours.drawn == theirs.drawn);
    let open_new = Opening { home: &home.name, link: &link };
    let token = match ours {
        Some(ours) if ours.stage == Stage::Switching => {
            match theirs {
                Some(theirs) if is_same && theirs.stage == Stage::Revoked => {
                    return Err(MoveError::CalledOff);
                }
                Some(_) if is_same => {}
                _ => return Err(MoveError::OtherDatabase),
            }
            return open_new.open(ours, told);
        }
        Some(ours) if is_same && coming.is_some() => ours,
        _ => {
            if gone.is_none() {
                // What isn't sound would not be any sounder elsewhere, and the sale need not stop for that.
                audited(db, now, Scope::AtHome, &place)?;
                told(Step::Audited { place: place.clone() });
            }
            let token = Token::draw();
            open_new.claim(token, now)?;
            told(Step::Recorded { from: place.clone(), to: home.name.clone() });
            token
        }
    };
    // From here on nothing is decided in the file, by whoever has it open.
    change_file(&file, "freeze the file", ours, |db| {
        db.execute("UPDATE events SET elsewhere = ?1, epoch = epoch + 1", &[home.name.as_str().into()])?;
        enter(db, token, now)
    })?;
    told(Step::Frozen { place: place.clone() });
    open_new.copy(db, &tables, token, told)?;
    told(Step::Arrived { place: home.name.clone() });
    analyze(&link, &tables)?;
    compare_all(db, Look::Postgres(&link), &tables, ALL, told)?;
    audited(Look::Postgres(&link), now, Scope::Everything, &home.name)?;
    told(Step::Audited { place: home.name.clone() });
    change_file(&file, "switch", Some(token), |db| enter(db, token.at(Stage::Switching), now))?;
    told(Step::Switched { to: home.name.clone() });
    open_new.open(token, told)
}

/// The database that is to take over.
struct Opening<'a> {
    home: &'a str,
    link: &'a Link,
}

impl Opening<'_> {
    /// Locks the house, so that nothing else is begun here.
    fn lock_house(&self) -> Parsed<()> {
        self.link.query("SELECT 1 FROM events WHERE event_no = 0 FOR UPDATE", &[]).map(drop)
    }

    /// Takes a database that nobody has used for this try.
    fn claim(&self, token: Token, now: Timestamp) -> Moved<()> {
        let what = "take the new database";
        durably(self.link, what, || {
            self.lock_house().while_to(what)?;
            if let Some(table) = self.used().while_to(what)? {
                return Err(MoveError::NotEmpty { home: self.home.to_owned(), table });
            }
            let db = Look::Postgres(self.link);
            enter(db, token, now).while_to(what)?;
            let text = "UPDATE events SET elsewhere = ?1 WHERE event_no = 0";
            db.execute(text, &[FILE.into()]).while_to(what).map(drop)
        })
    }

    /// A table that has more in it than a new database has.
    fn used(&self) -> Parsed<Option<String>> {
        let db = Look::Postgres(self.link);
        for table in tables::all(self.link)? {
            let more = match table.name.as_str() {
                "events" => "event_no <> 0 OR version > 0".to_owned(),
                _ => table.wanted(ALL),
            };
            let text = format!("SELECT 1 FROM {} WHERE {more} LIMIT 1", table.name);
            if db.one(&text, &[], |_| Ok(()))?.is_some() {
                return Ok(Some(table.name));
            }
        }
        let text = "SELECT 1 FROM directory LIMIT 1";
        Ok(db.one(text, &[], |_| Ok(()))?.map(|()| "directory".to_owned()))
    }

    /// Copies all rows in one transaction.
    fn copy(&self, from: Look<'_>, tables: &[&Table], token: Token, told: &mut dyn FnMut(Step)) -> Moved<()> {
        let what = "copy the file";
        durably(self.link, what, || {
            self.lock_house().while_to(what)?;
            self.require(token).while_to(what)?.then_some(()).ok_or(MoveError::Overtaken)?;
            remove_all(self.link, tables, ALL)?;
            copy_all(from, self.link, tables, ALL, told)?;
            let db = Look::Postgres(self.link);
            db.execute("UPDATE events SET elsewhere = ?1", &[FILE.into()]).while_to(what).map(drop)
        })
    }

    /// Whether the database still belongs to a try and doesn't serve.
    fn require(&self, token: Token) -> Parsed<bool> {
        let (coming, theirs) = state(Look::Postgres(self.link))?;
        Ok(coming.is_some() && theirs.is_some_and(|theirs| theirs.drawn == token.drawn))
    }

    /// Lets the database serve, if it doesn't already.
    fn open(&self, token: Token, told: &mut dyn FnMut(Step)) -> Moved<()> {
        let what = "open the new database";
        durably(self.link, what, || {
            self.lock_house().while_to(what)?;
            let (_, theirs) = state(Look::Postgres(self.link)).while_to(what)?;
            match theirs {
                Some(theirs) if theirs.drawn == token.drawn && theirs.stage != Stage::Revoked => {}
                _ => return Err(MoveError::Overtaken),
            }
            // Events that have moved on since stay where they are.
            let text = "UPDATE events SET elsewhere = NULL WHERE elsewhere = ?1";
            Look::Postgres(self.link).execute(text, &[FILE.into()]).while_to(what).map(drop)
        })?;
        told(Step::Opened { place: self.home.to_owned() });
        Ok(())
    }
}

/// Undoes a move of the file that has not switched yet, or that has and was not finished: the file may be served again. Blocks.
pub fn cancel_to_postgres(
    file: &Options,
    home: &HomeOptions,
    now: Timestamp,
    told: &mut dyn FnMut(Step),
) -> Moved<()> {
    let place = file.folder.join("onsale.db").display().to_string();
    let file = sqlite::existing_for_writing(&Options { upgrades: false, ..file.clone() })?;
    let (gone, ours) = state(Look::Sqlite(&file)).while_to("look at the file")?;
    let Some(ours) = ours.filter(|_| gone.is_some()) else {
        return Err(MoveError::NotUnderWay);
    };
    if ours.stage == Stage::Switching {
        // The database may serve: it has to be seen that it doesn't, and made sure that it never will.
        let link = open_current(home)?;
        lock(&link, 0)?;
        let what = "call the move off";
        durably(&link, what, || {
            link.query("SELECT 1 FROM events WHERE event_no = 0 FOR UPDATE", &[]).while_to(what)?;
            let (coming, theirs) = state(Look::Postgres(&link)).while_to(what)?;
            if theirs.is_none_or(|theirs| theirs.drawn != ours.drawn) {
                return Err(MoveError::OtherDatabase);
            }
            if coming.is_none() {
                return Err(MoveError::Serves(home.name.clone()));
            }
            enter(Look::Postgres(&link), ours.at(Stage::Revoked), now).while_to(what)
        })?;
        told(Step::Revoked { to: home.name.clone() });
    }
    change_file(&file, "open the file", Some(ours), |db| {
        db.execute("UPDATE events SET elsewhere = NULL, epoch = epoch + 1", &[])?;
        db.execute("DELETE FROM secrets WHERE name = ?1", &[TOKEN.into()]).map(drop)
    })?;
    told(Step::Opened { place });
    Ok(())
}
