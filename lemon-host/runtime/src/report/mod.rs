//! What is told, and in which form: text from plugins made safe to show, secrets taken out, the state of everything.

pub(crate) mod lossy;
mod redactor;
mod status;
mod text;

pub use redactor::Redactor;
pub(crate) use redactor::names_a_secret;
pub use status::{FailureReport, Hidden, Loser, PluginStatus, ProcessStatus, SessionProcess, Status};
pub use text::{PluginText, Shown};
