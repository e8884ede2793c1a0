//! The frame of a sale: windows, pauses, prices, seats kept back, the manifest.

use crate::script::check;

#[test]
fn nobody_buys_before_or_after_the_window() {
    check(
        "hall A1 price 1000; ttl 50s on_sale 100s off_sale 200s
        99.999s ada holds A1 key k1 -> not on sale
        100s ada holds A1 as h1 key k1 -> held until 150s
        150s ada holds A1 as h2 -> held until 200s
        199.999s ben holds A1 -> unavailable A1
        200s ben holds A1 -> not on sale",
    );
}

/// Holds in hand may still be paid when the sale is halted or over.
#[test]
fn a_pause_stops_new_holds_alone() {
    check(
        "hall A1 A2 price 1000; ttl 100s
        0s ada holds A1 as h1 -> held until 100s
        1s operator pauses -> set
        1s operator pauses -> set
        1s ben holds A2 -> paused
        2s ada pays h1 as o1 -> begun
        2s o1 is referenced pi_1 -> may confirm
        3s operator closes -> set
        3s ben holds A2 -> not on sale
        4s o1 answers authorized -> applied
        A1 sold to o1
        5s operator opens -> set
        5s ben holds A2 as h2 -> held until 105s
        6s operator unpublishes -> no: an event can't become a draft again",
    );
}

#[test]
fn the_manifest_is_frozen_by_the_first_opening() {
    check(
        "hall A1 B1 price 1000; draft
        0s ada holds A1 -> not on sale
        0s operator pauses -> no: the event has never been opened
        1s operator replaces A1 B1 -> manifest 2
        1s ada holds A1 reading 1 -> not on sale
        1s operator opens -> no: not every price level has a price
        2s operator prices A 1000 -> prices 3
        2s operator opens -> no: not every price level has a price
        2s operator prices B 900 -> prices 4
        2s operator opens -> set
        3s operator replaces A1 -> manifest frozen
        3s ada holds A1 reading 1 -> manifest changed
        3s ada holds A1 as h1 -> held until 303s
        4s operator pauses -> set
        4s operator replaces A1 -> manifest frozen",
    );
    check(
        "hall A1 price 1000; draft
        1s operator replaces -> manifest 2
        1s operator opens -> no: the event has nothing to sell: put a manifest first",
    );
}

#[test]
fn seats_are_kept_back_and_offered_all_or_none() {
    check(
        "hall A1 A2 A3 price 1000; ttl 10s
        0s operator offers A1 -> set
        A1 free; log on_sale.set                        // nothing has changed, so nobody is told
        0s operator withholds A1 A2 -> set
        A1 A2 not for sale; log seats.status_set
        1s ada holds A1 A3 -> unavailable A1
        2s ada holds A3 as h1 -> held until 12s
        2s operator withholds A1 A2 -> set
        log hold.placed
        3s operator offers A1 A3 -> unavailable A3
        A1 not for sale
        3s operator offers A1 -> set
        A1 free; A2 not for sale
        12s operator withholds A3 -> unavailable A3
        12s h1 expires -> expired
        12s operator withholds A3 -> set
        A3 not for sale
        together
        13s operator offers A2 -> set
        13s ada holds A2 as h2 -> held until 23s
        13s operator withholds A2 -> unavailable A2
        end
        A2 held by h2",
    );
}

/// Prices are set for holds to come; those in a batch with them see them.
#[test]
fn prices_hold_for_what_comes_after() {
    check(
        "hall A1 B1 A2 price 1000
        0s ada holds A1 as h1 -> held until 300s
        together
        1s ben holds B1 as h3 -> held until 301s
        1s operator prices A 2000 -> prices 2
        1s operator prices B 500 -> prices 3
        1s ben holds A2 as h2 -> held until 301s
        1s ada pays h1 -> price changed
        end
        together
        1s ben pays h2 as o2 -> begun
        1s ben pays h3 -> price changed
        end
        1s o2 is referenced pi_2 -> may confirm
        2s o2 answers authorized amount 1000 -> money back
        3s ben pays h2 -> begun
        3s o2 is referenced pi_3 -> may confirm
        4s o2 answers authorized amount 2000 -> applied
        A2 sold to o2",
    );
}
