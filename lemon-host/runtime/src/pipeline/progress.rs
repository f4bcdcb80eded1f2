//! How far a call has got, while it is under way.

use tokio::sync::broadcast;

use super::result::ToolResult;
use crate::report::PluginText;

/// How far a call has got.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Progress {
    /// How far it is.
    pub progress: f64,
    /// How far it will go, if that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<PluginText>,
    /// The whole result so far, which takes the place of the one before it.
    pub partial: Option<ToolResult>,
}

impl Progress {
    /// So far; only ever grows within a call.
    pub fn new(progress: f64) -> Self {
        Self { progress, ..Self::default() }
    }

    /// Says how far it will go.
    #[must_use]
    pub fn of(mut self, total: f64) -> Self {
        self.total = Some(total);
        self
    }

    /// Says what is being done.
    #[must_use]
    pub fn message(mut self, message: impl Into<PluginText>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Shows the result as far as there is one.
    #[must_use]
    pub fn partial(mut self, so_far: ToolResult) -> Self {
        self.partial = Some(so_far);
        self
    }
}

/// The progress notes of one call, until it ends. A reader that is slow misses the oldest ones.
#[derive(Debug)]
pub struct ProgressStream(pub(super) broadcast::Receiver<Progress>);

impl ProgressStream {
    /// The next note; none when the call has ended.
    pub async fn next(&mut self) -> Option<Progress> {
        loop {
            match self.0.recv().await {
                Ok(note) => return Some(note),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
