//! The onsale program.
fn main() {}
