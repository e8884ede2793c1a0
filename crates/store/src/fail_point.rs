//! Fail points: named places where a test kills, fails or delays the program at a chosen hit. They are there with the
//! feature `fail-points` alone, which no build for use has.

#[cfg(feature = "fail-points")]
mod points;

#[cfg(feature = "fail-points")]
pub use points::{NAMES, fails, fails_async};

/// A fail point, with what failing means there: `fail_point!("commit.before", return Err(…))`, or with `async` where a
/// thread must not sleep. Without the feature `fail-points` it is nothing at all.
#[cfg(feature = "fail-points")]
#[macro_export]
macro_rules! fail_point {
    (async $name:literal, $failing:expr) => {
        if $crate::fail_point::fails_async($name).await {
            $failing
        }
    };
    ($name:literal, $failing:expr) => {
        if $crate::fail_point::fails($name) {
            $failing
        }
    };
}

/// Nothing: this build has no fail points.
#[cfg(not(feature = "fail-points"))]
#[macro_export]
macro_rules! fail_point {
    ($($nothing:tt)*) => {};
}
