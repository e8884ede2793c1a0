//! Seating plans: what is read, and what is refused at which pointer.

use serde_json::{Value, json};

use super::*;

/// Faults as `place: detail`, one per line.
pub(super) fn faults(format: Format, bytes: &[u8], prefix_zones: bool) -> Vec<String> {
    let Err(faults) = import(format, bytes, prefix_zones) else { return Vec::new() };
    let place = |at| match at {
        At::Pointer(pointer) => pointer,
        At::Line(line) => line.to_string(),
    };
    faults.into_iter().map(|fault| format!("{}: {}", place(fault.at), fault.detail)).collect()
}

#[track_caller]
pub(super) fn imported(format: Format, bytes: impl AsRef<[u8]>) -> Imported {
    import(format, bytes.as_ref(), false).expect("should import")
}

/// Sets the member or element at a pointer, or takes it away, and imports.
#[track_caller]
fn check_edit(document: Value, pointer: &str, edit: Option<Value>, expected: &[&str]) {
    let mut document = document;
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match (document.pointer_mut(parent).unwrap(), edit) {
        (Value::Object(members), Some(value)) => drop(members.insert(last.into(), value)),
        (Value::Object(members), None) => drop(members.remove(last)),
        (Value::Array(elements), Some(value)) => elements[last.parse::<usize>().unwrap()] = value,
        _ => panic!("no such edit"),
    }
    assert_eq!(faults(Format::Json, document.to_string().as_bytes(), false), expected, "{pointer}");
}

pub(super) fn seat_ids(manifest: &Manifest) -> Vec<&str> {
    manifest.seats.iter().map(|seat| seat.seat_id.as_str()).collect()
}

/// Stalls and balcony, whose two rows have different ids; `balcony_row` is the number in the balcony's ids.
fn theatre(balcony_row: u32) -> Value {
    let seat = |row: u32, seat: u32, category: &str| {
        json!({
            "seat_guid": format!("{row}-{seat}"), "seat_number": seat.to_string(), "category": category,
            "position": {"x": 30 * seat, "y": 0.5}
        })
    };
    json!({
        "name": "Theatre", "size": {"width": 300, "height": 300},
        "categories": [{"name": "Stalls", "color": "#5f9cd4"}, {"name": "Balcony", "color": "#d36"}],
        "zones": [
            {"name": "Floor", "zone_id": "f", "position": {"x": 100, "y": 0}, "rows": [
                {"row_number": "1", "row_label": "Row A", "position": {"x": 5, "y": 10},
                    "seats": [seat(1, 1, "Stalls"), seat(1, 2, "Stalls")]}
            ], "areas": [{"shape": "rectangle", "rectangle": {"width": 9, "height": 9}, "position": {"x": 0, "y": 0},
                "text": {"text": "STAGE", "position": {"x": 1, "y": 1}}}]},
            {"name": "Balcony", "position": {"x": 0, "y": 100}, "rows": [
                {"row_number": "2", "row_label": null, "seats": [seat(balcony_row, 1, "Balcony"), seat(balcony_row, 2, "Balcony")]}
            ]}
        ]
    })
}

fn own() -> Value {
    json!({
        "price_levels": [{"name": "A", "color": "#000000"}, {"name": "B"}],
        "sections": [{"name": "Hall", "rows": [{"row": "1", "seats": [
            {"seat_id": "007", "seat": "7", "price_level": "A", "accessible": true},
            {"seat_id": "008", "seat": "8", "price_level": "A", "companion_of": "007", "x": null, "y": null},
            {"seat_id": "009", "seat": "9", "price_level": "A", "restricted_view": true, "not_for_sale": true}
        ]}]}],
        "ga_areas": [{"ga_area": "floor", "capacity": 500, "price_level": "B"}]
    })
}

#[test]
fn pretix_plan_becomes_a_manifest() {
    let Imported { manifest, warnings } = imported(Format::Json, theatre(2).to_string());
    assert_eq!(warnings, [""; 0]);
    assert_eq!(manifest.sections, ["Floor", "Balcony"]);
    assert_eq!(
        manifest.price_levels[1],
        PriceLevel { name: "Balcony".into(), color: Some("#dd3366".into()) }
    );
    let seats: Vec<_> =
        manifest.seats.iter().map(|seat| (&*seat.seat_id, seat.section, &*seat.row, &*seat.seat)).collect();
    assert_eq!(
        seats,
        [("1-1", 0, "Row A", "1"), ("1-2", 0, "Row A", "2"), ("2-1", 1, "2", "1"), ("2-2", 1, "2", "2")]
    );
    assert_eq!((manifest.seats[1].x, manifest.seats[1].y, manifest.seats[1].price_level), (165.0, 10.5, 0));
    assert_eq!((manifest.seats[2].x, manifest.seats[2].y, manifest.seats[2].price_level), (30.0, 100.5, 1));
}

#[test]
fn zones_make_repeated_ids_unique() {
    let mut plan = theatre(1);
    let bytes = plan.to_string();
    assert_eq!(
        faults(Format::Json, bytes.as_bytes(), false),
        [
            r#"/zones/1/rows/0/seats/0/seat_guid: seat id "1-1" is repeated: it first stands at /zones/0/rows/0/seats/0/seat_guid"#,
            r#"/zones/1/rows/0/seats/1/seat_guid: seat id "1-2" is repeated: it first stands at /zones/0/rows/0/seats/1/seat_guid"#,
        ]
    );
    let prefixed = import(Format::Json, bytes.as_bytes(), true).unwrap().manifest;
    assert_eq!(seat_ids(&prefixed), ["Floor-1-1", "Floor-1-2", "Balcony-1-1", "Balcony-1-2"]);

    // (names, zone ids) -> prefixes
    for (names, zone_ids, prefixes) in [
        (["Hall", "Hall"], ["l", "r"], ["l", "r"]),
        (["Hall", "Hall"], ["l", ""], ["l", "2"]),
        (["Hall", "Hall"], ["Hall", "Hall"], ["1", "2"]),
        (["", "Hall"], ["", "x"], ["1", "Hall"]),
        (["", "Hall"], ["Hall", ""], ["1", "Hall"]),
    ] {
        for zone in 0..2 {
            plan["zones"][zone]["name"] = names[zone].into();
            plan["zones"][zone]["zone_id"] = zone_ids[zone].into();
        }
        let Imported { manifest, warnings } =
            import(Format::Json, plan.to_string().as_bytes(), true).unwrap();
        assert_eq!(manifest.sections, prefixes);
        assert_eq!(manifest.seats[3].seat_id, format!("{}-1-2", prefixes[1]));
        assert_eq!(warnings.len(), if names[0] == names[1] { 2 } else { 0 }, "{warnings:?}");
    }

    plan["zones"][0]["name"] = "x".repeat(125).into();
    assert_eq!(
        faults(Format::Json, plan.to_string().as_bytes(), true),
        [
            "/zones/0/rows/0/seats/0/seat_guid: with its zone in front, the id has 129 bytes, at most 128 are allowed",
            "/zones/0/rows/0/seats/1/seat_guid: with its zone in front, the id has 129 bytes, at most 128 are allowed",
        ]
    );
}

#[test]
fn pretix_faults_have_pointers() {
    let seat = "/zones/0/rows/0/seats/1";
    let table: &[(&str, Option<Value>, &[&str])] = &[
        ("/size", None, &[": `size` is missing"]),
        ("/size/width", Some(json!(1.5)), &["/size/width: expected an integer, found a number"]),
        ("/sections", Some(json!([])), &["/sections: unknown member"]),
        ("/categories", None, &[": `categories` is missing"]),
        (
            "/categories/1/name",
            Some(json!("Stalls")),
            &[
                r#"/categories/1/name: category "Stalls" is declared twice"#,
                r#"/zones/1/rows/0/seats/0/category: category "Balcony" is not declared"#,
                r#"/zones/1/rows/0/seats/1/category: category "Balcony" is not declared"#,
            ],
        ),
        ("/zones", Some(json!(7)), &["/zones: expected an array, found a number"]),
        ("/zones", Some(json!([])), &[": no seats"]),
        ("/zones/0", Some(json!(null)), &["/zones/0: expected an object, found null"]),
        ("/zones/0/position", None, &["/zones/0: `position` is missing"]),
        ("/zones/0/name", Some(json!("a\0")), &[r#"/zones/0/name: "a\0" has a control character"#]),
        (
            "/zones/0/areas/0/shape",
            Some(json!("star")),
            &[
                r#"/zones/0/areas/0/shape: expected one of polygon, rectangle, ellipse, circle, text, found "star""#,
            ],
        ),
        (
            "/zones/0/areas/0/text/size",
            Some(json!("big")),
            &["/zones/0/areas/0/text/size: expected a number, found a string"],
        ),
        (
            "/zones/0/rows/0",
            Some(json!({})),
            &["/zones/0/rows/0: `row_number` is missing", "/zones/0/rows/0: `seats` is missing"],
        ),
        (
            "/zones/0/rows/0/row_number_position",
            Some(json!("left")),
            &[r#"/zones/0/rows/0/row_number_position: expected one of start, end, both, found "left""#],
        ),
        (
            seat,
            Some(
                json!({"seat_guid": "", "seat_number": 1, "colour": "red", "position": {"x": 1e8, "y": 0, "z": 0}}),
            ),
            &[
                "/zones/0/rows/0/seats/1/seat_guid: is empty",
                "/zones/0/rows/0/seats/1/seat_number: expected a string, found a number",
                "/zones/0/rows/0/seats/1/position/x: a coordinate must be a number between -10000000 and 10000000",
                "/zones/0/rows/0/seats/1/position/z: unknown member",
                "/zones/0/rows/0/seats/1: `category` is missing",
                "/zones/0/rows/0/seats/1/colour: unknown member",
            ],
        ),
        (
            "/zones/0/rows/0/seats/1/position/x",
            Some(json!(9_999_999)),
            &[
                "/zones/0/rows/0/seats/1/position: zone, row and seat together are at (10000104, 10.5): too far out",
            ],
        ),
        (
            "/zones/0/rows/0/seats/1/category",
            Some(json!("VIP")),
            &[r#"/zones/0/rows/0/seats/1/category: category "VIP" is not declared"#],
        ),
        (
            "/zones/0/rows/0/seats/1/seat_guid",
            Some(json!("x".repeat(129))),
            &["/zones/0/rows/0/seats/1/seat_guid: has 129 bytes, at most 128 are allowed"],
        ),
        (
            "/zones/0/rows/0/seats/1/seat_guid",
            Some(json!("a\nb")),
            &[r#"/zones/0/rows/0/seats/1/seat_guid: "a\nb" has a control character"#],
        ),
        (
            "/zones/0/rows/0/seats/1/a~b~1c",
            Some(json!(0)),
            &["/zones/0/rows/0/seats/1/a~0b~01c: unknown member"],
        ),
    ];
    for (pointer, edit, expected) in table {
        check_edit(theatre(2), pointer, edit.clone(), expected);
    }
}

#[test]
fn older_pretix_plans_are_read_with_a_warning() {
    let mut plan = theatre(2);
    plan["zones"][0]["displayed"] = true.into();
    plan["zones"][0]["rows"][0]["number_of_seats"] = 2.into();
    plan["zones"][0]["areas"] =
        json!([{"width": 5, "height": 5, "position": {"x": 1, "y": 1}, "text": "Bar"}]);
    plan["categories"][0]["color"] = "blue".into();
    let Imported { manifest, warnings } = imported(Format::Json, plan.to_string());
    assert_eq!(
        warnings,
        [
            "members of an older pretix schema are ignored: displayed, height, number_of_seats, width",
            r#"category "Stalls": its colour is not #rrggbb, and is left out"#,
        ]
    );
    assert_eq!(manifest.price_levels[0].color, None);
}

#[test]
fn own_manifest_is_read_as_it_stands() {
    let Imported { manifest, warnings } = imported(Format::Json, own().to_string());
    assert_eq!(warnings, [""; 0]);
    assert_eq!(seat_ids(&manifest), ["007", "008", "009"]);
    assert_eq!(
        (manifest.seats[0].accessible, manifest.seats[1].companion_of.as_deref()),
        (true, Some("007"))
    );
    assert_eq!((manifest.seats[2].restricted_view, manifest.seats[2].not_for_sale), (true, true));
    assert_eq!(
        manifest.ga_areas,
        [GaArea { ga_area: "floor".into(), capacity: 500, price_level: 1, buckets: 1 }]
    );
    // Without a list of levels, those that are named exist.
    let ga_only = r#"{"ga_areas": [{"ga_area": "g", "capacity": 1, "price_level": "Standing"}]}"#;
    assert_eq!(imported(Format::Json, ga_only).manifest.price_levels[0].name, "Standing");
    let prefixed = import(Format::Json, own().to_string().as_bytes(), true).unwrap();
    assert_eq!((seat_ids(&prefixed.manifest)[0], prefixed.warnings.len()), ("007", 1));
}

#[test]
fn rows_of_one_label_count_as_one_and_that_is_said() {
    let mut document = own();
    let row = json!({"row": "1", "seats": [{"seat_id": "x", "seat": "1", "price_level": "A"}]});
    document["sections"][0]["rows"].as_array_mut().unwrap().push(row);
    assert_eq!(
        imported(Format::Json, document.to_string()).warnings,
        [r#"section "Hall" row "1": several rows of this label follow each other, and count as one"#]
    );
}

const RANK_FAULT: &str =
    "/sections/0/rows/0/seats/1/rank: a rank must be an integer between 0, the best, and 4294967295";

/// Two rows of three, one unit apart, and what is added to the first seats.
fn ranked(focal_point: Value, said: &[Value]) -> Vec<u32> {
    let seat = |number: usize| {
        json!({
            "seat_id": number.to_string(), "seat": "", "price_level": "A", "x": number % 3, "y": number / 3,
            "rank": said.get(number)
        })
    };
    let row = |number: usize| json!({"row": number.to_string(), "seats": [seat(3 * number), seat(3 * number + 1), seat(3 * number + 2)]});
    let document = json!({
        "focal_point": focal_point, "sections": [{"name": "Hall", "rows": [row(0), row(1)]}]
    });
    imported(Format::Json, document.to_string()).manifest.seats.iter().map(|seat| seat.rank).collect()
}

#[test]
fn seats_are_ranked_by_the_organiser_then_by_the_distance_to_the_focal_point() {
    // The middle of the upper edge: one step to the side is as good as one step back.
    assert_eq!(ranked(Value::Null, &[]), [1, 0, 1, 2, 1, 2]);
    assert_eq!(ranked(json!({"x": 0, "y": 1}), &[]), [1, 2, 4, 0, 1, 3]);
    // Seats without a rank come last, each group by distance.
    let said = [json!(7), json!(7), json!(null), json!(u32::MAX), json!(0)];
    assert_eq!(ranked(Value::Null, &said), [2, 1, 4, 3, 0, 5]);
}

#[test]
fn own_faults_have_pointers() {
    let seat = "/sections/0/rows/0/seats/2";
    let twice = json!([own()["sections"][0], {"name": "Hall", "rows": []}]);
    let area = |number: usize| json!({"ga_area": format!("g{number}"), "capacity": 1, "price_level": "B"});
    let table: &[(&str, Option<Value>, &[&str])] = &[
        ("/venue", Some(json!("x")), &["/venue: unknown member"]),
        (
            "/price_levels/0/color",
            Some(json!("red")),
            &["/price_levels/0/color: a colour is written #rrggbb"],
        ),
        (
            "/price_levels/1/name",
            Some(json!("")),
            &[
                "/price_levels/1/name: is empty",
                r#"/ga_areas/0/price_level: price level "B" is not declared"#,
            ],
        ),
        (
            "/sections",
            Some(twice),
            &[r#"/sections/1/name: "Hall" is repeated: it first stands at /sections/0/name"#],
        ),
        (
            "/sections/0/rows/0/row",
            Some(json!("r".repeat(257))),
            &["/sections/0/rows/0/row: has 257 characters, at most 256 are allowed"],
        ),
        (
            seat,
            Some(json!({"seat_id": "007", "seat": "9", "price_level": "A"})),
            &[
                r#"/sections/0/rows/0/seats/2/seat_id: seat id "007" is repeated: it first stands at /sections/0/rows/0/seats/0/seat_id"#,
            ],
        ),
        (
            seat,
            Some(json!({"seat_id": "9", "seat": "9", "price_level": "C", "x": 1, "companion_of": "10"})),
            &[
                "/sections/0/rows/0/seats/2: `x` is given without `y`",
                r#"/sections/0/rows/0/seats/2/price_level: price level "C" is not declared"#,
                r#"/sections/0/rows/0/seats/2/companion_of: there is no seat "10""#,
            ],
        ),
        (
            "/sections/0/rows/0/seats/1/companion_of",
            Some(json!("009")),
            &[r#"/sections/0/rows/0/seats/1/companion_of: seat "009" is not accessible"#],
        ),
        (
            "/sections/0/rows/0/seats/0/companion_of",
            Some(json!("007")),
            &["/sections/0/rows/0/seats/0/companion_of: a seat cannot be its own companion"],
        ),
        (
            "/sections/0/rows/0/seats/0/accessible",
            Some(json!("yes")),
            &["/sections/0/rows/0/seats/0/accessible: expected true or false, found a string"],
        ),
        (
            seat,
            Some(json!({"seat_id": "9", "seat": "9", "price_level": "A", "rank": "1"})),
            &["/sections/0/rows/0/seats/2/rank: expected an integer, found a string"],
        ),
        ("/sections/0/rows/0/seats/1/rank", Some(json!(-1)), &[RANK_FAULT]),
        ("/sections/0/rows/0/seats/1/rank", Some(json!(1.5)), &[RANK_FAULT]),
        ("/sections/0/rows/0/seats/1/rank", Some(json!(1u64 << 32)), &[RANK_FAULT]),
        ("/sections/0/rows/0/seats/1/rank", Some(json!(u32::MAX)), &[]),
        ("/sections/0/rows/0/seats/1/rank", Some(json!(null)), &[]),
        (
            "/focal_point",
            Some(json!({"x": "left", "z": 1})),
            &[
                "/focal_point/x: expected a number, found a string",
                "/focal_point: `y` is missing",
                "/focal_point/z: unknown member",
            ],
        ),
        (
            "/focal_point",
            Some(json!({"x": 1e8, "y": 0})),
            &["/focal_point/x: a coordinate must be a number between -10000000 and 10000000"],
        ),
        ("/focal_point", Some(json!([0, 0])), &["/focal_point: expected an object, found an array"]),
        ("/focal_point", Some(json!(null)), &[]),
        (
            "/ga_areas",
            Some(json!([area(0), area(0)])),
            &[r#"/ga_areas/1/ga_area: "g0" is repeated: it first stands at /ga_areas/0/ga_area"#],
        ),
        (
            "/ga_areas/0/capacity",
            Some(json!(0)),
            &["/ga_areas/0/capacity: a capacity must be an integer between 1 and 10000000"],
        ),
        (
            "/ga_areas/0/capacity",
            Some(json!(10_000_001)),
            &["/ga_areas/0/capacity: a capacity must be an integer between 1 and 10000000"],
        ),
        (
            "/ga_areas",
            Some((0..1_001).map(area).collect()),
            &["/ga_areas: has 1001 elements, at most 1000 are allowed"],
        ),
    ];
    for (pointer, edit, expected) in table {
        check_edit(own(), pointer, edit.clone(), expected);
    }
}

#[test]
fn what_is_not_a_manifest_is_one_fault() {
    let deep = format!(r#"{{"zones": {}"#, "[".repeat(100_000));
    for (text, expected) in [
        ("", ": not JSON: EOF while parsing a value at line 1 column 0"),
        ("{\n\"zones\": [,]}", ": not JSON: expected value at line 2 column 11"),
        (r#"{"zones": [1e400]}"#, ": not JSON: number out of range at line 1 column 16"),
        (&deep, ": not JSON: recursion limit exceeded at line 1 column 137"),
        ("[]", ": expected an object, found an array"),
        ("{}", ": neither a pretix plan (`zones`) nor a manifest (`sections`, `ga_areas`)"),
        (r#"{"sections": []}"#, ": no seats"),
    ] {
        assert_eq!(faults(Format::Json, text.as_bytes(), false), [expected]);
    }
    assert_eq!(faults(Format::Json, b"{\"zones\": \"\xff\"}", false).len(), 1);
    imported(Format::Json, [b"\xef\xbb\xbf", own().to_string().as_bytes()].concat());
}

#[test]
fn a_member_given_twice_is_a_fault() {
    let text = own().to_string().replacen(r#""row":"1""#, r#""row":"1","r\u006fw":"2","row":"{[\",""#, 1);
    let fault = "/sections/0/rows/0/row: member given twice";
    assert_eq!(faults(Format::Json, text.as_bytes(), false), [fault, fault]);
    let text = format!(r#"{{"sections": [], {}"#, &own().to_string()[1..]);
    assert_eq!(faults(Format::Json, text.as_bytes(), false), ["/sections: member given twice"]);
}
