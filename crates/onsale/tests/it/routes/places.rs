//! Standing places, what is set aside, and access codes: counted, never more of them than there are.

mod at_once;
mod codes;
mod quota;
mod standing;
