//! Moving an event from one home to another.

use onsale_core::id::{EventId, EventNo};
use onsale_core::limits::IDEMPOTENCY_TTL_MS;
use onsale_core::time::Timestamp;

use crate::audit::Scope;
use crate::look::{Look, Value};
use crate::postgres::{HomeOptions, Link};

use super::clear::{Leftover, clear, remove_all};
use super::tables::{self, Part, Table};
use super::{
    MoveError, Moved, Named, Step, analyze, audited, change_one, compare_all, copy_all, durably, lock,
    open_current,
};

/// An event's line in the directory.
struct Line {
    home: String,
    moving_to: Option<String>,
    epoch: i64,
}

/// An event's row in a database.
struct Row {
    id: EventId,
    epoch: i64,
    elsewhere: Option<String>,
}

/// A home with a connection.
struct Place<'a> {
    name: &'a str,
    link: Link,
}

impl<'a> Place<'a> {
    fn open(homes: &'a [HomeOptions], name: &str) -> Moved<Place<'a>> {
        let home = homes.iter().find(|home| home.name == name);
        let home = home.ok_or_else(|| MoveError::NoHome(name.to_owned()))?;
        Ok(Place { name: &home.name, link: open_current(home)? })
    }

    fn row(&self, no: EventNo) -> Moved<Option<Row>> {
        let text = "SELECT event_id, epoch, elsewhere FROM events WHERE event_no = ?1";
        Look::Postgres(&self.link)
            .one(text, &[no.0.into()], |row| {
                let (id, epoch) = (EventId(row.bits(0)?), row.number(1)?);
                Ok(Row { id, epoch, elsewhere: row.string_or_none(2)? })
            })
            .while_to("look at the event")
    }

    fn audit(&self, no: EventNo, now: Timestamp, told: &mut dyn FnMut(Step)) -> Moved<()> {
        audited(Look::Postgres(&self.link), now, Scope::Event(no), self.name)?;
        told(Step::Audited { place: self.name.to_owned() });
        Ok(())
    }

    /// Removes what is left of an event that isn't at home here. A row newer than what is known to be is left alone.
    fn clear(&self, no: EventNo, newest: i64, told: &mut dyn FnMut(Step)) -> Moved<()> {
        let Some(Row { epoch, elsewhere: Some(elsewhere), .. }) = self.row(no)? else {
            return Ok(());
        };
        if epoch > newest {
            return Err(MoveError::Overtaken);
        }
        let tables = tables::of_events(&self.link).while_to("read the schema")?;
        let rows = clear(&self.link, &tables, &Leftover { event: no, elsewhere: &elsewhere, epoch })?;
        told(Step::Cleared { place: self.name.to_owned(), rows });
        Ok(())
    }
}

/// Where an event is at home, as the main home's directory has it.
fn line(main: &Place<'_>, no: EventNo) -> Moved<Line> {
    let text = "SELECT home, moving_to, epoch FROM directory WHERE event_no = ?1";
    let found = Look::Postgres(&main.link)
        .one(text, &[no.0.into()], |row| {
            Ok(Line { home: row.string(0)?, moving_to: row.string_or_none(1)?, epoch: row.number(2)? })
        })
        .while_to("read the directory")?;
    Ok(found.unwrap_or_else(|| Line { home: main.name.to_owned(), moving_to: None, epoch: 0 }))
}

/// Moves an event to a home, or finishes a move there that was begun. Of the homes the first is the main one. Blocks.
pub fn move_event(
    homes: &[HomeOptions],
    event: EventId,
    to: &str,
    now: Timestamp,
    told: &mut dyn FnMut(Step),
) -> Moved<()> {
    let no = event.event();
    let main = Place::open(homes, main_name(homes))?;
    lock(&main.link, no.0)?;
    let line = line(&main, no)?;
    let nobody = |home: &str| MoveError::NoEvent { event, home: home.to_owned() };
    if no == EventNo::HOUSE {
        return Err(nobody(&line.home));
    }
    if let Some(under_way) = line.moving_to.as_deref().filter(|under_way| *under_way != to) {
        return Err(MoveError::UnderWay { to: under_way.to_owned() });
    }
    let target = Place::open(homes, to)?;
    if line.home == to {
        return arrive(homes, &target, &line, event, told);
    }
    let source = Place::open(homes, &line.home)?;
    let row = source.row(no)?.filter(|row| row.id == event).ok_or_else(|| nobody(source.name))?;
    match row.elsewhere {
        Some(gone) if line.moving_to.as_deref() != Some(&*gone) => {
            return Err(MoveError::Stray { to: gone });
        }
        // An event that isn't sound would not be any sounder elsewhere, and its sale need not stop for that.
        None => {
            let tables = tables::of_events(&source.link).while_to("read the schema")?;
            analyze(&source.link, &tables.iter().collect::<Vec<_>>())?;
            source.audit(no, now, told)?;
        }
        Some(_) => {}
    }
    let known = is_away_from(&target, no)?.max(line.epoch);

    let way = Way { main: &main, source: &source, target: &target, no };
    way.record()?;
    told(Step::Recorded { from: source.name.to_owned(), to: to.to_owned() });
    let epoch = way.freeze(known)?;
    told(Step::Frozen { place: source.name.to_owned() });
    let part = Part { event: Some(no), keys_since: now.plus_ms(-IDEMPOTENCY_TTL_MS) };
    let tables = tables::of_events(&source.link).while_to("read the schema")?;
    way.copy(&tables, part, epoch, told)?;
    told(Step::Arrived { place: to.to_owned() });
    let every: Vec<&Table> = tables.iter().collect();
    analyze(&target.link, &every)?;
    compare_all(Look::Postgres(&source.link), Look::Postgres(&target.link), &every, part, told)?;
    target.audit(no, now, told)?;
    way.switch(epoch)?;
    told(Step::Switched { to: to.to_owned() });
    way.open(epoch)?;
    told(Step::Opened { place: to.to_owned() });
    source.clear(no, epoch, told)
}

fn main_name(homes: &[HomeOptions]) -> &str {
    homes.first().map_or("main", |home| &home.name)
}

/// An event that is at home in a place, whatever the directory says, is not to be written over there. Where it isn't, returns
/// the epoch in which it was there last.
fn is_away_from(place: &Place<'_>, no: EventNo) -> Moved<i64> {
    match place.row(no)? {
        Some(row) if row.elsewhere.is_none() => Err(MoveError::AtHomeThere(place.name.to_owned())),
        row => Ok(row.map_or(0, |row| row.epoch)),
    }
}

/// What is left to do when the directory has switched already.
fn arrive(
    homes: &[HomeOptions],
    target: &Place<'_>,
    line: &Line,
    event: EventId,
    told: &mut dyn FnMut(Step),
) -> Moved<()> {
    let no = event.event();
    let row = target.row(no)?.filter(|row| row.id == event);
    let row = row.ok_or_else(|| MoveError::NoEvent { event, home: target.name.to_owned() })?;
    if let Some(from) = &row.elsewhere {
        // Its copy was compared before the directory switched, and nobody has frozen the event anew since.
        if row.epoch != line.epoch {
            return Err(MoveError::Stray { to: from.clone() });
        }
        open_copy(target, no, from, row.epoch)?;
        told(Step::Opened { place: target.name.to_owned() });
    }
    for home in homes.iter().filter(|home| home.name != target.name) {
        let cleared = Place::open(homes, &home.name).and_then(|place| place.clear(no, line.epoch, told));
        if cleared.is_err() {
            told(Step::Left { place: home.name.clone() });
        }
    }
    Ok(())
}

fn open_copy(target: &Place<'_>, no: EventNo, from: &str, epoch: i64) -> Moved<()> {
    let text = "UPDATE events SET elsewhere = NULL WHERE event_no = $1 AND elsewhere = $2 AND epoch = $3";
    change_one(
        &target.link,
        "open the event where it has arrived",
        text,
        &[no.0.into(), from.into(), epoch.into()],
    )
}

/// A move under way.
struct Way<'a> {
    main: &'a Place<'a>,
    source: &'a Place<'a>,
    target: &'a Place<'a>,
    no: EventNo,
}

impl Way<'_> {
    fn key(&self) -> [Value<'_>; 3] {
        [self.no.0.into(), self.source.name.into(), self.target.name.into()]
    }

    /// Enters the move in the directory, so that whoever finds the event frozen finds out why.
    fn record(&self) -> Moved<()> {
        // Written also where it stands already: only a commit of our own proves that it is on the standby too.
        let text = "INSERT INTO directory VALUES ($1, $2, $3, 0)
             ON CONFLICT (event_no) DO UPDATE SET moving_to = excluded.moving_to WHERE directory.home = excluded.home
               AND (directory.moving_to IS NULL OR directory.moving_to = excluded.moving_to)";
        change_one(&self.main.link, "enter the move in the directory", text, &self.key())
    }

    /// Freezes the event where it is. Whoever had its lock before has committed or never will, and whoever gets it later finds
    /// it frozen. Each try freezes anew, with an epoch of its own, which the directory keeps: only the last may switch.
    fn freeze(&self, known: i64) -> Moved<i64> {
        let what = "freeze the event where it is";
        let epoch: i64 = durably(&self.source.link, what, || {
            let text = "UPDATE events SET elsewhere = $2, epoch = greatest(epoch, $3) + 1
                 WHERE event_no = $1 AND (elsewhere IS NULL OR elsewhere = $2) RETURNING epoch";
            let values = [self.no.0.into(), self.target.name.into(), known.into()];
            let frozen = Look::Postgres(&self.source.link).one(text, &values, |row| row.number(0));
            frozen.while_to(what)?.ok_or(MoveError::Overtaken)
        })?;
        let text = "UPDATE directory SET epoch = $4 WHERE event_no = $1 AND home = $2 AND moving_to = $3 AND epoch < $4";
        let [no, source, target] = self.key();
        change_one(
            &self.main.link,
            "enter the epoch in the directory",
            text,
            &[no, source, target, epoch.into()],
        )?;
        Ok(epoch)
    }

    /// Copies all rows in one transaction. The event's row comes last; until then nothing that serves the target waits.
    fn copy(&self, tables: &[Table], part: Part, epoch: i64, told: &mut dyn FnMut(Step)) -> Moved<()> {
        let (from, to) = (&self.source.link, &self.target.link);
        let (own, others): (Vec<&Table>, Vec<&Table>) =
            tables.iter().partition(|table| table.name == "events");
        let what = "copy the event";
        durably(to, what, || {
            is_away_from(self.target, self.no)?;
            remove_all(to, &others, part)?;
            copy_all(Look::Postgres(from), to, &others, part, told)?;
            // An event that is at home here, or whose row is newer than ours, is not ours to write over, nor to remove: then
            // all of this is undone.
            let text =
                "SELECT 1 FROM events WHERE event_no = $1 AND (elsewhere IS NULL OR epoch >= $2) FOR UPDATE";
            let newer = to.query(text, &[self.no.0.into(), epoch.into()]).while_to(what)?;
            if !newer.is_empty() {
                return Err(MoveError::Overtaken);
            }
            remove_all(to, &own, part)?;
            copy_all(Look::Postgres(from), to, &own, part, told)?;
            let text = "UPDATE events SET elsewhere = $2 WHERE event_no = $1 AND epoch = $3";
            let values = [self.no.0.into(), self.source.name.into(), epoch.into()];
            match to.execute(text, &values).while_to(what)? {
                1 => Ok(()),
                _ => Err(MoveError::Overtaken),
            }
        })
    }

    /// Tells everyone where it is now. From here on it can't be undone.
    fn switch(&self, epoch: i64) -> Moved<()> {
        let text = "UPDATE directory SET home = $3, moving_to = NULL
             WHERE event_no = $1 AND home = $2 AND moving_to = $3 AND epoch = $4";
        let [no, source, target] = self.key();
        change_one(&self.main.link, "switch the directory", text, &[no, source, target, epoch.into()])
    }

    fn open(&self, epoch: i64) -> Moved<()> {
        open_copy(self.target, self.no, self.source.name, epoch)
    }
}

/// Undoes a move that has not switched the directory yet: the event is open again where it was. Blocks.
pub fn cancel_move(homes: &[HomeOptions], event: EventId, told: &mut dyn FnMut(Step)) -> Moved<()> {
    let no = event.event();
    let main = Place::open(homes, main_name(homes))?;
    lock(&main.link, no.0)?;
    let line = line(&main, no)?;
    let source = Place::open(homes, &line.home)?;
    let row = source.row(no)?.filter(|row| row.id == event);
    let row = row.ok_or_else(|| MoveError::NoEvent { event, home: source.name.to_owned() })?;
    let to = line.moving_to.clone().or_else(|| row.elsewhere.clone()).ok_or(MoveError::NotUnderWay)?;
    if line.moving_to.is_none() {
        if row.epoch == line.epoch {
            return Err(MoveError::Switched(line.home));
        }
        // A mover that was overtaken has frozen it, or the directory has forgotten where it is: the other place knows.
        let target = Place::open(homes, &to)?;
        is_away_from(&target, no)?;
        Way { main: &main, source: &source, target: &target, no }.record()?;
    }
    // First it is made sure that no mover can switch any more, then the event is opened.
    let epoch = row.epoch.max(line.epoch) + 1;
    let values = [no.0.into(), source.name.into(), to.as_str().into(), epoch.into()];
    let text =
        "UPDATE directory SET epoch = $4 WHERE event_no = $1 AND home = $2 AND moving_to = $3 AND epoch < $4";
    change_one(&main.link, "call the move off", text, &values)?;
    told(Step::Revoked { to: to.clone() });
    let text = "UPDATE events SET elsewhere = NULL, epoch = $3
         WHERE event_no = $1 AND (elsewhere IS NULL OR elsewhere = $2) AND epoch < $3";
    let values = [no.0.into(), to.as_str().into(), epoch.into()];
    change_one(&source.link, "open the event where it was", text, &values)?;
    told(Step::Opened { place: source.name.to_owned() });
    // The copy is nobody's, and does no harm where it can't be removed.
    let cleared = Place::open(homes, &to).and_then(|target| target.clear(no, epoch, told));
    if cleared.is_err() {
        told(Step::Left { place: to.clone() });
    }
    let text = "UPDATE directory SET moving_to = NULL
         WHERE event_no = $1 AND home = $2 AND moving_to = $3 AND epoch = $4";
    let values = [no.0.into(), source.name.into(), to.as_str().into(), epoch.into()];
    change_one(&main.link, "enter in the directory that nothing moves", text, &values)
}
