//! Tables of seats: what is read, and what is refused at which line.

use crate::manifest_import::tests::{faults, imported, seat_ids};
use crate::manifest_import::{Format, Imported};

const HEADER: &str = "seat_id,section,row,seat,category";

#[track_caller]
fn check(text: impl AsRef<[u8]>, expected: &[&str]) {
    let text = text.as_ref();
    assert_eq!(faults(Format::Csv, text, false), expected, "{}", String::from_utf8_lossy(text));
}

/// A file of one more column and one line with this value in it.
#[track_caller]
fn check_cell(column: &str, value: &str, expected: &[&str]) {
    check(format!("{HEADER},{column}\nA-1,Hall,A,1,Gold,{value}\n"), expected);
}

#[track_caller]
fn places(text: &str) -> Vec<(String, f64, f64)> {
    imported(Format::Csv, text)
        .manifest
        .seats
        .into_iter()
        .map(|seat| (seat.seat_id, seat.x, seat.y))
        .collect()
}

#[test]
fn all_columns_in_any_order() {
    let text = "y,x,blocked,restricted_view,companion_of,accessible,category,seat,row,section,seat_id\n\
        2.5,-1e2,,,,TRUE,Gold,07,A,Hall,=007\n\
        2.5,10,yes,1,=007,no,Gold,8,A,Hall,\" 8\"\n";
    let Imported { manifest, warnings } = imported(Format::Csv, text);
    let [first, second] = &manifest.seats[..] else { panic!("two seats") };
    assert_eq!(
        (&*first.seat_id, &*first.seat, first.x, first.y, first.accessible),
        ("=007", "07", -100.0, 2.5, true)
    );
    assert_eq!(
        (&*second.seat_id, second.companion_of.as_deref(), second.accessible),
        (" 8", Some("=007"), false)
    );
    assert_eq!((second.restricted_view, second.not_for_sale), (true, true));
    assert_eq!(
        (first.not_for_sale, &*manifest.price_levels[0].name, &*manifest.sections[0]),
        (false, "Gold", "Hall")
    );
    assert_eq!(warnings, ["seat ids that begin or end with a space: 1"]);
}

#[test]
fn line_ends_quotes_and_marks() {
    for text in [
        "seat_id,section,row,seat,category\nA-1,Hall,A,1,Gold\nA-2,Hall,A,2,Gold",
        "\u{feff}seat_id,section,row,seat,category\r\nA-1,Hall,A,1,Gold\r\nA-2,Hall,A,2,Gold\r\n",
        "\n\n\"seat_id\",section,row,seat,category\n\nA-1,\"Hall\",A,1,Gold\n\n\"A-2\",Hall,A,2,\"Gold\"\n\n",
    ] {
        assert_eq!(seat_ids(&imported(Format::Csv, text).manifest), ["A-1", "A-2"]);
    }
    let text = format!("{HEADER}\nA-1,\"Great \"\"\r\nHall\",\"A,B\",1,Gold\n");
    let manifest = imported(Format::Csv, text).manifest;
    assert_eq!((&*manifest.sections[0], &*manifest.seats[0].row), ("Great \"\r\nHall", "A,B"));
}

#[test]
fn faults_stand_at_the_line_where_the_record_starts() {
    for line_end in ["\n", "\r\n", "\r"] {
        let text = [
            HEADER,
            "A-1,Hall,A,1,Gold",
            "",
            "A-2,\"Great",
            "",
            "Hall\",A,2,Gold,,",
            "A-3,Hall,A,3",
            "A-1,Hall,A,1,Gold",
            "",
            "",
            ",,,,",
            "\"\",Hall,A,1,\"Gold\"",
        ];
        check(
            text.join(line_end),
            &[
                "4: 7 fields, the header has 5",
                "7: 4 fields, the header has 5",
                "8: seat id \"A-1\" is repeated: it first stands on line 2",
                "11: section: is empty",
                "11: category: is empty",
                "11: seat: is empty",
                "11: seat_id: is empty",
                "12: seat_id: is empty",
            ],
        );
    }
}

#[test]
fn a_broken_file_is_refused() {
    check("", &["1: the header is missing"]);
    check("\n\n", &["1: the header is missing"]);
    check(HEADER, &["1: no seats"]);
    check(format!("{HEADER}\n"), &["1: no seats"]);
    check(
        "seat_id;section;row;seat;category\n",
        &[
            "1: unknown column \"seat_id;section;row;seat;category\"",
            "1: column section is missing",
            "1: column row is missing",
            "1: column category is missing",
            "1: column seat_id is missing",
            "1: column seat is missing",
        ],
    );
    check(
        "seat_id,seat_id,section,row,seat,Category,x\nA-1,,Hall,A,1,Gold,1\n",
        &[
            "1: column seat_id is repeated",
            "1: unknown column \"Category\"",
            "1: column category is missing",
            "1: x and y go together: one of the columns is missing",
        ],
    );
    check("section,row,category,seat_from\nHall,A,Gold,1\n", &["1: column seat_to is missing"]);
    check(b"seat_id,section,row,seat,cat\xffgory\nA-1,Hall,A,1,Gold\n", &["1: not valid UTF-8"]);
    check(
        b"seat_id,section,row,seat,category\n\nA-1,\"\nH\xff\",A,1,Gold\nA-2,,A,2,Gold\n",
        &["3: not valid UTF-8", "5: section: is empty"],
    );
    check(
        format!("{HEADER}\nA-1,Hall,A,1,\"Gold\nA-2,Hall,A,2,Gold\n"),
        &["2: a quoted field is not closed"],
    );
    check(format!("{HEADER}\n\nA-1,Hall,A,1,\"Gold\"en\n"), &["3: text after the closing quote of a field"]);
}

#[test]
fn cells_are_checked() {
    check_cell("accessible", "maybe", &["2: accessible: \"maybe\" is none of true, false, 1, 0, yes, no"]);
    check_cell("blocked", " true", &["2: blocked: \" true\" is none of true, false, 1, 0, yes, no"]);
    check_cell("companion_of", "A-1", &["2: companion_of: a seat cannot be its own companion"]);
    check_cell("companion_of", "A-9", &["2: companion_of: there is no seat \"A-9\""]);
    check_cell("ordinal", "-1", &["2: ordinal: \"-1\" is not a whole number"]);
    check_cell(
        "ordinal",
        "99999999999999999999",
        &["2: ordinal: \"99999999999999999999\" is not a whole number"],
    );
    for rank in ["-1", "1.5", "x", "4294967296"] {
        let fault = "2: rank: a rank must be an integer between 0, the best, and 4294967295";
        check_cell("rank", rank, &[fault]);
    }
    check_cell("x,y", "1,", &["2: x is given without y"]);
    check_cell("x,y", ",1", &["2: y is given without x"]);
    let too_far = "a coordinate must be a number between -10000000 and 10000000";
    for (x, fault) in [("1e8", too_far), ("nan", too_far), ("-inf", too_far), ("1e999", too_far), ("1,5", "")]
    {
        match fault {
            "" => check_cell("x,y", "1,5,2", &["2: 8 fields, the header has 7"]),
            fault => check_cell("x,y", &format!("{x},0"), &[&format!("2: x: {fault}")]),
        }
    }
    check_cell("x,y", "east,0", &["2: x: \"east\" is not a number"]);
    let long = "x".repeat(257);
    check(
        format!("{HEADER}\n{long},{long},{long},{long},{long}\n"),
        &[
            "2: section: has 257 characters, at most 256 are allowed",
            "2: category: has 257 characters, at most 256 are allowed",
            "2: row: has 257 characters, at most 256 are allowed",
            "2: seat: has 257 characters, at most 256 are allowed",
            "2: seat_id: has 257 bytes, at most 128 are allowed",
        ],
    );
    let companion = "A-1,Hall,A,1,Gold,oops,\nA-2,Hall,A,2,Gold,,A-1\nA-3,Hall,A,3,Gold,,A-2\n";
    check(
        format!("{HEADER},accessible,companion_of\n{companion}"),
        &[
            "2: accessible: \"oops\" is none of true, false, 1, 0, yes, no",
            "4: companion_of: seat \"A-2\" is not accessible",
        ],
    );
}

#[test]
fn ranges_become_seats() {
    let text = "seat_id,seat,section,row,seat_from,seat_to,category,accessible\n\
        ,,Hall,A,007,012,Gold,\nX,12a,Hall,A,,,Gold,yes\n,,Hall,B,9,11,Gold,1\n,,Hall,C,0,0,Gold,\n";
    let manifest = imported(Format::Csv, text).manifest;
    let mut expected: Vec<String> = (7..=12).map(|seat| format!("Hall-A-{seat:03}")).collect();
    expected.extend(["X", "Hall-B-9", "Hall-B-10", "Hall-B-11", "Hall-C-0"].map(String::from));
    assert_eq!(seat_ids(&manifest), expected);
    assert_eq!(
        (&*manifest.seats[5].seat, &*manifest.seats[8].seat, manifest.seats[8].accessible),
        ("012", "10", true)
    );

    let header = "section,row,category,seat_id,seat,seat_from,seat_to,x,y";
    for (line, expected) in [
        ("Hall,A,Gold,,,5,4,,", "2: seat_from 5 is above seat_to 4"),
        ("Hall,A,Gold,,,1,2001,,", "2: 2001 seats, a line may have 2000"),
        ("Hall,A,Gold,,,1,,,", "2: seat_to: is empty"),
        ("Hall,A,Gold,,,A1,9,,", "2: seat_from: \"A1\" is not a whole number of at most 18 digits"),
        (
            "Hall,A,Gold,,,1,9999999999999999999,,",
            "2: seat_to: \"9999999999999999999\" is not a whole number of at most 18 digits",
        ),
        ("Hall,A,Gold,A-1,,1,2,,", "2: a line has either seat_id and seat or seat_from and seat_to"),
        ("Hall,A,Gold,,,1,2,5,5", "2: a range of seats has no single x and y"),
        (",A,Gold,,,1,2,,", "2: section: is empty"),
        (
            "\"Great\nHall\",A,Gold,,,1,2,,",
            "2: the range's seat ids: \"Great\\nHall-A-2\" has a control character",
        ),
    ] {
        check(format!("{header}\n{line}\n"), &[expected]);
    }
    check(
        "section,row,category,seat_from,seat_to\nHall,A,Gold,1,3\nHall,A,Gold,3,4\n",
        &["3: seat id \"Hall-A-3\" is repeated: it first stands on line 2"],
    );
    assert_eq!(
        imported(Format::Csv, "section,row,category,seat_from,seat_to\nHall,A,Gold,1,2000\n")
            .manifest
            .seats
            .len(),
        2000
    );
}

#[test]
fn a_small_file_cannot_name_too_many_seats() {
    let rows = (0..602).map(|row| format!("Hall,{row},Gold,1,2000\n")).collect::<String>();
    check(
        format!("section,row,category,seat_from,seat_to\n{rows}"),
        &["602: more than 1200000 seats", "603: more than 1200000 seats"],
    );
    let sections = (0..10_001).map(|section| format!("{section},{section},A,1,Gold\n")).collect::<String>();
    check(format!("{HEADER}\n{sections}"), &["10002: section: more than 10000 sections"]);
    let levels = (0..1_001).map(|level| format!("{level},Hall,A,1,{level}\n")).collect::<String>();
    check(format!("{HEADER}\n{levels}"), &["1002: category: more than 1000 price levels"]);
}

#[test]
fn ordinals_order_the_seats() {
    let text = "ordinal,seat_id,section,row,seat,category,seat_from,seat_to\n\
        30,c,Hall,B,1,Gold,,\n5,,Hall,A,,Gold,1,2\n6,b,Hall,A,3,Gold,,\n";
    assert_eq!(seat_ids(&imported(Format::Csv, text).manifest), ["Hall-A-1", "Hall-A-2", "b", "c"]);
    check(
        format!("{HEADER},ordinal\na,Hall,A,1,Gold,1\nb,Hall,A,2,Gold,\nc,Hall,A,3,Gold,1\n"),
        &[
            "3: ordinal: is empty, while other lines have one",
            "4: ordinal: 1 is repeated: it first stands on line 2",
        ],
    );
}

#[test]
fn without_ordinals_the_seats_of_a_row_are_put_together() {
    let text = format!(
        "{HEADER}\na1,Hall,A,1,Gold\nb1,Hall,B,1,Gold\na2,Hall,A,2,Gold\nx,Box,A,1,Gold\nb2,Hall,B,2,Gold\n"
    );
    let Imported { manifest, warnings } = imported(Format::Csv, text);
    assert_eq!(seat_ids(&manifest), ["a1", "a2", "b1", "b2", "x"]);
    assert_eq!(warnings, ["some rows are scattered over the file: their seats were put together"]);
}

#[test]
fn ranks_come_before_distances() {
    let text = "section,row,category,seat_from,seat_to,rank\nHall,A,Gold,1,3,\nHall,B,Gold,1,3,5\nHall,C,Gold,1,3,4\n";
    let ranks = imported(Format::Csv, text).manifest.seats.iter().map(|seat| seat.rank).collect::<Vec<_>>();
    assert_eq!(ranks, [5, 4, 5, 3, 2, 3, 1, 0, 1]);
}

#[test]
fn seats_without_a_place_get_one() {
    let text = format!(
        "{HEADER}\na1,Hall,A,1,Gold\na2,Hall,A,2,Gold\nb1,Hall,B,1,Gold\nx1,Box,A,1,Gold\nx2,Box,A,2,Gold\n"
    );
    let expected =
        [("a1", 0.0, 0.0), ("a2", 25.0, 0.0), ("b1", 0.0, 30.0), ("x1", 0.0, 90.0), ("x2", 25.0, 90.0)];
    assert_eq!(places(&text), expected.map(|(id, x, y)| (id.to_owned(), x, y)));

    let text = format!("{HEADER},x,y\na1,Hall,A,1,Gold,7,100\na2,Hall,A,2,Gold,,\nb1,Hall,B,1,Gold,,\n");
    let expected = [("a1", 7.0, 100.0), ("a2", 25.0, 160.0), ("b1", 0.0, 190.0)];
    assert_eq!(places(&text), expected.map(|(id, x, y)| (id.to_owned(), x, y)));
    let warnings = imported(Format::Csv, text).warnings;
    assert_eq!(warnings, ["seats without x and y, put below the others: 2"]);
}

#[test]
fn warnings_name_what_looks_wrong() {
    // A row along x out of order, one at the side of a bowl in order, two seats at one place.
    let text = "seat_id,section,row,seat,category,x,y\n\
        1,Hall,A,1,Gold,0,0\n2,Hall,A,2,Gold,20,0\n3,Hall,A,3,Gold,10,0\n4,Hall,A,4,Gold,30,0\n\
        5,Hall,B,1,Gold,0,10\n6,Hall,B,2,Gold,-5,30\n7,Hall,B,3,Gold,0,50\n8,Hall,C,3,Gold,-0,50\n";
    assert_eq!(
        imported(Format::Csv, text).warnings,
        [
            "seats at the same place as another seat: 1",
            "section \"Hall\" row \"A\": the seats do not stand in the order of their places, so neighbours may be wrong",
        ]
    );
    let rows = (0..200)
        .map(|row| format!("{row}a,Hall,{row},1,Gold,0,{row}\n{row}b,Hall,{row},2,Gold,9,{row}\n{row}c,Hall,{row},3,Gold,8,{row}\n"))
        .collect::<String>();
    let warnings = imported(Format::Csv, format!("{HEADER},x,y\n{rows}")).warnings;
    assert_eq!((warnings.len(), &*warnings[99]), (100, "and 101 more warnings"));
}
