//! How many standing places can be had, in memory: fed by the log, shown to anyone, and never asked whether one may be sold.

use std::collections::BTreeMap;

use onsale_core::ga::{Bucket, GaLine, TransferStatus};
use onsale_core::id::{AreaNo, BucketNo};
use onsale_core::log::LogKind;

/// The standing areas of one event.
#[derive(Debug, Default)]
pub(crate) struct GaMap {
    buckets: BTreeMap<(AreaNo, BucketNo), Places>,
    /// Places held and sold, in all areas.
    in_use: i64,
}

#[derive(Debug)]
struct Places {
    free: i64,
    /// Whether they are everyone's.
    open: bool,
}

impl GaMap {
    pub(crate) fn new(buckets: &[Bucket]) -> GaMap {
        let places = |b: &Bucket| Places { free: i64::from(b.free()), open: b.allocation.is_none() };
        GaMap {
            buckets: buckets.iter().map(|bucket| ((bucket.area, bucket.no), places(bucket))).collect(),
            in_use: buckets.iter().map(|bucket| i64::from(bucket.held) + i64::from(bucket.sold)).sum(),
        }
    }

    /// Takes what happened.
    pub(crate) fn take(&mut self, kind: &LogKind) {
        match kind {
            LogKind::HoldPlaced { ga, .. } => self.use_up(ga, 1),
            LogKind::HoldReleased { ga, .. }
            | LogKind::HoldExpired { ga, .. }
            | LogKind::OrderCancelled { ga, .. }
            | LogKind::OrderReturned { ga, resell: true, .. } => self.use_up(ga, -1),
            // They are gone with their part of the capacity.
            LogKind::OrderReturned { ga, resell: false, .. } => self.in_use -= sum(ga),
            LogKind::BucketAdded { area, bucket, allocation, .. } => {
                self.buckets.insert((*area, *bucket), Places { free: 0, open: allocation.is_none() });
            }
            LogKind::CapacitySet { area, changes, .. } => {
                changes.iter().for_each(|(bucket, by)| self.add(*area, *bucket, *by));
            }
            LogKind::QuotaMoved { area, from, to, quantity, status, .. } => {
                let quantity = i64::from(*quantity);
                match status {
                    TransferStatus::InFlight => self.add(*area, *from, -quantity),
                    TransferStatus::Arrived => self.add(*area, *to, quantity),
                    TransferStatus::Returned => self.add(*area, *from, quantity),
                }
            }
            _ => {}
        }
    }

    fn use_up(&mut self, lines: &[GaLine], sign: i64) {
        for line in lines {
            self.add(line.area, line.bucket, -sign * i64::from(line.quantity));
        }
        self.in_use += sign * sum(lines);
    }

    fn add(&mut self, area: AreaNo, bucket: BucketNo, by: i64) {
        if let Some(places) = self.buckets.get_mut(&(area, bucket)) {
            places.free += by;
        }
    }

    /// Places of an area that anyone can have, within the cap over all areas.
    pub(crate) fn available(&self, area: AreaNo, cap: Option<u32>) -> i64 {
        let of_area = self.buckets.range((area, BucketNo(0))..=(area, BucketNo(u16::MAX)));
        let free: i64 = of_area.filter(|(_, places)| places.open).map(|(_, places)| places.free).sum();
        cap.map_or(free, |cap| free.min(i64::from(cap) - self.in_use)).max(0)
    }
}

fn sum(lines: &[GaLine]) -> i64 {
    lines.iter().map(|line| i64::from(line.quantity)).sum()
}

#[cfg(test)]
mod tests {
    use onsale_core::id::{AllocationNo, HoldId, OperationId, OrderId, TransferId};

    use super::*;

    const AREA: AreaNo = AreaNo(0);

    fn bucket(no: u16, capacity: u32, allocation: Option<u16>) -> Bucket {
        let allocation = allocation.map(AllocationNo);
        Bucket { area: AREA, no: BucketNo(no), capacity, held: 0, sold: 0, allocation, version: 0 }
    }

    #[test]
    fn what_happens_to_places_is_followed() {
        let mut map = GaMap::new(&[bucket(0, 10, None), bucket(1, 10, None), bucket(2, 5, Some(1))]);
        assert_eq!((map.available(AREA, None), map.available(AREA, Some(12))), (20, 12));
        let lines = vec![GaLine { area: AREA, bucket: BucketNo(1), quantity: 4 }];
        let places = || lines.clone();
        let (hold, order) = (HoldId(1), OrderId(1));
        map.take(&LogKind::HoldPlaced { hold, seats: vec![], ga: places() });
        assert_eq!((map.available(AREA, None), map.available(AREA, Some(12))), (16, 8));
        map.take(&LogKind::OrderConfirmed { order, hold, seats: vec![], ga: places() });
        assert_eq!(map.available(AREA, None), 16);
        let back = |resell| LogKind::OrderReturned {
            order,
            operation: OperationId(1),
            seats: vec![],
            set_aside: vec![],
            ga: places(),
            resell,
        };
        map.take(&back(true));
        assert_eq!(map.available(AREA, None), 20);
        map.take(&LogKind::HoldPlaced { hold, seats: vec![], ga: places() });
        map.take(&back(false));
        assert_eq!((map.available(AREA, None), map.available(AREA, Some(20))), (16, 16), "gone for good");
        let moved = |status| LogKind::QuotaMoved {
            transfer: TransferId(1),
            area: AREA,
            from: BucketNo(0),
            to: BucketNo(2),
            quantity: 3,
            status,
        };
        map.take(&moved(TransferStatus::InFlight));
        assert_eq!(map.available(AREA, None), 13);
        map.take(&moved(TransferStatus::Arrived));
        assert_eq!(map.available(AREA, None), 13, "what is a party's is not everyone's");
        let changes = vec![(BucketNo(0), 100)];
        map.take(&LogKind::CapacitySet { area: AREA, capacity: 122, changes, actor: String::new() });
        assert_eq!(map.available(AREA, None), 113);
    }
}
