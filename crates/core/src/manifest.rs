//! The seat inventory as printed: sections, rows, seats, standing areas and price levels of one event.

/// Everything that can be sold for an event. A seat's place in `seats` is its ordinal; neighbours in a row stand in
/// the order in which people sit.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Manifest {
    /// Names of the price levels; a seat names its level by index.
    pub price_levels: Vec<PriceLevel>,
    /// Parts of the house (a pretix plan's zones).
    pub sections: Vec<String>,
    /// Seats by ordinal.
    pub seats: Vec<ManifestSeat>,
    /// Standing areas.
    pub ga_areas: Vec<GaArea>,
}

/// A price class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PriceLevel {
    /// The organiser's name for it, unique in the manifest.
    pub name: String,
    /// `#rrggbb`, when the plan gives one.
    pub color: Option<String>,
}

/// One seat as the organiser describes it.
#[derive(Clone, PartialEq, Debug)]
pub struct ManifestSeat {
    /// The organiser's own id, kept byte for byte, unique in the manifest.
    pub seat_id: String,
    /// Index into [`Manifest::sections`].
    pub section: u16,
    /// The row's label.
    pub row: String,
    /// The seat's label within its row.
    pub seat: String,
    /// Index into [`Manifest::price_levels`].
    pub price_level: u16,
    /// Place on the plan, in the plan's own unit, y downwards.
    pub x: f64,
    /// See `x`.
    pub y: f64,
    /// How good it is among all seats of the manifest: 0 is the best, and seats that are equally good have the same.
    pub rank: u32,
    /// For a wheelchair.
    pub accessible: bool,
    /// The accessible seat whose companion sits here.
    pub companion_of: Option<String>,
    /// Sold with a warning.
    pub restricted_view: bool,
    /// Never on sale until the organiser says otherwise.
    pub not_for_sale: bool,
}

/// An area sold by number of people, not by seat.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GaArea {
    /// The organiser's own id, unique in the manifest.
    pub ga_area: String,
    /// How many people it takes.
    pub capacity: u32,
    /// Over how many buckets the capacity is spread to begin with; at least 1.
    pub buckets: u16,
    /// Index into [`Manifest::price_levels`].
    pub price_level: u16,
}

impl GaArea {
    /// The capacity of each bucket to begin with: as even as can be.
    pub fn bucket_capacities(&self) -> impl Iterator<Item = u32> {
        let (count, capacity) = (u32::from(self.buckets.max(1)), self.capacity);
        (0..count).map(move |bucket| capacity / count + u32::from(bucket < capacity % count))
    }
}
