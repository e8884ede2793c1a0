//! Integration tests, one binary: the real program, over HTTP.

mod routes;
mod util;
