//! What is told, and in which form: text from plugins made safe to show, secrets taken out, the state of everything.

mod redactor;
mod status;
mod text;

pub use redactor::Redactor;
pub use status::{Hidden, Loser, PluginStatus, ProcessStatus, Status};
pub use text::{PluginText, Shown};
