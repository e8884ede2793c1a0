//! Standing areas: capacity in buckets, and the plane that moves it between them.
//!
//! A place is nobody's in particular: what is counted is how many of a bucket are held and sold. The capacity of an area
//! is spread over its buckets; a transfer takes it out of one and puts it into another in two steps, and counts while it
//! is between them, so that the sum is the area's capacity in every state.

use crate::id::{AllocationNo, AreaNo, BucketNo, TransferId};
use crate::time::Timestamp;

/// A standing area as it is sold.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Area {
    /// Its position in the manifest.
    pub no: AreaNo,
    /// How many people it takes: its buckets' capacities and what is between them.
    pub capacity: u32,
    /// Index of its price level.
    pub price_level: u16,
}

/// A part of an area's capacity.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bucket {
    /// The area it belongs to.
    pub area: AreaNo,
    /// Its number within the area.
    pub no: BucketNo,
    /// How many places it has.
    pub capacity: u32,
    /// How many of them are held.
    pub held: u32,
    /// How many of them are sold.
    pub sold: u32,
    /// The party its places are set aside for.
    pub allocation: Option<AllocationNo>,
    /// Version of the log entry that last changed it.
    pub version: u64,
}

impl Bucket {
    /// Places that nobody has.
    pub fn free(&self) -> u32 {
        self.capacity.saturating_sub(self.held + self.sold)
    }
}

/// Places of one bucket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GaLine {
    /// The area.
    pub area: AreaNo,
    /// The bucket they are taken from.
    pub bucket: BucketNo,
    /// How many; never 0.
    pub quantity: u32,
}

/// How many places some lines have together.
pub fn places(lines: &[GaLine]) -> u32 {
    lines.iter().map(|line| line.quantity).sum()
}

/// Lines as places for each area, in the areas' order.
pub fn by_area(lines: &[GaLine]) -> Vec<(AreaNo, u32)> {
    let mut areas: Vec<(AreaNo, u32)> = Vec::new();
    for line in lines {
        match areas.iter_mut().find(|(area, _)| *area == line.area) {
            Some((_, quantity)) => *quantity += line.quantity,
            None => areas.push((line.area, line.quantity)),
        }
    }
    areas.sort_unstable();
    areas
}

/// Capacity on its way from one bucket to another.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Transfer {
    /// Its id.
    pub id: TransferId,
    /// The area.
    pub area: AreaNo,
    /// Where it was taken.
    pub from: BucketNo,
    /// Where it goes.
    pub to: BucketNo,
    /// How many places.
    pub quantity: u32,
    /// Where it is.
    pub status: TransferStatus,
    /// Who sent it: a key's id.
    pub actor: String,
    /// When it was taken.
    pub created_at: Timestamp,
    /// When it arrived or came back.
    pub ended_at: Option<Timestamp>,
}

/// Where a transfer is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TransferStatus {
    /// In neither bucket.
    InFlight,
    /// Where it was to go.
    Arrived,
    /// Where it came from.
    Returned,
}
