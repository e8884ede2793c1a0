-- A hold of three seats, in one call: see the function in `schema.sql`.
\set seat_2 :seat_1 + 1
\set seat_3 :seat_1 + 2
\set account random(1, 1000000000)
\set key random(1, 4000000000000000000)
SELECT place_hold(ARRAY[:seat_1, :seat_2, :seat_3]::integer[], :account, :key, :key);
