//! The manifest of an extension's folder: read without running anything, and checked for all that is wrong at once.
//!
//! [`ManifestFile::read`] takes a folder (or the file itself) and gives the manifest, or a [`ManifestError`] with every
//! problem. [`ManifestFile::plugin_spec`] makes what a [`Host`](crate::Host) starts. [`ManifestReport::of`] is the same
//! reading for a validator: it always has a report, of a valid manifest too.
//!
//! A manifest is hostile input: only a regular file is opened, no link is followed, no more than 256 KiB are read, and
//! what is deeper than 64 levels is refused.

mod checking;
mod file;
mod loadable;
mod offers;
mod problem;
mod reading;
mod rules;
mod running;
#[cfg(test)]
mod tests;
mod tree;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use file::check;
pub use file::{ManifestFile, ManifestReport, manifests_in};
pub use loadable::NotLoadable;
pub use problem::{ManifestError, ManifestProblem, ProblemKind, Severity};
