-- Holds that were placed on a seat before the hold placed on it before had run out.
SELECT count(*) FROM (
    SELECT created_at, lag(expires_at) OVER (PARTITION BY seat ORDER BY hold_id) AS expired_at
    FROM holds, unnest(seats) AS seat
) AS turns WHERE created_at < expired_at;
